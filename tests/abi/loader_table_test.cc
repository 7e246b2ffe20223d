// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the loader makes of a plugin's table (rules 1.9 and 1.11), with tables
// of this process; fake_plugins_test has those of real files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "loaded.h"

namespace mig::abi {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::HasSubstr;

const mig_transport_ops* g_answer = nullptr;  // of Answer

int32_t Answer(uint32_t, uint32_t, const mig_transport_ops** ops, mig_error*) {
  *ops = g_answer;
  return MIG_OK;
}

void NeverCalled() {}

struct Op {
  const char* name;
  size_t offset;
  bool optional;
};

// The contract's list, written down independently of the loader's.
constexpr Op kOps[] = {
#define REQUIRED(op) \
  { #op, offsetof(mig_transport_ops, op), false }
#define OPTIONAL(op) \
  { #op, offsetof(mig_transport_ops, op), true }
    REQUIRED(context_create),  REQUIRED(context_destroy),
    OPTIONAL(option_set),      OPTIONAL(option_get),
    OPTIONAL(probe),           OPTIONAL(get_extension),
    REQUIRED(session_create),  REQUIRED(listen),
    REQUIRED(connect),         REQUIRED(local_address),
    REQUIRED(add_block),       OPTIONAL(remove_block),
    REQUIRED(exchange),        REQUIRED(round_begin),
    REQUIRED(write),           OPTIONAL(flush),
    REQUIRED(round_end),       REQUIRED(send),
    REQUIRED(message_release), REQUIRED(progress),
    OPTIONAL(get_event_fds),   OPTIONAL(arm),
    REQUIRED(handover),        OPTIONAL(host_busy),
    REQUIRED(cancel),          REQUIRED(wake),
    REQUIRED(close),           REQUIRED(session_destroy),
    OPTIONAL(get_caps),        OPTIONAL(get_stats),
    REQUIRED(session_error),
#undef REQUIRED
#undef OPTIONAL
};

using AnyOp = void (*)();

AnyOp GetOp(const mig_transport_ops& ops, size_t offset) {
  AnyOp op;
  memcpy(&op, reinterpret_cast<const char*>(&ops) + offset, sizeof(op));
  return op;
}

void SetOp(mig_transport_ops* ops, size_t offset, AnyOp op) {
  char bytes[sizeof(*ops)];
  memcpy(bytes, ops, sizeof(bytes));
  memcpy(bytes + offset, &op, sizeof(op));
  memcpy(ops, bytes, sizeof(bytes));
}

class LoaderTable : public ::testing::Test {
 protected:
  LoaderTable() {
    table_.size = sizeof(table_);
    table_.abi_version = MIG_ABI_VERSION;
    table_.name = "table";
    for (const Op& op : kOps) SetOp(&table_, op.offset, NeverCalled);
    g_answer = &table_;
    EXPECT_EQ(mig_loader_register("table", Answer), MIG_OK);
  }

  mig_transport_ops table_ = {};
};

TEST_F(LoaderTable, KnowsEveryOpOfTheHeader) {
  EXPECT_EQ(std::size(kOps), (sizeof(mig_transport_ops) -
                              offsetof(mig_transport_ops, context_create)) /
                                 sizeof(AnyOp));
}

TEST_F(LoaderTable, KeepsWhatThePluginGaveRule1_11) {
  const Loaded loaded("table");
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  for (const Op& op : kOps) {
    EXPECT_EQ(GetOp(loaded.ops(), op.offset), NeverCalled) << op.name;
  }
  EXPECT_STREQ(loaded.ops().name, "table");
  EXPECT_EQ(loaded.path(), "(registered)");
}

TEST_F(LoaderTable, RefusesEachMissingRequiredOpByNameRule1_11) {
  for (const Op& op : kOps) {
    SetOp(&table_, op.offset, nullptr);
    const Loaded loaded("table");
    EXPECT_EQ(loaded.ok(), op.optional) << op.name;
    if (!op.optional) {
      EXPECT_EQ(loaded.code(), MIG_E_UNSUPPORTED) << op.name;
      EXPECT_THAT(loaded.message(),
                  HasSubstr("required op '" + std::string(op.name) + "'"));
    }
    SetOp(&table_, op.offset, NeverCalled);
  }
}

TEST_F(LoaderTable, FillsInEachMissingOptionalOpRule1_11) {
  for (const Op& op : kOps) {
    if (!op.optional) continue;
    SetOp(&table_, op.offset, nullptr);
    const Loaded loaded("table");
    ASSERT_TRUE(loaded.ok()) << op.name;
    EXPECT_NE(GetOp(loaded.ops(), op.offset), nullptr) << op.name;
    EXPECT_NE(GetOp(loaded.ops(), op.offset), NeverCalled) << op.name;
    SetOp(&table_, op.offset, NeverCalled);
  }
}

TEST_F(LoaderTable, TakesEventFdsAndArmOnlyTogether) {
  table_.arm = nullptr;
  const Loaded without_arm("table");
  ASSERT_TRUE(without_arm.ok());
  EXPECT_NE(
      GetOp(without_arm.ops(), offsetof(mig_transport_ops, get_event_fds)),
      NeverCalled);
}

TEST_F(LoaderTable, RefusesATableTooShortForEachRequiredOpRule1_11) {
  for (const Op& op : kOps) {
    table_.size = static_cast<uint32_t>(op.offset);
    const Loaded loaded("table");
    EXPECT_FALSE(loaded.ok()) << op.name;
    EXPECT_EQ(loaded.code(), MIG_E_STRUCT_SIZE) << op.name;
    EXPECT_THAT(loaded.message(), HasSubstr(std::to_string(op.offset)));
  }
}

TEST_F(LoaderTable, DoesNotReadPastAShortTable) {
  // Exactly as long as it says, so that a sanitizer sees a read beyond.
  const size_t size = offsetof(mig_transport_ops, write);
  const auto shorter = std::make_unique<char[]>(size);
  table_.size = size;
  memcpy(shorter.get(), &table_, size);
  g_answer = reinterpret_cast<const mig_transport_ops*>(shorter.get());
  const Loaded loaded("table");
  EXPECT_THAT(loaded.message(), HasSubstr("required op 'write'"));
}

TEST_F(LoaderTable, RefusesImpossibleSizes) {
  for (const uint32_t size : {0u, 4u, 8u, 87u, 332u, 65544u, 0xffffffffu}) {
    table_.size = size;
    const Loaded loaded("table");
    EXPECT_EQ(loaded.code(), MIG_E_STRUCT_SIZE) << size;
    EXPECT_THAT(loaded.message(), HasSubstr(std::to_string(size)));
  }
}

TEST_F(LoaderTable, RefusesOtherVersionsNamingBothRule1_9) {
  for (const uint32_t version : {0u, 2u, 0xffffffffu}) {
    table_.abi_version = version;
    const Loaded loaded("table");
    EXPECT_EQ(loaded.code(), MIG_E_VERSION);
    EXPECT_THAT(loaded.message(),
                AllOf(HasSubstr("ABI version " + std::to_string(version)),
                      HasSubstr("this host has 1 to 1")));
  }
}

TEST_F(LoaderTable, ReadsNothingButTheHeadOfAnotherVersionRule1_11) {
  const auto head = std::make_unique<uint32_t[]>(2);
  head[0] = 8;
  head[1] = 2;
  g_answer = reinterpret_cast<const mig_transport_ops*>(head.get());
  EXPECT_EQ(Loaded("table").code(), MIG_E_VERSION);
}

TEST_F(LoaderTable, RefusesArraysThatAHostCouldNotStepThrough) {
  const mig_option option = {};
  table_.option_count = 1;
  table_.option_size = sizeof(option);
  EXPECT_EQ(Loaded("table").code(), MIG_E_STRUCT_SIZE);  // at NULL
  table_.options = &option;
  EXPECT_EQ(Loaded("table").code(), MIG_OK);
  table_.option_size = sizeof(option) - 8;
  EXPECT_EQ(Loaded("table").code(), MIG_E_STRUCT_SIZE);
  table_.option_count = 0;
  EXPECT_EQ(Loaded("table").code(), MIG_OK);
  table_.counter_count = 2;
  EXPECT_EQ(Loaded("table").code(), MIG_E_STRUCT_SIZE);
}

TEST_F(LoaderTable, GivesHostsTextsThatAreNeverNull) {
  table_.name = nullptr;
  const Loaded loaded("table");
  ASSERT_TRUE(loaded.ok());
  const std::vector<const char*> texts = {
      loaded.ops().name, loaded.ops().version, loaded.ops().description,
      loaded.ops().licenses, loaded.ops().uri_schemes};
  EXPECT_THAT(texts, Each(::testing::StrEq("")));
}

// The defaults are called as a host would, which has no session to give.
class LoaderDefaults : public LoaderTable {
 protected:
  LoaderDefaults() {
    for (const Op& op : kOps) {
      if (op.optional) SetOp(&table_, op.offset, nullptr);
    }
  }

  void ExpectUnsupported(int32_t answer, std::string_view op) {
    EXPECT_EQ(answer, MIG_E_UNSUPPORTED) << op;
    EXPECT_EQ(error_.code, MIG_E_UNSUPPORTED) << op;
    EXPECT_THAT(error_.message, HasSubstr(op));
    error_ = Sized<mig_error>();
  }

  mig_error error_ = Sized<mig_error>();
};

TEST_F(LoaderDefaults, AnswerUnsupportedAndSaySo) {
  const Loaded loaded("table");
  ASSERT_TRUE(loaded.ok()) << loaded.message();
  const mig_transport_ops& ops = loaded.ops();
  size_t count = 99;
  uint64_t number = 0;
  mig_caps caps = Sized<mig_caps>();
  ExpectUnsupported(ops.option_set(nullptr, "a", "b", &error_), "option_set");
  ExpectUnsupported(ops.option_get(nullptr, "a", nullptr, 0, &count, &error_),
                    "option_get");
  ExpectUnsupported(
      ops.probe(nullptr, nullptr, 0, sizeof(mig_device), &count, &error_),
      "probe");
  EXPECT_EQ(count, 0u);
  ExpectUnsupported(ops.remove_block(nullptr, 1, &error_), "remove_block");
  ExpectUnsupported(ops.get_event_fds(nullptr, nullptr, 0, sizeof(mig_event_fd),
                                      &count, &error_),
                    "get_event_fds");
  ExpectUnsupported(ops.arm(nullptr, &number, &error_), "arm");
  ExpectUnsupported(ops.get_caps(nullptr, &caps, &error_), "get_caps");
  EXPECT_EQ(ops.get_stats(nullptr, &number, 1), MIG_E_UNSUPPORTED);
  EXPECT_EQ(ops.get_extension(nullptr, "x"), nullptr);
}

TEST_F(LoaderDefaults, AnswerOkWhereThereIsNothingToDo) {
  const Loaded loaded("table");
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.ops().flush(nullptr, &error_), MIG_OK);
  EXPECT_EQ(loaded.ops().host_busy(nullptr, 0, &error_), MIG_OK);
  EXPECT_EQ(loaded.ops().host_busy(nullptr, MIG_HOST_BUSY_MAX_NS, &error_),
            MIG_OK);
  EXPECT_EQ(error_.code, MIG_OK);  // rule 5.3
}

TEST_F(LoaderDefaults, RefuseABusyHostBeyondTheLimitRule13_6) {
  const Loaded loaded("table");
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.ops().host_busy(nullptr, MIG_HOST_BUSY_MAX_NS + 1, &error_),
            MIG_E_ARGUMENT);
  EXPECT_THAT(error_.message,
              AllOf(HasSubstr("600000000001"), HasSubstr("600000000000")));
}

TEST_F(LoaderDefaults, TakeAnErrorThatIsNullOrLongerRules1_5And5_3) {
  const Loaded loaded("table");
  ASSERT_TRUE(loaded.ok());
  EXPECT_EQ(loaded.ops().arm(nullptr, nullptr, nullptr), MIG_E_UNSUPPORTED);
  struct {
    mig_error error;
    char appended[8];
  } longer;
  memset(&longer, 0x55, sizeof(longer));
  longer.error.size = sizeof(longer);
  EXPECT_EQ(loaded.ops().arm(nullptr, nullptr, &longer.error),
            MIG_E_UNSUPPORTED);
  EXPECT_EQ(longer.error.size, sizeof(longer));
  EXPECT_EQ(longer.error.system_errno, 0);
  EXPECT_THAT(longer.appended, Each('\0'));
}

}  // namespace
}  // namespace mig::abi
