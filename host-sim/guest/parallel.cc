// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/parallel.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace mig::sim {

void ParallelFor(uint64_t count, unsigned threads,
                 const std::function<void(uint64_t)>& work) {
  if (threads == 0) {
    threads = std::clamp(std::thread::hardware_concurrency(), 1U, 16U);
  }
  std::atomic<uint64_t> next{0};
  const auto run = [&] {
    for (uint64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      work(i);
    }
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < threads && i < count; ++i) {
    try {
      helpers.emplace_back(run);
    } catch (const std::system_error&) {
      break;
    }
  }
  run();
  for (std::thread& helper : helpers) helper.join();
}

}  // namespace mig::sim
