// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "guest/pacer.h"
#include "guest/random.h"
#include "guest/room.h"
#include "guest/sqlite_guest.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

constexpr uint64_t kMaxAccounts = 100'000'000;
constexpr int64_t kOpeningBalance = 1000;
constexpr uint64_t kMaxAmount = 100;
constexpr uint64_t kHistory = 1024;

// In guest memory, beside the database.
struct BankState {
  Random random;
  uint64_t accounts;
  uint64_t transfers;  // committed
};

enum Query { kBegin, kCommit, kBalance, kAdd, kLog, kCount, kQueries };

constexpr std::array<const char*, kQueries> kSql = {
    "BEGIN IMMEDIATE",
    "COMMIT",
    "SELECT balance FROM account WHERE id = ?1",
    "UPDATE account SET balance = balance + ?2 WHERE id = ?1",
    "UPDATE history SET seq = ?2, source = ?3, target = ?4, amount = ?5"
    " WHERE slot = ?1",
    "UPDATE bank SET transfers = transfers + 1",
};

constexpr char kSchema[] =
    "CREATE TABLE account(id INTEGER PRIMARY KEY, balance INTEGER NOT NULL"
    " CHECK(balance >= 0));"
    "CREATE TABLE history(slot INTEGER PRIMARY KEY, seq INTEGER NOT NULL,"
    " source INTEGER NOT NULL, target INTEGER NOT NULL,"
    " amount INTEGER NOT NULL);"
    "CREATE TABLE bank(transfers INTEGER NOT NULL, money INTEGER NOT NULL);";

// A real database whose pages are guest memory. A step is one transaction, as
// only between transactions is all of its state in the pages.
class BankWorkload final : public Workload {
 public:
  BankWorkload(WorkloadSetup setup, uint64_t accounts, uint64_t rate)
      : Workload(std::move(setup)),
        accounts_(accounts),
        pacer_(static_cast<double>(rate), this->setup().clock) {}

  absl::Status Init() override;
  absl::Status Attach() override;
  absl::Status Step() override;
  absl::Status Verify() override;
  std::string Summary() const override;
  bool ReportsWrites() const override { return false; }
  int64_t DelayNs() override { return pacer_.DelayNs(); }
  void SkipTime(int64_t ns) override { pacer_.Skip(ns); }

 private:
  absl::Status Build(SqliteGuest* db) const;
  absl::Status Open();
  absl::Status Transfer();
  absl::Status Run(Query query, std::initializer_list<int64_t> values) {
    return db_->Run(statements_[query].get(), values);
  }
  absl::Status Inconsistent(absl::string_view what, int64_t found,
                            int64_t expected) const;

  uint64_t accounts_;
  Pacer pacer_;
  std::optional<SqliteGuest> db_;
  std::array<SqliteStatement, kQueries> statements_;
};

absl::Status BankWorkload::Init() {
  absl::Status status = CreateControl();
  if (!status.ok()) return status;
  *state<BankState>() = {{seed()}, accounts_, 0};
  absl::StatusOr<SqliteGuest> fresh = SqliteGuest::CreateEmpty();
  if (!fresh.ok()) return fresh.status();
  status = Build(&*fresh);
  if (!status.ok()) return status;
  absl::StatusOr<uint64_t> size =
      fresh->CopyInto(LargestRoom(memory()), spec());
  if (!size.ok()) return size.status();
  return Open();
}

absl::Status BankWorkload::Build(SqliteGuest* db) const {
  absl::Status status = db->Execute(kSchema);
  if (status.ok()) status = db->Execute("BEGIN");
  if (!status.ok()) return status;
  absl::StatusOr<SqliteStatement> account =
      db->Prepare("INSERT INTO account VALUES(?1, ?2)");
  if (!account.ok()) return account.status();
  for (uint64_t id = 0; id < accounts_ && status.ok(); ++id) {
    status =
        db->Run(account->get(), {static_cast<int64_t>(id), kOpeningBalance});
  }
  absl::StatusOr<SqliteStatement> history =
      db->Prepare("INSERT INTO history VALUES(?1, 0, 0, 0, 0)");
  if (!history.ok()) return history.status();
  for (uint64_t slot = 0; slot < kHistory && status.ok(); ++slot) {
    status = db->Run(history->get(), {static_cast<int64_t>(slot)});
  }
  absl::StatusOr<SqliteStatement> bank =
      db->Prepare("INSERT INTO bank VALUES(0, ?1)");
  if (!bank.ok()) return bank.status();
  const int64_t money = static_cast<int64_t>(accounts_) * kOpeningBalance;
  if (status.ok()) status = db->Run(bank->get(), {money});
  if (status.ok()) status = db->Execute("COMMIT");
  return status;
}

absl::Status BankWorkload::Open() {
  for (SqliteStatement& statement : statements_) statement.reset();
  db_.reset();
  absl::StatusOr<SqliteGuest> opened =
      SqliteGuest::OpenInPlace(LargestRoom(memory()), /*read_only=*/false);
  if (!opened.ok()) return opened.status();
  db_.emplace(*std::move(opened));
  for (size_t i = 0; i < kSql.size(); ++i) {
    absl::StatusOr<SqliteStatement> statement = db_->Prepare(kSql[i]);
    if (!statement.ok()) return statement.status();
    statements_[i] = *std::move(statement);
  }
  return absl::OkStatus();
}

absl::Status BankWorkload::Attach() {
  absl::Status status = OpenControl();
  if (!status.ok()) return status;
  const auto* now = state<BankState>();
  if (now->accounts != accounts_) {
    return absl::DataLossError(absl::StrFormat(
        "workload '%s': block '%s', page 0: %u accounts where %u are: the "
        "state did not come over whole",
        spec(), memory().blocks()[0].name, now->accounts, accounts_));
  }
  return Open();
}

absl::Status BankWorkload::Step() {
  if (!db_.has_value()) {
    return absl::FailedPreconditionError("call Init or Attach before Step");
  }
  if (pacer_.Take(1) == 0) return absl::OkStatus();
  absl::Status status = Transfer();
  if (!status.ok()) {
    // Back to a boundary; if it fails too, there was no transaction.
    (void)db_->Execute("ROLLBACK");
    return status;
  }
  ++state<BankState>()->transfers;
  FinishStep();
  return absl::OkStatus();
}

absl::Status BankWorkload::Transfer() {
  auto* now = state<BankState>();
  const uint64_t source = now->random.Below(accounts_);
  uint64_t target = now->random.Below(accounts_ - 1);
  if (target >= source) ++target;
  const auto from = static_cast<int64_t>(source);
  const auto to = static_cast<int64_t>(target);
  auto amount = static_cast<int64_t>(1 + now->random.Below(kMaxAmount));
  absl::Status status = Run(kBegin, {});
  if (!status.ok()) return status;
  absl::StatusOr<int64_t> balance =
      db_->RunForInt(statements_[kBalance].get(), {from});
  if (!balance.ok()) return balance.status();
  amount = std::min(amount, *balance);
  const auto sequence = static_cast<int64_t>(now->transfers) + 1;
  const auto slot =
      static_cast<int64_t>(static_cast<uint64_t>(sequence) % kHistory);
  status = Run(kAdd, {from, -amount});
  if (status.ok()) status = Run(kAdd, {to, amount});
  if (status.ok()) status = Run(kLog, {slot, sequence, from, to, amount});
  if (status.ok()) status = Run(kCount, {});
  if (status.ok()) status = Run(kCommit, {});
  return status;
}

absl::Status BankWorkload::Inconsistent(absl::string_view what, int64_t found,
                                        int64_t expected) const {
  return absl::DataLossError(absl::StrFormat(
      "workload '%s': block '%s': %s: %d, not %d", spec(),
      LargestRoom(memory()).block->name, what, found, expected));
}

// Through a connection of its own, as this one's page cache would hide damage
// done to guest memory behind it.
absl::Status BankWorkload::Verify() {
  absl::StatusOr<SqliteGuest> db =
      SqliteGuest::OpenInPlace(LargestRoom(memory()), /*read_only=*/true);
  if (!db.ok()) return db.status();
  absl::StatusOr<std::string> integrity =
      db->QueryText("PRAGMA integrity_check");
  if (!integrity.ok()) return integrity.status();
  if (*integrity != "ok") {
    return absl::DataLossError(absl::StrFormat(
        "workload '%s': block '%s': SQLite's integrity check: %s", spec(),
        LargestRoom(memory()).block->name,
        integrity->substr(0, integrity->find('\n'))));
  }
  const auto* now = state<BankState>();
  const auto accounts = static_cast<int64_t>(accounts_);
  const auto transfers = static_cast<int64_t>(now->transfers);
  static_assert(kHistory == 1024, "the query below says so too");
  const struct {
    const char* what;
    const char* sql;
    int64_t expected;
  } checks[] = {
      {"number of accounts", "SELECT count(*) FROM account", accounts},
      {"sum of all balances", "SELECT sum(balance) FROM account",
       accounts * kOpeningBalance},
      {"money in the books", "SELECT money FROM bank",
       accounts * kOpeningBalance},
      {"committed transfers in the books", "SELECT transfers FROM bank",
       transfers},
      {"last transfer in the history", "SELECT max(seq) FROM history",
       transfers},
      {"transfers in the history",
       "SELECT count(*) FROM history WHERE seq > 0 AND seq % 1024 = slot",
       std::min(transfers, static_cast<int64_t>(kHistory))},
  };
  for (const auto& check : checks) {
    absl::StatusOr<int64_t> found = db->QueryInt(check.sql);
    if (!found.ok()) return found.status();
    if (*found != check.expected) {
      return Inconsistent(check.what, *found, check.expected);
    }
  }
  return absl::OkStatus();
}

std::string BankWorkload::Summary() const {
  return absl::StrFormat("%s: %u transfers between %u accounts", spec(),
                         state<BankState>()->transfers, accounts_);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeBank(SpecReader* reader,
                                                   WorkloadSetup setup) {
  uint64_t accounts = 10'000;
  uint64_t rate = 0;
  absl::Status status =
      reader->TakeCount("accounts", 2, kMaxAccounts, &accounts);
  if (status.ok()) status = reader->TakeCount("rate", 0, 1'000'000'000, &rate);
  if (!status.ok()) return status;
  return std::make_unique<BankWorkload>(std::move(setup), accounts, rate);
}

}  // namespace mig::sim
