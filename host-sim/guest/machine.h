// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_GUEST_MACHINE_H_
#define MIGTRANSPORT_HOST_SIM_GUEST_MACHINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"

namespace mig::sim {

// A small deterministic computer, all of it in the bytes it is given: one page
// of registers, one of program, and data. It can be stopped between any two
// instructions; the same bytes and the same number of instructions always give
// the same bytes. The program runs for ever and scatters writes over the data.
// Not owning; one thread.
class Machine {
 public:
  // Told of bytes written, as an offset into the machine.
  using OnStore = std::function<void(uint64_t offset, uint64_t length)>;

  // The least a machine can be, and the unit of its size, in bytes.
  static constexpr uint64_t kMinLength = 3 * 4096;

  // A machine at `base`, of `length` bytes.
  Machine(std::byte* base, uint64_t length) : base_(base), length_(length) {}

  // Loads program, registers and data, of `seed`.
  void Boot(uint64_t seed);

  // Runs `count` instructions. DataLoss, naming it, at one that does not
  // exist; the machine then stands before it. `on_store` may be null.
  absl::Status Run(uint64_t count, const OnStore& on_store);

  // Instructions run since Boot.
  uint64_t executed() const;

  // What part of the machine has the byte at `offset`.
  static const char* PartAt(uint64_t offset);

 private:
  struct Cpu;
  struct Instruction;
  Cpu* cpu() const;
  Instruction* program() const;
  uint64_t* data() const;
  uint64_t data_words() const;

  std::byte* base_;
  uint64_t length_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_GUEST_MACHINE_H_
