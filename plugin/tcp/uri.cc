// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/uri.h"

#include <sys/un.h>

#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/error.h"

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

absl::StatusOr<Uri> ParseTcp(absl::string_view text, absl::string_view rest) {
  Uri uri;
  absl::string_view port;
  if (absl::StartsWith(rest, "[")) {
    const size_t end = rest.find(']');
    if (end == absl::string_view::npos || end + 1 >= rest.size() ||
        rest[end + 1] != ':') {
      return Bad(text, "has no ']:' after its IPv6 address");
    }
    uri.host = absl::StrReplaceAll(rest.substr(1, end - 1), {{"%25", "%"}});
    port = rest.substr(end + 2);
  } else {
    const size_t colon = rest.rfind(':');
    if (colon == absl::string_view::npos) return Bad(text, "has no port");
    uri.host = std::string(rest.substr(0, colon));
    port = rest.substr(colon + 1);
    if (absl::StrContains(uri.host, ":")) {
      return Bad(text, "has an IPv6 address without brackets");
    }
  }
  if (uri.host.find_first_of("/?#@ \t") != std::string::npos ||
      uri.host.size() > 255) {
    return Bad(text,
               "has a host name with characters or a length that none has");
  }
  uint32_t number = 0;
  if (!ParseNumber(port, 65535, &number)) {
    return Bad(text, "has a port that is no number from 0 to 65535");
  }
  uri.port = absl::StrCat(number);
  return uri;
}

}  // namespace

absl::StatusOr<Uri> ParseUri(absl::string_view text) {
  absl::string_view rest = text;
  absl::StatusOr<Uri> uri = Uri();
  if (absl::ConsumePrefix(&rest, "tcp://")) {
    uri = ParseTcp(text, rest);
    if (!uri.ok()) return uri.status();
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
