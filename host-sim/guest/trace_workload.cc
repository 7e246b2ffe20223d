// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "guest/stamp_workload.h"
#include "guest/trace_file.h"
#include "guest/workload_kinds.h"

namespace mig::sim {
namespace {

constexpr uint64_t kPagesPerStep = 8;
constexpr int64_t kNsPerMs = 1'000'000;
// The guest's clock goes into its memory this often while nothing is due.
constexpr int64_t kTickNs = 10'000'000;

// In guest memory; the events follow in the pages after the control page, so
// the destination needs no file.
struct TraceState {
  uint64_t events;
  uint64_t laps;  // to do in all
  uint64_t lap;
  uint64_t next;        // event of this lap
  uint64_t pages_done;  // of that event
  uint64_t skipped;     // pages not written, as the state is there
  int64_t elapsed_ns;   // of this lap
};

// Replays the writes of a file at their times. What is late is caught up on.
class TraceWorkload final : public StampWorkload {
 public:
  TraceWorkload(WorkloadSetup setup, const StampOptions& options,
                std::string path, uint64_t laps)
      : StampWorkload(std::move(setup), options),
        path_(std::move(path)),
        laps_(laps) {}

  absl::Status Step() override {
    if (Done()) return absl::OkStatus();
    state<TraceState>()->elapsed_ns += TakeElapsed();
    for (uint64_t i = 0; i < kPagesPerStep && !Done() && DueInNs() <= 0; ++i) {
      WriteNext();
    }
    FinishStep();
    return absl::OkStatus();
  }

  bool Done() const override {
    const auto* now = state<TraceState>();
    return now->lap == now->laps;
  }

  int64_t DelayNs() override {
    if (Done()) return kTickNs;
    const int64_t since = started_ ? setup().clock() - last_ns_ : 0;
    return std::clamp<int64_t>(DueInNs() - since, 0, kTickNs);
  }

  void SkipTime(int64_t ns) override { last_ns_ += ns; }

  std::string Summary() const override {
    const auto* now = state<TraceState>();
    return absl::StrFormat(
        "%s, write %u of %u, lap %u of %u, %u page writes left out because the "
        "trace itself is kept there",
        StampWorkload::Summary(), now->next, now->events, now->lap, now->laps,
        now->skipped);
  }

 protected:
  absl::Status InitState() override;
  absl::Status CheckState() override;
  uint64_t NextPage() override { return reserved_pages(); }
  uint64_t reserved_pages() const override {
    return 1 +
           (state<TraceState>()->events * sizeof(TraceEvent) + kPageSize - 1) /
               kPageSize;
  }

 private:
  TraceEvent* events() const {
    return reinterpret_cast<TraceEvent*>(memory().blocks()[0].base + kPageSize);
  }

  int64_t TakeElapsed() {
    const int64_t now = setup().clock();
    const int64_t elapsed = started_ ? now - last_ns_ : 0;
    started_ = true;
    last_ns_ = now;
    return elapsed;
  }

  // Of guest time at the last step; below 0 when late.
  int64_t DueInNs() const {
    const auto* now = state<TraceState>();
    return static_cast<int64_t>(events()[now->next].time_ms) * kNsPerMs -
           now->elapsed_ns;
  }

  void WriteNext() {
    auto* now = state<TraceState>();
    const TraceEvent& event = events()[now->next];
    const uint64_t number = FirstPageOf(static_cast<uint32_t>(event.block)) +
                            event.first_page() + now->pages_done;
    if (number < reserved_pages()) {
      ++now->skipped;
    } else {
      WritePage(number);
    }
    if (++now->pages_done < event.pages()) return;
    now->pages_done = 0;
    if (++now->next < now->events) return;
    // The next lap begins a millisecond after the last write.
    now->elapsed_ns -= (static_cast<int64_t>(event.time_ms) + 1) * kNsPerMs;
    now->next = 0;
    ++now->lap;
  }

  std::string path_;
  uint64_t laps_;
  bool started_ = false;
  int64_t last_ns_ = 0;
};

absl::Status TraceWorkload::InitState() {
  absl::StatusOr<std::vector<TraceEvent>> loaded = LoadTrace(path_, memory());
  if (!loaded.ok()) return loaded.status();
  auto* now = state<TraceState>();
  *now = {};
  now->events = loaded->size();
  now->laps = laps_;
  absl::Status status = CheckRoom();
  if (!status.ok()) return status;
  const uint64_t bytes = loaded->size() * sizeof(TraceEvent);
  memcpy(events(), loaded->data(), bytes);
  NoteWrite(0, kPageSize, bytes);
  return absl::OkStatus();
}

absl::Status TraceWorkload::CheckState() {
  const auto* now = state<TraceState>();
  const uint64_t most = memory().blocks()[0].length / sizeof(TraceEvent);
  if (now->events == 0 || now->events >= most) {
    return StateLost("the number of writes", now->events, most);
  }
  absl::Status status = CheckRoom();
  if (!status.ok()) return status;
  if (now->next >= now->events) {
    return StateLost("the next write", now->next, now->events);
  }
  if (now->lap > now->laps) {
    return StateLost("the lap", now->lap, now->laps + 1);
  }
  uint64_t before_ms = 0;
  for (uint64_t i = 0; i < now->events; ++i) {
    status = CheckTraceEvent(events()[i], before_ms, memory());
    if (!status.ok()) {
      return absl::DataLossError(absl::StrFormat(
          "write %u of the trace in guest memory: %s", i, status.message()));
    }
    before_ms = events()[i].time_ms;
  }
  const uint64_t pages = events()[now->next].pages();
  if (now->pages_done >= pages) {
    return StateLost("the page of the write", now->pages_done, pages);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> MakeTrace(SpecReader* reader,
                                                    WorkloadSetup setup) {
  StampOptions options;
  std::string path;
  uint64_t laps = 1;
  absl::Status status = reader->TakePositional("FILE", &path);
  if (status.ok()) status = options.TakeFill(reader);
  if (status.ok()) status = reader->TakeCount("loop", 1, 1'000'000'000, &laps);
  if (!status.ok()) return status;
  return std::make_unique<TraceWorkload>(std::move(setup), options,
                                         std::move(path), laps);
}

}  // namespace mig::sim
