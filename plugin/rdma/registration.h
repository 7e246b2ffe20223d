// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The registrations of one protection domain: made and undone by worker
// threads or, without any, in slices; kept for a later session where the host
// allows it (MIG_BLOCK_KEPT, rule 15).
//
// A chunk is one registration, in every mode. Without threads one system call
// may cover 64 MiB at most (rule 3), so there the chunk may be no larger:
// RegistrationUnit says what a side can do, and both sides use the smaller.
#ifndef PLUGIN_RDMA_REGISTRATION_H_
#define PLUGIN_RDMA_REGISTRATION_H_

#include <infiniband/verbs.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/host.h"
#include "common/ring_queue.h"
#include "rdma/memlock.h"
#include "rdma/worker_pool.h"
#include "verbs/verbs.h"

namespace mig::rdma {

inline constexpr uint64_t kMaxSlice = uint64_t{64} << 20;

// What is registered at once, and bears one key: `chunk_size`, or without
// threads at most kMaxSlice, unless nothing takes real time (`simulated`).
constexpr uint64_t RegistrationUnit(uint64_t chunk_size, unsigned threads,
                                    bool simulated) {
  return threads == 0 && !simulated && chunk_size > kMaxSlice ? kMaxSlice
                                                              : chunk_size;
}

// What a side's memory is registered for: the least that its role needs.
enum class MemoryUse {
  kReadHere,      // source: local read, no access flag
  kWrittenByPeer  // destination: LOCAL_WRITE | REMOTE_WRITE
};

// UNSUPPORTED where the device does not report on-demand paging for RC writes.
absl::Status CheckOdp(const ibv_device_attr_ex& attr);

struct RegistrationSettings {
  unsigned threads = 0;    // workers; 0: Step does the work
  bool on_demand = false;  // IBV_ACCESS_ON_DEMAND: CheckOdp said OK
  // Faults the destination's memory in before it is registered, by
  // MADV_POPULATE_WRITE. Not where a block is larger than the memory.
  bool prefault = false;
  uint64_t max_mr_size = UINT64_MAX;  // of the device
  uint64_t max_mr = UINT64_MAX;       // registrations that the device can have
  // The limit of pinned memory that the device counts against.
  std::function<Memlock()> memlock = ReadMemlock;
};

struct RegistrationStats {
  uint64_t registrations = 0;  // made
  uint64_t reused = 0;         // found registered by an earlier session
  uint64_t deregistrations = 0;
  uint64_t bytes = 0;        // registered now
  uint64_t register_ns = 0;  // in registration calls, summed over threads
  uint64_t deregister_ns = 0;
  uint64_t prefault_ns = 0;
};

class RegistrationCache;

// One session's use of one block's registrations in one cache. All calls by
// the session, serialised (rule 2); the cache's threads work beside them.
class BlockRegistration {
 public:
  struct ReadyChunk {
    uint32_t chunk = 0;
    uint32_t lkey = 0;
    uint32_t rkey = 0;
  };

  // Release, and waits for calls that touch the block's memory; without
  // threads it deregisters, too.
  ~BlockRegistration();

  uint32_t chunk_count() const { return chunk_count_; }
  uint64_t chunk_size() const { return chunk_size_; }
  // Bytes that would be pinned if all were asked for: what is not registered.
  uint64_t MissingBytes() const;

  // Starts to register chunks [first, first + count), those not asked for
  // before; chunks out of range are ignored. Never waits. On demand or pinned:
  // ask for all at once.
  void Ask(uint32_t first, uint32_t count = 1);
  void AskAll() { Ask(0, chunk_count_); }
  // Moves chunks that got ready, in the order in which they did, to `out`, and
  // returns how many. Errors: the first registration that failed, always
  // again: LIMIT, GUEST_MEMORY, DEVICE.
  absl::StatusOr<size_t> TakeReady(std::span<ReadyChunk> out);
  // Bytes asked for and bytes of them ready: for the PREPARING event.
  uint64_t asked_bytes() const;
  uint64_t ready_bytes() const;

  // Starts the end: what is queued is dropped, and unless the block is kept or
  // another session uses it too, all is deregistered. Keys told to a peer must
  // be out of use. No Ask or TakeReady afterwards. Idempotent, never waits.
  void Release();
  // Whether the end came: nothing of the block is registered for this session
  // or being registered. The block's memory may go.
  bool released() const;

 private:
  friend class RegistrationCache;
  struct Region;
  BlockRegistration(RegistrationCache* cache, Region* region,
                    std::function<void()> wake);
  void ReleaseLocked();

  RegistrationCache* const cache_;
  const std::function<void()> wake_;
  const uint32_t chunk_count_;
  const uint64_t chunk_size_;
  // Under the cache's lock:
  Region* region_;  // null when nothing of it is this session's any more
  bool releasing_ = false;
  std::vector<bool> asked_;
  uint64_t asked_bytes_ = 0;
  uint64_t ready_bytes_ = 0;
  std::vector<ReadyChunk> ready_;  // not taken yet from `taken_` on
  size_t taken_ = 0;
  absl::Status failure_;
};

// Belongs to a context's device. Any thread: sessions share it. Its lock is
// never held during a system call.
class RegistrationCache {
 public:
  struct Request {
    std::string name;  // of the block, for messages
    std::byte* base = nullptr;
    uint64_t length = 0;
    uint64_t chunk_size = 0;
    MemoryUse use = MemoryUse::kReadHere;
    bool kept = false;  // MIG_BLOCK_KEPT
    // Called by a worker when TakeReady or released have news; from any
    // thread, under the cache's lock: it must neither wait nor call back.
    // Writing an eventfd is what it is for. May be empty.
    std::function<void()> wake = {};
  };

  // `verbs`, `pd` and `host` must outlive it. Errors: LIMIT (threads).
  static absl::StatusOr<std::unique_ptr<RegistrationCache>> Create(
      verbs::Verbs* verbs, ibv_pd* pd, const Host* host,
      RegistrationSettings settings);
  // Deregisters what is kept, and joins the threads. Every BlockRegistration
  // must be gone.
  ~RegistrationCache();

  // The block's registrations, none made yet, or those kept from an earlier
  // session with the same memory, chunk size and use. What was kept and
  // overlaps otherwise is deregistered. Errors: OPTION (chunk size too large
  // for no threads), LIMIT (of the device, naming it and the remedy).
  absl::StatusOr<std::unique_ptr<BlockRegistration>> Open(Request request);
  // LIMIT where the missing bytes of all these can't be pinned together: need,
  // limit, remedy. To be asked at exchange, before any AskAll. On-demand
  // registrations pin nothing.
  absl::Status CheckPinnable(
      std::span<const BlockRegistration* const> blocks) const;

  // Without threads: does at most one system call, for at most kMaxSlice of
  // memory. A registration that takes simulated time begins with one call and
  // is done in the first one behind its end. True if there is more to do: call
  // again, after other work.
  bool Step();
  // Whether Step has something to do.
  bool HasWork() const;
  // When it has; MIG_NO_DEADLINE: not before a call brings something.
  uint64_t DueNs() const;

  RegistrationStats stats() const;

 private:
  friend class BlockRegistration;
  using Region = BlockRegistration::Region;
  struct Job {
    enum class Kind { kPrefault, kRegister, kDeregister };
    Kind kind = Kind::kRegister;
    Region* region = nullptr;
    uint32_t chunk = 0;
  };

  RegistrationCache(verbs::Verbs* verbs, ibv_pd* pd, const Host* host,
                    RegistrationSettings settings);
  // All below with the lock held; Run... give it up during the system call.
  using Lock = std::unique_lock<std::mutex>;
  void Work(const std::stop_token& stop);
  bool TakeJob(Job* job);
  bool BeginNext();
  void Run(const Job& job, Lock* lock);
  void RunPrefault(const Job& job, Lock* lock);
  void RunRegister(const Job& job, Lock* lock);
  void RunDeregister(const Job& job, Lock* lock);
  void Queue(Region* region, uint32_t chunk);
  void QueueUndo(Region* region, uint32_t chunk);
  void Deliver(Region* region, uint32_t chunk, const absl::Status& failure);
  void Undo(Region* region);
  void DropJobs(const Region* region);
  void FreeIfDone(Region* region);
  uint64_t GoingBytes() const;
  unsigned int AccessOf(MemoryUse use) const;
  absl::Status RegisterError(const Region& region, uint32_t chunk,
                             int system_errno) const;
  absl::Status CheckLimits(const Request& request) const;

  verbs::Verbs* const verbs_;
  ibv_pd* const pd_;
  const Host* const host_;
  const RegistrationSettings settings_;

  mutable std::mutex lock_;
  std::condition_variable_any work_;  // a job was queued
  std::condition_variable done_;      // a job is done
  // Taken in this order: what goes makes room for what comes.
  RingQueue<Job> undo_jobs_;
  RingQueue<Job> faulted_jobs_;  // registrations of memory faulted in
  RingQueue<Job> jobs_;
  // Of simulated time: whether the next registration has begun, and its end.
  bool begun_ = false;
  uint64_t done_ns_ = 0;
  std::vector<std::unique_ptr<Region>> regions_;
  RegistrationStats stats_;
  WorkerPool pool_;  // last: joined before the rest goes
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_REGISTRATION_H_
