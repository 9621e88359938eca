// SPDX-License-Identifier: Apache-2.0
// The steps of RNN, GRU and LSTM, after the product of inputs and W. One block runs all steps of a chain (a sequence in one
// direction), so that a barrier is enough between two steps.
#include <math.h>

#include "plugins/gpu/kernels/fault.h"
#include "plugins/gpu/kernels/recurrent.h"
#include "plugins/gpu/port.h"

namespace mge::gpu {

constexpr int kRecurrentThreads = 256;

template <typename C>
GPU_DEVICE C Gate(const GateActivation& f, float clip, C x) {
  const C limit = static_cast<C>(clip), a = static_cast<C>(f.alpha), b = static_cast<C>(f.beta);
  x = x < -limit ? -limit : x > limit ? limit : x;
  switch (f.function) {
    case GateFunction::kRelu: return x < C(0) ? C(0) : x;
    case GateFunction::kTanh: return tanh(x);
    case GateFunction::kSigmoid: {
      const C e = exp(-fabs(x));
      return x < C(0) ? e / (C(1) + e) : C(1) / (C(1) + e);
    }
    case GateFunction::kAffine: return a * x + b;
    case GateFunction::kLeakyRelu: return x < C(0) ? a * x : x;
    case GateFunction::kThresholdedRelu: return x > a ? x : C(0);
    case GateFunction::kScaledTanh: return a * tanh(b * x);
    case GateFunction::kHardSigmoid: {
      const C y = a * x + b;
      return y < C(0) ? C(0) : y > C(1) ? C(1) : y;
    }
    case GateFunction::kElu: return x < C(0) ? a * expm1(x) : x;
    case GateFunction::kSoftsign: return x / (C(1) + fabs(x));
    case GateFunction::kSoftplus: return (x > C(0) ? x : C(0)) + log1p(exp(-fabs(x)));
    default: return x;
  }
}

// The addresses of one chain's data.
template <typename T>
struct RecurrentChain {
  using C = Compute<T>;
  const RecurrentArgs& args;
  int64_t direction, sequence, width, length;
  bool backwards;
  C *gates, *h, *c, *reset;

  GPU_DEVICE RecurrentChain(const RecurrentArgs& a, int64_t number) : args(a) {
    direction = number / a.batch;
    sequence = number % a.batch;
    backwards = direction == 1 || a.reverse;
    width = a.gates * a.hidden;
    length = a.lengths ? a.lengths[sequence] : a.steps;
    if (length < 0 || length > a.steps) length = 0;  // a fault, reported in Begin
    gates = static_cast<C*>(a.work) + number * a.chain_work;
    h = gates + width;
    c = h + a.hidden;
    reset = c + a.hidden;
  }
  GPU_DEVICE int64_t Time(int64_t s) const { return backwards ? length - 1 - s : s; }
  GPU_DEVICE int64_t StateAt() const {
    return (args.batch_first ? sequence * args.directions + direction : direction * args.batch + sequence) * args.hidden;
  }
  GPU_DEVICE T* Y(int64_t t) const {
    const int64_t row = args.batch_first ? (sequence * args.steps + t) * args.directions + direction
                                         : (t * args.directions + direction) * args.batch + sequence;
    return static_cast<T*>(args.y) + row * args.hidden;
  }
  GPU_DEVICE const C* Sums(int64_t s) const {
    const int64_t t = Time(s), row = args.batch_first ? sequence * args.steps + t : t * args.batch + sequence;
    return static_cast<const C*>(args.sums) + (direction * args.steps * args.batch + row) * width;
  }
  // Returns the bias of column j. Half 0 is for the input, half 1 for the state.
  GPU_DEVICE C Bias(int half, int64_t j) const {
    return args.bias ? C(Widen(static_cast<const T*>(args.bias)[(direction * 2 + half) * width + j])) : C(0);
  }
  GPU_DEVICE C Activated(int which, C x) const { return Gate(args.f[direction][which], args.clip, x); }

  GPU_DEVICE void Begin(int thread) {
    if (thread == 0 && args.lengths) {
      const int64_t given = args.lengths[sequence];
      if (given < 0 || given > args.steps) Raise(args.fault, Fault::kLength, given, args.steps);
    }
    const bool empty = length == 0;  // its final state is 0
    for (int64_t i = thread; i < args.hidden; i += kRecurrentThreads) {
      h[i] = args.initial_h && !empty ? C(Widen(static_cast<const T*>(args.initial_h)[StateAt() + i])) : C(0);
      c[i] = args.initial_c && !empty ? C(Widen(static_cast<const T*>(args.initial_c)[StateAt() + i])) : C(0);
      for (int64_t t = length; args.y && t < args.steps; ++t) Y(t)[i] = Narrow<T>::Of(C(0));
    }
  }
  GPU_DEVICE void End(int thread) {
    for (int64_t i = thread; i < args.hidden; i += kRecurrentThreads) {
      if (args.y_h) static_cast<T*>(args.y_h)[StateAt() + i] = Narrow<T>::Of(h[i]);
      if (args.y_c) static_cast<T*>(args.y_c)[StateAt() + i] = Narrow<T>::Of(c[i]);
    }
  }

  // Computes gates[j] for first <= j < end: the product of `state` with the recurrent weights, plus sums and biases.
  GPU_DEVICE void Multiply(int64_t s, const C* state, int64_t first, int64_t end, int thread) {
    const T* __restrict__ weights = static_cast<const T*>(args.weights) + direction * args.hidden * width;
    const C* sums = Sums(s);
    for (int64_t j = first + thread; j < end; j += kRecurrentThreads) {
      const bool apart = args.kind == kGru && args.linear_before_reset && j >= 2 * args.hidden;
      C sum = Bias(1, j);
      if (!apart) sum += sums[j] + Bias(0, j);
      for (int64_t k = 0; k < args.hidden; ++k) sum += state[k] * Widen(weights[k * width + j]);
      gates[j] = sum;
    }
  }
  GPU_DEVICE void Reset(int thread) {
    for (int64_t i = thread; i < args.hidden; i += kRecurrentThreads) reset[i] = Activated(0, gates[args.hidden + i]) * h[i];
  }
  GPU_DEVICE C GruState(int64_t s, int64_t i) const {
    const C update = Activated(0, gates[i]);
    const int64_t j = 2 * args.hidden + i;
    C sum = gates[j];
    if (args.linear_before_reset) sum = Sums(s)[j] + Bias(0, j) + Activated(0, gates[args.hidden + i]) * sum;
    return (C(1) - update) * Activated(1, sum) + update * h[i];
  }
  GPU_DEVICE C LstmState(int64_t i) {
    const int64_t n = args.hidden;
    const T* peepholes = args.peepholes ? static_cast<const T*>(args.peepholes) + direction * 3 * n : nullptr;
    C in = gates[i], out = gates[n + i], forget = gates[2 * n + i];
    if (peepholes) {
      in += Widen(peepholes[i]) * c[i];
      forget += Widen(peepholes[2 * n + i]) * c[i];
    }
    in = Activated(0, in);
    forget = args.input_forget ? C(1) - in : Activated(0, forget);
    c[i] = forget * c[i] + in * Activated(1, gates[3 * n + i]);
    if (peepholes) out += Widen(peepholes[n + i]) * c[i];
    return Activated(0, out) * Gate(args.f[direction][2], INFINITY, c[i]);  // the clip limits gates only
  }
  GPU_DEVICE void Cells(int64_t s, int thread) {
    for (int64_t i = thread; i < args.hidden; i += kRecurrentThreads) {
      h[i] = args.kind == kLstm ? LstmState(i) : args.kind == kGru ? GruState(s, i) : Activated(0, gates[i]);
      if (args.y) Y(Time(s))[i] = Narrow<T>::Of(h[i]);
    }
  }
};

template <typename T>
GPU_DEVICE void RunRecurrent(const RecurrentArgs& args) {
  const bool two = args.kind == kGru && !args.linear_before_reset;  // the reset gates are needed before the second product
  for (int64_t number = blockIdx.x; number < args.directions * args.batch; number += gridDim.x) {
    RecurrentChain<T> chain(args, number);
    GPU_PHASE(t) chain.Begin(t);
    GPU_BARRIER();
    for (int64_t s = 0; s < chain.length; ++s) {
      GPU_PHASE(t) chain.Multiply(s, chain.h, 0, two ? 2 * args.hidden : chain.width, t);
      GPU_BARRIER();
      if (two) {
        GPU_PHASE(t) chain.Reset(t);
        GPU_BARRIER();
        GPU_PHASE(t) chain.Multiply(s, chain.reset, 2 * args.hidden, chain.width, t);
        GPU_BARRIER();
      }
      GPU_PHASE(t) chain.Cells(s, t);
      GPU_BARRIER();
    }
    GPU_PHASE(t) chain.End(t);
  }
}

GPU_PHASED_KERNEL(recurrent_f32, kRecurrentThreads, RecurrentArgs, RunRecurrent<float>)
GPU_PHASED_KERNEL(recurrent_f64, kRecurrentThreads, RecurrentArgs, RunRecurrent<double>)
GPU_PHASED_KERNEL(recurrent_f16, kRecurrentThreads, RecurrentArgs, RunRecurrent<f16>)
GPU_PHASED_KERNEL(recurrent_bf16, kRecurrentThreads, RecurrentArgs, RunRecurrent<bf16>)

}  // namespace mge::gpu
