// SPDX-FileCopyrightText: 2026 the migtransport authors
// SPDX-License-Identifier: BSD-2-Clause
#include "tcp/sim_network.h"

#include <netinet/in.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/error.h"
#include "tcp/sim_config.h"
#include "tcp/sim_link.h"

namespace mig::tcp {
namespace {

using Kind = SimFault::Kind;
using Call = SimFaults::Call;

// Where somebody listens, or connects to.
struct Place {
  std::string host;  // of unix the path
  in_port_t* port;   // into the address; null of unix
};

Place PlaceOf(SocketAddress* address) {
  struct sockaddr_storage* const storage = &address->storage;
  switch (storage->ss_family) {
    case AF_INET:
      return {FormatHost(*address),
              &reinterpret_cast<struct sockaddr_in*>(storage)->sin_port};
    case AF_INET6:
      return {FormatHost(*address),
              &reinterpret_cast<struct sockaddr_in6*>(storage)->sin6_port};
    default:
      return {FormatAddress(*address), nullptr};
  }
}

bool Meet(SocketAddress a, SocketAddress b) {
  const Place one = PlaceOf(&a);
  const Place other = PlaceOf(&b);
  if (one.port == nullptr || other.port == nullptr) {
    return one.port == other.port && one.host == other.host;
  }
  const auto any = [](const Place& place) {
    return place.host == "0.0.0.0" || place.host == "::";
  };
  return *one.port == *other.port &&
         (one.host == other.host || any(one) || any(other));
}

// Then there is no socket, or what waits is left to wait.
bool OutOfResources(int error) {
  return error == EMFILE || error == ENFILE || error == ENOBUFS ||
         error == ENOMEM;
}

class SimPort;

// What the sides of one name share. Thread-safe through mutex(): whoever
// calls anything else, or a link, holds it.
class SimNetwork {
 public:
  static std::shared_ptr<SimNetwork> Named(const std::string& name);
  std::mutex& mutex() { return mutex_; }
  void Add(SimPort* port) { ports_.push_back(port); }
  void Remove(SimPort* port) { std::erase(ports_, port); }
  SimPort* Find(const SocketAddress& address) const;
  // Chooses a port where there is none yet; false: it is taken.
  bool Choose(SocketAddress* address);
  uint64_t NextLink() { return ++links_; }

 private:
  static constexpr uint16_t kFirstPort = 49152;

  std::mutex mutex_;
  std::vector<SimPort*> ports_;  // the oldest first
  uint16_t next_port_ = kFirstPort;
  uint64_t links_ = 0;
};

// What everything that one side makes needs.
struct Membership {
  const Host* host;
  std::shared_ptr<SimNetwork> network;
  std::shared_ptr<SimSide> side;
};

class SimStream final : public ByteStream {
 public:
  SimStream(Membership member, std::shared_ptr<SimLink> link, SimLink::End end)
      : member_(std::move(member)), link_(std::move(link)), end_(end) {}
  ~SimStream() override {
    const std::lock_guard lock(member_.network->mutex());
    link_->Close(end_, Now());
  }
  ssize_t Read(std::span<const struct iovec> to) override {
    const std::lock_guard lock(member_.network->mutex());
    return link_->Read(end_, to, Now());
  }
  ssize_t Write(std::span<const struct iovec> from) override {
    const std::lock_guard lock(member_.network->mutex());
    return link_->Write(end_, from, Now());
  }
  void ShutdownWrite() override {
    const std::lock_guard lock(member_.network->mutex());
    link_->ShutdownWrite(end_, Now());
  }
  int fd() const override { return -1; }
  StreamDue Due() const override {
    const std::lock_guard lock(member_.network->mutex());
    return link_->Due(end_, Now());
  }

 private:
  uint64_t Now() const { return member_.host->NowNs(); }

  const Membership member_;
  const std::shared_ptr<SimLink> link_;
  const SimLink::End end_;
};

class SimDial final : public Dial {
 public:
  // To nobody, who refuses at that time.
  SimDial(Membership member, int error, uint64_t due_ns)
      : member_(std::move(member)), error_(error), due_ns_(due_ns) {}
  SimDial(Membership member, std::shared_ptr<SimLink> link, std::string peer)
      : member_(std::move(member)),
        link_(std::move(link)),
        peer_(std::move(peer)) {}
  ~SimDial() override {
    if (link_ == nullptr) return;
    const std::lock_guard lock(member_.network->mutex());
    link_->Close(SimLink::kConnecting, Now());
  }
  bool Done() const override { return OutcomeNs() <= Now(); }
  int Result() override {
    if (link_ == nullptr) return error_;
    const std::lock_guard lock(member_.network->mutex());
    return link_->ConnectError(Now());
  }
  NamedStream Take(const SocketTuning&) override {
    return {std::make_unique<SimStream>(member_, std::move(link_),
                                        SimLink::kConnecting),
            peer_};
  }
  uint64_t DueNs() const override {
    const uint64_t due_ns = OutcomeNs();
    return due_ns <= Now() ? MIG_NO_DEADLINE : due_ns;
  }

 private:
  uint64_t Now() const { return member_.host->NowNs(); }
  uint64_t OutcomeNs() const {
    if (link_ == nullptr) return due_ns_;
    const std::lock_guard lock(member_.network->mutex());
    return link_->ConnectedNs(Now());
  }

  const Membership member_;
  const int error_ = 0;
  const uint64_t due_ns_ = 0;
  std::shared_ptr<SimLink> link_;
  const std::string peer_;
};

class SimPort final : public Port {
 public:
  SimPort(Membership member, const SocketAddress& address)
      : member_(std::move(member)), address_(address) {
    member_.network->Add(this);
  }
  ~SimPort() override {
    const std::lock_guard lock(member_.network->mutex());
    member_.network->Remove(this);
    for (const Newcomer& waiting : waiting_) {
      waiting.link->Reset(SimLink::kListening, Now());
    }
  }
  const SocketAddress& address() const { return address_; }
  const std::shared_ptr<SimSide>& side() const { return member_.side; }
  void Come(std::shared_ptr<SimLink> link, std::string peer) {
    waiting_.push_back({std::move(link), std::move(peer)});
  }

  bool Waiting() const override { return !away_ && NextNs() <= Now(); }
  absl::StatusOr<NamedStream> Accept(const SocketTuning& tuning) override;
  void LookAgain() override { away_ = false; }
  uint64_t DueNs() const override {
    const uint64_t due_ns = NextNs();
    return away_ || due_ns <= Now() ? MIG_NO_DEADLINE : due_ns;
  }
  std::string Uri() const override { return FormatAddress(address_); }

 private:
  struct Newcomer {
    std::shared_ptr<SimLink> link;
    std::string peer;
  };
  uint64_t Now() const { return member_.host->NowNs(); }
  uint64_t NextNs() const {
    const std::lock_guard lock(member_.network->mutex());
    uint64_t next_ns = SimLink::kNever;
    for (const Newcomer& waiting : waiting_) {
      next_ns = std::min(next_ns, waiting.link->AcceptableNs(Now()));
    }
    return next_ns;
  }
  // The one that has waited longest, or the end.
  std::vector<Newcomer>::iterator First();

  const Membership member_;
  const SocketAddress address_;
  std::vector<Newcomer> waiting_;  // in the order of connecting
  bool away_ = false;              // after a lack of fds
};

std::vector<SimPort::Newcomer>::iterator SimPort::First() {
  auto first = waiting_.end();
  uint64_t first_ns = Now();
  for (auto it = waiting_.begin(); it != waiting_.end(); ++it) {
    const uint64_t ns = it->link->AcceptableNs(Now());
    if (ns < first_ns || (ns == first_ns && first == waiting_.end())) {
      first = it;
      first_ns = ns;
    }
  }
  return first;
}

absl::StatusOr<NamedStream> SimPort::Accept(const SocketTuning&) {
  const std::lock_guard lock(member_.network->mutex());
  SimFaults& faults = member_.side->faults;
  for (auto first = First(); first != waiting_.end(); first = First()) {
    const SimFault* const fault =
        faults.Find(Kind::kAccept, faults.Count(Call::kAccept));
    if (fault != nullptr && OutOfResources(fault->error)) {
      away_ = true;
      return MakeSystemError(MIG_E_LIMIT, "can't accept a connection",
                             fault->error);
    }
    const Newcomer newcomer = std::move(*first);
    waiting_.erase(first);
    if (fault == nullptr) {
      return NamedStream{std::make_unique<SimStream>(member_, newcomer.link,
                                                     SimLink::kListening),
                         newcomer.peer};
    }
    // It went away while it waited, as other errors of accept say.
    newcomer.link->Reset(SimLink::kListening, Now());
  }
  return NamedStream();
}

std::shared_ptr<SimNetwork> SimNetwork::Named(const std::string& name) {
  static std::mutex mutex;
  static auto* const networks =
      new std::map<std::string, std::weak_ptr<SimNetwork>>();
  const std::lock_guard lock(mutex);
  std::erase_if(*networks,
                [](const auto& known) { return known.second.expired(); });
  std::weak_ptr<SimNetwork>& known = (*networks)[name];
  std::shared_ptr<SimNetwork> network = known.lock();
  if (network == nullptr) {
    network = std::make_shared<SimNetwork>();
    known = network;
  }
  return network;
}

SimPort* SimNetwork::Find(const SocketAddress& address) const {
  for (SimPort* port : ports_) {
    if (Meet(port->address(), address)) return port;
  }
  return nullptr;
}

bool SimNetwork::Choose(SocketAddress* address) {
  const Place place = PlaceOf(address);
  if (place.port == nullptr || *place.port != 0) {
    return Find(*address) == nullptr;
  }
  for (int i = 0; i <= UINT16_MAX - kFirstPort; ++i) {
    *place.port = htons(next_port_);
    next_port_ = next_port_ == UINT16_MAX
                     ? kFirstPort
                     : static_cast<uint16_t>(next_port_ + 1);
    if (Find(*address) == nullptr) return true;
  }
  return false;
}

class SimMember final : public Network {
 public:
  explicit SimMember(Membership member) : member_(std::move(member)) {}

  absl::StatusOr<std::unique_ptr<Dial>> Connect(const SocketAddress& address,
                                                Poller* poller,
                                                int* error) override;
  absl::StatusOr<std::unique_ptr<Port>> Listen(const SocketAddress& address,
                                               Poller* poller) override;
  absl::StatusOr<Adopted> Adopt(int fd, const SocketTuning&, Poller*) override {
    return MakeError(MIG_E_URI,
                     absl::StrCat("fd ", fd,
                                  " does not exist in a simulated network: "
                                  "give tcp://HOST:PORT or unix:PATH"));
  }

 private:
  const Membership member_;
};

absl::StatusOr<std::unique_ptr<Dial>> SimMember::Connect(
    const SocketAddress& address, Poller*, int* error) {
  const std::lock_guard lock(member_.network->mutex());
  *error = 0;
  SimFaults& faults = member_.side->faults;
  const uint64_t number = faults.Count(Call::kConnect);
  const uint64_t now_ns = member_.host->NowNs();
  const SimFault* const delay = faults.Find(Kind::kDelay, number);
  const uint64_t delay_ns = delay == nullptr ? 0 : delay->value;
  const uint64_t refused_ns =
      now_ns + delay_ns + 2 * member_.side->config.latency_ns;
  if (const SimFault* fault = faults.Find(Kind::kConnect, number)) {
    if (OutOfResources(fault->error)) {
      return MakeSystemError(MIG_E_LIMIT, "can't make a socket", fault->error);
    }
    return std::make_unique<SimDial>(member_, fault->error, refused_ns);
  }
  SimPort* const port = member_.network->Find(address);
  if (port == nullptr) {
    return std::make_unique<SimDial>(member_, ECONNREFUSED, refused_ns);
  }
  auto link =
      std::make_shared<SimLink>(member_.side, port->side(), now_ns, delay_ns);
  port->Come(link, absl::StrCat("sim:", member_.side->config.name, "#",
                                member_.network->NextLink()));
  return std::make_unique<SimDial>(member_, std::move(link),
                                   FormatAddress(address));
}

absl::StatusOr<std::unique_ptr<Port>> SimMember::Listen(
    const SocketAddress& address, Poller*) {
  const std::lock_guard lock(member_.network->mutex());
  SimFaults& faults = member_.side->faults;
  if (const SimFault* fault =
          faults.Find(Kind::kListen, faults.Count(Call::kListen))) {
    return ListenFailure(address, fault->error);
  }
  SocketAddress chosen = address;
  if (!member_.network->Choose(&chosen)) {
    return ListenFailure(address, EADDRINUSE);
  }
  return std::make_unique<SimPort>(member_, chosen);
}

}  // namespace

absl::StatusOr<std::shared_ptr<Network>> MakeSimNetwork(absl::string_view text,
                                                        const Host* host) {
  absl::string_view rest = text;
  if (!absl::ConsumePrefix(&rest, "sim:")) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("there is no network '", text,
                                  "': use sim:NAME[,KEY=VALUE]..., or nothing "
                                  "for the system's"));
  }
  auto config = ParseSimConfig(rest);
  if (!config.ok()) return config.status();
  if (!host->simulated_clock()) {
    return MakeError(MIG_E_OPTION,
                     absl::StrCat("network '", text,
                                  "' needs a host whose clock is simulated: "
                                  "leave the option out for real sockets"));
  }
  uint64_t seed = config->seed.value_or(0);
  if (!config->seed) {
    MIG_RETURN_IF_ERROR(host->Random(&seed, sizeof(seed)));
  }
  return std::make_shared<SimMember>(
      Membership{host, SimNetwork::Named(config->name),
                 std::make_shared<SimSide>(*config, seed, host->NowNs())});
}

}  // namespace mig::tcp
