// SPDX-License-Identifier: Apache-2.0
// A backend with a fusion: one kernel computes Add alone, and Add followed by Relu.
#include <algorithm>

#include "mge/plugin.hpp"

namespace {

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    list.Add(
        {.name = "host memory", .flags = MGE_DEVICE_HOST_ACCESSIBLE | MGE_DEVICE_SURVIVES_FORK | MGE_DEVICE_ONLY_BY_NAME});
    return {};
  }
  explicit Device(uint32_t) {}
};

// [claim]
// Returns whether the kernel supports this Add. The claim checks it too, because every claimed group must have a kernel.
bool IsPlainSum(const mge::Node& add) {
  for (int i : {0, 1}) {
    if (add.input(i).dtype() != MGE_DTYPE_F32 || add.input(i).elements() != add.output(0).elements()) return false;
  }
  return true;
}

void ClaimAddRelu(const mge::Pattern& graph, mge::ClaimList& claims) {
  static const mge::PatternNode add_relu = mge::Op("Relu", {mge::Op("Add").Where(IsPlainSum)});
  for (const mge::Match& match : graph.FindAll(add_relu)) {
    // this value is neither written nor read
    double saved = static_cast<double>(graph.node(match.root).input(0).bytes()) / 5000;
    claims.Offer("add_relu", match.nodes, saved);
  }
}
// [claim]

// [group]
struct AddRelu {
  static constexpr const char* kOp = "Add";  // the group's first node
  static constexpr const char* kId = "example.add_relu";

  static mge::Support Supports(const mge::Problem& p) {
    bool group = p.node_count() == 2 && p.last().Is("Relu");
    if (p.node_count() != 1 && !group) return mge::No("only Add, and Add with Relu");
    if (p.output_count() != 1) return mge::No("the sum is needed outside of the group, too");
    if (!p.is_static()) return mge::No("only shapes that are known before the run");
    if (!IsPlainSum(p.node())) return mge::No("only float32, and no broadcast");
    if (p.adds(0)) return mge::No("it replaces its output, it does not add to it");
    return mge::Yes();
  }
  static void Describe(const mge::Problem& p, mge::Candidate& candidate) {
    candidate.cost_us = 0.1 + static_cast<double>(p.output(0).bytes()) * 3 / 10000;
    candidate.in_place = {{0, 0}};
  }
  explicit AddRelu(const mge::Problem& p)
      : count(p.output(0).elements()), relu(p.node_count() == 2), second(p.operand(0, 1)) {}
  void Bind(const mge::Binding& binding) {
    a = binding.input(0);
    b = binding.input(second);  // for x + x this is input 0 again: the list contains each operand once
    y = binding.output(0);
  }
  mge_code Launch(const mge_run* run) const {
    const float* from_a = mge::At<const float>(run, a);
    const float* from_b = mge::At<const float>(run, b);
    float* to = mge::At<float>(run, y);
    for (uint64_t i = 0; i < count; ++i) {
      float sum = from_a[i] + from_b[i];
      to[i] = relu && sum < 0 ? 0 : sum;
    }
    return MGE_OK;
  }

  uint64_t count;
  bool relu;
  int second;
  mge::Slot a, b, y;
};
// [group]
constexpr mge::KernelRow kAddRelu = mge::Row<AddRelu>();

// [backend]
struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "example_fusion", kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kAddRelu>;
  using Claims = mge::Claims<ClaimAddRelu>;
};
// [backend]

}  // namespace

MGE_BACKEND(Backend);
