// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_SQLITE_GUEST_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_SQLITE_GUEST_H_

#include <sqlite3.h>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "guest/room.h"

namespace mig::sim {

struct CloseSqlite {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeSqlite {
  void operator()(sqlite3_stmt* statement) const {
    sqlite3_finalize(statement);
  }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinalizeSqlite>;

// A connection to a database in memory. One thread at a time. Errors are
// Internal or, where the database is found damaged, DataLoss; a full one is
// ResourceExhausted.
class SqliteGuest {
 public:
  // A new, empty database in memory of SQLite's own.
  static absl::StatusOr<SqliteGuest> CreateEmpty();

  // The database whose bytes are in `room`, used in place: SQLite reads and
  // writes guest memory, never more than the room, and never frees it. What
  // is committed is in guest memory when the commit returns. DataLoss if no
  // database is there.
  static absl::StatusOr<SqliteGuest> OpenInPlace(const Room& room,
                                                 bool read_only);

  // Copies the whole database into `room`, which must hold it with a quarter
  // to spare for growth (InvalidArgument otherwise). Returns its size in bytes.
  absl::StatusOr<uint64_t> CopyInto(const Room& room, const std::string& who);

  absl::Status Execute(const char* sql);
  absl::StatusOr<SqliteStatement> Prepare(const char* sql);
  // Binds `values` to the parameters in order, runs to the end and resets.
  absl::Status Run(sqlite3_stmt* statement,
                   std::initializer_list<int64_t> values);
  // The same, of a statement that gives one row: its first column.
  absl::StatusOr<int64_t> RunForInt(sqlite3_stmt* statement,
                                    std::initializer_list<int64_t> values);
  absl::StatusOr<int64_t> QueryInt(const char* sql);
  absl::StatusOr<std::string> QueryText(const char* sql);

 private:
  explicit SqliteGuest(sqlite3* db) : db_(db) {}
  absl::Status Failure(int code, const char* doing) const;

  std::unique_ptr<sqlite3, CloseSqlite> db_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_SQLITE_GUEST_H_
