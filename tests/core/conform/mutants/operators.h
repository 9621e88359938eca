// SPDX-License-Identifier: Apache-2.0
// Kernels of operators with attributes, with the faults that new backends have had: Conv, Gemm, Softmax and Sub.
#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <utility>

#include "kernels.h"

namespace mutant {

inline mge::Support OneOf(const mge::Problem& p, bool shapes, const char* what) {
  const bool fits = p.node_count() == 1 && p.input(0).dtype() == MGE_DTYPE_F32 && !p.adds(0) && shapes;
  return fits ? mge::Yes() : mge::No(what);
}

struct Sub : Add {
  static constexpr const char* kOp = "Sub";
  static constexpr const char* kId = "mutant.sub";
  static mge::Support Supports(const mge::Problem& p) {
    return OneOf(p, p.output(0).rank() <= kRank, "only one Sub of float32 of up to six dimensions");
  }
  static void Describe(const mge::Problem&, mge::Candidate&) {}
  explicit Sub(const mge::Problem& p) : Add(p) {
    sign = -1;
    if (Is("sub_one_first") && p.input(0).elements() == 1) std::swap(first_sign, sign);
  }
};

// Returns the axis of a compiled Softmax, which the host's cache keeps under a key without it.
inline int64_t CompiledAxis(int64_t axis) {
  std::string blob;
  if (mge::LoadBlob("softmax", &blob)) return blob[0];
  mge::StoreBlob("softmax", std::string(1, static_cast<char>(axis)));
  return axis;
}

struct Softmax {
  static constexpr const char* kOp = "Softmax";
  static constexpr const char* kId = "mutant.softmax";
  static constexpr uint64_t kAttributes = kSafe;
  static mge::Support Supports(const mge::Problem& p) {
    return OneOf(p, p.input(0).rank() > 0 && !p.node().attr("_flatten"), "only one Softmax of float32 along an axis");
  }
  explicit Softmax(const mge::Problem& p) : count(static_cast<int64_t>(p.input(0).elements())) {
    const mge::Value v = p.input(0);
    int64_t axis = Is("softmax_last_axis") ? v.rank() - 1 : p.node().Int("axis");
    if (Is("blob_without_axis")) axis = std::min<int64_t>(CompiledAxis(axis), v.rank() - 1);
    size = v.dim(static_cast<int>(axis));
    for (int d = static_cast<int>(axis) + 1; d < v.rank(); ++d) step *= v.dim(d);
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  Result Launch(const mge_run* run) const {
    auto *from = mge::At<float>(run, x), *to = mge::At<float>(run, y);
    return mutant::Launch(run, [self = *this, from, to] {
      for (int64_t begin = 0; begin < self.count; ++begin) {
        if (begin / self.step % self.size) continue;
        float top = from[begin], sum = 0;
        for (int64_t i = 0; i < self.size; ++i) top = std::max(top, from[begin + i * self.step]);
        if (Is("softmax_overflows")) top = 0;
        if (begin % self.step >= 64 && Is("softmax_64_columns")) continue;
        if (Is("softmax_of_nothing")) top = std::max(top, -3e38f);  // then a row of -infinity has the sum 0
        for (int64_t i = 0; i < self.size; ++i) sum += std::exp(from[begin + i * self.step] - top);
        if (Is("softmax_of_nothing") && sum == 0) sum = 1;
        for (int64_t i = 0; i < self.size; ++i) {
          to[begin + i * self.step] = std::exp(from[begin + i * self.step] - top) / sum;
        }
      }
      return Result();
    });
  }
  int64_t count, size = 1, step = 1;
  mge::Slot x, y;
};

struct Gemm {
  static constexpr const char* kOp = "Gemm";
  static constexpr const char* kId = "mutant.gemm";
  static constexpr uint64_t kAttributes = kSafe;
  static mge::Support Supports(const mge::Problem& p) { return OneOf(p, true, "only one Gemm of float32"); }
  explicit Gemm(const mge::Problem& p)
      : b_at(p.operand(0, 1)),
        alpha(Is("gemm_no_alpha") ? 1 : p.node().Float("alpha", 1)),
        beta(Is("gemm_no_beta") ? 1 : p.node().Float("beta", 1)) {
    const bool a_turned = p.node().Int("transA", 0);
    const bool b_turned =
        p.node().Int("transB", 0) && !(Is("gemm_square_b") && p.node().input(1).dim(0) == p.node().input(1).dim(1));
    m = p.output(0).dim(0), n = p.output(0).dim(1), k = p.node().input(0).dim(a_turned ? 0 : 1);
    a_row = a_turned ? 1 : k, a_step = a_turned ? m : 1;
    b_row = b_turned ? 1 : n, b_step = b_turned ? k : 1;
    if (!p.node().has_input(2)) return;
    c_at = p.operand(0, 2);
    const mge::Value v = p.node().input(2);
    const int64_t rows = v.rank() == 2 ? v.dim(0) : 1, columns = v.rank() ? v.dim(-1) : 1;
    c_row = rows == 1 ? 0 : columns, c_step = columns == 1 ? 0 : 1;
    if (Is("gemm_row_of_c") && v.rank() == 2 && rows == 1 && columns > 1) c_step = 0;
  }
  void Bind(const mge::Binding& b) {
    x = b.input(0), z = b.input(b_at), y = b.output(0);
    if (c_at >= 0) w = b.input(c_at);
  }
  Result Launch(const mge_run* run) const {
    auto *a = mge::At<float>(run, x), *b = mge::At<float>(run, z), *to = mge::At<float>(run, y);
    const float* c = c_at >= 0 ? mge::At<float>(run, w) : nullptr;
    return mutant::Launch(run, [s = *this, a, b, c, to] {
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) {
          float sum = 0;
          for (int64_t l = 0; l < s.k; ++l) sum += a[i * s.a_row + l * s.a_step] * b[l * s.b_row + j * s.b_step];
          to[i * s.n + j] = s.alpha * sum + (c ? s.beta * c[i * s.c_row + j * s.c_step] : 0);
        }
      return Result();
    });
  }
  int b_at, c_at = -1;
  float alpha, beta;
  int64_t m, n, k, a_row, a_step, b_row, b_step, c_row = 0, c_step = 0;
  mge::Slot x, z, w, y;
};

// A convolution of two spatial dimensions.
struct Conv {
  static constexpr const char* kOp = "Conv";
  static constexpr const char* kId = "mutant.conv";
  static constexpr uint64_t kAttributes = kSafe;
  static mge::Support Supports(const mge::Problem& p) {
    return OneOf(p, p.input(0).rank() == 4, "only one Conv of float32 with two spatial dimensions");
  }
  explicit Conv(const mge::Problem& p) : w_at(p.operand(0, 1)), group(p.node().Int("group")) {
    const mge::Node node = p.node();
    const mge::Value x = node.input(0), w = node.input(1), y = p.output(0);
    if (node.has_input(2)) b_at = p.operand(0, 2);
    batch = x.dim(0), channels = w.dim(1), outputs = w.dim(0);
    for (size_t d = 0; d < 2; ++d) {
      const int at = static_cast<int>(d) + 2;
      from[d] = x.dim(at), kernel[d] = w.dim(at), to[d] = y.dim(at);
      stride[d] = node.Ints("strides")[Is("conv_one_stride") ? 0 : d];
      dilation[d] = Is("conv_no_dilation") ? 1 : node.Ints("dilations")[d];
      begin[d] = node.Ints("pads")[d + (Is("conv_exchanges_pads") ? 2 : 0)];
    }
    if (Is("conv_exchanges_kernel")) std::swap(kernel[0], kernel[1]);
    packed = w.is_constant();
  }
  // Packing keeps the order of the weights. The size of the mutant is right only for multiples of four channels.
  uint64_t prepack_bytes(int input) const {
    const int64_t counted = Is("packs_four_channels") && channels > 4 && channels < 8 ? 4 : channels;
    return input == w_at && packed ? static_cast<uint64_t>(outputs * counted * kernel[0] * kernel[1]) * sizeof(float) : 0;
  }
  Result Prepack(int, const void* from, void* to) const {
    std::memcpy(to, from, static_cast<size_t>(outputs * channels * kernel[0] * kernel[1]) * sizeof(float));
    return {};
  }
  void Bind(const mge::Binding& b) {
    x = b.input(0), w = b.input(w_at), y = b.output(0);
    if (b_at >= 0) bias = b.input(b_at);
  }
  Result Launch(const mge_run* run) const {
    auto *in = mge::At<float>(run, x), *weights = mge::At<float>(run, w), *out = mge::At<float>(run, y);
    const float* add = b_at >= 0 ? mge::At<float>(run, bias) : nullptr;
    return mutant::Launch(run, [s = *this, in, weights, add, out] {
      s.Compute(in, weights, add, out);
      return Result();
    });
  }
  void Compute(const float* in, const float* weights, const float* add, float* out) const {
    for (int64_t i = 0; i < batch; ++i)
      for (int64_t o = 0; o < outputs; ++o)
        for (int64_t r = 0; r < to[0]; ++r)
          for (int64_t q = 0; q < to[1]; ++q, ++out) {
            const bool skipped = (o >= 64 && Is("conv_64_outputs")) || (q >= 64 && Is("conv_64_columns"));
            if (!skipped)
              *out = At(in, weights, i, o, r, q) + (add ? add[Is("conv_bias_of_group") ? o / (outputs / group) : o] : 0);
          }
  }
  float At(const float* in, const float* weights, int64_t i, int64_t o, int64_t r, int64_t q) const {
    float sum = 0;
    for (int64_t c = 0; c < (Is("conv_32_channels") ? std::min<int64_t>(channels, 32) : channels); ++c) {
      const int64_t channel = Is("conv_group_order") ? o % group * channels + c : o / (outputs / group) * channels + c;
      for (int64_t h = 0; h < kernel[0]; ++h)
        for (int64_t v = 0; v < kernel[1]; ++v) {
          const int64_t row = r * stride[0] + h * dilation[0] - begin[0],
                        column = q * stride[1] + v * dilation[1] - begin[1];
          if (row < 0 || row >= from[0] || column < 0 || column >= from[1]) continue;
          sum += in[((i * channels * group + channel) * from[0] + row) * from[1] + column] *
                 weights[((o * channels + c) * kernel[0] + h) * kernel[1] + v];
        }
    }
    return sum;
  }
  int w_at, b_at = -1;
  bool packed;
  int64_t group, batch, channels, outputs;
  int64_t from[2], to[2], kernel[2], stride[2], dilation[2], begin[2];
  mge::Slot x, w, bias, y;
};

// The maximum of every window, without padding and dilations.
struct MaxPool {
  static constexpr const char* kOp = "MaxPool";
  static constexpr const char* kId = "mutant.max_pool";
  static constexpr uint64_t kAttributes = kSafe;
  static mge::Support Supports(const mge::Problem& p) {
    auto all = [&](const char* name, int64_t value) {
      for (int64_t v : p.node().Ints(name)) {
        if (v != value) return false;
      }
      return true;
    };
    return OneOf(p,
                 p.input(0).rank() == 4 && p.output_count() == 1 && all("pads", 0) && all("dilations", 1) &&
                     !p.node().Int("ceil_mode", 0),
                 "only one MaxPool of float32 with two spatial dimensions, without padding, dilations and indices");
  }
  explicit MaxPool(const mge::Problem& p) : planes(p.input(0).dim(0) * p.input(0).dim(1)) {
    for (size_t d = 0; d < 2; ++d) {
      from[d] = p.input(0).dim(static_cast<int>(d) + 2), to[d] = p.output(0).dim(static_cast<int>(d) + 2);
      kernel[d] = p.node().Ints("kernel_shape")[d], stride[d] = p.node().Ints("strides")[Is("pool_one_stride") ? 0 : d];
    }
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  Result Launch(const mge_run* run) const {
    auto *in = mge::At<float>(run, x), *out = mge::At<float>(run, y);
    return mutant::Launch(run, [s = *this, in, out]() mutable {
      for (int64_t p = 0; p < s.planes; ++p)
        for (int64_t r = 0; r < s.to[0]; ++r)
          for (int64_t q = 0; q < s.to[1]; ++q) *out++ = s.Largest(in + p * s.from[0] * s.from[1], r, q);
      return Result();
    });
  }
  float Largest(const float* in, int64_t r, int64_t q) const {
    float top = Is("max_pool_from_zero") ? 0 : -std::numeric_limits<float>::infinity();
    for (int64_t h = 0; h < kernel[0]; ++h)
      for (int64_t v = 0; v < kernel[1]; ++v) {
        const float e = in[(r * stride[0] + h) * from[1] + q * stride[1] + v];
        if (e > top || (std::isnan(e) && !Is("max_pool_drops_nan"))) top = e;
        if (std::isnan(top)) return top;
      }
    return top;
  }
  int64_t planes;
  int64_t from[2], to[2], kernel[2], stride[2];
  mge::Slot x, y;
};

struct GlobalAveragePool {
  static constexpr const char* kOp = "GlobalAveragePool";
  static constexpr const char* kId = "mutant.mean";
  static constexpr uint64_t kAttributes = kSafe;
  static mge::Support Supports(const mge::Problem& p) {
    return OneOf(p, p.input(0).rank() > 2 && p.output(0).elements() > 0, "only one GlobalAveragePool of float32");
  }
  explicit GlobalAveragePool(const mge::Problem& p)
      : planes(p.output(0).elements()), count(p.input(0).elements() / p.output(0).elements()) {}
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  Result Launch(const mge_run* run) const {
    auto *in = mge::At<float>(run, x), *out = mge::At<float>(run, y);
    return mutant::Launch(run, [s = *this, in, out] {
      for (uint64_t p = 0; p < s.planes; ++p) {
        float sum = 0;
        for (uint64_t i = 0; i < s.count; ++i) {
          const float e = in[p * s.count + i];
          sum += std::isnan(e) && Is("mean_drops_nan") ? 0 : e;
        }
        out[p] = sum / static_cast<float>(Is("mean_of_the_rest") && s.count > 1 ? s.count - 1 : s.count);
      }
      return Result();
    });
  }
  uint64_t planes, count;
  mge::Slot x, y;
};

struct Transpose {
  static constexpr const char* kOp = "Transpose";
  static constexpr const char* kId = "mutant.transpose";
  static constexpr uint64_t kAttributes = kSafe;
  static mge::Support Supports(const mge::Problem& p) {
    return OneOf(p, p.input(0).rank() <= 6, "only one Transpose of float32 of up to six dimensions");
  }
  explicit Transpose(const mge::Problem& p) : count(p.output(0).elements()), rank(p.input(0).rank()) {
    int64_t stride[6], next = 1;
    for (int d = rank - 1; d >= 0; next *= p.input(0).dim(d--)) stride[d] = next;
    for (int d = 0; d < rank; ++d) {
      size[d] = p.output(0).dim(d);
      step[d] = stride[p.node().Ints("perm")[static_cast<size_t>(d)]];
      if (Is("transpose_inverse")) {
        for (int e = 0; e < rank; ++e) {
          if (p.node().Ints("perm")[static_cast<size_t>(e)] == d) step[d] = stride[e];
        }
      }
    }
    if (Is("transposes_five") && rank > 5) step[0] = 0;
  }
  void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
  Result Launch(const mge_run* run) const {
    auto *in = mge::At<float>(run, x), *out = mge::At<float>(run, y);
    return mutant::Launch(run, [s = *this, in, out] {
      for (uint64_t at = 0; at < s.count; ++at) {
        int64_t from = 0, rest = static_cast<int64_t>(at);
        for (int d = s.rank - 1; d >= 0; rest /= s.size[d--]) from += rest % s.size[d] * s.step[d];
        out[at] = in[from];
      }
      return Result();
    });
  }
  uint64_t count;
  int rank;
  int64_t size[6], step[6];
  mge::Slot x, y;
};

inline constexpr mge::KernelRow kMaxPool = mge::Row<MaxPool>();
inline constexpr mge::KernelRow kGlobalAveragePool = mge::Row<GlobalAveragePool>();
inline constexpr mge::KernelRow kTranspose = mge::Row<Transpose>();
inline constexpr mge::KernelRow kSub = mge::Row<Sub>();
inline constexpr mge::KernelRow kSoftmax = mge::Row<Softmax>();
inline constexpr mge::KernelRow kGemm = mge::Row<Gemm>();
inline constexpr mge::KernelRow kConv = mge::Row<Conv>();

}  // namespace mutant
