// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/session_rules.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/error.h"

namespace mig {

std::string SessionRules::Doing() const {
  switch (phase_) {
    case Phase::kNew:
      return "before connecting";
    case Phase::kConnecting:
      return "while connecting";
    case Phase::kConnected:
      return exchanging_ ? "while exchanging blocks"
                         : "before blocks were exchanged";
    case Phase::kReady:
      if (ended_round_ > done_round_) {
        return absl::StrCat("while round ", ended_round_,
                            " was being acknowledged");
      }
      return done_round_ == 0 ? "before the first round"
                              : absl::StrCat("after round ", done_round_);
    case Phase::kRound:
      return absl::StrCat("while sending round ", round_);
    case Phase::kOffered:
      return "in the handover";
    case Phase::kTaken:
      return "after the handover";
  }
  return "";
}

absl::Status SessionRules::CheckUsable() const {
  if (failed()) {
    return MakeError(MIG_E_FAILED, absl::StrCat("the session failed before: ",
                                                failure_.message()));
  }
  if (closing_) {
    return MakeError(MIG_E_STATE, "the session is closed: create a new one");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::WrongState(absl::string_view what) const {
  return MakeError(
      MIG_E_STATE,
      absl::StrCat(what, "; the session is ",
                   source() ? "a source" : "a destination", " ", Doing()));
}

absl::Status SessionRules::PeerBroke(absl::string_view what) const {
  return MakeError(MIG_E_PEER_PROTOCOL,
                   absl::StrCat("the peer sent ", what, " ", Doing(),
                                ": it is faulty or hostile"));
}

absl::Status SessionRules::CheckStart(uint32_t role) const {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (role_ != role) {
    return WrongState("listen is the destination's call, connect the source's");
  }
  if (phase_ != Phase::kNew) {
    return WrongState("a session listens or connects once");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::CheckAddBlock() const {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (phase_ > Phase::kReady || exchanging_ || ended_round_ != done_round_) {
    return WrongState("blocks are added outside rounds and exchanges");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::CheckRemoveBlock() const {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (phase_ > Phase::kRound || exchanging_) {
    return WrongState(
        "blocks are removed before the handover, and outside "
        "exchanges");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::CheckExchange() const {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if ((phase_ != Phase::kConnected && phase_ != Phase::kReady) || exchanging_ ||
      ended_round_ != done_round_) {
    return WrongState(
        "blocks are exchanged once connected, between rounds, one exchange at "
        "a time");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::CheckSend() const {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (phase_ < Phase::kConnected) {
    return WrongState("messages are sent once connected");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::CheckWrite() const {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (phase_ != Phase::kRound) {
    return WrongState("ranges are written between round_begin and round_end");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::CheckHostBusy() const { return CheckSend(); }

void SessionRules::Exchanged() {
  exchanging_ = false;
  phase_ = Phase::kReady;
}

absl::Status SessionRules::RoundBegin(uint64_t number, uint32_t flags) {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (!source() || phase_ != Phase::kReady || exchanging_) {
    return WrongState(
        "a round is begun by the source, when blocks are agreed and the last "
        "round is ended");
  }
  if (number != round_ + 1) {
    return MakeError(MIG_E_ARGUMENT, absl::StrCat("round ", number,
                                                  " can't be begun: the next "
                                                  "one is ",
                                                  round_ + 1));
  }
  if ((flags & ~(MIG_ROUND_STRICT | MIG_ROUND_FINAL)) != 0) {
    return MakeError(
        MIG_E_ARGUMENT,
        absl::StrFormat("round flags %#x are unknown: this plugin knows %#x",
                        flags, MIG_ROUND_STRICT | MIG_ROUND_FINAL));
  }
  round_ = number;
  round_flags_ = flags;
  phase_ = Phase::kRound;
  return absl::OkStatus();
}

absl::Status SessionRules::RoundEnd(uint64_t number) {
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (phase_ != Phase::kRound) return WrongState("no round is open");
  if (number != round_) {
    return MakeError(MIG_E_ARGUMENT,
                     absl::StrCat("round ", number,
                                  " can't be ended: the open one is ", round_));
  }
  ended_round_ = number;
  phase_ = Phase::kReady;
  return absl::OkStatus();
}

absl::Status SessionRules::PeerData(uint64_t number) const {
  if (source() || phase_ != Phase::kReady || number != done_round_ + 1) {
    return PeerBroke(absl::StrCat("data of round ", number));
  }
  return absl::OkStatus();
}

absl::Status SessionRules::PeerRoundEnd(uint64_t number) {
  if (source() || phase_ != Phase::kReady || number != done_round_ + 1) {
    return PeerBroke(absl::StrCat("the end of round ", number));
  }
  round_ = ended_round_ = done_round_ = number;
  return absl::OkStatus();
}

absl::Status SessionRules::PeerRoundAck(uint64_t number) {
  if (!source() || number != done_round_ + 1 || number > ended_round_) {
    return PeerBroke(absl::StrCat("the acknowledgement of round ", number));
  }
  done_round_ = number;
  return absl::OkStatus();
}

absl::Status SessionRules::Handover() {
  if (!source()) {
    if (!offer_shown_ || renounced_ || closing_) {
      MIG_RETURN_IF_ERROR(CheckUsable());
      return WrongState("there is no offered guest to take");
    }
    if (phase_ == Phase::kTaken)
      return WrongState("the guest was taken before");
    phase_ = Phase::kTaken;
    return absl::OkStatus();
  }
  MIG_RETURN_IF_ERROR(CheckUsable());
  if (phase_ != Phase::kReady || exchanging_ || done_round_ == 0 ||
      done_round_ != ended_round_) {
    return WrongState("the guest is offered once, after the last ROUND_DONE");
  }
  phase_ = Phase::kOffered;
  return absl::OkStatus();
}

absl::Status SessionRules::PeerOffer() {
  if (source() || phase_ != Phase::kReady || done_round_ == 0 || exchanging_ ||
      failed()) {
    return PeerBroke("an offer of the guest");
  }
  phase_ = Phase::kOffered;
  return absl::OkStatus();
}

absl::Status SessionRules::PeerWithdrew() const {
  if (source() || phase_ < Phase::kOffered) {
    return PeerBroke("a withdrawal of what it did not offer");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::PeerBlockRemoved() const {
  if (source() || phase_ != Phase::kReady) {
    return PeerBroke("word that it removed a block");
  }
  return absl::OkStatus();
}

absl::Status SessionRules::PeerCommitted() {
  if (!source() || phase_ != Phase::kOffered) {
    return PeerBroke("word that it took the guest");
  }
  phase_ = Phase::kTaken;
  return absl::OkStatus();
}

absl::Status SessionRules::PeerRefused() {
  if (!source() || phase_ != Phase::kOffered) {
    return PeerBroke("word that it refused the guest");
  }
  phase_ = Phase::kReady;
  failure_ = MakeError(MIG_E_PEER_FAILED,
                       "the destination refused the guest, or confirmed that "
                       "the offer was withdrawn: run it here");
  return absl::OkStatus();
}

void SessionRules::RenounceOffer() {
  if (phase_ != Phase::kTaken) renounced_ = true;
}

Ending SessionRules::Fail(const absl::Status& failure, OfferFate offer) {
  if (phase_ == Phase::kTaken) return Ending::kPeerClosed;
  failure_ = failure;
  if (!source() || phase_ != Phase::kOffered || offer == OfferFate::kNotLeft) {
    return Ending::kError;
  }
  if (offer == OfferFate::kMayHaveArrived) return Ending::kInDoubt;
  phase_ = Phase::kReady;
  return Ending::kRefused;
}

}  // namespace mig
