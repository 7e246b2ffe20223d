// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_HOST_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_HOST_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/plugin_host.h"
#include "engine/session.h"
#include "model/services.h"
#include "model/world.h"

namespace mig::model {

// How a side's session ended, as its host was told.
enum class Outcome : uint8_t {
  kNone,
  kCommitted,
  kRefused,
  kError,
  kInDoubt,
  kTaken,  // destination: it has the guest
};

// One side's host, driven a step at a time: calls progress when it is due as an
// event loop would, holds what comes to the rules of the ABI, and lets the
// role's own script act in between.
class Host {
 public:
  Host(World* world, VirtualClock* clock, EventLog* log, Actor side);
  virtual ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // Context and session. A plugin may refuse, where calls are made to fail:
  // then this host is over.
  absl::Status Start(std::shared_ptr<const sim::Plugin> plugin,
                     absl::string_view network);

  // Whether there is something to do now, and else when (UINT64_MAX: never by
  // itself).
  bool Ready();
  uint64_t NextNs() const { return next_ns_; }
  void Step();

  // Waits for its peer no longer.
  void GiveUp();

  // CLOSED has come or the process died; nothing is left.
  bool over() const { return over_; }
  bool killed() const { return killed_; }
  Outcome outcome() const { return outcome_; }
  uint64_t ended_ns() const { return ended_ns_; }
  uint64_t steps() const { return steps_; }
  // It calls nothing now, or did so until a moment ago.
  bool paused() const;
  const std::string& why() const { return why_; }

 protected:
  // The role's script: does what it does next, if it may. False: it waits.
  virtual bool Act() = 0;
  virtual bool CanAct() const = 0;
  virtual void OnEvent(const mig_event& event) = 0;
  virtual void OnOutcome() = 0;
  // A call that the state forbids for certain, and what it answered.
  virtual absl::Status Misuse() = 0;
  virtual void OnClosed() {}

  void Pause(uint64_t ns);
  void End(Outcome outcome);
  void Close();
  bool closing() const { return closing_; }
  // An answer that only a failed session may give.
  bool Went(const absl::Status& status, const char* call);
  bool HasFault(HostFault kind) const;
  absl::Status AddBlocks();

  // -- Messages: numbered, and each says what it is ---------------------------
  // Queues one; they go out when there is room.
  void Queue(uint64_t round);
  bool SendQueued();
  bool HasQueued() const { return !outbox_.empty() && send_ready_; }
  uint64_t messages_sent() const { return next_sent_; }
  uint64_t messages_received() const { return next_received_; }
  bool outbox_empty() const { return outbox_.empty(); }

  World& world() { return *world_; }
  const Habits& habits() const { return world_->habits(); }
  const Actor side_;
  Draw draw_;
  std::unique_ptr<sim::Session> session_;
  bool connected_ = false;
  bool blocks_ready_ = false;
  uint64_t round_done_ = 0;

 private:
  struct Held {
    mig_message* message;
    uint64_t until_ns;
  };

  void Take(const mig_event& event);
  void CheckOrder(const mig_event& event);
  void OnMessage(const mig_event& event);
  void CheckMessage(const mig_event& event);
  void ReleaseDue();
  bool FaultDue();
  void Kill();
  void ApplyMisuse();
  void DestroyAll();

  World* const world_;
  VirtualClock* const clock_;
  ModelServices services_;
  std::unique_ptr<sim::PluginContext> context_;
  std::vector<const Fault*> faults_;  // by step
  std::vector<mig_event> events_;
  std::vector<Held> held_;
  std::deque<std::vector<uint64_t>> outbox_;
  bool send_ready_ = true;
  uint64_t queued_ = 0;
  uint64_t next_sent_ = 0;
  uint64_t next_received_ = 0;
  uint64_t steps_ = 0;
  uint64_t next_ns_ = 0;
  uint64_t paused_until_ns_ = 0;
  uint64_t ended_ns_ = 0;
  Outcome outcome_ = Outcome::kNone;
  std::string why_;
  bool failed_ = false;  // ERROR, HANDOVER_REFUSED or IN_DOUBT came
  bool closing_ = false;
  bool closed_ = false;
  bool over_ = false;
  bool killed_ = false;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_HOST_H_
