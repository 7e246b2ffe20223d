// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The outgoing side of a connection: control frames and batches of guest
// memory in one order, sent straight from where the memory is.
#ifndef PLUGIN_TCP_FRAME_WRITER_H_
#define PLUGIN_TCP_FRAME_WRITER_H_

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/block_table.h"
#include "common/ring_queue.h"
#include "tcp/stream.h"
#include "tcp/wire.h"

namespace mig::tcp {

struct WriterCounts {
  uint64_t data_bytes = 0;  // of guest memory, handed to the kernel
  uint64_t wire_bytes = 0;  // everything
  uint64_t send_calls = 0;
  uint64_t batches = 0;
  uint64_t ranges = 0;
  uint64_t merged = 0;  // ranges that went into the one before
};

// Not thread-safe. A page costs one wire range and one iovec in a batch that
// was allocated beforehand; a batch costs a fraction of a sendmsg.
class FrameWriter {
 public:
  // Room for `slots` batches under way; without it no data can be sent.
  void EnableData(size_t slots);

  // Queues a frame; the payload is copied. Returns its place in the order, for
  // HasStarted. `tail` is what follows `payload`, in pieces.
  uint64_t Queue(const FrameHeader& header, std::span<const uint8_t> payload,
                 std::span<const struct mig_iov> tail = {});

  // How many ranges Append takes for sure, if none is larger than a batch.
  size_t RangeRoom() const;
  // Takes a part of the range, from its start, into the open batch; returns
  // the bytes taken, whole pages or whole zero ranges only; 0: no room.
  uint64_t Append(uint64_t round, const Block& block, uint64_t offset,
                  uint64_t length, bool zero);
  // Ends the open batch, if there is one, so that it can go out.
  void Seal();

  // Hands as much to the stream as it takes. *blocked: it took not all.
  // Errors: LOST, GUEST_MEMORY.
  absl::Status Pump(ByteStream* stream, bool* blocked);

  bool empty() const { return items_.empty(); }
  bool has_open_batch() const { return open_ranges_ > 0; }
  // All that was queued before `place` (as Queue numbers it) is gone out.
  bool HasFinished(uint64_t place) const { return finished_ > place; }
  uint64_t last_place() const { return finished_ + items_.size() - 1; }
  // At least one byte of the frame at `place` was handed to the kernel.
  bool HasStarted(uint64_t place) const {
    return finished_ + (front_started_ ? 1 : 0) > place;
  }
  // Forgets all that no byte was sent of, and the open batch.
  void DropUnstarted();
  const WriterCounts& counts() const { return counts_; }

 private:
  struct Slot {
    std::vector<WireRange> ranges;
    std::vector<uint8_t> head;         // header and encoded ranges
    std::vector<struct iovec> pieces;  // [0] is the head
    size_t piece_count = 1;
    uint64_t data_bytes = 0;
    uint64_t round = 0;
  };
  struct Item {
    int slot = -1;  // or a control frame
    std::vector<uint8_t> bytes;
  };

  Slot& open_slot() {
    return slots_[(first_slot_ + used_slots_) % slots_.size()];
  }
  std::span<const struct iovec> PiecesOf(Item& item, struct iovec* control);
  size_t Gather();
  void Advance(size_t sent);
  void FinishFront();

  std::vector<Slot> slots_;
  size_t first_slot_ = 0;
  size_t used_slots_ = 0;  // sealed; the open one comes after them
  size_t open_ranges_ = 0;
  RingQueue<Item> items_;
  uint64_t finished_ = 0;
  // Where the front item stands.
  bool front_started_ = false;
  size_t front_piece_ = 0;
  size_t front_offset_ = 0;
  static constexpr size_t kMaxPieces = 1024;  // IOV_MAX on Linux
  std::array<struct iovec, kMaxPieces> gathered_;
  WriterCounts counts_;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_FRAME_WRITER_H_
