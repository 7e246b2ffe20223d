// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/error.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "absl/strings/cord.h"

namespace mig {
namespace {

constexpr char kPayloadUrl[] = "migtransport/error";

struct ErrorPayload {
  int32_t code;
  int32_t system_errno;
};

absl::StatusCode CanonicalCode(int32_t code) {
  switch (-code / 100) {
    case 1:
      return absl::StatusCode::kInvalidArgument;
    case 2:
      return absl::StatusCode::kFailedPrecondition;
    case 3:
      return absl::StatusCode::kUnavailable;
    case 4:
      return absl::StatusCode::kAborted;
    case 5:
      return absl::StatusCode::kUnavailable;
    case 6:
      return absl::StatusCode::kResourceExhausted;
    default:
      return absl::StatusCode::kInternal;
  }
}

ErrorPayload PayloadOf(const absl::Status& status) {
  ErrorPayload payload{status.ok() ? MIG_OK : MIG_E_INTERNAL, 0};
  if (const auto cord = status.GetPayload(kPayloadUrl); cord.has_value()) {
    const std::string bytes(*cord);
    if (bytes.size() == sizeof(payload)) {
      std::memcpy(&payload, bytes.data(), sizeof(payload));
    }
  }
  return payload;
}

// Messages come from peers too: what is not printable is replaced, so that an
// error stays one line and can't drive a terminal.
void CopyOneLine(absl::string_view text, char* to, size_t size) {
  const size_t length = std::min(text.size(), size - 1);
  for (size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    to[i] = (c < 0x20 || c == 0x7f) ? ' ' : static_cast<char>(c);
  }
  std::memset(to + length, 0, size - length);
}

int32_t Fill(const ErrorPayload& payload, absl::string_view message,
             struct mig_error* error) {
  constexpr size_t kHead = offsetof(struct mig_error, message);
  if (error == nullptr || error->size <= kHead) return payload.code;
  error->code = payload.code;
  error->system_errno = payload.system_errno;
  error->provider_code = 0;
  CopyOneLine(message, error->message,
              std::min<size_t>(error->size - kHead, sizeof(error->message)));
  // Rule 1.5: all of the caller's struct, also what is newer than this plugin.
  if (error->size > sizeof(*error)) {
    std::memset(reinterpret_cast<unsigned char*>(error) + sizeof(*error), 0,
                error->size - sizeof(*error));
  }
  return payload.code;
}

}  // namespace

absl::Status MakeError(int32_t code, absl::string_view message,
                       int system_errno) {
  absl::Status status(CanonicalCode(code), message);
  const ErrorPayload payload{code, system_errno};
  status.SetPayload(kPayloadUrl, absl::Cord(absl::string_view(
                                     reinterpret_cast<const char*>(&payload),
                                     sizeof(payload))));
  return status;
}

absl::Status MakeSystemError(int32_t code, absl::string_view message,
                             int system_errno) {
  return MakeError(code, absl::StrCat(message, ": ", ErrnoText(system_errno)),
                   system_errno);
}

std::string ErrnoText(int system_errno) {
  // strerrordesc_np is thread-safe and constant, unlike strerror.
  const char* text = strerrordesc_np(system_errno);
  return text != nullptr ? text : absl::StrCat("errno ", system_errno);
}

int32_t ErrorCode(const absl::Status& status) { return PayloadOf(status).code; }

int ErrorErrno(const absl::Status& status) {
  return PayloadOf(status).system_errno;
}

absl::Status Annotate(const absl::Status& status, absl::string_view prefix) {
  const ErrorPayload payload = PayloadOf(status);
  return MakeError(payload.code, absl::StrCat(prefix, status.message()),
                   payload.system_errno);
}

int32_t FillError(const absl::Status& status, struct mig_error* error) {
  return Fill(PayloadOf(status), status.message(), error);
}

int32_t FillPlainError(int32_t code, const char* message,
                       struct mig_error* error) {
  return Fill(ErrorPayload{code, 0}, message, error);
}

}  // namespace mig
