// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/sqlite_guest.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_format.h"
#include "guest/guest_memory.h"
#include "guest/parse.h"

namespace mig::sim {
namespace {

constexpr char kHeader[16] = "SQLite format 3";
constexpr size_t kPageSizeAt = 16;
constexpr size_t kPageCountAt = 28;

// The file's bytes are the state, so SQLite keeps no second file: its journal
// and what is temporary are its own memory's, and empty between transactions.
constexpr char kSettings[] =
    "PRAGMA journal_mode=MEMORY;"
    "PRAGMA temp_store=MEMORY;"
    "PRAGMA mmap_size=0;"
    "PRAGMA trusted_schema=OFF;"
    "PRAGMA cell_size_check=ON;";

uint64_t BigEndian(const std::byte* at, int bytes) {
  uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) {
    value = value << 8 | static_cast<uint64_t>(at[i]);
  }
  return value;
}

// The size is nowhere but in the database's own header.
absl::StatusOr<uint64_t> DatabaseSize(const Room& room) {
  const std::byte* data = room.data();
  const uint64_t page = BigEndian(data + kPageSizeAt, 2);
  const uint64_t size = page * BigEndian(data + kPageCountAt, 4);
  if (memcmp(data, kHeader, sizeof(kHeader)) != 0 || page != kPageSize ||
      size == 0 || size > room.length) {
    return absl::DataLossError(absl::StrFormat(
        "block '%s', page %u (offset 0x%x): no SQLite database of 4096-byte "
        "pages and at most %u bytes there, but one of %u",
        room.block->name, room.offset / kPageSize, room.offset, room.length,
        size));
  }
  return size;
}

absl::StatusOr<sqlite3*> OpenMemory() {
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(
      ":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  if (code == SQLITE_OK) return db;
  sqlite3_close_v2(db);
  return absl::InternalError(absl::StrFormat(
      "SQLite cannot open a database: %s", sqlite3_errstr(code)));
}

}  // namespace

absl::StatusOr<SqliteGuest> SqliteGuest::CreateEmpty() {
  absl::StatusOr<sqlite3*> db = OpenMemory();
  if (!db.ok()) return db.status();
  SqliteGuest guest(*db);
  absl::Status status = guest.Execute("PRAGMA page_size=4096;");
  if (!status.ok()) return status;
  return guest;
}

absl::StatusOr<SqliteGuest> SqliteGuest::OpenInPlace(const Room& room,
                                                     bool read_only) {
  absl::StatusOr<uint64_t> size = DatabaseSize(room);
  if (!size.ok()) return size.status();
  absl::StatusOr<sqlite3*> db = OpenMemory();
  if (!db.ok()) return db.status();
  SqliteGuest guest(*db);
  // Neither RESIZEABLE nor FREEONCLOSE: guest memory is not SQLite's.
  const int code = sqlite3_deserialize(
      *db, "main", reinterpret_cast<unsigned char*>(room.data()),
      static_cast<sqlite3_int64>(*size),
      static_cast<sqlite3_int64>(room.length),
      read_only ? SQLITE_DESERIALIZE_READONLY : 0);
  if (code != SQLITE_OK) return guest.Failure(code, "opening guest memory");
  absl::Status status = guest.Execute(kSettings);
  if (!status.ok()) return status;
  return guest;
}

absl::StatusOr<uint64_t> SqliteGuest::CopyInto(const Room& room,
                                               const std::string& who) {
  sqlite3_int64 size = 0;
  const std::unique_ptr<unsigned char, void (*)(void*)> bytes(
      sqlite3_serialize(db_.get(), "main", &size, 0), sqlite3_free);
  if (bytes == nullptr) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "workload '%s': no memory for a database of %u bytes", who, size));
  }
  const uint64_t need = static_cast<uint64_t>(size) / 4 * 5;
  if (need > room.length) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "workload '%s': a database of %u bytes needs %u with room to grow, and "
        "block '%s' has %u: give it more memory, or fewer accounts",
        who, size, need, room.block->name, room.length));
  }
  memcpy(room.data(), bytes.get(), static_cast<size_t>(size));
  return static_cast<uint64_t>(size);
}

absl::Status SqliteGuest::Failure(int code, const char* doing) const {
  const std::string text = absl::StrFormat("SQLite, %s: %s (%d)", doing,
                                           sqlite3_errmsg(db_.get()), code);
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          text + ": the guest's memory is used up: give it more");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Status SqliteGuest::Execute(const char* sql) {
  const int code = sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Failure(code, sql);
}

absl::StatusOr<SqliteStatement> SqliteGuest::Prepare(const char* sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(
      db_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
  if (code != SQLITE_OK) return Failure(code, sql);
  return SqliteStatement(statement);
}

absl::Status SqliteGuest::Run(sqlite3_stmt* statement,
                              std::initializer_list<int64_t> values) {
  int index = 0;
  for (const int64_t value : values) {
    sqlite3_bind_int64(statement, ++index, value);
  }
  int code = sqlite3_step(statement);
  while (code == SQLITE_ROW) code = sqlite3_step(statement);
  absl::Status status = code == SQLITE_DONE
                            ? absl::OkStatus()
                            : Failure(code, sqlite3_sql(statement));
  sqlite3_reset(statement);
  return status;
}

absl::StatusOr<int64_t> SqliteGuest::RunForInt(
    sqlite3_stmt* statement, std::initializer_list<int64_t> values) {
  int index = 0;
  for (const int64_t value : values) {
    sqlite3_bind_int64(statement, ++index, value);
  }
  const int code = sqlite3_step(statement);
  if (code == SQLITE_ROW) {
    const int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    return value;
  }
  absl::Status status =
      code == SQLITE_DONE
          ? absl::DataLossError(absl::StrFormat("SQLite, %s: no such row",
                                                sqlite3_sql(statement)))
          : Failure(code, sqlite3_sql(statement));
  sqlite3_reset(statement);
  return status;
}

absl::StatusOr<int64_t> SqliteGuest::QueryInt(const char* sql) {
  absl::StatusOr<SqliteStatement> statement = Prepare(sql);
  if (!statement.ok()) return statement.status();
  return RunForInt(statement->get(), {});
}

absl::StatusOr<std::string> SqliteGuest::QueryText(const char* sql) {
  absl::StatusOr<SqliteStatement> statement = Prepare(sql);
  if (!statement.ok()) return statement.status();
  const int code = sqlite3_step(statement->get());
  if (code != SQLITE_ROW) return Failure(code, sql);
  const unsigned char* text = sqlite3_column_text(statement->get(), 0);
  return text == nullptr ? std::string()
                         : std::string(reinterpret_cast<const char*>(text));
}

}  // namespace mig::sim
