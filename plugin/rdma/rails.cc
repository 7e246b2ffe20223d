// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/rails.h"

#include <algorithm>
#include <utility>

#include "common/error.h"

namespace mig::rdma {

void RailRegistrations::Ask(uint32_t first, uint32_t count) {
  for (const auto& one : rails_) one->Ask(first, count);
}

void RailRegistrations::AskAll() {
  for (const auto& one : rails_) one->AskAll();
}

uint64_t RailRegistrations::asked_bytes() const {
  uint64_t bytes = 0;
  for (const auto& one : rails_) bytes += one->asked_bytes();
  return bytes;
}

uint64_t RailRegistrations::ready_bytes() const {
  uint64_t bytes = 0;
  for (const auto& one : rails_) bytes += one->ready_bytes();
  return bytes;
}

void RailRegistrations::Release() {
  for (const auto& one : rails_) one->Release();
}

bool RailRegistrations::released() const {
  return std::all_of(rails_.begin(), rails_.end(),
                     [](const auto& one) { return one->released(); });
}

absl::StatusOr<GuestDevice> Rails::Of(const rdma_cm_id* id) {
  for (size_t rail = 0; rail < devices_.size(); ++rail) {
    if (devices_[rail]->context() == id->verbs) {
      return GuestDevice{devices_[rail]->guest_pd(),
                         static_cast<uint16_t>(rail)};
    }
  }
  auto device = pool_->Get(id);
  if (!device.ok()) return device.status();
  devices_.push_back(*std::move(device));
  return GuestDevice{devices_.back()->guest_pd(),
                     static_cast<uint16_t>(devices_.size() - 1)};
}

void Rails::Retire() {
  for (const auto& device : devices_) pool_->Retire(device.get());
}

uint32_t Rails::AddLane(uint16_t local, uint16_t remote) {
  for (uint32_t pair = 0; pair < pairs(); ++pair) {
    if (pairs_[pair].local == local && pairs_[pair].remote == remote) {
      return pair;
    }
  }
  pairs_.push_back({local, remote});
  return pairs() - 1;
}

bool Rails::HasRemote(uint64_t remote) const {
  return std::any_of(pairs_.begin(), pairs_.end(),
                     [remote](const Pair& p) { return p.remote == remote; });
}

absl::StatusOr<std::unique_ptr<RailRegistrations>> Rails::Open(
    const RegistrationCache::Request& request) {
  auto all = std::make_unique<RailRegistrations>();
  for (const auto& device : devices_) {
    auto one = device->registrations()->Open(request);
    if (!one.ok()) return one.status();
    all->Add(*std::move(one));
  }
  return all;
}

absl::Status Rails::CheckPinnable(
    std::span<const RailRegistrations* const> blocks) const {
  if (empty()) return absl::OkStatus();
  std::vector<const BlockRegistration*> all;
  for (const RailRegistrations* block : blocks) {
    for (size_t rail = 0; rail < block->rails(); ++rail) {
      all.push_back(&block->rail(rail));
    }
  }
  return devices_.front()->registrations()->CheckPinnable(all);
}

void Rails::Step() {
  for (const auto& device : devices_) {
    if (!device->registrations()->HasWork()) continue;
    device->registrations()->Step();
    return;
  }
}

bool Rails::HasWork() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const auto& device) {
    return device->registrations()->HasWork();
  });
}

uint64_t Rails::DueNs() const {
  uint64_t due = MIG_NO_DEADLINE;
  for (const auto& device : devices_) {
    due = std::min(due, device->registrations()->DueNs());
  }
  return due;
}

RegistrationStats Rails::stats() const {
  RegistrationStats sum;
  for (const auto& device : devices_) {
    const RegistrationStats one = device->registrations()->stats();
    sum.registrations += one.registrations;
    sum.reused += one.reused;
    sum.bytes += one.bytes;
    sum.register_ns += one.register_ns;
  }
  return sum;
}

}  // namespace mig::rdma
