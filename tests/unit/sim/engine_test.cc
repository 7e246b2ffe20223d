// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The engines against a transport that does what each test says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>

#include "engine/mig_status.h"
#include "engine/source_engine.h"
#include "fake_transport.h"

namespace mig::sim {
namespace {

using ::testing::HasSubstr;

// A guest that keeps count of what is done to it.
class FakeGuest final : public GuestPort {
 public:
  absl::Status Run() override {
    ++runs;
    running_ = true;
    return absl::OkStatus();
  }
  absl::Status Stop() override {
    ++stops;
    running_ = false;
    return stop_status;
  }
  bool running() const override { return running_; }
  void SetThrottle(uint32_t percent) override { throttle = percent; }
  absl::StatusOr<StateSections> SaveState() override {
    return StateSections{{kSectionGuest, Bytes(10)}};
  }
  absl::Status LoadState(const StateSections& /*sections*/) override {
    return absl::OkStatus();
  }
  Bytes SaveExpected() override { return {}; }
  absl::Status Check(const Bytes& /*expected*/) override {
    return absl::OkStatus();
  }
  std::string Work() const override { return "nothing"; }

  int runs = 0, stops = 0;
  uint32_t throttle = 0;
  absl::Status stop_status;

 private:
  bool running_ = true;
};

// Reports the pages that a test has listed, a list a fetch.
class FakeTracker final : public DirtyTracker {
 public:
  absl::string_view name() const override { return "fake"; }
  absl::Status Start() override {
    started = true;
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> FetchAndClear(const GuestBlock& /*block*/,
                                         DirtyBitmap* out) override {
    uint64_t count = 0;
    if (fetches < dirty.size()) {
      for (const uint64_t page : dirty[fetches]) out->Set(page);
      count = dirty[fetches].size();
    }
    ++fetches;
    return count;
  }
  absl::Status Stop() override {
    started = false;
    return absl::OkStatus();
  }

  bool started = false;
  size_t fetches = 0;
  std::vector<std::vector<uint64_t>> dirty;
};

class SourceEngineTest : public ::testing::Test {
 protected:
  SourceEngineTest() {
    FakeTransport::Reset();
    context_ = FakeTransport::MakeContext();
    session_ = *Session::Create(*context_, MIG_ROLE_SOURCE, {});
    BlockSpec spec;
    spec.name = "ram";
    spec.size = uint64_t{64} * kPageSize;
    memory_ = std::make_unique<GuestMemory>(*GuestMemory::Create({spec}));
    options_.verify = false;
    options_.zero_detect = ZeroDetect::kOff;
  }

  SourceReport Migrate() {
    SourceEngine::Hooks hooks;
    hooks.on_phase = [this](Phase phase) {
      if (on_phase_) on_phase_(phase);
      // Nobody answers here: the report does not come.
      if (phase == Phase::kVerify) fake().Push(MIG_EVENT_PEER_CLOSED);
    };
    SourceEngine engine(options_, session_.get(), &interrupted_, memory_.get(),
                        &tracker_, &guest_, hooks);
    return engine.Run();
  }
  FakeTransport& fake() { return FakeTransport::Get(); }
  // How often each page was taken.
  std::map<uint64_t, int> Taken() {
    std::map<uint64_t, int> pages;
    for (const mig_range& range : fake().taken) {
      for (uint64_t at = 0; at < range.length; at += kPageSize) {
        ++pages[(range.offset + at) / kPageSize];
      }
    }
    return pages;
  }

  SourceOptions options_;
  std::atomic<bool> interrupted_{false};
  std::unique_ptr<PluginContext> context_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<GuestMemory> memory_;
  FakeTracker tracker_;
  FakeGuest guest_;
  std::function<void(Phase)> on_phase_;
};

TEST_F(SourceEngineTest, SendsEveryPageThenTheDirtyOnes) {
  tracker_.dirty = {{3, 5}, {5, 6}};  // after round 1, and when stopped
  const SourceReport report = Migrate();
  EXPECT_EQ(report.end, SourceEnd::kMigrated) << report.status;
  ASSERT_EQ(report.rounds.size(), 2U);
  EXPECT_EQ(report.rounds[0].pages, 64U);
  EXPECT_EQ(report.rounds[0].dirty_pages, 2U);
  EXPECT_EQ(report.rounds[1].pages, 3U) << "3, 5 and 6";
  const auto taken = Taken();
  EXPECT_EQ(taken.at(0), 1);
  EXPECT_EQ(taken.at(3), 2);
  EXPECT_EQ(taken.at(5), 2);
  EXPECT_EQ(taken.at(6), 2);
  EXPECT_EQ(guest_.stops, 1);
  EXPECT_EQ(guest_.runs, 0) << "the guest is the destination's";
  EXPECT_FALSE(tracker_.started);
  EXPECT_EQ(fake().closes, 1);
}

// Rule 6: what is left of a range goes on exactly where write stopped.
TEST_F(SourceEngineTest, Rule6BackpressureIsResumedExactly) {
  for (const uint64_t pages : {1, 3, 7, 63}) {
    FakeTransport::Reset();
    fake().room = pages * kPageSize;
    tracker_.fetches = 0;
    const SourceReport report = Migrate();
    EXPECT_EQ(report.end, SourceEnd::kMigrated) << report.status;
    uint64_t next = 0;
    for (const mig_range& range : fake().taken) {
      EXPECT_EQ(range.offset, next);
      EXPECT_LE(range.length, fake().room);
      next = range.offset + range.length;
    }
    EXPECT_EQ(next, 64 * kPageSize) << pages;
  }
}

// C32: the first error is the last call but those that end the session.
TEST_F(SourceEngineTest, C32NothingIsWrittenAfterAnError) {
  fake().room = 5 * kPageSize;
  fake().fail_write = 4;
  const SourceReport report = Migrate();
  EXPECT_EQ(report.end, SourceEnd::kFailed);
  EXPECT_EQ(MigCodeOf(report.status), MIG_E_PEER_LOST) << report.status;
  EXPECT_EQ(report.phase, Phase::kRound1);
  EXPECT_EQ(fake().writes, 4);
  EXPECT_EQ(fake().calls_after_error, 0);
  EXPECT_EQ(fake().rounds_ended, 0);
  EXPECT_EQ(fake().closes, 1);
  EXPECT_TRUE(guest_.running());
  EXPECT_FALSE(tracker_.started);
}

TEST_F(SourceEngineTest, AFailureInTheLastRoundResumesTheGuest) {
  tracker_.dirty = {{1}, {2}};
  fake().fail_write = 2;
  const SourceReport report = Migrate();
  EXPECT_EQ(report.end, SourceEnd::kFailed);
  EXPECT_EQ(report.phase, Phase::kStopped);
  EXPECT_EQ(guest_.stops, 1);
  EXPECT_EQ(guest_.runs, 1);
  EXPECT_EQ(fake().handovers, 0);
}

struct HandoverCase {
  uint32_t outcome;
  SourceEnd end;
  int runs;  // of the guest at the source
};

class HandoverTest : public SourceEngineTest,
                     public ::testing::WithParamInterface<HandoverCase> {};

// Rule 12: the guest runs here again only if it was certainly not taken.
TEST_P(HandoverTest, Rule12OnlyTheOutcomeDecides) {
  fake().handover_outcome = GetParam().outcome;
  const SourceReport report = Migrate();
  EXPECT_EQ(report.end, GetParam().end) << report.status;
  EXPECT_EQ(guest_.runs, GetParam().runs);
  EXPECT_EQ(guest_.running(), GetParam().runs == 1);
}

INSTANTIATE_TEST_SUITE_P(
    C33, HandoverTest,
    ::testing::Values(
        HandoverCase{MIG_EVENT_COMMITTED, SourceEnd::kMigrated, 0},
        HandoverCase{MIG_EVENT_HANDOVER_REFUSED, SourceEnd::kFailed, 1},
        HandoverCase{MIG_EVENT_ERROR, SourceEnd::kFailed, 1},
        HandoverCase{MIG_EVENT_IN_DOUBT, SourceEnd::kInDoubt, 0},
        // The plugin breaks the rules and says nothing: nobody may guess.
        HandoverCase{MIG_EVENT_CLOSED, SourceEnd::kInDoubt, 0}));

// A message that this side refuses while the offer is out must not make it
// guess either: it closes, and takes what comes of the offer.
TEST_F(SourceEngineTest, Rule12OwnFailureDuringTheOfferWithdrawsIt) {
  fake().handover_outcome = 0;
  on_phase_ = [this](Phase phase) {
    if (phase == Phase::kHandover) fake().Push(MIG_EVENT_MESSAGE);
  };
  const SourceReport report = Migrate();
  EXPECT_EQ(report.end, SourceEnd::kInDoubt) << "closed without an outcome";
  EXPECT_EQ(guest_.runs, 0);
  EXPECT_GE(fake().closes, 1);
}

TEST_F(SourceEngineTest, AnInterruptCancelsAndTheGuestRunsOn) {
  on_phase_ = [this](Phase phase) {
    if (phase != Phase::kRound1) return;
    interrupted_ = true;
    fake().Push(MIG_EVENT_ERROR, 0, MIG_E_CANCELLED);
  };
  const SourceReport report = Migrate();
  EXPECT_EQ(report.end, SourceEnd::kGaveUp) << report.status;
  EXPECT_GE(fake().cancels, 1);
  EXPECT_TRUE(guest_.running());
}

TEST_F(SourceEngineTest, AGuestThatCannotStopIsNotHandedOver) {
  guest_.stop_status = absl::InternalError("it will not");
  const SourceReport report = Migrate();
  EXPECT_EQ(report.end, SourceEnd::kFailed);
  EXPECT_EQ(fake().handovers, 0);
  EXPECT_THAT(std::string(report.status.message()), HasSubstr("it will not"));
}

}  // namespace
}  // namespace mig::sim
