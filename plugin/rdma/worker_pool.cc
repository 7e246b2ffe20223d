// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/worker_pool.h"

#include <pthread.h>

#include <csignal>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/error.h"

namespace mig::rdma {

absl::Status WorkerPool::Start(
    unsigned threads, const std::function<void(std::stop_token)>& body) {
  // A thread inherits the mask, so no signal can reach it even at its start.
  // The caller's own mask is as before when this returns (rule 5).
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failure = 0;
  try {
    threads_.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back(body);
  } catch (const std::system_error& error) {
    failure = error.code().value();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failure == 0) return absl::OkStatus();
  const size_t started = threads_.size();
  Join();
  return MakeSystemError(
      MIG_E_LIMIT,
      absl::StrCat("only ", started, " of ", threads,
                   " registration threads could be started; raise the limit "
                   "of processes (ulimit -u) or set a smaller `threads`"),
      failure);
}

}  // namespace mig::rdma
