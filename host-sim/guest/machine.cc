// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "guest/machine.h"

#include <bit>
#include <cstring>
#include <iterator>

#include "absl/strings/str_format.h"
#include "guest/guest_memory.h"
#include "guest/random.h"

namespace mig::sim {

namespace {

constexpr uint64_t kRegisters = 16;
constexpr uint64_t kProgramAt = kPageSize;
constexpr uint64_t kDataAt = 2 * kPageSize;

enum Opcode : uint8_t {
  kLoadImmediate = 1,  // a = imm
  kAddImmediate,       // a = b + imm
  kAdd,                // a = b + c
  kXor,                // a = b ^ c
  kMultiply,           // a = b * c
  kRotate,             // a = b rotated left by imm
  kLoad,               // a = data[b]
  kStore,              // data[b] = a
  kBranchNotZero,      // if a != 0: pc += imm
};

}  // namespace

struct Machine::Cpu {
  uint64_t registers[kRegisters];
  uint64_t pc;  // index into the program
  uint64_t executed;
};

struct Machine::Instruction {
  uint8_t opcode;
  uint8_t a, b, c;
  int32_t imm;
};

namespace {

constexpr uint64_t kProgramLength = kPageSize / 8;

// Register 0 counts the inner loop, 1 the outer; 2 is a Weyl sequence, 3 and 4
// the mixing, 5 an odd constant, 6 the address, 7 the value, 8 the number of
// stores, 9 what the loads add up to.
//
// The inner loop only computes, so that a short step does not touch more pages
// than it can under dirty tracking; each turn of the outer one reads and
// writes one word anywhere, and every fifth a second one.
struct Listing {
  uint8_t opcode, a, b, c;
  int32_t imm;
};
constexpr Listing kListing[] = {
    {kLoadImmediate, 1, 0, 0, 5},          // 0: five turns
    {kLoadImmediate, 0, 0, 0, 8},          // 1: eight rounds of mixing
    {kAddImmediate, 2, 2, 0, 0x3c6ef372},  // 2
    {kXor, 3, 3, 2, 0},
    {kMultiply, 3, 3, 5, 0},
    {kRotate, 4, 3, 0, 29},
    {kAdd, 3, 3, 4, 0},
    {kAddImmediate, 0, 0, 0, -1},
    {kBranchNotZero, 0, 0, 0, -6},  // to 2
    {kXor, 6, 3, 9, 0},             // 9
    {kLoad, 7, 6, 0, 0},
    {kAdd, 9, 9, 7, 0},
    {kRotate, 7, 9, 0, 17},
    {kStore, 7, 6, 0, 0},
    {kAddImmediate, 8, 8, 0, 1},
    {kAddImmediate, 1, 1, 0, -1},
    {kBranchNotZero, 1, 0, 0, -15},  // to 1
    {kMultiply, 6, 9, 5, 0},         // 17
    {kStore, 8, 6, 0, 0},
    {kBranchNotZero, 5, 0, 0, -19},  // to 0: register 5 is odd
};
static_assert(std::size(kListing) <= kProgramLength);

// Spreads all 64-bit values evenly over the data, whatever its size.
uint64_t WordIndex(uint64_t address, uint64_t words) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((Wide{address} * words) >> 64);
}

}  // namespace

Machine::Cpu* Machine::cpu() const { return reinterpret_cast<Cpu*>(base_); }

Machine::Instruction* Machine::program() const {
  return reinterpret_cast<Instruction*>(base_ + kProgramAt);
}

uint64_t* Machine::data() const {
  return reinterpret_cast<uint64_t*>(base_ + kDataAt);
}

uint64_t Machine::data_words() const { return (length_ - kDataAt) / 8; }

uint64_t Machine::executed() const { return cpu()->executed; }

const char* Machine::PartAt(uint64_t offset) {
  if (offset < kProgramAt) return "registers";
  return offset < kDataAt ? "program" : "data";
}

void Machine::Boot(uint64_t seed) {
  static_assert(sizeof(Instruction) == 8 && sizeof(Cpu) <= kPageSize);
  memset(base_, 0, kDataAt);
  Random random{seed};
  for (uint64_t& value : cpu()->registers) value = random.Next();
  cpu()->registers[5] |= 1;
  for (size_t i = 0; i < std::size(kListing); ++i) {
    const Listing& line = kListing[i];
    program()[i] = {line.opcode, line.a, line.b, line.c, line.imm};
  }
  for (uint64_t i = 0; i < data_words(); ++i) data()[i] = random.Next();
}

// Its stores race with the transport that sends the page, by design. tsan's
// suppression would hide them but remember each address, and search all of them
// at each new one: seconds in which the migration says nothing to its peer.
__attribute__((no_sanitize("thread"))) absl::Status Machine::Run(
    uint64_t count, const OnStore& on_store) {
  // On the stack while running: guest memory could be written by anyone.
  Cpu now = *cpu();
  uint64_t* r = now.registers;
  absl::Status status;
  for (; count > 0; --count) {
    const Instruction in =
        now.pc < kProgramLength ? program()[now.pc] : Instruction{};
    const uint64_t a = in.a % kRegisters;
    const uint64_t b = r[in.b % kRegisters];
    const uint64_t c = r[in.c % kRegisters];
    const auto imm = static_cast<uint64_t>(int64_t{in.imm});
    uint64_t next = now.pc + 1;
    if (in.opcode == kLoadImmediate) {
      r[a] = imm;
    } else if (in.opcode == kAddImmediate) {
      r[a] = b + imm;
    } else if (in.opcode == kAdd) {
      r[a] = b + c;
    } else if (in.opcode == kXor) {
      r[a] = b ^ c;
    } else if (in.opcode == kMultiply) {
      r[a] = b * c;
    } else if (in.opcode == kRotate) {
      r[a] = std::rotl(b, static_cast<int>(imm & 63));
    } else if (in.opcode == kLoad) {
      r[a] = data()[WordIndex(b, data_words())];
    } else if (in.opcode == kStore) {
      const uint64_t word = WordIndex(b, data_words());
      data()[word] = r[a];
      if (on_store != nullptr) on_store(kDataAt + word * 8, 8);
    } else if (in.opcode == kBranchNotZero) {
      if (r[a] != 0) next = now.pc + imm;
    } else {
      status = absl::DataLossError(
          absl::StrFormat("machine: no instruction at %u (opcode %u) after %u",
                          now.pc, in.opcode, now.executed));
      break;
    }
    now.pc = next;
    ++now.executed;
  }
  *cpu() = now;
  if (on_store != nullptr) on_store(0, sizeof(Cpu));
  return status;
}

}  // namespace mig::sim
