// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef PLUGIN_COMMON_RING_QUEUE_H_
#define PLUGIN_COMMON_RING_QUEUE_H_

#include <cstddef>
#include <utility>
#include <vector>

namespace mig {

// A queue that reuses its memory: it allocates only when it holds more than it
// ever did (std::deque allocates and frees all the time). Not thread-safe.
template <typename T>
class RingQueue {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T& front() { return slots_[head_]; }
  const T& front() const { return slots_[head_]; }
  T& back() { return (*this)[size_ - 1]; }
  T& operator[](size_t i) { return slots_[(head_ + i) % slots_.size()]; }

  void push_back(T value) {
    if (size_ == slots_.size()) Grow();
    slots_[(head_ + size_) % slots_.size()] = std::move(value);
    ++size_;
  }
  void pop_front() {
    slots_[head_] = T();
    head_ = (head_ + 1) % slots_.size();
    --size_;
  }
  void pop_back() {
    back() = T();
    --size_;
  }

 private:
  void Grow() {
    std::vector<T> larger(slots_.empty() ? 16 : slots_.size() * 2);
    for (size_t i = 0; i < size_; ++i) larger[i] = std::move((*this)[i]);
    slots_.swap(larger);
    head_ = 0;
  }

  std::vector<T> slots_;
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_RING_QUEUE_H_
