// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "model/swarm.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "guest/errno_text.h"

namespace mig::model {
namespace {

constexpr int kLookEveryMs = 100;

uint64_t RealNs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(now.tv_nsec);
}

// What a worker process shows of itself, in memory that both have.
struct Shown {
  std::atomic<uint64_t> seed;      // under way
  std::atomic<uint64_t> since_ns;  // real time
  SwarmTotals totals;              // of this worker
};

struct Worker {
  pid_t pid = -1;
  int pipe = -1;  // failures come out of it
  Shown* shown = nullptr;
  uint64_t next = 0;  // seed that it starts at
  std::string text;   // received so far
};

void Count(const Scenario& scenario, const RunResult& result,
           SwarmTotals* totals) {
  ++totals->runs;
  totals->with_faults += scenario.faults.empty() ? 0 : 1;
  totals->steps += result.steps;
  totals->guest_writes += result.guest_writes;
  totals->pages_compared += result.pages_compared;
  totals->virtual_ns += result.virtual_ns;
  totals->taken += result.taken ? 1 : 0;
  ++totals->outcomes[static_cast<size_t>(result.source)];
}

void Add(const SwarmTotals& part, SwarmTotals* sum) {
  sum->runs += part.runs;
  sum->with_faults += part.with_faults;
  sum->steps += part.steps;
  sum->guest_writes += part.guest_writes;
  sum->pages_compared += part.pages_compared;
  sum->virtual_ns += part.virtual_ns;
  sum->taken += part.taken;
  for (size_t i = 0; i < sum->outcomes.size(); ++i) {
    sum->outcomes[i] += part.outcomes[i];
  }
}

class Swarm {
 public:
  Swarm(const std::shared_ptr<const sim::Plugin>& plugin,
        const SwarmOptions& options)
      : plugin_(plugin), options_(options), workers_(options.jobs) {}
  ~Swarm();

  absl::Status Begin();
  absl::StatusOr<SwarmResult> Watch(
      const std::function<void(const SwarmTotals&)>& progress);

 private:
  bool Spawn(size_t index);
  [[noreturn]] void Work(size_t index, int to);
  void One(uint64_t seed, int to, SwarmTotals* totals);
  void Read(Worker* worker);
  void Ended(size_t index, int status);
  SwarmTotals Totals() const;

  const std::shared_ptr<const sim::Plugin> plugin_;
  const SwarmOptions options_;
  std::vector<Worker> workers_;
  Shown* area_ = nullptr;
  SwarmResult result_;
};

Swarm::~Swarm() {
  for (Worker& worker : workers_) {
    if (worker.pid > 0) {
      kill(worker.pid, SIGKILL);
      waitpid(worker.pid, nullptr, 0);
    }
    if (worker.pipe >= 0) close(worker.pipe);
  }
  if (area_ != nullptr) munmap(area_, sizeof(Shown) * workers_.size());
}

absl::Status Swarm::Begin() {
  void* const area =
      mmap(nullptr, sizeof(Shown) * workers_.size(), PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return absl::ResourceExhaustedError("no memory");
  area_ = static_cast<Shown*>(area);
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].shown = new (&area_[i]) Shown();
    workers_[i].next = options_.first_seed + i;
    if (!Spawn(i)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no process for job ", i + 1, " of ", workers_.size(),
                       ": ", sim::ErrnoText(errno), "; use fewer --jobs"));
    }
  }
  return absl::OkStatus();
}

bool Swarm::Spawn(size_t index) {
  Worker& worker = workers_[index];
  if (worker.next > options_.last_seed) return true;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  worker.shown->since_ns = RealNs();
  worker.shown->seed = worker.next;
  worker.pid = fork();
  if (worker.pid == 0) {
    close(ends[0]);
    Work(index, ends[1]);
  }
  close(ends[1]);
  if (worker.pid < 0) {
    close(ends[0]);
    return false;
  }
  worker.pipe = ends[0];
  worker.text.clear();
  fcntl(worker.pipe, F_SETFL, O_NONBLOCK);
  return true;
}

void Swarm::One(uint64_t seed, int to, SwarmTotals* totals) {
  const Scenario scenario =
      DrawScenario(seed, plugin_->ops().name, options_.limits);
  RunResult result = RunScenario(plugin_, scenario);
  if (options_.twice && result.verdict.ok()) {
    const RunResult again = RunScenario(plugin_, scenario);
    if (again.hash != result.hash || again.events != result.events) {
      result.verdict = absl::DataLossError(
          absl::StrCat("a second run differs: ", again.events, " events, not ",
                       result.events));
    }
  }
  Count(scenario, result, totals);
  if (result.verdict.ok()) return;
  // A text and a zero each. A parent that is gone ends this one too.
  const std::string text =
      absl::StrCat(seed, "\n", ExplainFailure(plugin_, scenario, result));
  for (size_t at = 0; at <= text.size();) {
    const ssize_t put = write(to, text.c_str() + at, text.size() + 1 - at);
    if (put <= 0) _exit(1);
    at += static_cast<size_t>(put);
  }
}

void Swarm::Work(size_t index, int to) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  Shown* const shown = workers_[index].shown;
  for (uint64_t seed = workers_[index].next; seed <= options_.last_seed;
       seed += workers_.size()) {
    shown->since_ns = RealNs();
    shown->seed = seed;
    One(seed, to, &shown->totals);
  }
  _exit(0);
}

void Swarm::Read(Worker* worker) {
  char buffer[4096];
  ssize_t got = 0;
  while ((got = read(worker->pipe, buffer, sizeof buffer)) > 0) {
    worker->text.append(buffer, static_cast<size_t>(got));
  }
  size_t end = 0;
  while ((end = worker->text.find('\0')) != std::string::npos) {
    const std::string text = worker->text.substr(0, end);
    worker->text.erase(0, end + 1);
    result_.failures.push_back({std::strtoull(text.c_str(), nullptr, 10),
                                text.substr(text.find('\n') + 1)});
  }
}

// A worker that ended before its last seed did so in one.
void Swarm::Ended(size_t index, int status) {
  Worker& worker = workers_[index];
  Read(&worker);
  close(worker.pipe);
  worker.pipe = -1;
  worker.pid = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  const uint64_t seed = worker.shown->seed;
  std::string what = WIFSIGNALED(status)
                         ? absl::StrCat("ended by signal ", WTERMSIG(status))
                         : absl::StrCat("ended by exit ", WEXITSTATUS(status));
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
    what = "hung, or was killed";
  }
  std::string text = absl::StrCat(plugin_->ops().name, " seed ", seed,
                                  ": the process ", what, "\n  faults:\n");
  const Scenario scenario =
      DrawScenario(seed, plugin_->ops().name, options_.limits);
  for (const Fault& fault : scenario.faults) {
    absl::StrAppend(&text, "    ", FaultText(fault), "\n");
  }
  result_.failures.push_back({seed, text});
  worker.next = seed + workers_.size();
  if (!Spawn(index)) worker.next = options_.last_seed + 1;
}

SwarmTotals Swarm::Totals() const {
  SwarmTotals totals;
  for (const Worker& worker : workers_) Add(worker.shown->totals, &totals);
  return totals;
}

absl::StatusOr<SwarmResult> Swarm::Watch(
    const std::function<void(const SwarmTotals&)>& progress) {
  bool running = true;
  while (running && result_.failures.size() < options_.most_failures) {
    running = false;
    poll(nullptr, 0, kLookEveryMs);
    for (size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (worker.pid < 0) continue;
      Read(&worker);
      if (RealNs() - worker.shown->since_ns > options_.run_limit_ns) {
        kill(worker.pid, SIGKILL);
      }
      int status = 0;
      if (waitpid(worker.pid, &status, WNOHANG) == worker.pid) {
        Ended(i, status);
      }
      running = running || worker.pid > 0;
    }
    progress(Totals());
  }
  result_.totals = Totals();
  return std::move(result_);
}

}  // namespace

absl::StatusOr<SwarmResult> RunSwarm(
    const std::shared_ptr<const sim::Plugin>& plugin,
    const SwarmOptions& options,
    const std::function<void(const SwarmTotals&)>& progress) {
  Swarm swarm(plugin, options);
  const absl::Status begun = swarm.Begin();
  if (!begun.ok()) return begun;
  return swarm.Watch(progress);
}

}  // namespace mig::model
