// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"
#include "model/plugin_draw.h"

namespace mig::model {
namespace {

uint64_t SeedOf(const World& world, Actor side) {
  return sim::Mix(world.scenario().seed * 16 + static_cast<uint64_t>(side));
}

}  // namespace

Host::Host(World* world, VirtualClock* clock, EventLog* log, Actor side)
    : side_(side),
      draw_(SeedOf(*world, side)),
      world_(world),
      clock_(clock),
      services_(clock, SeedOf(*world, side) + 1, log, side) {
  for (const Fault& fault : world->scenario().faults) {
    if (fault.side == side && fault.host != HostFault::kNone) {
      faults_.push_back(&fault);
    }
  }
}

Host::~Host() { DestroyAll(); }

absl::Status Host::Start(std::shared_ptr<const sim::Plugin> plugin,
                         absl::string_view network) {
  auto context =
      sim::PluginContext::Create(std::move(plugin), services_.Table());
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  for (const auto& [name, value] :
       ContextOptions(world_->scenario(), side_, network)) {
    absl::Status set = context_->SetOption(name, value);
    if (!set.ok()) return set;
  }
  auto session = sim::Session::Create(
      *context_,
      side_ == Actor::kSource ? MIG_ROLE_SOURCE : MIG_ROLE_DESTINATION, {});
  if (!session.ok()) {
    // A device that can't be opened: there will be no migration.
    world_->Log(side_, "no session", 0, 0, session.status().message());
    why_ = std::string(session.status().message());
    End(Outcome::kError);
    over_ = true;
    return absl::OkStatus();
  }
  session_ = *std::move(session);
  return absl::OkStatus();
}

bool Host::Ready() {
  next_ns_ = UINT64_MAX;
  if (over_) return false;
  const uint64_t now = clock_->now_ns;
  if (now < paused_until_ns_) {
    next_ns_ = paused_until_ns_;
    return false;
  }
  if (FaultDue() || HasQueued() || (!closing_ && CanAct())) return true;
  for (const Held& held : held_) {
    if (held.until_ns <= now) return true;
    next_ns_ = std::min(next_ns_, held.until_ns);
  }
  const absl::StatusOr<uint64_t> deadline = session_->Arm();
  if (!deadline.ok()) {
    world_->Violate(side_, "arm", deadline.status().message());
    return false;
  }
  if (*deadline <= now) return true;
  next_ns_ = std::min(next_ns_, *deadline);
  return session_->FdReady();
}

bool Host::FaultDue() {
  return std::any_of(faults_.begin(), faults_.end(), [this](const Fault* each) {
    return each->at == steps_ + 1;
  });
}

bool Host::HasFault(HostFault kind) const {
  return std::any_of(faults_.begin(), faults_.end(),
                     [kind](const Fault* each) { return each->host == kind; });
}

void Host::Step() {
  ++steps_;
  for (const Fault* fault : faults_) {
    if (fault->at != steps_) continue;
    world_->Log(side_, "fault", 0, 0, FaultText(*fault));
    if (fault->host == HostFault::kPause) return Pause(fault->length_ns);
    if (fault->host == HostFault::kKill) return Kill();
    if (fault->host == HostFault::kCancel) session_->Cancel();
    if (fault->host == HostFault::kClose) Close();
    if (fault->host == HostFault::kMisuse) ApplyMisuse();
  }
  events_.clear();
  const absl::Status status = session_->Progress(0, &events_);
  if (!status.ok()) {
    world_->Violate(side_, "progress", status.message());
  }
  // Taking one may lead to calls that need the list for themselves.
  const std::vector<mig_event> taken = std::move(events_);
  events_ = {};
  for (const mig_event& event : taken) Take(event);
  if (over_) return;
  ReleaseDue();
  if (closed_) {
    if (!held_.empty()) return;
    OnClosed();
    DestroyAll();
    over_ = true;
    return;
  }
  if (closing_) return;
  if (!SendQueued()) return;
  if (CanAct()) Act();
}

void Host::Take(const mig_event& event) {
  world_->Log(side_, sim::MigEventName(event.type), event.number,
              static_cast<uint64_t>(-event.code));
  CheckOrder(event);
  switch (event.type) {
    case MIG_EVENT_CONNECTED:
      connected_ = true;
      break;
    case MIG_EVENT_BLOCKS_READY:
      blocks_ready_ = true;
      break;
    case MIG_EVENT_ROUND_DONE:
      round_done_ = event.number;
      break;
    case MIG_EVENT_MESSAGE:
      return OnMessage(event);
    case MIG_EVENT_SEND_READY:
      send_ready_ = true;
      return;
    case MIG_EVENT_ERROR:
    case MIG_EVENT_IN_DOUBT:
    case MIG_EVENT_HANDOVER_REFUSED:
      failed_ = true;
      why_ = std::string(session_->Error().message());
      world_->Log(side_, "why", 0, 0, why_);
      break;
    case MIG_EVENT_CLOSED:
      closed_ = true;
      if (ended_ns_ == 0) ended_ns_ = clock_->now_ns;
      return;
    default:
      break;
  }
  OnEvent(event);
}

// What may follow what (rules 12 and 15).
void Host::CheckOrder(const mig_event& event) {
  if (closed_) {
    world_->Violate(side_, "rule 15", "an event after CLOSED");
  }
  const bool only_end =
      event.type == MIG_EVENT_CLOSED || event.type == MIG_EVENT_FDS_CHANGED;
  // The destination's offer may still be shown after its ERROR.
  const bool offer =
      side_ == Actor::kDestination && event.type == MIG_EVENT_HANDOVER;
  if (failed_ && !only_end && !offer) {
    world_->Violate(side_, "rule 15",
                    absl::StrCat(sim::MigEventName(event.type),
                                 " after the session's end"));
  }
  if (event.time_ns > clock_->now_ns) {
    world_->Violate(side_, "rule 4", "an event from the future");
  }
}

void Host::Pause(uint64_t ns) {
  world_->Log(side_, "pauses", ns);
  paused_until_ns_ = clock_->now_ns + ns;
}

bool Host::paused() const {
  constexpr uint64_t kMomentNs = 5'000'000'000;
  return paused_until_ns_ != 0 && clock_->now_ns < paused_until_ns_ + kMomentNs;
}

void Host::End(Outcome outcome) {
  if (outcome_ == Outcome::kNone) outcome_ = outcome;
  if (ended_ns_ == 0) ended_ns_ = clock_->now_ns;
  OnOutcome();
}

void Host::Close() {
  if (closing_) return;
  world_->Log(side_, "closes");
  closing_ = true;
  outbox_.clear();
  session_->Close();
}

void Host::GiveUp() {
  world_->Log(side_, "gives up");
  if (connected_ && outcome_ == Outcome::kNone && !closing_) {
    world_->Violate(side_, "rule 15", "the peer is gone, and nobody says so");
  }
  paused_until_ns_ = 0;
  Close();
}

void Host::Kill() {
  killed_ = over_ = true;
  ended_ns_ = clock_->now_ns;
  OnOutcome();
  DestroyAll();
}

// Everything is given back, in whatever state it is.
void Host::DestroyAll() {
  if (session_ != nullptr) {
    for (const Held& held : held_) session_->Release(held.message);
  }
  held_.clear();
  session_.reset();
  context_.reset();
  // A device that did not give back what it was asked to is no leak.
  const bool kept =
      std::any_of(world_->scenario().faults.begin(),
                  world_->scenario().faults.end(), [](const Fault& fault) {
                    return absl::StrContains(fault.device, "DeregMr");
                  });
  if (!services_.last_error().empty() && !kept) {
    world_->Violate(side_, "leak", services_.last_error());
  }
}

void Host::ApplyMisuse() {
  const absl::Status answer = Misuse();
  const int32_t code = sim::MigCodeOf(answer);
  world_->Log(side_, "misuse", static_cast<uint64_t>(-code));
  const int32_t category = -code / 100;
  if (answer.ok() || (category != 1 && category != 2 && category != 4)) {
    world_->Violate(side_, "misuse",
                    absl::StrCat("answered '", answer.ToString(),
                                 "', where argument or state is wrong"));
  }
}

bool Host::Went(const absl::Status& status, const char* call) {
  if (status.ok()) return true;
  const int32_t code = sim::MigCodeOf(status);
  world_->Log(side_, call, static_cast<uint64_t>(-code), 0, status.message());
  if (-code / 100 == 1 || -code / 100 == 2) {
    world_->Violate(side_, call, status.message());
  }
  // A failed session tells why by an event; any other refusal ends it here.
  if (code != MIG_E_FAILED && !failed_) {
    why_ = std::string(status.message());
    End(Outcome::kError);
    Close();
  }
  return false;
}

absl::Status Host::AddBlocks() {
  const GuestMemory& memory = world_->memory(side_);
  for (size_t i = 0; i < memory.blocks(); ++i) {
    absl::Status added = session_->AddBlock(memory.Describe(i));
    if (!added.ok()) return added;
  }
  return absl::OkStatus();
}

// -- Messages -----------------------------------------------------------------

void Host::Queue(uint64_t round) {
  const uint64_t bytes =
      draw_.Scaled(16, std::max<uint64_t>(habits().message_bytes, 32));
  std::vector<uint64_t> words(std::max<uint64_t>(bytes / 8, 2));
  const uint64_t number = queued_++;
  words[0] = number;
  words[1] = round;
  for (size_t i = 2; i < words.size(); ++i) words[i] = sim::Mix(number + i);
  outbox_.push_back(std::move(words));
}

bool Host::SendQueued() {
  while (!outbox_.empty() && send_ready_) {
    const std::vector<uint64_t>& words = outbox_.front();
    const auto sent = session_->Send(
        static_cast<uint32_t>(words[0]),
        absl::MakeConstSpan(reinterpret_cast<const std::byte*>(words.data()),
                            words.size() * sizeof(uint64_t)));
    if (!sent.ok()) return Went(sent.status(), "send");
    send_ready_ = *sent;
    if (!*sent) break;
    world_->Log(side_, "sends", words[0], words.size() * sizeof(uint64_t));
    ++next_sent_;
    outbox_.pop_front();
  }
  return true;
}

void Host::OnMessage(const mig_event& event) {
  CheckMessage(event);
  ++next_received_;
  const uint64_t hold =
      habits().hold_ns == 0 ? 0 : draw_.Below(habits().hold_ns);
  held_.push_back({event.message, clock_->now_ns + hold});
}

void Host::CheckMessage(const mig_event& event) {
  const auto* const words = static_cast<const uint64_t*>(event.data);
  const size_t count = event.length / sizeof(uint64_t);
  if (event.message_type != next_received_ || count < 2 ||
      event.length % sizeof(uint64_t) != 0 || words[0] != next_received_) {
    return world_->Violate(
        side_, "rule 11",
        absl::StrCat("message ", event.message_type, " of ", event.length,
                     " bytes comes where ", next_received_, " is due"));
  }
  for (size_t i = 2; i < count; ++i) {
    if (words[i] == sim::Mix(words[0] + i)) continue;
    return world_->Violate(
        side_, "rule 11",
        absl::StrCat("message ", words[0], " is not what was sent"));
  }
  if (side_ == Actor::kDestination && words[1] > round_done_) {
    world_->Violate(
        side_, "rule 8 (C35)",
        absl::StrCat("a message sent after the end of round ", words[1],
                     " comes when only ", round_done_, " is done"));
  }
}

void Host::ReleaseDue() {
  for (size_t i = 0; i < held_.size();) {
    if (held_[i].until_ns > clock_->now_ns && !closed_) {
      ++i;
      continue;
    }
    session_->Release(held_[i].message);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace mig::model
