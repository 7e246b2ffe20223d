// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_TESTS_UNIT_SIM_FAKE_TRANSPORT_H_
#define MIGTRANSPORT_TESTS_UNIT_SIM_FAKE_TRANSPORT_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "engine/plugin_host.h"
#include "mig_transport.h"

namespace mig::sim {

// A transport without a peer that does what a test has told it, and keeps what
// it was given. There is one, since ops have no context of their own here.
struct FakeTransport {
  // What write takes at most in one call; a multiple of the page.
  uint64_t room = UINT64_MAX;
  // The call of write, counted from 1, that fails; 0: none.
  int fail_write = 0;
  // What the next calls of progress answer, an event each.
  std::deque<mig_event> events;
  // What the handover brings.
  uint32_t handover_outcome = MIG_EVENT_COMMITTED;

  std::vector<mig_range> taken;
  int writes = 0, rounds_begun = 0, rounds_ended = 0;
  int calls_after_error = 0;
  int handovers = 0, cancels = 0, closes = 0;
  bool failed = false;

  // The one that the ops work on; fresh after each Reset.
  static FakeTransport& Get();
  static void Reset() { Get() = FakeTransport(); }
  // A context of the plugin "fake".
  static std::unique_ptr<PluginContext> MakeContext();

  void Push(uint32_t type, uint64_t number = 0, int32_t code = MIG_OK);
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_TESTS_UNIT_SIM_FAKE_TRANSPORT_H_
