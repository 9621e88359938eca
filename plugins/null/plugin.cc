// SPDX-License-Identifier: Apache-2.0
// The identity of the backend, and the one table that the host is given.
#include "settings.h"
#include "tables.h"

#define NULL_VERSION "0.1.0"

// Read by the host before any code of this library can run: name, version, device classes,
// instruction sets (MGE_ISA_ bits) without which it must not be opened. A backend that compiles all
// of itself with -mavx2 says MGE_ISA_AVX2 here; one that asks the processor at run time says 0. A
// class list "demo,gpu" lets devices of class demo answer to gpu0, too.
MGE_PLUGIN_NOTE("null", NULL_VERSION, "null", 0);

namespace mge::null {
namespace {

// Keep it cheap: load the driver's library here with dlopen, and answer MGE_UNAVAILABLE with a
// sentence if it is not there. The host then goes on without this backend and shows the sentence to
// who asks for the device.
mge_code Start(const mge_host* host, mge_error*) noexcept {
  Host() = host;
  return MGE_OK;
}

// Every thread joined, every handle of the driver released. The library stays mapped, and start()
// may come again.
void Stop() noexcept { Host() = nullptr; }

// The version of the set of kernels: a new one makes the host forget timings that it measured.
constexpr mge_kernel_api kKernelTable = KernelTable<Kernels>::Api("1");

constexpr mge_plugin kPlugin = Table<mge_plugin>([](auto& t) {
  t.name = Text("null");  // as in the note
  t.version = Text(NULL_VERSION);
  t.settings = kSettings;
  t.setting_count = std::size(kSettings);
  t.start = Start;
  t.stop = Stop;
  t.device = &kDeviceTable;
  t.memory = &kMemoryTable;
  t.queue = &kQueueTable;
  t.kernel = &kKernelTable;
  // Claims: groups of nodes that one kernel computes, such as a convolution and the Relu behind
  // it. Offer them with mge::OfferClaim, found by mge::Pattern; each comes back to the kernel
  // rows as a problem of several nodes.
  t.graph = nullptr;
  t.strategy = &kStrategyTable;
  t.extension = nullptr;
});

}  // namespace
}  // namespace mge::null

MGE_PLUGIN_ENTRY(mge::null::kPlugin)
