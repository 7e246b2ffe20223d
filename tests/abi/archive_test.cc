// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A host that can't dlopen links the plugins' archives and registers them.
#include <gtest/gtest.h>

#include "loaded.h"
#include "migrate.h"

#define TEST_ARCHIVE(name)                                                     \
  extern "C" int32_t mig_transport_query_##name(                               \
      uint32_t, uint32_t, const mig_transport_ops**, mig_error*);              \
  TEST(Archive, name) {                                                        \
    ASSERT_EQ(mig_loader_register(#name, mig_transport_query_##name), MIG_OK); \
    const mig::abi::PluginPath path("/none");                                  \
    const mig::abi::Loaded loaded(#name);                                      \
    ASSERT_TRUE(loaded.ok()) << loaded.message();                              \
    EXPECT_EQ(loaded.path(), "(registered)");                                  \
    EXPECT_EQ(mig::abi::Migrate(loaded.ops()), "");                            \
  }

MIG_TEST_ALL_ARCHIVES  // of this build
