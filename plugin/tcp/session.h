// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// One side of one migration over TCP. The functions are those of the ABI
// (mig_transport.h says what each does), with Status for error codes.
#ifndef PLUGIN_TCP_SESSION_H_
#define PLUGIN_TCP_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/block_table.h"
#include "common/host.h"
#include "common/message_credit.h"
#include "common/poller.h"
#include "common/ring_queue.h"
#include "common/session_rules.h"
#include "tcp/connection.h"
#include "tcp/counters.h"
#include "tcp/opener.h"

namespace mig::tcp {

struct SessionSettings {
  OpenerSettings opener;
  uint64_t close_timeout_ns = 0;
  size_t batches = 8;  // under way in the plugin
};

// Serialised by the host but for Cancel, Wake and GetStats (rule 2). Everything
// happens inside calls: there is no thread but a name look-up's.
class Session final : public FrameHandler {
 public:
  // Errors: LIMIT. `host` must outlive it.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const Host* host, SessionSettings settings);
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
  bool Arm(uint64_t* deadline_ns) const;

  absl::Status Handover();
  absl::Status HostBusy(uint64_t max_ns);
  void Cancel();
  void Wake();
  void Close();

  void GetCaps(struct mig_caps* caps);
  void GetStats(uint64_t* values, size_t count) const;
  const absl::Status& error() const { return rules_.failure(); }

  // FrameHandler, from inside Progress.
  absl::StatusOr<uint32_t> PayloadLimit(FrameType type) override;
  absl::Status OnFrame(const FrameHeader& header,
                       std::vector<uint8_t>* payload) override;
  absl::Status OnData(const FrameHeader& header,
                      std::span<const uint8_t> ranges, DataPlan* plan) override;

 private:
  struct Message {
    std::vector<uint8_t> payload;
  };
  struct Removal {
    uint32_t id;
    uint64_t place;  // of the frame that tells the peer
  };
  // Who is told of a failure: the peer, nobody since the link is gone, or the
  // caller of Fail queues the last word itself.
  enum class Tell { kPeer, kNobody, kCaller };

  Session(const Host* host, SessionSettings settings,
          std::unique_ptr<Poller> poller);
  absl::Status CheckPeerThere() const;
  uint32_t role() const { return settings_.opener.hello.role; }

  // session_progress.cc
  void Step();
  void StepOpener(uint64_t now_ns);
  void StepLink(uint64_t now_ns);
  void StepFailedLink(uint64_t now_ns);
  void StepClosing(uint64_t now_ns);
  void ReadLink(uint64_t now_ns);
  void WriteLink(uint64_t now_ns);
  void CheckTimers(uint64_t now_ns);
  void AnswerWaiters();
  void HandleCancel(uint64_t now_ns);
  void LinkEnded();
  void Fail(const absl::Status& why, Tell tell, bool peer_renounced = false);
  bool HasWork() const;
  bool MayRead() const;
  // What AnswerWaiters and GiveCredit would do now.
  bool RemovalDue() const;
  bool WriteReadyDue() const;
  bool SendReadyDue() const;
  bool CreditDue() const;
  void GiveCredit();
  uint64_t NextDeadline() const;
  uint64_t HeartbeatInterval() const { return agreement_.peer_timeout_ns / 4; }
  void PublishCounters();
  size_t TakeEvents(struct mig_event* events, size_t max, size_t element_size);

  // session_frames.cc
  absl::Status OnAbort(const FrameHeader& header,
                       std::span<const uint8_t> payload);
  absl::Status OnBlocks(std::span<const uint8_t> payload);
  absl::Status AgreeOnBlocks();
  absl::Status OnRoundEnd(uint64_t number, std::span<const uint8_t> payload);
  absl::Status OnMessage(const FrameHeader& header,
                         std::vector<uint8_t>* payload);
  absl::Status OnCredit(uint64_t charge);
  absl::Status OnBusy(uint64_t busy_ns);
  absl::Status OnOffer();
  absl::Status OnWithdraw();
  absl::Status OnRefused();
  absl::Status OnBye();
  absl::Status OnBlockRemoved(uint32_t id);
  absl::Status PlanRange(const WireRange& range, DataPlan* plan);

  void PushEvent(uint32_t type, int32_t code = MIG_OK, uint64_t number = 0);
  uint64_t QueueFrame(FrameType type, uint64_t argument = 0,
                      std::span<const uint8_t> payload = {});
  void QueueAbort(const absl::Status& why);

  const Host* const host_;
  SessionSettings settings_;
  std::unique_ptr<Poller> poller_;
  SessionRules rules_;
  BlockTable blocks_;
  std::unique_ptr<Opener> opener_;
  std::unique_ptr<Connection> link_;
  Agreement agreement_;
  std::string local_uri_;
  std::string peer_;
  RingQueue<struct mig_event> events_;

  // Exchange: one side's table may come long before the other's call.
  bool table_sent_ = false;
  std::optional<std::vector<BlockDescription>> their_table_;
  std::vector<Removal> removals_;

  // Rounds.
  RoundSums sums_;                  // of the round under way, sent or received
  RingQueue<uint64_t> ack_places_;  // of round acknowledgements not gone out
  bool write_waits_ = false;
  absl::Status send_failure_;  // met outside Progress, told inside

  // Messages.
  CreditWindow outgoing_;
  CreditWindow incoming_;
  uint64_t released_ = 0;  // charge to be given back
  std::optional<uint64_t> credit_place_;
  bool send_waits_ = false;
  absl::flat_hash_map<const void*, std::unique_ptr<Message>> messages_;

  // Switchover and the end.
  std::optional<uint64_t> offer_place_;
  std::optional<uint64_t> withdraw_deadline_ns_;
  uint64_t peer_busy_until_ns_ = 0;
  std::atomic<bool> cancel_asked_ = false;
  std::atomic<bool> wake_asked_ = false;
  bool cancel_handled_ = false;
  bool bye_sent_ = false;
  bool bye_received_ = false;
  bool bye_over_ = false;  // acknowledged, or the peer left too
  bool link_over_ = false;
  bool closed_ = false;
  uint64_t close_deadline_ns_ = 0;
  uint64_t drain_deadline_ns_ = 0;  // of a failed session's last word
  bool peer_left_ = false;          // PEER_CLOSED was told

  Counters counters_;
  uint64_t refused_ = 0;
  std::vector<struct mig_capability> capabilities_;
};

}  // namespace mig::tcp

#endif  // PLUGIN_TCP_SESSION_H_
