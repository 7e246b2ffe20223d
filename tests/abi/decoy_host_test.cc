// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A host that exports what plugins use or define themselves (C21): verbs of
// its own, an entry point of its own, and an abseil of its own, which is
// linked into it statically, so that all of it is in its dynamic symbol table.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "loaded.h"
#include "migrate.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {
std::atomic<int> g_decoys_called{0};
}  // namespace

#define DECOY(name)       \
  EXPORTED void* name() { \
    ++g_decoys_called;    \
    return nullptr;       \
  }
DECOY(ibv_get_device_list)
DECOY(ibv_free_device_list)
DECOY(ibv_open_device)
DECOY(ibv_close_device)
DECOY(ibv_query_device)
DECOY(ibv_query_port)
DECOY(ibv_alloc_pd)
DECOY(ibv_create_cq)
DECOY(ibv_create_qp)
DECOY(ibv_modify_qp)
DECOY(ibv_reg_mr)
DECOY(ibv_reg_mr_iova2)
DECOY(ibv_dereg_mr)
DECOY(rdma_create_event_channel)
DECOY(rdma_create_id)
DECOY(rdma_resolve_addr)
DECOY(rdma_connect)
DECOY(rdma_listen)

EXPORTED int32_t mig_transport_query(uint32_t, uint32_t,
                                     const mig_transport_ops**, mig_error*) {
  ++g_decoys_called;
  return MIG_E_INTERNAL;
}

namespace mig::abi {
namespace {

class DecoyHost : public ::testing::TestWithParam<const char*> {};

TEST_P(DecoyHost, DoesNotLendItsSymbolsC21) {
  ASSERT_NE(dlsym(RTLD_DEFAULT, "ibv_open_device"), nullptr)
      << "the test's own decoys are not exported";
  ASSERT_NE(dlsym(RTLD_DEFAULT, "mig_transport_query"), nullptr);
  const Loaded loaded(GetParam());
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_STREQ(loaded.ops().name, GetParam());
  EXPECT_EQ(Migrate(loaded.ops()), "");
  EXPECT_EQ(g_decoys_called, 0);
}

TEST_P(DecoyHost, KeepsUsingItsOwnAbseilC21) {
  const Loaded loaded(GetParam());
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  absl::Status status = absl::InternalError(absl::StrCat("host ", 1));
  status.SetPayload("type", absl::Cord("of the host"));
  EXPECT_EQ(Migrate(loaded.ops()), "");
  EXPECT_EQ(status.GetPayload("type"), absl::Cord("of the host"));
  Dl_info host = {};
  Dl_info abseil = {};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&mig_transport_query), &host), 0);
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&absl::StatusCodeToString), &abseil),
            0);
  EXPECT_EQ(host.dli_fbase, abseil.dli_fbase)
      << "this host should have an abseil of its own";
}

INSTANTIATE_TEST_SUITE_P(Plugins, DecoyHost,
                         ::testing::Values(MIG_PLUGIN_NAMES),
                         [](const auto& info) {
                           return std::string(info.param);
                         });

TEST(DecoyHost, IsNoPluginItself) {
  // Its own entry point must not make a plugin of a file that has none.
  EXPECT_EQ(Loaded(MIG_FAKE_DIR "/wrong_symbol.so").code(), MIG_E_UNSUPPORTED);
}

}  // namespace
}  // namespace mig::abi
