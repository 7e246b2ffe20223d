// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "engine/session.h"

#include <poll.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/mig_status.h"

namespace mig::sim {
namespace {

constexpr size_t kMaxEvents = 64;
constexpr size_t kMaxFds = 16;

}  // namespace

absl::StatusOr<std::unique_ptr<Session>> Session::Create(
    const PluginContext& context, mig_role role, const MigrationId& id) {
  mig_session_params params = {};
  params.size = sizeof params;
  params.role = role;
  std::copy(id.vm_uuid.begin(), id.vm_uuid.end(), params.vm_uuid);
  params.attempt = id.attempt;
  mig_session* session = nullptr;
  mig_error error = NewError();
  const int32_t code =
      context.ops().session_create(context.get(), &params, &session, &error);
  if (code < 0) return MigToStatus(code, error, "creating a session");
  return std::unique_ptr<Session>(new Session(context, session));
}

absl::Status Session::Listen(const std::string& uri) {
  mig_error error = NewError();
  const int32_t code = ops_.listen(session_, uri.c_str(), &error);
  return MigToStatus(code, error, absl::StrCat("listening at '", uri, "'"));
}

absl::Status Session::Connect(const std::string& uri) {
  mig_error error = NewError();
  const int32_t code = ops_.connect(session_, uri.c_str(), &error);
  return MigToStatus(code, error, absl::StrCat("connecting to '", uri, "'"));
}

absl::StatusOr<std::string> Session::LocalAddress() {
  std::string uri(256, '\0');
  for (;;) {
    size_t needed = 0;
    mig_error error = NewError();
    const int32_t code =
        ops_.local_address(session_, uri.data(), uri.size(), &needed, &error);
    if (code < 0) return MigToStatus(code, error, "asking for the address");
    if (needed <= uri.size()) return std::string(uri.c_str());
    uri.assign(needed, '\0');
  }
}

absl::Status Session::AddBlock(const mig_block& block) {
  mig_error error = NewError();
  const int32_t code = ops_.add_block(session_, &block, &error);
  return MigToStatus(code, error,
                     absl::StrCat("adding block '", block.name, "'"));
}

absl::Status Session::Exchange() {
  mig_error error = NewError();
  return MigToStatus(ops_.exchange(session_, &error), error,
                     "exchanging blocks");
}

absl::Status Session::RoundBegin(uint64_t number, uint32_t flags) {
  mig_error error = NewError();
  const int32_t code = ops_.round_begin(session_, number, flags, &error);
  return MigToStatus(code, error, absl::StrCat("beginning round ", number));
}

absl::StatusOr<std::pair<size_t, uint64_t>> Session::Write(
    absl::Span<const mig_range> ranges) {
  mig_error error = NewError();
  size_t accepted = 0;
  uint64_t partial = 0;
  const int32_t code =
      ops_.write(session_, ranges.data(), ranges.size(), sizeof(mig_range),
                 &accepted, &partial, &error);
  if (code < 0) {
    return MigToStatus(code, error,
                       absl::StrCat("writing ", ranges.size(), " ranges"));
  }
  if (accepted > ranges.size() ||
      (partial != 0 &&
       (accepted == ranges.size() || partial >= ranges[accepted].length))) {
    return absl::InternalError(absl::StrCat(
        "write of ", ranges.size(), " ranges: the plugin says that it took ",
        accepted, " and ", partial, " bytes of the next: it breaks rule 6"));
  }
  return std::make_pair(accepted, partial);
}

absl::Status Session::Flush() {
  mig_error error = NewError();
  return MigToStatus(ops_.flush(session_, &error), error, "flushing");
}

absl::Status Session::RoundEnd(uint64_t number) {
  mig_error error = NewError();
  const int32_t code = ops_.round_end(session_, number, &error);
  return MigToStatus(code, error, absl::StrCat("ending round ", number));
}

absl::StatusOr<bool> Session::Send(uint32_t type,
                                   absl::Span<const std::byte> data) {
  const mig_iov iov = {data.data(), data.size()};
  mig_error error = NewError();
  const int32_t code =
      ops_.send(session_, /*channel=*/0, type, &iov, 1, sizeof iov, &error);
  if (code < 0) {
    return MigToStatus(code, error,
                       absl::StrCat("sending a message of type ", type,
                                    " with ", data.size(), " bytes"));
  }
  return code != MIG_AGAIN;
}

void Session::Release(mig_message* message) {
  ops_.message_release(session_, message);
}

absl::Status Session::Progress(int64_t timeout_ns,
                               std::vector<mig_event>* events) {
  const size_t before = events->size();
  events->resize(before + kMaxEvents);
  size_t count = 0;
  mig_error error = NewError();
  const int32_t code =
      ops_.progress(session_, events->data() + before, kMaxEvents,
                    sizeof(mig_event), timeout_ns, &count, &error);
  events->resize(before + (code < 0 ? 0 : std::min(count, kMaxEvents)));
  return MigToStatus(code, error, "making progress");
}

absl::StatusOr<uint64_t> Session::Arm() {
  uint64_t deadline = MIG_NO_DEADLINE;
  mig_error error = NewError();
  const int32_t code = ops_.arm(session_, &deadline, &error);
  if (code < 0) return MigToStatus(code, error, "asking when to go on");
  return code == MIG_BUSY ? 0 : deadline;
}

bool Session::FdReady() {
  std::array<mig_event_fd, kMaxFds> fds;
  size_t count = 0;
  if (ops_.get_event_fds(session_, fds.data(), fds.size(), sizeof fds[0],
                         &count, nullptr) < 0) {
    return false;
  }
  std::array<pollfd, kMaxFds> polled;
  count = std::min(count, kMaxFds);
  for (size_t i = 0; i < count; ++i) {
    polled[i] = {fds[i].fd, static_cast<short>(fds[i].events), 0};
  }
  return poll(polled.data(), count, 0) > 0;
}

absl::Status Session::Handover() {
  mig_error error = NewError();
  return MigToStatus(ops_.handover(session_, &error), error,
                     "handing the guest over");
}

absl::StatusOr<bool> Session::HostBusy(uint64_t max_ns) {
  mig_error error = NewError();
  const int32_t code = ops_.host_busy(session_, max_ns, &error);
  if (code < 0) {
    return MigToStatus(code, error, "saying that the host is busy");
  }
  return code != MIG_AGAIN;
}

absl::StatusOr<CapsReport> Session::Caps() {
  mig_caps caps = {};
  caps.size = sizeof caps;
  mig_error error = NewError();
  const int32_t code = ops_.get_caps(session_, &caps, &error);
  if (code < 0) return MigToStatus(code, error, "asking for capabilities");
  CapsReport report;
  report.max_message = caps.max_message;
  report.peer_timeout_ns = caps.peer_timeout_ns;
  report.pins_memory = (caps.flags & MIG_CAP_PINS_MEMORY) != 0;
  if (caps.extensions != nullptr) report.extensions = caps.extensions;
  for (const mig_capability& each :
       CopyArray(caps.details, caps.detail_count, caps.detail_size)) {
    report.details.push_back({each.name, each.unit,
                              each.text == nullptr ? "" : each.text, each.asked,
                              each.granted, each.negotiated});
  }
  return report;
}

std::vector<std::pair<std::string, uint64_t>> Session::Stats() const {
  const std::vector<mig_counter> counters = plugin_.counters();
  std::vector<uint64_t> values(counters.size());
  std::vector<std::pair<std::string, uint64_t>> stats;
  if (ops_.get_stats(session_, values.data(), values.size()) < 0) return stats;
  for (size_t i = 0; i < values.size(); ++i) {
    stats.emplace_back(counters[i].name, values[i]);
  }
  return stats;
}

absl::Status Session::Error() {
  mig_error error = NewError();
  ops_.session_error(session_, &error);
  return MigToStatus(error.code, error, "");
}

}  // namespace mig::sim
