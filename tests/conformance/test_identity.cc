// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a plugin says about itself: the entry point, the table, its options and
// its counters.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "pair.h"

namespace mig::conformance {
namespace {

class SelfDescription : public Conformance {};

bool IsOneLine(const char* text) {
  return text != nullptr && *text != '\0' && strchr(text, '\n') == nullptr;
}

mig_option Option(uint32_t i) {
  mig_option option;
  const auto* at = reinterpret_cast<const uint8_t*>(Ops()->options);
  memcpy(&option, at + size_t{i} * Ops()->option_size, sizeof(option));
  return option;
}

mig_counter Counter(uint32_t i) {
  mig_counter counter;
  const auto* at = reinterpret_cast<const uint8_t*>(Ops()->counters);
  memcpy(&counter, at + size_t{i} * Ops()->counter_size, sizeof(counter));
  return counter;
}

TEST_F(SelfDescription, Rule01_TheEntryPointNegotiates) {
  const std::string path = mig_plugin_path(LoadedPlugin());
  if (path.find('/') == std::string::npos) {
    GTEST_SKIP() << "the plugin is linked in: " << path;
  }
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(library, nullptr) << dlerror();  // NOLINT(concurrency-mt-unsafe)
  const auto query = reinterpret_cast<mig_transport_query_fn>(
      dlsym(library, MIG_TRANSPORT_QUERY_SYMBOL));
  ASSERT_NE(query, nullptr);
  const mig_transport_ops* ops = nullptr;
  ErrorBox box;
  ASSERT_EQ(query(1, 1, &ops, box.get()), MIG_OK);
  EXPECT_EQ(ops->abi_version, 1U);
  const mig_transport_ops* again = nullptr;
  ASSERT_EQ(query(1, 1000, &again, nullptr), MIG_OK) << "the highest common";
  EXPECT_GE(again->abi_version, 1U);
  ops = nullptr;
  for (const auto& [low, high] : {std::pair{900U, 1000U}, {0U, 0U}}) {
    EXPECT_EQ(query(low, high, &ops, box.get()), MIG_E_VERSION)
        << low << ".." << high;
    CheckErrorForm("mig_transport_query", MIG_E_VERSION, *box.get());
  }
  EXPECT_LT(query(2, 1, &ops, nullptr), 0) << "an empty interval";
  EXPECT_EQ(query(1, 1, nullptr, nullptr), MIG_E_ARGUMENT);
  dlclose(library);
}

TEST_F(SelfDescription, Rule01_TheTableIsWhole) {
  const mig_transport_ops& ops = *Ops();
  EXPECT_TRUE(IsOneLine(ops.name));
  EXPECT_TRUE(IsOneLine(ops.version));
  EXPECT_TRUE(IsOneLine(ops.description));
  EXPECT_TRUE(IsOneLine(ops.licenses));
  EXPECT_TRUE(IsOneLine(ops.uri_schemes));
  EXPECT_LE(ops.wire_version_min, ops.wire_version_max);
  EXPECT_TRUE(ops.option_count == 0 || ops.option_size >= sizeof(mig_option));
  EXPECT_TRUE(ops.counter_count == 0 ||
              ops.counter_size >= sizeof(mig_counter));
}

TEST_F(SelfDescription, Rule01_OptionsDescribeThemselves) {
  Host host;
  Context context(host);
  std::set<std::string> names;
  for (uint32_t i = 0; i < Ops()->option_count; ++i) {
    const mig_option option = Option(i);
    ASSERT_TRUE(IsOneLine(option.name));
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(option.name).second) << "twice";
    EXPECT_TRUE(IsOneLine(option.help));
    EXPECT_TRUE(option.type >= MIG_OPTION_BOOL &&
                option.type <= MIG_OPTION_STRING);
    ASSERT_NE(option.default_value, nullptr);
    if ((option.flags & MIG_OPTION_SECRET) != 0) continue;
    if (!GlobalConfig().options.empty()) continue;
    EXPECT_EQ(context.GetOption(option.name), option.default_value);
    EXPECT_EQ(context.SetOption(option.name, option.default_value), MIG_OK)
        << "the default is not in its range: " << context.error().message;
    EXPECT_EQ(context.GetOption(option.name), option.default_value);
  }
}

TEST_F(SelfDescription, Rule05_BadOptionsAreRefusedNamingThem) {
  Host host;
  Context context(host);
  const int32_t unknown = context.SetOption("no-such-option", "1");
  EXPECT_TRUE(unknown == MIG_E_OPTION || unknown == MIG_E_UNSUPPORTED);
  if (unknown == MIG_E_OPTION) {
    EXPECT_NE(context.error().message.find("no-such-option"),
              std::string::npos);
  }
  for (uint32_t i = 0; i < Ops()->option_count; ++i) {
    const mig_option option = Option(i);
    if (option.type == MIG_OPTION_STRING) continue;
    SCOPED_TRACE(option.name);
    const std::string before = context.GetOption(option.name);
    for (const char* value : {"", "twelve", "-1", "1x", "99999999999999999999",
                              "1 ", " ", "0x10", "on off"}) {
      EXPECT_EQ(context.SetOption(option.name, value), MIG_E_OPTION)
          << "value '" << value << "'";
      EXPECT_NE(context.error().message.find(option.name), std::string::npos)
          << context.error().message;
    }
    EXPECT_EQ(context.GetOption(option.name), before) << "nothing was done";
  }
}

TEST_F(SelfDescription, Rule01_OptionsAreCutAtTheCallersSize) {
  Host host;
  Context context(host);
  for (uint32_t i = 0; i < Ops()->option_count; ++i) {
    const mig_option option = Option(i);
    SCOPED_TRACE(option.name);
    const std::string whole = context.GetOption(option.name);
    for (const size_t size : {size_t{0}, size_t{1}, whole.size()}) {
      std::string buffer(whole.size() + 8, '#');
      size_t needed = 0;
      const int32_t status = Ops()->option_get(
          context.get(), option.name, buffer.data(), size, &needed, nullptr);
      EXPECT_EQ(status, MIG_OK);
      EXPECT_EQ(needed, whole.size() + 1);
      EXPECT_EQ(buffer[size], '#') << "written past " << size << " bytes";
      if (size == 0) continue;
      EXPECT_EQ(buffer.substr(0, size),
                whole.substr(0, size - 1) + std::string(1, '\0'));
    }
  }
}

TEST_F(SelfDescription, Rule05_SecretsStaySecret) {
  Host host;
  bool any = false;
  {
    Context context(host);
    for (uint32_t i = 0; i < Ops()->option_count; ++i) {
      const mig_option option = Option(i);
      if ((option.flags & MIG_OPTION_SECRET) == 0) continue;
      any = true;
      SCOPED_TRACE(option.name);
      const auto& given = GlobalConfig().options;
      const bool set = std::any_of(
          given.begin(), given.end(),
          [&option](const auto& entry) { return entry.first == option.name; });
      EXPECT_EQ(context.GetOption(option.name), set ? "(set)" : "(unset)");
      const std::string secret = "c0nf1dential-c0nf1dential-c0nf1dential";
      const int32_t status = context.SetOption(option.name, secret);
      EXPECT_EQ(context.error().message.find("c0nf1dential"), std::string::npos)
          << "an error shows the secret";
      if (status == MIG_OK) {
        EXPECT_EQ(context.GetOption(option.name), "(set)");
      }
    }
    Session session(context, MIG_ROLE_DESTINATION, Identity());
    if (any) (void)session.Listen(NextListenUri());
    DriveFor({&session}, milliseconds(20));
    EXPECT_EQ(session.SessionError().message.find("c0nf1dential"),
              std::string::npos);
  }
  EXPECT_EQ(host.Log().find("c0nf1dential"), std::string::npos)
      << "the log shows the secret";
  if (!any) GTEST_SKIP() << "the plugin has no secret option";
}

uint64_t Value(Session& session, const char* name) {
  const std::vector<uint64_t> values = session.GetStats();
  for (uint32_t i = 0; i < values.size(); ++i) {
    if (strcmp(Counter(i).name, name) == 0) return values[i];
  }
  ADD_FAILURE() << "no counter '" << name << "'";
  return 0;
}

TEST_F(SelfDescription, Rule02_CountersCount) {
  if (Ops()->counter_count == 0) GTEST_SKIP() << "the plugin has no counters";
  std::set<std::string> names;
  for (uint32_t i = 0; i < Ops()->counter_count; ++i) {
    const mig_counter counter = Counter(i);
    ASSERT_TRUE(IsOneLine(counter.name));
    EXPECT_TRUE(names.insert(counter.name).second) << counter.name;
    EXPECT_TRUE(IsOneLine(counter.unit)) << counter.name;
    EXPECT_TRUE(IsOneLine(counter.help)) << counter.name;
    EXPECT_TRUE(counter.kind >= MIG_COUNTER_TOTAL &&
                counter.kind <= MIG_COUNTER_PEAK);
  }
  Pair pair;
  ASSERT_TRUE(pair.Ready());
  pair.block().source.Fill(0, pair.block().spec.length, 1);
  const std::vector<uint64_t> before = pair.source().GetStats();
  ASSERT_TRUE(pair.Round({pair.block().Whole()}));
  ASSERT_TRUE(pair.Round({pair.block().Page(1)}));
  const uint64_t bytes = pair.block().spec.length + kPage;
  EXPECT_EQ(Value(pair.source(), "bytes-accepted"), bytes);
  EXPECT_EQ(Value(pair.source(), "bytes-sent"), bytes);
  EXPECT_EQ(Value(pair.destination(), "bytes-received"), bytes);
  EXPECT_EQ(Value(pair.source(), "rounds-done"), 2U);
  EXPECT_EQ(Value(pair.destination(), "rounds-done"), 2U);
  const std::vector<uint64_t> after = pair.source().GetStats();
  for (uint32_t i = 0; i < before.size(); ++i) {
    if (Counter(i).kind == MIG_COUNTER_GAUGE) continue;
    EXPECT_GE(after[i], before[i]) << Counter(i).name;
  }
  // Fewer than there are, and more.
  std::vector<uint64_t> values(Ops()->counter_count + 3, 77);
  EXPECT_EQ(Ops()->get_stats(pair.source().get(), values.data(), 0), MIG_OK);
  EXPECT_EQ(values[0], 77U);
  EXPECT_EQ(Ops()->get_stats(pair.source().get(), values.data(), values.size()),
            MIG_OK);
  EXPECT_EQ(values[Ops()->counter_count], 77U) << "copied past the table";
}

}  // namespace
}  // namespace mig::conformance
