// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A connection to a process on this machine: a socket for the connection
// manager's messages, and what comes with the first of them: the other side's
// table of registered memory, its queue pair, and the descriptor to wake it.
#ifndef PLUGIN_SOFT_VERBS_PROCESS_LINK_H_
#define PLUGIN_SOFT_VERBS_PROCESS_LINK_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/host.h"
#include "soft-verbs/cm.h"
#include "soft-verbs/memory_table.h"
#include "soft-verbs/qp_share.h"
#include "soft-verbs/shared_segment.h"

namespace mig::soft {

// The name under which a listener of this address and port is found.
// `address` is numeric, or "" for any.
std::string ListenerName(const std::string& address, uint16_t port);

class ProcessLink final : public CmWire,
                          public std::enable_shared_from_this<ProcessLink> {
 public:
  // Takes the socket over. Null without knowing whose it is. A link to another
  // user, or to a place that this process can't see, has a refusal() from the
  // start, and is of no use but to send that.
  static std::shared_ptr<ProcessLink> Make(OwnedFd socket, const Host* host);
  ~ProcessLink() override;

  int fd() const { return socket_.get(); }
  pid_t pid() const { return pid_; }
  bool dead() const { return dead_; }
  void set_dead() { dead_ = true; }

  void Send(CmId* from, const CmMessage& message) override;

  enum class Received { kMessage, kNothing, kEnd };
  // The next message; kEnd once the peer has gone or sent what is none.
  Received Receive(CmMessage* message);

  bool reachable() const override { return reachable_; }
  const std::string& refusal() const override { return refusal_; }
  std::unique_ptr<RemoteEnd> MakeEnd(bool iwarp) override;

  const Host* host() const { return host_; }
  const MemoryEntry* memory() const {
    return reinterpret_cast<const MemoryEntry*>(memory_.data());
  }
  size_t memory_capacity() const {
    return memory_.size() / sizeof(MemoryEntry);
  }
  // Wakes whoever sleeps on the other side's completion channel.
  void Wake() const;
  // Notes and logs why memory over there can't be reached, and what to do; the
  // first time.
  void SetUnreachable(int error);

 private:
  ProcessLink(OwnedFd socket, const Host* host, pid_t pid)
      : socket_(std::move(socket)), host_(host), pid_(pid) {}
  bool TakeDescriptors(std::vector<OwnedFd> fds);
  bool Probe(uint64_t address, uint64_t value);
  void Refuse(absl::string_view why);

  OwnedFd socket_;
  const Host* host_;
  pid_t pid_;
  bool dead_ = false;
  bool reachable_ = false;
  std::string refusal_;
  uint64_t cookie_ = 0;  // what the peer reads to see that it can
  OwnedFd wake_;
  SharedMapping memory_;
  std::unique_ptr<QpShare> share_;
};

// The queue pair at the other end of a link.
std::unique_ptr<RemoteEnd> MakeProcessEnd(std::shared_ptr<ProcessLink> link,
                                          std::unique_ptr<QpShare> share,
                                          bool iwarp);

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_PROCESS_LINK_H_
