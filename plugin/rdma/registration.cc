// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What sessions call. The work itself is in registration_jobs.cc.
#include "rdma/registration.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/error.h"
#include "rdma/registration_region.h"

namespace mig::rdma {

absl::Status CheckOdp(const ibv_device_attr_ex& attr) {
  constexpr uint32_t kNeeded = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_WRITE;
  const uint32_t rc = attr.odp_caps.per_transport_caps.rc_odp_caps;
  if ((attr.odp_caps.general_caps & IBV_ODP_SUPPORT) != 0 &&
      (rc & kNeeded) == kNeeded) {
    return absl::OkStatus();
  }
  return MakeError(
      MIG_E_UNSUPPORTED,
      absl::StrFormat("registration=odp was asked for, and the device reports "
                      "on-demand paging %#x, for reliable connections %#x of "
                      "%#x needed: choose registration=pinned or dynamic",
                      attr.odp_caps.general_caps, rc, kNeeded));
}

// -- BlockRegistration --------------------------------------------------------

BlockRegistration::BlockRegistration(RegistrationCache* cache, Region* region,
                                     std::function<void()> wake)
    : cache_(cache),
      wake_(std::move(wake)),
      chunk_count_(static_cast<uint32_t>(region->chunks.size())),
      chunk_size_(region->chunk_size),
      region_(region),
      asked_(region->chunks.size()) {
  ready_.reserve(region->chunks.size());
}

BlockRegistration::~BlockRegistration() {
  RegistrationCache::Lock lock(cache_->lock_);
  ReleaseLocked();
  if (cache_->settings_.threads == 0) {
    RegistrationCache::Job job;
    while (region_ != nullptr && !cache_->undo_jobs_.empty() &&
           cache_->TakeJob(&job)) {
      cache_->Run(job, &lock);
    }
  }
  // The memory may go after this; registrations that are still there do not
  // touch it.
  cache_->done_.wait(
      lock, [this] { return region_ == nullptr || region_->running == 0; });
  if (region_ != nullptr) region_->last_user = nullptr;
}

uint64_t BlockRegistration::MissingBytes() const {
  const RegistrationCache::Lock lock(cache_->lock_);
  if (region_ == nullptr || cache_->settings_.on_demand) return 0;
  uint64_t missing = 0;
  for (uint32_t i = 0; i < chunk_count_; ++i) {
    if (region_->chunks[i].state == Region::State::kRegistered) continue;
    missing += PinnedBytes(reinterpret_cast<uintptr_t>(region_->AddressOf(i)),
                           region_->LengthOf(i));
  }
  return missing;
}

void BlockRegistration::Ask(uint32_t first, uint32_t count) {
  const RegistrationCache::Lock lock(cache_->lock_);
  if (region_ == nullptr || releasing_) return;
  first = std::min(first, chunk_count_);
  const uint32_t end = first + std::min(count, chunk_count_ - first);
  for (uint32_t i = first; i < end; ++i) {
    if (asked_[i]) continue;
    asked_[i] = true;
    asked_bytes_ += region_->LengthOf(i);
    const Region::Chunk& chunk = region_->chunks[i];
    if (chunk.state == Region::State::kRegistered) {
      ++cache_->stats_.reused;
      ready_bytes_ += region_->LengthOf(i);
      ready_.push_back({i, chunk.mr->lkey, chunk.mr->rkey});
    } else if (chunk.state != Region::State::kQueued) {
      // A chunk that failed once is tried again: limits can be raised.
      cache_->Queue(region_, i);
    }
  }
}

absl::StatusOr<size_t> BlockRegistration::TakeReady(std::span<ReadyChunk> out) {
  const RegistrationCache::Lock lock(cache_->lock_);
  if (!failure_.ok()) return failure_;
  const size_t count = std::min(out.size(), ready_.size() - taken_);
  std::copy_n(ready_.begin() + static_cast<ptrdiff_t>(taken_), count,
              out.begin());
  taken_ += count;
  if (taken_ == ready_.size()) {
    ready_.clear();
    taken_ = 0;
  }
  return count;
}

uint64_t BlockRegistration::asked_bytes() const {
  const RegistrationCache::Lock lock(cache_->lock_);
  return asked_bytes_;
}

uint64_t BlockRegistration::ready_bytes() const {
  const RegistrationCache::Lock lock(cache_->lock_);
  return ready_bytes_;
}

void BlockRegistration::Release() {
  const RegistrationCache::Lock lock(cache_->lock_);
  ReleaseLocked();
}

bool BlockRegistration::released() const {
  const RegistrationCache::Lock lock(cache_->lock_);
  return region_ == nullptr;
}

void BlockRegistration::ReleaseLocked() {
  if (region_ == nullptr || releasing_) return;
  releasing_ = true;
  Region* const region = region_;
  std::erase(region->users, this);
  if (!region->users.empty()) {
    region_ = nullptr;
    return;
  }
  cache_->DropJobs(region);
  if (region->kept) {
    region_ = nullptr;
    return;
  }
  region->last_user = this;
  cache_->Undo(region);
}

// -- RegistrationCache --------------------------------------------------------

RegistrationCache::RegistrationCache(verbs::Verbs* verbs, ibv_pd* pd,
                                     const Host* host,
                                     RegistrationSettings settings)
    : verbs_(verbs), pd_(pd), host_(host), settings_(std::move(settings)) {}

absl::StatusOr<std::unique_ptr<RegistrationCache>> RegistrationCache::Create(
    verbs::Verbs* verbs, ibv_pd* pd, const Host* host,
    RegistrationSettings settings) {
  std::unique_ptr<RegistrationCache> cache(
      new RegistrationCache(verbs, pd, host, std::move(settings)));
  RegistrationCache* const self = cache.get();
  MIG_RETURN_IF_ERROR(cache->pool_.Start(
      cache->settings_.threads,
      [self](const std::stop_token& stop) { self->Work(stop); }));
  return cache;
}

RegistrationCache::~RegistrationCache() {
  {
    Lock lock(lock_);
    // Undo may free the region.
    for (size_t i = regions_.size(); i > 0; --i) {
      Region* const region = regions_[i - 1].get();
      if (!region->undone) Undo(region);
    }
    Job job;
    while (settings_.threads == 0 && TakeJob(&job)) Run(job, &lock);
    done_.wait(lock, [this] { return regions_.empty(); });
  }
  pool_.Join();
}

absl::Status RegistrationCache::CheckLimits(const Request& request) const {
  const uint64_t largest = std::min(request.chunk_size, request.length);
  if (settings_.threads == 0 && largest > kMaxSlice &&
      !host_->simulated_clock()) {
    return MakeError(
        MIG_E_OPTION,
        absl::StrCat("block '", request.name, "' would be registered ", largest,
                     " bytes at once, and without threads at most ", kMaxSlice,
                     " can be: use a smaller chunk-size, or threads"));
  }
  if (largest > settings_.max_mr_size) {
    return MakeError(
        MIG_E_LIMIT,
        absl::StrCat("block '", request.name, "' would be registered ", largest,
                     " bytes at once, and the device takes ",
                     settings_.max_mr_size, ": use a smaller chunk-size"));
  }
  const uint64_t count = (request.length - 1) / request.chunk_size + 1;
  if (count > settings_.max_mr) {
    return MakeError(
        MIG_E_LIMIT,
        absl::StrCat("block '", request.name, "' takes ", count,
                     " registrations of ", request.chunk_size,
                     " bytes, and the device has ", settings_.max_mr,
                     ": use a larger chunk-size"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<BlockRegistration>> RegistrationCache::Open(
    Request request) {
  if (request.length == 0 || request.chunk_size == 0) {
    return MakeError(
        MIG_E_INTERNAL,
        absl::StrCat("block '", request.name, "' has ", request.length,
                     " bytes in chunks of ", request.chunk_size));
  }
  MIG_RETURN_IF_ERROR(CheckLimits(request));
  auto wanted = std::make_unique<Region>();
  wanted->name = std::move(request.name);
  wanted->base = request.base;
  wanted->length = request.length;
  wanted->chunk_size = request.chunk_size;
  wanted->use = request.use;

  const Lock lock(lock_);
  Region* found = nullptr;
  for (size_t i = regions_.size(); i > 0; --i) {
    Region* const region = regions_[i - 1].get();
    if (region->undone) continue;
    if (region->SameMemory(*wanted)) {
      found = region;
    } else if (region->users.empty() && region->Overlaps(*wanted)) {
      // What was kept is not what this host has now.
      DropJobs(region);
      Undo(region);
    }
  }
  if (found == nullptr) {
    found = wanted.get();
    found->chunks.resize((found->length - 1) / found->chunk_size + 1);
    regions_.push_back(std::move(wanted));
  }
  found->kept = request.kept;
  std::unique_ptr<BlockRegistration> registration(
      new BlockRegistration(this, found, std::move(request.wake)));
  found->users.push_back(registration.get());
  return registration;
}

absl::Status RegistrationCache::CheckPinnable(
    std::span<const BlockRegistration* const> blocks) const {
  if (settings_.on_demand) return absl::OkStatus();
  uint64_t need = 0;
  for (const BlockRegistration* block : blocks) need += block->MissingBytes();
  Memlock memlock = settings_.memlock();
  const Lock lock(lock_);
  // What is being deregistered will be gone by then: it goes first.
  memlock.pinned -= std::min(memlock.pinned, GoingBytes());
  return CheckMemlock(memlock, need);
}

bool RegistrationCache::Step() {
  Lock lock(lock_);
  Job job;
  if (settings_.threads > 0 || !BeginNext() || !TakeJob(&job)) return false;
  if (job.kind == Job::Kind::kRegister) begun_ = false;
  Run(job, &lock);
  return !undo_jobs_.empty() || !faulted_jobs_.empty() || !jobs_.empty();
}

// Whether the next job may be done now.
bool RegistrationCache::BeginNext() {
  if (!host_->simulated_clock() || !undo_jobs_.empty()) return true;
  const RingQueue<Job>& queue = faulted_jobs_.empty() ? jobs_ : faulted_jobs_;
  if (queue.empty() || queue.front().kind != Job::Kind::kRegister) return true;
  const Job& job = queue.front();
  const uint64_t now_ns = host_->NowNs();
  if (!begun_) {
    begun_ = true;
    done_ns_ = now_ns + verbs_->RegistrationNs(job.region->LengthOf(job.chunk),
                                               AccessOf(job.region->use));
  }
  return now_ns >= done_ns_;
}

bool RegistrationCache::HasWork() const { return DueNs() <= host_->NowNs(); }

uint64_t RegistrationCache::DueNs() const {
  if (settings_.threads > 0) return MIG_NO_DEADLINE;
  const Lock lock(lock_);
  if (!undo_jobs_.empty()) return 0;
  if (faulted_jobs_.empty() && jobs_.empty()) return MIG_NO_DEADLINE;
  return begun_ ? done_ns_ : 0;
}

RegistrationStats RegistrationCache::stats() const {
  const Lock lock(lock_);
  return stats_;
}

}  // namespace mig::rdma
