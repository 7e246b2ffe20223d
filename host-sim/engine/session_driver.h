// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_SESSION_DRIVER_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_SESSION_DRIVER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/session.h"

namespace mig::sim {

// What the events of a session have said so far.
struct SessionState {
  bool connected = false;
  bool blocks_ready = false;
  uint64_t round_done = 0;  // the last round that is complete
  bool write_ready = true;
  bool send_ready = true;
  bool handover = false;  // destination: the guest is offered
  uint64_t handover_ns = 0;
  bool committed = false;  // source: the destination has it
  uint64_t committed_ns = 0;
  bool refused = false;
  bool in_doubt = false;
  bool peer_closed = false;
  bool closed = false;
  uint64_t prepared = 0, to_prepare = 0;  // bytes, of PREPARING
  absl::Status error;                     // the session's first error

  // Source, after handover(): whether the session has said what came of it...
  bool offer_decided() const {
    return committed || refused || in_doubt || !error.ok();
  }
  // ... and that it was certainly not taken.
  bool certainly_here() const {
    return !committed && !in_doubt && (refused || !error.ok());
  }
};

// Drives one session from one thread: calls progress, keeps SessionState, and
// hands received messages on.
class SessionDriver {
 public:
  // Called for each message, in order; the data is valid during the call. A
  // failure ends the pumping with it.
  using MessageHandler = std::function<absl::Status(
      uint32_t type, absl::Span<const std::byte> data)>;

  // `session` must outlive the driver. `interrupted`, if not null, becomes
  // true when a person wants the end: the session is then cancelled.
  SessionDriver(Session* session, const std::atomic<bool>* interrupted)
      : session_(session), interrupted_(interrupted) {}

  void set_message_handler(MessageHandler handler) {
    handler_ = std::move(handler);
  }
  // Called every time around, to show progress; must be cheap.
  void set_tick(std::function<void()> tick) { tick_ = std::move(tick); }

  const SessionState& state() const { return state_; }
  Session& session() { return *session_; }
  // Why a message of the peer was refused; OK if none was.
  const absl::Status& refused_message() const { return refused_message_; }

  // One progress that waits up to `max_wait_ns`. Fails once the session has
  // failed or a message was refused, and always from then on.
  absl::Status Pump(uint64_t max_wait_ns);

  // Pumps until `done`. `what` names it in errors. DeadlineExceeded after
  // `limit_ns` (0: never).
  absl::Status PumpUntil(absl::string_view what, uint64_t limit_ns,
                         const std::function<bool()>& done);

  // Call before a write, so that its WRITE_READY can be waited for.
  void ExpectWriteReady() { state_.write_ready = false; }

  // Of a call that failed: the session's own error, which says more than that
  // it failed earlier, or else `status`. Takes the events that are there.
  absl::Status Explain(const absl::Status& status);

  // Sends one message, waiting for room as long as it takes.
  absl::Status Send(uint32_t type, absl::Span<const std::byte> data);

  // Tells the peer that this side may be silent for `max_ns`, and waits until
  // that has left; 0 takes it back. A broken link is told by the next Pump.
  void SayBusy(uint64_t max_ns);

  // Runs `work` in a thread of its own while this one keeps the session alive.
  // A failing session does not stop the work. Answers what the work answers.
  absl::Status RunWhilePumping(const std::function<absl::Status()>& work);

  // Closes the session and pumps to CLOSED, for `limit_ns` at most.
  void CloseAndWait(uint64_t limit_ns);

 private:
  void Handle(const mig_event& event);
  void HandleMessage(const mig_event& event);

  Session* session_;
  const std::atomic<bool>* interrupted_;
  MessageHandler handler_;
  std::function<void()> tick_;
  SessionState state_;
  absl::Status failure_;
  absl::Status refused_message_;
  std::vector<mig_event> events_;
  bool cancelled_ = false;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_SESSION_DRIVER_H_
