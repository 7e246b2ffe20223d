// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "soft-verbs/faults.h"

#include <algorithm>

namespace mig::soft {
namespace {

bool OfDevice(Fault::Kind kind) {
  return kind == Fault::Kind::kFatal || kind == Fault::Kind::kRemoval ||
         kind == Fault::Kind::kPortDown || kind == Fault::Kind::kPortUp ||
         kind == Fault::Kind::kStop;
}

}  // namespace

const Fault* Faults::OnCall(absl::string_view name) {
  if (faults_.empty()) return nullptr;
  const uint64_t number = ++calls_[std::string(name)];
  for (const Fault& fault : faults_) {
    if (fault.kind == Kind::kCall && fault.number == number &&
        fault.name == name) {
      return &fault;
    }
  }
  return nullptr;
}

bool Faults::Hits(Kind kind) {
  if (faults_.empty()) return false;
  const uint64_t number = ++counts_[kind];
  return ForRequest(kind, number) != nullptr;
}

const Fault* Faults::ForRequest(Kind kind, uint64_t number) const {
  for (const Fault& fault : faults_) {
    if (fault.kind == kind && fault.number == number) return &fault;
  }
  return nullptr;
}

const Fault* Faults::TakeDue(uint64_t number, uint64_t ns) {
  taken_.resize(faults_.size());
  for (size_t i = 0; i < faults_.size(); ++i) {
    const Fault& fault = faults_[i];
    if (taken_[i] || !OfDevice(fault.kind)) continue;
    if (fault.timed ? fault.at_ns > ns : fault.number > number) continue;
    taken_[i] = true;
    return &fault;
  }
  return nullptr;
}

uint64_t Faults::NextNs() const {
  uint64_t next = UINT64_MAX;
  for (size_t i = 0; i < faults_.size(); ++i) {
    const bool taken = i < taken_.size() && taken_[i];
    if (!taken && faults_[i].timed) next = std::min(next, faults_[i].at_ns);
  }
  return next;
}

}  // namespace mig::soft
