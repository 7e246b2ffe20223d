// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What may happen when in a session, for any transport: the lifecycle, the
// order of rounds, and who has the guest (rules 7, 8, 12 and 15). It does no
// I/O; a transport asks before it acts, and tells what happened.
#ifndef PLUGIN_COMMON_SESSION_RULES_H_
#define PLUGIN_COMMON_SESSION_RULES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "mig_transport.h"

namespace mig {

enum class Phase {
  kNew,
  kConnecting,
  kConnected,  // no blocks agreed yet
  kReady,      // between rounds
  kRound,      // source: between round_begin and round_end
  kOffered,    // the guest is offered: nobody knows yet who runs it
  kTaken,      // the destination has the guest
};

// What is known of the source's offer when something fails.
enum class OfferFate {
  kNotLeft,         // no byte of it can have left
  kMayHaveArrived,  // the peer may take it, or have taken it
  kRenounced,       // the peer said that it can't take it any more
};

// How a failure ends a session.
enum class Ending { kError, kInDoubt, kRefused, kPeerClosed };

// Not thread-safe. Check... answer STATE, FAILED or ARGUMENT and change
// nothing; everything else records what has happened.
class SessionRules {
 public:
  explicit SessionRules(uint32_t role) : role_(role) {}

  bool source() const { return role_ == MIG_ROLE_SOURCE; }
  Phase phase() const { return phase_; }
  bool failed() const { return !failure_.ok(); }
  bool closing() const { return closing_; }
  // The first error, OK while there is none.
  const absl::Status& failure() const { return failure_; }
  // "while sending round 3", for messages.
  std::string Doing() const;

  absl::Status CheckStart(uint32_t role) const;  // listen or connect
  absl::Status CheckAddBlock() const;
  absl::Status CheckRemoveBlock() const;
  absl::Status CheckExchange() const;
  absl::Status CheckSend() const;
  absl::Status CheckWrite() const;
  absl::Status CheckHostBusy() const;

  void Connecting() { phase_ = Phase::kConnecting; }
  void Connected() { phase_ = Phase::kConnected; }
  void ExchangeBegun() { exchanging_ = true; }
  void Exchanged();

  // Source. Both check and record.
  absl::Status RoundBegin(uint64_t number, uint32_t flags);
  absl::Status RoundEnd(uint64_t number);
  // Whether writes of the open round may go out: the one before is done.
  bool WritesMayStart() const { return done_round_ + 1 == round_; }
  bool strict() const { return (round_flags_ & MIG_ROUND_STRICT) != 0; }
  uint64_t round() const { return round_; }
  uint64_t done_round() const { return done_round_; }
  uint64_t ended_round() const { return ended_round_; }

  // What the peer said; PROTOCOL when it may not. The destination's data and
  // fence of round `number`, the source's acknowledgement of it.
  absl::Status PeerData(uint64_t number) const;
  absl::Status PeerRoundEnd(uint64_t number);
  absl::Status PeerRoundAck(uint64_t number);

  // Source: checks and records that the guest was offered. Destination: that
  // it was taken, also after a failure, if the offer was shown to the host.
  absl::Status Handover();
  absl::Status PeerOffer();  // destination: the offer arrived
  void OfferShown() { offer_shown_ = true; }
  // Destination: whether its host may take the guest, now or after the event.
  bool MayTake() const {
    return !source() && phase_ == Phase::kOffered && !renounced_ && !closing_;
  }
  absl::Status PeerWithdrew() const;      // destination
  absl::Status PeerBlockRemoved() const;  // destination
  absl::Status PeerCommitted();           // source
  absl::Status PeerRefused();  // source: its own again; ends the session
  // Destination: can no longer take the guest, whatever comes.
  void RenounceOffer();

  // Records the first failure. Nothing is one once the guest is taken.
  Ending Fail(const absl::Status& failure, OfferFate offer);
  void Closing() { closing_ = true; }

 private:
  absl::Status CheckUsable() const;
  absl::Status WrongState(absl::string_view what) const;
  absl::Status PeerBroke(absl::string_view what) const;

  uint32_t role_;
  Phase phase_ = Phase::kNew;
  absl::Status failure_;
  bool closing_ = false;
  bool exchanging_ = false;
  bool offer_shown_ = false;
  bool renounced_ = false;
  uint64_t round_ = 0;        // last begun
  uint64_t ended_round_ = 0;  // last ended
  uint64_t done_round_ = 0;   // last acknowledged, or received whole
  uint32_t round_flags_ = 0;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_SESSION_RULES_H_
