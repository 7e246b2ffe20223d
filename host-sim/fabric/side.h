// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_FABRIC_SIDE_H_
#define MIGTRANSPORT_HOST_SIM_FABRIC_SIDE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/plugin_host.h"
#include "engine/session.h"
#include "fabric/experiment.h"
#include "model/services.h"

namespace mig::fabric {

// Addresses without memory: whoever touches them ends the process. They cost
// nothing, however many they are.
class AddressRange {
 public:
  // Errors: ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<AddressRange>> Reserve(uint64_t bytes);
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();
  void* address() const { return address_; }

 private:
  AddressRange(void* address, uint64_t bytes)
      : address_(address), bytes_(bytes) {}
  void* const address_;
  const uint64_t bytes_;
};

// One side's host: progress when it is due, and what the role does at events.
class Side {
 public:
  Side(const ExperimentSettings* settings, model::VirtualClock* clock,
       model::Actor actor);
  virtual ~Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  absl::Status Start(const std::shared_ptr<const sim::Plugin>& plugin);
  // Whether progress is due now; else when (UINT64_MAX: when the peer acts).
  absl::StatusOr<bool> Ready();
  uint64_t next_ns() const { return next_ns_; }
  absl::Status Step();
  bool closed() const { return closed_; }

 protected:
  virtual absl::Status OnEvent(const mig_event& event) = 0;
  uint64_t now_ns() const { return clock_->now_ns; }

  const ExperimentSettings& settings_;

 private:
  absl::Status AddBlock();

  const model::VirtualClock* const clock_;
  const model::Actor actor_;
  model::EventLog log_{nullptr};
  model::ModelServices services_;
  std::unique_ptr<AddressRange> memory_;
  std::unique_ptr<sim::PluginContext> context_;
  uint64_t next_ns_ = 0;
  bool closed_ = false;

 protected:
  std::unique_ptr<sim::Session> session_;  // goes before what it uses
};

// What both hosts know of each other beside the transport.
struct Meeting {
  std::string uri;        // of the destination
  uint64_t stop_ns = 0;   // when the guest stopped at the source
  uint64_t start_ns = 0;  // when it started at the destination
};

class DestinationSide final : public Side {
 public:
  DestinationSide(const ExperimentSettings* settings,
                  model::VirtualClock* clock, Meeting* meeting)
      : Side(settings, clock, model::Actor::kDestination), meeting_(meeting) {}
  absl::Status Listen();

 private:
  absl::Status OnEvent(const mig_event& event) override;

  Meeting* const meeting_;
};

class SourceSide final : public Side {
 public:
  SourceSide(const ExperimentSettings* settings, model::VirtualClock* clock,
             Meeting* meeting, ExperimentResult* result)
      : Side(settings, clock, model::Actor::kSource),
        meeting_(meeting),
        result_(result),
        guest_(settings->guest) {}
  absl::Status Connect();
  // Rounds that are done.
  size_t rounds_done() const { return result_->rounds.size(); }

 private:
  absl::Status OnEvent(const mig_event& event) override;
  absl::Status OnMessage();
  absl::Status Ping();
  absl::Status BeginRound();
  bool LastIsDue() const;
  absl::Status Write();
  absl::Status OnRoundDone();

  Meeting* const meeting_;
  ExperimentResult* const result_;
  Dirtying guest_;
  std::vector<mig_range> ranges_;
  size_t written_ = 0;  // of ranges_
  uint64_t begun_ns_ = 0;
  uint64_t flushed_ns_ = 0;
  uint64_t first_round_ns_ = 0;
  uint64_t bytes_ = 0;  // of this round
  uint32_t pings_ = 0;
  uint64_t pinged_ns_ = 0;
  bool writing_ = false;
  bool last_ = false;
};

}  // namespace mig::fabric

#endif  // MIGTRANSPORT_HOST_SIM_FABRIC_SIDE_H_
