// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_WORLD_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_WORLD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "model/draw.h"
#include "model/event_log.h"
#include "model/memory.h"
#include "model/oracle.h"
#include "model/scenario.h"
#include "model/services.h"

namespace mig::model {

// Where the guest is, and its dirty bits: what hosts and guest share. Says what
// breaks rule 12; the first such violation, of any rule, is the run's verdict.
class World {
 public:
  World(const Scenario* scenario, VirtualClock* clock, EventLog* log,
        GuestMemory* source, GuestMemory* destination);

  const Scenario& scenario() const { return *scenario_; }
  const Habits& habits() const { return scenario_->habits; }
  uint64_t now_ns() const { return clock_->now_ns; }
  void Log(Actor actor, const char* what, uint64_t a = 0, uint64_t b = 0,
           absl::string_view text = {}) {
    log_->Add(clock_->now_ns, actor, what, a, b, text);
  }
  Oracle& oracle() { return oracle_; }
  const GuestMemory& memory(Actor side) const {
    return side == Actor::kSource ? *source_ : *destination_;
  }

  // The first thing that may not be.
  void Violate(Actor actor, absl::string_view rule, absl::string_view what);
  const absl::Status& verdict() const { return verdict_; }

  // -- The guest -------------------------------------------------------------
  // The side whose host lets it run; kModel: nobody.
  Actor runs_at() const { return runs_at_; }
  void RunGuest(Actor side);
  void StopGuest(Actor side);
  // The destination's handover() has answered OK.
  void GuestTaken();
  bool taken() const { return taken_; }
  void Offered(bool offered) { offered_ = offered; }
  // Its next write is due then; UINT64_MAX while it stands still.
  uint64_t NextWriteNs() const;
  void StepGuest();

  // -- Dirty bits, of the source's host --------------------------------------
  std::vector<bool>& dirty() { return dirty_; }
  uint64_t dirty_pages() const { return dirty_pages_; }
  void MarkDirty(uint64_t page);
  void ClearDirty(uint64_t page);

  // -- What hosts tell each other beside the transport ------------------------
  std::string uri;                   // of the destination, "" before it listens
  uint64_t state_messages_sent = 0;  // by the source, after the last round
  bool all_sent = false;             // the last one too

 private:
  const Scenario* const scenario_;
  VirtualClock* const clock_;
  EventLog* const log_;
  const GuestMemory* const source_;
  const GuestMemory* const destination_;
  Oracle oracle_;
  Draw draw_;
  absl::Status verdict_;
  Actor runs_at_ = Actor::kModel;
  bool taken_ = false;
  bool offered_ = false;
  uint64_t next_write_ns_ = UINT64_MAX;
  std::vector<bool> dirty_;
  uint64_t dirty_pages_ = 0;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_WORLD_H_
