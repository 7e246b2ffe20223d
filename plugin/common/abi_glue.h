// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// The ABI boundary, once for every plugin written in C++: null checks, struct
// sizes, no exception out, Status to code. A plugin supplies
//
//   class Context {
//     static absl::StatusOr<std::unique_ptr<Context>> Create(const Host&);
//     Options& options();
//     absl::StatusOr<std::vector<mig_device>> Probe();
//     absl::StatusOr<std::unique_ptr<Session>> CreateSession(
//         const mig_session_params&);
//   };
//
// and a Session: a SessionBase with the functions that are a transport's.
#ifndef PLUGIN_COMMON_ABI_GLUE_H_
#define PLUGIN_COMMON_ABI_GLUE_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/error.h"
#include "common/host.h"
#include "common/options.h"
#include "mig_transport.h"

namespace mig {

// Rule 1: `size` covers what version 1 has, and what lies beyond what this
// plugin knows is zero.
absl::Status CheckStruct(const void* object, uint32_t size, size_t least,
                         size_t known, const char* name);
absl::Status CheckElementSize(size_t size, size_t least, const char* name);
absl::Status NullArgument(const char* name);
// Copies text with its NUL, cut at `size`; *needed is the whole size.
void CopyText(const std::string& text, char* to, size_t size, size_t* needed);

// What a plugin says of itself, beside its functions.
struct PluginIdentity {
  const char* name;
  const char* version;
  const char* description;
  const char* licenses;
  const char* uri_schemes;
  uint32_t wire_version;  // the only one
  std::span<const struct mig_option> options;
  std::span<const struct mig_counter> counters;
};

// mig_transport_query of a plugin whose table is `table`. Errors: ARGUMENT,
// VERSION.
int32_t AnswerQuery(uint32_t host_abi_min, uint32_t host_abi_max,
                    const struct mig_transport_ops* table,
                    const struct mig_transport_ops** ops,
                    struct mig_error* error);

// Runs fn, which returns a Status, and answers the ABI's code.
template <typename Fn>
int32_t Guarded(struct mig_error* error, Fn&& fn) noexcept {
  try {
    const absl::Status status = fn();
    return status.ok() ? MIG_OK : FillError(status, error);
  } catch (const std::bad_alloc&) {
    return FillPlainError(
        MIG_E_MEMORY, "out of memory: free some, or use fewer batches", error);
  } catch (const std::exception& exception) {
    return FillPlainError(MIG_E_INTERNAL, exception.what(), error);
  } catch (...) {
    return FillPlainError(MIG_E_INTERNAL, "unknown exception", error);
  }
}

template <typename Context, typename Session>
class AbiGlue {
 public:
  // The plugin's table. What `identity` points to must live as long.
  static struct mig_transport_ops Table(const PluginIdentity& identity) {
    struct mig_transport_ops table = {};
    table.size = sizeof(table);
    table.abi_version = MIG_ABI_VERSION;
    table.name = identity.name;
    table.version = identity.version;
    table.description = identity.description;
    table.licenses = identity.licenses;
    table.uri_schemes = identity.uri_schemes;
    table.wire_version_min = table.wire_version_max = identity.wire_version;
    table.options = identity.options.data();
    table.option_count = static_cast<uint32_t>(identity.options.size());
    table.option_size = sizeof(struct mig_option);
    table.counters = identity.counters.data();
    table.counter_count = static_cast<uint32_t>(identity.counters.size());
    table.counter_size = sizeof(struct mig_counter);
    Fill(&table);
    return table;
  }

 private:
  static constexpr void Fill(struct mig_transport_ops* ops) {
    ops->context_create = &ContextCreate;
    ops->context_destroy = &ContextDestroy;
    ops->option_set = &OptionSet;
    ops->option_get = &OptionGet;
    ops->probe = &Probe;
    ops->get_extension = &GetExtension;
    ops->session_create = &SessionCreate;
    ops->listen = &Listen;
    ops->connect = &Connect;
    ops->local_address = &LocalAddress;
    ops->add_block = &AddBlock;
    ops->remove_block = &RemoveBlock;
    ops->exchange = &Exchange;
    ops->round_begin = &RoundBegin;
    ops->write = &Write;
    ops->flush = &Flush;
    ops->round_end = &RoundEnd;
    ops->send = &Send;
    ops->message_release = &MessageRelease;
    ops->progress = &Progress;
    ops->get_event_fds = &GetEventFds;
    ops->arm = &Arm;
    ops->handover = &Handover;
    ops->host_busy = &HostBusy;
    ops->cancel = &Cancel;
    ops->wake = &Wake;
    ops->close = &Close;
    ops->session_destroy = &SessionDestroy;
    ops->get_caps = &GetCaps;
    ops->get_stats = &GetStats;
    ops->session_error = &SessionError;
  }

  static Context* From(struct mig_context* context) {
    return reinterpret_cast<Context*>(context);
  }
  static Session* From(struct mig_session* session) {
    return reinterpret_cast<Session*>(session);
  }

  static int32_t ContextCreate(const struct mig_host_services* services,
                               struct mig_context** context,
                               struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (services == nullptr || context == nullptr) {
        return NullArgument("services or context");
      }
      MIG_RETURN_IF_ERROR(CheckElementSize(services->size, sizeof(*services),
                                           "mig_host_services"));
      if ((services->flags & ~MIG_HOST_SIMULATED_CLOCK) != 0) {
        return MakeError(MIG_E_ARGUMENT,
                         absl::StrCat("mig_host_services has unknown flags ",
                                      services->flags));
      }
      auto made = Context::Create(Host(*services));
      if (!made.ok()) return made.status();
      *context = reinterpret_cast<struct mig_context*>(made->release());
      return absl::OkStatus();
    });
  }
  static void ContextDestroy(struct mig_context* context) {
    delete From(context);
  }
  static int32_t OptionSet(struct mig_context* context, const char* name,
                           const char* value, struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (context == nullptr || name == nullptr || value == nullptr) {
        return NullArgument("context, name or value");
      }
      return From(context)->options().Set(name, value);
    });
  }
  static int32_t OptionGet(struct mig_context* context, const char* name,
                           char* value, size_t size, size_t* needed,
                           struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (context == nullptr || name == nullptr ||
          (value == nullptr && size > 0)) {
        return NullArgument("context, name or value");
      }
      const auto text = From(context)->options().Get(name);
      if (!text.ok()) return text.status();
      CopyText(*text, value, size, needed);
      return absl::OkStatus();
    });
  }
  static int32_t Probe(struct mig_context* context, struct mig_device* devices,
                       size_t max, size_t element_size, size_t* count,
                       struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (context == nullptr || count == nullptr ||
          (devices == nullptr && max > 0)) {
        return NullArgument("context, devices or count");
      }
      if (max > 0) {
        MIG_RETURN_IF_ERROR(CheckElementSize(
            element_size, sizeof(struct mig_device), "mig_device"));
      }
      const auto found = From(context)->Probe();
      if (!found.ok()) return found.status();
      auto* const to = reinterpret_cast<unsigned char*>(devices);
      for (size_t i = 0; i < std::min(max, found->size()); ++i) {
        CopyElement(&(*found)[i], sizeof(struct mig_device),
                    to + i * element_size, element_size);
      }
      *count = found->size();
      return absl::OkStatus();
    });
  }
  static const void* GetExtension(struct mig_context*, const char*) {
    return nullptr;
  }

  static int32_t SessionCreate(struct mig_context* context,
                               const struct mig_session_params* params,
                               struct mig_session** session,
                               struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (context == nullptr || params == nullptr || session == nullptr) {
        return NullArgument("context, params or session");
      }
      MIG_RETURN_IF_ERROR(CheckStruct(params, params->size, sizeof(*params),
                                      sizeof(*params), "mig_session_params"));
      auto made = From(context)->CreateSession(*params);
      if (!made.ok()) return made.status();
      *session = reinterpret_cast<struct mig_session*>(made->release());
      return absl::OkStatus();
    });
  }
  static int32_t Listen(struct mig_session* session, const char* uri,
                        struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || uri == nullptr) {
        return NullArgument("session or uri");
      }
      return From(session)->Listen(uri);
    });
  }
  static int32_t Connect(struct mig_session* session, const char* uri,
                         struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || uri == nullptr) {
        return NullArgument("session or uri");
      }
      return From(session)->Connect(uri);
    });
  }
  static int32_t LocalAddress(struct mig_session* session, char* uri,
                              size_t size, size_t* needed,
                              struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || (uri == nullptr && size > 0)) {
        return NullArgument("session or uri");
      }
      const auto text = From(session)->LocalAddress();
      if (!text.ok()) return text.status();
      CopyText(*text, uri, size, needed);
      return absl::OkStatus();
    });
  }

  static int32_t AddBlock(struct mig_session* session,
                          const struct mig_block* block,
                          struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || block == nullptr) {
        return NullArgument("session or block");
      }
      MIG_RETURN_IF_ERROR(CheckStruct(block, block->size, sizeof(*block),
                                      sizeof(*block), "mig_block"));
      return From(session)->AddBlock(*block);
    });
  }
  static int32_t RemoveBlock(struct mig_session* session, uint32_t id,
                             struct mig_error* error) {
    return Simple(session, error,
                  [id](Session* s) { return s->RemoveBlock(id); });
  }
  static int32_t Exchange(struct mig_session* session,
                          struct mig_error* error) {
    return Simple(session, error, [](Session* s) { return s->Exchange(); });
  }

  static int32_t RoundBegin(struct mig_session* session, uint64_t number,
                            uint32_t flags, struct mig_error* error) {
    return Simple(session, error,
                  [=](Session* s) { return s->RoundBegin(number, flags); });
  }
  static int32_t Write(struct mig_session* session,
                       const struct mig_range* ranges, size_t count,
                       size_t element_size, size_t* accepted, uint64_t* partial,
                       struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || (ranges == nullptr && count > 0) ||
          accepted == nullptr || partial == nullptr) {
        return NullArgument("session, ranges, accepted or partial");
      }
      *accepted = 0;
      *partial = 0;
      MIG_RETURN_IF_ERROR(
          CheckElementSize(element_size, MIG_RANGE_SIZE, "mig_range"));
      absl::Status status =
          From(session)->Write(ranges, count, element_size, accepted, partial);
      if (!status.ok()) *accepted = *partial = 0;
      return status;
    });
  }
  static int32_t Flush(struct mig_session* session, struct mig_error* error) {
    return Simple(session, error, [](Session* s) { return s->Flush(); });
  }
  static int32_t RoundEnd(struct mig_session* session, uint64_t number,
                          struct mig_error* error) {
    return Simple(session, error,
                  [=](Session* s) { return s->RoundEnd(number); });
  }

  static int32_t Send(struct mig_session* session, uint32_t channel,
                      uint32_t type, const struct mig_iov* iov, size_t count,
                      size_t element_size, struct mig_error* error) {
    bool sent = true;
    const int32_t code = Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || (iov == nullptr && count > 0)) {
        return NullArgument("session or iov");
      }
      if (count > 0) {
        MIG_RETURN_IF_ERROR(
            CheckElementSize(element_size, sizeof(struct mig_iov), "mig_iov"));
      }
      const absl::StatusOr<bool> taken =
          From(session)->Send(channel, type, iov, count, element_size);
      if (!taken.ok()) return taken.status();
      sent = *taken;
      return absl::OkStatus();
    });
    return code != MIG_OK || sent ? code : MIG_AGAIN;
  }
  static void MessageRelease(struct mig_session* session,
                             struct mig_message* message) {
    Quiet(session, [message](Session* s) { s->MessageRelease(message); });
  }

  static int32_t Progress(struct mig_session* session, struct mig_event* events,
                          size_t max, size_t element_size, int64_t timeout_ns,
                          size_t* count, struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || (events == nullptr && max > 0) ||
          count == nullptr) {
        return NullArgument("session, events or count");
      }
      *count = 0;
      if (max > 0) {
        // Rule 1.3: all of version 1, or a message would be lost.
        MIG_RETURN_IF_ERROR(CheckElementSize(
            element_size, sizeof(struct mig_event), "mig_event"));
      }
      return From(session)->Progress(events, max, element_size, timeout_ns,
                                     count);
    });
  }
  static int32_t GetEventFds(struct mig_session* session,
                             struct mig_event_fd* fds, size_t max,
                             size_t element_size, size_t* count,
                             struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || (fds == nullptr && max > 0) ||
          count == nullptr) {
        return NullArgument("session, fds or count");
      }
      if (max > 0) {
        MIG_RETURN_IF_ERROR(CheckElementSize(
            element_size, sizeof(struct mig_event_fd), "mig_event_fd"));
        const struct mig_event_fd fd = From(session)->EventFd();
        CopyElement(&fd, sizeof(fd), fds, element_size);
      }
      *count = 1;
      return absl::OkStatus();
    });
  }
  static int32_t Arm(struct mig_session* session, uint64_t* deadline_ns,
                     struct mig_error* error) {
    bool busy = false;
    const int32_t code = Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || deadline_ns == nullptr) {
        return NullArgument("session or deadline_ns");
      }
      busy = From(session)->Arm(deadline_ns);
      return absl::OkStatus();
    });
    return code == MIG_OK && busy ? MIG_BUSY : code;
  }

  static int32_t Handover(struct mig_session* session,
                          struct mig_error* error) {
    return Simple(session, error, [](Session* s) { return s->Handover(); });
  }
  static int32_t HostBusy(struct mig_session* session, uint64_t max_ns,
                          struct mig_error* error) {
    bool left = false;
    const int32_t code =
        Simple(session, error, [&](Session* s) -> absl::Status {
          const absl::StatusOr<bool> said = s->HostBusy(max_ns);
          if (said.ok()) left = *said;
          return said.status();
        });
    return code != MIG_OK || left ? code : MIG_AGAIN;
  }
  static void Cancel(struct mig_session* session) {
    Quiet(session, [](Session* s) { s->Cancel(); });
  }
  static void Wake(struct mig_session* session) {
    Quiet(session, [](Session* s) { s->Wake(); });
  }
  static void Close(struct mig_session* session) {
    Quiet(session, [](Session* s) { s->Close(); });
  }
  static void SessionDestroy(struct mig_session* session) {
    delete From(session);
  }

  static int32_t GetCaps(struct mig_session* session, struct mig_caps* caps,
                         struct mig_error* error) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr || caps == nullptr) {
        return NullArgument("session or caps");
      }
      const uint32_t size = caps->size;
      MIG_RETURN_IF_ERROR(
          CheckElementSize(size, sizeof(struct mig_caps), "mig_caps"));
      struct mig_caps filled = {};
      From(session)->GetCaps(&filled);
      filled.size = size;
      CopyElement(&filled, sizeof(filled), caps, size);
      return absl::OkStatus();
    });
  }
  static int32_t GetStats(struct mig_session* session, uint64_t* values,
                          size_t count) {
    if (session == nullptr || (values == nullptr && count > 0)) {
      return MIG_E_ARGUMENT;
    }
    From(session)->GetStats(values, count);
    return MIG_OK;
  }
  static void SessionError(struct mig_session* session,
                           struct mig_error* error) {
    if (session == nullptr || error == nullptr) return;
    FillError(From(session)->error(), error);
  }

  // Answers min(sizes), and zeroes what the caller has beyond (rule 1).
  static void CopyElement(const void* from, size_t known, void* to,
                          size_t size) {
    std::memset(to, 0, size);
    std::memcpy(to, from, std::min(known, size));
  }
  template <typename Fn>
  static int32_t Simple(struct mig_session* session, struct mig_error* error,
                        Fn&& fn) {
    return Guarded(error, [&]() -> absl::Status {
      if (session == nullptr) return NullArgument("session");
      return fn(From(session));
    });
  }
  template <typename Fn>
  static void Quiet(struct mig_session* session, Fn&& fn) {
    if (session == nullptr) return;
    Guarded(nullptr, [&]() -> absl::Status {
      fn(From(session));
      return absl::OkStatus();
    });
  }
};

}  // namespace mig

#endif  // PLUGIN_COMMON_ABI_GLUE_H_
