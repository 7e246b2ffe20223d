// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/destination_engine.h"

#include <chrono>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"
#include "report/console.h"

namespace mig::sim {
namespace {

constexpr uint64_t kExchangeLimitNs = 600'000'000'000;
constexpr uint64_t kGuestMessageLimitNs = 30'000'000'000;
constexpr uint64_t kLoadLimitNs = 60'000'000'000;
constexpr uint64_t kCloseLimitNs = 10'000'000'000;

}  // namespace

DestinationEngine::DestinationEngine(DestinationOptions options,
                                     Session* session,
                                     const std::atomic<bool>* interrupted,
                                     Hooks hooks)
    : options_(std::move(options)),
      driver_(session, interrupted),
      hooks_(std::move(hooks)) {
  driver_.set_message_handler([this](uint32_t type, ByteSpan data) {
    return HandleMessage(type, data);
  });
  driver_.set_tick([this] {
    AnswerPings();
    if (hooks_.on_progress) hooks_.on_progress(driver_.state(), report_.phase);
  });
}

DestinationReport DestinationEngine::Run() {
  report_.status = Receive();
  if (report_.end == DestinationEnd::kTaken) {
    Verify();
    report_.status = StartGuest();
    // Whether or not the source still listens: the guest is here.
    (void)driver_.Send(kResultMessage, Encode(report_.result));
    Enter(Phase::kDone);
  } else if (driver_.state().connected && driver_.state().error.ok()) {
    // The fault is on this side: let the source say which.
    const absl::string_view why = report_.status.message();
    (void)driver_.Send(kReasonMessage, Encode(ReasonMessage{std::string(why)}));
  }
  // Closing takes registrations away.
  report_.counters = driver_.session().Stats();
  driver_.CloseAndWait(kCloseLimitNs);
  return std::move(report_);
}

void DestinationEngine::Enter(Phase phase) {
  report_.phase = phase;
  if (hooks_.on_phase) hooks_.on_phase(phase);
}

absl::Status DestinationEngine::Receive() {
  absl::Status status = Listen();
  if (status.ok()) status = AgreeOnMemory();
  if (status.ok()) status = AwaitOffer();
  if (status.ok()) status = Take();
  return status;
}

absl::Status DestinationEngine::Listen() {
  absl::Status status = driver_.session().Listen(options_.uri);
  if (!status.ok()) return status;
  absl::StatusOr<std::string> address = driver_.session().LocalAddress();
  if (!address.ok()) return address.status();
  report_.address = *address;
  if (hooks_.on_address) hooks_.on_address(*address);
  Enter(Phase::kConnect);
  return driver_.PumpUntil(
      absl::StrCat("waiting for a source at '", *address, "'"),
      options_.peer_wait_ns, [this] { return driver_.state().connected; });
}

absl::Status DestinationEngine::AgreeOnMemory() {
  Enter(Phase::kExchange);
  absl::StatusOr<CapsReport> caps = driver_.session().Caps();
  if (caps.ok()) report_.caps = *std::move(caps);
  absl::Status status = driver_.PumpUntil(
      "waiting for the source to describe its guest", kGuestMessageLimitNs,
      [this] { return report_.guest.has_value(); });
  if (!status.ok()) return status;
  // Faulting memory in takes long; the source must not take this side for dead.
  status = driver_.RunWhilePumping([this] {
    absl::StatusOr<DestinationGuest> made = hooks_.make_guest(*report_.guest);
    if (made.ok()) made_ = *made;
    return made.status();
  });
  if (!status.ok()) return status;
  for (const GuestBlock& block : made_.memory->blocks()) {
    mig_block added = {};
    added.size = sizeof added;
    added.id = block.id;
    added.name = block.name.c_str();
    added.address = block.base;
    added.length = block.length;
    added.page_size = block.page_size;
    added.fd = block.fd;
    added.flags = MIG_BLOCK_ZEROED | (block.fd >= 0 ? MIG_BLOCK_FD : 0);
    status = driver_.session().AddBlock(added);
    if (!status.ok()) return driver_.Explain(status);
  }
  status = driver_.session().Exchange();
  if (!status.ok()) return driver_.Explain(status);
  status = driver_.PumpUntil("agreeing on memory", kExchangeLimitNs,
                             [this] { return driver_.state().blocks_ready; });
  if (status.ok()) Enter(Phase::kRound1);
  return status;
}

absl::Status DestinationEngine::AwaitOffer() {
  const SessionState& state = driver_.state();
  while (!state.handover) {
    absl::Status status =
        driver_.PumpUntil("waiting for the source", 0, [this, &state] {
          return state.handover || state.round_done != report_.rounds ||
                 (state_.complete() && !loaded_);
        });
    if (!status.ok()) return status;
    if (report_.rounds == 0 && state.round_done > 0) Enter(Phase::kRounds);
    report_.rounds = state.round_done;
    if (state_.complete() && !loaded_) {
      status = LoadState();
      if (!status.ok()) return status;
    }
  }
  if (!driver_.refused_message().ok()) return driver_.refused_message();
  if (!loaded_) {
    return absl::InvalidArgumentError(
        "the guest is offered without its whole device state: it is refused; "
        "run the same mig-host-sim on both sides");
  }
  return absl::OkStatus();
}

absl::Status DestinationEngine::LoadState() {
  loaded_ = true;
  report_.state_bytes = state_.whole().size();
  const uint64_t start = MonotonicNs();
  // Loading is one long call: the source must not take this side for dead. If
  // the link is broken already, the next progress says so.
  if (options_.say_busy) driver_.SayBusy(kLoadLimitNs);
  absl::StatusOr<StateSections> sections = ParseState(state_.whole());
  if (!sections.ok()) return sections.status();
  absl::Status status = made_.guest->LoadState(*sections);
  if (options_.load_delay_ns != 0) {
    std::this_thread::sleep_for(
        std::chrono::nanoseconds(options_.load_delay_ns));
  }
  if (options_.say_busy) driver_.SayBusy(0);
  report_.load_ns = MonotonicNs() - start;
  return WithContext(status, "loading the device state");
}

absl::Status DestinationEngine::Take() {
  Enter(Phase::kHandover);
  // Also when the link broke since the offer: the source is in doubt then, and
  // this is the only side that may run the guest.
  absl::Status status = driver_.session().Handover();
  if (!status.ok()) return driver_.Explain(status);
  report_.end = DestinationEnd::kTaken;
  report_.result.handover_ns = driver_.state().handover_ns;
  // The guest could run from here; what follows is verification.
  report_.result.resumed_ns = MonotonicNs();
  report_.result.machine = MachineId();
  Enter(Phase::kTaken);
  return absl::OkStatus();
}

absl::Status DestinationEngine::StartGuest() {
  const uint64_t start = MonotonicNs();
  absl::Status status = made_.guest->Run();
  // Starting is part of resuming although it comes after the verification.
  report_.result.resumed_ns += MonotonicNs() - start;
  if (!status.ok()) return WithContext(status, "starting the guest");
  if (hooks_.on_running) hooks_.on_running();
  return absl::OkStatus();
}

// From the tick, since a handler of messages must not send. The source has one
// under way at a time. Without room the next tick tries again; a session that
// fails says so by itself.
void DestinationEngine::AnswerPings() {
  if (!ping_.has_value()) return;
  const Bytes answer = Encode(*ping_);
  absl::StatusOr<bool> sent = driver_.session().Send(kPongMessage, answer);
  if (!sent.ok() || *sent) ping_.reset();
}

absl::Status DestinationEngine::HandleMessage(uint32_t type, ByteSpan data) {
  switch (type) {
    case kGuestMessage: {
      absl::StatusOr<GuestMessage> guest = ParseGuest(data);
      if (!guest.ok()) return guest.status();
      if (report_.guest.has_value()) break;
      report_.guest = *std::move(guest);
      return absl::OkStatus();
    }
    case kStateMessage: {
      const bool first = report_.phase != Phase::kState;
      absl::Status status = state_.Add(data);
      if (status.ok() && first) Enter(Phase::kState);
      return status;
    }
    case kProofMessage:
      return proof_.Add(data);
    case kPagesMessage: {
      absl::StatusOr<PagesMessage> pages = ParsePages(data);
      if (!pages.ok()) return pages.status();
      pages_ = *std::move(pages);
      return absl::OkStatus();
    }
    case kPingMessage: {
      absl::StatusOr<PingMessage> ping = ParsePing(data);
      if (!ping.ok()) return ping.status();
      ping_ = *ping;
      return absl::OkStatus();
    }
    default:
      break;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the source sent an unexpected message of type ", type,
                   ": run the same mig-host-sim on both sides"));
}

}  // namespace mig::sim
