// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A whole migration whose one side says wrong things now and then: what its
// queue pairs send, write, and tell while they connect is mutated on its way to
// the device. The other side must end in its bounds, must not be written to
// outside its memory, and must say one thing only. The seeds are fixed: what
// fails once fails again.
#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mutating_verbs.h"
#include "session_pair.h"

namespace mig::rdma {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kConversations = 300;  // for each role
#else
constexpr int kConversations = 2000;
#endif
constexpr uint64_t kPages = 8;

// What goes wrong, drawn from a seed: one to three work requests, each in one
// way.
class RandomMutator final : public Mutator {
 public:
  RandomMutator(uint64_t seed, uint32_t requests) : random_(seed) {
    const size_t changes = 1 + Below(3);
    for (size_t i = 0; i < changes; ++i) {
      places_.push_back(static_cast<uint32_t>(Below(requests)));
    }
    if (Below(16) == 0) private_data_ = true;
  }

  uint32_t requests() const { return request_; }
  bool Hits() override {
    const uint32_t place = request_++;
    return std::find(places_.begin(), places_.end(), place) != places_.end();
  }
  bool HitsPrivateData() override { return private_data_; }
  void ChangeWrite(ibv_qp* /*qp*/, ibv_send_wr* wr) override {
    switch (Below(3)) {
      case 0:
        wr->wr.rdma.rkey ^= 1u << Below(32);
        break;
      case 1:
        wr->wr.rdma.remote_addr ^= uint64_t{1} << Below(64);
        break;
      default:
        wr->wr.rdma.remote_addr += kPages * kPageBytes - 1;
    }
  }
  size_t ChangeSend(std::span<uint8_t> room, size_t length) override {
    if (Below(6) == 0 && length > 0) return Below(length);
    ChangePrivateData(room.first(length));
    return length;
  }
  void ChangePrivateData(std::span<uint8_t> bytes) override {
    if (bytes.empty()) return;
    // Headers are where the most is decided.
    const size_t head = std::min<size_t>(bytes.size(), 24);
    const size_t at = Below(Below(2) == 0 ? head : bytes.size());
    switch (Below(4)) {
      case 0:
        bytes[at] ^= static_cast<uint8_t>(1u << Below(8));
        break;
      case 1:
        bytes[at] = Below(2) == 0 ? 0xff : static_cast<uint8_t>(Below(256));
        break;
      case 2:
        // The type of another frame, with all else as it was.
        bytes[std::min<size_t>(4, bytes.size() - 1)] =
            static_cast<uint8_t>(1 + Below(23));
        break;
      default:
        for (size_t i = 0; i < 8 && at + i < bytes.size(); ++i) {
          bytes[at + i] = static_cast<uint8_t>(Below(2) == 0 ? 0 : Below(256));
        }
    }
  }

 private:
  size_t Below(size_t end) { return random_() % end; }

  std::mt19937_64 random_;
  std::vector<uint32_t> places_;
  bool private_data_ = false;
  uint32_t request_ = 0;
};

class FuzzTest : public SessionTest {
 protected:
  void MakeMutated(uint32_t role, bool pinned, Mutator* mutator) {
    s.reset();
    d.reset();
    auto fabric = std::make_shared<soft::Fabric>();
    const auto make = [&](uint32_t side, uint64_t seed) {
      const auto config = soft::ParseConfig("mlx5,landing=random");
      EXPECT_TRUE(config.ok()) << config.status();
      std::unique_ptr<soft::SoftVerbs> verbs;
      if (side == role) {
        verbs = std::make_unique<MutatingVerbs>(*config, &host.host(), fabric,
                                                seed, mutator);
      } else {
        verbs = std::make_unique<soft::SoftVerbs>(*config, &host.host(), fabric,
                                                  seed);
      }
      return std::make_unique<SessionSide>(&host, std::move(verbs), side,
                                           kPages, pinned);
    };
    s = make(MIG_ROLE_SOURCE, 2);
    d = make(MIG_ROLE_DESTINATION, 4);
  }

  // As far as it gets: whoever is in doubt about the other stops.
  void Migrate() {
    if (!Ready()) return;
    if (!Round(1) || s->Ended() || d->Ended()) return;
    const struct mig_iov iov = {"hello", 5};
    (*s)->Send(0, 1, &iov, 1, sizeof(iov)).status().IgnoreError();
    (*d)->Send(0, 1, &iov, 1, sizeof(iov)).status().IgnoreError();
    if (!(*s)->RoundBegin(2, 0).ok()) return;
    const struct mig_range zero = {0, 2 * kPageBytes, 7, MIG_RANGE_ZERO, 0};
    size_t accepted = 0;
    uint64_t partial = 0;
    (*s)->Write(&zero, 1, sizeof(zero), &accepted, &partial).IgnoreError();
    (*s)->RoundEnd(2).IgnoreError();
    RunUntil([this] { return RoundsDone() == 2 || s->Ended(); });
    (*s)->Handover().IgnoreError();
    RunUntil([this] { return d->Has(MIG_EVENT_HANDOVER) || d->Ended(); });
    if (d->Has(MIG_EVENT_HANDOVER)) (*d)->Handover().IgnoreError();
    RunUntil([this] { return s->Has(MIG_EVENT_COMMITTED) || s->Ended(); });
  }

  long RoundsDone() const {
    return std::count_if(s->events.begin(), s->events.end(), [](const auto& e) {
      return e.type == MIG_EVENT_ROUND_DONE;
    });
  }

  static int Failures(const SessionSide& side) {
    return static_cast<int>(std::count_if(
        side.events.begin(), side.events.end(), [](const auto& event) {
          return event.type == MIG_EVENT_ERROR ||
                 event.type == MIG_EVENT_IN_DOUBT ||
                 event.type == MIG_EVENT_HANDOVER_REFUSED;
        }));
  }

  void Fuzz(uint32_t role) {
    // An unchanged one first: how many work requests there are to change.
    RandomMutator none(0, 1u << 30);
    MakeMutated(role, /*pinned=*/true, &none);
    Migrate();
    EXPECT_TRUE(s->Has(MIG_EVENT_COMMITTED)) << s->FailureCode();
    CloseBoth();
    s.reset();
    d.reset();
    int failed = 0;
    for (int seed = 1; seed <= kConversations; ++seed) {
      SCOPED_TRACE(absl::StrCat("role ", role, " seed ", seed));
      RandomMutator mutator(static_cast<uint64_t>(seed) * 2 + role,
                            none.requests());
      MakeMutated(role, /*pinned=*/seed % 2 == 0, &mutator);
      Migrate();
      if (s->Ended() || d->Ended()) ++failed;
      EXPECT_LE(Failures(*s), 1);
      EXPECT_LE(Failures(*d), 1);
      EXPECT_TRUE(!s->Has(MIG_EVENT_COMMITTED) || d->Has(MIG_EVENT_HANDOVER))
          << "the source's guest is gone, and the destination never had it";
      CloseBoth();
      s.reset();
      d.reset();
      if (HasFailure()) return;
    }
    // Or nothing was tried: most of what is changed is seen.
    EXPECT_GT(failed, kConversations / 2);
  }
};

TEST_F(FuzzTest, C29MutatedSourcesEndADestinationCleanly) {
  Fuzz(MIG_ROLE_SOURCE);
}

TEST_F(FuzzTest, C29MutatedDestinationsEndASourceCleanly) {
  Fuzz(MIG_ROLE_DESTINATION);
}

}  // namespace
}  // namespace mig::rdma
