// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#ifndef MIGTRANSPORT_HOST_SIM_ENGINE_SESSION_H_
#define MIGTRANSPORT_HOST_SIM_ENGINE_SESSION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/plugin_host.h"

namespace mig::sim {

// Which migration of which guest.
struct MigrationId {
  std::array<uint8_t, MIG_UUID_SIZE> vm_uuid = {};
  uint64_t attempt = 1;
};

// What of a session is worth showing, copied out of the plugin.
struct CapsReport {
  struct Detail {
    std::string name, unit, text;
    uint64_t asked = 0, granted = 0, negotiated = 0;
  };
  uint64_t max_message = 0;      // bytes
  uint64_t peer_timeout_ns = 0;  // silence after which this side gives up
  bool pins_memory = false;
  std::string extensions;
  std::vector<Detail> details;
};

// One side of one migration: each op as a method that answers a Status.
// Calls are serialised by the caller but Cancel and Stats.
class Session {
 public:
  // `context` must outlive the session.
  static absl::StatusOr<std::unique_ptr<Session>> Create(
      const PluginContext& context, mig_role role, const MigrationId& id);

  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() { ops_.session_destroy(session_); }

  absl::Status Listen(const std::string& uri);
  absl::Status Connect(const std::string& uri);
  absl::StatusOr<std::string> LocalAddress();
  absl::Status AddBlock(const mig_block& block);
  absl::Status Exchange();
  absl::Status RoundBegin(uint64_t number, uint32_t flags);
  // Answers (whole ranges taken, bytes taken of the next).
  absl::StatusOr<std::pair<size_t, uint64_t>> Write(
      absl::Span<const mig_range> ranges);
  absl::Status Flush();
  absl::Status RoundEnd(uint64_t number);
  // False: no room, try again after SEND_READY.
  absl::StatusOr<bool> Send(uint32_t type, absl::Span<const std::byte> data);
  void Release(mig_message* message);
  // Appends the events that came to `events`; waits up to `timeout_ns`.
  absl::Status Progress(int64_t timeout_ns, std::vector<mig_event>* events);
  // When progress is due at the latest, on the host's clock: 0 for now.
  absl::StatusOr<uint64_t> Arm();
  // Whether one of the session's fds is ready, without waiting.
  bool FdReady();
  absl::Status Handover();
  // False: the word has not left yet; again after Progress.
  absl::StatusOr<bool> HostBusy(uint64_t max_ns);
  void Cancel() { ops_.cancel(session_); }
  void Close() { ops_.close(session_); }
  absl::StatusOr<CapsReport> Caps();
  // Name and value of each counter. Any thread.
  std::vector<std::pair<std::string, uint64_t>> Stats() const;
  // The session's first error, OK if there is none.
  absl::Status Error();

 private:
  Session(const PluginContext& context, mig_session* session)
      : plugin_(context.plugin()), ops_(context.ops()), session_(session) {}

  const Plugin& plugin_;
  const mig_transport_ops& ops_;
  mig_session* session_;
};

}  // namespace mig::sim

#endif  // MIGTRANSPORT_HOST_SIM_ENGINE_SESSION_H_
