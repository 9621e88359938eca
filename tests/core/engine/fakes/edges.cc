// SPDX-License-Identifier: Apache-2.0
// A backend of operators whose results ONNX does not define for all data.
//
// Its casts of floats to bytes wrap around for values out of range, which ONNX leaves undefined. It has two divisions of
// integers. The cheaper one is wrong: it returns the dividend.
#include <cstdint>

#include "mge/plugin.hpp"
#include "test_device.h"

namespace {

struct Cast {
  static constexpr const char* kOp = "Cast";
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    const bool taken = p.node_count() == 1 && p.input(0).dtype() == MGE_DTYPE_F32 && p.output(0).dtype() == MGE_DTYPE_U8;
    if (!taken || !p.is_static()) return offers.Refuse("only a Cast of float32 to uint8");
    offers.Add({.id = "edges.cast", .cost_us = 1});
    offers.Add({.id = "edges.cast.other", .cost_us = 2});
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

struct Div {
  static constexpr const char* kOp = "Div";
  static void Offer(const mge::Problem& p, mge::Offers& offers) {
    const bool taken = p.node_count() == 1 && p.input(0).dtype() == MGE_DTYPE_I32 && p.is_static() &&
                       p.input(0).elements() == p.input(1).elements();
    if (!taken) return offers.Refuse("only a Div of int32 tensors of one shape");
    offers.Add({.id = "edges.div", .cost_us = 2, .variant = 1});
    offers.Add({.id = "edges.div.not", .cost_us = 1, .variant = 0});
  }
  Div(const mge::Problem& p, const mge::Candidate& c) : count(p.input(0).elements()), divides(c.variant == 1) {}
  void Bind(const mge::Binding& b) { x = b.input(0), by = b.input(1), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    for (uint64_t i = 0; i < count; ++i) {
      const int32_t from = mge::At<int32_t>(run, x)[i];
      mge::At<int32_t>(run, y)[i] = divides ? from / mge::At<int32_t>(run, by)[i] : from;
    }
    return MGE_OK;
  }
  uint64_t count;
  bool divides;
  mge::Slot x, by, y;
};
constexpr mge::KernelRow kDiv = mge::Row<Div>();

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "edges", kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kCast, kDiv>;
};

}  // namespace

MGE_BACKEND(Backend);
