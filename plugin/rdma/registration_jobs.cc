// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What workers, or Step, do. The lock is held but during system calls.
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "rdma/registration.h"
#include "rdma/registration_region.h"
#include "verbs/verbs_error.h"

namespace mig::rdma {

void RegistrationCache::Work(const std::stop_token& stop) {
  Lock lock(lock_);
  Job job;
  while (work_.wait(lock, stop, [this, &job] { return TakeJob(&job); })) {
    Run(job, &lock);
  }
}

bool RegistrationCache::TakeJob(Job* job) {
  for (RingQueue<Job>* queue : {&undo_jobs_, &faulted_jobs_, &jobs_}) {
    if (queue->empty()) continue;
    *job = queue->front();
    queue->pop_front();
    return true;
  }
  return false;
}

void RegistrationCache::Run(const Job& job, Lock* lock) {
  switch (job.kind) {
    case Job::Kind::kPrefault:
      RunPrefault(job, lock);
      break;
    case Job::Kind::kRegister:
      RunRegister(job, lock);
      break;
    case Job::Kind::kDeregister:
      RunDeregister(job, lock);
      break;
  }
  done_.notify_all();
}

// A worker takes 64 MiB a call, so that a session that is destroyed waits for
// no more than that.
void RegistrationCache::RunPrefault(const Job& job, Lock* lock) {
  Region* const region = job.region;
  std::byte* const address = region->AddressOf(job.chunk);
  const uint64_t length = region->LengthOf(job.chunk);
  ++region->running;
  for (uint64_t done = 0; done < length && !region->undone;) {
    const uint64_t step = std::min(length - done, kMaxSlice);
    lock->unlock();
    const uint64_t begin_ns = host_->NowNs();
    // Older kernels do not know it, and a block may begin within a page: then
    // the registration faults the memory in, and tells what is wrong with it.
    (void)madvise(address + done, step, MADV_POPULATE_WRITE);
    const uint64_t spent_ns = host_->NowNs() - begin_ns;
    lock->lock();
    stats_.prefault_ns += spent_ns;
    done += step;
  }
  --region->running;
  if (region->undone) {
    region->chunks[job.chunk].state = Region::State::kNone;
    FreeIfDone(region);
    return;
  }
  faulted_jobs_.push_back({Job::Kind::kRegister, region, job.chunk});
  work_.notify_one();
}

void RegistrationCache::RunRegister(const Job& job, Lock* lock) {
  Region* const region = job.region;
  Region::Chunk& chunk = region->chunks[job.chunk];
  std::byte* const address = region->AddressOf(job.chunk);
  const uint64_t length = region->LengthOf(job.chunk);
  const unsigned int access = AccessOf(region->use);
  ++region->running;
  lock->unlock();
  const uint64_t begin_ns = host_->NowNs();
  int failure = 0;
  ibv_mr* const mr = verbs::ObjectOfCall(
      &failure, [&] { return verbs_->RegMr(pd_, address, length, access); });
  const uint64_t spent_ns = host_->NowNs() - begin_ns;
  const absl::Status status = mr != nullptr
                                  ? absl::OkStatus()
                                  : RegisterError(*region, job.chunk, failure);
  lock->lock();
  --region->running;
  stats_.register_ns += spent_ns;
  if (mr != nullptr) {
    ++stats_.registrations;
    stats_.bytes += length;
    chunk = {mr, Region::State::kRegistered};
  } else {
    chunk.state = Region::State::kFailed;
  }
  if (!region->undone) {
    Deliver(region, job.chunk, status);
    return;
  }
  if (mr != nullptr) QueueUndo(region, job.chunk);
  FreeIfDone(region);
}

void RegistrationCache::RunDeregister(const Job& job, Lock* lock) {
  Region* const region = job.region;
  ibv_mr* const mr = region->chunks[job.chunk].mr;
  lock->unlock();
  const uint64_t begin_ns = host_->NowNs();
  const int failure = verbs::ErrnoOfCall([&] { return verbs_->DeregMr(mr); });
  const uint64_t spent_ns = host_->NowNs() - begin_ns;
  if (failure != 0) {
    host_->Log(MIG_LOG_WARNING,
               absl::StrCat("deregistering chunk ", job.chunk, " of block '",
                            region->name, "' failed, its memory stays pinned: ",
                            ErrnoText(failure)));
  }
  lock->lock();
  ++stats_.deregistrations;
  stats_.bytes -= region->LengthOf(job.chunk);
  stats_.deregister_ns += spent_ns;
  region->chunks[job.chunk] = {};
  --region->going;
  FreeIfDone(region);
}

void RegistrationCache::Queue(Region* region, uint32_t chunk) {
  region->chunks[chunk].state = Region::State::kQueued;
  const bool prefault = settings_.prefault && !settings_.on_demand &&
                        region->use == MemoryUse::kWrittenByPeer;
  jobs_.push_back(
      {prefault ? Job::Kind::kPrefault : Job::Kind::kRegister, region, chunk});
  work_.notify_one();
}

void RegistrationCache::QueueUndo(Region* region, uint32_t chunk) {
  region->chunks[chunk].state = Region::State::kGoing;
  ++region->going;
  undo_jobs_.push_back({Job::Kind::kDeregister, region, chunk});
  work_.notify_one();
}

// Tells the sessions that asked.
void RegistrationCache::Deliver(Region* region, uint32_t chunk,
                                const absl::Status& failure) {
  for (BlockRegistration* user : region->users) {
    if (!user->asked_[chunk]) continue;
    if (failure.ok()) {
      const ibv_mr& mr = *region->chunks[chunk].mr;
      user->ready_.push_back({chunk, mr.lkey, mr.rkey});
      user->ready_bytes_ += region->LengthOf(chunk);
    } else if (user->failure_.ok()) {
      user->failure_ = failure;
    }
    if (user->wake_) user->wake_();
  }
}

// Starts the end of a region that nobody uses. May free it.
void RegistrationCache::Undo(Region* region) {
  region->undone = true;
  for (uint32_t i = 0; i < region->chunks.size(); ++i) {
    if (region->chunks[i].state == Region::State::kRegistered) {
      QueueUndo(region, i);
    }
  }
  FreeIfDone(region);
}

// Takes the region's registrations that did not begin out of the queues.
void RegistrationCache::DropJobs(const Region* region) {
  begun_ = false;
  for (RingQueue<Job>* queue : {&faulted_jobs_, &jobs_}) {
    for (size_t left = queue->size(); left > 0; --left) {
      const Job job = queue->front();
      queue->pop_front();
      if (job.region != region) {
        queue->push_back(job);
      } else {
        job.region->chunks[job.chunk].state = Region::State::kNone;
      }
    }
  }
}

void RegistrationCache::FreeIfDone(Region* region) {
  if (!region->undone || region->running > 0 || region->going > 0) return;
  if (BlockRegistration* const user = region->last_user; user != nullptr) {
    user->region_ = nullptr;
    if (user->wake_) user->wake_();
  }
  std::erase_if(regions_,
                [region](const auto& owned) { return owned.get() == region; });
}

uint64_t RegistrationCache::GoingBytes() const {
  uint64_t bytes = 0;
  for (const auto& region : regions_) {
    if (region->going == 0) continue;
    for (uint32_t i = 0; i < region->chunks.size(); ++i) {
      if (region->chunks[i].state != Region::State::kGoing) continue;
      bytes += PinnedBytes(reinterpret_cast<uintptr_t>(region->AddressOf(i)),
                           region->LengthOf(i));
    }
  }
  return bytes;
}

// A source's memory is only read, and by this side's device: no right at all.
// A destination's is written by the peer, which needs the local right too.
unsigned int RegistrationCache::AccessOf(MemoryUse use) const {
  const unsigned int rights =
      use == MemoryUse::kReadHere
          ? 0u
          : unsigned{IBV_ACCESS_LOCAL_WRITE} | IBV_ACCESS_REMOTE_WRITE;
  return settings_.on_demand ? rights | IBV_ACCESS_ON_DEMAND : rights;
}

absl::Status RegistrationCache::RegisterError(const Region& region,
                                              uint32_t chunk,
                                              int system_errno) const {
  const std::string what =
      absl::StrCat("registering ", region.LengthOf(chunk), " bytes of block '",
                   region.name, "' at offset ", chunk * region.chunk_size,
                   " failed (", ErrnoText(system_errno), "): ");
  switch (system_errno) {
    case ENOMEM:
    case EAGAIN:
      return MakeError(MIG_E_LIMIT,
                       absl::StrCat(what, MemlockText(settings_.memlock())),
                       system_errno);
    case EFAULT:
    case EACCES:
    case EPERM:
      return MakeError(
          MIG_E_GUEST_MEMORY,
          absl::StrCat(what, "the memory is not mapped, truncated, or ",
                       region.use == MemoryUse::kReadHere ? "not readable"
                                                          : "not writable",
                       "; keep it mapped as mig_block says"),
          system_errno);
    default:
      return MakeError(
          MIG_E_DEVICE,
          absl::StrCat(what,
                       "see the kernel's log for the device, or try "
                       "another chunk-size"),
          system_errno);
  }
}

}  // namespace mig::rdma
