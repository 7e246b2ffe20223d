// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_RDMA_WORKER_POOL_H_
#define PLUGIN_RDMA_WORKER_POOL_H_

#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"

namespace mig::rdma {

// Threads that run one function until it is told to stop. They block all
// signals (mig_host_services), so that the host's handlers never run on them.
class WorkerPool {
 public:
  WorkerPool() = default;
  ~WorkerPool() { Join(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Each of `threads` threads calls `body` once; that returns soon after a stop
  // is asked for. Errors: LIMIT; then no thread is left.
  absl::Status Start(unsigned threads,
                     const std::function<void(std::stop_token)>& body);
  // Asks all to stop, and waits for them.
  void Join() { threads_.clear(); }
  size_t size() const { return threads_.size(); }

 private:
  std::vector<std::jthread> threads_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_WORKER_POOL_H_
