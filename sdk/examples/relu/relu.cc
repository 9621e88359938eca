// SPDX-License-Identifier: Apache-2.0
// The smallest backend: one device in host memory, one operator.
#include <algorithm>

#include "mge/plugin.hpp"

namespace {

// [device]
struct Device {
  static mge::Result List(mge::DeviceList& list) {
    list.Add(
        {.name = "host memory", .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK | MGE_DEVICE_ONLY_BY_NAME});
    return {};
  }
  explicit Device(uint32_t) {}
};
// [device]

// [kernel]
struct Relu {
  static constexpr const char* kOp = "Relu";
  static constexpr const char* kId = "example.relu";

  static mge::Support Supports(const mge::Problem& p) {
    if (p.node_count() != 1) return mge::No("only a Relu by itself");
    if (p.input(0).dtype() != MGE_DTYPE_F32) return mge::No("only float32");
    if (!p.is_static()) return mge::No("only shapes that are known before the run");
    if (p.adds(0)) return mge::No("it replaces its output, it does not add to it");
    return mge::Yes();
  }
  explicit Relu(const mge::Problem& p) : count(p.input(0).elements()) {}
  void Bind(const mge::Binding& b) {
    x = b.input(0);
    y = b.output(0);
  }
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<const float>(run, x);
    float* to = mge::At<float>(run, y);
    for (uint64_t i = 0; i < count; ++i) to[i] = from[i] < 0 ? 0 : from[i];  // NaN stays NaN
    return MGE_OK;
  }

  uint64_t count;
  mge::Slot x, y;
};
constexpr mge::KernelRow kRelu = mge::Row<Relu>();
// [kernel]

// [backend]
struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "example_relu", kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kRelu>;
};
// [backend]

}  // namespace

MGE_BACKEND(Backend);
