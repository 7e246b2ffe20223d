// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/resolver.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "common/error.h"
#include "common/unique_fd.h"

namespace mig {

struct Resolver::Shared {
  std::string host;
  std::string port;
  UniqueFd wake;
  std::optional<absl::StatusOr<std::vector<SocketAddress>>> result;
  std::atomic<bool> done = false;
};

Resolver::Resolver(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)) {}

Resolver::~Resolver() = default;

void* Resolver::Run(void* argument) {
  const std::unique_ptr<std::shared_ptr<Shared>> owned(
      static_cast<std::shared_ptr<Shared>*>(argument));
  Shared& shared = **owned;
  shared.result = Resolve(shared.host, shared.port, /*passive=*/false,
                          /*numeric_only=*/false);
  shared.done.store(true, std::memory_order_release);
  const uint64_t one = 1;
  (void)!write(shared.wake.get(), &one, sizeof(one));
  return nullptr;
}

absl::StatusOr<std::unique_ptr<Resolver>> Resolver::Start(std::string host,
                                                          std::string port,
                                                          int wake_fd) {
  auto shared = std::make_shared<Shared>();
  shared->host = std::move(host);
  shared->port = std::move(port);
  shared->wake.Reset(fcntl(wake_fd, F_DUPFD_CLOEXEC, 0));
  auto argument = std::make_unique<std::shared_ptr<Shared>>(shared);
  // The thread is born with every signal blocked: the host's are the host's.
  sigset_t all;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setsigmask_np(&attributes, &all);
  pthread_t thread = {};
  const int failure =
      pthread_create(&thread, &attributes, &Resolver::Run, argument.get());
  pthread_attr_destroy(&attributes);
  if (failure != 0) {
    return MakeSystemError(MIG_E_LIMIT,
                           "can't start a thread to look a name up: give a "
                           "numeric address, or raise the limit (ulimit -u)",
                           failure);
  }
  (void)argument.release();
  return std::unique_ptr<Resolver>(new Resolver(std::move(shared)));
}

bool Resolver::done() const {
  return shared_->done.load(std::memory_order_acquire);
}

absl::StatusOr<std::vector<SocketAddress>> Resolver::Take() {
  return *std::move(shared_->result);
}

}  // namespace mig
