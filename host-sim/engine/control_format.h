// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What two mig-host-sim say to each other over the transport's control channel.
// Integers are in network order; a string is a 16-bit count and its bytes. A
// message is exactly as long as its fields: anything shorter, longer or out of
// its range is refused, and nothing of it is used.
//
//   type          from  fields
//   1 GUEST       S     u32 magic "MGS2", u32 flags (1: a proof will follow),
//                       u64 seed, string workload, string machine,
//                       u16 count, count x {string name, u64 length,
//                       u64 page_size, u32 backing}
//   2 STATE       S     u64 total, u64 offset, bytes: a piece of the device
//                       state, in order; the last one reaches `total`
//   3 PROOF       S     the same of what the destination verifies itself
//                       against; after COMMITTED
//   4 PAGE_QUERY  D     string block, u64 offset, u64 length: of a region
//   5 PAGES       S     the same, u32 count, count x u64: its pages' hashes
//   6 RESULT      D     u32 outcome, u64 handover_ns, u64 resumed_ns,
//                       u64 verify_ns, string machine, string text
//   7 REASON      D     string: why it ends without taking the guest
//   8 PING        S     u64 number: to be given back at once
//   9 PONG        D     the same
//
// `machine` is the kernel's boot id: equal ids mean one CLOCK_MONOTONIC.
// Device state and proof are each a list of sections {u32 kind, u64 length,
// bytes} and the XXH3 of all of them, a u64, at the end. Each kind, which
// state_stream.h lists, occurs at most once.
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_CONTROL_FORMAT_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_CONTROL_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mig::sim {

using Bytes = std::vector<std::byte>;
using ByteSpan = absl::Span<const std::byte>;

enum MessageType : uint32_t {
  kGuestMessage = 1,
  kStateMessage = 2,
  kProofMessage = 3,
  kPageQueryMessage = 4,
  kPagesMessage = 5,
  kResultMessage = 6,
  kReasonMessage = 7,
  kPingMessage = 8,
  kPongMessage = 9,
};

inline constexpr size_t kMaxBlocks = 64;
inline constexpr uint64_t kMaxStateBytes = uint64_t{1} << 30;
inline constexpr uint32_t kMaxPageHashes = 32768;

struct GuestMessage {
  struct Block {
    std::string name;
    uint64_t length = 0;     // bytes
    uint64_t page_size = 0;  // bytes
    uint32_t backing = 0;    // the source's, as guest/guest_memory.h numbers it
    bool operator==(const Block&) const = default;
  };
  bool proof_follows = false;
  uint64_t seed = 0;
  std::string workload;  // as given to --workload
  std::string machine;
  std::vector<Block> blocks;
  bool operator==(const GuestMessage&) const = default;
};

struct PageQueryMessage {
  std::string block;
  uint64_t offset = 0;  // bytes
  uint64_t length = 0;
  bool operator==(const PageQueryMessage&) const = default;
};

struct PagesMessage {
  PageQueryMessage region;       // as it was asked for
  std::vector<uint64_t> hashes;  // one a page
  bool operator==(const PagesMessage&) const = default;
};

enum class VerifyOutcome : uint32_t { kVerified = 1, kMismatch = 2, kNot = 3 };

struct ResultMessage {
  VerifyOutcome outcome = VerifyOutcome::kNot;
  uint64_t handover_ns = 0;  // CLOCK_MONOTONIC there: the guest was offered
  uint64_t resumed_ns = 0;   // ... and could run
  uint64_t verify_ns = 0;    // how long the digests took
  std::string machine;
  std::string text;  // one line: what differs, or why it was not verified
  bool operator==(const ResultMessage&) const = default;
};

struct ReasonMessage {
  std::string text;  // one line
  bool operator==(const ReasonMessage&) const = default;
};

struct PingMessage {
  uint64_t number = 0;
  bool operator==(const PingMessage&) const = default;
};

// Each Encode makes the message's bytes; each Parse refuses with
// InvalidArgument what is not exactly one. Any thread.
Bytes Encode(const GuestMessage& message);
Bytes Encode(const PageQueryMessage& message);
Bytes Encode(const PagesMessage& message);
Bytes Encode(const ResultMessage& message);
Bytes Encode(const ReasonMessage& message);
Bytes Encode(const PingMessage& message);
absl::StatusOr<GuestMessage> ParseGuest(ByteSpan data);
absl::StatusOr<PageQueryMessage> ParsePageQuery(ByteSpan data);
absl::StatusOr<PagesMessage> ParsePages(ByteSpan data);
absl::StatusOr<ResultMessage> ParseResult(ByteSpan data);
absl::StatusOr<ReasonMessage> ParseReason(ByteSpan data);
absl::StatusOr<PingMessage> ParsePing(ByteSpan data);

// This machine's boot id, "" if it has none.
std::string MachineId();

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_CONTROL_FORMAT_H_
