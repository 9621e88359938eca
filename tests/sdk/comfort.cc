// SPDX-License-Identifier: Apache-2.0
// plugin.hpp where exceptions and run-time types are switched off: compiled, never run.
#include "mge/plugin.hpp"

namespace {

struct Args {
  mge::Slot x;
};
mge_code Launch(const Args&, const mge_run*) { return MGE_OK; }
void Offer(const mge::Problem&, mge::Offers& offers) { offers.Add({.id = "comfort"}); }
mge::KernelPtr Make(const mge::Problem&, const mge::Candidate&) {
  return mge::MakeSimple<Args, Launch>([](const mge::Binding& b) { return Args{b.input(0)}; });
}
const mge::KernelRow kRow = {"Relu", Offer, Make};
const mge::KernelRow* const* Rows(uint64_t* count) {
  static const mge::KernelRow* const rows[] = {&kRow};
  *count = 1;
  return rows;
}
constexpr mge_kernel_api kApi = mge::KernelTable<Rows>::Api("1");
constexpr auto kPlugin = mge::Table<mge_plugin>([](auto& t) {
  t.name = mge::Text("comfort");
  t.version = mge::Text("1");
  t.kernel = &kApi;
});

}  // namespace

MGE_PLUGIN_ENTRY(kPlugin)
