// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// What a session is by any transport that has a reliable stream of frames: its
// first error, its events, messages and their credit, the clockwork that finds
// a silent peer, who has the guest (rule 12), and the end. A transport moves
// guest memory and frames; nothing virtual is called per page.
#ifndef PLUGIN_COMMON_SESSION_BASE_H_
#define PLUGIN_COMMON_SESSION_BASE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/block_table.h"
#include "common/event_queue.h"
#include "common/hello.h"
#include "common/host.h"
#include "common/message_flow.h"
#include "common/poller.h"
#include "common/session_rules.h"
#include "mig_transport.h"

namespace mig {

// Frames that every transport has, each under a number of its own. All are a
// type and an argument.
enum class SharedFrame : size_t {
  kHeartbeat,
  kBusy,    // nanoseconds
  kCredit,  // charge given back
  kOffer,
  kCommitted,
  kRefused,
  kWithdraw,
  kBye,
  kByeAck,
  kCount
};
inline constexpr size_t kSharedFrames =
    static_cast<size_t>(SharedFrame::kCount);

// Which of them a transport's frame type is, or none. `types` is the
// transport's table in the order of SharedFrame.
template <typename FrameType>
std::optional<SharedFrame> SharedFrameOf(
    const std::array<FrameType, kSharedFrames>& types, FrameType type) {
  for (size_t i = 0; i < kSharedFrames; ++i) {
    if (types[i] == type) return static_cast<SharedFrame>(i);
  }
  return std::nullopt;
}

// The functions are those of the ABI, serialised by the host but for Cancel
// and Wake (rule 2), with Status for error codes. Nothing waits but Progress.
class SessionBase {
 public:
  virtual ~SessionBase() = default;
  SessionBase(const SessionBase&) = delete;
  SessionBase& operator=(const SessionBase&) = delete;

  absl::StatusOr<std::string> LocalAddress() const;
  absl::Status RemoveBlock(uint32_t id);
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
  // False: the word waits behind others, and goes out in Progress.
  absl::StatusOr<bool> HostBusy(uint64_t max_ns);
  void Cancel();
  void Wake();
  void Close();
  const absl::Status& error() const { return rules_.failure(); }

 protected:
  // Who is told of a failure: the peer, nobody since the link is gone, or the
  // caller of Fail queues the last word itself.
  enum class Tell { kPeer, kNobody, kCaller };

  // `host` must outlive it.
  SessionBase(const Host* host, std::unique_ptr<Poller> poller,
              const CommonHello& hello, uint64_t close_timeout_ns);

  // The transport's part. Frames are queued here and sent when they can be;
  // those that are called with a link only say so.
  virtual void Step() = 0;
  virtual bool linked() const = 0;
  virtual void StepOpener(uint64_t now_ns) = 0;
  virtual void StepLink(uint64_t now_ns) = 0;        // linked
  virtual void StepFailedLink(uint64_t now_ns) = 0;  // linked
  virtual bool opening() const = 0;
  virtual void DropOpener() = 0;
  // Linked. Returns the place of the frame in the stream.
  virtual uint64_t QueueFrame(SharedFrame frame, uint64_t argument) = 0;
  virtual void QueueAbort(const absl::Status& why, bool guest_not_taken) = 0;
  virtual void QueueMessage(uint32_t type,
                            std::span<const struct mig_iov> pieces) = 0;
  // Linked: messages that wait in the transport go before the BYE.
  virtual void QueueHeld() = 0;
  virtual bool HasStarted(uint64_t place) const = 0;
  virtual bool HasFinished(uint64_t place) const = 0;
  virtual bool NothingQueued() const = 0;
  // Linked: forgets what has not begun to go out, and stops guest memory.
  virtual void DropUnsent() = 0;
  // Linked: from inside a frame, that no other is handed on.
  virtual void StopReading() = 0;
  // All that was queued has reached the peer's side.
  virtual bool Settled() const = 0;
  // The times of the last byte or frame; linked.
  virtual uint64_t LastReceivedNs() const = 0;
  virtual uint64_t LastSentNs() const = 0;
  // Destination: whether a round or an exchange is under way.
  virtual bool InsideRoundOrExchange() const = 0;
  // Destination: from here on nobody may write the guest's memory.
  virtual void GuestTaken() {}
  virtual bool MayGiveCredit() const { return true; }
  // A block that both sides have goes; its removal is the transport's.
  virtual void BeginRemoval(Block* block) = 0;
  // Work and deadlines that the skeleton does not know of.
  virtual bool HasTransportWork() = 0;
  virtual uint64_t TransportDeadlineNs() const = 0;
  virtual void CountMessage(bool sent) = 0;
  virtual void CountSendStall() = 0;

  // The skeleton's part.
  const CommonAgreement& agreement() const { return agreement_; }
  bool usable() const { return !rules_.failed() && !link_over_; }
  void Linked(const std::string& peer, const CommonAgreement& agreement);
  void PushEvent(uint32_t type, int32_t code = MIG_OK, uint64_t number = 0,
                 uint64_t length = 0);
  void Fail(const absl::Status& why, Tell tell, bool peer_renounced = false);
  // What Step does before the transport's rest: cancel, opener, link.
  void StepConnection(uint64_t now_ns);
  void CheckTimers(uint64_t now_ns);
  void GiveCredit();
  void TellSendReady();
  bool CreditDue() const { return messages_.CreditDue() && MayGiveCredit(); }
  // Whether a closing session has said its last word, or has no time left.
  bool ReadyToClose(uint64_t now_ns);
  // The link ended where a closing side expected it: not a failure.
  void LinkEndedInPeace() { bye_over_ = link_over_ = true; }
  void Closed();

  absl::Status OnSharedFrame(SharedFrame frame, uint64_t argument);
  absl::Status OnAbort(uint8_t flags, uint64_t argument,
                       std::span<const uint8_t> text);
  void Deliver(uint32_t type, std::vector<uint8_t> payload);
  void FillCaps(const CommonHello& hello, struct mig_caps* caps) const;

  const Host* const host_;
  const std::unique_ptr<Poller> poller_;
  SessionRules rules_;
  BlockTable blocks_;
  EventQueue events_;
  MessageFlow messages_;
  std::string local_uri_;
  std::string peer_;
  bool write_waits_ = false;
  bool bye_sent_ = false;
  bool bye_over_ = false;   // acknowledged, or the peer left too
  bool link_over_ = false;  // nothing goes out any more
  bool closed_ = false;
  uint64_t drain_deadline_ns_ = 0;  // of a failed session's last word

 private:
  absl::Status CheckPeerThere() const;
  void HandleCancel(uint64_t now_ns);
  bool HasWork();
  uint64_t NextDeadline() const;
  void NoteLook(uint64_t now_ns, uint64_t heard_ns);
  uint64_t HeartbeatInterval() const { return agreement_.peer_timeout_ns / 4; }
  uint64_t HeardNs() const;
  size_t TakeEvents(struct mig_event* events, size_t max, size_t element_size);
  // How long Progress sleeps, negative for ever.
  int64_t WaitNs(int64_t timeout_ns, int64_t slept_ns);
  absl::Status OnOffer();
  absl::Status OnWithdraw();
  absl::Status OnRefused();
  absl::Status OnBye();

  const uint64_t close_timeout_ns_;
  CommonAgreement agreement_;
  std::optional<uint64_t> offer_place_;
  std::optional<uint64_t> withdraw_deadline_ns_;
  struct BusyWord {
    uint64_t place;
    uint64_t max_ns;
  };
  std::optional<BusyWord> busy_word_;  // that has not left yet
  uint64_t peer_busy_until_ns_ = 0;
  bool said_busy_ = false;          // this host, and not that it no longer is
  uint64_t last_look_ns_ = 0;       // when timers were looked at
  uint64_t spared_until_ns_ = 0;    // a silence is none before
  uint64_t spared_silence_ns_ = 0;  // since then: the last that was spared
  std::atomic<bool> cancel_asked_ = false;
  std::atomic<bool> wake_asked_ = false;
  bool cancel_handled_ = false;
  bool bye_received_ = false;
  bool peer_left_ = false;  // PEER_CLOSED was told
  uint64_t close_deadline_ns_ = 0;
};

}  // namespace mig

#endif  // PLUGIN_COMMON_SESSION_BASE_H_
