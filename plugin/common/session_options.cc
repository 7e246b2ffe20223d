// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "common/session_options.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/error.h"
#include "common/unique_fd.h"

namespace mig {
namespace {

absl::Status CheckExtensions(const char* wanted) {
  if (wanted == nullptr) return absl::OkStatus();
  for (absl::string_view id : absl::StrSplit(wanted, ',', absl::SkipEmpty())) {
    if (!absl::EndsWith(id, "?")) {
      return MakeError(MIG_E_UNSUPPORTED,
                       absl::StrCat("extension '", id,
                                    "' is not supported: this plugin has none "
                                    "(write '",
                                    id, "?' if it can be done without)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadKey(const Options& options) {
  const std::string& path = options.Text("key-file");
  if (path.empty()) return options.Text("key");
  constexpr size_t kMaxKey = 4096;
  std::string key(kMaxKey + 2, '\0');
  const UniqueFd file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  size_t size = 0;
  ssize_t got = file.valid() ? 1 : -1;
  while (got > 0 && size < key.size()) {
    got = read(file.get(), key.data() + size, key.size() - size);
    if (got > 0) size += static_cast<size_t>(got);
  }
  if (got < 0) {
    return MakeSystemError(
        MIG_E_OPTION,
        absl::StrCat("key-file '", path,
                     "' can't be read: name a file that holds the key"),
        errno);
  }
  key.resize(size);
  // Editors end files with a line feed, and the peer's may not.
  while (!key.empty() && (key.back() == '\n' || key.back() == '\r')) {
    key.pop_back();
  }
  if (key.empty() || key.size() > kMaxKey) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("key-file '", path,
                                  "' holds no key of 1 to 4096 bytes: name a "
                                  "file that holds the key"));
  }
  return key;
}

absl::Status CheckParams(const struct mig_session_params& params) {
  if (params.role != MIG_ROLE_SOURCE && params.role != MIG_ROLE_DESTINATION) {
    return MakeError(MIG_E_ARGUMENT,
                     absl::StrCat("role ", params.role,
                                  " does not exist: give 1 for source or 2 for "
                                  "destination"));
  }
  if (params.attempt == 0) {
    return MakeError(MIG_E_ARGUMENT,
                     "attempt 0 does not exist: count them from 1");
  }
  if (params.flags != 0) {
    return MakeError(
        MIG_E_ARGUMENT,
        absl::StrCat("session flags ", params.flags, " are unknown: give 0"));
  }
  return CheckExtensions(params.extensions);
}

absl::Status FillHello(const struct mig_session_params& params,
                       const Options& options, CommonHello* hello,
                       std::string* key) {
  MIG_RETURN_IF_ERROR(CheckParams(params));
  auto read = ReadKey(options);
  if (!read.ok()) return read.status();
  *key = *std::move(read);
  hello->role = params.role;
  hello->auth = key->empty() ? 0 : 1;
  std::copy_n(params.vm_uuid, MIG_UUID_SIZE, hello->uuid.begin());
  hello->attempt = params.attempt;
  hello->max_message = options.Number("max-message");
  hello->window = 4 * hello->max_message;
  hello->peer_timeout_ns = options.Number("peer-timeout");
  return absl::OkStatus();
}

}  // namespace mig
