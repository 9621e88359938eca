// SPDX-License-Identifier: Apache-2.0
// Checks of collectives with the ranks that one process can have: one rank alone, and a group whose other rank is absent.
#include <chrono>

#include "core/conform/kernel_run.h"

namespace mge::conform {
namespace {

using Communicator = Owned<mge_communicator>;
using Id = uint8_t[MGE_UNIQUE_ID_BYTES];

const mge_collective_api* ApiOf(BackendUnderTest& s) { return s.plugin().collective; }

void NewId(BackendUnderTest& s, Id& id) {
  if (!ApiOf(s)) NotOffered("the backend has no table 'collective'");
  const mge_error result = Try("unique_id", ApiOf(s)->unique_id, id);
  // A library that the backend needs for collectives may be missing.
  if (result.code == MGE_UNAVAILABLE) NotOffered(result.text);
  Answer(result, "unique_id");
}

Communicator JoinAlone(BackendUnderTest& s) {
  Id id = {};
  NewId(s, id);
  return Make("communicator", ApiOf(s)->destroy, ApiOf(s)->create, s.device(), id, 0u, 1u, kPatienceNs);
}

void CheckOneRank(BackendUnderTest& s) {
  constexpr uint64_t kCount = 70'001;  // float32 elements
  constexpr size_t kBytes = kCount * sizeof(float);
  Communicator alone = JoinAlone(s);
  Rig rig(s, 3 * kBytes);
  const Bytes want = BytesOf(RandomTensor(DType::kF32, {kCount}, -500, 500, 1));
  unsigned char *from = rig.at(0), *reduced = rig.at(kBytes), *sent = rig.at(2 * kBytes);
  mge_queue* queue = rig.queue;
  rig.Fill(want);
  Call("group_begin", ApiOf(s)->group_begin);
  Call("all_reduce", ApiOf(s)->all_reduce, alone.get(), queue, from, reduced, kCount, MGE_DTYPE_F32, MGE_REDUCE_SUM);
  Call("broadcast", ApiOf(s)->broadcast, alone.get(), queue, from, sent, kCount, MGE_DTYPE_F32, 0u);
  Call("group_end", ApiOf(s)->group_end);
  rig.Expect(reduced, want, "all_reduce of one rank changes its data");
  rig.transfer.Expect(sent, want, "broadcast of one rank changes its data");
}

void CheckAbsentRank(BackendUnderTest& s) {
  Id id = {};
  NewId(s, id);
  constexpr uint64_t kShortNs = 200'000'000;  // the timeout
  mge_communicator* made = nullptr;
  const auto begin = std::chrono::steady_clock::now();
  MustFail(MGE_UNAVAILABLE, "create of a communicator whose other rank never comes", ApiOf(s)->create, s.device(), id, 0u,
           2u, kShortNs, &made);
  if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(5))
    Broken("create without the other rank returns long after its timeout of 200 ms");
}

void CheckAbort(BackendUnderTest& s) {
  Communicator alone = JoinAlone(s);
  Rig rig(s, 64);
  InBackend("abort", ApiOf(s)->abort, alone.get());
  unsigned char* data = rig.at(0);
  mge_code code = Try("all_reduce after abort", ApiOf(s)->all_reduce, alone.get(), rig.queue, data, data, uint64_t{4},
                      MGE_DTYPE_F32, MGE_REDUCE_SUM)
                      .code;
  if (code == MGE_OK) {
    rig.queue.Signal(rig.fence, 1);
    code = rig.fence.Ask(1, kPatienceNs).code;
  }
  if (code != MGE_CANCELLED) Broken("an operation after abort ends with {}; MGE_CANCELLED is required", CodeName(code));
}

constexpr Check kCollectiveChecks[] = {
    {"collective.one_rank", "The operations of one rank alone copy its data.", CheckOneRank},
    {"collective.absent_rank", "A rank that never comes is an error within the timeout.", CheckAbsentRank},
    {"collective.abort", "An aborted communicator ends operations with MGE_CANCELLED.", CheckAbort},
};

}  // namespace

std::span<const Check> CollectiveChecks() { return kCollectiveChecks; }

}  // namespace mge::conform
