// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_MODEL_SERVICES_H_
#define MIGTRANSPORT_HOST_SIM_MODEL_SERVICES_H_

#include <cstdint>
#include <string>

#include "guest/random.h"
#include "mig_transport.h"
#include "model/event_log.h"

namespace mig::model {

// Time of one run: it goes on when the scheduler says so.
struct VirtualClock {
  uint64_t now_ns = 1'000'000'000;
};

// What a host of the model lends to a plugin (rule 4): the virtual clock, the
// seed's randomness, and the event log. Single-threaded, like all of a run;
// outlives the context it is lent to.
class ModelServices {
 public:
  ModelServices(const VirtualClock* clock, uint64_t seed, EventLog* log,
                Actor side)
      : clock_(clock), random_{seed}, log_(log), side_(side) {}
  ModelServices(const ModelServices&) = delete;
  ModelServices& operator=(const ModelServices&) = delete;

  mig_host_services Table();
  // What the plugin logged as an error last; "" if nothing.
  const std::string& last_error() const { return last_error_; }

 private:
  static uint64_t ClockNs(void* host);
  static int32_t Fill(void* host, void* buffer, size_t length);
  static void Log(void* host, int32_t level, const char* message);

  const VirtualClock* const clock_;
  sim::Random random_;
  EventLog* const log_;
  const Actor side_;
  std::string last_error_;
};

}  // namespace mig::model

#endif  // MIGTRANSPORT_HOST_SIM_MODEL_SERVICES_H_
