// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Where a node meets other processes: its listening sockets, by address and
// port, and its links. Served by Drive; its descriptor is readable whenever
// there is something to serve, so that a sleeping user wakes.
#ifndef PLUGIN_SOFT_VERBS_PROCESS_PORT_H_
#define PLUGIN_SOFT_VERBS_PROCESS_PORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "soft-verbs/cm.h"
#include "soft-verbs/process_link.h"
#include "soft-verbs/shared_segment.h"

namespace mig::soft {

// Used under the fabric's lock.
class ProcessPort {
 public:
  explicit ProcessPort(Node* node);
  ~ProcessPort();

  int fd() const { return poller_.get(); }

  // These answer 0 or an errno.
  int Bind(const CmId* id, const std::string& address, uint16_t port);
  int Listen(const CmId* id);
  // ECONNREFUSED: nobody listens there; EACCES with a refusal: the system would
  // not let the two work together.
  int Connect(CmId* id, const CmMessage& request, std::string* refusal);
  // The id goes, with its listening socket or its link.
  void Forget(const CmId* id);

  void Drive();

 private:
  struct Peer {
    std::shared_ptr<ProcessLink> link;
    uint32_t id = 0;        // 0 until its request has come
    uint32_t listener = 0;  // of an accepted one
  };

  bool Watch(int fd);
  void AcceptAll(uint32_t listener, int socket);
  void Serve(int fd);
  void OnFirst(Peer* peer, const CmMessage& message);
  void Drop(int fd);

  Node* node_;
  OwnedFd poller_;
  std::map<uint32_t, OwnedFd> listeners_;  // by the id's number
  std::map<int, Peer> peers_;              // by descriptor
};

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_PROCESS_PORT_H_
