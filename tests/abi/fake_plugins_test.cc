// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Plugin files that were built against the frozen header of version 1, most of
// them wrong: each is served or refused as the rules say, and a refused one
// leaves nothing behind (C21).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "loaded.h"

namespace mig::abi {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string FakePath(const std::string& name) {
  return std::string(MIG_FAKE_DIR "/") + name + ".so";
}

// Whether a real function of the fake is reached through the table.
bool Works(const mig_transport_ops& ops) {
  const auto services = Sized<mig_host_services>();
  mig_context* context = nullptr;
  auto error = Sized<mig_error>();
  return ops.context_create(&services, &context, &error) == 4711;
}

TEST(FakePlugin, BuiltAgainstTheFrozenHeaderIsServedRule1_2) {
  const Loaded loaded(FakePath("good"));
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_TRUE(Works(loaded.ops()));
  EXPECT_EQ(loaded.path(), FakePath("good"));
}

TEST(FakePlugin, WithALongerTableIsServedRule1_11) {
  const Loaded loaded(FakePath("longer"));
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_TRUE(Works(loaded.ops()));
  EXPECT_EQ(loaded.ops().size, sizeof(mig_transport_ops));
  EXPECT_EQ(mig_plugin_ops_size(loaded.plugin()),
            sizeof(mig_transport_ops) + 4 * sizeof(void*));
}

TEST(FakePlugin, WithoutAnOptionalOpIsServedRule1_11) {
  const Loaded loaded(FakePath("missing_optional"));
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_EQ(loaded.ops().flush(nullptr, nullptr), MIG_OK);
}

TEST(FakePlugin, UnderAnotherFileNameIsServed) {
  const TempDir dir;
  std::filesystem::copy(FakePath("good"), dir.path() / "renamed.so");
  const PluginPath path(dir.path());
  const Loaded loaded("renamed");
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  EXPECT_STREQ(loaded.ops().name, "fake");
}

struct Refusal {
  const char* name;
  int32_t code;
  const char* reason;
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.name;
}

class RefusedFakePlugin : public ::testing::TestWithParam<Refusal> {};

TEST_P(RefusedFakePlugin, SaysWhyAndLeavesNothing) {
  const std::string path = FakePath(GetParam().name);
  ASSERT_TRUE(std::filesystem::exists(path)) << path;
  (void)Loaded(path).ok();  // what libc and sanitizers keep, they keep once
  const size_t fds = CountFds();
  const size_t mappings = CountMappings();
  for (int i = 0; i < 20; ++i) {
    const Loaded loaded(path);
    ASSERT_FALSE(loaded.ok());
    EXPECT_EQ(loaded.code(), GetParam().code) << loaded.message();
    EXPECT_THAT(loaded.message(), HasSubstr(path + ": "));
    EXPECT_THAT(loaded.message(), HasSubstr(GetParam().reason));
  }
  EXPECT_EQ(CountFds(), fds);
  // One mapping for each failure would be 20; sanitizers map a few.
  EXPECT_NEAR(static_cast<double>(CountMappings()),
              static_cast<double>(mappings), 12);
}

INSTANTIATE_TEST_SUITE_P(
    All, RefusedFakePlugin,
    ::testing::Values(
        Refusal{"too_short", MIG_E_STRUCT_SIZE, "required op 'session_error'"},
        Refusal{"headless", MIG_E_STRUCT_SIZE, "8 bytes"},
        Refusal{"half_an_op", MIG_E_STRUCT_SIZE, "multiples of 8"},
        Refusal{"absurd_size", MIG_E_STRUCT_SIZE, "2147483640 bytes"},
        Refusal{"version_0", MIG_E_VERSION, "ABI version 0"},
        Refusal{"version_2", MIG_E_VERSION, "ABI version 2"},
        Refusal{"refuses", MIG_E_VERSION, "needs a host with ABI version 2"},
        Refusal{"refuses_silently", MIG_E_VERSION, "it gave no reason"},
        Refusal{"fails", MIG_E_INTERNAL, "code -600: two"},
        Refusal{"answers_1", MIG_E_INTERNAL, "code 1"},
        Refusal{"no_table", MIG_E_INTERNAL, "no table"},
        Refusal{"missing_required", MIG_E_UNSUPPORTED, "'round_end'"},
        Refusal{"wrong_symbol", MIG_E_UNSUPPORTED,
                "does not define 'mig_transport_query'"},
        Refusal{"symbol_in_dependency", MIG_E_UNSUPPORTED,
                "libfake_dependency.so, not by itself"},
        Refusal{"unresolved", MIG_E_UNSUPPORTED,
                "function_that_nobody_defines"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(FakePlugin, ReasonIsCutToOneLineRule5_1) {
  EXPECT_THAT(Loaded(FakePath("fails")).message(), Not(HasSubstr("\nlines")));
}

TEST(FakePlugin, InUseStaysMappedAfterCloseH11) {
  // This fake was not linked with -z nodelete: the loader pins it.
  void (*op)(mig_session*) = nullptr;
  {
    const Loaded loaded(FakePath("good"));
    ASSERT_TRUE(loaded.ok());
    op = loaded.ops().cancel;
  }
  op(nullptr);
}

}  // namespace
}  // namespace mig::abi
