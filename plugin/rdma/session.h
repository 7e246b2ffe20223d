// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One side of one migration over RDMA. The functions are those of the ABI
// (mig_transport.h says what each does), with Status for error codes.
#ifndef PLUGIN_RDMA_SESSION_H_
#define PLUGIN_RDMA_SESSION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/block_table.h"
#include "common/counters.h"
#include "common/host.h"
#include "common/poller.h"
#include "common/ring_queue.h"
#include "common/session_base.h"
#include "rdma/counters.h"
#include "rdma/data_writer.h"
#include "rdma/device_pool.h"
#include "rdma/fence.h"
#include "rdma/opener.h"
#include "rdma/rails.h"
#include "rdma/wire_blocks.h"
#include "rdma/zero_runs.h"

namespace mig::rdma {

// In the order of SharedFrame.
inline constexpr std::array<FrameType, kSharedFrames> kSharedTypes = {
    FrameType::kHeartbeat, FrameType::kBusy,      FrameType::kCredit,
    FrameType::kOffer,     FrameType::kCommitted, FrameType::kRefused,
    FrameType::kWithdraw,  FrameType::kBye,       FrameType::kByeAck};

struct SessionSettings {
  OpenerSettings opener;
  DataWriterSettings writer;
  uint64_t close_timeout_ns = 0;
  bool pinned = true;  // all is registered at exchange; else by chunk
};

// Serialised by the host but for Cancel, Wake and GetStats (rule 2).
class Session final : public SessionBase, public FrameHandler {
 public:
  // Errors: LIMIT. `host` must outlive it.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Host* host, std::shared_ptr<DevicePool> pool,
      SessionSettings settings);
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
  absl::Status OnFrame(const FrameHeader& header,
                       std::span<const uint8_t> payload,
                       std::vector<uint8_t>* whole) override;

 private:
  // A host's message that waits for a round: to be sent behind its end, or to
  // be delivered behind its ROUND_DONE (C35).
  struct Waiting {
    uint32_t type = 0;
    std::vector<uint8_t> payload;
  };
  struct Removal {
    uint32_t id = 0;
    bool told = false;  // source: BLOCK_REMOVED is queued; nothing uses it
  };
  Session(const Host* host, std::shared_ptr<DevicePool> pool,
          SessionSettings settings, std::unique_ptr<Poller> poller);
  absl::Status OpenIo();
  Io io() const;
  ControlChannel& channel() const { return opened_.control->channel(); }

  // SessionBase.
  void Step() override;
  bool linked() const override { return opened_.control != nullptr; }
  void StepOpener(uint64_t now_ns) override;
  void StepLink(uint64_t now_ns) override;
  void StepFailedLink(uint64_t now_ns) override;
  bool opening() const override { return opener_ != nullptr; }
  void DropOpener() override { opener_.reset(); }
  uint64_t QueueFrame(SharedFrame frame, uint64_t argument) override;
  void QueueAbort(const absl::Status& why, bool guest_not_taken) override;
  void QueueMessage(uint32_t type,
                    std::span<const struct mig_iov> pieces) override;
  void QueueHeld() override;
  bool HasStarted(uint64_t place) const override {
    return channel().HasStarted(place);
  }
  bool HasFinished(uint64_t place) const override {
    return channel().HasFinished(place);
  }
  bool NothingQueued() const override { return channel().unsent_frames() == 0; }
  void DropUnsent() override;
  void StopReading() override { channel().StopReading(); }
  bool Settled() const override { return channel().Settled(); }
  uint64_t LastReceivedNs() const override { return last_received_ns_; }
  uint64_t LastSentNs() const override { return last_sent_ns_; }
  bool InsideRoundOrExchange() const override;
  void GuestTaken() override { BreakData(); }
  void BeginRemoval(Block* block) override;
  bool HasTransportWork() override;
  uint64_t TransportDeadlineNs() const override;
  void CountMessage(bool sent) override;
  void CountSendStall() override { counters_.Add(Counter::kSendStalls, 1); }

  // session_progress.cc
  void StepClosing(uint64_t now_ns);
  void ReadLink(uint64_t now_ns);
  void CheckConnections(uint64_t now_ns);
  void DataLost(const absl::Status& why);
  void AnswerWaiters();
  void NoteTraffic(uint64_t now_ns);
  void BreakData();
  void DropLink();
  bool WriteReadyDue();

  // session_data.cc
  absl::Status PrepareQp(uint16_t index, CmQp* qp);
  absl::Status OpenData();
  void PollData();
  void PumpData();
  void SendRequests();
  void SendZeroRuns();
  void SendRoundEnds();
  void FinishRound();
  absl::Status OnZero(std::span<const uint8_t> payload);
  absl::Status OnRoundEnd(uint64_t number, std::span<const uint8_t> payload);
  absl::Status OnRoundAck(uint64_t number);
  bool DataWork() const;

  // session_blocks.cc
  absl::Status OnBlocks(std::span<const uint8_t> payload);
  absl::Status AgreeOnBlocks();
  absl::Status PrepareBlock(Block* block, const WireBlock& theirs);
  absl::Status OpenRegistration(Block* block);
  absl::Status CheckPinnable();
  bool Released(const Block& block) const;
  void StepRegistrations();
  absl::Status TakeKeys(uint32_t id, RailRegistrations* registrations,
                        std::vector<ChunkKey>* keys);
  void SendKeys(std::span<const ChunkKey> keys);
  void StepPreparing();
  void StepRemovals();
  bool RemovalWork();
  absl::Status OnAsk(std::span<const uint8_t> payload);
  absl::Status OnKeys(std::span<const uint8_t> payload);
  absl::Status OnBlockRemoved(uint64_t argument);

  // session_frames.cc
  absl::Status OnMessage(const FrameHeader& header,
                         std::vector<uint8_t>* payload);
  void PublishCounters();
  void AddQpCaps(const char* name, const CmQp& qp);

  const std::shared_ptr<DevicePool> pool_;
  SessionSettings settings_;

  // The link, in the order of its making.
  std::unique_ptr<CmEvents> cm_events_;
  std::unique_ptr<DeviceSet> devices_;
  Rails rails_;  // that the data queue pairs came up on
  std::unique_ptr<FenceReceiver> fences_;
  absl::flat_hash_map<uint32_t, std::unique_ptr<RailRegistrations>>
      registrations_;  // by this side's block id
  DataWriterStats writer_stats_;
  std::unique_ptr<DataWriter> writer_;
  Opened opened_;
  std::unique_ptr<Opener> opener_;
  bool more_events_ = false;

  // Exchange: one side's table may come long before the other's call.
  bool table_sent_ = false;
  std::optional<std::vector<WireBlock>> their_table_;
  bool preparing_ = false;
  bool prepared_ = false;       // this side said so
  bool peer_prepared_ = false;  // the other did
  uint64_t preparing_told_ = 0;
  std::vector<Removal> removals_;
  absl::flat_hash_set<uint32_t> removed_ids_;  // keys of them may still come

  // Rounds.
  uint64_t round_ends_sent_ = 0;
  uint64_t data_bytes_told_ = 0;  // by all ROUND_ENDs before
  uint64_t zero_bytes_ = 0;       // of the round under way, either side
  std::optional<std::pair<uint64_t, RoundSums>> round_end_;
  ZeroWriter zeros_;
  absl::Status data_lost_;  // a data queue pair; the peer may yet say why
  uint64_t data_lost_deadline_ns_ = 0;

  // Messages.
  RingQueue<Waiting> unsent_messages_;
  RingQueue<Waiting> undelivered_;

  uint64_t last_received_ns_ = 0;
  uint64_t last_sent_ns_ = 0;
  uint64_t receives_seen_ = 0;
  uint64_t sends_seen_ = 0;

  mig::Counters<Counter, kCounterCount> counters_;
  uint64_t refused_ = 0;
  std::vector<struct mig_capability> capabilities_;
  std::vector<std::string> capability_texts_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_SESSION_H_
