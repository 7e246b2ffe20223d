// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "guest/machine.h"
#include "guest/pacer.h"
#include "guest/room.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

constexpr uint64_t kDefaultLength = uint64_t{16} << 20;
constexpr uint64_t kNoLimit = ~uint64_t{0} >> 1;

struct MachineOptions {
  uint64_t instructions = 100'000'000;
  uint64_t step = 1000;
  uint64_t length = 0;  // bytes; 0: what there is room for, up to the default
  uint64_t rate = 0;    // instructions a second; 0: no limit
};

class MachineWorkload final : public Workload {
 public:
  MachineWorkload(WorkloadSetup setup, const MachineOptions& options)
      : Workload(std::move(setup)),
        options_(options),
        room_(LargestRoom(memory())),
        pacer_(static_cast<double>(options.rate), this->setup().clock) {
    const uint64_t room = room_.length / kPageSize * kPageSize;
    length_ =
        options.length != 0 ? options.length : std::min(room, kDefaultLength);
  }

  absl::Status Init() override {
    absl::Status status = CheckRoom();
    if (status.ok()) status = CreateControl();
    if (!status.ok()) return status;
    machine().Boot(seed());
    NoteWrite(room_.block->id, room_.offset, length_);
    return absl::OkStatus();
  }

  absl::Status Attach() override {
    absl::Status status = CheckRoom();
    if (status.ok()) status = OpenControl();
    if (!status.ok()) return status;
    return CheckCount();
  }

  absl::Status Step() override;
  absl::Status Verify() override;

  bool Done() const override {
    return machine().executed() >= options_.instructions;
  }
  int64_t DelayNs() override { return pacer_.DelayNs(); }
  void SkipTime(int64_t ns) override { pacer_.Skip(ns); }

  std::string Summary() const override {
    return absl::StrFormat("%s: %u of %u instructions over %u bytes", spec(),
                           machine().executed(), options_.instructions,
                           length_);
  }

 private:
  Machine machine() const { return {room_.data(), length_}; }

  absl::Status CheckRoom() const {
    if (length_ >= Machine::kMinLength && length_ % kPageSize == 0 &&
        length_ <= room_.length) {
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrFormat(
        "workload '%s': a machine of %u bytes is not possible in block '%s' "
        "with room for %u: give whole pages, at least %u bytes",
        spec(), length_, room_.block->name, room_.length, Machine::kMinLength));
  }

  // Found before it is believed: Verify runs as many.
  absl::Status CheckCount() const {
    if (machine().executed() <= options_.instructions) return absl::OkStatus();
    return absl::DataLossError(absl::StrFormat(
        "workload '%s': block '%s', page %u: %u instructions run where %u are "
        "the end: the state did not come over whole",
        spec(), room_.block->name, room_.offset / kPageSize,
        machine().executed(), options_.instructions));
  }

  MachineOptions options_;
  Room room_;
  uint64_t length_;
  Pacer pacer_;
};

absl::Status MachineWorkload::Step() {
  const uint64_t left = options_.instructions -
                        std::min(options_.instructions, machine().executed());
  const uint64_t count = pacer_.Take(std::min(options_.step, left));
  if (count == 0) return absl::OkStatus();
  absl::Status status =
      machine().Run(count, [this](uint64_t offset, uint64_t length) {
        NoteWrite(room_.block->id, room_.offset + offset, length);
      });
  FinishStep();
  return status;
}

// Against a machine that never moved: the same seed, run as far.
absl::Status MachineWorkload::Verify() {
  absl::Status status = CheckCount();
  if (!status.ok()) return status;
  BlockSpec spec_of_copy;
  spec_of_copy.name = "reference";
  spec_of_copy.size = length_;
  absl::StatusOr<GuestMemory> memory = GuestMemory::Create({spec_of_copy});
  if (!memory.ok()) return memory.status();
  std::byte* expected = memory->blocks()[0].base;
  Machine reference(expected, length_);
  reference.Boot(seed());
  status = reference.Run(machine().executed(), nullptr);
  if (!status.ok()) return status;
  const std::byte* found = room_.data();
  if (memcmp(found, expected, length_) == 0) return absl::OkStatus();
  const auto offset = static_cast<uint64_t>(
      std::mismatch(found, found + length_, expected).first - found);
  const uint64_t at = room_.offset + offset;
  return absl::DataLossError(absl::StrFormat(
      "workload '%s': block '%s', page %u (offset 0x%x): the %s is 0x%02x, not "
      "0x%02x as in a run of %u instructions that never moved",
      spec(), room_.block->name, at / kPageSize, at, Machine::PartAt(offset),
      static_cast<unsigned>(found[offset]),
      static_cast<unsigned>(expected[offset]), machine().executed()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeMachine(SpecReader* reader,
                                                      WorkloadSetup setup) {
  MachineOptions options;
  absl::Status status =
      reader->TakeCount("instructions", 1, kNoLimit, &options.instructions);
  if (status.ok()) status = reader->TakeCount("step", 1, 100000, &options.step);
  if (status.ok()) status = reader->TakeSize("memory", &options.length);
  if (status.ok()) {
    status = reader->TakeCount("rate", 0, kNoLimit, &options.rate);
  }
  if (!status.ok()) return status;
  return std::make_unique<MachineWorkload>(std::move(setup), options);
}

}  // namespace mig::sim
