// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What the host calls. Nothing here waits.
#include "rdma/session.h"

#include <utility>

#include "common/error.h"

namespace mig::rdma {

Session::Session(const Host* host, std::shared_ptr<DevicePool> pool,
                 SessionSettings settings, std::unique_ptr<Poller> poller)
    : SessionBase(host, std::move(poller), settings.opener.hello,
                  settings.close_timeout_ns),
      pool_(std::move(pool)),
      settings_(std::move(settings)),
      rails_(pool_.get()) {
  settings_.opener.guest_device = [this](const rdma_cm_id* id) {
    return rails_.Of(id);
  };
  settings_.opener.prepare = [this](uint16_t index, CmQp* qp) {
    return PrepareQp(index, qp);
  };
}

// Queue pairs go before the memory that they may touch.
Session::~Session() {
  opener_.reset();
  DropLink();
  registrations_.clear();
  if (ErrorCode(rules_.failure()) == MIG_E_DEVICE_REMOVED) rails_.Retire();
}

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const Host* host, std::shared_ptr<DevicePool> pool,
    SessionSettings settings) {
  auto poller = Poller::Create();
  if (!poller.ok()) return poller.status();
  return std::unique_ptr<Session>(new Session(
      host, std::move(pool), std::move(settings), *std::move(poller)));
}

Io Session::io() const {
  return {pool_->verbs(), host_, poller_.get(), cm_events_.get(),
          devices_.get()};
}

absl::Status Session::OpenIo() {
  if (cm_events_ != nullptr) return absl::OkStatus();
  auto events = CmEvents::Create(pool_->verbs(), poller_.get());
  if (!events.ok()) return events.status();
  cm_events_ = *std::move(events);
  devices_ = std::make_unique<DeviceSet>(pool_->verbs(), poller_.get());
  return absl::OkStatus();
}

absl::Status Session::Listen(absl::string_view uri) {
  MIG_RETURN_IF_ERROR(rules_.CheckStart(MIG_ROLE_DESTINATION));
  MIG_RETURN_IF_ERROR(ParseUri(uri).status());
  MIG_RETURN_IF_ERROR(OpenIo());
  auto opener = StartListener(uri, settings_.opener, io(), &refused_);
  if (!opener.ok()) return opener.status();
  opener_ = *std::move(opener);
  local_uri_ = opener_->LocalUri();
  rules_.Connecting();
  return absl::OkStatus();
}

absl::Status Session::Connect(absl::string_view uri) {
  MIG_RETURN_IF_ERROR(rules_.CheckStart(MIG_ROLE_SOURCE));
  MIG_RETURN_IF_ERROR(ParseUri(uri).status());
  MIG_RETURN_IF_ERROR(OpenIo());
  auto opener = StartConnector(uri, settings_.opener, io());
  if (!opener.ok()) return opener.status();
  opener_ = *std::move(opener);
  peer_ = std::string(uri);
  rules_.Connecting();
  return absl::OkStatus();
}

absl::Status Session::AddBlock(const struct mig_block& block) {
  MIG_RETURN_IF_ERROR(rules_.CheckAddBlock());
  // Pages that the device faults in may be replaced: it is told.
  return blocks_.Add(block, /*pins=*/!pool_->settings().on_demand);
}

void Session::BeginRemoval(Block* block) {
  removals_.push_back({.id = block->id});
}

absl::Status Session::Exchange() {
  MIG_RETURN_IF_ERROR(rules_.CheckExchange());
  std::vector<WireBlock> added;
  for (BlockDescription& about : blocks_.NewBlocks()) {
    WireBlock block;
    if (!rules_.source()) {
      block.address = reinterpret_cast<uintptr_t>(blocks_.Find(about.id)->base);
    }
    block.description = std::move(about);
    added.push_back(std::move(block));
  }
  const std::vector<uint8_t> table = EncodeBlocks(added);
  MIG_RETURN_IF_ERROR(CheckTableFits(added.size(), table.size()));
  channel().Send(FrameType::kBlocks, 0, table);
  rules_.ExchangeBegun();
  table_sent_ = true;
  // The peer's table may be here already; Progress holds them together.
  return absl::OkStatus();
}

absl::Status Session::RoundBegin(uint64_t number, uint32_t flags) {
  MIG_RETURN_IF_ERROR(rules_.RoundBegin(number, flags));
  writer_->RoundBegin(number, rules_.strict());
  return absl::OkStatus();
}

absl::Status Session::Write(const struct mig_range* ranges, size_t count,
                            size_t element_size, size_t* accepted,
                            uint64_t* partial) {
  *accepted = 0;
  *partial = 0;
  MIG_RETURN_IF_ERROR(rules_.CheckWrite());
  absl::Status status =
      writer_->Write(ranges, count, element_size, accepted, partial);
  if (!status.ok()) {
    if (ErrorCode(status) == MIG_E_STRICT) Fail(status, Tell::kPeer);
    return status;
  }
  if (*accepted < count) {
    write_waits_ = true;
    counters_.Add(Counter::kWriteStalls, 1);
  }
  SendRequests();
  return absl::OkStatus();
}

absl::Status Session::Flush() {
  MIG_RETURN_IF_ERROR(rules_.CheckWrite());
  writer_->Flush();
  SendRequests();
  return absl::OkStatus();
}

absl::Status Session::RoundEnd(uint64_t number) {
  MIG_RETURN_IF_ERROR(rules_.RoundEnd(number));
  write_waits_ = false;
  writer_->RoundEnd();
  PumpData();
  return absl::OkStatus();
}

}  // namespace mig::rdma
