// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The incoming side of a connection: frames are read whole, guest memory is
// read straight into its place.
#ifndef PLUGIN_TCP_FRAME_READER_H_
#define PLUGIN_TCP_FRAME_READER_H_

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/zero_pages.h"
#include "tcp/stream.h"
#include "tcp/wire.h"

namespace mig::tcp {

// Where the bytes of one kData frame go.
struct DataPlan {
  std::vector<struct iovec> fill;
  std::vector<ZeroRun> zero;
  std::vector<ZeroRun> written;  // what `fill` covers
};

// Takes what a reader has read. An error ends the connection.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // The largest payload that a frame of this type may have now. Errors:
  // PROTOCOL where the type may not come at all.
  virtual absl::StatusOr<uint32_t> PayloadLimit(FrameType type) = 0;
  // A whole frame other than kData. The payload may be moved from.
  virtual absl::Status OnFrame(const FrameHeader& header,
                               std::vector<uint8_t>* payload) = 0;
  // The ranges of a kData frame: checks each, and plans where they go.
  virtual absl::Status OnData(const FrameHeader& header,
                              std::span<const uint8_t> ranges,
                              DataPlan* plan) = 0;
};

struct ReaderCounts {
  uint64_t data_bytes = 0;
  uint64_t wire_bytes = 0;
  uint64_t receive_calls = 0;
  uint64_t frames = 0;
  uint64_t zeroed_bytes = 0;  // written by memset
};

enum class ReadOutcome {
  kDry,    // the stream has no more for now
  kYield,  // the budget is used up; call again
  kHeld,   // Hold was called by the handler
  kEnd,    // the peer closed, between two frames
};

// Not thread-safe. It never reads past the frame that it is in, but for the
// next header, so a handler can be changed between frames. Nothing is
// allocated per page; a batch costs about as many recvmsg as the socket buffer
// makes of it.
class FrameReader {
 public:
  // Reads until the stream is dry or about `budget` bytes have moved (memset
  // included). Errors: LOST (also: closed inside a frame), PROTOCOL,
  // GUEST_MEMORY, and the handler's.
  absl::StatusOr<ReadOutcome> Pump(ByteStream* stream, FrameHandler* handler,
                                   uint64_t budget);
  // From inside a handler: return after this frame.
  void Hold() { hold_ = true; }
  bool between_frames() const { return state_ == State::kHeader && got_ == 0; }
  const ReaderCounts& counts() const { return counts_; }

 private:
  enum class State { kHeader, kPayload, kZero, kFill };

  absl::Status Complete(FrameHandler* handler);
  void BeginFill();
  absl::Status OnHeader(FrameHandler* handler);
  absl::Status OnPayload(FrameHandler* handler);
  size_t Targets();
  void Advance(size_t received);

  State state_ = State::kHeader;
  size_t got_ = 0;  // of the header or payload
  std::array<uint8_t, kHeaderSize> header_bytes_ = {};
  FrameHeader header_;
  std::vector<uint8_t> payload_;
  DataPlan plan_;
  size_t next_fill_ = 0;
  size_t next_zero_ = 0;
  bool hold_ = false;
  std::vector<struct iovec> targets_;
  ReaderCounts counts_;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_FRAME_READER_H_
