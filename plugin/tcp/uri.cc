// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/uri.h"

#include <sys/un.h>

#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/error.h"
#include "common/net_address.h"

namespace mig::tcp {
namespace {

absl::Status Bad(absl::string_view uri, absl::string_view why) {
  return MakeError(MIG_E_URI,
                   absl::StrCat("URI '", uri, "' ", why,
                                ": give tcp://HOST:PORT, tcp://[IPV6]:PORT, "
                                "unix:PATH or fd:NUMBER"));
}

// SimpleAtoi also takes signs and surrounding blanks.
bool ParseNumber(absl::string_view digits, uint32_t most, uint32_t* number) {
  return !digits.empty() &&
         digits.find_first_not_of("0123456789") == absl::string_view::npos &&
         absl::SimpleAtoi(digits, number) && *number <= most;
}

}  // namespace

absl::StatusOr<Uri> ParseUri(absl::string_view text) {
  absl::string_view rest = text;
  absl::StatusOr<Uri> uri = Uri();
  if (absl::ConsumePrefix(&rest, "tcp://")) {
    HostPort parsed;
    std::string wrong;
    if (!ParseHostPort(rest, &parsed, &wrong)) return Bad(text, wrong);
    uri->host = std::move(parsed.host);
    uri->port = std::move(parsed.port);
  } else if (absl::ConsumePrefix(&rest, "unix:")) {
    constexpr size_t kMaxPath = sizeof(sockaddr_un::sun_path) - 1;
    if (rest.empty() || rest.size() > kMaxPath) {
      return Bad(text, absl::StrCat("has a path of ", rest.size(),
                                    " bytes, where 1 to ", kMaxPath, " fit"));
    }
    uri->kind = Uri::Kind::kUnix;
    uri->path = std::string(rest);
  } else if (absl::ConsumePrefix(&rest, "fd:")) {
    uri->kind = Uri::Kind::kFd;
    uint32_t number = 0;
    if (!ParseNumber(rest, std::numeric_limits<int>::max(), &number)) {
      return Bad(text, "has no file descriptor number");
    }
    uri->fd = static_cast<int>(number);
  } else {
    return Bad(text, "has a scheme that this plugin does not serve");
  }
  uri->text = std::string(text);
  return uri;
}

}  // namespace mig::tcp
