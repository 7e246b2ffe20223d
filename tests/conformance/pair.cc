// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "pair.h"

#include <thread>
#include <utility>

namespace mig::conformance {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

bool Drive(std::initializer_list<Session*> sessions,
           const std::function<bool()>& done, milliseconds bound) {
  const uint64_t deadline =
      RealNow() +
      static_cast<uint64_t>(std::chrono::nanoseconds(bound).count());
  int idle = 0;
  while (!done()) {
    if (RealNow() > deadline) return false;
    size_t events = 0;
    for (Session* session : sessions) {
      if (session != nullptr && session->valid()) events += session->Progress();
    }
    idle = events == 0 ? idle + 1 : 0;
    // Leaves the processor to threads that the plugin may have.
    if (idle > 16) std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

void DriveFor(std::initializer_list<Session*> sessions, milliseconds time) {
  Drive(
      sessions, [] { return false; }, time);
}

Block::Block(const BlockSpec& block_spec, uint32_t index)
    : spec(block_spec),
      name("ram" + std::to_string(index)),
      source_id(7 + index),
      destination_id(1000000 - index),
      source(spec.length, spec.page_size, spec.kind),
      destination(spec.length, spec.page_size, spec.kind) {}

namespace {

mig_block Describe(const Block& block, uint32_t id, uint32_t flags,
                   const Memory& memory) {
  mig_block description = {};
  description.size = sizeof(description);
  description.id = id;
  description.name = block.name.c_str();
  description.address = const_cast<uint8_t*>(memory.data());
  description.length = memory.length();
  description.page_size = block.spec.page_size;
  description.flags = flags;
  description.fd = memory.fd();
  if (memory.fd() >= 0) description.flags |= MIG_BLOCK_FD;
  return description;
}

}  // namespace

mig_block Block::OfSource() const {
  return Describe(*this, source_id, spec.source_flags, source);
}

mig_block Block::OfDestination() const {
  return Describe(*this, destination_id, spec.destination_flags, destination);
}

mig_range Block::Range(uint64_t offset, uint64_t bytes, uint32_t flags) const {
  return mig_range{offset, bytes, source_id, flags, 0};
}

mig_range Block::Page(uint64_t page, uint32_t flags) const {
  return Range(page * spec.page_size, spec.page_size, flags);
}

mig_range Block::Whole(uint32_t flags) const {
  return Range(0, spec.length, flags);
}

Pair::Pair(const PairSetup& setup)
    : source_host_(setup.clock), identity_(setup.identity) {
  source_context_ = std::make_unique<Context>(source_host_);
  if (!setup.one_context) {
    destination_host_ = std::make_unique<Host>(setup.clock);
    destination_context_ = std::make_unique<Context>(*destination_host_);
  }
  identity_.attempt -= 1;
  Renew();
}

Pair::Pair(Context& shared) : shared_(&shared) {
  identity_.attempt -= 1;
  Renew();
}

Context& Pair::destination_context() {
  return destination_context_ ? *destination_context_ : source_context();
}

Host& Pair::destination_host() {
  return destination_host_ ? *destination_host_ : source_host_;
}

void Pair::Renew() {
  source_.reset();
  destination_.reset();
  identity_.attempt += 1;
  round_ = 0;
  source_ =
      std::make_unique<Session>(source_context(), MIG_ROLE_SOURCE, identity_);
  destination_ = std::make_unique<Session>(destination_context(),
                                           MIG_ROLE_DESTINATION, identity_);
}

std::string Pair::Describe() const {
  return source_->Describe() + "; " + destination_->Describe();
}

AssertionResult Pair::Failed(const std::string& what) const {
  return AssertionFailure()
         << what << " [" << source_->error().message << "]["
         << destination_->error().message << "]; " << Describe();
}

bool Pair::Pump(const std::function<bool()>& done, milliseconds bound) {
  return Drive({source_.get(), destination_.get()}, done, bound);
}

AssertionResult Pair::Start() {
  if (!source_->valid() || !destination_->valid()) {
    return Failed("a session could not be made");
  }
  if (destination_->Listen(NextListenUri()) != MIG_OK) return Failed("listen");
  address_ = destination_->LocalAddress();
  if (address_.empty()) return Failed("local_address");
  if (source_->Connect(address_) != MIG_OK) return Failed("connect");
  return AssertionSuccess();
}

AssertionResult Pair::Connect() {
  const AssertionResult started = Start();
  if (!started) return started;
  const bool connected = Pump([this] {
    return (source_->Saw(MIG_EVENT_CONNECTED) &&
            destination_->Saw(MIG_EVENT_CONNECTED)) ||
           source_->Ended() || destination_->Ended();
  });
  if (!connected || source_->Ended() || destination_->Ended()) {
    return Failed("not connected");
  }
  return AssertionSuccess();
}

AssertionResult Pair::AddBlock(const BlockSpec& spec) {
  blocks_.push_back(
      std::make_unique<Block>(spec, static_cast<uint32_t>(blocks_.size())));
  if (source_->AddBlock(blocks_.back()->OfSource()) != MIG_OK ||
      destination_->AddBlock(blocks_.back()->OfDestination()) != MIG_OK) {
    return Failed("add_block");
  }
  return AssertionSuccess();
}

AssertionResult Pair::AddBlocksAgain() {
  for (const auto& block : blocks_) {
    if (source_->AddBlock(block->OfSource()) != MIG_OK ||
        destination_->AddBlock(block->OfDestination()) != MIG_OK) {
      return Failed("add_block");
    }
  }
  return AssertionSuccess();
}

Block& Pair::SpareBlock(const BlockSpec& spec, uint32_t index) {
  spare_blocks_.push_back(std::make_unique<Block>(spec, index));
  return *spare_blocks_.back();
}

AssertionResult Pair::Exchange() {
  const size_t source_before = source_->Count(MIG_EVENT_BLOCKS_READY);
  const size_t destination_before = destination_->Count(MIG_EVENT_BLOCKS_READY);
  if (source_->Exchange() != MIG_OK || destination_->Exchange() != MIG_OK) {
    return Failed("exchange");
  }
  const auto ready = [&] {
    return source_->Count(MIG_EVENT_BLOCKS_READY) > source_before &&
           destination_->Count(MIG_EVENT_BLOCKS_READY) > destination_before;
  };
  Pump([&] { return ready() || source_->Ended() || destination_->Ended(); });
  return ready() ? AssertionSuccess() : Failed("blocks not ready");
}

AssertionResult Pair::Ready(const BlockSpec& spec) {
  AssertionResult result = Connect();
  if (result && blocks_.empty()) result = AddBlock(spec);
  return result ? Exchange() : result;
}

AssertionResult Pair::Write(std::vector<mig_range> ranges) {
  std::span<mig_range> rest(ranges);
  while (!rest.empty()) {
    const size_t ready = source_->Count(MIG_EVENT_WRITE_READY);
    Taken taken;
    if (source_->Write(rest, &taken) != MIG_OK) return Failed("write");
    rest = rest.subspan(taken.accepted);
    if (rest.empty()) break;
    rest[0].offset += taken.partial;
    rest[0].length -= taken.partial;
    const bool again = Pump([&] {
      return source_->Count(MIG_EVENT_WRITE_READY) > ready || source_->Ended();
    });
    if (!again || source_->Ended()) return Failed("no WRITE_READY came");
  }
  return AssertionSuccess();
}

AssertionResult Pair::Begin(uint32_t flags) {
  if (source_->RoundBegin(round_ + 1, flags) != MIG_OK) {
    return Failed("round_begin");
  }
  ++round_;
  return AssertionSuccess();
}

AssertionResult Pair::End() {
  if (source_->RoundEnd(round_) != MIG_OK) return Failed("round_end");
  return AssertionSuccess();
}

AssertionResult Pair::RoundDone() {
  const auto done = [this] {
    return source_->SawNumber(MIG_EVENT_ROUND_DONE, round_) &&
           destination_->SawNumber(MIG_EVENT_ROUND_DONE, round_);
  };
  Pump([&] { return done() || source_->Ended() || destination_->Ended(); });
  return done() ? AssertionSuccess() : Failed("round not done");
}

AssertionResult Pair::Round(const std::vector<mig_range>& ranges,
                            uint32_t flags) {
  AssertionResult result = Begin(flags);
  if (result) result = Write(ranges);
  if (result) result = End();
  return result ? RoundDone() : result;
}

AssertionResult Pair::Offer() {
  if (source_->Handover() != MIG_OK) return Failed("handover");
  const bool offered =
      Pump([this] { return destination_->Saw(MIG_EVENT_HANDOVER); });
  return offered ? AssertionSuccess() : Failed("no HANDOVER came");
}

AssertionResult Pair::Handover() {
  const AssertionResult offered = Offer();
  if (!offered) return offered;
  if (destination_->Handover() != MIG_OK) return Failed("taking the guest");
  const bool committed =
      Pump([this] { return source_->Saw(MIG_EVENT_COMMITTED); });
  return committed ? AssertionSuccess() : Failed("no COMMITTED came");
}

AssertionResult Pair::Close() {
  source_->Close();
  destination_->Close();
  const bool closed = Pump([this] {
    return source_->Saw(MIG_EVENT_CLOSED) &&
           destination_->Saw(MIG_EVENT_CLOSED);
  });
  return closed ? AssertionSuccess() : Failed("not closed");
}

}  // namespace mig::conformance
