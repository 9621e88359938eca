// SPDX-License-Identifier: Apache-2.0
// A backend whose kernels do almost nothing, for measuring the cost of a step around its kernel (plan_step.cc).
#include "mge/plugin.hpp"

namespace {

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    list.Add({.name = "nothing to do", .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_ONLY_BY_NAME});
    return {};
  }
  explicit Device(uint32_t) {}
};

struct Sin {
  static constexpr const char* kOp = "Sin";
  static constexpr const char* kId = "trivial.sin";
  static mge::Support Supports(const mge::Problem& p) {
    return p.node_count() == 1 && p.input(0).dtype() == MGE_DTYPE_F32 ? mge::Yes() : mge::No("only a Sin of float32");
  }
  explicit Sin(const mge::Problem&) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    *mge::At<float>(run, y) = *mge::At<float>(run, x) + 1;
    return MGE_OK;
  }
  mge::Slot x, y;
};
constexpr mge::KernelRow kSin = mge::Row<Sin>();

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "trivial", kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kSin>;
};

}  // namespace

MGE_BACKEND(Backend);
