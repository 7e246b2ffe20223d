// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "measured.h"

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <numeric>
#include <random>
#include <sstream>

namespace mig::bench {
namespace {

// Of the destination; 0 before there is one.
pid_t destination_process = 0;

char* MapShared(uint64_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) DieErrno("mapping memory");
  return static_cast<char*>(memory);
}

// Of this process, all threads.
struct Usage {
  double user_s;
  double system_s;
  uint64_t waits;
};

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_usec) * 1e-6;
}

Usage UsageNow() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return {Seconds(usage.ru_utime), Seconds(usage.ru_stime),
          static_cast<uint64_t>(usage.ru_nvcsw)};
}

std::map<std::string, uint64_t> CountersOf(const Worker& worker) {
  if (!worker.counters) return {};
  return worker.counters();
}

// Their growth since `before`, as further fields.
void PrintGrowth(const Worker& worker,
                 const std::map<std::string, uint64_t>& before) {
  for (const auto& [name, value] : CountersOf(worker)) {
    std::printf(", \"%s\": %llu", name.c_str(),
                static_cast<unsigned long long>(value - before.at(name)));
  }
}

void AnswerWrites(Memory* memory, const Worker& worker,
                  const Command& command) {
  const std::vector<Piece> pieces = memory->Pieces(command);
  memory->Stamp(pieces, command.seed);
  uint64_t bytes = 0;
  for (const Piece& piece : pieces) bytes += piece.length;
  const auto counters = CountersOf(worker);
  const Usage before = UsageNow();
  const double start = NowSeconds();
  worker.write(pieces);
  const double seconds = NowSeconds() - start;
  const Usage after = UsageNow();
  std::printf(
      "{\"seconds\": %.9f, \"bytes\": %llu, \"user_s\": %.6f, "
      "\"system_s\": %.6f, \"waits\": %llu",
      seconds, static_cast<unsigned long long>(bytes),
      after.user_s - before.user_s, after.system_s - before.system_s,
      static_cast<unsigned long long>(after.waits - before.waits));
  PrintGrowth(worker, counters);
  std::printf(", \"equal\": %s}\n", memory->Equal() ? "true" : "false");
}

void AnswerRoundTrips(const Worker& worker, const Command& command) {
  if (!worker.round_trips) Die("rtt", "this program sends no messages");
  const auto counters = CountersOf(worker);
  std::vector<double> times = worker.round_trips(command.count, command.seed);
  std::sort(times.begin(), times.end());
  const auto at = [&times](size_t percent) {
    return times[std::min(times.size() - 1, times.size() * percent / 100)] *
           1e6;
  };
  std::printf("{\"p50_us\": %.3f, \"p99_us\": %.3f, \"min_us\": %.3f", at(50),
              at(99), at(0));
  PrintGrowth(worker, counters);
  std::puts("}");
}

}  // namespace

void Die(std::string_view what, std::string_view why) {
  std::cerr << "bench: " << what << ": " << why << std::endl;
  _exit(1);  // the other side is a process of its own, or a parent's
}

void DieErrno(std::string_view what) {
  Die(what, std::error_code(errno, std::generic_category()).message());
}

Options ParseOptions(int argc, char** argv, Options defaults) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view name = argv[i];
    const auto found = defaults.find(
        std::string(name.substr(std::min<size_t>(2, name.size()))));
    if (found == defaults.end() || i + 1 == argc) {
      Die(name, "is unknown, or has no value");
    }
    found->second = argv[i + 1];
  }
  return defaults;
}

double NowSeconds() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Memory::Memory(uint64_t bytes)
    : bytes_(bytes / kPage * kPage),
      source_(MapShared(bytes_)),
      destination_(MapShared(bytes_)) {
  std::mt19937_64 random(bytes);
  for (uint64_t at = 0; at < bytes_; at += sizeof(uint64_t)) {
    const uint64_t value = random();
    std::memcpy(source_ + at, &value, sizeof(value));
  }
  std::memcpy(destination_, source_, bytes_);
}

std::vector<Piece> Memory::Pieces(const Command& command) const {
  const uint64_t pages = bytes_ / kPage;
  if (command.kind == "bulk") {
    const uint64_t length = std::min(command.count, bytes_) / kPage * kPage;
    const uint64_t places = std::max<uint64_t>(bytes_ / length, 1);
    return {{command.seed % places * length, length}};
  }
  if (command.kind == "hot") {
    return std::vector<Piece>(command.count,
                              {command.seed % pages * kPage, kPage});
  }
  std::vector<uint64_t> order(pages);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(command.seed);
  std::vector<Piece> pieces;
  for (uint64_t i = 0; i < std::min(command.count, pages); ++i) {
    std::swap(order[i], order[i + random() % (pages - i)]);
    pieces.push_back({order[i] * kPage, kPage});
  }
  return pieces;
}

void Memory::Stamp(const std::vector<Piece>& pieces, uint64_t seed) {
  for (const Piece& piece : pieces) {
    for (uint64_t at = 0; at < piece.length; at += kPage) {
      uint64_t value = 0;
      char* const place = source_ + piece.offset + at + seed % 512 * 8;
      std::memcpy(&value, place, sizeof(value));
      value += seed + 1;
      std::memcpy(place, &value, sizeof(value));
    }
  }
}

bool Memory::Equal() const {
  return std::memcmp(source_, destination_, bytes_) == 0;
}

std::string StartDestination(
    const std::function<void(const std::function<void(std::string_view)>&)>&
        destination) {
  int ends[2];
  if (pipe(ends) != 0) DieErrno("pipe");
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) DieErrno("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    destination([&ends](std::string_view line) {
      if (write(ends[1], line.data(), line.size()) < 0 || close(ends[1]) != 0) {
        DieErrno("pipe");
      }
    });
    _exit(0);
  }
  destination_process = child;
  close(ends[1]);
  std::string line;
  char bytes[256];
  for (ssize_t got = 0; (got = read(ends[0], bytes, sizeof(bytes))) > 0;) {
    line.append(bytes, static_cast<size_t>(got));
  }
  close(ends[0]);
  if (line.empty()) Die("destination", "ended before it was ready");
  return line;
}

void ServeCommands(Memory* memory, const Worker& worker) {
  std::puts("{\"ready\": true}");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    Command command;
    words >> command.kind >> command.count >> command.seed;
    if (command.kind == "rtt" && command.count > 0) {
      AnswerRoundTrips(worker, command);
    } else if ((command.kind == "bulk" && command.count >= kPage) ||
               ((command.kind == "pages" || command.kind == "hot") &&
                command.count > 0)) {
      AnswerWrites(memory, worker, command);
    } else {
      Die(line, "say bulk BYTES SEED, pages|hot COUNT SEED or rtt COUNT BYTES");
    }
    std::fflush(stdout);
  }
  // It would complain that this side went without a word.
  if (destination_process != 0) kill(destination_process, SIGKILL);
}

}  // namespace mig::bench
