// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A non-blocking byte stream: a socket, or a test's double that gives and takes
// bytes as unkindly as a network may.
#ifndef PLUGIN_TCP_STREAM_H_
#define PLUGIN_TCP_STREAM_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstdint>
#include <span>
#include <utility>

#include "common/unique_fd.h"

namespace mig::tcp {

// When Read and Write no longer answer -EAGAIN, if nobody else does anything:
// 0 now, UINT64_MAX never.
struct StreamDue {
  uint64_t read_ns = 0;
  uint64_t write_ns = 0;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Read and Write move what can be moved now. They return bytes (more than 0),
  // 0 from Read at the end of the stream, or -errno; -EAGAIN: nothing now.
  // At most IOV_MAX elements. They never raise SIGPIPE.
  virtual ssize_t Read(std::span<const struct iovec> to) = 0;
  virtual ssize_t Write(std::span<const struct iovec> from) = 0;
  // Ends our direction; the peer reads the end of the stream.
  virtual void ShutdownWrite() = 0;
  // For the poller; -1 if there is none.
  virtual int fd() const = 0;
  // Of a stream without an fd, which is always tried unless it says otherwise.
  virtual StreamDue Due() const { return {}; }
};

// A connected stream socket. It does not depend on O_NONBLOCK, which a
// handed-over fd may share with the host (C28).
class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(UniqueFd fd) : fd_(std::move(fd)) {}
  ssize_t Read(std::span<const struct iovec> to) override;
  ssize_t Write(std::span<const struct iovec> from) override;
  void ShutdownWrite() override;
  int fd() const override { return fd_.get(); }

 private:
  UniqueFd fd_;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_STREAM_H_
