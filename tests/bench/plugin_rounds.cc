// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
//
// A host that does nothing but what is measured: it gives a plugin rounds of
// guest memory and messages, between two processes over one session.
//   plugin_rounds --uri rdma://A:0 [--plugin NAME] [--options "N=V N=V"]
//                 [--memory BYTES] [--wait sleep|spin]
// and commands as in measured.h. A round is measured from its begin until the
// source knows that all is visible at the destination.
#include <mig_loader.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "measured.h"

namespace mig::bench {
namespace {

// What mig-host-sim gives to one call of write.
constexpr size_t kRangesPerWrite = 512;
constexpr uint32_t kPing = 1;

struct Settings {
  std::string plugin;
  std::string uri;
  std::string options;
  bool spin;
};

template <typename Struct>
Struct Sized() {
  Struct made = {};
  made.size = sizeof(made);
  return made;
}

// One side of the session.
class Side {
 public:
  Side(const Settings& settings, uint32_t role, char* memory, uint64_t bytes)
      : timeout_ns_(settings.spin ? 0 : MIG_WAIT_FOREVER) {
    auto loading = Sized<mig_loader_error>();
    mig_plugin* plugin = nullptr;
    if (mig_loader_open(settings.plugin.c_str(), &plugin, &loading) != MIG_OK) {
      Die("mig_loader_open", loading.message);
    }
    ops_ = mig_plugin_ops(plugin);
    const auto services = Sized<mig_host_services>();
    Check("context_create",
          ops_->context_create(&services, &context_, &error_));
    // Between runs nobody drives the source.
    SetOptions("peer-timeout=600s " + settings.options);
    auto params = Sized<mig_session_params>();
    params.role = role;
    params.attempt = 1;
    Check("session_create",
          ops_->session_create(context_, &params, &session_, &error_));
    auto block = Sized<mig_block>();
    block.id = 1;
    block.name = "ram";
    block.address = memory;
    block.length = bytes;
    block.page_size = kPage;
    block.fd = -1;
    Check("add_block", ops_->add_block(session_, &block, &error_));
  }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  std::string Listen(const std::string& uri) {
    char address[256] = "";
    size_t needed = 0;
    Check("listen", ops_->listen(session_, uri.c_str(), &error_));
    Check("local_address",
          ops_->local_address(session_, address, sizeof(address), &needed,
                              &error_));
    return address;
  }
  void Connect(const std::string& uri) {
    Check("connect", ops_->connect(session_, uri.c_str(), &error_));
  }
  // Until guest memory can be written.
  void Prepare() {
    Await(MIG_EVENT_CONNECTED);
    Check("exchange", ops_->exchange(session_, &error_));
    Await(MIG_EVENT_BLOCKS_READY);
  }

  // -- source --

  void WriteRound(const std::vector<Piece>& pieces) {
    ++round_;
    Check("round_begin", ops_->round_begin(session_, round_, 0, &error_));
    std::array<mig_range, kRangesPerWrite> ranges;
    for (size_t done = 0; done < pieces.size();) {
      const size_t count = std::min(ranges.size(), pieces.size() - done);
      for (size_t i = 0; i < count; ++i) {
        ranges[i] = {pieces[done + i].offset, pieces[done + i].length, 1, 0, 0};
      }
      WriteAll(ranges.data(), count);
      done += count;
    }
    Check("round_end", ops_->round_end(session_, round_, &error_));
    Await(MIG_EVENT_ROUND_DONE);
  }

  double RoundTrip(const std::vector<char>& message) {
    const double start = NowSeconds();
    Send(message.data(), message.size());
    Await(MIG_EVENT_MESSAGE);
    return NowSeconds() - start;
  }

  std::map<std::string, uint64_t> Counters() {
    std::vector<uint64_t> values(ops_->counter_count);
    if (ops_->get_stats(session_, values.data(), values.size()) != MIG_OK) {
      return {};
    }
    std::map<std::string, uint64_t> wanted;
    for (uint32_t i = 0; i < ops_->counter_count; ++i) {
      const auto* const counter = reinterpret_cast<const mig_counter*>(
          reinterpret_cast<const char*>(ops_->counters) +
          size_t{i} * ops_->counter_size);
      const std::string name = counter->name;
      for (const char* one : {"doorbells", "writes", "completions", "merges",
                              "stalls-send-queue", "control-frames-sent",
                              "control-frames-received", "control-inline"}) {
        if (name == one) wanted[name] = values[i];
      }
    }
    return wanted;
  }

  // -- destination --

  // Sends back every message, as soon as it is seen.
  void Echo() {
    for (;;) Progress(true);
  }

 private:
  void Check(const char* what, int32_t code) {
    if (code < 0) Die(what, error_.message);
  }

  void SetOptions(const std::string& options) {
    std::istringstream words(options);
    for (std::string word; words >> word;) {
      const size_t equals = std::min(word.find('='), word.size() - 1);
      Check("option_set",
            ops_->option_set(context_, word.substr(0, equals).c_str(),
                             word.substr(equals + 1).c_str(), &error_));
    }
  }

  void WriteAll(mig_range* ranges, size_t count) {
    for (;;) {
      seen_.erase(MIG_EVENT_WRITE_READY);
      size_t accepted = 0;
      uint64_t partial = 0;
      Check("write", ops_->write(session_, ranges, count, sizeof(*ranges),
                                 &accepted, &partial, &error_));
      ranges += accepted;
      count -= accepted;
      if (count == 0) break;
      ranges->offset += partial;
      ranges->length -= partial;
      Await(MIG_EVENT_WRITE_READY);
    }
    Check("flush", ops_->flush(session_, &error_));
  }

  void Send(const void* data, uint64_t bytes) {
    const mig_iov iov = {data, bytes};
    const int32_t code =
        ops_->send(session_, 0, kPing, &iov, 1, sizeof(iov), &error_);
    Check("send", code);
    if (code == MIG_AGAIN) Die("send", "there is no room for one message");
  }

  void Await(uint32_t type) {
    while (seen_.count(type) == 0) Progress(false);
    seen_.erase(type);
  }

  void Progress(bool echo) {
    std::array<mig_event, 16> events;
    size_t count = 0;
    Check("progress",
          ops_->progress(session_, events.data(), events.size(),
                         sizeof(events[0]), timeout_ns_, &count, &error_));
    for (size_t i = 0; i < count; ++i) {
      const mig_event& event = events[i];
      seen_.insert(event.type);
      if (echo && event.type == MIG_EVENT_MESSAGE) {
        Send(event.data, event.length);
      }
      if (event.message != nullptr) {
        ops_->message_release(session_, event.message);
      }
      if (event.type == MIG_EVENT_ERROR || event.type == MIG_EVENT_CLOSED) {
        ops_->session_error(session_, &error_);
        Die("session", error_.message);
      }
    }
  }

  const int64_t timeout_ns_;
  const mig_transport_ops* ops_ = nullptr;
  mig_error error_ = Sized<mig_error>();
  mig_context* context_ = nullptr;
  mig_session* session_ = nullptr;
  uint64_t round_ = 0;
  std::set<uint32_t> seen_;
};

void Main(const Options& options) {
  const Settings settings = {.plugin = options.at("plugin"),
                             .uri = options.at("uri"),
                             .options = options.at("options"),
                             .spin = options.at("wait") == "spin"};
  Memory memory(std::stoull(options.at("memory")));
  const std::string uri = StartDestination([&](const auto& ready) {
    Side side(settings, MIG_ROLE_DESTINATION, memory.destination(),
              memory.bytes());
    ready(side.Listen(settings.uri));
    side.Prepare();
    side.Echo();
  });
  Side side(settings, MIG_ROLE_SOURCE, memory.source(), memory.bytes());
  side.Connect(uri);
  side.Prepare();
  Worker worker;
  worker.write = [&](const auto& pieces) { side.WriteRound(pieces); };
  worker.round_trips = [&](uint64_t count, uint64_t bytes) {
    const std::vector<char> message(bytes, 'm');
    std::vector<double> times;
    while (times.size() < count) times.push_back(side.RoundTrip(message));
    return times;
  };
  worker.counters = [&] { return side.Counters(); };
  ServeCommands(&memory, worker);
}

}  // namespace
}  // namespace mig::bench

int main(int argc, char** argv) {
  using namespace mig::bench;  // NOLINT(google-build-using-namespace)
  Main(ParseOptions(argc, argv,
                    {{"plugin", "rdma"},
                     {"uri", "rdma://10.7.0.1:0"},
                     {"options", ""},
                     {"memory", "134217728"},
                     {"wait", "sleep"}}));
  return 0;
}
