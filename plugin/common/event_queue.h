// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_EVENT_QUEUE_H_
#define PLUGIN_COMMON_EVENT_QUEUE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "common/ring_queue.h"
#include "mig_transport.h"

namespace mig {

// Events that the host has not taken yet, oldest first. Not thread-safe.
class EventQueue {
 public:
  // Nothing more is read from a peer while so many wait, or its frames would
  // fill this side's memory.
  static constexpr size_t kMost = 4096;

  bool empty() const { return events_.empty(); }
  bool full() const { return events_.size() >= kMost; }
  void Push(const struct mig_event& event) { events_.push_back(event); }
  // Takes events of a type back.
  void Withdraw(uint32_t type) {
    for (size_t i = 0; i < events_.size(); ++i) {
      if (events_[i].type == type) events_[i].type = 0;
    }
  }
  // Hands out up to `max`, as far as the host knows the struct; how many.
  // *offer_shown is set when HANDOVER is among them.
  size_t Take(struct mig_event* events, size_t max, size_t element_size,
              bool* offer_shown) {
    auto* to = reinterpret_cast<unsigned char*>(events);
    size_t count = 0;
    while (count < max && !events_.empty()) {
      const struct mig_event event = events_.front();
      events_.pop_front();
      if (event.type == 0) continue;
      if (event.type == MIG_EVENT_HANDOVER) *offer_shown = true;
      std::memset(to + count * element_size, 0, element_size);
      std::memcpy(to + count * element_size, &event,
                  std::min(element_size, sizeof(event)));
      ++count;
    }
    return count;
  }

 private:
  RingQueue<struct mig_event> events_;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_EVENT_QUEUE_H_
