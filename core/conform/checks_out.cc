// SPDX-License-Identifier: Apache-2.0
// Checks of output structs of hosts that are older or newer than the backend's headers.
#include <cstddef>

#include "core/conform/kernel_run.h"
#include "core/conform/out_struct.h"

namespace mge::conform {
namespace {

absl::Status CheckSlabs(BackendUnderTest& s) {
  const mge_memory_api& m = *s.plugin().memory;
  for (int32_t memory_class : {MGE_MEMORY_DEVICE, MGE_MEMORY_PINNED}) {
    auto usual = Sized<mge_slab>();
    mge_error error;
    mge_code code = m.slab_acquire(s.device(), memory_class, 4096, &usual, &error);
    if (code == MGE_UNIMPLEMENTED && memory_class != MGE_MEMORY_DEVICE) continue;
    MGE_RETURN_IF_ERROR(Answer(code, error, "acquiring a slab"));
    m.slab_release(s.device(), &usual);
    MGE_RETURN_IF_ERROR(TryOutStruct<mge_slab>(s, "mge_slab", offsetof(mge_slab, bytes), [&](OutStruct<mge_slab>& room) {
      MGE_RETURN_IF_ERROR(Call("acquiring a slab",
                               [&](mge_error* e) { return m.slab_acquire(s.device(), memory_class, 4096, room.get(), e); }));
      mge_slab slab = room.Whole();
      if (!slab.address || slab.memory_class != memory_class) return Broken("known members of mge_slab are not written");
      slab.bytes = usual.bytes;
      m.slab_release(s.device(), &slab);
      return absl::OkStatus();
    }));
  }
  if (!m.range_granularity || !m.range_reserve || !m.range_release) return absl::OkStatus();
  uint64_t bytes = 2 * m.range_granularity(s.device());
  return TryOutStruct<mge_slab>(s, "mge_slab of a range", offsetof(mge_slab, bytes), [&](OutStruct<mge_slab>& room) {
    MGE_RETURN_IF_ERROR(
        Call("reserving a range", [&](mge_error* e) { return m.range_reserve(s.device(), bytes, room.get(), e); }));
    mge_slab range = room.Whole();
    if (!range.address) return Broken("the address of a range, which is a known member, is not written");
    range.bytes = bytes;
    m.range_release(s.device(), &range);
    return absl::OkStatus();
  });
}

absl::Status CheckReserveDecision(BackendUnderTest& s) {
  const mge_reserve_api* api = s.plugin().memory->own_reserve;
  if (!api) return absl::OkStatus();
  mge_plan_summary plan = {sizeof(plan), 2, 10 << 20, 5 << 20, 1 << 20, 1 << 29, 1 << 30, 0, MGE_PRESSURE_NONE, 0};
  return TryOutStruct<mge_reserve_decision>(
      s, "mge_reserve_decision", offsetof(mge_reserve_decision, keep_free), [&](OutStruct<mge_reserve_decision>& room) {
        return Call("deciding a reserve", [&](mge_error* e) { return api->decide(s.device(), &plan, room.get(), e); });
      });
}

absl::Status CheckLink(BackendUnderTest& s) {
  const mge_device_api& api = *s.plugin().device;
  if (!api.link || s.devices().size() < 2) return absl::OkStatus();
  mge_device* other = nullptr;
  MGE_RETURN_IF_ERROR(
      Call("opening the second device", [&](mge_error* e) { return api.open(s.devices()[1].index, &other, e); }));
  absl::Status status =
      TryOutStruct<mge_link>(s, "mge_link", offsetof(mge_link, latency_us), [&](OutStruct<mge_link>& room) {
        return Call("asking for a link", [&](mge_error* e) { return api.link(s.device(), other, room.get(), e); });
      });
  api.close(other);
  return status;
}

absl::Status CheckKernel(BackendUnderTest& s) {
  const mge_kernel_api& api = *s.plugin().kernel;
  Offers offers;
  absl::StatusOr<Case> c = FirstSupportedCase(s, &offers);
  if (!c.ok()) return absl::OkStatus();
  AbiProblem problem(*c, MGE_WRITE);
  const AbiCandidate candidate(offers.offered[0]);
  return TryOutStruct<mge_prepared>(
      s, "mge_prepared", offsetof(mge_prepared, workspace_bytes), [&](OutStruct<mge_prepared>& room) {
        MGE_RETURN_IF_ERROR(Call("preparing", [&](mge_error* e) {
          return api.prepare(s.device(), problem.get(), &candidate.raw, room.get(), e);
        }));
        mge_kernel* kernel = room.Whole().kernel;
        if (!kernel) return Broken("the kernel of a mge_prepared, which is a known member, is not written");
        api.destroy(kernel);
        return absl::OkStatus();
      });
}

absl::Status CheckOutStructs(BackendUnderTest& s) {
  MGE_RETURN_IF_ERROR(CheckSlabs(s));
  MGE_RETURN_IF_ERROR(CheckReserveDecision(s));
  MGE_RETURN_IF_ERROR(CheckLink(s));
  return CheckKernel(s);
}

constexpr Check kRows[] = {
    {"abi.out_structs", "In output structs only the members within struct_size are written; struct_size is not changed.",
     Needs::kDevice, CheckOutStructs},
};

}  // namespace

std::span<const Check> OutStructChecks() { return kRows; }

}  // namespace mge::conform
