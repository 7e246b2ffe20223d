// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One side of one migration over RDMA. The functions are those of the ABI
// (mig_transport.h says what each does), with Status for error codes.
#ifndef PLUGIN_RDMA_SESSION_H_
#define PLUGIN_RDMA_SESSION_H_

#include <atomic>
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
#include "common/host.h"
#include "common/message_credit.h"
#include "common/poller.h"
#include "common/ring_queue.h"
#include "common/session_rules.h"
#include "rdma/counters.h"
#include "rdma/data_writer.h"
#include "rdma/device_pool.h"
#include "rdma/fence.h"
#include "rdma/opener.h"
#include "rdma/rails.h"
#include "rdma/wire_blocks.h"
#include "rdma/zero_runs.h"

namespace mig::rdma {

struct SessionSettings {
  OpenerSettings opener;
  DataWriterSettings writer;
  uint64_t close_timeout_ns = 0;
  bool pinned = true;  // all is registered at exchange; else by chunk
};

// Serialised by the host but for Cancel, Wake and GetStats (rule 2).
class Session final : public FrameHandler {
 public:
  // Errors: LIMIT. `host` must outlive it.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Host* host, std::shared_ptr<DevicePool> pool,
      SessionSettings settings);
  ~Session() override;

  absl::Status Listen(absl::string_view uri);
  absl::Status Connect(absl::string_view uri);
  absl::StatusOr<std::string> LocalAddress() const;

  absl::Status AddBlock(const struct mig_block& block);
  absl::Status RemoveBlock(uint32_t id);
  absl::Status Exchange();

  absl::Status RoundBegin(uint64_t number, uint32_t flags);
  absl::Status Write(const struct mig_range* ranges, size_t count,
                     size_t element_size, size_t* accepted, uint64_t* partial);
  absl::Status Flush();
  absl::Status RoundEnd(uint64_t number);

  // False: no credit, SEND_READY will come.
  absl::StatusOr<bool> Send(uint32_t channel, uint32_t type,
                            const struct mig_iov* iov, size_t count,
                            size_t element_size);
  void MessageRelease(struct mig_message* message);

  absl::Status Progress(struct mig_event* events, size_t max,
                        size_t element_size, int64_t timeout_ns, size_t* count);
  struct mig_event_fd EventFd() const;
  // True: call Progress first.
  bool Arm(uint64_t* deadline_ns);

  absl::Status Handover();
  absl::Status HostBusy(uint64_t max_ns);
  void Cancel();
  void Wake();
  void Close();

  void GetCaps(struct mig_caps* caps);
  void GetStats(uint64_t* values, size_t count) const;
  const absl::Status& error() const { return rules_.failure(); }

  // FrameHandler, from inside Progress.
  absl::Status OnFrame(const FrameHeader& header,
                       std::span<const uint8_t> payload,
                       std::vector<uint8_t>* whole) override;

 private:
  struct Message {
    std::vector<uint8_t> payload;
  };
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
  // Who is told of a failure: the peer, nobody since the link is gone, or the
  // caller of Fail queues the last word itself.
  enum class Tell { kPeer, kNobody, kCaller };

  Session(const Host* host, std::shared_ptr<DevicePool> pool,
          SessionSettings settings, std::unique_ptr<Poller> poller);
  absl::Status CheckPeerThere() const;
  absl::Status OpenIo();
  Io io() const;
  bool linked() const { return opened_.control != nullptr; }
  ControlChannel& channel() const { return opened_.control->channel(); }

  // session_progress.cc
  void Step();
  void StepOpener(uint64_t now_ns);
  void StepLink(uint64_t now_ns);
  void StepFailedLink(uint64_t now_ns);
  void StepClosing(uint64_t now_ns);
  void ReadLink(uint64_t now_ns);
  void CheckConnections(uint64_t now_ns);
  void DataLost(const absl::Status& why);
  void CheckTimers(uint64_t now_ns);
  void AnswerWaiters();
  void HandleCancel(uint64_t now_ns);
  void NoteTraffic(uint64_t now_ns);
  void Fail(const absl::Status& why, Tell tell, bool peer_renounced = false);
  void BreakData();
  void DropLink();
  bool HasWork();
  bool MayRead() const { return events_.size() < kMaxEvents; }
  bool WriteReadyDue();
  bool SendReadyDue() const {
    return send_waits_ && outgoing_.Fits(opened_.agreement.max_message);
  }
  bool CreditDue() const;
  void GiveCredit();
  uint64_t NextDeadline() const;
  uint64_t HeartbeatInterval() const {
    return opened_.agreement.peer_timeout_ns / 4;
  }
  size_t TakeEvents(struct mig_event* events, size_t max, size_t element_size);

  // session_data.cc
  absl::Status PrepareQp(uint16_t index, CmQp* qp);
  absl::Status OpenData();
  void PollData();
  void PumpData();
  void SendRequests();
  void SendZeroRuns();
  void SendRoundEnds();
  void FinishRound();
  void Deliver(uint32_t type, std::vector<uint8_t> payload);
  void SendMessage(uint32_t type, std::span<const struct mig_iov> pieces);
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
  absl::Status OnAbort(const FrameHeader& header,
                       std::span<const uint8_t> payload);
  absl::Status OnMessage(const FrameHeader& header,
                         std::vector<uint8_t>* payload);
  absl::Status OnCredit(uint64_t charge);
  absl::Status OnBusy(uint64_t busy_ns);
  absl::Status OnOffer();
  absl::Status OnWithdraw();
  absl::Status OnRefused();
  absl::Status OnBye();
  void PublishCounters();
  void AddQpCaps(const char* name, const CmQp& qp);

  void PushEvent(uint32_t type, int32_t code = MIG_OK, uint64_t number = 0,
                 uint64_t length = 0);
  void SendAbort(const absl::Status& why);

  static constexpr size_t kMaxEvents = 4096;

  const Host* const host_;
  const std::shared_ptr<DevicePool> pool_;
  SessionSettings settings_;
  std::unique_ptr<Poller> poller_;
  SessionRules rules_;
  BlockTable blocks_;
  std::string local_uri_;
  std::string peer_;
  RingQueue<struct mig_event> events_;

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
  bool write_waits_ = false;
  absl::Status data_lost_;  // a data queue pair; the peer may yet say why
  uint64_t data_lost_deadline_ns_ = 0;

  // Messages.
  CreditWindow outgoing_;
  CreditWindow incoming_;
  uint64_t released_ = 0;  // charge to be given back
  bool send_waits_ = false;
  RingQueue<Waiting> unsent_messages_;
  RingQueue<Waiting> undelivered_;
  absl::flat_hash_map<const void*, std::unique_ptr<Message>> messages_;

  // Switchover and the end.
  std::optional<uint64_t> offer_place_;
  std::optional<uint64_t> withdraw_deadline_ns_;
  uint64_t peer_busy_until_ns_ = 0;
  uint64_t last_received_ns_ = 0;
  uint64_t last_sent_ns_ = 0;
  uint64_t frames_seen_ = 0;
  uint64_t sends_seen_ = 0;
  std::atomic<bool> cancel_asked_ = false;
  std::atomic<bool> wake_asked_ = false;
  bool cancel_handled_ = false;
  bool bye_sent_ = false;
  bool bye_received_ = false;
  bool bye_over_ = false;   // acknowledged, or the peer left too
  bool link_over_ = false;  // nothing goes out any more
  bool closed_ = false;
  uint64_t close_deadline_ns_ = 0;
  uint64_t drain_deadline_ns_ = 0;  // of a failed session's last word
  bool peer_left_ = false;          // PEER_CLOSED was told

  Counters counters_;
  uint64_t refused_ = 0;
  std::vector<struct mig_capability> capabilities_;
  std::vector<std::string> capability_texts_;
};

}  // namespace mig::rdma

#endif  // PLUGIN_RDMA_SESSION_H_
