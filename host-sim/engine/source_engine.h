// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_SOURCE_ENGINE_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_SOURCE_ENGINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/control_format.h"
#include "engine/control_rtt.h"
#include "engine/convergence.h"
#include "engine/guest_port.h"
#include "engine/phase.h"
#include "engine/round_sender.h"
#include "engine/session_driver.h"
#include "engine/zero_scan.h"
#include "guest/dirty_tracker.h"
#include "guest/guest_memory.h"

namespace mig::sim {

enum class ZeroDetect {
  kOff,    // every page is sent as it is
  kFirst,  // zero pages of round 1 go as zero ranges
  kEvery   // ... of every round
};

struct SourceOptions {
  std::string uri;
  uint64_t peer_wait_ns = 0;  // for the connection; 0: as long as the plugin
  ConvergeLimits limits;
  uint64_t max_bandwidth = 0;       // bytes a second while the guest runs
  uint64_t device_state_bytes = 0;  // of filler beside the guest's own
  ZeroDetect zero_detect = ZeroDetect::kFirst;
  bool strict = false;
  bool verify = true;
  std::string workload;  // told to the destination
  uint64_t seed = 0;
};

// Moments on CLOCK_MONOTONIC in nanoseconds, 0: not reached.
struct SwitchoverTimes {
  uint64_t stop_asked = 0;
  uint64_t stopped = 0;
  uint64_t last_round_done = 0;
  uint64_t offered = 0;
  uint64_t committed = 0;
};

enum class SourceEnd {
  kMigrated,  // COMMITTED: the guest is the destination's
  kFailed,    // it is here, and runs if it could be resumed
  kGaveUp,    // the same, by decision: cancelled, or it does not converge
  kInDoubt    // nobody knows: it is stopped here and must stay so
};

struct SourceReport {
  SourceEnd end = SourceEnd::kFailed;
  absl::Status status;  // why, when it did not end well
  Phase phase = Phase::kConnect;
  uint64_t started_ns = 0, finished_ns = 0;
  std::vector<RoundReport> rounds;
  SwitchoverTimes times;
  uint64_t state_bytes = 0;
  uint64_t expected_downtime_ns = 0;  // when the guest was stopped
  bool forced_stop = false;
  uint32_t throttle_percent = 0;
  std::optional<ResultMessage> result;  // what the destination found
  absl::Status digest_status;           // why it could not find out
  std::string peer_reason;              // why it ended, in its words
  CapsReport caps;
  RttReport rtt;  // of control messages
  // The transport's, before the session was closed.
  std::vector<std::pair<std::string, uint64_t>> counters;
};

// What is going on, for a progress line.
struct SourceProgress {
  Phase phase = Phase::kConnect;
  uint64_t round = 0;
  uint64_t pending_bytes = 0;  // of the round when it began
  uint64_t sent_bytes = 0;     // of the round so far
  uint64_t round_start_ns = 0;
  double dirty_bytes_per_second = 0;  // in the round before
  uint32_t throttle_percent = 0;
};

// The source's side of one migration. Everything but the guest happens on the
// thread that calls Run.
class SourceEngine {
 public:
  struct Hooks {
    // A phase is reached (round phases: when the round's first pages are
    // written).
    std::function<void(Phase)> on_phase;
    std::function<void(const SourceProgress&)> on_progress;
    std::function<void(const std::string&)> note;  // a line for a person
  };

  // What is passed outlives this object. The guest runs already, its memory
  // has 1 to kMaxBlocks blocks; `tracker` is not started.
  SourceEngine(SourceOptions options, Session* session,
               const std::atomic<bool>* interrupted, const GuestMemory* memory,
               DirtyTracker* tracker, GuestPort* guest, Hooks hooks);

  // Migrates. Afterwards the guest is released (kMigrated), runs again
  // (kFailed, kGaveUp), or is stopped for good (kInDoubt), and the session is
  // closed. Never throws the guest away on its own.
  SourceReport Run();

 private:
  absl::Status Migrate();
  absl::Status Connect();
  absl::Status AgreeOnMemory();
  absl::Status RunRounds();
  absl::StatusOr<RoundReport> SendRound(bool final);
  absl::Status FetchDirty();
  absl::Status AfterBatch();
  absl::Status Switchover();
  absl::StatusOr<Bytes> SaveState();
  absl::Status SendState();
  absl::Status SendPieces(MessageType type, ByteSpan whole,
                          const std::function<void()>& after_first);
  absl::Status OfferGuest();
  absl::Status ServeVerification();
  absl::Status HandleMessage(uint32_t type, ByteSpan data);
  absl::Status AnswerPageQueries();
  void Settle(const absl::Status& status);
  void Enter(Phase phase);
  void Tick();
  void Note(const std::string& text);

  const SourceOptions options_;
  SessionDriver driver_;
  const std::atomic<bool>* const interrupted_;
  const GuestMemory& memory_;
  DirtyTracker& tracker_;
  GuestPort& guest_;
  const Hooks hooks_;
  RoundSender sender_;
  ZeroScanner scanner_;
  ConvergencePolicy policy_;
  ControlRtt rtt_;
  PageSet pending_;
  Bytes filler_;  // made before the guest is stopped
  SourceReport report_;
  SourceProgress progress_;
  bool phase_told_ = false;  // of the round phases
  bool tracking_ = false;
  bool offered_ = false;
  std::vector<PageQueryMessage> queries_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_SOURCE_ENGINE_H_
