// SPDX-License-Identifier: Apache-2.0
// Checks of collectives with the ranks that one process can have: one rank alone, and a group whose other rank is absent.
#include <chrono>

#include "core/conform/kernel_run.h"

namespace mge::conform {
namespace {

constexpr uint64_t kShortNs = 200'000'000;  // the timeout of a group whose other rank never comes, in nanoseconds
constexpr uint64_t kCount = 70'001;         // float32 elements of an operation

using Communicator = Owned<mge_communicator>;
using Id = uint8_t[MGE_UNIQUE_ID_BYTES];

const mge_collective_api* ApiOf(BackendUnderTest& s) { return s.plugin().collective; }

absl::Status NewId(BackendUnderTest& s, Id& id) {
  if (!ApiOf(s)) return NotOffered("the backend has no table 'collective'");
  const mge_error result = Try("unique_id", ApiOf(s)->unique_id, id);
  // A library that the backend needs for collectives may be missing.
  return result.code == MGE_UNAVAILABLE ? NotOffered(result.text) : Answer(result, "unique_id");
}

absl::StatusOr<Communicator> JoinAlone(BackendUnderTest& s) {
  Id id = {};
  MGE_RETURN_IF_ERROR(NewId(s, id));
  return Make("communicator", ApiOf(s)->destroy, ApiOf(s)->create, s.device(), id, 0u, 1u, kPatienceNs);
}

absl::Status CheckOneRank(BackendUnderTest& s) {
  constexpr size_t kBytes = kCount * sizeof(float);
  MGE_ASSIGN_OR_RETURN(Communicator alone, JoinAlone(s));
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 3 * kBytes));
  const Bytes want = BytesOf(RandomTensor(DType::kF32, {kCount}, -500, 500, 1));
  unsigned char *from = rig.at(0), *reduced = rig.at(kBytes), *sent = rig.at(2 * kBytes);
  mge_queue* queue = rig.queue;
  MGE_RETURN_IF_ERROR(rig.Fill(want));
  MGE_RETURN_IF_ERROR(Call("group_begin", ApiOf(s)->group_begin));
  MGE_RETURN_IF_ERROR(
      Call("all_reduce", ApiOf(s)->all_reduce, alone.get(), queue, from, reduced, kCount, MGE_DTYPE_F32, MGE_REDUCE_SUM));
  MGE_RETURN_IF_ERROR(Call("broadcast", ApiOf(s)->broadcast, alone.get(), queue, from, sent, kCount, MGE_DTYPE_F32, 0u));
  MGE_RETURN_IF_ERROR(Call("group_end", ApiOf(s)->group_end));
  MGE_RETURN_IF_ERROR(rig.Expect(reduced, want, "all_reduce of one rank changes its data"));
  return rig.transfer.Expect(sent, want, "broadcast of one rank changes its data");
}

absl::Status CheckAbsentRank(BackendUnderTest& s) {
  Id id = {};
  MGE_RETURN_IF_ERROR(NewId(s, id));
  mge_communicator* made = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  MGE_RETURN_IF_ERROR(MustFail(MGE_UNAVAILABLE, "create of a communicator whose other rank never comes", ApiOf(s)->create,
                               s.device(), id, 0u, 2u, kShortNs, &made));
  if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5)) {
    return Broken("create without the other rank returns long after its timeout of 200 ms");
  }
  return absl::OkStatus();
}

absl::Status CheckAbort(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(Communicator alone, JoinAlone(s));
  MGE_ASSIGN_OR_RETURN(Rig rig, Rig::Create(s, 64));
  InBackend("abort", ApiOf(s)->abort, alone.get());
  unsigned char* data = rig.slab.address();
  mge_code code = Try("all_reduce after abort", ApiOf(s)->all_reduce, alone.get(), rig.queue, data, data, uint64_t{4},
                      MGE_DTYPE_F32, MGE_REDUCE_SUM)
                      .code;
  if (code == MGE_OK) {
    MGE_RETURN_IF_ERROR(rig.queue.Signal(rig.fence, 1));
    code = rig.fence.Ask(1, kPatienceNs).code;
  }
  if (code == MGE_CANCELLED) return absl::OkStatus();
  return Broken("an operation after abort ends with {}; MGE_CANCELLED is required", CodeName(code));
}

constexpr Check kRows[] = {
    {"collective.one_rank", "The operations of one rank alone copy its data.", CheckOneRank},
    {"collective.absent_rank", "A rank that never comes is an error within the timeout.", CheckAbsentRank},
    {"collective.abort", "An aborted communicator ends operations with MGE_CANCELLED.", CheckAbort},
};

}  // namespace

std::span<const Check> CollectiveChecks() { return kRows; }

}  // namespace mge::conform
