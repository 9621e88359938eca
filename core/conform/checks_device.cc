// SPDX-License-Identifier: Apache-2.0
// Checks of settings and devices, and of collectives with the ranks that one process can have: one rank alone, and a group
// whose other rank is absent.
#include <algorithm>
#include <chrono>

#include "core/conform/kernel_run.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

void CheckSettings(BackendUnderTest& s) {
  if (s.plugin().setting_count == 0) NotOffered("the backend has no settings");
  absl::StatusOr<ResolvedSettings> registered = ResolveSettings(s.plugin(), {});
  if (!registered.ok()) Broken(FormatError(registered.status()));
}

void CheckEnumerate(BackendUnderTest& s) {
  NoteReading reading = NoteOf(s.path());
  DeviceListing first = ListDevices(s.plugin(), &reading.note.classes);
  if (!first.fault.empty()) Broken(first.fault);
  DeviceListing second = ListDevices(s.plugin());
  auto alike = [](const DeviceDescription& a, const DeviceDescription& b) {
    return a.index == b.index && a.fingerprint == b.fingerprint && a.score == b.score;
  };
  if (!std::ranges::equal(first.devices, second.devices, alike)) Broken("a second enumeration lists other devices");
}

void CheckOpenClose(BackendUnderTest& s) {
  const mge_device_api& api = *s.plugin().device;
  if (s.devices().empty()) NotOffered("the backend has no usable device on this machine");
  for (const DeviceDescription& d : s.devices()) {
    for (int i = 0; i < 8; ++i) Make("device", api.close, api.open, d.index);
  }
}

void CheckBadIndex(BackendUnderTest& s) {
  for (uint32_t index : {uint32_t{9999}, UINT32_MAX}) {
    mge_device* device = nullptr;
    MustFail(MGE_OK, fmt::format("opening device {}, which is not listed,", index), s.plugin().device->open, index, &device);
  }
}

void CheckNullError(BackendUnderTest& s) {
  mge_device* device = nullptr;
  if (s.plugin().device->open(9999, &device, nullptr) == MGE_OK) Broken("opening device 9999 was accepted");
  auto slab = Sized<mge_slab>();
  if (s.plugin().memory->slab_acquire(s.device(), 99, 64, &slab, nullptr) == MGE_OK)
    Broken("the memory class 99 was accepted");
}

void CheckLinks(BackendUnderTest& s) {
  if (!s.plugin().device->link) NotOffered("the slot link is empty: no two devices are linked");
  Owned<mge_device> other = s.OpenAnother();
  for (auto [from, to] : {std::pair{s.device(), other.get()}, std::pair{other.get(), s.device()}}) {
    auto link = Sized<mge_link>();
    Call("asking for a link", s.plugin().device->link, from, to, &link);
    if (link.flags & ~MGE_LINK_KNOWN_BITS) Broken("a link has unknown flags");
    if (!(link.bandwidth_gb_s >= 0) || !(link.latency_us >= 0)) Broken("a link's bandwidth or latency is negative");
  }
}

void CheckDeviceAllocations(BackendUnderTest& s) {
  s.Close();
  s.Stop();
  constexpr double kSeconds = 2;
  auto live = [&s] { LiveOnce(s); };
  SurvivesFailures(s, live, kSeconds);
}

constexpr uint64_t kShortNs = 200'000'000;  // the timeout of a group whose other rank never comes, in nanoseconds
constexpr uint64_t kCount = 70'001;         // float32 elements of an operation

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

constexpr Check kDeviceChecks[] = {
    {"settings.declared", "Settings are declared completely, so that the host can check the user's values.", CheckSettings,
     Needs::kTable},
    {"device.enumerate", "Devices are described completely, and the same ones are listed every time.", CheckEnumerate,
     Needs::kStarted},
    {"device.open_close", "A device can be opened and closed repeatedly.", CheckOpenClose, Needs::kStarted},
    {"device.bad_index", "Opening a device that is not listed fails with a text.", CheckBadIndex, Needs::kStarted},
    {"device.no_error_slot", "Errors are returned even if the host passes NULL for the error.", CheckNullError},
    {"device.links", "Links between devices have known flags and no negative numbers.", CheckLinks},
    {"device.allocations",
     "Starting, opening, memory, queues, a kernel, closing and stopping survive every failing allocation.",
     CheckDeviceAllocations},
    {"collective.one_rank", "The operations of one rank alone copy its data.", CheckOneRank},
    {"collective.absent_rank", "A rank that never comes is an error within the timeout.", CheckAbsentRank},
    {"collective.abort", "An aborted communicator ends operations with MGE_CANCELLED.", CheckAbort},
};

}  // namespace

std::span<const Check> DeviceChecks() { return kDeviceChecks; }

}  // namespace mge::conform
