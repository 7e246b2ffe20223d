// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/destination_host.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"

namespace mig::model {
namespace {

// Until host_busy is called again.
constexpr uint64_t kAgainNs = 1000;

}  // namespace

bool DestinationHost::CanAct() const {
  switch (stage_) {
    case Stage::kStart:
    case Stage::kOffered:
    case Stage::kSayingBusy:
    case Stage::kLoading:
      return true;
    case Stage::kListening:
      return connected_;
    case Stage::kExchanging:
      return blocks_ready_;
    case Stage::kReceiving:
    case Stage::kRuns:
    case Stage::kOver:
      return false;
  }
  return false;
}

bool DestinationHost::Act() {
  switch (stage_) {
    case Stage::kStart:
      return Listen();
    case Stage::kListening:
      if (!habits().adds_before && !Went(AddBlocks(), "add_block")) {
        return false;
      }
      stage_ = Stage::kExchanging;
      return Went(session_->Exchange(), "exchange");
    case Stage::kExchanging:
      stage_ = Stage::kReceiving;
      return true;
    case Stage::kOffered:
      return Load();
    case Stage::kSayingBusy:
      return SayBusy();
    case Stage::kLoading:
      return TakeGuest();
    case Stage::kReceiving:
    case Stage::kRuns:
    case Stage::kOver:
      return false;
  }
  return false;
}

bool DestinationHost::Listen() {
  if (habits().adds_before && !Went(AddBlocks(), "add_block")) return false;
  const std::string uri =
      absl::StrCat(world().scenario().plugin, "://127.0.0.1:0");
  if (!Went(session_->Listen(uri), "listen")) return false;
  const auto address = session_->LocalAddress();
  if (!Went(address.status(), "local_address")) return false;
  world().uri = *address;
  stage_ = Stage::kListening;
  return true;
}

bool DestinationHost::Load() {
  if (HasFault(HostFault::kRefuse)) {
    Close();
    return false;
  }
  stage_ = Stage::kLoading;
  if (habits().load_ns == 0) return true;
  if (habits().says_busy) return SayBusy();
  Pause(habits().load_ns);
  return true;
}

// Once a step, until the word has left. Also after an error the guest may be
// taken.
bool DestinationHost::SayBusy() {
  stage_ = Stage::kSayingBusy;
  if (outcome() == Outcome::kNone) {
    const auto busy = session_->HostBusy(habits().load_ns * 2);
    if (!busy.ok() && sim::MigCodeOf(busy.status()) != MIG_E_FAILED) {
      return Went(busy.status(), "host_busy");
    }
    if (busy.ok() && !*busy) {
      Pause(kAgainNs);  // or time would stand still
      return true;
    }
  }
  stage_ = Stage::kLoading;
  Pause(habits().load_ns);
  return true;
}

bool DestinationHost::TakeGuest() {
  const absl::Status status = session_->Handover();
  if (!status.ok()) {
    // The offer went away while the state was loaded.
    world().Log(side_, "handover refused", 0, 0, status.message());
    stage_ = Stage::kOver;
    if (outcome() != Outcome::kNone) Close();
    return false;
  }
  taken_ = true;
  stage_ = Stage::kRuns;
  world().GuestTaken();
  world().RunGuest(Actor::kDestination);
  if (outcome() != Outcome::kNone) Close();
  if (!closing() && draw_.Percent(30)) {
    Close();
  }
  return true;
}

void DestinationHost::OnOffer() {
  stage_ = Stage::kOffered;
  if (!world().all_sent || messages_received() != world().state_messages_sent) {
    world().Violate(
        side_, "rule 12",
        absl::StrCat("the guest is offered when ", messages_received(), " of ",
                     world().state_messages_sent, " messages have come"));
  }
  const absl::Status whole = world().oracle().CheckWhole();
  if (!whole.ok()) {
    world().Violate(side_, "rule 8 at the offer", whole.message());
  }
}

void DestinationHost::OnEvent(const mig_event& event) {
  switch (event.type) {
    case MIG_EVENT_ROUND_DONE: {
      const absl::Status done = world().oracle().RoundDone(event.number);
      if (!done.ok()) {
        world().Violate(side_, "rule 8", done.message());
      }
      if (draw_.Percent(habits().chat_percent * 5)) Queue(0);
      break;
    }
    case MIG_EVENT_HANDOVER:
      OnOffer();
      break;
    case MIG_EVENT_PEER_CLOSED:
      if (!taken_) {
        world().Violate(side_, "rule 12", "PEER_CLOSED without the guest");
      }
      Close();
      break;
    case MIG_EVENT_ERROR:
      if (taken_) {
        world().Violate(side_, "rule 12", "ERROR after the guest was taken");
      }
      End(Outcome::kError);
      break;
    default:
      break;
  }
}

void DestinationHost::OnOutcome() {
  // A guest that was offered before may still be taken; else it is over.
  if (killed()) {
    if (world().runs_at() == Actor::kDestination) world().StopGuest(side_);
    return;
  }
  if (stage_ >= Stage::kOffered && stage_ <= Stage::kLoading) return;
  stage_ = Stage::kOver;
  if (session_ != nullptr) Close();
}

absl::Status DestinationHost::Misuse() {
  const mig_range range = world().memory(Actor::kSource).RangeOf(0);
  switch (draw_.Below(3)) {
    case 0:
      return session_->RoundBegin(1, 0);
    case 1:
      return session_->Write({&range, 1}).status();
    default:
      return session_->Connect("rdma://127.0.0.1:1");
  }
}

}  // namespace mig::model
