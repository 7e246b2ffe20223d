// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a script changes of a peer's work requests.
#ifndef TESTS_FUZZ_RDMA_PEER_H_
#define TESTS_FUZZ_RDMA_PEER_H_

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "common/wire_bytes.h"
#include "mutating_verbs.h"
#include "rdma/wire.h"
#include "script.h"

namespace mig::rdma {

class ScriptedMutator final : public Mutator {
 public:
  // The script outlives it.
  explicit ScriptedMutator(fuzz::Script* script)
      : script_(script), next_(script->Byte()) {}

  bool Hits() override {
    if (off || script_->ended()) return false;
    if (next_-- > 0) return false;
    next_ = script_->Byte();
    return true;
  }
  void ChangeWrite(ibv_qp* /*qp*/, ibv_send_wr* wr) override {
    switch (script_->Below(3)) {
      case 0:
        wr->wr.rdma.rkey ^= script_->Take<uint32_t>();
        break;
      case 1:
        wr->wr.rdma.remote_addr ^= script_->Take<uint64_t>();
        break;
      default:
        wr->wr.rdma.remote_addr += script_->Take<uint16_t>();
    }
  }
  size_t ChangeSend(std::span<uint8_t> room, size_t length) override {
    switch (script_->Below(5)) {
      case 0:
        return script_->Take<uint16_t>() % (length + 1);
      case 1:
        Xor(room.first(std::min(length, kHeaderSize)));
        return length;
      case 2:
        Xor(room.first(length));
        return length;
      case 3:
        return Forge(room);
      default: {
        const std::string more = script_->Bytes();
        const size_t count = std::min(more.size(), room.size() - length);
        std::memcpy(room.data() + length, more.data(), count);
        return length + count;
      }
    }
  }
  bool HitsPrivateData() override {
    return !off && !script_->ended() && script_->Below(16) == 0;
  }
  void ChangePrivateData(std::span<uint8_t> bytes) override { Xor(bytes); }

  bool off = false;  // changes nothing any more

 private:
  void Xor(std::span<uint8_t> bytes) {
    if (bytes.empty()) return;
    bytes[script_->Take<uint16_t>() % bytes.size()] ^= script_->Byte();
  }
  // Another frame in its place, whole, with the slots that it told.
  size_t Forge(std::span<uint8_t> room) {
    FrameHeader header;
    header.slots = Get<uint16_t>(room.data() + 2);
    header.type = static_cast<FrameType>(1 + script_->Below(kMaxFrameType));
    header.flags = script_->Byte() & 1;
    header.argument = script_->Take<uint64_t>();
    const std::string payload = script_->Bytes();
    header.length = static_cast<uint16_t>(payload.size());
    if (IsLong(header.type) && script_->Below(4) != 0) {
      header.argument =
          LongArgument(payload.size(), LongValue(header.argument));
    }
    EncodeHeader(header, room.first<kHeaderSize>());
    std::memcpy(room.data() + kHeaderSize, payload.data(), payload.size());
    return kHeaderSize + payload.size();
  }

  fuzz::Script* const script_;
  uint8_t next_;  // work requests before it
};

}  // namespace mig::rdma

#endif  // TESTS_FUZZ_RDMA_PEER_H_
