// SPDX-License-Identifier: Apache-2.0
// A backend whose kernel wants its input with channels last, and the reorders that this obliges it to offer.
#include <algorithm>
#include <cstring>

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

// [mean]
// The mean of each channel. With channels last, it reads memory from front to back.
struct ChannelMean {
  static constexpr const char* kOp = "GlobalAveragePool";
  static constexpr const char* kId = "example.channel_mean";

  static mge::Support Supports(const mge::Problem& p) {
    if (p.node_count() != 1) return mge::No("only a GlobalAveragePool by itself");
    if (p.input(0).dtype() != MGE_DTYPE_F32) return mge::No("only float32");
    if (p.input(0).rank() < 3 || p.input(0).rank() > 5) return mge::No("only three to five dimensions");
    if (!p.is_static() || p.adds(0)) return mge::No("only known shapes, and outputs that are replaced");
    return p.input(0).elements() > 0 ? mge::Yes() : mge::No("only inputs with elements");
  }
  // The shapes of the problem stay logical (N, C, H, W); only the order of the elements in memory is another one.
  static void Describe(const mge::Problem& p, mge::Candidate& c) {
    c.inputs = {mge::ChannelsLast(p.input(0).rank())};
    c.outputs = {mge::PlainLayout()};
  }
  explicit ChannelMean(const mge::Problem& p) : batch(p.input(0).dim(0)), channels(p.input(0).dim(1)), pixels(1) {
    for (int d = 2; d < p.input(0).rank(); ++d) pixels *= p.input(0).dim(d);
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<const float>(run, x);
    float* to = mge::At<float>(run, y);
    for (int64_t n = 0; n < batch; ++n, to += channels) {
      std::fill_n(to, channels, 0.0f);
      for (int64_t i = 0; i < pixels; ++i, from += channels) {
        for (int64_t c = 0; c < channels; ++c) to[c] += from[c];
      }
      for (int64_t c = 0; c < channels; ++c) to[c] /= static_cast<float>(pixels);
    }
    return MGE_OK;
  }

  int64_t batch, channels, pixels;
  mge::Slot x, y;
};
// [mean]

// [reorder]
// mge.Reorder: the same tensor in another layout. One kernel for every pair of plain and permuted layouts.
struct Reorder {
  static constexpr const char* kOp = "Reorder";
  static constexpr const char* kDomain = "mge";
  static constexpr const char* kId = "example.reorder";
  static constexpr int kMaxRank = 5;

  static mge::Support Supports(const mge::Problem& p) {
    if (p.input(0).dtype() != MGE_DTYPE_F32) return mge::No("only float32");
    if (p.input(0).rank() > kMaxRank || !p.is_static()) return mge::No("only known shapes of up to five dimensions");
    auto known = [](const mge_layout* l) {
      return mge::IsPlain(l) || (l->kind == MGE_LAYOUT_PERMUTED && l->block_count == 0);
    };
    return known(p.input(0).layout()) && known(p.output(0).layout()) ? mge::Yes() : mge::No("only permuted layouts");
  }
  explicit Reorder(const mge::Problem& p) : rank(p.input(0).rank()) {
    for (int d = 0; d < rank; ++d) size[d] = p.input(0).dim(d);
    SetSteps(p.input(0).layout(), from_step);
    SetSteps(p.output(0).layout(), to_step);
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  mge_code Launch(const mge_run* run) const {
    const float* from = mge::At<const float>(run, x);
    float* to = mge::At<float>(run, y);
    int64_t count = 1;
    for (int d = 0; d < rank; ++d) count *= size[d];
    for (int64_t i = 0; i < count; ++i) {
      int64_t source = 0, target = 0, rest = i;
      for (int d = rank - 1; d >= 0; rest /= size[d--]) {
        source += rest % size[d] * from_step[d];
        target += rest % size[d] * to_step[d];
      }
      to[target] = from[source];
    }
    return MGE_OK;
  }

  // Writes the distance in memory of neighbours along each axis. perm[i] is the axis at position i in memory, the last one
  // innermost.
  void SetSteps(const mge_layout* layout, int64_t (&step)[kMaxRank]) const {
    int64_t next = 1;
    for (int i = rank - 1; i >= 0; --i) {
      const int axis = mge::IsPlain(layout) ? i : layout->perm[i];
      step[axis] = next;
      next *= size[axis];
    }
  }
  int rank;
  int64_t size[kMaxRank] = {}, from_step[kMaxRank] = {}, to_step[kMaxRank] = {};
  mge::Slot x, y;
};
// [reorder]

constexpr mge::KernelRow kChannelMean = mge::Row<ChannelMean>();
constexpr mge::KernelRow kReorder = mge::Row<Reorder>();

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "example_layouts", kVersion = "1.0";
  using Device = ::Device;
  using Kernels = mge::Kernels<kChannelMean, kReorder>;
};

}  // namespace

MGE_BACKEND(Backend);
