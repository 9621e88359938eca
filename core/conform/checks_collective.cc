// SPDX-License-Identifier: Apache-2.0
// Checks of collectives with the ranks that one process can have: one rank alone, and a group whose other rank is absent.
#include <chrono>
#include <cstring>
#include <memory>

#include "core/conform/device_memory.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr uint64_t kShortNs = 200'000'000;  // the timeout of a group whose other rank never comes, in nanoseconds
constexpr uint64_t kCount = 70'001;         // float32 elements of an operation

using Communicator = std::unique_ptr<mge_communicator, Destroyer<mge_communicator>>;
using Id = uint8_t[MGE_UNIQUE_ID_BYTES];

const mge_collective_api* ApiOf(BackendUnderTest& s) { return s.plugin().collective; }

absl::StatusOr<Communicator> Join(BackendUnderTest& s, const Id& id, uint32_t ranks, uint64_t timeout_ns) {
  mge_communicator* made = nullptr;
  MGE_RETURN_IF_ERROR(Call("create of a communicator",
                           [&](mge_error* e) { return ApiOf(s)->create(s.device(), id, 0, ranks, timeout_ns, &made, e); }));
  if (!made) return Broken("create returned MGE_OK, but no communicator");
  return Communicator(made, Destroyer<mge_communicator>{ApiOf(s)->destroy, "destroy of a communicator"});
}

absl::Status NewId(BackendUnderTest& s, Id& id) {
  if (!ApiOf(s)) return NotOffered("the backend has no table 'collective'");
  return Call("unique_id", [&](mge_error* e) { return ApiOf(s)->unique_id(id, e); });
}

absl::Status CheckOneRank(BackendUnderTest& s) {
  Id id = {};
  MGE_RETURN_IF_ERROR(NewId(s, id));
  constexpr size_t kBytes = kCount * sizeof(float);
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 3 * kBytes));
  MGE_ASSIGN_OR_RETURN(Transfer transfer, Transfer::Create(s));
  MGE_ASSIGN_OR_RETURN(Communicator alone, Join(s, id, 1, kPatienceNs));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence done, Fence::Create(s));
  std::vector<float> values(kCount);
  for (uint64_t i = 0; i < kCount; ++i) values[i] = static_cast<float>(i % 1001) - 500;
  Bytes want(kBytes), got(kBytes);
  std::memcpy(want.data(), values.data(), kBytes);
  unsigned char* from = slab.address();
  MGE_RETURN_IF_ERROR(transfer.ToDevice(from, want.data(), kBytes));
  MGE_RETURN_IF_ERROR(Call("group_begin", [&](mge_error* e) { return ApiOf(s)->group_begin(e); }));
  MGE_RETURN_IF_ERROR(Call("all_reduce", [&](mge_error* e) {
    return ApiOf(s)->all_reduce(alone.get(), queue, from, from + kBytes, kCount, MGE_DTYPE_F32, MGE_REDUCE_SUM, e);
  }));
  MGE_RETURN_IF_ERROR(Call("broadcast", [&](mge_error* e) {
    return ApiOf(s)->broadcast(alone.get(), queue, from, from + 2 * kBytes, kCount, MGE_DTYPE_F32, 0, e);
  }));
  MGE_RETURN_IF_ERROR(Call("group_end", [&](mge_error* e) { return ApiOf(s)->group_end(e); }));
  MGE_RETURN_IF_ERROR(queue.Signal(done, 1));
  MGE_RETURN_IF_ERROR(done.Await(1));
  for (size_t part : {size_t{1}, size_t{2}}) {
    MGE_RETURN_IF_ERROR(transfer.ToHost(got.data(), from + part * kBytes, kBytes));
    if (std::string d = Difference(got, want); !d.empty()) {
      return Broken(fmt::format("{} of one rank changes its data: {}", part == 1 ? "all_reduce" : "broadcast", d));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAbsentRank(BackendUnderTest& s) {
  Id id = {};
  MGE_RETURN_IF_ERROR(NewId(s, id));
  mge_communicator* made = nullptr;
  mge_error error;
  const auto begin = std::chrono::steady_clock::now();
  const mge_code code = InBackend("create of a communicator whose other rank never comes",
                                  [&] { return ApiOf(s)->create(s.device(), id, 0, 2, kShortNs, &made, &error); });
  if (code == MGE_OK) return Broken("create returned before the other rank has called it");
  if (code != MGE_UNAVAILABLE) {
    return Broken(fmt::format("create without the other rank returns {}; MGE_UNAVAILABLE is required", CodeName(code)));
  }
  if (error.text.empty()) return Broken("create without the other rank fails without a text");
  if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5)) {
    return Broken("create without the other rank returns long after its timeout of 200 ms");
  }
  return absl::OkStatus();
}

absl::Status CheckAbort(BackendUnderTest& s) {
  Id id = {};
  MGE_RETURN_IF_ERROR(NewId(s, id));
  MGE_ASSIGN_OR_RETURN(Slab slab, Slab::Acquire(s, 64));
  MGE_ASSIGN_OR_RETURN(Communicator alone, Join(s, id, 1, kPatienceNs));
  MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
  MGE_ASSIGN_OR_RETURN(Fence done, Fence::Create(s));
  InBackend("abort", [&] { ApiOf(s)->abort(alone.get()); });
  mge_error error;
  mge_code code = InBackend("all_reduce after abort", [&] {
    return ApiOf(s)->all_reduce(alone.get(), queue, slab.address(), slab.address(), 4, MGE_DTYPE_F32, MGE_REDUCE_SUM,
                                &error);
  });
  if (code == MGE_OK) {
    MGE_RETURN_IF_ERROR(queue.Signal(done, 1));
    code = done.Ask(1, kPatienceNs);
  }
  if (code == MGE_CANCELLED) return absl::OkStatus();
  return Broken(fmt::format("an operation after abort ends with {}; MGE_CANCELLED is required", CodeName(code)));
}

constexpr Check kRows[] = {
    {"collective.one_rank", "The operations of one rank alone copy its data.", Needs::kDevice, CheckOneRank},
    {"collective.absent_rank", "A rank that never comes is an error within the timeout.", Needs::kDevice, CheckAbsentRank},
    {"collective.abort", "An aborted communicator ends operations with MGE_CANCELLED.", Needs::kDevice, CheckAbort},
};

}  // namespace

std::span<const Check> CollectiveChecks() { return kRows; }

}  // namespace mge::conform
