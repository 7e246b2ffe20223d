// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_DESTINATION_ENGINE_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_DESTINATION_ENGINE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/control_format.h"
#include "engine/guest_port.h"
#include "engine/phase.h"
#include "engine/session_driver.h"
#include "engine/state_stream.h"
#include "guest/digest.h"
#include "guest/guest_memory.h"

namespace mig::sim {

struct DestinationOptions {
  std::string uri;
  uint64_t peer_wait_ns = 0;  // for a source to appear; 0: for ever
  bool verify = true;         // compare digests if the source sends them
  // For tests: loading takes this much longer, and whether the peer is told.
  uint64_t load_delay_ns = 0;
  bool say_busy = true;
};

// What the destination's host has made for the guest that is announced.
struct DestinationGuest {
  const GuestMemory* memory = nullptr;  // fresh: all zero
  GuestPort* guest = nullptr;           // not running
};

enum class DestinationEnd {
  kTaken,   // the guest is here, whatever became of the link
  kNothing  // it is not
};

struct DestinationReport {
  DestinationEnd end = DestinationEnd::kNothing;
  absl::Status status;  // why, when it was not taken or does not run
  Phase phase = Phase::kConnect;
  std::string address;
  uint64_t rounds = 0;
  uint64_t state_bytes = 0;
  uint64_t load_ns = 0;  // loading the device state
  std::optional<GuestMessage> guest;
  ResultMessage result;  // as it was told to the source
  CapsReport caps;
  // The transport's, before the session was closed.
  std::vector<std::pair<std::string, uint64_t>> counters;
};

// The destination's side of one migration. Everything but the guest happens on
// the thread that calls Run.
class DestinationEngine {
 public:
  struct Hooks {
    std::function<void(Phase)> on_phase;
    std::function<void(const SessionState&, Phase)> on_progress;
    // It listens: where a source is to connect to.
    std::function<void(const std::string& address)> on_address;
    // A source has said what guest it will send: makes memory and guest for
    // it, on a thread of its own while the engine waits. A failure ends the
    // migration and is told to the source.
    std::function<absl::StatusOr<DestinationGuest>(const GuestMessage&)>
        make_guest;
    // The guest was taken and its memory checked: it runs from here on.
    std::function<void()> on_running;
  };

  DestinationEngine(DestinationOptions options, Session* session,
                    const std::atomic<bool>* interrupted, Hooks hooks);

  // Serves one migration. Afterwards the guest runs (kTaken, unless it can't
  // be started) or was not taken, and the session is closed.
  DestinationReport Run();

 private:
  absl::Status Receive();
  absl::Status Listen();
  absl::Status AgreeOnMemory();
  absl::Status AwaitOffer();
  absl::Status LoadState();
  absl::Status Take();
  absl::Status StartGuest();
  void Verify();
  absl::StatusOr<StateSections> AwaitProof();
  absl::Status Compare(const DigestTable& ours);
  absl::Status LocateMismatches(const std::vector<Region>& regions,
                                std::string* text);
  void AnswerPings();
  absl::Status HandleMessage(uint32_t type, ByteSpan data);
  void Enter(Phase phase);

  const DestinationOptions options_;
  SessionDriver driver_;
  const Hooks hooks_;
  DestinationGuest made_;
  PieceAssembler state_{"device state"};
  PieceAssembler proof_{"proof"};
  std::optional<PagesMessage> pages_;
  std::optional<PingMessage> ping_;  // not answered yet
  DestinationReport report_;
  bool loaded_ = false;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_DESTINATION_ENGINE_H_
