// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_GUEST_PORT_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_GUEST_PORT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/state_stream.h"

namespace mig::sim {

// What the engines need of a guest; the real one and those of tests are behind
// it. Called from the engine's thread; the guest runs on threads of its own.
class GuestPort {
 public:
  virtual ~GuestPort() = default;

  // Lets the guest run, for the first time or again.
  virtual absl::Status Run() = 0;
  // Stops it where its state is whole: no write to its memory after this
  // returned. OK if it is stopped already.
  virtual absl::Status Stop() = 0;
  virtual bool running() const = 0;
  // Makes it this much slower: 0 not at all, 99 almost standing.
  virtual void SetThrottle(uint32_t percent) = 0;

  // Source: what the destination must know beside the memory. Stopped.
  virtual absl::StatusOr<StateSections> SaveState() = 0;
  // Destination: takes that up. The memory is complete.
  virtual absl::Status LoadState(const StateSections& sections) = 0;
  // Source, after the guest was let go: what its memory must look like at the
  // destination; empty if it does not know. Stopped.
  virtual Bytes SaveExpected() = 0;
  // Destination: whether the memory is what the guest left, and fits
  // `expected`. Stopped. DataLoss says what is wrong.
  virtual absl::Status Check(const Bytes& expected) = 0;
  // How much it has done, as a text for a person: "1200 transactions".
  virtual std::string Work() const = 0;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_GUEST_PORT_H_
