// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 5: errors, and what a plugin must leave alone in its host's process.
// The form of each error is checked in each call of each test.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <set>
#include <string>

#include "pair.h"

namespace mig::conformance {
namespace {

class Errors : public Conformance {};

TEST_F(Errors, Rule05_TheErrorMayBeNull) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  mig_session* const source = pair.source().get();
  mig_session* const destination = pair.destination().get();
  mig_context* const context = pair.source_context().get();
  const mig_block block = pair.block().OfSource();
  const mig_transport_ops& ops = *Ops();
  size_t count = 0;
  uint64_t number = 0;
  char text[8];
  mig_session* session = nullptr;
  mig_session_params params = {};
  EXPECT_LT(ops.session_create(context, &params, &session, nullptr), 0);
  EXPECT_LT(ops.option_set(context, "no-such-option", "1", nullptr), 0);
  EXPECT_LT(ops.option_get(context, "no-such-option", text, sizeof(text),
                           &count, nullptr),
            0);
  EXPECT_LT(ops.listen(source, "no-such-scheme:x", nullptr), 0);
  EXPECT_LT(ops.connect(destination, "no-such-scheme:x", nullptr), 0);
  EXPECT_LT(ops.local_address(source, text, sizeof(text), &count, nullptr), 0);
  EXPECT_LT(ops.add_block(source, &block, nullptr), 0);
  EXPECT_LT(ops.remove_block(source, 99, nullptr), 0);
  EXPECT_LT(ops.round_begin(source, 99, 0, nullptr), 0);
  EXPECT_LT(ops.write(source, nullptr, 1, 0, &count, &number, nullptr), 0);
  EXPECT_LT(ops.round_end(source, 99, nullptr), 0);
  EXPECT_LT(ops.send(source, 0, 0, nullptr, 1, 0, nullptr), 0);
  EXPECT_LT(ops.progress(source, nullptr, 1, 0, 0, &count, nullptr), 0);
  EXPECT_LT(ops.handover(destination, nullptr), 0);
  EXPECT_LT(ops.exchange(source, nullptr), 1);
}

TEST_F(Errors, Rule05_NullArgumentsAreRefused) {
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  mig_session* const source = pair.source().get();
  mig_context* const context = pair.source_context().get();
  const mig_transport_ops& ops = *Ops();
  const mig_range range = pair.block().Page(0);
  mig_event event = {};
  size_t count = 0;
  uint64_t number = 0;
  mig_session_params params = {};
  params.size = sizeof(params);
  params.role = MIG_ROLE_SOURCE;
  params.attempt = 1;
  EXPECT_EQ(ops.context_create(nullptr, nullptr, nullptr), MIG_E_ARGUMENT);
  EXPECT_EQ(ops.session_create(context, &params, nullptr, nullptr),
            MIG_E_ARGUMENT);
  ASSERT_EQ(ops.round_begin(source, 1, 0, nullptr), MIG_OK);
  EXPECT_EQ(
      ops.write(source, nullptr, 1, sizeof(range), &count, &number, nullptr),
      MIG_E_ARGUMENT);
  EXPECT_EQ(
      ops.write(source, &range, 1, sizeof(range), nullptr, &number, nullptr),
      MIG_E_ARGUMENT);
  EXPECT_EQ(
      ops.write(source, &range, 1, sizeof(range), &count, nullptr, nullptr),
      MIG_E_ARGUMENT);
  EXPECT_EQ(ops.send(source, 0, 1, nullptr, 1, sizeof(mig_iov), nullptr),
            MIG_E_ARGUMENT);
  const mig_iov nowhere = {nullptr, 5};
  EXPECT_EQ(ops.send(source, 0, 1, &nowhere, 1, sizeof(nowhere), nullptr),
            MIG_E_ARGUMENT);
  EXPECT_EQ(ops.progress(source, nullptr, 1, sizeof(event), 0, &count, nullptr),
            MIG_E_ARGUMENT);
  EXPECT_EQ(ops.progress(source, &event, 1, sizeof(event), 0, nullptr, nullptr),
            MIG_E_ARGUMENT);
  EXPECT_EQ(ops.add_block(source, nullptr, nullptr), MIG_E_ARGUMENT);
  ops.session_destroy(nullptr);
  ops.context_destroy(nullptr);
  EXPECT_FALSE(pair.source().Ended());
}

// Refused, and the session is as new: a good URI works afterwards.
TEST_F(Errors, Rule05_BadUrisAreRefusedNamingThem) {
  Pair pair;
  for (const char* uri : {"", "nonsense", "no-such-scheme:x", ":", "://",
                          "no-such-scheme://127.0.0.1:1"}) {
    EXPECT_EQ(StatusName(pair.destination().Listen(uri)), "MIG_E_URI") << uri;
    EXPECT_NE(pair.destination().error().message.find(uri), std::string::npos)
        << pair.destination().error().message;
    EXPECT_EQ(StatusName(pair.source().Connect(uri)), "MIG_E_URI") << uri;
  }
  for (const int32_t status :
       {Ops()->listen(pair.destination().get(), nullptr, nullptr),
        Ops()->connect(pair.source().get(), nullptr, nullptr)}) {
    EXPECT_TRUE(status == MIG_E_URI || status == MIG_E_ARGUMENT) << status;
  }
  ASSERT_TRUE(pair.Ready());
}

TEST_F(Errors, Rule05_AnAddressInUseIsSaidAtOnce) {
  Pair pair;
  Session& first = pair.destination();
  ASSERT_EQ(first.Listen(NextListenUri()), MIG_OK);
  const std::string address = first.LocalAddress();
  Session second(pair.destination_context(), MIG_ROLE_DESTINATION, Identity());
  EXPECT_EQ(StatusName(second.Listen(address)), "MIG_E_ADDRESS");
  EXPECT_NE(second.error().message.find(address), std::string::npos)
      << "the message names it: " << second.error().message;
  ASSERT_EQ(pair.source().Connect(address), MIG_OK);
  ASSERT_TRUE(pair.Pump([&] {
    return first.Saw(MIG_EVENT_CONNECTED) &&
           pair.source().Saw(MIG_EVENT_CONNECTED);
  })) << "the first listener was disturbed: "
      << pair.Describe();
  EXPECT_EQ(second.Listen(NextListenUri()), MIG_OK) << "another one is free";
}

TEST_F(Errors, Rule05_AnAddressIsFreeAgainAfterDestroy) {
  std::string address;
  for (int i = 0; i < 3; ++i) {
    Pair pair;
    if (address.empty()) {
      ASSERT_TRUE(pair.Connect());
      address = pair.address();
      ASSERT_TRUE(pair.Close());
      continue;
    }
    ASSERT_EQ(pair.destination().Listen(address), MIG_OK)
        << pair.destination().error().message;
    ASSERT_EQ(pair.source().Connect(pair.destination().LocalAddress()), MIG_OK);
    ASSERT_TRUE(
        pair.Pump([&] { return pair.source().Saw(MIG_EVENT_CONNECTED); }));
    // The last one dies without a word; its address must not stay taken.
  }
}

TEST_F(Errors, Rule05_LocalAddressIsTheDestinationsOnceItListens) {
  Pair pair;
  EXPECT_EQ(pair.destination().LocalAddress(), "");
  EXPECT_EQ(pair.destination().error().code, MIG_E_STATE);
  ASSERT_TRUE(pair.Start());
  const std::string whole = pair.destination().LocalAddress();
  ASSERT_GT(whole.size(), 3U);
  std::string buffer(8, '#');
  size_t needed = 0;
  EXPECT_EQ(Ops()->local_address(pair.destination().get(), buffer.data(), 4,
                                 &needed, nullptr),
            MIG_OK);
  EXPECT_EQ(needed, whole.size() + 1);
  EXPECT_EQ(buffer, whole.substr(0, 3) + std::string("\0####", 5));
}

TEST_F(Errors, Rule05_SessionErrorIsTheFirst) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  EXPECT_EQ(pair.source().SessionError().code, MIG_OK) << "none yet";
  pair.source().Cancel();
  ASSERT_TRUE(pair.Pump(
      [&] { return pair.source().Ended() && pair.destination().Ended(); }));
  EXPECT_EQ(pair.source().SessionError().code, MIG_E_CANCELLED);
  EXPECT_EQ(pair.source().First(MIG_EVENT_ERROR)->raw.code, MIG_E_CANCELLED);
  EXPECT_LT(pair.source().Exchange(), 0);
  pair.destination().Cancel();
  EXPECT_EQ(StatusName(pair.destination().SessionError().code),
            "MIG_E_PEER_CANCELLED")
      << "a later cancel does not replace it";
}

// Fds above those that were open before, while a pair is connected.
TEST_F(Errors, Rule05_EveryFdIsClosedOnExec) {
  std::set<int> before;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    before.insert(std::stoi(entry.path().filename()));
  }
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
  for (int fd = 0; fd < 4096; ++fd) {
    const int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || before.count(fd) != 0) continue;
    EXPECT_NE(flags & FD_CLOEXEC, 0) << "fd " << fd << " outlives exec";
  }
}

}  // namespace
}  // namespace mig::conformance
