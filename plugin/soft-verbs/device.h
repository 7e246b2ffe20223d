// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A node: the devices of one SoftVerbs, with what they share, and what happens
// to them as a whole.
#ifndef PLUGIN_SOFT_VERBS_DEVICE_H_
#define PLUGIN_SOFT_VERBS_DEVICE_H_

#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/host.h"
#include "common/random.h"
#include "soft-verbs/config.h"
#include "soft-verbs/memory_table.h"
#include "soft-verbs/objects.h"
#include "soft-verbs/shared_segment.h"

namespace mig::soft {

struct Node;
class ProcessPort;

struct Device {
  Node* node = nullptr;
  ibv_device base = {};
  std::string address;  // of the interface; empty: any
  OwnedFd memory_file;  // that other processes read the table in
  std::unique_ptr<MemoryTable> memory;
  std::vector<Context*> contexts;
  Context* cm_context = nullptr;  // what ids on this device carry
  uint64_t pinned = 0;            // against memlock
  uint64_t port_free_ns = 0;      // when its port has sent what it was given
  uint32_t qps = 0;
  uint32_t cqs = 0;
  uint32_t pds = 0;
};

// What a right user never sees, of all its devices.
struct Mishaps {
  uint64_t not_ready = 0;    // answers that no receive was posted (RNR)
  uint64_t cq_overruns = 0;  // completions without a place
};

struct Node {
  Node(const Config& config, const Host* host, Fabric* fabric, uint64_t seed);
  ~Node();

  Config config;
  const Host* host;
  Fabric* fabric;
  Faults faults;
  Random random;
  uint64_t start_ns;
  bool timed;                    // anything costs time
  uint64_t thread_free_ns = 0;   // when its thread has done what it does
  uint64_t requests = 0;         // work requests posted so far
  uint64_t silent_until_ns = 0;  // a fault stopped its devices
  Mishaps mishaps;
  bool port_down = false;
  uint32_t next_handle = 1;
  std::vector<std::unique_ptr<Device>> devices;
  size_t next_device = 0;                // of Config::spread
  std::unique_ptr<ProcessPort> process;  // null: this process only

  bool Silent(uint64_t now) const { return now < silent_until_ns || port_down; }
};

// The context's own event queue, and that of every context of the device.
void PostAsync(Context* context, const ibv_async_event& event);
void PostQpEvent(Qp* qp, ibv_event_type type);
void PostPortEvent(Device* device, ibv_event_type type);

// Applies what the schedule has for work request `number`, or for the time.
void ApplyDueFaults(Node* node, uint64_t number, uint64_t now);

// The device is dead: its queue pairs fail and its contexts are of no more use.
void KillDevice(Device* device, bool removed);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_DEVICE_H_
