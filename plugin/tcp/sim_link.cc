// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/sim_link.h"

#include <algorithm>
#include <cerrno>
#include <utility>

namespace mig::tcp {
namespace {

using Kind = SimFault::Kind;
using Call = SimFaults::Call;

// 0 for what is there already, as StreamDue has it.
uint64_t FromNow(uint64_t ns, uint64_t now_ns) { return ns <= now_ns ? 0 : ns; }

}  // namespace

SimLink::SimLink(std::shared_ptr<SimSide> connecting,
                 std::shared_ptr<SimSide> listening, uint64_t now_ns,
                 uint64_t delay_ns)
    : sides_{Side(std::move(connecting)), Side(std::move(listening))},
      // There and back; the listening side waits for the answer to its own.
      connected_ns_(now_ns + delay_ns + sides_[kConnecting].out.latency_ns() +
                    sides_[kListening].out.latency_ns()),
      acceptable_ns_(connected_ns_ + sides_[kConnecting].out.latency_ns()),
      settled_ns_(now_ns) {}

uint64_t SimLink::NextResetNs() const {
  uint64_t next = kNever;
  if (cut_ns_ != kNever) return next;
  for (const Side& side : sides_) {
    for (const SimFault& fault : side.shared->faults.all()) {
      if (!fault.timed || fault.kind != Kind::kReset) continue;
      const uint64_t at_ns = AtNs(side, fault);
      if (at_ns >= settled_ns_) next = std::min(next, at_ns);
    }
  }
  return next;
}

void SimLink::Settle(uint64_t now_ns) {
  if (now_ns < settled_ns_) return;
  std::vector<Timed> due;
  for (size_t end = 0; end < sides_.size(); ++end) {
    for (const SimFault& fault : sides_[end].shared->faults.all()) {
      if (!fault.timed) continue;
      const uint64_t at_ns = AtNs(sides_[end], fault);
      if (at_ns >= settled_ns_ && at_ns <= now_ns) {
        due.push_back({at_ns, end, &fault});
      }
    }
  }
  settled_ns_ = now_ns + 1;
  std::stable_sort(due.begin(), due.end(), [](const Timed& a, const Timed& b) {
    return a.at_ns < b.at_ns;
  });
  for (const Timed& timed : due) Apply(timed);
}

void SimLink::Apply(const Timed& timed) {
  switch (timed.fault->kind) {
    case Kind::kReset:
      if (cut_ns_ != kNever) return;
      for (Side& side : sides_) {
        side.reset_ns = std::min(side.reset_ns, timed.at_ns);
      }
      return;
    case Kind::kCut:
      return Cut(timed.at_ns);
    case Kind::kStall:
      return sides_[timed.end].out.Stall(timed.at_ns,
                                         timed.at_ns + timed.fault->value);
    default:
      return;  // no other has a time
  }
}

void SimLink::Cut(uint64_t at_ns) {
  cut_ns_ = std::min(cut_ns_, at_ns);
  for (Side& side : sides_) {
    side.out.Cut(at_ns);
    // Neither do resets pass.
    if (side.reset_ns > at_ns) side.reset_ns = kNever;
    if (side.gone_ns > at_ns) side.gone_ns = kNever;
  }
}

uint64_t SimLink::ConnectedNs(uint64_t now_ns) {
  Settle(now_ns);
  const uint64_t broken_ns =
      std::min(sides_[kConnecting].reset_ns, NextResetNs());
  return std::min(connected_ns_ > cut_ns_ ? kNever : connected_ns_, broken_ns);
}

int SimLink::ConnectError(uint64_t now_ns) {
  Settle(now_ns);
  return now_ns >= sides_[kConnecting].reset_ns ? ECONNRESET : 0;
}

uint64_t SimLink::AcceptableNs(uint64_t now_ns) {
  Settle(now_ns);
  if (now_ns >= sides_[kListening].reset_ns) return kNever;
  return acceptable_ns_ > cut_ns_ ? kNever : acceptable_ns_;
}

size_t SimLink::Appetite(Side* side, uint64_t now_ns, uint64_t* again_ns) {
  if (!side->shared->config.unkind) return SIZE_MAX;
  constexpr uint64_t kOneInSoMany = 4;
  constexpr uint64_t kMostWaitNs = 20'000;
  constexpr uint64_t kMostBits = 15;
  Random& random = side->shared->random;
  if (random.Below(kOneInSoMany) == 0) {
    *again_ns = now_ns + 1 + random.Below(kMostWaitNs);
    return 0;
  }
  // Any order of magnitude is as likely as another.
  return 1 + random.Below(uint64_t{1} << random.Below(kMostBits));
}

ssize_t SimLink::Read(End end, std::span<const struct iovec> to,
                      uint64_t now_ns) {
  Settle(now_ns);
  Side& mine = sides_[end];
  if (now_ns >= mine.reset_ns) return -ECONNRESET;
  SimPipe& in = Other(end).out;
  if (in.NextNs() > now_ns || now_ns < mine.read_again_ns) return -EAGAIN;
  const size_t most = Appetite(&mine, now_ns, &mine.read_again_ns);
  if (most == 0) return -EAGAIN;
  SimFaults& faults = mine.shared->faults;
  const SimFault* const fault =
      faults.Find(Kind::kRead, faults.Count(Call::kRead));
  if (fault != nullptr) return -fault->error;
  if (in.AtEnd(now_ns)) return -in.end_error();
  return static_cast<ssize_t>(in.Take(to, most, now_ns));
}

ssize_t SimLink::WriteFaults(End end, uint64_t now_ns, size_t* most) {
  Side& mine = sides_[end];
  SimFaults& faults = mine.shared->faults;
  const uint64_t number = faults.Count(Call::kWrite);
  if (const SimFault* stall = faults.Find(Kind::kStall, number)) {
    mine.out.Stall(now_ns, now_ns + stall->value);
  }
  if (faults.Find(Kind::kCut, number) != nullptr) Cut(now_ns);
  if (const SimFault* few = faults.Find(Kind::kShort, number)) {
    *most = std::min<uint64_t>(*most, few->value);
  }
  if (faults.Find(Kind::kReset, number) != nullptr) {
    Reset(end, now_ns);
    return -ECONNRESET;
  }
  if (faults.Find(Kind::kEof, number) != nullptr) {
    mine.out.End(0, now_ns);
    return -EPIPE;
  }
  const SimFault* const fault = faults.Find(Kind::kWrite, number);
  return fault == nullptr ? 0 : -fault->error;
}

ssize_t SimLink::Write(End end, std::span<const struct iovec> from,
                       uint64_t now_ns) {
  Settle(now_ns);
  Side& mine = sides_[end];
  if (now_ns >= mine.reset_ns) return -ECONNRESET;
  if (mine.out.ended() || now_ns >= mine.gone_ns) return -EPIPE;
  if (mine.out.Room() == 0 || now_ns < mine.write_again_ns) return -EAGAIN;
  size_t most = Appetite(&mine, now_ns, &mine.write_again_ns);
  if (most == 0) return -EAGAIN;
  if (const ssize_t failed = WriteFaults(end, now_ns, &most); failed != 0) {
    return failed;
  }
  const size_t sent = mine.out.Put(from, most, now_ns);
  Side& other = Other(end);
  if (other.closed && cut_ns_ == kNever) {
    mine.gone_ns =
        std::min(mine.gone_ns, mine.out.FirstNs() + other.out.latency_ns());
    mine.out.Clear();
  }
  return static_cast<ssize_t>(sent);
}

void SimLink::ShutdownWrite(End end, uint64_t now_ns) {
  Settle(now_ns);
  sides_[end].out.End(0, now_ns);
}

StreamDue SimLink::Due(End end, uint64_t now_ns) {
  Settle(now_ns);
  const Side& mine = sides_[end];
  if (now_ns >= mine.reset_ns) return {};
  const uint64_t broken_ns = std::min(mine.reset_ns, NextResetNs());
  uint64_t write_ns = mine.gone_ns;
  if (mine.out.ended()) {
    write_ns = 0;
  } else if (mine.out.Room() > 0) {
    write_ns = std::min(write_ns, mine.write_again_ns);
  }
  const uint64_t read_ns =
      std::max(Other(end).out.NextNs(), mine.read_again_ns);
  return {FromNow(std::min(read_ns, broken_ns), now_ns),
          FromNow(std::min(write_ns, broken_ns), now_ns)};
}

void SimLink::Close(End end, uint64_t now_ns) {
  Settle(now_ns);
  Side& mine = sides_[end];
  Side& other = Other(end);
  mine.closed = true;
  const uint64_t latency_ns = mine.out.latency_ns();
  const uint64_t first_ns = other.out.FirstNs();
  uint64_t gone_ns = kNever;
  if (first_ns <= now_ns) {
    mine.out.DropUnsent(now_ns);
    mine.out.End(ECONNRESET, now_ns);
    gone_ns = now_ns + latency_ns;
  } else {
    mine.out.End(0, now_ns);
    if (first_ns != kNever) gone_ns = first_ns + latency_ns;
  }
  if (cut_ns_ != kNever) return;
  other.gone_ns = std::min(other.gone_ns, gone_ns);
  other.out.Clear();
}

void SimLink::Reset(End end, uint64_t now_ns) {
  Settle(now_ns);
  Side& mine = sides_[end];
  Side& other = Other(end);
  mine.reset_ns = std::min(mine.reset_ns, now_ns);
  if (cut_ns_ != kNever) return;
  other.reset_ns = std::min(other.reset_ns, now_ns + mine.out.latency_ns());
}

}  // namespace mig::tcp
