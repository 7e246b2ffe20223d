// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What holds for the events of every session.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "session.h"

namespace mig::conformance {
namespace {

const char* const kEventNames[] = {
    "(none)",     "CONNECTED",   "BLOCKS_READY",     "BLOCK_REMOVED",
    "ROUND_DONE", "MESSAGE",     "SEND_READY",       "WRITE_READY",
    "HANDOVER",   "COMMITTED",   "HANDOVER_REFUSED", "IN_DOUBT",
    "ERROR",      "PEER_CLOSED", "CLOSED",           "FDS_CHANGED",
    "PREPARING"};

bool IsEnding(uint32_t type) {
  return type == MIG_EVENT_COMMITTED || type == MIG_EVENT_HANDOVER_REFUSED ||
         type == MIG_EVENT_IN_DOUBT || type == MIG_EVENT_ERROR ||
         type == MIG_EVENT_CLOSED;
}

bool IsSourceOnly(uint32_t type) {
  return type == MIG_EVENT_WRITE_READY || type == MIG_EVENT_COMMITTED ||
         type == MIG_EVENT_HANDOVER_REFUSED || type == MIG_EVENT_IN_DOUBT;
}

}  // namespace

std::string EventName(uint32_t type) {
  return type < std::size(kEventNames) ? kEventNames[type]
                                       : std::to_string(type);
}

void Session::Take(const mig_event& event) {
  CheckEvent(event);
  Event taken{event, ""};
  if (event.type == MIG_EVENT_MESSAGE) {
    taken.data.assign(static_cast<const char*>(event.data), event.length);
    if (auto_release_) Release(event.message);
  }
  events_.push_back(std::move(taken));
  ++counts_[event.type];
}

void Session::CheckEvent(const mig_event& event) {
  EXPECT_GE(event.time_ns, last_time_ns_)
      << EventName(event.type) << " is older than the event before it";
  EXPECT_LE(event.time_ns, host_.Now())
      << EventName(event.type) << " is not on the host's clock";
  last_time_ns_ = event.time_ns;
  if (event.type == MIG_EVENT_MESSAGE) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(event.data) % 16, 0U)
        << "rule 11: data is aligned to 16 bytes";
    EXPECT_TRUE(event.data != nullptr || event.length == 0);
    EXPECT_NE(event.message, nullptr);
    EXPECT_EQ(event.channel, 0U);
  }
  if (event.type == MIG_EVENT_ROUND_DONE) {
    EXPECT_EQ(event.number, last_round_done_ + 1) << "rule 8: rounds in order";
    last_round_done_ = event.number;
  }
  if (event.type == MIG_EVENT_PREPARING) {
    EXPECT_LE(event.number, event.length) << "more is prepared than there is";
  }
  if (event.type == MIG_EVENT_ERROR || event.type == MIG_EVENT_IN_DOUBT) {
    EXPECT_LT(event.code, 0) << EventName(event.type) << " without a cause";
  }
  EXPECT_TRUE(role_ == MIG_ROLE_SOURCE || !IsSourceOnly(event.type))
      << EventName(event.type) << " on a destination";
  EXPECT_TRUE(role_ == MIG_ROLE_DESTINATION ||
              event.type != MIG_EVENT_HANDOVER);
  CheckOrder(event.type);
}

// Rules 12 and 15: one outcome, and CLOSED last.
void Session::CheckOrder(uint32_t type) {
  const bool known = type < std::size(kEventNames);
  if (!endings_.empty() && known) {
    const uint32_t last = endings_.back();
    EXPECT_NE(last, static_cast<uint32_t>(MIG_EVENT_CLOSED))
        << EventName(type) << " came after CLOSED";
    if (last != MIG_EVENT_COMMITTED && type != MIG_EVENT_CLOSED &&
        type != MIG_EVENT_FDS_CHANGED) {
      ADD_FAILURE() << "rule 15: " << EventName(type) << " came after "
                    << EventName(last);
    }
    if (last == MIG_EVENT_COMMITTED && IsEnding(type)) {
      EXPECT_EQ(EventName(type), "CLOSED")
          << "rule 12: a committed session can't end otherwise";
    }
  }
  if (IsEnding(type)) endings_.push_back(type);
}

size_t Session::Count(uint32_t type) const {
  const auto found = counts_.find(type);
  return found == counts_.end() ? 0 : found->second;
}

size_t Session::Index(uint32_t type, uint64_t number) const {
  const auto found =
      std::find_if(events_.begin(), events_.end(), [&](const Event& e) {
        return e.raw.type == type && e.raw.number == number;
      });
  return static_cast<size_t>(found - events_.begin());
}

bool Session::SawNumber(uint32_t type, uint64_t number) const {
  return Index(type, number) < events_.size();
}

const Event* Session::First(uint32_t type) const {
  const auto found =
      std::find_if(events_.begin(), events_.end(),
                   [type](const Event& e) { return e.raw.type == type; });
  return found == events_.end() ? nullptr : &*found;
}

std::vector<std::string> Session::Messages() const {
  std::vector<std::string> messages;
  for (const Event& event : events_) {
    if (event.raw.type == MIG_EVENT_MESSAGE) messages.push_back(event.data);
  }
  return messages;
}

bool Session::Ended() const { return !endings_.empty(); }

std::string Session::Describe() const {
  std::string text = role_ == MIG_ROLE_SOURCE ? "source:" : "destination:";
  const size_t from = events_.size() > 12 ? events_.size() - 12 : 0;
  if (from > 0) text += " ...";
  for (size_t i = from; i < events_.size(); ++i) {
    text += " " + EventName(events_[i].raw.type);
    if (events_[i].raw.number != 0) {
      text += "(" + std::to_string(events_[i].raw.number) + ")";
    }
    if (events_[i].raw.code != 0) {
      text += "=" + StatusName(events_[i].raw.code);
    }
  }
  return text;
}

}  // namespace mig::conformance
