// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/event_log.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "guest/random.h"

namespace mig::model {

const char* ActorName(Actor actor) {
  switch (actor) {
    case Actor::kModel:
      return "model";
    case Actor::kGuest:
      return "guest";
    case Actor::kSource:
      return "source";
    case Actor::kDestination:
      return "destination";
  }
  return "?";
}

void EventLog::Take(uint64_t value) {
  hash_ = sim::Mix(hash_ ^ value) + sim::kGolden;
}

void EventLog::Add(uint64_t now_ns, Actor actor, const char* what, uint64_t a,
                   uint64_t b, absl::string_view text) {
  ++count_;
  Take(now_ns);
  Take(static_cast<uint64_t>(actor));
  for (const char* c = what; *c != '\0'; ++c) Take(static_cast<uint8_t>(*c));
  Take(a);
  Take(b);
  for (const char c : text) Take(static_cast<uint8_t>(c));
  if (last_.size() == kKept) last_.pop_front();
  last_.push_back({now_ns, actor, what, a, b, std::string(text)});
  if (every_ != nullptr) {
    const std::string line = Line(last_.back());
    std::fprintf(every_, "%s\n", line.c_str());
  }
}

std::string EventLog::Line(const Entry& entry) {
  std::string line = absl::StrFormat("%12.6f ms  %-11s %s", entry.now_ns / 1e6,
                                     ActorName(entry.actor), entry.what);
  if (entry.a != 0 || entry.b != 0) absl::StrAppend(&line, " ", entry.a);
  if (entry.b != 0) absl::StrAppend(&line, " ", entry.b);
  if (!entry.text.empty()) absl::StrAppend(&line, ": ", entry.text);
  return line;
}

std::vector<std::string> EventLog::LastLines() const {
  std::vector<std::string> lines;
  lines.reserve(last_.size());
  for (const Entry& entry : last_) lines.push_back(Line(entry));
  return lines;
}

}  // namespace mig::model
