// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/services.h"

#include <algorithm>
#include <cstring>

namespace mig::model {

mig_host_services ModelServices::Table() {
  mig_host_services services = {};
  services.size = sizeof services;
  services.flags = MIG_HOST_SIMULATED_CLOCK;
  services.host = this;
  services.log = Log;
  services.clock_ns = ClockNs;
  services.random = Fill;
  return services;
}

uint64_t ModelServices::ClockNs(void* host) {
  return static_cast<ModelServices*>(host)->clock_->now_ns;
}

int32_t ModelServices::Fill(void* host, void* buffer, size_t length) {
  auto* const self = static_cast<ModelServices*>(host);
  auto* to = static_cast<unsigned char*>(buffer);
  while (length > 0) {
    const uint64_t value = self->random_.Next();
    const size_t step = std::min(length, sizeof value);
    std::memcpy(to, &value, step);
    to += step;
    length -= step;
  }
  return 0;
}

void ModelServices::Log(void* host, int32_t level, const char* message) {
  auto* const self = static_cast<ModelServices*>(host);
  if (level == MIG_LOG_ERROR) self->last_error_ = message;
  self->log_->Add(self->clock_->now_ns, self->side_, "log",
                  static_cast<uint64_t>(level), 0, message);
}

}  // namespace mig::model
