// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One connection of a simulated network, both ends of it: what a read or write
// meets at a time, and what faults and closing do to it.
#ifndef PLUGIN_TCP_SIM_LINK_H_
#define PLUGIN_TCP_SIM_LINK_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/random.h"
#include "tcp/sim_config.h"
#include "tcp/sim_faults.h"
#include "tcp/sim_pipe.h"
#include "tcp/stream.h"

namespace mig::tcp {

// What all connections of one side share.
struct SimSide {
  SimSide(const SimConfig& configured, uint64_t seed, uint64_t now_ns)
      : config(configured),
        faults(configured.faults),
        random(seed),
        start_ns(now_ns) {}
  const SimConfig config;
  SimFaults faults;
  Random random;
  const uint64_t start_ns;
};

// Not thread-safe. Times are given, and never go back. What a fault of a time
// does is made good on the next call, whichever it is.
class SimLink {
 public:
  static constexpr uint64_t kNever = SimPipe::kNever;
  enum End : size_t { kConnecting, kListening };

  // On its way from `now_ns` on; `delay_ns`: before it sets out.
  SimLink(std::shared_ptr<SimSide> connecting,
          std::shared_ptr<SimSide> listening, uint64_t now_ns,
          uint64_t delay_ns);

  // When the connecting end knows what came of it, and what: 0 or an errno.
  uint64_t ConnectedNs(uint64_t now_ns);
  int ConnectError(uint64_t now_ns);
  // When the listening end can accept it; kNever: not any more.
  uint64_t AcceptableNs(uint64_t now_ns);

  // As ByteStream.
  ssize_t Read(End end, std::span<const struct iovec> to, uint64_t now_ns);
  ssize_t Write(End end, std::span<const struct iovec> from, uint64_t now_ns);
  void ShutdownWrite(End end, uint64_t now_ns);
  StreamDue Due(End end, uint64_t now_ns);

  // This end is done with, once. As the system does: what it had not read makes
  // a reset of the end that the other reads (RFC 1122, 4.2.2.13), and so does
  // what still comes.
  void Close(End end, uint64_t now_ns);
  // Both ends are reset, by this one.
  void Reset(End end, uint64_t now_ns);

 private:
  struct Side {
    explicit Side(std::shared_ptr<SimSide> owner)
        : shared(std::move(owner)),
          out(shared->config.latency_ns, shared->config.bandwidth,
              shared->config.buffer) {}
    const std::shared_ptr<SimSide> shared;
    SimPipe out;
    bool closed = false;
    uint64_t reset_ns = kNever;  // from then on ECONNRESET
    uint64_t gone_ns = kNever;   // from then on nobody takes a write: EPIPE
    // Unkind: nothing before that, whatever there is.
    uint64_t read_again_ns = 0;
    uint64_t write_again_ns = 0;
  };
  struct Timed {
    uint64_t at_ns;
    size_t end;
    const SimFault* fault;
  };
  Side& Other(End end) { return sides_[1 - end]; }
  static uint64_t AtNs(const Side& side, const SimFault& fault) {
    return side.shared->start_ns + fault.at_ns;
  }
  // Does what the timed faults did up to now.
  void Settle(uint64_t now_ns);
  void Apply(const Timed& timed);
  // When the next timed fault resets it.
  uint64_t NextResetNs() const;
  void Cut(uint64_t at_ns);
  // How much a call moves, 0: nothing before *again_ns.
  static size_t Appetite(Side* side, uint64_t now_ns, uint64_t* again_ns);
  // What the faults of a write do; 0, or its -errno. *most: what it moves.
  ssize_t WriteFaults(End end, uint64_t now_ns, size_t* most);

  std::array<Side, 2> sides_;
  const uint64_t connected_ns_;
  const uint64_t acceptable_ns_;
  uint64_t settled_ns_;  // faults before that are done
  uint64_t cut_ns_ = kNever;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SIM_LINK_H_
