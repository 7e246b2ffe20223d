// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the measuring programs share: the memory of both sides, what a run
// writes of it, and the commands that runs are asked for by.
#ifndef TESTS_BENCH_MEASURED_H_
#define TESTS_BENCH_MEASURED_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mig::bench {

inline constexpr uint64_t kPage = 4096;

[[noreturn]] void Die(std::string_view what, std::string_view why);
[[noreturn]] void DieErrno(std::string_view what);

// "--name value" of the command line; an unknown name ends the program.
using Options = std::map<std::string, std::string>;
Options ParseOptions(int argc, char** argv, Options defaults);

double NowSeconds();

struct Piece {
  uint64_t offset;  // bytes
  uint64_t length;
};

// One line of input: "bulk BYTES SEED", "pages COUNT SEED", "hot COUNT SEED" or
// "rtt COUNT BYTES".
struct Command {
  std::string kind;
  uint64_t count = 0;
  uint64_t seed = 0;
};

// Source and destination memory, both visible to both processes, so that the
// whole of it is compared after each run.
class Memory {
 public:
  explicit Memory(uint64_t bytes);
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  char* source() const { return source_; }
  char* destination() const { return destination_; }
  uint64_t bytes() const { return bytes_; }

  // bulk: one piece, somewhere else for each seed; pages: distinct ones in
  // random order, the same for the same seed; hot: one page again and again, as
  // perftest writes.
  std::vector<Piece> Pieces(const Command& command) const;
  // Changes every page of the pieces at the source, the same seed alike.
  void Stamp(const std::vector<Piece>& pieces, uint64_t seed);
  bool Equal() const;

 private:
  uint64_t bytes_;
  char* source_;
  char* destination_;
};

// Starts `destination` in a process that ends with this one, and returns the
// line that it says when it is ready.
std::string StartDestination(
    const std::function<void(const std::function<void(std::string_view)>&)>&
        destination);

// What does the work of the commands.
struct Worker {
  // Returns when all pieces are at the destination.
  std::function<void(const std::vector<Piece>&)> write;
  // Returns the round trips of messages of that many bytes, in seconds. Empty
  // where there are none.
  std::function<std::vector<double>(uint64_t count, uint64_t bytes)>
      round_trips;
  // More fields of the answer: counters that grow, by name.
  std::function<std::map<std::string, uint64_t>()> counters;
};

// Takes commands from stdin until it ends, and answers each with one line of
// JSON: time, processor time of this side, and whether memory is equal.
void ServeCommands(Memory* memory, const Worker& worker);

}  // namespace mig::bench

#endif  // TESTS_BENCH_MEASURED_H_
