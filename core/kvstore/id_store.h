// SPDX-License-Identifier: Apache-2.0
// Hands the id of a group of ranks from rank 0 to the other processes over TCP, where no MPI connects them.
//
// Protocol: rank 0 listens until all others have the id. Each other process connects, sends one request and reads one reply.
// Both have a fixed size, and the integers the order of bytes of the machine: all processes run the same build. A request has
// the token, the rank, and the facts of the training, which rank 0 compares with its own. Without a token, whoever reaches the
// port can join: the store is for trusted networks, and for the seconds of a start.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/plan/communicator.h"

namespace mge {

struct IdStoreOptions {
  uint32_t rank = 0, ranks = 1;
  std::string address;  // the host of rank 0
  int64_t port = 0;
  std::string bind;   // numeric address at which rank 0 listens; empty: all of the host
  std::string token;  // the same in all processes; empty: none
  std::string host;   // the name of this process's host
  std::string facts;  // lines "name: value" that all processes must share
  std::chrono::nanoseconds timeout{0};
};

// Returns the id that rank 0 creates with `create`. Returns when all processes have it. Fails with kRankFailed, in all
// processes, if one differs from rank 0, and names those that do not come within the timeout; with kBadSetting for a bad
// address.
absl::StatusOr<CollectiveId> ShareId(const IdStoreOptions& options,
                                     const std::function<absl::StatusOr<CollectiveId>()>& create);

// A request of the protocol.
struct IdRequest {
  char magic[16];
  char token[256];
  uint32_t rank, ranks;
  char host[232];
  char facts[7680];
};
static_assert(sizeof(IdRequest) == 8192);

// Reads a request of any bytes. Returns false if it is none of this protocol, or has another token or number of ranks.
bool ReadIdRequest(std::span<const std::byte, sizeof(IdRequest)> bytes, const IdStoreOptions& options, IdRequest* out);

}  // namespace mge
