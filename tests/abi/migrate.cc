// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "migrate.h"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

#include "loaded.h"

namespace mig::abi {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPages = 16;
constexpr size_t kBytes = kPage * kPages;

struct Free {
  void operator()(unsigned char* memory) const { free(memory); }
};
using Memory = std::unique_ptr<unsigned char, Free>;

Memory MakeMemory() {
  return Memory(static_cast<unsigned char*>(aligned_alloc(kPage, kBytes)));
}

// What a plugin wants to hear before it can migrate within this process.
struct Setup {
  std::string_view plugin;
  const char* listen_uri;
  const char* option = nullptr;
  const char* value = nullptr;
};
constexpr Setup kSetups[] = {
    {"example", "example:"},
    {"tcp", "tcp://127.0.0.1:0"},
    {"rdma", "rdma://127.0.0.1:0", "device", "soft:mlx5"},
};

// A failed step ends the migration; destructors clean up behind it.
struct Failure {
  std::string text;
};

// Both sides of one migration, driven by one thread.
class Pair {
 public:
  explicit Pair(const mig_transport_ops& ops) : ops_(ops) {
    const auto services = Sized<mig_host_services>();
    Check("context_create", ops_.context_create(&services, &context_, &error_));
    for (const Setup& setup : kSetups) {
      if (setup.plugin == ops_.name) setup_ = &setup;
    }
    if (setup_ == nullptr) throw Failure{"this plugin is not in the table"};
    if (setup_->option == nullptr) return;
    Check("option_set",
          ops_.option_set(context_, setup_->option, setup_->value, &error_));
  }

  ~Pair() {
    for (mig_session* session : sessions_) ops_.session_destroy(session);
    ops_.context_destroy(context_);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void Connect() {
    for (const uint32_t role : {MIG_ROLE_SOURCE, MIG_ROLE_DESTINATION}) {
      auto params = Sized<mig_session_params>();
      params.role = role;
      params.attempt = 1;
      memset(params.vm_uuid, 7, sizeof(params.vm_uuid));
      Check("session_create",
            ops_.session_create(context_, &params, &Session(role), &error_));
      AddBlock(role);
    }
    char uri[256];
    size_t needed = 0;
    Check("listen", ops_.listen(Destination(), setup_->listen_uri, &error_));
    Check("local_address", ops_.local_address(Destination(), uri, sizeof(uri),
                                              &needed, &error_));
    Check("connect", ops_.connect(Source(), uri, &error_));
    Await(MIG_EVENT_CONNECTED, true, true);
    Check("exchange", ops_.exchange(Source(), &error_));
    Check("exchange", ops_.exchange(Destination(), &error_));
    Await(MIG_EVENT_BLOCKS_READY, true, true);
  }

  // Sends all pages but the last, which is zero.
  void Send() {
    memset(memory_[0].get(), 0x5a, kBytes);
    memset(memory_[0].get() + kBytes - kPage, 0, kPage);
    memset(memory_[1].get(), 0xff, kBytes);
    const mig_range ranges[] = {{0, kBytes - kPage, 1, 0, 0},
                                {kBytes - kPage, kPage, 1, MIG_RANGE_ZERO, 0}};
    size_t accepted = 0;
    uint64_t partial = 0;
    Check("round_begin",
          ops_.round_begin(Source(), 1, MIG_ROUND_STRICT, &error_));
    Check("write", ops_.write(Source(), ranges, 2, sizeof(ranges[0]), &accepted,
                              &partial, &error_));
    if (accepted != 2) throw Failure{"write took less than a few pages"};
    Check("round_end", ops_.round_end(Source(), 1, &error_));
    const mig_iov iov = {"state", 5};
    Check("send", ops_.send(Source(), 0, 1, &iov, 1, sizeof(iov), &error_));
    Await(MIG_EVENT_ROUND_DONE, true, true);
    Await(MIG_EVENT_MESSAGE, false, true);
    if (memcmp(memory_[0].get(), memory_[1].get(), kBytes) != 0) {
      throw Failure{"the destination's memory differs"};
    }
  }

  void HandOver() {
    Check("handover", ops_.handover(Source(), &error_));
    Await(MIG_EVENT_HANDOVER, false, true);
    Check("handover", ops_.handover(Destination(), &error_));
    Await(MIG_EVENT_COMMITTED, true, false);
    ops_.close(Source());
    ops_.close(Destination());
    Await(MIG_EVENT_CLOSED, true, true);
  }

 private:
  mig_session*& Session(uint32_t role) {
    return sessions_[role == MIG_ROLE_SOURCE ? 0 : 1];
  }
  mig_session* Source() { return sessions_[0]; }
  mig_session* Destination() { return sessions_[1]; }

  void AddBlock(uint32_t role) {
    auto block = Sized<mig_block>();
    block.id = role;  // each side has numbers of its own
    block.name = "ram";
    block.address = memory_[role == MIG_ROLE_SOURCE ? 0 : 1].get();
    block.length = kBytes;
    block.page_size = kPage;
    block.fd = -1;
    Check("add_block", ops_.add_block(Session(role), &block, &error_));
  }

  void Check(const char* what, int32_t code) {
    if (code != MIG_OK) {
      throw Failure{std::string(what) + " answered " + std::to_string(code) +
                    ": " + error_.message};
    }
  }

  // Drives both sides until those that are asked for have seen the event.
  void Await(uint32_t type, bool source, bool destination) {
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while ((source && seen_[0].count(type) == 0) ||
           (destination && seen_[1].count(type) == 0)) {
      if (std::chrono::steady_clock::now() > limit) {
        throw Failure{"event " + std::to_string(type) + " did not come"};
      }
      Progress(0);
      Progress(1);
    }
  }

  void Progress(int side) {
    mig_event events[4];
    size_t count = 0;
    Check("progress",
          ops_.progress(sessions_[side], events, std::size(events),
                        sizeof(events[0]), 100000, &count, &error_));
    for (size_t i = 0; i < count; ++i) {
      seen_[side].insert(events[i].type);
      if (events[i].message != nullptr) {
        ops_.message_release(sessions_[side], events[i].message);
      }
      if (events[i].type == MIG_EVENT_ERROR) {
        ops_.session_error(sessions_[side], &error_);
        throw Failure{error_.message};
      }
    }
  }

  const mig_transport_ops& ops_;
  mig_error error_ = Sized<mig_error>();
  mig_context* context_ = nullptr;
  const Setup* setup_ = nullptr;
  mig_session* sessions_[2] = {};
  Memory memory_[2] = {MakeMemory(), MakeMemory()};
  std::set<uint32_t> seen_[2];
};

}  // namespace

std::string Migrate(const mig_transport_ops& ops) {
  try {
    Pair pair(ops);
    pair.Connect();
    pair.Send();
    pair.HandOver();
  } catch (const Failure& failure) {
    return failure.text;
  }
  return "";
}

}  // namespace mig::abi
