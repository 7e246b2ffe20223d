// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_DESTINATION_HOST_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_DESTINATION_HOST_H_

#include "model/host.h"

namespace mig::model {

// The host that takes the guest.
class DestinationHost final : public Host {
 public:
  DestinationHost(World* world, VirtualClock* clock, EventLog* log)
      : Host(world, clock, log, Actor::kDestination) {}

 private:
  enum class Stage : uint8_t {
    kStart,
    kListening,
    kExchanging,
    kReceiving,
    kOffered,
    kSayingBusy,
    kLoading,  // the device state, without calling progress
    kRuns,
    kOver,
  };

  bool Act() override;
  bool CanAct() const override;
  void OnEvent(const mig_event& event) override;
  void OnOutcome() override;
  absl::Status Misuse() override;

  bool Listen();
  bool Load();
  bool SayBusy();
  bool TakeGuest();
  void OnOffer();

  Stage stage_ = Stage::kStart;
  bool taken_ = false;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_DESTINATION_HOST_H_
