// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/write_fault.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <mutex>
#include <thread>

#include "absl/strings/str_format.h"
#include "guest/errno_text.h"
#include "guest/guest_memory.h"

namespace mig::sim {
namespace {

constexpr size_t kSlots = 64;
constexpr uint64_t kChunk = uint64_t{2} << 20;

// All that a handler looks at is atomic: a signal can come at any instruction.
struct Slot {
  std::atomic<std::byte*> base{nullptr};  // null: free; stored last
  std::atomic<uint64_t> length{0};
  std::atomic<uint64_t> unit{0};
  std::atomic<AtomicBitmap*> bits{nullptr};
};

std::array<Slot, kSlots> g_slots;
std::atomic<int> g_in_handler{0};
std::mutex g_mutex;  // of installing and of taking slots
bool g_installed = false;
struct sigaction g_previous = {};

bool MakeWritable(std::byte* start, uint64_t length) {
  return mprotect(start, length, PROT_READ | PROT_WRITE) == 0;
}

// Bits are set after the memory was made writable, never before: a fetch
// between the two would protect the page, see it made writable again, and
// write after write would go unseen. This way round it at worst reports a page
// that was not written.
bool OpenRange(const Slot& slot, std::byte* base, uint64_t offset,
               uint64_t length) {
  if (!MakeWritable(base + offset, length)) return false;
  AtomicBitmap* bits = slot.bits.load();
  if (bits == nullptr) return true;
  const uint64_t end = (offset + length) / kPageSize;
  for (uint64_t page = offset / kPageSize; page < end; ++page) bits->Set(page);
  return true;
}

// Each island of other protection is a mapping of its own, and a process has
// 65530 of them. When they run out, larger pieces are opened, which merges
// some; the whole block always works.
bool HandleWrite(const Slot& slot, uintptr_t address) {
  std::byte* base = slot.base.load();
  const uint64_t length = slot.length.load();
  const uint64_t offset = address - reinterpret_cast<uintptr_t>(base);
  // An address below the base wraps to an offset far above the length.
  if (base == nullptr || offset >= length) return false;
  const uint64_t unit = slot.unit.load();
  if (OpenRange(slot, base, offset / unit * unit, unit)) return true;
  const uint64_t chunk = offset / kChunk * kChunk;
  if (OpenRange(slot, base, chunk, std::min(kChunk, length - chunk))) {
    return true;
  }
  return OpenRange(slot, base, 0, length);
}

void ChainFault(int signal, siginfo_t* info, void* context) {
  if ((g_previous.sa_flags & SA_SIGINFO) != 0) {
    g_previous.sa_sigaction(signal, info, context);
  } else if (g_previous.sa_handler != SIG_DFL &&
             g_previous.sa_handler != SIG_IGN) {
    g_previous.sa_handler(signal);
  } else {
    // Back to the default: the instruction faults again and ends the process
    // with the right signal, at the right address.
    struct sigaction fallback = {};
    fallback.sa_handler = SIG_DFL;
    sigaction(SIGSEGV, &fallback, nullptr);
  }
}

void OnFault(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  bool handled = false;
  if (info->si_code == SEGV_ACCERR) {
    g_in_handler.fetch_add(1);
    const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
    for (const Slot& slot : g_slots) {
      handled = HandleWrite(slot, address);
      if (handled) break;
    }
    g_in_handler.fetch_sub(1);
  }
  errno = saved_errno;
  if (!handled) ChainFault(signal, info, context);
}

absl::Status InstallOnce() {
  if (g_installed) return absl::OkStatus();
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  if (sigaction(SIGSEGV, &action, &g_previous) != 0) {
    return absl::InternalError(absl::StrFormat(
        "cannot install a SIGSEGV handler: %s", ErrnoText(errno)));
  }
  g_installed = true;
  return absl::OkStatus();
}

void AwaitHandlers() {
  while (g_in_handler.load() != 0) std::this_thread::yield();
}

}  // namespace

absl::StatusOr<int> WatchWrites(std::byte* base, uint64_t length, uint64_t unit,
                                AtomicBitmap* bits) {
  const std::lock_guard<std::mutex> lock(g_mutex);
  absl::Status status = InstallOnce();
  if (!status.ok()) return status;
  for (size_t i = 0; i < kSlots; ++i) {
    Slot& slot = g_slots[i];
    if (slot.base.load() != nullptr) continue;
    slot.length = length;
    slot.unit = unit;
    slot.bits = bits;
    slot.base = base;
    return static_cast<int>(i);
  }
  return absl::ResourceExhaustedError(absl::StrFormat(
      "mprotect tracking watches %u blocks in this process at most: use fewer "
      "blocks, or another kind",
      kSlots));
}

void RetireWatch(int slot) {
  g_slots[slot].bits = nullptr;
  AwaitHandlers();
}

void ForgetWatch(int slot) {
  g_slots[slot].base = nullptr;
  AwaitHandlers();
  g_slots[slot].bits = nullptr;
}

}  // namespace mig::sim
