// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/mig_status.h"

#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace mig::sim {
namespace {

constexpr char kCodePayload[] = "migtransport/mig_status";

constexpr std::pair<int32_t, const char*> kNames[] = {
    {MIG_OK, "OK"},
    {MIG_AGAIN, "AGAIN"},
    {MIG_BUSY, "BUSY"},
    {MIG_E_ARGUMENT, "E_ARGUMENT"},
    {MIG_E_STRUCT_SIZE, "E_STRUCT_SIZE"},
    {MIG_E_RANGE, "E_RANGE"},
    {MIG_E_OPTION, "E_OPTION"},
    {MIG_E_URI, "E_URI"},
    {MIG_E_BLOCK, "E_BLOCK"},
    {MIG_E_STATE, "E_STATE"},
    {MIG_E_UNSUPPORTED, "E_UNSUPPORTED"},
    {MIG_E_VERSION, "E_VERSION"},
    {MIG_E_STRICT, "E_STRICT"},
    {MIG_E_PEER_UNREACHABLE, "E_PEER_UNREACHABLE"},
    {MIG_E_PEER_LOST, "E_PEER_LOST"},
    {MIG_E_PEER_TIMEOUT, "E_PEER_TIMEOUT"},
    {MIG_E_PEER_CLOSED, "E_PEER_CLOSED"},
    {MIG_E_PEER_CANCELLED, "E_PEER_CANCELLED"},
    {MIG_E_PEER_FAILED, "E_PEER_FAILED"},
    {MIG_E_PEER_MISMATCH, "E_PEER_MISMATCH"},
    {MIG_E_PEER_PROTOCOL, "E_PEER_PROTOCOL"},
    {MIG_E_PEER_AUTH, "E_PEER_AUTH"},
    {MIG_E_CANCELLED, "E_CANCELLED"},
    {MIG_E_FAILED, "E_FAILED"},
    {MIG_E_DEVICE, "E_DEVICE"},
    {MIG_E_DEVICE_REMOVED, "E_DEVICE_REMOVED"},
    {MIG_E_MEMORY, "E_MEMORY"},
    {MIG_E_LIMIT, "E_LIMIT"},
    {MIG_E_ADDRESS, "E_ADDRESS"},
    {MIG_E_PERMISSION, "E_PERMISSION"},
    {MIG_E_INTERNAL, "E_INTERNAL"},
};

constexpr const char* kEventNames[] = {
    "event ?",    "CONNECTED",   "BLOCKS_READY",     "BLOCK_REMOVED",
    "ROUND_DONE", "MESSAGE",     "SEND_READY",       "WRITE_READY",
    "HANDOVER",   "COMMITTED",   "HANDOVER_REFUSED", "IN_DOUBT",
    "ERROR",      "PEER_CLOSED", "CLOSED",           "FDS_CHANGED",
    "PREPARING"};

absl::StatusCode Canonical(int32_t code) {
  switch (-code / 100) {
    case 1:
      return absl::StatusCode::kInvalidArgument;
    case 2:
      return absl::StatusCode::kFailedPrecondition;
    case 3:
      return absl::StatusCode::kUnavailable;
    case 4:
      return absl::StatusCode::kCancelled;
    case 5:
      return absl::StatusCode::kDataLoss;
    case 6:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

// A hostile plugin may leave out the NUL, or put in a line break.
std::string OneLine(const mig_error& error) {
  std::string text(error.message, strnlen(error.message, sizeof error.message));
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  }
  return text;
}

}  // namespace

const char* MigEventName(uint32_t type) {
  return kEventNames[type < std::size(kEventNames) ? type : 0];
}

mig_error NewError() {
  mig_error error = {};
  error.size = sizeof error;
  return error;
}

std::string MigStatusName(int32_t code) {
  for (const auto& [known, name] : kNames) {
    if (known == code) return name;
  }
  return absl::StrCat("E_", -(code / 100), "/", code);
}

absl::Status MigToStatus(int32_t code, const mig_error& error,
                         absl::string_view doing) {
  if (code >= 0) return absl::OkStatus();
  std::string text =
      absl::StrCat(doing, doing.empty() ? "" : ": ", OneLine(error));
  if (error.message[0] == '\0') {
    absl::StrAppend(&text, "the plugin gave no reason");
  }
  absl::StrAppend(&text, " [", MigStatusName(code));
  if (error.system_errno != 0) {
    absl::StrAppend(&text, ", errno ", error.system_errno);
  }
  if (error.provider_code != 0) {
    absl::StrAppend(&text, ", provider ", error.provider_code);
  }
  absl::Status status(Canonical(code), absl::StrCat(text, "]"));
  status.SetPayload(kCodePayload, absl::Cord(absl::StrCat(code)));
  return status;
}

int32_t MigCodeOf(const absl::Status& status) {
  const absl::optional<absl::Cord> payload = status.GetPayload(kCodePayload);
  int32_t code = MIG_OK;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &code)) {
    return MIG_OK;
  }
  return code;
}

absl::Status WithContext(const absl::Status& status,
                         absl::string_view context) {
  if (status.ok()) return status;
  absl::Status result(status.code(),
                      absl::StrCat(context, ": ", status.message()));
  status.ForEachPayload(
      [&result](absl::string_view url, const absl::Cord& payload) {
        result.SetPayload(url, payload);
      });
  return result;
}

}  // namespace mig::sim
