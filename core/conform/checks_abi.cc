// SPDX-License-Identifier: Apache-2.0
// Checks of the file, its identity note and its table, of output structs and unknown values, and of devices.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <tuple>

#include "core/conform/allocations.h"
#include "core/conform/kernel_run.h"
#include "core/conform/leak_check.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/elf_symbols.h"
#include "core/plugin/isa.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

// Calls f(T*) with output structs of other hosts, which know `least` bytes of it, or more than there are. Throws Broken() if
// other bytes are written.
template <typename T, typename F>
void WritesOnlyKnown(BackendUnderTest& s, std::string_view name, size_t least, F&& f) {
  constexpr unsigned char kUnknown = 0xee;
  for (size_t covered : {least, sizeof(T) + 64}) {
    alignas(T) unsigned char room[sizeof(T) + 64];
    const size_t known = std::min(covered, sizeof(T));
    std::memset(room, 0, known);
    std::memset(room + known, kUnknown, sizeof(room) - known);
    T* out = reinterpret_cast<T*>(room);
    out->struct_size = static_cast<uint32_t>(covered);
    s.At("a {} of {} bytes", name, covered);
    f(out);
    if (out->struct_size != covered) Broken("the struct_size of a {} is overwritten", name);
    if (std::ranges::count(room + known, std::end(room), kUnknown) != std::end(room) - (room + known))
      Broken("a {} of {} bytes (struct_size) is written behind byte {}", name, covered, known);
  }
}

void CheckNote(BackendUnderTest& s) {
  NoteReading reading = NoteOf(s.path());
  const PluginNote& note = reading.note;
  if (std::string why = WhyAbiDiffers(note); !why.empty()) Broken(why);
  if (note.header_hash == MGE_ABI_HASH && note.abi_minor != MGE_ABI_MINOR)
    Broken("it says interface {}.{}; the headers that it was built from are those of {}.{} (MGE_ABI_MINOR)", note.abi_major,
           note.abi_minor, MGE_ABI_MAJOR, MGE_ABI_MINOR);
  if (std::string why = WhyIsaIsMissing(note, HostIsa()); !why.empty()) Broken(why);
  if (reading.build_id.empty()) Broken("it has no build id; link it with -Wl,--build-id");
}

void CheckSymbols(BackendUnderTest& s) {
  if (std::string why = OrThrow(MoreThanOneExport(s.path())); !why.empty()) Broken(why);
  std::string ours;
  ThrowIfError(ReadElfSymbols(s.path(), [&](std::string_view name, bool exported) {
    const bool host = name.starts_with("mge_") || name.starts_with("_ZN3mge") || name.starts_with("_ZNK3mge");
    if (!exported && host && ours.empty()) ours = name;
  }));
  if (!ours.empty()) Broken("it imports the symbol {} of the host; use the services of the table mge_host", ours);
}

void CheckQueryPure(BackendUnderTest& s) {
  const auto bytes = [&] { return std::string(reinterpret_cast<const char*>(&s.plugin()), s.plugin().struct_size); };
  const std::string table = bytes();
  const ProcessCounts before = ProcessCounts::Now();
  for (int call = 2; call < 100; ++call) {
    const auto [code, out] = s.Query();
    if (code != MGE_OK) Broken("call {} of {} is refused", call, MGE_PLUGIN_QUERY_SYMBOL);
    if (out.plugin != &s.plugin()) Broken("call {} of {} returns another table", call, MGE_PLUGIN_QUERY_SYMBOL);
  }
  if (bytes() != table) Broken("the table changes when it is asked for again");
  std::string more = ProcessCounts::Now().MoreThan(before);
  if (!more.empty()) Broken("asking for the table has side effects: {}", more);
  const auto [code, out] = s.Query(MGE_ABI_MAJOR + 1);
  if (code == MGE_OK) Broken("a host of the next major version is accepted");
  if (CopyText(out.reason).empty()) Broken("a host of the next major version is refused without a reason");
}

void CheckTable(BackendUnderTest& s) {
  const mge_plugin& p = s.plugin();
  NoteReading reading = NoteOf(s.path());
  if (CopyText(p.name) != reading.note.name || CopyText(p.version) != reading.note.version)
    Broken("the identity note says '{}' {}, the table '{}' {}", reading.note.name, reading.note.version, CopyText(p.name),
           CopyText(p.version));
  if (p.abi_major != MGE_ABI_MAJOR || p.header_hash != MGE_ABI_HASH || p.abi_minor != reading.note.abi_minor)
    Broken("the table contradicts the identity note");
  auto size = [](const auto* table) { return table ? table->struct_size : 0; };
  const std::tuple<const char*, uint32_t, size_t> tables[] = {
      {"mge_plugin", p.struct_size, sizeof(mge_plugin)},        {"device", size(p.device), sizeof(mge_device_api)},
      {"memory", size(p.memory), sizeof(mge_memory_api)},       {"kernel", size(p.kernel), sizeof(mge_kernel_api)},
      {"queue", size(p.queue), sizeof(mge_queue_api)},          {"graph", size(p.graph), sizeof(mge_graph_api)},
      {"strategy", size(p.strategy), sizeof(mge_strategy_api)}, {"layout", size(p.layout), sizeof(mge_layout_api)},
      {"profile", size(p.profile), sizeof(mge_profile_api)}};
  for (const auto& [name, said, known] : tables) {
    if (said == known || said == 0 || p.abi_minor > MGE_ABI_MINOR) continue;
    Broken("table '{}' says {} bytes (struct_size); in these headers it has {}", name, said, known);
  }
}

void CheckExtensions(BackendUnderTest& s) {
  if (!s.plugin().extension) NotOffered("the backend has no extensions");
  for (auto [name, version] :
       {std::pair("mge.conform.no_such_extension", 1u), {"", 0u}, {MGE_FAULTS_EXTENSION, UINT32_MAX}}) {
    if (s.plugin().extension(name, version))
      Broken("it returns a table for version {} of an extension '{}', which does not exist", version, name);
  }
}

void CheckOutStructs(BackendUnderTest& s) {
  const mge_memory_api& memory = *s.plugin().memory;
  WritesOnlyKnown<mge_slab>(s, "mge_slab", sizeof(mge_slab), [&](mge_slab* out) {
    Call("acquiring a slab", memory.slab_acquire, s.device(), MGE_MEMORY_DEVICE, uint64_t{4096}, out);
    mge_slab slab = *out;
    slab.struct_size = sizeof(slab);
    memory.slab_release(s.device(), &slab);
  });
  if (auto link = s.plugin().device->link)
    WritesOnlyKnown<mge_link>(s, "mge_link", offsetof(mge_link, latency_us),
                              [&](mge_link* out) { Call("asking for a link", link, s.device(), s.device(), out); });
  const std::optional<SupportedCase> first = FirstSupportedCase(s);
  if (!first) return;
  AbiProblem problem(first->c);
  const OwnedCandidate::Abi abi = first->candidate.ToAbi();
  WritesOnlyKnown<mge_prepared>(s, "mge_prepared", offsetof(mge_prepared, workspace_bytes), [&](mge_prepared* out) {
    Call("preparing", s.plugin().kernel->prepare, s.device(), problem.get(), &abi.candidate, out);
    if (!out->kernel) Broken("the kernel of a mge_prepared, which is a known member, is not written");
    s.plugin().kernel->destroy(out->kernel);
  });
}

void CheckUnknownBits(BackendUnderTest& s) {
  auto slab = Sized<mge_slab>();
  MustFail(MGE_OK, "the memory class 99", s.plugin().memory->slab_acquire, s.device(), 99, uint64_t{4096}, &slab);
  if (const mge_queue_api* api = s.plugin().queue) {
    mge_queue* queue = nullptr;
    MustFail(MGE_OK, "the queue kind 99", api->create, s.device(), 99, &queue);
    const mge_error optional = Try("creating a queue", api->create, s.device(), MGE_QUEUE_COMMUNICATION, &queue);
    if (optional.code == MGE_OK) InBackend("destroying a queue", api->destroy, queue);
    if (optional.code != MGE_UNIMPLEMENTED) Answer(optional, "creating a communication queue");
  }
}

// ---- devices

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

void CheckDeviceAllocations(BackendUnderTest& s) {
  s.Close();
  s.Stop();
  constexpr double kSeconds = 2;
  auto live = [&s] { LiveOnce(s); };
  SurvivesFailures(s, live, kSeconds);
}

constexpr Check kAbiChecks[] = {
    {"abi.note", "The file has a valid identity note, which is readable without running its code.", CheckNote, Needs::kFile},
    {"abi.exports", "The file exports only its entry point, and imports no symbol of the host.", CheckSymbols, Needs::kFile},
    {"abi.table", "The table is complete and agrees with the identity note.", CheckTable, Needs::kTable},
    {"abi.query_pure", "The table can be queried many times, and an incompatible host is refused with a reason.",
     CheckQueryPure, Needs::kTable},
    {"abi.extensions", "For unknown extensions and versions NULL is returned.", CheckExtensions, Needs::kTable},
    {"abi.out_structs", "In output structs only the members within struct_size are written; struct_size is not changed.",
     CheckOutStructs},
    {"abi.unknown_values", "Memory classes and kinds of queues that do not exist are refused with a text.",
     CheckUnknownBits},
    {"device.enumerate", "Devices are described completely, and the same ones are listed every time.", CheckEnumerate,
     Needs::kStarted},
    {"device.open_close", "A device can be opened and closed repeatedly.", CheckOpenClose, Needs::kStarted},
    {"device.bad_index", "Opening a device that is not listed fails with a text.", CheckBadIndex, Needs::kStarted},
    {"device.allocations",
     "Starting, opening, memory, queues, a kernel, closing and stopping survive every failing allocation.",
     CheckDeviceAllocations},
};

}  // namespace

std::span<const Check> AbiChecks() { return kAbiChecks; }

}  // namespace mge::conform
