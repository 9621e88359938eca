// SPDX-License-Identifier: Apache-2.0
#include "core/kvstore/id_store.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/lines.h"
#include "core/kvstore/training_processes.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {
namespace {

using std::chrono::steady_clock;

constexpr char kMagic[16] = "MGE group id 1";
constexpr size_t kExtraConnections = 16;              // of strangers, at the same time
constexpr std::chrono::seconds kRequestPatience{10};  // for one request
constexpr std::chrono::milliseconds kRetry{100};      // between two tries to connect
constexpr std::chrono::milliseconds kPollLimit{200};

struct IdReply {
  char magic[16];
  int32_t refused;
  char text[1004];
  CollectiveId id;
};
static_assert(sizeof(IdReply) == 1152);

template <size_t kSize>
void SetField(char (&field)[kSize], std::string_view text) {
  std::memset(field, 0, kSize);
  std::memcpy(field, text.data(), std::min(text.size(), kSize - 1));
}

template <size_t kSize>
std::string TextOfField(const char (&field)[kSize]) {
  return std::string(field, strnlen(field, kSize));
}

absl::Status SocketFailed(std::string what) {
  return Fail(errors::kRankFailed, "the processes of the training cannot exchange the id of their group",
              {.what = std::move(what),
               .fix = "check MASTER_ADDR, MASTER_PORT and collective.port, and that no firewall is between the hosts"});
}

// Compares in a time that does not depend on the bytes.
bool SameToken(const char (&a)[256], const char (&b)[256]) {
  unsigned char differs = 0;
  for (size_t i = 0; i < sizeof(a); ++i) differs |= static_cast<unsigned char>(a[i] ^ b[i]);
  return differs == 0;
}

IdRequest RequestOf(const IdStoreOptions& o) {
  IdRequest out = {};
  std::memcpy(out.magic, kMagic, sizeof(kMagic));
  SetField(out.token, o.token);
  out.rank = o.rank;
  out.ranks = o.ranks;
  SetField(out.host, o.host);
  SetField(out.facts, o.facts);
  return out;
}

std::string NameOf(uint32_t rank, uint32_t ranks, const std::string& host) {
  return fmt::format("rank {} of {} (host {})", rank, ranks, EscapeControl(host));
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& host, int64_t port, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) return SocketFailed(fmt::format("'{}' is not an address: {}", EscapeControl(host), gai_strerror(error)));
  return Addresses(list);
}

bool WaitFor(int socket, short events, steady_clock::time_point end) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - steady_clock::now());
  pollfd p = {socket, events, 0};
  return left.count() > 0 && poll(&p, 1, static_cast<int>(std::min<int64_t>(left.count(), 1'000'000))) > 0;
}

// Moves all bytes of a socket that does not block. Returns false if it is closed, or the time is over.
bool MoveAll(int socket, void* data, size_t bytes, bool sends, steady_clock::time_point end) {
  auto* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t moved = sends ? send(socket, at, bytes, MSG_NOSIGNAL) : recv(socket, at, bytes, 0);
    if (moved > 0) {
      at += moved;
      bytes -= static_cast<size_t>(moved);
      continue;
    }
    if (moved == 0 || (errno != EAGAIN && errno != EINTR)) return false;
    if (!WaitFor(socket, sends ? POLLOUT : POLLIN, end)) return false;
  }
  return true;
}

// ---- rank 0

class Store {
 public:
  explicit Store(const IdStoreOptions& o) : o_(o), clients_(o.ranks) {}

  absl::Status Listen() {
    MGE_ASSIGN_OR_RETURN(const Addresses list,
                         Resolve(o_.bind, o_.port, AI_PASSIVE | (o_.bind.empty() ? 0 : AI_NUMERICHOST)));
    std::string why;
    for (const addrinfo* a = list.get(); a; a = a->ai_next) {
      Fd socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      if (socket.get() < 0) continue;
      const int yes = 1;
      setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
      if (bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 && listen(socket.get(), 128) == 0) {
        listener_ = std::move(socket);
        return absl::OkStatus();
      }
      why = ErrnoText(errno);
    }
    return SocketFailed(fmt::format("rank 0 cannot listen on port {}: {}", o_.port, why));
  }

  // Collects the requests of all other processes.
  absl::Status Collect() {
    const auto end = steady_clock::now() + o_.timeout;
    while (missing() > 0) {
      if (steady_clock::now() >= end) return Late();
      std::vector<pollfd> polled = {{listener_.get(), POLLIN, 0}};
      for (const Connection& c : connections_) polled.push_back({c.socket.get(), POLLIN, 0});
      poll(polled.data(), polled.size(), static_cast<int>(kPollLimit.count()));
      if (polled[0].revents) Accept();
      ReadAll();
    }
    return absl::OkStatus();
  }

  // Sends the id, or why the training cannot begin.
  absl::Status Reply(const absl::StatusOr<CollectiveId>& id) {
    IdReply reply = {};
    std::memcpy(reply.magic, kMagic, sizeof(kMagic));
    absl::Status status = id.status();
    if (status.ok()) status = Compare();
    reply.refused = !status.ok();
    if (status.ok()) {
      reply.id = *id;
    } else {
      const std::string what = PartsOf(status).what;
      SetField(reply.text, what.empty() ? ErrorTitle(status) : what);
    }
    for (uint32_t r = 1; r < o_.ranks; ++r) {
      IdReply copy = reply;
      const bool sent = MoveAll(clients_[r].socket.get(), &copy, sizeof(copy), true, steady_clock::now() + kRequestPatience);
      if (!sent && status.ok()) status = SocketFailed(Name(r) + " has gone before it had the id");
    }
    return status;
  }

 private:
  struct Connection {
    Fd socket;
    steady_clock::time_point end = {};
    size_t got = 0;
    std::unique_ptr<std::byte[]> bytes = {};
  };
  struct Client {
    Fd socket;
    std::string host = {}, facts = {};
    bool there = false;
  };

  std::string Name(uint32_t rank) const { return NameOf(rank, o_.ranks, clients_[rank].host); }
  size_t missing() const {
    return static_cast<size_t>(
        std::count_if(clients_.begin() + 1, clients_.end(), [](const Client& c) { return !c.there; }));
  }
  absl::Status Late() const {
    std::vector<uint32_t> late;
    for (uint32_t r = 1; r < o_.ranks; ++r) {
      if (!clients_[r].there) late.push_back(r);
    }
    return SocketFailed(fmt::format("of {} processes, these have not come to rank 0 on port {} within {:g} s: rank {}",
                                    o_.ranks, o_.port, std::chrono::duration<double>(o_.timeout).count(),
                                    fmt::join(late, ", ")));
  }
  void Accept() {
    Fd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.get() < 0 || connections_.size() >= missing() + kExtraConnections) return;
    connections_.push_back(
        {std::move(socket), steady_clock::now() + kRequestPatience, 0, std::make_unique<std::byte[]>(sizeof(IdRequest))});
  }
  void ReadAll() {
    for (size_t i = 0; i < connections_.size();) {
      if (Read(connections_[i])) {
        connections_[i] = std::move(connections_.back());
        connections_.pop_back();
      } else {
        ++i;
      }
    }
  }
  // Reads what a connection has. Returns whether it is done with.
  bool Read(Connection& c) {
    const ssize_t got = recv(c.socket.get(), c.bytes.get() + c.got, sizeof(IdRequest) - c.got, 0);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return true;
    if (got > 0) c.got += static_cast<size_t>(got);
    if (c.got < sizeof(IdRequest)) return steady_clock::now() >= c.end;
    IdRequest request;
    const std::span<const std::byte, sizeof(IdRequest)> bytes(c.bytes.get(), sizeof(IdRequest));
    if (!ReadIdRequest(bytes, o_, &request)) return true;
    Client& client = clients_[request.rank];
    if (client.there) return true;  // a second process with this number: the first one has the place
    client = {std::move(c.socket), TextOfField(request.host), TextOfField(request.facts), true};
    return true;
  }
  absl::Status Compare() const {
    const IdRequest own = RequestOf(o_);
    for (uint32_t r = 1; r < o_.ranks; ++r) {
      const std::string what =
          FirstDifference(TextOfField(own.facts), NameOf(0, o_.ranks, o_.host), clients_[r].facts, Name(r));
      if (what.empty()) continue;
      return Fail(errors::kRankFailed, "the processes do not train the same",
                  {.what = what, .fix = "start all processes with the same MGE, model, data and options"});
    }
    return absl::OkStatus();
  }

  const IdStoreOptions& o_;
  Fd listener_;
  std::vector<Connection> connections_;
  std::vector<Client> clients_;  // by rank
};

// ---- the other ranks

// Connects to rank 0, which may start later. Returns an invalid socket if it cannot be reached at present.
absl::StatusOr<Fd> Connect(const IdStoreOptions& o, std::string& why) {
  MGE_ASSIGN_OR_RETURN(const Addresses list, Resolve(o.address, o.port, 0));
  for (const addrinfo* a = list.get(); a; a = a->ai_next) {
    Fd socket(::socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) continue;
    int error = connect(socket.get(), a->ai_addr, a->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      socklen_t size = sizeof(error);
      if (!WaitFor(socket.get(), POLLOUT, steady_clock::now() + std::chrono::seconds(5))) {
        error = ETIMEDOUT;
      } else {
        getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size);
      }
    }
    if (error == 0) return socket;
    why = ErrnoText(error);
  }
  return Fd();
}

absl::StatusOr<CollectiveId> Ask(const IdStoreOptions& o) {
  const auto end = steady_clock::now() + o.timeout;
  std::string why;
  do {
    MGE_ASSIGN_OR_RETURN(const Fd socket, Connect(o, why));
    if (socket.get() < 0) {
      std::this_thread::sleep_for(kRetry);
      continue;
    }
    IdRequest request = RequestOf(o);
    IdReply reply = {};
    if (!MoveAll(socket.get(), &request, sizeof(request), true, end) ||
        !MoveAll(socket.get(), &reply, sizeof(reply), false, end)) {
      why = "it closes the connection; is MGE_COLLECTIVE_TOKEN the same, and each rank started once?";
      std::this_thread::sleep_for(kRetry);
      continue;
    }
    if (std::memcmp(reply.magic, kMagic, sizeof(kMagic)) != 0) {
      return SocketFailed(fmt::format("the program at {}:{} is not rank 0 of this MGE", o.address, o.port));
    }
    if (!reply.refused) return reply.id;
    return Fail(errors::kRankFailed, "rank 0 does not start the training",
                {.what = EscapeControl(TextOfField(reply.text)), .fix = "see the messages of rank 0"});
  } while (steady_clock::now() < end);
  return SocketFailed(fmt::format("rank {} of {} (host {}) cannot reach rank 0 at {}:{} within {:g} s: {}", o.rank, o.ranks,
                                  o.host, o.address, o.port, std::chrono::duration<double>(o.timeout).count(), why));
}

}  // namespace

bool ReadIdRequest(std::span<const std::byte, sizeof(IdRequest)> bytes, const IdStoreOptions& options, IdRequest* out) {
  std::memcpy(out, bytes.data(), bytes.size());
  const IdRequest own = RequestOf(options);
  return std::memcmp(out->magic, kMagic, sizeof(kMagic)) == 0 && SameToken(out->token, own.token) &&
         out->ranks == options.ranks && out->rank > 0 && out->rank < options.ranks;
}

absl::StatusOr<CollectiveId> ShareId(const IdStoreOptions& options,
                                     const std::function<absl::StatusOr<CollectiveId>()>& create) {
  if (options.rank > 0) return Ask(options);
  Store store(options);
  MGE_RETURN_IF_ERROR(store.Listen());
  MGE_RETURN_IF_ERROR(store.Collect());
  const absl::StatusOr<CollectiveId> id = create();
  MGE_RETURN_IF_ERROR(store.Reply(id));
  return id;
}

}  // namespace mge
