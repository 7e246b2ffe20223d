// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One side of one migration over TCP. The functions are those of the ABI
// (mig_transport.h says what each does), with Status for error codes.
#ifndef PLUGIN_TCP_SESSION_H_
#define PLUGIN_TCP_SESSION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/block_table.h"
#include "common/counters.h"
#include "common/host.h"
#include "common/poller.h"
#include "common/ring_queue.h"
#include "common/session_base.h"
#include "tcp/connection.h"
#include "tcp/counters.h"
#include "tcp/opener.h"

namespace mig::tcp {

// In the order of SharedFrame.
inline constexpr std::array<FrameType, kSharedFrames> kSharedTypes = {
    FrameType::kHeartbeat, FrameType::kBusy,      FrameType::kCredit,
    FrameType::kOffer,     FrameType::kCommitted, FrameType::kRefused,
    FrameType::kWithdraw,  FrameType::kBye,       FrameType::kByeAck};

struct SessionSettings {
  OpenerSettings opener;
  uint64_t close_timeout_ns = 0;
  size_t batches = 8;  // under way in the plugin
};

// Serialised by the host but for Cancel, Wake and GetStats (rule 2). Everything
// happens inside calls: there is no thread but a name look-up's.
class Session final : public SessionBase, public FrameHandler {
 public:
  // Errors: LIMIT. `host` must outlive it.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Host* host, SessionSettings settings);
  ~Session() override;

  absl::Status Listen(absl::string_view uri);
  absl::Status Connect(absl::string_view uri);

  absl::Status AddBlock(const struct mig_block& block);
  absl::Status Exchange();

  absl::Status RoundBegin(uint64_t number, uint32_t flags);
  absl::Status Write(const struct mig_range* ranges, size_t count,
                     size_t element_size, size_t* accepted, uint64_t* partial);
  absl::Status Flush();
  absl::Status RoundEnd(uint64_t number);

  void GetCaps(struct mig_caps* caps);
  void GetStats(uint64_t* values, size_t count) const {
    counters_.Copy(values, count);
  }

  // FrameHandler, from inside Progress.
  absl::StatusOr<uint32_t> PayloadLimit(FrameType type) override;
  absl::Status OnFrame(const FrameHeader& header,
                       std::vector<uint8_t>* payload) override;
  absl::Status OnData(const FrameHeader& header,
                      std::span<const uint8_t> ranges, DataPlan* plan) override;

 private:
  struct Removal {
    uint32_t id;
    uint64_t place;  // of the frame that tells the peer
  };
  Session(const Host* host, SessionSettings settings,
          std::unique_ptr<Poller> poller);

  // SessionBase.
  void Step() override;
  bool linked() const override { return link_ != nullptr; }
  void StepOpener(uint64_t now_ns) override;
  void StepLink(uint64_t now_ns) override;
  void StepFailedLink(uint64_t now_ns) override;
  bool opening() const override { return opener_ != nullptr; }
  void DropOpener() override { opener_.reset(); }
  uint64_t QueueFrame(SharedFrame frame, uint64_t argument) override;
  void QueueAbort(const absl::Status& why, bool guest_not_taken) override;
  void QueueMessage(uint32_t type,
                    std::span<const struct mig_iov> pieces) override;
  void QueueHeld() override { link_->writer().Seal(); }
  bool HasStarted(uint64_t place) const override {
    return link_->writer().HasStarted(place);
  }
  bool HasFinished(uint64_t place) const override {
    return link_->writer().HasFinished(place);
  }
  bool NothingQueued() const override { return link_->writer().empty(); }
  void DropUnsent() override { link_->writer().DropUnstarted(); }
  void StopReading() override { link_->reader().Hold(); }
  bool Settled() const override { return link_->writer().empty(); }
  uint64_t LastReceivedNs() const override { return link_->last_received_ns(); }
  uint64_t LastSentNs() const override { return link_->last_sent_ns(); }
  bool InsideRoundOrExchange() const override;
  bool MayGiveCredit() const override;
  void BeginRemoval(Block* block) override;
  bool HasTransportWork() override;
  uint64_t TransportDeadlineNs() const override;
  void CountMessage(bool sent) override;
  void CountSendStall() override { counters_.Add(Counter::kSendStalls, 1); }

  // session_progress.cc
  void StepClosing(uint64_t now_ns);
  void ReadLink(uint64_t now_ns);
  void WriteLink(uint64_t now_ns);
  void SendNow();
  void AnswerWaiters();
  void LinkEnded();
  bool MayRead() const;
  // What AnswerWaiters would do now.
  bool RemovalDue() const;
  bool WriteReadyDue() const;
  void PublishCounters();

  // session_frames.cc
  absl::Status OnBlocks(std::span<const uint8_t> payload);
  absl::Status AgreeOnBlocks();
  absl::Status OnRoundEnd(uint64_t number, std::span<const uint8_t> payload);
  absl::Status OnMessage(const FrameHeader& header,
                         std::vector<uint8_t>* payload);
  absl::Status OnBlockRemoved(uint32_t id);
  absl::Status PlanRange(const WireRange& range, DataPlan* plan);

  uint64_t Queue(FrameType type, uint64_t argument = 0,
                 std::span<const uint8_t> payload = {});

  SessionSettings settings_;
  std::unique_ptr<Opener> opener_;
  std::unique_ptr<Connection> link_;

  // Exchange: one side's table may come long before the other's call.
  bool table_sent_ = false;
  std::optional<std::vector<BlockDescription>> their_table_;
  std::vector<Removal> removals_;

  // Rounds.
  RoundSums sums_;                  // of the round under way, sent or received
  RingQueue<uint64_t> ack_places_;  // of round acknowledgements not gone out
  absl::Status send_failure_;       // met outside Progress, told inside

  std::optional<uint64_t> credit_place_;
  mig::Counters<Counter, kCounterCount> counters_;
  uint64_t refused_ = 0;
  std::vector<struct mig_capability> capabilities_;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SESSION_H_
