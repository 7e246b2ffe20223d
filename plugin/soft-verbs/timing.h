// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The fabric model: what the work of a device and of the thread that drives it
// costs, on the host's clock. All costs are 0 unless set.
//
// A device has one port, which sends one message after the other; but a short
// one of a queue pair that has no other waits for no queue of another pair,
// since a device takes turns between them. A node has one thread, whose work
// (doorbells, polling, waking up) delays all that it posts afterwards. What
// it polls it sees at once: only what it then does comes later.
#ifndef PLUGIN_SOFT_VERBS_TIMING_H_
#define PLUGIN_SOFT_VERBS_TIMING_H_

#include <cstdint>

namespace mig::soft {

struct Device;
struct Node;
struct Qp;

// Times in nanoseconds.
struct Costs {
  // -- Of the device ----------------------------------------------------------
  uint64_t wr_delay = 0;   // from sent to acknowledged, overlapping
  uint64_t wr_cost = 0;    // of the port, a work request
  uint64_t bandwidth = 0;  // bytes a second of the port
  uint64_t latency = 0;    // one way, overlapping; an acknowledgement's too
  uint64_t fetch = 0;      // to read a payload that is not inline, overlapping
  // -- Of the thread ----------------------------------------------------------
  uint64_t doorbell = 0;  // a call of ibv_post_send
  uint64_t post = 0;      // a work request in it
  uint64_t poll = 0;      // a completion
  uint64_t wake = 0;      // a completion that it sleeps for
  // -- Of registering (Verbs::RegistrationNs) ---------------------------------
  // A registration, and a page of it; and what is added for a page that is
  // written here, since it was never touched. Shared by so many threads.
  uint64_t registration = 0;
  uint64_t pin_page = 0;
  uint64_t fault_page = 0;
  uint64_t registration_threads = 1;

  bool operator==(const Costs&) const = default;
};

// The node's thread works so long.
void Spend(Node* node, uint64_t ns);
// A completion queue that was armed wakes it, if it has nothing to do.
void Wake(Node* node);

// When a work request of `bytes` that is posted now reaches the other side: 0
// at once.
uint64_t AdmitToPort(const Qp* qp, uint64_t bytes, bool fetched);
// What is done at `now` shows here then.
uint64_t AcknowledgedNs(const Qp* qp, uint64_t due, uint64_t now);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_TIMING_H_
