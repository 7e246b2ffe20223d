// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Frames over the control queue pair, both ways (WIRE.md). What fits into the
// inline room that was granted goes from where it lies, the header from the
// stack, neither copied nor registered; else by a registered slot. Any number
// of frames may be under way: what the peer has no receives for, or this side
// no room, waits in order. Receives are counted, so that a receiver-not-ready
// never happens (C09).
#ifndef PLUGIN_RDMA_CONTROL_CHANNEL_H_
#define PLUGIN_RDMA_CONTROL_CHANNEL_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/ring_queue.h"
#include "mig_transport.h"
#include "rdma/control_slots.h"
#include "rdma/reassembler.h"
#include "rdma/wire.h"
#include "verbs/verbs.h"

namespace mig::rdma {

// Takes frames, from inside Poll.
class FrameHandler {
 public:
  virtual ~FrameHandler() = default;
  // A whole frame but SLOTS, its lengths checked. `payload` is valid for the
  // call only. `whole` is null, but of long frames, whose payload it owns: it
  // may be moved away. An error ends the channel.
  virtual absl::Status OnFrame(const FrameHeader& header,
                               std::span<const uint8_t> payload,
                               std::vector<uint8_t>* whole) = 0;
};

// What was granted to the queue pair.
struct ControlLimits {
  uint32_t send_depth = 0;  // no more than its completion queue holds
  uint32_t send_sges = 1;
  uint32_t inline_bytes = 0;
};

struct ControlCounts {
  uint64_t frames_sent = 0;  // whole frames
  uint64_t frames_received = 0;
  uint64_t receives = 0;      // of any kind: fragments and SLOTS too
  uint64_t sends = 0;         // SENDs posted
  uint64_t inline_sends = 0;  // of them, without a copy by this side
  uint64_t slot_sends = 0;
  uint64_t slots_frames = 0;  // of them SLOTS
  uint64_t completions = 0;
  uint64_t send_stalls = 0;  // times that a frame had to wait
  uint64_t peak_unsent = 0;  // bytes of payload that waited
};

// Not thread-safe (rule 2). The first error of the device is sticky: nothing is
// posted afterwards (C06, C32), and Poll only retires what still completes.
// What a peer may not send ends the reading only, so that it can be told.
class ControlChannel {
 public:
  // `verbs` and `slots` must outlive it.
  ControlChannel(verbs::Verbs* verbs, ControlSlots* slots);

  // Posts every receive: before connect or accept, since the peer may send at
  // once. `qp` and `cq`, which no other queue pair uses, must outlive the
  // channel's use of them. Errors: DEVICE.
  absl::Status Attach(ibv_qp* qp, ibv_cq* cq, const ControlLimits& limits);
  // The peer's role is known: what it sends can be taken.
  void SetPeer(bool source, uint16_t receives);
  // It is connected: frames may go out. Those queued before do now.
  void Open();
  // The largest message from now on; none before.
  void SetMaxMessage(uint64_t bytes) { max_message_ = bytes; }

  // Sends a frame, or queues what can't go yet. `pieces` are its payload and
  // are copied where needed. `header`: type, flags and argument. Returns its
  // place. Nothing happens after an error.
  uint64_t Send(const FrameHeader& header,
                std::span<const struct mig_iov> pieces);
  uint64_t Send(FrameType type, uint64_t argument = 0,
                std::span<const uint8_t> payload = {});
  // Whether any byte of the frame at that place was given to the device.
  bool HasStarted(uint64_t place) const {
    return place <= started_ && !WasDropped(place);
  }
  // Whether all of it was.
  bool HasFinished(uint64_t place) const {
    return place <= finished_ && !WasDropped(place);
  }
  // Forgets what was not posted, the rest of a long frame too: only ABORT may
  // follow.
  void DropUnsent();
  size_t unsent_frames() const { return unsent_.size(); }
  uint64_t unsent_bytes() const { return unsent_bytes_; }
  // All that was queued is posted, and what asked for a completion has it: the
  // peer's device has the last word.
  bool Settled() const { return unsent_.empty() && retired_ >= settles_at_; }

  // Takes up to `budget` completions, and posts what they make room for.
  // *count: how many. Errors: status(); and once what the handler answered, or
  // PROTOCOL for what the peer may not send: nothing is handed on afterwards.
  absl::Status Poll(FrameHandler* handler, int budget, int* count);
  // From inside OnFrame: this was the last one to be handed on.
  void StopReading() { reading_ = false; }
  // The device's first error.
  const absl::Status& status() const { return status_; }
  // Ends it from outside: nothing more is posted.
  void Fail(const absl::Status& why);
  // SENDs and receives posted whose completion is due. After the queue pair
  // went to the error state this gets to 0 (C07).
  uint64_t outstanding() const {
    return receives_posted_ +
           (signalled_ > retired_ ? signalled_ - retired_ : 0);
  }
  const ControlCounts& counts() const { return counts_; }
  uint32_t inline_bytes() const { return limits_.inline_bytes; }

 private:
  // Where a SEND's payload comes from.
  class Pieces;
  struct Unsent {
    FrameHeader header;
    uint64_t place = 0;
    std::vector<uint8_t> payload;
    size_t done = 0;
  };

  bool WasDropped(uint64_t place) const {
    return place >= dropped_from_ && place <= dropped_to_;
  }
  uint64_t FreeSends() const {
    return limits_.send_depth - (posted_ - retired_);
  }
  // `spare`: what is left for SLOTS frames.
  bool MayPost(uint32_t spare) const {
    return status_.ok() && open_ && credits_ > spare && FreeSends() > spare;
  }
  bool FitsInline(size_t payload) const {
    return kHeaderSize + payload <= limits_.inline_bytes;
  }
  // Posts parts of the frame until it is done or can't go on; true if done.
  bool PostFrame(const FrameHeader& frame, Pieces* pieces, uint64_t place);
  // One SEND of `length` bytes; false if it can't go now.
  bool PostPart(const FrameHeader& header, Pieces* pieces);
  bool PostInline(const FrameHeader& header, Pieces* pieces);
  bool PostFromSlot(const FrameHeader& header, Pieces* pieces);
  // 0, or a positive errno with nothing posted. `held`: the slot it is in.
  int PostSend(std::span<ibv_sge> sges, FrameType type, int32_t held);
  void PostUnsent();
  void TellSlots();
  absl::Status PostReceive(uint16_t slot);
  absl::Status OnCompletion(const ibv_wc& wc, FrameHandler* handler);
  absl::Status RetireSends(uint64_t end);
  absl::Status OnReceive(const ibv_wc& wc, FrameHandler* handler);
  absl::Status TakeFrame(std::span<const uint8_t> send, FrameHandler* handler);
  absl::Status TakeCredits(const FrameHeader& header);

  verbs::Verbs* const verbs_;
  ControlSlots* const slots_;
  ibv_qp* qp_ = nullptr;
  ibv_cq* cq_ = nullptr;
  ControlLimits limits_;
  absl::Status status_;
  bool open_ = false;
  bool reading_ = true;
  bool peer_is_source_ = false;
  uint64_t max_message_ = 0;
  Reassembler parts_;

  // Credits: what the peer has receives for, and what it is owed.
  uint32_t credits_ = 0;
  uint32_t peer_receives_ = 0;
  uint32_t owed_ = 0;
  uint64_t receives_posted_ = 0;

  // The send queue: SENDs by number, and what each of them holds.
  RingQueue<int32_t> held_;  // slot, kNoSlot or kLastSlot
  uint64_t posted_ = 0;      // number of the next SEND
  uint64_t retired_ = 0;     // SENDs before this one are retired
  uint64_t signalled_ = 0;   // the last signalled SEND's number + 1
  uint64_t settles_at_ = 0;  // the last SEND whose completion matters, + 1
  bool last_slot_busy_ = false;

  RingQueue<Unsent> unsent_;
  uint64_t unsent_bytes_ = 0;
  uint64_t places_ = 0;
  uint64_t started_ = 0;
  uint64_t finished_ = 0;
  uint64_t dropped_from_ = 1;  // an empty range
  uint64_t dropped_to_ = 0;
  ControlCounts counts_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_CONTROL_CHANNEL_H_
