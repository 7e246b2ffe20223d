// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "fabric/side.h"

#include <sys/mman.h>

#include <array>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "guest/errno_text.h"
#include "guest/random.h"

namespace mig::fabric {
namespace {

constexpr uint32_t kPing = 1;
constexpr uint32_t kDeviceState = 2;
constexpr size_t kPingBytes = 40;
constexpr size_t kStateBytes = size_t{64} << 10;

}  // namespace

absl::StatusOr<std::unique_ptr<AddressRange>> AddressRange::Reserve(
    uint64_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat(bytes, " bytes of addresses can't be had (",
                     sim::ErrnoText(errno), "): use a smaller --memory"));
  }
  return std::unique_ptr<AddressRange>(new AddressRange(at, bytes));
}

AddressRange::~AddressRange() { munmap(address_, bytes_); }

Side::Side(const ExperimentSettings* settings, model::VirtualClock* clock,
           model::Actor actor)
    : settings_(*settings),
      clock_(clock),
      actor_(actor),
      services_(clock, static_cast<uint64_t>(actor) + 1, &log_, actor) {}

absl::Status Side::Start(const std::shared_ptr<const sim::Plugin>& plugin) {
  auto memory = AddressRange::Reserve(settings_.guest.memory);
  if (!memory.ok()) return memory.status();
  memory_ = *std::move(memory);
  auto context = sim::PluginContext::Create(plugin, services_.Table());
  if (!context.ok()) return context.status();
  context_ = *std::move(context);
  for (const auto& [name, value] : settings_.options) {
    absl::Status set = context_->SetOption(name, value);
    if (!set.ok()) return set;
  }
  auto session = sim::Session::Create(
      *context_,
      actor_ == model::Actor::kSource ? MIG_ROLE_SOURCE : MIG_ROLE_DESTINATION,
      {});
  if (!session.ok()) return session.status();
  session_ = *std::move(session);
  return AddBlock();
}

absl::Status Side::AddBlock() {
  mig_block block = {};
  block.size = sizeof block;
  block.id = Dirtying::kBlock;
  block.name = "ram";
  block.address = memory_->address();
  block.length = settings_.guest.memory;
  block.page_size = settings_.guest.page_size;
  block.fd = -1;
  return session_->AddBlock(block);
}

absl::StatusOr<bool> Side::Ready() {
  next_ns_ = UINT64_MAX;
  if (closed_) return false;
  const absl::StatusOr<uint64_t> deadline = session_->Arm();
  if (!deadline.ok()) return deadline.status();
  if (*deadline <= now_ns()) return true;
  next_ns_ = *deadline;
  return session_->FdReady();
}

absl::Status Side::Step() {
  std::vector<mig_event> events;
  absl::Status status = session_->Progress(0, &events);
  for (const mig_event& event : events) {
    if (!status.ok()) break;
    switch (event.type) {
      case MIG_EVENT_ERROR:
      case MIG_EVENT_IN_DOUBT:
      case MIG_EVENT_HANDOVER_REFUSED:
        return session_->Error();
      case MIG_EVENT_CLOSED:
        closed_ = true;
        return absl::OkStatus();
      default:
        status = OnEvent(event);
    }
    if (event.type == MIG_EVENT_MESSAGE) session_->Release(event.message);
  }
  return status;
}

// -- Destination --------------------------------------------------------------

absl::Status DestinationSide::Listen() {
  absl::Status status = session_->Listen("rdma://127.0.0.1:0");
  if (!status.ok()) return status;
  auto address = session_->LocalAddress();
  if (!address.ok()) return address.status();
  meeting_->uri = *std::move(address);
  return absl::OkStatus();
}

absl::Status DestinationSide::OnEvent(const mig_event& event) {
  switch (event.type) {
    case MIG_EVENT_CONNECTED:
      return session_->Exchange();
    case MIG_EVENT_MESSAGE: {
      if (event.message_type != kPing) return absl::OkStatus();
      const std::array<std::byte, kPingBytes> pong = {};
      return session_->Send(kPing, pong).status();
    }
    case MIG_EVENT_HANDOVER: {
      absl::Status taken = session_->Handover();
      if (taken.ok()) meeting_->start_ns = now_ns();
      return taken;
    }
    case MIG_EVENT_PEER_CLOSED:
      session_->Close();
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

// -- Source -------------------------------------------------------------------

absl::Status SourceSide::Connect() { return session_->Connect(meeting_->uri); }

absl::Status SourceSide::OnEvent(const mig_event& event) {
  switch (event.type) {
    case MIG_EVENT_CONNECTED:
      begun_ns_ = now_ns();
      return session_->Exchange();
    case MIG_EVENT_BLOCKS_READY:
      result_->setup_ns = now_ns() - begun_ns_;
      return pings_ < settings_.round_trips ? Ping() : BeginRound();
    case MIG_EVENT_MESSAGE:
      return OnMessage();
    case MIG_EVENT_WRITE_READY:
      return Write();
    case MIG_EVENT_ROUND_DONE:
      return OnRoundDone();
    case MIG_EVENT_COMMITTED:
      result_->downtime_ns = meeting_->start_ns - meeting_->stop_ns;
      result_->total_ns = meeting_->start_ns - first_round_ns_;
      session_->Close();
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

absl::Status SourceSide::Ping() {
  if (pings_++ == 0) pinged_ns_ = now_ns();
  const std::array<std::byte, kPingBytes> ping = {};
  return session_->Send(kPing, ping).status();
}

absl::Status SourceSide::OnMessage() {
  if (pings_ < settings_.round_trips) return Ping();
  result_->round_trip_ns =
      static_cast<double>(now_ns() - pinged_ns_) / settings_.round_trips;
  return BeginRound();
}

// Whether what is dirty now can be sent while the guest stands.
bool SourceSide::LastIsDue() const {
  if (result_->rounds.empty()) return false;
  if (result_->rounds.size() + 1 >= settings_.most_rounds) return true;
  const RoundFigures& before = result_->rounds.back();
  const double needs = before.bytes == 0
                           ? 0
                           : static_cast<double>(guest_.dirty_bytes()) *
                                 static_cast<double>(before.ns) /
                                 static_cast<double>(before.bytes);
  return needs <= static_cast<double>(settings_.downtime_limit_ns);
}

absl::Status SourceSide::BeginRound() {
  const uint64_t number = result_->rounds.size() + 1;
  if (number == 1) {
    guest_.StandUntil(now_ns());
    first_round_ns_ = now_ns();
  }
  guest_.RunUntil(now_ns());
  last_ = LastIsDue();
  if (last_) meeting_->stop_ns = now_ns();
  bytes_ = guest_.dirty_bytes();
  ranges_ = guest_.Take();
  written_ = 0;
  begun_ns_ = flushed_ns_ = now_ns();
  absl::Status begun =
      session_->RoundBegin(number, last_ ? MIG_ROUND_FINAL : 0);
  if (!begun.ok()) return begun;
  writing_ = true;
  return Write();
}

absl::Status SourceSide::Write() {
  if (!writing_) return absl::OkStatus();
  if (settings_.flush_every_ns != 0 && !last_ &&
      now_ns() - flushed_ns_ >= settings_.flush_every_ns) {
    flushed_ns_ = now_ns();
    absl::Status flushed = session_->Flush();
    if (!flushed.ok()) return flushed;
  }
  while (written_ < ranges_.size()) {
    const auto taken =
        session_->Write(absl::MakeConstSpan(ranges_).subspan(written_));
    if (!taken.ok()) return taken.status();
    written_ += taken->first;
    if (taken->second > 0) {
      ranges_[written_].offset += taken->second;
      ranges_[written_].length -= taken->second;
    }
    if (written_ < ranges_.size())
      return absl::OkStatus();  // until WRITE_READY
  }
  writing_ = false;
  return session_->RoundEnd(result_->rounds.size() + 1);
}

absl::Status SourceSide::OnRoundDone() {
  result_->rounds.push_back({bytes_, now_ns() - begun_ns_});
  if (!last_) return BeginRound();
  const std::vector<std::byte> state(kStateBytes);
  const auto sent = session_->Send(kDeviceState, state);
  if (!sent.ok()) return sent.status();
  if (!*sent) return absl::InternalError("no room for the device state");
  return session_->Handover();
}

}  // namespace mig::fabric
