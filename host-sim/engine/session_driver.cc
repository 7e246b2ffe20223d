// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/session_driver.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"
#include "report/console.h"

namespace mig::sim {
namespace {

// Short enough to notice an interrupt, a finished worker and a tick in time.
constexpr uint64_t kSliceNs = 50'000'000;
constexpr uint64_t kBusyWaitNs = 10'000'000;

}  // namespace

absl::Status SessionDriver::Pump(uint64_t max_wait_ns) {
  if (interrupted_ != nullptr && *interrupted_ && !cancelled_) {
    cancelled_ = true;
    session_->Cancel();
  }
  events_.clear();
  const auto wait = static_cast<int64_t>(std::min(max_wait_ns, kSliceNs));
  absl::Status status = session_->Progress(wait, &events_);
  for (const mig_event& event : events_) Handle(event);
  if (tick_) tick_();
  if (failure_.ok()) failure_ = status;
  return failure_;
}

void SessionDriver::Handle(const mig_event& event) {
  switch (event.type) {
    case MIG_EVENT_CONNECTED:
      state_.connected = true;
      break;
    case MIG_EVENT_BLOCKS_READY:
      state_.blocks_ready = true;
      break;
    case MIG_EVENT_ROUND_DONE:
      state_.round_done = event.number;
      break;
    case MIG_EVENT_MESSAGE:
      HandleMessage(event);
      break;
    case MIG_EVENT_SEND_READY:
      state_.send_ready = true;
      break;
    case MIG_EVENT_WRITE_READY:
      state_.write_ready = true;
      break;
    case MIG_EVENT_HANDOVER:
      state_.handover = true;
      state_.handover_ns = event.time_ns;
      break;
    case MIG_EVENT_COMMITTED:
      state_.committed = true;
      state_.committed_ns = event.time_ns;
      break;
    case MIG_EVENT_HANDOVER_REFUSED:
      state_.refused = true;
      break;
    case MIG_EVENT_IN_DOUBT:
      state_.in_doubt = true;
      [[fallthrough]];
    case MIG_EVENT_ERROR:
      state_.error = session_->Error();
      if (state_.error.ok()) {
        state_.error = MigToStatus(event.code, NewError(), "session failed");
      }
      if (failure_.ok()) failure_ = state_.error;
      break;
    case MIG_EVENT_PEER_CLOSED:
      state_.peer_closed = true;
      break;
    case MIG_EVENT_CLOSED:
      state_.closed = true;
      break;
    case MIG_EVENT_PREPARING:
      state_.prepared = event.number;
      state_.to_prepare = event.length;
      break;
    default:  // unknown events are ignored (rule 1)
      break;
  }
}

void SessionDriver::HandleMessage(const mig_event& event) {
  const absl::Span<const std::byte> data(
      static_cast<const std::byte*>(event.data), event.length);
  if (handler_ && failure_.ok()) {
    failure_ = refused_message_ = handler_(event.message_type, data);
  }
  session_->Release(event.message);
}

absl::Status SessionDriver::PumpUntil(absl::string_view what, uint64_t limit_ns,
                                      const std::function<bool()>& done) {
  const uint64_t start = MonotonicNs();
  while (!done()) {
    absl::Status status = Pump(kSliceNs);
    if (done()) break;
    // The session's own error names peer and phase.
    if (!status.ok()) return status;
    if (state_.closed || state_.peer_closed) {
      return absl::UnavailableError(
          absl::StrCat(what, ": the peer has closed the session"));
    }
    if (limit_ns != 0 && MonotonicNs() - start > limit_ns) {
      return absl::DeadlineExceededError(absl::StrCat(
          what, ": nothing came for ", limit_ns / 1'000'000, " ms"));
    }
  }
  return absl::OkStatus();
}

absl::Status SessionDriver::Explain(const absl::Status& status) {
  if (status.ok()) return status;
  (void)Pump(0);
  return failure_.ok() ? status : failure_;
}

absl::Status SessionDriver::Send(uint32_t type,
                                 absl::Span<const std::byte> data) {
  for (;;) {
    state_.send_ready = false;
    absl::StatusOr<bool> sent = session_->Send(type, data);
    if (!sent.ok()) return Explain(sent.status());
    if (*sent) return absl::OkStatus();
    absl::Status status =
        PumpUntil("waiting to send", 0, [this] { return state_.send_ready; });
    if (!status.ok()) return status;
  }
}

void SessionDriver::SayBusy(uint64_t max_ns) {
  for (;;) {
    const absl::StatusOr<bool> said = session_->HostBusy(max_ns);
    if (!said.ok() || *said || !Pump(kBusyWaitNs).ok()) return;
  }
}

absl::Status SessionDriver::RunWhilePumping(
    const std::function<absl::Status()>& work) {
  std::atomic<bool> finished{false};
  absl::Status result;
  std::thread worker([&] {
    result = work();
    finished = true;
  });
  while (!finished) {
    if (state_.closed || !Pump(2'000'000).ok()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  worker.join();
  return result;
}

void SessionDriver::CloseAndWait(uint64_t limit_ns) {
  session_->Close();
  const uint64_t start = MonotonicNs();
  while (!state_.closed && MonotonicNs() - start < limit_ns) {
    (void)Pump(kSliceNs);
  }
}

}  // namespace mig::sim
