// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// Memory that two processes share: a sealed memfd, mapped.
#ifndef PLUGIN_SOFT_VERBS_SHARED_SEGMENT_H_
#define PLUGIN_SOFT_VERBS_SHARED_SEGMENT_H_

#include <cstddef>

namespace mig::soft {

// A file descriptor that is closed with its owner.
class OwnedFd {
 public:
  OwnedFd() = default;
  explicit OwnedFd(int fd) : fd_(fd) {}
  OwnedFd(OwnedFd&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  OwnedFd& operator=(OwnedFd&& other) noexcept;
  ~OwnedFd();
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A new memfd of that size, zeroed, which can neither shrink nor grow; not
// valid, with errno, if there was none to be had.
OwnedFd MakeSharedFile(const char* name, size_t size);

// A mapping of a whole shared file.
class SharedMapping {
 public:
  SharedMapping() = default;
  // Not valid if the file is shorter than `at_least`, or could be made shorter
  // by its other owner, which would end this process.
  SharedMapping(int fd, size_t at_least, bool writable);
  SharedMapping(SharedMapping&& other) noexcept;
  SharedMapping& operator=(SharedMapping&& other) noexcept;
  ~SharedMapping();

  bool valid() const { return data_ != nullptr; }
  std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mig::soft

#endif  // PLUGIN_SOFT_VERBS_SHARED_SEGMENT_H_
