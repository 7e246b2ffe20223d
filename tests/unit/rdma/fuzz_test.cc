// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A whole migration whose one side says wrong things now and then: what its
// queue pairs send, write, and tell while they connect is mutated on its way to
// the device. The other side must end in its bounds, must not be written to
// outside its memory, and must say one thing only. The seeds are fixed: what
// fails once fails again.
#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
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
class Mutator {
 public:
  Mutator(uint64_t seed, uint32_t requests) : random_(seed) {
    const size_t changes = 1 + Below(3);
    for (size_t i = 0; i < changes; ++i) {
      places_.push_back(static_cast<uint32_t>(Below(requests)));
    }
    if (Below(16) == 0) private_data_ = true;
  }

  uint32_t requests() const { return request_; }
  // Whether the next work request is to be changed.
  bool Hits() {
    const uint32_t place = request_++;
    return std::find(places_.begin(), places_.end(), place) != places_.end();
  }
  bool HitsPrivateData() const { return private_data_; }
  size_t Below(size_t end) { return random_() % end; }

  // Never longer.
  void Change(std::span<uint8_t> bytes) {
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
  std::mt19937_64 random_;
  std::vector<uint32_t> places_;
  bool private_data_ = false;
  uint32_t request_ = 0;
};

// Posting knows only the queue pair, so whose it is has to be kept here.
Mutator* g_mutator = nullptr;
int (*g_post_send)(ibv_qp*, ibv_send_wr*, ibv_send_wr**) = nullptr;

void ChangeWrite(ibv_send_wr* wr) {
  switch (g_mutator->Below(3)) {
    case 0:
      wr->wr.rdma.rkey ^= 1u << g_mutator->Below(32);
      break;
    case 1:
      wr->wr.rdma.remote_addr ^= uint64_t{1} << g_mutator->Below(64);
      break;
    default:
      wr->wr.rdma.remote_addr += kPages * kPageBytes - 1;
  }
}

std::span<uint8_t> BytesOf(const ibv_sge& piece) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return {reinterpret_cast<uint8_t*>(piece.addr), piece.length};
}

// Inline data belongs to the sender's caller: a copy is changed. All else lies
// in registered slots, and is changed there.
void ChangeSend(ibv_send_wr* wr, std::vector<uint8_t>* copy,
                std::vector<ibv_sge>* pieces) {
  pieces->assign(wr->sg_list, wr->sg_list + wr->num_sge);
  if ((wr->send_flags & IBV_SEND_INLINE) != 0) {
    for (const ibv_sge& piece : *pieces) {
      const std::span<uint8_t> from = BytesOf(piece);
      copy->insert(copy->end(), from.begin(), from.end());
    }
    pieces->assign(1, {reinterpret_cast<uintptr_t>(copy->data()),
                       static_cast<uint32_t>(copy->size()), 0});
  }
  ibv_sge& piece = pieces->front();
  if (g_mutator->Below(6) == 0 && piece.length > 0) {
    piece.length = static_cast<uint32_t>(g_mutator->Below(piece.length));
  } else {
    g_mutator->Change(BytesOf(piece));
  }
  wr->sg_list = pieces->data();
  wr->num_sge = static_cast<int>(pieces->size());
}

// One at a time: a copy is valid as long as its post.
int PostMutated(ibv_qp* qp, ibv_send_wr* wr, ibv_send_wr** bad) {
  for (; wr != nullptr; wr = wr->next) {
    ibv_send_wr one = *wr;
    one.next = nullptr;
    std::vector<uint8_t> copy;
    std::vector<ibv_sge> pieces;
    if (g_mutator->Hits()) {
      if (one.opcode == IBV_WR_RDMA_WRITE) {
        ChangeWrite(&one);
      } else {
        ChangeSend(&one, &copy, &pieces);
      }
    }
    ibv_send_wr* refused = nullptr;
    const int failure = g_post_send(qp, &one, &refused);
    if (failure != 0) {
      *bad = wr;
      return failure;
    }
  }
  return 0;
}

class MutatingVerbs final : public soft::SoftVerbs {
 public:
  using soft::SoftVerbs::SoftVerbs;
  int CmCreateQpEx(rdma_cm_id* id, ibv_qp_init_attr_ex* attr) override {
    const int answer = soft::SoftVerbs::CmCreateQpEx(id, attr);
    if (answer == 0) Hook(id->qp);
    return answer;
  }
  int CmConnect(rdma_cm_id* id, rdma_conn_param* param) override {
    return soft::SoftVerbs::CmConnect(id, Changed(param));
  }
  int CmAccept(rdma_cm_id* id, rdma_conn_param* param) override {
    return soft::SoftVerbs::CmAccept(id, Changed(param));
  }

 private:
  static void Hook(ibv_qp* qp) {
    auto& post = qp->context->ops.post_send;
    if (post == PostMutated) return;
    g_post_send = post;
    post = PostMutated;
  }
  rdma_conn_param* Changed(rdma_conn_param* param) {
    if (!g_mutator->HitsPrivateData() || param == nullptr) return param;
    const auto* from = static_cast<const uint8_t*>(param->private_data);
    private_data_.assign(from, from + param->private_data_len);
    g_mutator->Change(private_data_);
    param->private_data = private_data_.data();
    return param;
  }
  std::vector<uint8_t> private_data_;
};

class FuzzTest : public SessionTest {
 protected:
  void MakeMutated(uint32_t role, bool pinned) {
    s.reset();
    d.reset();
    auto fabric = std::make_shared<soft::Fabric>();
    const auto make = [&](uint32_t side, uint64_t seed) {
      const auto config = soft::ParseConfig("mlx5,landing=random");
      EXPECT_TRUE(config.ok()) << config.status();
      std::unique_ptr<soft::SoftVerbs> verbs;
      if (side == role) {
        verbs = std::make_unique<MutatingVerbs>(*config, &host.host(), fabric,
                                                seed);
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
    Mutator none(0, 1u << 30);
    g_mutator = &none;
    MakeMutated(role, /*pinned=*/true);
    Migrate();
    ASSERT_TRUE(s->Has(MIG_EVENT_COMMITTED)) << s->FailureCode();
    CloseBoth();
    int failed = 0;
    for (int seed = 1; seed <= kConversations; ++seed) {
      SCOPED_TRACE(absl::StrCat("role ", role, " seed ", seed));
      Mutator mutator(static_cast<uint64_t>(seed) * 2 + role, none.requests());
      g_mutator = &mutator;
      MakeMutated(role, /*pinned=*/seed % 2 == 0);
      Migrate();
      if (s->Ended() || d->Ended()) ++failed;
      EXPECT_LE(Failures(*s), 1);
      EXPECT_LE(Failures(*d), 1);
      EXPECT_TRUE(!s->Has(MIG_EVENT_COMMITTED) || d->Has(MIG_EVENT_HANDOVER))
          << "the source's guest is gone, and the destination never had it";
      CloseBoth();
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
