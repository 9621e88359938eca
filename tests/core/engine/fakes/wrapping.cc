// SPDX-License-Identifier: Apache-2.0
// A backend whose two kernels cast floats to bytes as C++ does: what is out of range, which ONNX leaves open, wraps around.
#include <cstdint>

#include "mge/plugin.hpp"

namespace {

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    list.Add({.name = "a device for tests", .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_ONLY_BY_NAME});
    return {};
  }
  explicit Device(uint32_t) {}
};

struct Cast {
  static constexpr const char* kOp = "Cast";
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    const bool taken = p.node_count() == 1 && p.input(0).dtype() == MGE_DTYPE_F32 && p.output(0).dtype() == MGE_DTYPE_U8;
    if (!taken || !p.is_static()) return offers.Refuse("only a Cast of float32 to uint8");
    offers.Add({.id = "wrapping.cast", .cost_us = 1});
    offers.Add({.id = "wrapping.cast.other", .cost_us = 2});
  }
  Cast(const mge::Problem& p, const mge::Candidate&) : count(p.input(0).elements()) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<float>(run, x);
    for (uint64_t i = 0; i < count; ++i) mge::At<uint8_t>(run, y)[i] = static_cast<uint8_t>(static_cast<int>(from[i]));
    return MGE_OK;
  }
  uint64_t count;
  mge::Slot x, y;
};
constexpr mge::KernelRow kCast = mge::Row<Cast>();

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "wrapping", kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kCast>;
};

}  // namespace

MGE_BACKEND(Backend);
