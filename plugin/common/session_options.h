// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What every plugin's session takes from its context's options and parameters.
#ifndef PLUGIN_COMMON_SESSION_OPTIONS_H_
#define PLUGIN_COMMON_SESSION_OPTIONS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/hello.h"
#include "common/options.h"
#include "mig_transport.h"

namespace mig {

// Options that every transport has; each puts them into its own table.
inline constexpr struct mig_option kKeyOption = {
    "key",
    "",
    "text",
    "pre-shared key that both sides prove to have (HMAC-SHA256)",
    MIG_OPTION_STRING,
    MIG_OPTION_SECRET};
inline constexpr struct mig_option kKeyFileOption = {
    "key-file",
    "",
    "a path",
    "file that holds the key, so that no command line shows it",
    MIG_OPTION_STRING,
    0};
inline constexpr struct mig_option kPeerTimeoutOption = {
    "peer-timeout",      "10s",
    "100ms..600s",       "silence after which the peer is given up",
    MIG_OPTION_DURATION, 0};
inline constexpr struct mig_option kConnectTimeoutOption = {
    "connect-timeout",   "10s",
    "100ms..600s",       "for looking up and connecting, over all addresses",
    MIG_OPTION_DURATION, 0};
inline constexpr struct mig_option kHandshakeTimeoutOption = {
    "handshake-timeout", "5s",
    "100ms..600s",       "for a connected peer to prove who it is",
    MIG_OPTION_DURATION, 0};
inline constexpr struct mig_option kCloseTimeoutOption = {
    "close-timeout",     "1s",
    "10ms..60s",         "for the last messages to go out in close",
    MIG_OPTION_DURATION, 0};
inline constexpr struct mig_option kMaxMessageOption = {
    "max-message",   "1M",
    "512K..64M",     "largest control message offered to the peer",
    MIG_OPTION_SIZE, 0};

// The key of the options key and key-file, empty for none. Neither waits nor
// reads without end, whatever the path names. Errors: OPTION.
absl::StatusOr<std::string> ReadKey(const Options& options);

// Role, attempt, flags and extensions, of which no plugin has any yet. Errors:
// ARGUMENT, UNSUPPORTED.
absl::Status CheckParams(const struct mig_session_params& params);

// What a session says of itself by its parameters and the options above, and
// the key. Errors: those of CheckParams and ReadKey.
absl::Status FillHello(const struct mig_session_params& params,
                       const Options& options, CommonHello* hello,
                       std::string* key);

}  // namespace mig

#endif  // PLUGIN_COMMON_SESSION_OPTIONS_H_
