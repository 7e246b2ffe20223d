// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Both sides of one migration in one process, driven from one thread, with
// memory of their own on either side.
#ifndef TESTS_CONFORMANCE_PAIR_H_
#define TESTS_CONFORMANCE_PAIR_H_

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "config.h"
#include "host.h"
#include "memory.h"
#include "session.h"

namespace mig::conformance {

using std::chrono::milliseconds;
using std::chrono::seconds;

// How long a test waits for what must happen. The contract's own bounds are
// seconds; only a failing test waits as long as this.
inline constexpr seconds kBound(30);

constexpr uint64_t kPage = 4096;

// Calls progress of each session in turn, until `done` or the bound. Answers
// whether it is done. Sessions that are null or destroyed are left out.
bool Drive(std::initializer_list<Session*> sessions,
           const std::function<bool()>& done, milliseconds bound = kBound);

// For a session that must *not* change: drives it for a little while.
void DriveFor(std::initializer_list<Session*> sessions, milliseconds time);

struct BlockSpec {
  uint64_t length = 64 * kPage;
  uint64_t page_size = kPage;
  uint32_t source_flags = 0;
  uint32_t destination_flags = 0;
  MemoryKind kind = MemoryKind::kAnonymous;
};

// One block on both sides. The ids differ, so that mixing them up shows.
struct Block {
  Block(const BlockSpec& spec, uint32_t index);
  mig_block OfSource() const;
  mig_block OfDestination() const;
  mig_range Range(uint64_t offset, uint64_t bytes, uint32_t flags = 0) const;
  mig_range Page(uint64_t page, uint32_t flags = 0) const;
  mig_range Whole(uint32_t flags = 0) const;
  uint64_t pages() const { return spec.length / spec.page_size; }

  BlockSpec spec;
  std::string name;
  uint32_t source_id;
  uint32_t destination_id;
  Memory source;
  Memory destination;
};

struct PairSetup {
  ClockKind clock = ClockKind::kReal;
  bool one_context = false;
  Identity identity = {};
};

class Pair {
 public:
  explicit Pair(const PairSetup& setup = {});
  // Both sessions on a context that the test has.
  explicit Pair(Context& shared);

  Session& source() { return *source_; }
  Session& destination() { return *destination_; }
  Context& source_context() { return shared_ ? *shared_ : *source_context_; }
  Context& destination_context();
  Host& source_host() { return source_host_; }
  Host& destination_host();
  Block& block(size_t i = 0) { return *blocks_[i]; }
  size_t block_count() const { return blocks_.size(); }
  const std::string& address() const { return address_; }

  // New sessions on the same contexts, with a higher attempt. The blocks stay,
  // but have to be added again.
  void Renew();

  // Each step needs those before it, and says what went wrong.
  testing::AssertionResult Start();  // listen and connect, nothing driven
  testing::AssertionResult Connect();
  // Makes a block and adds it on both sides.
  testing::AssertionResult AddBlock(const BlockSpec& spec = {});
  // Makes a block that the test adds, or not, by itself.
  Block& SpareBlock(const BlockSpec& spec, uint32_t index);
  // Adds the blocks of an earlier session again.
  testing::AssertionResult AddBlocksAgain();
  testing::AssertionResult Exchange();
  // Connects, adds one block if there is none, and exchanges.
  testing::AssertionResult Ready(const BlockSpec& spec = {});
  // Writes all of it, waiting for room as often as it takes.
  testing::AssertionResult Write(std::vector<mig_range> ranges);
  // A whole round; answers when both sides have seen it done.
  testing::AssertionResult Round(const std::vector<mig_range>& ranges,
                                 uint32_t flags = 0);
  testing::AssertionResult Begin(uint32_t flags = 0);
  testing::AssertionResult End();
  testing::AssertionResult RoundDone();
  testing::AssertionResult Offer();
  testing::AssertionResult Handover();
  testing::AssertionResult Close();

  bool Pump(const std::function<bool()>& done, milliseconds bound = kBound);
  // The round that was begun last.
  uint64_t round() const { return round_; }
  std::string Describe() const;

 private:
  testing::AssertionResult Failed(const std::string& what) const;

  // Sessions go first, then contexts: the rest must outlive them.
  Host source_host_;
  std::unique_ptr<Host> destination_host_;
  std::vector<std::unique_ptr<Block>> blocks_;
  std::vector<std::unique_ptr<Block>> spare_blocks_;
  Context* shared_ = nullptr;
  std::unique_ptr<Context> source_context_;
  std::unique_ptr<Context> destination_context_;
  Identity identity_;
  std::string address_;
  uint64_t round_ = 0;
  std::unique_ptr<Session> source_;
  std::unique_ptr<Session> destination_;
};

// Every test's fixture: what must hold after each test.
class Conformance : public testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

 private:
  size_t fds_before_ = 0;
  size_t threads_before_ = 0;
};

// Entries of /proc/self/fd and /proc/self/task.
size_t CountFds();
size_t CountThreads();

// Skips the test where the plugin can't do with a clock of the host's.
#define MIG_NEEDS_SIMULATED_CLOCK()                        \
  if (!::mig::conformance::GlobalConfig().simulated_clock) \
  GTEST_SKIP() << "the plugin needs real time (--no-simulated-clock)"

}  // namespace mig::conformance

#endif  // TESTS_CONFORMANCE_PAIR_H_
