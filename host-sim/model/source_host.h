// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_SOURCE_HOST_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_SOURCE_HOST_H_

#include <deque>
#include <vector>

#include "model/host.h"

namespace mig::model {

// The host that has the guest, and gives it away.
class SourceHost final : public Host {
 public:
  SourceHost(World* world, VirtualClock* clock, EventLog* log)
      : Host(world, clock, log, Actor::kSource) {}

  bool offered() const { return offered_; }

 private:
  enum class Stage : uint8_t {
    kStart,
    kConnecting,
    kExchanging,
    kBetween,  // no round is open, or the next may begin already
    kWriting,
    kLastRound,  // is on its way
    kState,      // device state is sent
    kOffered,
    kOver,
  };

  bool Act() override;
  bool CanAct() const override;
  void OnEvent(const mig_event& event) override;
  void OnOutcome() override;
  void OnClosed() override;
  absl::Status Misuse() override;

  bool Begin();
  void ListDirty();
  bool Write();
  bool WriteTwice();
  void NextRanges(std::vector<mig_range>* ranges);
  void Accepted(const std::vector<mig_range>& ranges, size_t whole,
                uint64_t partial);
  bool EndRound();
  void SendState();
  absl::Status WrongWrite(const mig_range& range);
  bool MayBegin() const;
  bool PageIsZero(uint64_t page) const;

  Stage stage_ = Stage::kStart;
  uint64_t round_ = 0;
  bool last_ = false;  // the guest stands still in this round
  bool write_ready_ = true;
  bool given_twice_ = false;
  bool offered_ = false;
  std::deque<uint64_t> list_;    // pages of this round, still to be handed over
  std::vector<mig_range> rest_;  // handed over, not taken
  uint64_t first_written_ = UINT64_MAX;  // a page that this round has taken
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_SOURCE_HOST_H_
