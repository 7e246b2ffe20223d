// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_ROUND_SENDER_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_ROUND_SENDER_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/range_source.h"
#include "engine/rate_limiter.h"
#include "engine/session_driver.h"
#include "guest/guest_memory.h"

namespace mig::sim {

// What one round was like.
struct RoundReport {
  uint64_t number = 0;
  uint64_t pages = 0;       // sent, zero ones among them
  uint64_t zero_pages = 0;  // of them, as zero ranges
  uint64_t bytes = 0;       // of the others
  uint64_t duration_ns = 0;
  uint64_t dirty_pages = 0;  // dirtied meanwhile
  uint64_t dirty_bytes = 0;
  uint32_t throttle_percent = 0;  // that held while it was sent
  bool final = false;
};

// Sends rounds over one session. One thread.
class RoundSender {
 public:
  // Called after each batch was taken; a failure ends the round with it.
  using AfterBatch = std::function<absl::Status()>;

  // The pointers outlive this object. `max_bandwidth` in bytes a second, 0:
  // none; final rounds are never slowed down.
  RoundSender(SessionDriver* driver, const GuestMemory* memory,
              uint64_t max_bandwidth, bool strict)
      : driver_(driver),
        memory_(memory),
        limiter_(max_bandwidth),
        strict_(strict) {}

  // Opens round `number`, writes the pages, closes it and waits for
  // ROUND_DONE. The pages' dirty bits were cleared before. With `scanner` zero
  // pages go as zero ranges. After an error nothing more is written.
  absl::StatusOr<RoundReport> Send(uint64_t number, const PageSet& pages,
                                   bool final, ZeroScanner* scanner,
                                   const AfterBatch& after_batch);

  // Bytes of pages that were taken so far in this round.
  uint64_t bytes_taken() const { return bytes_taken_; }

 private:
  absl::Status WriteAll(std::vector<mig_range>* batch);
  absl::Status WaitForBudget();
  absl::Status SendBatches(RangeSource* source, bool final,
                           const AfterBatch& after_batch);

  SessionDriver* const driver_;
  const GuestMemory* const memory_;
  RateLimiter limiter_;
  const bool strict_;
  uint64_t bytes_taken_ = 0;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_ROUND_SENDER_H_
