// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The other end of a connection to another process: its memory is written and
// read by system calls, straight from and to where the data is; what it allows
// is looked up in its own tables.
#include <limits.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "soft-verbs/process_link.h"
#include "soft-verbs/queue_pair.h"

namespace mig::soft {
namespace {

iovec Remote(uint64_t address, size_t length) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return {reinterpret_cast<void*>(address), length};
}

class ProcessEnd final : public RemoteEnd {
 public:
  ProcessEnd(std::shared_ptr<ProcessLink> link, std::unique_ptr<QpShare> share,
             bool iwarp)
      : link_(std::move(link)), share_(std::move(share)), iwarp_(iwarp) {}

  Answer CheckWrite(uint64_t address, uint32_t rkey, uint64_t length) override {
    if (!Answers()) return Answer::Lost();
    return CheckAccess(address, rkey, length, IBV_ACCESS_REMOTE_WRITE);
  }
  size_t Place(std::span<const Placement> placements, Answer* answer) override;
  Answer Deliver(const Message& message) override;
  Answer Fetch(uint64_t address, uint32_t rkey, uint64_t length,
               std::span<const iovec> to) override;
  void Break() override { Tell(Violation::kConnection); }

 private:
  bool Answers() const {
    const ShareHeader& header = share_->header();
    const uint32_t state = header.state.load(std::memory_order_seq_cst);
    return !link_->dead() && (state == IBV_QPS_RTR || state == IBV_QPS_RTS) &&
           header.silent.load(std::memory_order_relaxed) == 0;
  }
  void Tell(Violation violation) {
    share_->header().violation.store(static_cast<uint32_t>(violation),
                                     std::memory_order_release);
    link_->Wake();
  }
  std::optional<MemoryRegion> FindRemote(uint32_t rkey) const {
    return FindRemoteIn(link_->memory(), link_->memory_capacity(), rkey);
  }
  Answer CheckAccess(uint64_t address, uint32_t rkey, uint64_t length,
                     uint32_t right);
  // The receive's memory; false if a key, bound or right is wrong.
  bool LocateReceive(uint64_t index, uint32_t count, uint64_t* room,
                     std::vector<iovec>* parts);
  ibv_wc_status Fill(uint64_t index, const Message& message, Answer* answer);
  Answer OnError(int error);

  std::shared_ptr<ProcessLink> link_;
  std::unique_ptr<QpShare> share_;
  bool iwarp_;
  std::vector<iovec> here_;
  std::vector<iovec> there_;
};

Answer ProcessEnd::CheckAccess(uint64_t address, uint32_t rkey, uint64_t length,
                               uint32_t right) {
  if (length == 0) return {};
  const std::optional<MemoryRegion> region = FindRemote(rkey);
  if (!region.has_value() || region->pd != share_->header().pd ||
      !region->Contains(address, length) || (region->access & right) == 0 ||
      (share_->header().access.load(std::memory_order_relaxed) & right) == 0) {
    Tell(Violation::kAccess);
    return Answer::Refused(IBV_WC_REM_ACCESS_ERR);
  }
  Answer answer;
  answer.relaxed = (region->access & IBV_ACCESS_RELAXED_ORDERING) != 0;
  return answer;
}

Answer ProcessEnd::OnError(int error) {
  if (error == ESRCH) return Answer::Lost();  // it has just died
  link_->SetUnreachable(error);
  return Answer::Refused(IBV_WC_REM_OP_ERR);
}

size_t ProcessEnd::Place(std::span<const Placement> placements,
                         Answer* answer) {
  const ShareGuard guard(share_.get());
  size_t done = 0;
  while (done < placements.size()) {
    here_.clear();
    there_.clear();
    size_t taken = done;
    for (; taken < placements.size() && here_.size() < IOV_MAX; ++taken) {
      const Placement& placement = placements[taken];
      const std::optional<MemoryRegion> region = FindRemote(placement.rkey);
      // Gone meanwhile: nothing is written there any more.
      if (!region.has_value() ||
          !region->Contains(placement.to, placement.length)) {
        if (here_.empty()) {
          ++done;
          continue;
        }
        break;
      }
      here_.push_back({const_cast<void*>(placement.from), placement.length});
      there_.push_back(Remote(placement.to, placement.length));
    }
    if (here_.empty()) continue;
    ssize_t written =
        process_vm_writev(link_->pid(), here_.data(), here_.size(),
                          there_.data(), there_.size(), 0);
    if (written < 0) {
      *answer = OnError(errno);
      return done;
    }
    // Whole ones; one that was begun is written again.
    const size_t before = done;
    while (done < taken &&
           static_cast<size_t>(written) >= placements[done].length) {
      written -= static_cast<ssize_t>(placements[done].length);
      ++done;
    }
    // One transfer is at most 2 GiB; a longer one makes no progress this way.
    if (done == before) {
      *answer = OnError(EFAULT);
      return done;
    }
  }
  return done;
}

bool ProcessEnd::LocateReceive(uint64_t index, uint32_t count, uint64_t* room,
                               std::vector<iovec>* parts) {
  bool good = true;
  *room = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const ibv_sge sge = share_->SgesAt(index)[i];
    *room += sge.length;
    if (sge.length == 0) continue;
    const std::optional<MemoryRegion> region =
        FindLocalIn(link_->memory(), link_->memory_capacity(), sge.lkey);
    good = good && region.has_value() && region->pd == share_->header().pd &&
           region->Contains(sge.addr, sge.length) &&
           (region->access & IBV_ACCESS_LOCAL_WRITE) != 0;
    parts->push_back(Remote(sge.addr, sge.length));
  }
  return good;
}

ibv_wc_status ProcessEnd::Fill(uint64_t index, const Message& message,
                               Answer* answer) {
  const uint32_t count =
      std::min(share_->SlotAt(index).sges, share_->max_sges());
  uint64_t room = 0;
  there_.clear();
  const bool good = LocateReceive(index, count, &room, &there_);
  if (message.length > room) {
    *answer = Answer::Refused(IBV_WC_REM_INV_REQ_ERR);
    return IBV_WC_LOC_LEN_ERR;
  }
  if (!good) {
    *answer = Answer::Refused(IBV_WC_REM_OP_ERR);
    return IBV_WC_LOC_PROT_ERR;
  }
  if (message.length == 0) return IBV_WC_SUCCESS;
  const ssize_t written = process_vm_writev(
      link_->pid(), message.payload.data(), message.payload.size(),
      there_.data(), there_.size(), 0);
  if (written == static_cast<ssize_t>(message.length)) return IBV_WC_SUCCESS;
  *answer = OnError(written < 0 ? errno : EFAULT);
  return IBV_WC_LOC_PROT_ERR;
}

Answer ProcessEnd::Deliver(const Message& message) {
  const ShareGuard guard(share_.get());
  if (!Answers()) return Answer::Lost();
  ShareHeader& header = share_->header();
  const uint64_t index = header.taken.load(std::memory_order_relaxed);
  if (index == header.posted.load(std::memory_order_acquire)) {
    if (iwarp_) {  // has no "receiver not ready": the connection ends
      Tell(Violation::kConnection);
      return Answer::Refused(IBV_WC_WR_FLUSH_ERR);
    }
    return Answer::NotReady(RnrTimerNs(
        static_cast<uint8_t>(header.min_rnr.load(std::memory_order_relaxed))));
  }
  Answer answer;
  ShareSlot& slot = share_->SlotAt(index);
  slot.status =
      message.written ? IBV_WC_SUCCESS : Fill(index, message, &answer);
  if (answer.kind == Answer::Kind::kLost) return answer;
  slot.length = message.length;
  slot.source_qp = message.source_qp;
  slot.imm = message.imm;
  slot.written = message.written ? 1 : 0;
  slot.with_imm = message.with_imm ? 1 : 0;
  slot.solicited = message.solicited ? 1 : 0;
  header.taken.store(index + 1, std::memory_order_seq_cst);
  if (header.armed.exchange(0, std::memory_order_seq_cst) != 0) link_->Wake();
  return answer;
}

Answer ProcessEnd::Fetch(uint64_t address, uint32_t rkey, uint64_t length,
                         std::span<const iovec> to) {
  const ShareGuard guard(share_.get());
  if (!Answers()) return Answer::Lost();
  const Answer answer =
      CheckAccess(address, rkey, length, IBV_ACCESS_REMOTE_READ);
  if (!answer.done()) return answer;
  const iovec from = Remote(address, length);
  const ssize_t read =
      process_vm_readv(link_->pid(), to.data(), to.size(), &from, 1, 0);
  return read == static_cast<ssize_t>(length)
             ? answer
             : OnError(read < 0 ? errno : EFAULT);
}

}  // namespace

std::unique_ptr<RemoteEnd> MakeProcessEnd(std::shared_ptr<ProcessLink> link,
                                          std::unique_ptr<QpShare> share,
                                          bool iwarp) {
  return std::make_unique<ProcessEnd>(std::move(link), std::move(share), iwarp);
}

}  // namespace mig::soft
