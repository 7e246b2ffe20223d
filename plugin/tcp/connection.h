// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_TCP_CONNECTION_H_
#define PLUGIN_TCP_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/poller.h"
#include "tcp/frame_reader.h"
#include "tcp/frame_writer.h"
#include "tcp/stream.h"

namespace mig::tcp {

// One connected stream with its framing, and when it last moved. It unwatches
// itself; the poller must outlive it. Not thread-safe.
class Connection {
 public:
  // `poller` may be null for a stream without an fd (which is asked instead).
  static absl::StatusOr<std::unique_ptr<Connection>> Create(
      std::unique_ptr<ByteStream> stream, std::string peer, Poller* poller,
      uint64_t now_ns);
  ~Connection();

  // Reads frames while the stream may have some; notes the time of every byte
  // received. *ended: the peer closed between frames. Errors: as FrameReader.
  absl::Status PumpIn(FrameHandler* handler, uint64_t budget, uint64_t now_ns,
                      bool* ended);
  // Sends what is queued as far as it goes. Errors: as FrameWriter.
  absl::Status PumpOut(uint64_t now_ns);

  // Work that needs no further readiness.
  bool HasWork() const { return CanReceive() || CanSend(); }
  bool CanReceive() const {
    return !ended_ &&
           (polled_ ? readiness_.readable : stream_->Due().read_ns == 0);
  }
  bool CanSend() const {
    return !writer_.empty() &&
           (polled_ ? readiness_.writable : stream_->Due().write_ns == 0);
  }
  // When more work comes by time alone, MIG_NO_DEADLINE if none does.
  // `reading`: receiving counts.
  uint64_t DueNs(bool reading) const;
  FrameWriter& writer() { return writer_; }
  const FrameWriter& writer() const { return writer_; }
  FrameReader& reader() { return reader_; }
  ByteStream& stream() { return *stream_; }
  const std::string& peer() const { return peer_; }
  uint64_t last_received_ns() const { return last_received_ns_; }
  uint64_t last_sent_ns() const { return last_sent_ns_; }
  bool ended() const { return ended_; }
  // Reading is held back on this side: the peer is not silent.
  void NoteHeld(uint64_t now_ns) { last_received_ns_ = now_ns; }

 private:
  Connection(std::unique_ptr<ByteStream> stream, std::string peer,
             Poller* poller, uint64_t now_ns)
      : stream_(std::move(stream)),
        polled_(stream_->fd() >= 0),
        peer_(std::move(peer)),
        poller_(poller),
        last_received_ns_(now_ns),
        last_sent_ns_(now_ns) {}

  std::unique_ptr<ByteStream> stream_;
  const bool polled_;
  std::string peer_;
  Poller* poller_;
  Readiness readiness_{true, true};
  FrameWriter writer_;
  FrameReader reader_;
  uint64_t last_received_ns_;
  uint64_t last_sent_ns_;
  bool ended_ = false;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_CONNECTION_H_
