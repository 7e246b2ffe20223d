// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "rdma/caps_ladder.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <functional>
#include <string>
#include <utility>

#include "common/error.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace mig::rdma {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A provider: the errno for what is asked, or 0 with *cap changed to what it
// grants.
using Provider = std::function<int(bool extended, ibv_qp_cap* cap)>;

class ScriptedMaker final : public QpMaker {
 public:
  explicit ScriptedMaker(Provider provider) : provider_(std::move(provider)) {}
  int Make(bool extended, ibv_qp_cap* cap) override {
    EXPECT_FALSE(made) << "a second queue pair before the first was destroyed";
    const int failure = provider_(extended, cap);
    made = failure == 0;
    return failure;
  }
  void Unmake() override {
    EXPECT_TRUE(made);
    made = false;
  }
  bool made = false;

 private:
  Provider provider_;
};

QpWants Control(uint32_t inline_bytes = 56) {
  QpWants wants;
  wants.most = {.max_send_wr = 32,
                .max_recv_wr = 32,
                .max_send_sge = 2,
                .max_recv_sge = 1,
                .max_inline_data = inline_bytes};
  wants.least_send_depth = 8;
  wants.least_receive_depth = 8;
  return wants;
}

QpWants Data() {
  QpWants wants;
  wants.most = {.max_send_wr = 512,
                .max_recv_wr = 4,
                .max_send_sge = 1,
                .max_recv_sge = 1,
                .max_inline_data = 0};
  wants.least_send_depth = 16;
  wants.least_receive_depth = 4;
  return wants;
}

// What a provider made, and whether it was left made.
QpGrant Climb(const QpWants& wants, const Provider& provider) {
  ScriptedMaker maker(provider);
  QpGrant grant;
  const absl::Status status = ClimbDown(wants, &maker, &grant);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(maker.made);
  return grant;
}

absl::Status Fall(const QpWants& wants, const Provider& provider,
                  QpGrant* grant) {
  ScriptedMaker maker(provider);
  absl::Status status = ClimbDown(wants, &maker, grant);
  EXPECT_FALSE(status.ok());
  EXPECT_FALSE(maker.made) << "a queue pair was left behind";
  return status;
}

Provider InlineUpTo(uint32_t limit, int failure) {
  return [limit, failure](bool, ibv_qp_cap* cap) {
    return cap->max_inline_data > limit ? failure : 0;
  };
}

TEST(CapsLadder, TheFirstRungIsTheWholeWishByTheExtendedCall) {
  const QpGrant grant = Climb(Control(), [](bool, ibv_qp_cap*) { return 0; });
  ASSERT_EQ(grant.attempts.size(), 1u);
  EXPECT_TRUE(grant.extended);
  EXPECT_EQ(grant.granted.max_inline_data, 56u);
  EXPECT_EQ(grant.granted.max_send_sge, 2u);
}

// Whatever the limit and whatever the errno.
TEST(CapsLadder, C01InlineStepsDownToZeroWithAllElseFixed) {
  const std::pair<uint32_t, uint32_t> cases[] = {
      {0, 0}, {40, 40}, {63, 56}, {101, 56}, {400, 56}};
  for (const int failure : {EINVAL, ENOMEM, ENOSPC}) {
    for (const auto& [limit, expected] : cases) {
      const QpGrant grant = Climb(Control(), InlineUpTo(limit, failure));
      EXPECT_EQ(grant.granted.max_inline_data, expected) << limit;
      for (const QpAttempt& attempt : grant.attempts) {
        EXPECT_EQ(attempt.asked.max_send_wr, 32u);
        EXPECT_EQ(attempt.asked.max_recv_wr, 32u);
        EXPECT_EQ(attempt.asked.max_send_sge, 2u);
      }
    }
  }
}

TEST(CapsLadder, C01ALargeWishFindsARungNearTheLimit) {
  for (const uint32_t limit : {0u, 40u, 63u, 101u, 400u}) {
    const QpGrant grant = Climb(Control(4096), InlineUpTo(limit, EINVAL));
    EXPECT_LE(grant.granted.max_inline_data, limit);
    EXPECT_GE(2 * grant.granted.max_inline_data, limit) << limit;
    EXPECT_LE(grant.attempts.size(), 32u);
  }
}

TEST(CapsLadder, C02WhatComesBackIsTheGrantMoreOrLess) {
  for (const uint32_t granted : {0u, 28u, 400u}) {
    const QpGrant grant = Climb(Control(), [granted](bool, ibv_qp_cap* cap) {
      cap->max_inline_data = granted;
      cap->max_send_sge = 30;
      cap->max_send_wr = 63;
      return 0;
    });
    EXPECT_EQ(grant.attempts.size(), 1u);
    EXPECT_EQ(grant.granted.max_inline_data, granted);
    EXPECT_EQ(grant.granted.max_send_sge, 30u);
    EXPECT_EQ(grant.granted.max_send_wr, 63u);
    EXPECT_EQ(grant.asked.max_send_wr, 32u);
  }
}

// ENOMEM with plenty of memory: the product is what is limited.
Provider ProductUpTo(uint32_t limit) {
  return [limit](bool, ibv_qp_cap* cap) {
    const uint32_t wqe =
        64 + 16 * cap->max_send_sge + cap->max_inline_data / 8 * 8;
    return cap->max_send_wr * wqe > limit ? ENOMEM : 0;
  };
}

TEST(CapsLadder, C03FirstInlineThenSgesThenDepth) {
  const QpGrant less_inline = Climb(Control(), ProductUpTo(32 * 120));
  EXPECT_EQ(less_inline.granted.max_inline_data, 24u);
  EXPECT_EQ(less_inline.granted.max_send_sge, 2u);
  EXPECT_EQ(less_inline.granted.max_send_wr, 32u);

  const QpGrant less_sges = Climb(Control(), ProductUpTo(32 * 80));
  EXPECT_EQ(less_sges.granted.max_inline_data, 0u);
  EXPECT_EQ(less_sges.granted.max_send_sge, 1u);
  EXPECT_EQ(less_sges.granted.max_send_wr, 32u);

  const QpGrant less_depth = Climb(Control(), ProductUpTo(16 * 80));
  EXPECT_EQ(less_depth.granted.max_inline_data, 0u);
  EXPECT_EQ(less_depth.granted.max_send_sge, 1u);
  EXPECT_EQ(less_depth.granted.max_send_wr, 16u);
}

TEST(CapsLadder, C03TheErrorListsEveryAttemptAndFitsTheAbi) {
  QpGrant grant;
  const absl::Status status = Fall(
      Control(), [](bool, ibv_qp_cap*) { return ENOMEM; }, &grant);
  EXPECT_EQ(ErrorCode(status), MIG_E_DEVICE);
  EXPECT_EQ(ErrorErrno(status), ENOMEM);
  const std::string text(status.message());
  EXPECT_LT(text.size(), sizeof(mig_error::message));
  EXPECT_THAT(text, HasSubstr("ex ENOMEM, plain ENOMEM at depth/sges/inline "
                              "32/2/56 32/2/48 32/2/40 32/2/32 32/2/24 32/2/16 "
                              "32/2/0 32/1/0 16/1/0 8/1/0;"));
  EXPECT_EQ(grant.attempts.size(), 20u);
  EXPECT_THAT(text, HasSubstr("choose another device"));
}

TEST(CapsLadder, C03DepthStopsAtItsFloor) {
  QpGrant grant;
  QpWants wants = Data();
  wants.least_send_depth = 100;
  Fall(
      wants, [](bool, ibv_qp_cap*) { return ENOMEM; }, &grant)
      .IgnoreError();
  EXPECT_EQ(grant.attempts.back().asked.max_send_wr, 100u);
  EXPECT_EQ(grant.attempts.back().asked.max_recv_wr, 4u);
  // A wish below the floor is tried as it is, once.
  wants.most.max_send_wr = 50;
  Fall(
      wants, [](bool, ibv_qp_cap*) { return ENOMEM; }, &grant)
      .IgnoreError();
  EXPECT_EQ(grant.attempts.size(), 2u);
}

TEST(CapsLadder, ReceivesComeDownWithTheDepth) {
  const QpGrant grant = Climb(Control(), [](bool, ibv_qp_cap* cap) {
    return cap->max_recv_wr > 16 ? EINVAL : 0;
  });
  EXPECT_EQ(grant.granted.max_recv_wr, 16u);
}

TEST(CapsLadder, AnExtendedCallThatIsNotThereIsAskedOnce) {
  for (const int failure : {EOPNOTSUPP, ENOSYS}) {
    const QpGrant grant =
        Climb(Control(), [failure](bool extended, ibv_qp_cap* cap) {
          if (extended) return failure;
          return cap->max_inline_data > 40 ? EINVAL : 0;
        });
    EXPECT_FALSE(grant.extended);
    EXPECT_EQ(std::count_if(grant.attempts.begin(), grant.attempts.end(),
                            [](const QpAttempt& a) { return a.extended; }),
              1);
    EXPECT_EQ(grant.granted.max_inline_data, 40u);
  }
}

// Some refuse a comp_mask that they do not know with EINVAL, or with nothing.
TEST(CapsLadder, AnyFailureOfTheExtendedCallTriesThePlainOne) {
  for (const int failure : {EINVAL, EIO, EPERM, ENOMEM}) {
    const QpGrant grant =
        Climb(Control(), [failure](bool extended, ibv_qp_cap*) {
          return extended ? failure : 0;
        });
    EXPECT_FALSE(grant.extended);
    EXPECT_EQ(grant.attempts.size(), 2u);
    EXPECT_EQ(grant.granted.max_inline_data, 56u) << "inline was given away";
  }
}

// A provider may change the attributes of a call that it fails.
TEST(CapsLadder, EachAttemptAsksAnew) {
  int calls = 0;
  const QpGrant grant = Climb(Control(), [&calls](bool, ibv_qp_cap* cap) {
    EXPECT_EQ(cap->max_send_wr, 32u);
    if (++calls == 3) return 0;
    *cap = ibv_qp_cap{};
    return EINVAL;
  });
  EXPECT_EQ(grant.granted.max_send_wr, 32u);
}

TEST(CapsLadder, AGrantUnderTheFloorIsDestroyedAndNotUsed) {
  const QpGrant grant = Climb(Control(), [](bool, ibv_qp_cap* cap) {
    if (cap->max_inline_data > 0) cap->max_send_wr = 2;
    return 0;
  });
  EXPECT_EQ(grant.granted.max_send_wr, 32u);
  EXPECT_TRUE(grant.attempts.front().too_little);
  EXPECT_THAT(FormatAttempts(grant.attempts), HasSubstr("ex gave 2/2/56"));

  QpGrant none;
  Fall(
      Control(),
      [](bool, ibv_qp_cap* cap) {
        cap->max_recv_wr = 1;
        return 0;
      },
      &none)
      .IgnoreError();
}

// -- Each provider's own rule ------------------------------------------------

uint32_t AlignUp(uint32_t value, uint32_t to) {
  return (value + to - 1) / to * to;
}

uint32_t Mlx5Wqe(bool extended, const ibv_qp_cap& cap) {
  const uint32_t overhead = extended ? 32 : 192;
  const uint32_t with_inline =
      cap.max_inline_data > 0 ? AlignUp(4 + cap.max_inline_data, 16) : 0;
  return AlignUp(overhead + std::max(16 * cap.max_send_sge, with_inline), 64);
}

uint32_t Mlx5QueueBytes(bool extended, const ibv_qp_cap& cap) {
  return std::bit_ceil(cap.max_send_wr * Mlx5Wqe(extended, cap));
}

int Mlx5(bool extended, ibv_qp_cap* cap) {
  return Mlx5Wqe(extended, *cap) > 1024 ? EINVAL : 0;
}

// The table of DESIGN section 3.
TEST(CapsLadder, Mlx5QueuesAreAsSmallAsTheDesignSays) {
  const QpGrant control = Climb(Control(), Mlx5);
  EXPECT_TRUE(control.extended);
  EXPECT_EQ(Mlx5Wqe(true, control.granted), 128u);
  EXPECT_EQ(Mlx5QueueBytes(true, control.granted), 4096u);
  const QpGrant data = Climb(Data(), Mlx5);
  EXPECT_EQ(Mlx5Wqe(true, data.granted), 64u);
  EXPECT_EQ(Mlx5QueueBytes(true, data.granted), 32768u);
}

TEST(CapsLadder, Mlx5WithoutExtendedCallGetsThePlainQueue) {
  const QpGrant data = Climb(Data(), [](bool extended, ibv_qp_cap* cap) {
    return extended ? EOPNOTSUPP : Mlx5(extended, cap);
  });
  EXPECT_EQ(Mlx5Wqe(false, data.granted), 256u);
  EXPECT_EQ(Mlx5QueueBytes(false, data.granted), 131072u);
}

TEST(CapsLadder, Mlx5TooMuchInlineStepsDown) {
  const QpGrant grant = Climb(Control(2000), Mlx5);
  EXPECT_EQ(grant.granted.max_inline_data, 500u);
}

TEST(CapsLadder, Mlx4RefusesInlineOver1024) {
  const QpGrant grant = Climb(Control(1025), InlineUpTo(1024, EINVAL));
  EXPECT_EQ(grant.granted.max_inline_data, 512u);
  EXPECT_EQ(Climb(Control(), InlineUpTo(1024, EINVAL)).attempts.size(), 1u);
}

TEST(CapsLadder, IrdmaRefusesInlineOver101) {
  const QpGrant grant = Climb(Control(400), InlineUpTo(101, EINVAL));
  EXPECT_EQ(grant.granted.max_inline_data, 100u);
}

TEST(CapsLadder, RxeGrantsAtLeastWhatItsSgesTake) {
  const auto rxe = [](bool extended, ibv_qp_cap* cap) {
    if (extended) return EOPNOTSUPP;
    if (cap->max_inline_data > 512) return EINVAL;
    cap->max_inline_data =
        std::max(16 * cap->max_send_sge, cap->max_inline_data);
    return 0;
  };
  EXPECT_EQ(Climb(Control(), rxe).granted.max_inline_data, 56u);
  EXPECT_EQ(Climb(Control(0), rxe).granted.max_inline_data, 32u);
  EXPECT_EQ(Climb(Control(513), rxe).granted.max_inline_data, 256u);
}

TEST(CapsLadder, SiwGrantsAsAskedUpTo80) {
  EXPECT_EQ(Climb(Control(80), InlineUpTo(80, EINVAL)).granted.max_inline_data,
            80u);
  EXPECT_EQ(Climb(Control(81), InlineUpTo(80, EINVAL)).granted.max_inline_data,
            64u);
}

// A device that counts slots of 16 bytes for all of a work request.
TEST(CapsLadder, SlotCountingProvidersGrantMoreOrFail) {
  const auto bnxt = [](bool, ibv_qp_cap* cap) {
    const uint32_t slots =
        2 + std::max(cap->max_send_sge, (cap->max_inline_data + 15) / 16);
    if (slots * cap->max_send_wr > 32 * 5) return ENOMEM;
    cap->max_inline_data = (slots - 2) * 16;
    return 0;
  };
  const QpGrant grant = Climb(Control(), bnxt);
  EXPECT_EQ(grant.granted.max_inline_data, 48u);
  EXPECT_EQ(grant.granted.max_send_wr, 32u);
}

TEST(CapsLadder, AttemptsWithDifferentOutcomesAreToldApart) {
  std::vector<QpAttempt> attempts(3);
  attempts[0] = {.extended = true, .asked = Control().most, .failure = EINVAL};
  attempts[1] = {.asked = Control().most, .failure = ENOSPC};
  attempts[2] = {.asked = Control(48).most, .granted = Control(48).most};
  EXPECT_EQ(FormatAttempts(attempts),
            "ex EINVAL, plain ENOSPC at depth/sges/inline 32/2/56; plain gave "
            "32/2/48 at 32/2/48");
  EXPECT_THAT(FormatAttempts({}), Not(HasSubstr("depth")));
}

}  // namespace
}  // namespace mig::rdma
