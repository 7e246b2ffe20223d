// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Who of the peers in the handshake has to go when more come than there is room
// for (C37). One that speaks in time keeps its place until it is served or its
// time is up: a flood can't push it out. One that says nothing has only a short
// time, so that silent strangers can't keep the others waiting. Newcomers
// without a place wait.
#ifndef PLUGIN_COMMON_NEWCOMERS_H_
#define PLUGIN_COMMON_NEWCOMERS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mig {

// Peers in the handshake at a time.
inline constexpr size_t kMostInHandshake = 32;

// How long one may be silent while others wait: its hello is the first thing
// that the right peer sends.
constexpr uint64_t SilenceLimitNs(uint64_t handshake_timeout_ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  return std::min(kSecond, handshake_timeout_ns / 4);
}

struct Newcomer {
  uint64_t deadline_ns = 0;  // of its handshake
  bool spoke = false;        // said a valid hello
};

// Which one makes room, the longest silent; SIZE_MAX: none has to, and then
// *again_ns is when that may be otherwise, without a change.
size_t PickSilent(std::span<const Newcomer> pending,
                  uint64_t handshake_timeout_ns, uint64_t now_ns,
                  uint64_t* again_ns);

}  // namespace mig

#endif  // PLUGIN_COMMON_NEWCOMERS_H_
