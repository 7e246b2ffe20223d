// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Deliberate mistakes, one at a time, by which the simulation shows that its
// oracle sees them. Only in a copy of the plugin that tests build for that
// (MIG_MUTATIONS); elsewhere all of it is false at compile time.
#ifndef PLUGIN_RDMA_MUTATION_H_
#define PLUGIN_RDMA_MUTATION_H_

#ifdef MIG_MUTATIONS
#include <cstdlib>
#include <cstring>
#endif

namespace mig::rdma {

enum class Mutation {
  kSkipFence,          // a round is whole before all of its fences came
  kZeroOvertakes,      // zeros are written behind the end of their round
  kDropLastSignalled,  // the last write of a list carries nothing
  kAcknowledgeEarly,   // a round is acknowledged before it is whole
  kIgnoreBadWr,        // what ibv_post_send refused counts as posted
  kReuseSlotEarly      // a control slot is used again before its completion
};

#ifdef MIG_MUTATIONS
// By the environment: MIG_MUTATION=skip-fence.
inline bool Mutated(Mutation mutation) {
  static constexpr const char* kNames[] = {
      "skip-fence",        "zero-overtakes", "drop-last-signalled",
      "acknowledge-early", "ignore-bad-wr",  "reuse-slot-early"};
  static const char* const asked = std::getenv("MIG_MUTATION");
  return asked != nullptr &&
         std::strcmp(asked, kNames[static_cast<int>(mutation)]) == 0;
}
#else
constexpr bool Mutated(Mutation) { return false; }
#endif

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_MUTATION_H_
