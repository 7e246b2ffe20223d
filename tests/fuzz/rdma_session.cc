// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A whole RDMA session of MIG_FUZZ_ROLE on a soft device, under a clock that
// goes from one deadline to the next. Its peer is a session too, whose SENDs,
// WRITEs and private data a script changes; the script has moves for both hosts
// as well. Both must end in their bounds, say one thing only, and write nothing
// outside the destination's block, whose neighbours nobody may touch.
#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "check.h"
#include "rdma_peer.h"
#include "script.h"
#include "session_pair.h"

namespace mig::rdma {
namespace {

constexpr uint32_t kHostile =
    MIG_FUZZ_ROLE == MIG_ROLE_SOURCE ? MIG_ROLE_DESTINATION : MIG_ROLE_SOURCE;
constexpr uint64_t kPages = 8;
constexpr uint64_t kRounds = 2;

class Run : public SessionTest {
 public:
  Run(const uint8_t* data, size_t size)
      : script_(data, size),
        flags_(script_.Byte()),
        next_move_(script_.Byte()),
        mutator_(&script_) {}
  ~Run() override {
    s.reset();
    d.reset();
  }
  void TestBody() override {}

  void Go() {
    auto fabric = std::make_shared<soft::Fabric>();
    s = Make(MIG_ROLE_SOURCE, fabric);
    d = Make(MIG_ROLE_DESTINATION, fabric);
    FUZZ_CHECK(s->AddBlock(7).ok() && d->AddBlock(9).ok());
    FUZZ_CHECK((*d)->Listen(kUri).ok() && (*s)->Connect(kUri).ok());
    Migrate();
    mutator_.off = true;
    CloseAll();
  }

 private:
  std::unique_ptr<SessionSide> Make(
      uint32_t role, const std::shared_ptr<soft::Fabric>& fabric) {
    static const soft::Config first = *soft::ParseConfig("mlx5");
    static const soft::Config other =
        *soft::ParseConfig("mlx4,landing=random,spread=on,devices=2");
    const soft::Config& config = (flags_ & 2) != 0 ? other : first;
    std::unique_ptr<soft::SoftVerbs> verbs;
    if (role == kHostile) {
      verbs = std::make_unique<MutatingVerbs>(config, &host.host(), fabric,
                                              role, &mutator_);
    } else {
      verbs =
          std::make_unique<soft::SoftVerbs>(config, &host.host(), fabric, role);
    }
    return std::make_unique<SessionSide>(&host, std::move(verbs), role, kPages,
                                         (flags_ & 1) != 0);
  }

  // As far as it gets. Waiting for a peer that says nothing ends by timeouts,
  // and a busy one's in its longest time.
  void Migrate() {
    const uint64_t end = host.now_ns + MIG_HOST_BUSY_MAX_NS + 60 * kSecond;
    for (int i = 0; i < 20'000; ++i) {
      if (Over(*s) && Over(*d)) return;
      if (!Tick(end)) return;
      React();
      if (!script_.ended() && next_move_-- == 0) {
        next_move_ = script_.Byte();
        MoveHost(script_.Below(2) == 0 ? s.get() : d.get());
      }
    }
    FUZZ_CHECK(!"comes to rest");
  }
  static bool Over(const SessionSide& side) {
    return side.Ended() || side.Has(MIG_EVENT_COMMITTED) ||
           side.Has(MIG_EVENT_PEER_CLOSED) || side.Has(MIG_EVENT_CLOSED);
  }

  // Both hosts go on wherever an event lets them.
  void React() {
    for (; s_seen_ < s->events.size(); ++s_seen_) {
      CheckSource(s->events[s_seen_]);
      switch (s->events[s_seen_].type) {
        case MIG_EVENT_CONNECTED:
          (*s)->Exchange().IgnoreError();
          break;
        case MIG_EVENT_BLOCKS_READY:
        case MIG_EVENT_ROUND_DONE:
          if (s->events[s_seen_].number >= kRounds) {
            offered_ = (*s)->Handover().ok() || offered_;
          } else {
            RunRound();
          }
          break;
        default:
          break;
      }
    }
    for (; d_seen_ < d->events.size(); ++d_seen_) {
      const uint32_t type = d->events[d_seen_].type;
      if (type == MIG_EVENT_CONNECTED) (*d)->Exchange().IgnoreError();
      if (type != MIG_EVENT_HANDOVER) continue;
      FUZZ_CHECK(!taken_);
      taken_ = (*d)->Handover().ok();
    }
  }
  // Nothing that the peer says ends what this side has not begun.
  void CheckSource(const struct mig_event& event) const {
    FUZZ_CHECK(event.type != MIG_EVENT_COMMITTED || offered_);
    FUZZ_CHECK(event.type != MIG_EVENT_ROUND_DONE || event.number <= begun_);
  }
  void RunRound() {
    if (!(*s)->RoundBegin(begun_ + 1, 0).ok()) return;
    ++begun_;
    const std::array<struct mig_range, 3> ranges = {
        {{0, 2 * kPageBytes, 7, 0, 0},
         {2 * kPageBytes, kPageBytes, 7, MIG_RANGE_ZERO, 0},
         {5 * kPageBytes, kPageBytes, 7, 0, 0}}};
    size_t accepted = 0;
    uint64_t partial = 0;
    (*s)->Write(ranges.data(), ranges.size(), sizeof(ranges[0]), &accepted,
                &partial)
        .IgnoreError();
    (*s)->RoundEnd(begun_).IgnoreError();
  }
  // What a host may do, in whatever state: errors are for it to see.
  void MoveHost(SessionSide* side) {
    switch (script_.Below(7)) {
      case 0:
      case 1: {
        static const std::string text(1u << 16, 't');
        const struct mig_iov iov = {text.data(), script_.Take<uint16_t>()};
        return (*side)->Send(0, 1, &iov, 1, sizeof(iov)).status().IgnoreError();
      }
      case 2:
        return (*side)
            ->HostBusy(script_.Byte() * kSecond)
            .status()
            .IgnoreError();
      case 3:
        return (*s)->RemoveBlock(7).IgnoreError();
      case 4:
        host.now_ns += script_.Byte() * (kSecond / 10);
        return;
      case 5:
        return (*side)->Cancel();
      default:
        return (*side)->Close();
    }
  }

  void CloseAll() {
    CloseBoth();
    for (const SessionSide* side : {s.get(), d.get()}) {
      FUZZ_CHECK(Failures(*side) <= 1);
      FUZZ_CHECK(side->Has(MIG_EVENT_CLOSED));
    }
    // The hostile one may have said so itself, where the guest was not taken.
    if (kHostile == MIG_ROLE_SOURCE) return;
    FUZZ_CHECK(!s->Has(MIG_EVENT_COMMITTED) || Failures(*s) == 0);
  }
  static long Failures(const SessionSide& side) {
    return std::count_if(side.events.begin(), side.events.end(),
                         [](const auto& event) {
                           return event.type == MIG_EVENT_ERROR ||
                                  event.type == MIG_EVENT_IN_DOUBT ||
                                  event.type == MIG_EVENT_HANDOVER_REFUSED;
                         });
  }

  fuzz::Script script_;
  const uint8_t flags_;
  uint8_t next_move_;  // ticks before it
  ScriptedMutator mutator_;
  size_t s_seen_ = 0;
  size_t d_seen_ = 0;
  uint64_t begun_ = 0;
  bool offered_ = false;
  bool taken_ = false;
};

}  // namespace
}  // namespace mig::rdma

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  mig::rdma::Run(data, size).Go();
  return 0;
}
