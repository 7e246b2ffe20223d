// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_EVENT_LOG_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_EVENT_LOG_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace mig::model {

enum class Actor : uint8_t { kModel, kGuest, kSource, kDestination };

const char* ActorName(Actor actor);

// What happened in a run, in order: a hash over all of it, by which two runs
// are compared bit for bit, and the last lines, for a person. Nothing in it may
// depend on addresses or on real time.
class EventLog {
 public:
  // `every` gets each line as it comes; null: none.
  explicit EventLog(std::FILE* every = nullptr) : every_(every) {}

  // `what` lives for ever. `text` is for what numbers can't tell.
  void Add(uint64_t now_ns, Actor actor, const char* what, uint64_t a = 0,
           uint64_t b = 0, absl::string_view text = {});

  uint64_t hash() const { return hash_; }
  uint64_t count() const { return count_; }
  // Oldest first.
  std::vector<std::string> LastLines() const;

 private:
  struct Entry {
    uint64_t now_ns;
    Actor actor;
    const char* what;
    uint64_t a, b;
    std::string text;
  };
  static constexpr size_t kKept = 60;

  static std::string Line(const Entry& entry);
  void Take(uint64_t value);

  std::FILE* const every_;
  uint64_t hash_ = 0;
  uint64_t count_ = 0;
  std::deque<Entry> last_;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_EVENT_LOG_H_
