// SPDX-License-Identifier: Apache-2.0
// BatchNormalization in training and its gradients, of float32 with channels last. Instead of x, all passes read the
// difference to a value near it, so that no large numbers cancel.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "support/kernel.h"
#include "support/work.h"
#include "vec/channel.h"

namespace mge::cpu {
namespace {

struct Args {
  Slot x, dy, scale, bias, mean, variance;  // dy: of the gradients; bias and the statistics: of the operator
  Slot y, second, third;                    // running mean and variance, or the gradients by scale and B
  Slot workspace;
  int64_t channels, pixels;
  double epsilon, momentum;
  bool has_second, has_third;
  Isa isa;
  Chunks chunks;  // of blocks of kChannelRows pixels
  uint64_t sums_bytes() const { return chunks.count * 2 * static_cast<uint64_t>(channels) * sizeof(double); }
  // The sums of each chunk, and five numbers of each channel.
  uint64_t workspace_bytes() const { return sums_bytes() + 5 * static_cast<uint64_t>(channels) * sizeof(float); }
};

// The numbers of each channel in the workspace.
struct Numbers {
  Numbers(const Args& a, const mge_run* run) : sums(At<double>(run, a.workspace)) {
    auto* from = reinterpret_cast<float*>(At<char>(run, a.workspace) + a.sums_bytes());
    for (float** p : {&mean, &scale, &factor, &add, &variance}) *p = std::exchange(from, from + a.channels);
  }
  double* sums;
  float *mean, *scale, *factor, *add, *variance;
};

// Calls body(chunk, first pixel, end) for every chunk.
template <typename F>
void ForPixels(const Args& a, const mge_run* run, F body) {
  ParallelFor(run, a.chunks.count, [&](uint64_t chunk) {
    body(chunk, static_cast<int64_t>(a.chunks.begin(chunk)) * kChannelRows,
         std::min(a.pixels, static_cast<int64_t>(a.chunks.end(chunk)) * kChannelRows));
  });
}

// Sums over all pixels. Afterwards the first 2 * channels sums are those of all chunks.
void SumAll(const Args& a, const mge_run* run, const ChannelRows& rows, const float* shift, double* sums) {
  const int64_t size = 2 * a.channels;
  ForPixels(a, run, [&](uint64_t chunk, int64_t begin, int64_t end) {
    Channel(a.isa).sums(rows, shift, begin, end, sums + static_cast<int64_t>(chunk) * size);
  });
  for (int64_t chunk = 1; chunk < static_cast<int64_t>(a.chunks.count); ++chunk) {
    for (int64_t i = 0; i < size; ++i) sums[i] += sums[chunk * size + i];
  }
}

// Computes the mean and variance of each channel of x.
void FindMoments(const Args& a, const mge_run* run, const float* x, const Numbers& n) {
  SumAll(a, run, {x, nullptr, a.channels}, x, n.sums);  // the first pixel is near the mean
  for (int64_t c = 0; c < a.channels; ++c) {
    const double d = n.sums[c] / static_cast<double>(a.pixels);
    n.mean[c] = static_cast<float>(static_cast<double>(x[c]) + d);
    n.variance[c] = static_cast<float>(std::max(0.0, n.sums[a.channels + c] / static_cast<double>(a.pixels) - d * d));
  }
}

double RootOf(const Args& a, const Numbers& n, int64_t c) {
  return 1 / std::sqrt(static_cast<double>(n.variance[c]) + a.epsilon);
}

mge_code LaunchForward(const Args& a, const mge_run* run) {
  const Numbers n(a, run);
  const float* x = At<float>(run, a.x);
  const float* scale = At<float>(run, a.scale);
  FindMoments(a, run, x, n);
  for (int64_t c = 0; c < a.channels; ++c) n.scale[c] = static_cast<float>(static_cast<double>(scale[c]) * RootOf(a, n, c));
  auto running = [&](const Slot& to, const Slot& old, const float* now) {
    float* out = At<float>(run, to);
    const float* before = At<float>(run, old);
    for (int64_t c = 0; c < a.channels; ++c) {
      out[c] =
          static_cast<float>(static_cast<double>(before[c]) * a.momentum + static_cast<double>(now[c]) * (1 - a.momentum));
    }
  };
  const float* bias = At<float>(run, a.bias);
  float* y = At<float>(run, a.y);
  ForPixels(a, run, [&](uint64_t, int64_t begin, int64_t end) {
    Channel(a.isa).scale({x, nullptr, a.channels}, n.mean, n.scale, bias, nullptr, y, begin, end);
  });
  if (a.has_second) running(a.second, a.mean, n.mean);
  if (a.has_third) running(a.third, a.variance, n.variance);
  return MGE_OK;
}

// dX = scale root (dY - mean(dY) - (x - mean) root^2 mean(dY (x - mean)))
mge_code LaunchGradient(const Args& a, const mge_run* run) {
  const Numbers n(a, run);
  const float* x = At<float>(run, a.x);
  const ChannelRows rows = {x, At<float>(run, a.dy), a.channels};
  const float* scale = At<float>(run, a.scale);
  FindMoments(a, run, x, n);
  SumAll(a, run, rows, n.mean, n.sums);
  for (int64_t c = 0; c < a.channels; ++c) {
    const double root = RootOf(a, n, c), factor = static_cast<double>(scale[c]) * root;
    const double sum = n.sums[c], product = n.sums[a.channels + c], count = static_cast<double>(a.pixels);
    n.factor[c] = static_cast<float>(factor);
    n.scale[c] = static_cast<float>(-factor * root * root * product / count);
    n.add[c] = static_cast<float>(-factor * sum / count);
    if (a.has_second) At<float>(run, a.second)[c] = static_cast<float>(product * root);
    if (a.has_third) At<float>(run, a.third)[c] = static_cast<float>(sum);
  }
  float* y = At<float>(run, a.y);
  ForPixels(a, run, [&](uint64_t, int64_t begin, int64_t end) {
    Channel(a.isa).scale(rows, n.mean, n.scale, n.add, n.factor, y, begin, end);
  });
  return MGE_OK;
}

template <bool kGradient>
struct TrainingRow {
  static constexpr int kX = kGradient ? 1 : 0, kScale = kGradient ? 2 : 1;

  static double SerialUs(const Value& x) {
    const auto bytes = static_cast<double>(x.bytes());
    return 0.5 + StreamUs((kGradient ? 6 : 3) * bytes);
  }

  static Args ArgsOf(const Node& n, Isa isa) {
    const Value x = n.input(kX);
    Args a = {};
    a.isa = isa;
    a.channels = x.dim(1);
    a.pixels = static_cast<int64_t>(x.elements()) / a.channels;
    a.epsilon = static_cast<double>(n.Float("epsilon"));
    a.momentum = static_cast<double>(n.Float("momentum"));
    a.has_second = n.has_output(1);
    a.has_third = n.has_output(2);
    const int64_t blocks = (a.pixels + kChannelRows - 1) / kChannelRows;
    a.chunks = SplitWork(static_cast<uint64_t>(blocks), SerialUs(x) / static_cast<double>(blocks));
    return a;
  }

  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    const Node n = p.node();
    const Value x = n.input(kX);
    if (!kGradient && !n.Int("training_mode")) return offers.Refuse("only in training");
    if (x.rank() < 2 || x.rank() > 5 || x.elements() == 0) return offers.Refuse("only elements with a channel dimension");
    for (int i = 0; i < (kGradient ? 3 : 5); ++i) {
      if (n.input(i).dtype() != MGE_DTYPE_F32) return offers.Refuse("in training only float32");
      const bool parameter = i != 0 && i != kX;
      if (parameter && static_cast<int64_t>(n.input(i).elements()) != x.dim(1)) {
        return offers.Refuse("parameters are not one per channel");
      }
    }
    if (!std::ranges::equal(n.input(0).dims(), x.dims())) return offers.Refuse("dY has another shape than X");
    if (!n.has_output(0)) return offers.Refuse("the first output is absent");
    if (!kGradient && (n.has_output(3) || n.has_output(4))) return offers.Refuse("outputs of operator sets before 14");
    const bool plain = x.rank() == 2;
    const Isa isa = AllowedIsa();
    Candidate c = {.id = kGradient ? "cpu.batch_norm.gradient" : "cpu.batch_norm.training",
                   .attributes = MGE_KERNEL_DETERMINISTIC,
                   .workspace = ArgsOf(n, isa).workspace_bytes(),
                   .cost_us = RunUs(p, SerialUs(x)),
                   .in_place = {{0, static_cast<uint32_t>(p.operand(0, 0))}}};
    c.inputs.assign(static_cast<size_t>(p.input_count()), PlainLayout());
    c.outputs.assign(static_cast<size_t>(p.output_count()), PlainLayout());
    for (int i = 0; i <= kX && !plain; ++i) {
      if (n.input(i).is_constant()) return offers.Refuse("a constant image, which is always plain");
      c.inputs[static_cast<size_t>(p.operand(0, i))] = ChannelsLast(x.rank());
    }
    if (!plain) c.outputs[0] = ChannelsLast(x.rank());
    Add(offers, isa, std::move(c));
  }

  static KernelPtr Make(const Problem& p, const Candidate& c) {
    const Node n = p.node();
    const Args a = ArgsOf(n, IsaOf(c));
    std::array<int, 5> operands = {};
    for (int i = 0; i < (kGradient ? 3 : 5); ++i) operands[static_cast<size_t>(i)] = p.operand(0, i);
    auto bind = [a, operands](const Binding& b) {
      Args out = a;
      out.x = b.input(operands[kX]);
      out.scale = b.input(operands[kScale]);
      if (kGradient) {
        out.dy = b.input(operands[0]);
      } else {
        out.bias = b.input(operands[2]);
        out.mean = b.input(operands[3]);
        out.variance = b.input(operands[4]);
      }
      out.y = b.output(0);
      int next = 1;  // absent outputs have no number
      if (a.has_second) out.second = b.output(next++);
      if (a.has_third) out.third = b.output(next);
      out.workspace = b.workspace();
      return out;
    };
    return MakeSimple < Args, kGradient ? LaunchGradient : LaunchForward > (bind, a.workspace_bytes());
  }
};

constexpr KernelRow kRows[] = {Row<TrainingRow<false>>("BatchNormalization"),
                               Row<TrainingRow<true>>("BatchNormalizationGradient", "mge")};

}  // namespace

MGE_KERNELS(batch_norm_training) = kRows;

}  // namespace mge::cpu
