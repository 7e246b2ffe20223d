// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Rule 1: sizes of structs and elements, unknown flags, reserved fields.
#include <cstring>
#include <string>
#include <vector>

#include "pair.h"

namespace mig::conformance {
namespace {

class Structs : public Conformance {};

// A struct of a newer host: `extra` follows what this plugin knows.
template <typename T>
struct Newer {
  T known;
  uint64_t extra[4];
};

int32_t CreateContext(const mig_host_services* services) {
  mig_context* context = nullptr;
  CallError error;
  const int32_t status = CheckedCall(
      "context_create", GlobalConfig().call_limit,
      [&](mig_error* e) {
        return Ops()->context_create(services, &context, e);
      },
      &error);
  EXPECT_EQ(context != nullptr, status == MIG_OK);
  Ops()->context_destroy(context);
  return status;
}

TEST_F(Structs, Rule01_HostServices) {
  Host host;
  Newer<mig_host_services> services = {host.services(), {1, 2, 3, 4}};
  services.known.size = sizeof(services);
  EXPECT_EQ(CreateContext(&services.known), MIG_OK)
      << "what follows in a newer host's services is ignored";
  services.known.size = sizeof(mig_host_services) - 8;
  EXPECT_EQ(CreateContext(&services.known), MIG_E_STRUCT_SIZE);
  services.known.size = 0;
  EXPECT_EQ(CreateContext(&services.known), MIG_E_STRUCT_SIZE);
  services.known.size = sizeof(mig_host_services);
  services.known.flags = 1U << 31;
  EXPECT_EQ(CreateContext(&services.known), MIG_E_ARGUMENT);
  EXPECT_EQ(CreateContext(nullptr), MIG_E_ARGUMENT);
}

TEST_F(Structs, Rule04_HostServicesMayBeMissingAndAreCopied) {
  mig_host_services services = {};
  services.size = sizeof(services);
  mig_context* context = nullptr;
  ASSERT_EQ(Ops()->context_create(&services, &context, nullptr), MIG_OK)
      << "NULL functions get a default";
  memset(&services, 0xff, sizeof(services));
  for (const auto& [name, value] : GlobalConfig().options) {
    EXPECT_EQ(Ops()->option_set(context, name.c_str(), value.c_str(), nullptr),
              MIG_OK);
  }
  mig_session_params params = {};
  params.size = sizeof(params);
  params.role = MIG_ROLE_DESTINATION;
  params.attempt = 1;
  mig_session* session = nullptr;
  EXPECT_EQ(Ops()->session_create(context, &params, &session, nullptr), MIG_OK);
  EXPECT_EQ(Ops()->listen(session, NextListenUri().c_str(), nullptr), MIG_OK);
  mig_event event = {};
  size_t count = 0;
  EXPECT_EQ(
      Ops()->progress(session, &event, 1, sizeof(event), 0, &count, nullptr),
      MIG_OK);
  Ops()->session_destroy(session);
  Ops()->context_destroy(context);
}

int32_t CreateSession(Context& context, const mig_session_params* params) {
  mig_session* session = nullptr;
  CallError error;
  const int32_t status = CheckedCall(
      "session_create", GlobalConfig().call_limit,
      [&](mig_error* e) {
        return Ops()->session_create(context.get(), params, &session, e);
      },
      &error);
  EXPECT_EQ(session != nullptr, status == MIG_OK);
  Ops()->session_destroy(session);
  return status;
}

TEST_F(Structs, Rule01_SessionParams) {
  Host host;
  Context context(host);
  Newer<mig_session_params> params = {};
  params.known.size = sizeof(params);
  params.known.role = MIG_ROLE_SOURCE;
  params.known.attempt = 1;
  EXPECT_EQ(CreateSession(context, &params.known), MIG_OK)
      << "longer, and the rest is zero";
  params.extra[3] = 1;
  EXPECT_EQ(CreateSession(context, &params.known), MIG_E_STRUCT_SIZE)
      << "longer, and the rest asks for something unknown";
  params.known.size = sizeof(mig_session_params) - 8;
  EXPECT_EQ(CreateSession(context, &params.known), MIG_E_STRUCT_SIZE);
  params.known.size = sizeof(mig_session_params);
  params.known.flags = 1;
  EXPECT_EQ(CreateSession(context, &params.known), MIG_E_ARGUMENT);
  params.known.flags = 0;
  for (const uint32_t role : {0U, 3U, ~0U}) {
    params.known.role = role;
    EXPECT_EQ(CreateSession(context, &params.known), MIG_E_ARGUMENT) << role;
  }
  params.known.role = MIG_ROLE_SOURCE;
  params.known.attempt = 0;
  EXPECT_EQ(CreateSession(context, &params.known), MIG_E_ARGUMENT)
      << "attempts are 1, 2, ...";
  EXPECT_EQ(CreateSession(context, nullptr), MIG_E_ARGUMENT);
}

TEST_F(Structs, Rule01_Block) {
  Pair pair;
  Block& block = pair.SpareBlock({}, 0);
  Newer<mig_block> description = {block.OfSource(), {}};
  description.known.size = sizeof(description);
  description.extra[0] = 1;
  EXPECT_EQ(pair.source().AddBlock(description.known), MIG_E_STRUCT_SIZE);
  description.extra[0] = 0;
  description.known.size = sizeof(mig_block) - 8;
  EXPECT_EQ(pair.source().AddBlock(description.known), MIG_E_STRUCT_SIZE);
  description.known.size = sizeof(mig_block);
  description.known.flags = 1U << 30;
  EXPECT_EQ(pair.source().AddBlock(description.known), MIG_E_ARGUMENT);
  description.known.flags = 0;
  description.known.size = sizeof(description);
  EXPECT_EQ(pair.source().AddBlock(description.known), MIG_OK)
      << pair.source().error().message;
}

// Takes the events of a started pair with elements of `size` bytes, and checks
// that each lies where it should and nothing past it is written.
void TakeWithElementSize(size_t size) {
  constexpr uint8_t kPattern = 0x5a;
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(pair.source().Send(static_cast<uint32_t>(i), "m"), MIG_OK);
  }
  std::vector<uint8_t> raw(size * 4 + 256, kPattern);
  size_t seen = 0;
  EXPECT_TRUE(Drive({&pair.source()}, [&] {
    size_t count = 0;
    const int32_t status = Ops()->progress(
        pair.destination().get(), reinterpret_cast<mig_event*>(raw.data()), 4,
        size, 0, &count, nullptr);
    EXPECT_EQ(status, MIG_OK);
    for (size_t i = 0; i < count; ++i) {
      mig_event event = {};
      memcpy(&event, raw.data() + i * size, std::min(size, sizeof(event)));
      if (event.type != MIG_EVENT_MESSAGE) continue;
      EXPECT_EQ(event.length, 1U);
      EXPECT_EQ(*static_cast<const char*>(event.data), 'm');
      EXPECT_EQ(event.message_type, seen);
      Ops()->message_release(pair.destination().get(), event.message);
      ++seen;
    }
    return status != MIG_OK || seen == 3;
  }));
  for (size_t i = size * 4; i < raw.size(); ++i) {
    ASSERT_EQ(raw[i], kPattern) << "written past the last element";
  }
}

TEST_F(Structs, Rule01_EventsAreSteppedByTheElementSize) {
  TakeWithElementSize(sizeof(mig_event));
  TakeWithElementSize(80);
  TakeWithElementSize(200);
}

TEST_F(Structs, Rule01_EventElementsTooSmallForAnyHostAreRefused) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  mig_event event = {};
  size_t count = 0;
  for (const size_t size : {0, 1, 8}) {
    EXPECT_EQ(Ops()->progress(pair.source().get(), &event, 1, size, 0, &count,
                              nullptr),
              MIG_E_STRUCT_SIZE)
        << size;
  }
  EXPECT_EQ(Ops()->progress(pair.source().get(), &event, 1, sizeof(event), -2,
                            &count, nullptr),
            MIG_E_ARGUMENT)
      << "-1 is the only negative timeout";
}

TEST_F(Structs, Rule01_CapsAreFilledToTheCallersSize) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  Newer<mig_caps> caps = {};
  memset(&caps, 0xee, sizeof(caps));
  caps.known.size = sizeof(caps);
  const int32_t status =
      Ops()->get_caps(pair.source().get(), &caps.known, nullptr);
  if (status == MIG_E_UNSUPPORTED) GTEST_SKIP() << "no get_caps";
  ASSERT_EQ(status, MIG_OK);
  EXPECT_EQ(caps.known.size, sizeof(caps)) << "the size is the owner's";
  for (const uint64_t extra : caps.extra) EXPECT_EQ(extra, 0U);
  ASSERT_NE(caps.known.extensions, nullptr);
  EXPECT_TRUE(caps.known.detail_count == 0 ||
              caps.known.detail_size >= sizeof(mig_capability));
  const auto* at = reinterpret_cast<const uint8_t*>(caps.known.details);
  for (uint64_t i = 0; i < caps.known.detail_count; ++i) {
    mig_capability detail;
    memcpy(&detail, at + i * caps.known.detail_size, sizeof(detail));
    EXPECT_STRNE(detail.name, "");
    EXPECT_NE(detail.unit, nullptr);
    EXPECT_NE(detail.text, nullptr);
  }
  caps.known.size = 8;
  EXPECT_EQ(Ops()->get_caps(pair.source().get(), &caps.known, nullptr),
            MIG_E_STRUCT_SIZE);
}

TEST_F(Structs, Rule01_Rule05_ErrorsOfAnySize) {
  Pair pair;
  // A newer host's error: the rest is zeroed.
  Newer<mig_error> newer;
  memset(&newer, 0x33, sizeof(newer));
  newer.known.size = sizeof(newer);
  ASSERT_EQ(Ops()->handover(pair.source().get(), &newer.known), MIG_E_STATE);
  EXPECT_EQ(newer.known.size, sizeof(newer));
  EXPECT_EQ(newer.known.code, MIG_E_STATE);
  for (const uint64_t extra : newer.extra) EXPECT_EQ(extra, 0U);
  // Whatever is said to be there, nothing past it is written.
  for (const uint32_t size : {0U, 4U, 8U, 16U, 20U, 100U}) {
    ErrorBox box(size);
    EXPECT_LT(Ops()->handover(pair.source().get(), box.get()), 0);
    EXPECT_FALSE(box.overrun()) << "an error of " << size << " bytes";
  }
}

TEST_F(Structs, Rule01_ListsCountAlsoWhatDoesNotFit) {
  Pair pair;
  ASSERT_TRUE(pair.Connect());
  mig_session* const session = pair.source().get();
  size_t count = 0;
  const int32_t status = Ops()->get_event_fds(
      session, nullptr, 0, sizeof(mig_event_fd), &count, nullptr);
  if (status == MIG_OK) {
    EXPECT_EQ(count, pair.source().EventFds().size());
    mig_event_fd one = {};
    EXPECT_EQ(Ops()->get_event_fds(session, &one, 1, 2, &count, nullptr),
              MIG_E_STRUCT_SIZE);
    struct {
      mig_event_fd known;
      uint64_t extra;
    } newer[64];
    EXPECT_EQ(Ops()->get_event_fds(session, &newer[0].known, 64,
                                   sizeof(newer[0]), &count, nullptr),
              MIG_OK);
    for (size_t i = 0; i < count; ++i) EXPECT_GE(newer[i].known.fd, 0);
  } else {
    EXPECT_EQ(StatusName(status), "MIG_E_UNSUPPORTED");
  }
  mig_context* const context = pair.source_context().get();
  const int32_t probed =
      Ops()->probe(context, nullptr, 0, sizeof(mig_device), &count, nullptr);
  if (probed == MIG_E_UNSUPPORTED) return;
  ASSERT_EQ(probed, MIG_OK);
  std::vector<Newer<mig_device>> devices(count + 8);
  size_t again = 0;
  ASSERT_EQ(Ops()->probe(context, &devices[0].known, devices.size(),
                         sizeof(devices[0]), &again, nullptr),
            MIG_OK);
  for (size_t i = 0; i < std::min(again, devices.size()); ++i) {
    EXPECT_LT(strnlen(devices[i].known.name, 64), 64U);
    EXPECT_GT(strnlen(devices[i].known.name, 64), 0U);
    EXPECT_LT(strnlen(devices[i].known.detail, 256), 256U);
  }
}

}  // namespace
}  // namespace mig::conformance
