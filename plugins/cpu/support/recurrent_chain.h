// SPDX-License-Identifier: Apache-2.0
// The run of a recurrence.
//
// Algorithm: a chain is one direction of a group of sequences; chains are independent. A chain computes the products of its
// inputs for a block of steps at once. Then each step multiplies the state by the recurrent weights and runs the cells. The
// terms of a sum are always added in the same order, so results do not depend on how the work is cut.
#pragma once

#include <algorithm>
#include <utility>

#include "support/gemm.h"
#include "support/recurrent_args.h"

namespace mge::cpu {

// The threads of a chain: all threads, or only the calling one.
struct OnAllThreads {
  const mge_run* run;
  template <typename F>
  void Each(int64_t chunks, F&& body) const {
    ParallelFor(run, static_cast<uint64_t>(chunks), [&](uint64_t i) { body(static_cast<int64_t>(i)); });
  }
  int64_t Chunks(int64_t wanted) const { return wanted; }
};
struct OnOneThread {
  template <typename F>
  void Each(int64_t chunks, F&& body) const {
    for (int64_t i = 0; i < chunks; ++i) body(i);
  }
  int64_t Chunks(int64_t) const { return 1; }
};

// One direction of a group of sequences.
template <typename Threads>
class Chain {
 public:
  Chain(const RecurrentArgs& a, const mge_run* run, int64_t number, Threads threads)
      : a_(a),
        r_(a.r),
        run_(run),
        threads_(threads),
        direction_(number / a.groups()),
        row0_(number % a.groups() * a.group),
        rows_(std::min(a.group, a.r.batch - row0_)),
        backwards_(direction_ == 1 || a.r.reverse),
        width_(a.order.width()) {
    auto* work = At<float>(run, a.workspace);
    auto packed = [&](bool in_run, int64_t at, const Slot& slot) { return in_run ? work + at : At<float>(run, slot); };
    w_ = packed(a.packs_w, a.w_at, a.w) + direction_ * a.packed_bytes(r_.input) / 4;
    u_ = packed(a.packs_u, a.u_at, a.u) + direction_ * a.packed_bytes(r_.hidden) / 4;
    bias_ = packed(a.sums_bias, a.bias_at, a.b) + direction_ * a.bias_floats();
    x_ = r_.quantized ? work + a.x_at : At<float>(run, a.x);
    lengths_ = r_.lengths >= 0 ? At<const int32_t>(run, a.lengths) : nullptr;
    y_ = r_.y >= 0 ? At<float>(run, a.y) + direction_ * r_.y_direction() : nullptr;
    sums_ = work + a.chains_at + number * a.chain_floats;
    gates_ = sums_ + a.block_steps * a.group * width_;
    h_ = gates_ + a.group * width_;
    next_ = h_ + a.group * a.state();
    c_ = next_ + a.group * a.state();
    reset_ = c_ + a.group * a.state();
    seen_ = reset_ + a.group * a.state();
    task_ = {r_.hidden, a.order.columns, a.order.blocks, r_.clip, {}, nullptr, r_.input_forget, r_.linear_before_reset};
    std::copy_n(r_.f[direction_], 3, task_.f);
    if (r_.p >= 0) task_.peepholes = At<const float>(run, a.p) + direction_ * 3 * r_.hidden;
  }

  void Run() {
    LoadState(r_.h >= 0 ? At<const float>(run_, a_.h) : nullptr, h_);
    LoadState(r_.c >= 0 ? At<const float>(run_, a_.c) : nullptr, c_);
    int64_t longest = 0;
    for (int64_t i = 0; i < rows_; ++i) {
      longest = std::max(longest, Length(i));
      for (int64_t t = Length(i); y_ && t < r_.steps; ++t) std::fill_n(Y(i, t), r_.hidden, 0.0f);
    }
    for (int64_t s0 = 0; s0 < longest; s0 += a_.block_steps) {
      const int64_t s1 = std::min(s0 + a_.block_steps, longest);
      ComputeSums(s0, s1);
      for (int64_t s = s0; s < s1; ++s) {
        if (StopAsked(run_)) throw RunStopped();
        Step(s, s0);
        std::swap(h_, next_);
      }
    }
    StoreState(h_, r_.y_h >= 0 ? At<float>(run_, a_.y_h) : nullptr);
    StoreState(c_, r_.y_c >= 0 ? At<float>(run_, a_.y_c) : nullptr);
  }

 private:
  int64_t Length(int64_t i) const { return lengths_ ? lengths_[row0_ + i] : r_.steps; }
  int64_t Time(int64_t i, int64_t s) const { return backwards_ ? Length(i) - 1 - s : s; }
  float* Y(int64_t i, int64_t t) const { return y_ + t * r_.y_step() + (row0_ + i) * r_.y_row(); }

  void LoadState(const float* from, float* to) const {
    for (int64_t i = 0; i < rows_; ++i) {
      float* row = to + i * a_.state();
      if (from && Length(i) > 0)  // the final state of an empty sequence is 0
        std::copy_n(from + direction_ * r_.state_direction() + (row0_ + i) * r_.state_row(), r_.hidden, row);
      else
        std::fill_n(row, r_.hidden, 0.0f);
    }
  }
  void StoreState(const float* from, float* to) const {
    for (int64_t i = 0; to && i < rows_; ++i) {
      std::copy_n(from + i * a_.state(), r_.hidden, to + direction_ * r_.state_direction() + (row0_ + i) * r_.state_row());
    }
  }

  // Returns whether the sequences of a step are contiguous in X and all at the same step.
  bool Together() const { return !r_.batch_first && rows_ == r_.batch && !(lengths_ && backwards_); }
  // Returns the sums of sequence i at step s of the block that begins with s0. Rows have the order of X.
  float* Sums(int64_t i, int64_t s, int64_t s0) const {
    const int64_t first = backwards_ ? Time(i, std::min(s0 + a_.block_steps, Length(i)) - 1) : s0, at = Time(i, s) - first;
    return sums_ + (Together() ? at * rows_ + i : i * a_.block_steps + at) * width_;
  }

  // A product of some rows of X with the input weights.
  struct Part {
    int64_t row, step, m;
    float* c;
  };
  void ComputeSums(int64_t s0, int64_t s1) {
    if (Together()) return Split({(backwards_ ? Time(0, s1 - 1) : s0) * rows_, 1, (s1 - s0) * rows_, sums_});
    auto one = [&](int64_t i) {
      const int64_t end = std::min(s1, Length(i)), t = backwards_ ? Time(i, end - 1) : s0;
      const int64_t row = r_.batch_first ? (row0_ + i) * r_.steps + t : t * r_.batch + row0_ + i;
      return Part{row, r_.batch_first ? 1 : r_.batch, std::max<int64_t>(0, end - s0), sums_ + i * a_.block_steps * width_};
    };
    if (rows_ == 1) return Split(one(0));
    threads_.Each(rows_, [&](int64_t i) { Multiply(one(i), 0, one(i).m, 0, width_ / a_.order.columns); });
  }
  void Split(const Part& part) {
    GemmSize size = {part.m, width_, r_.input, 1};
    GemmSplit split = SplitGemm(size, a_.gemm->columns, threads_.Chunks(2) > 1 ? GemmSerialUs(size, a_.isa) : 0);
    threads_.Each(static_cast<int64_t>(split.chunks()), [&](int64_t chunk) {
      RunGemmChunk(split, static_cast<uint64_t>(chunk),
                   [&](int64_t, int64_t m0, int64_t m1, int64_t p0, int64_t p1) { Multiply(part, m0, m1, p0, p1); });
    });
  }
  void Multiply(const Part& part, int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
    if (a_.int8) {
      const auto& head = *reinterpret_cast<const RowHead*>(x_);
      const Int8Rows rows = {reinterpret_cast<uint8_t*>(x_) + sizeof(RowHead), r_.input, head.scale, head.zero};
      return MultiplyBytes(rows, part.row, part.step, w_, bias_, part.c, m0, m1, p0, p1);
    }
    GemmTask t = {};
    t.a = {x_ + part.row * r_.input, MGE_DTYPE_F32, part.step * r_.input, 1, 1.0f, nullptr};
    t.b = w_;
    t.m = part.m;
    t.n = t.ldc = width_;
    t.k = r_.input;
    t.bias = bias_;
    t.c = part.c;
    a_.gemm->run(t, m0, m1, p0, p1);
  }
  // Multiplies rows of bytes. Adds the product to c if there is no bias.
  void MultiplyBytes(const Int8Rows& rows, int64_t row, int64_t step, float* weights, const float* bias, float* c,
                     int64_t m0, int64_t m1, int64_t p0, int64_t p1) {
    const Int8Weights w(weights, rows.k, width_);
    Int8Task t = {};
    t.a = {rows.row(row), false, step * rows.pitch(), true, nullptr, 0};
    t.b = w.panels;
    t.k = rows.k;
    t.n = width_;
    t.b_sums = w.sums;
    t.b_zero = w.zeros;
    t.a_sums = rows.sum(row);
    t.a_sums_stride = step * rows.pitch() / 4;
    t.a_zero = static_cast<int32_t>(rows.zero);
    t.result = bias ? Int8Result::kFloat : Int8Result::kAddFloat;
    t.scale = w.scales;
    t.a_scale = rows.scale;
    t.bias = bias;
    t.c = c;
    t.ldc = width_;
    const int64_t panels = a_.order.columns / kInt8Columns;
    a_.bytes->run_vnni(t, m0, m1, p0 * panels, p1 * panels);
  }

  // Computes gates = start + state times the recurrent weights for panels p0..p1. If `start` is null, starts from the sums
  // of the step.
  void Recur(int64_t s, int64_t s0, const float* state, int64_t p0, int64_t p1, const float* start) {
    const int64_t first = p0 * a_.order.columns, n = (p1 - p0) * a_.order.columns;
    for (int64_t i = 0; i < rows_; ++i) {
      if (s < Length(i)) std::copy_n(start ? start : Sums(i, s, s0) + first, n, gates_ + i * width_ + first);
    }
    if (a_.int8) return MultiplyBytes(seen_rows_, 0, 1, u_, nullptr, gates_, 0, rows_, p0, p1);
    GemmTask t = {};
    t.a = {state, MGE_DTYPE_F32, a_.state(), 1, 1.0f, nullptr};
    t.b = u_;
    t.m = rows_;
    t.n = t.ldc = t.ld_add = width_;
    t.k = r_.hidden;
    t.c = gates_;
    t.add = gates_;
    a_.gemm->run(t, 0, rows_, p0, p1);
  }

  using Cells = void (*)(const CellTask&, const CellRow&, int64_t, int64_t);
  void RunCells(Cells cells, int64_t s, int64_t s0, int64_t b0, int64_t b1) {
    const int64_t hidden_gate = 2 * a_.order.blocks * a_.order.columns;
    for (int64_t i = 0; i < rows_; ++i) {
      if (s >= Length(i)) continue;
      const int64_t at = i * a_.state();
      const float* input = a_.separate_bias() ? Sums(i, s, s0) + hidden_gate : nullptr;
      cells(task_, {gates_ + i * width_, input, h_ + at, next_ + at, c_ + at, reset_ + at, y_ ? Y(i, Time(i, s)) : nullptr},
            b0, b1);
    }
  }

  // Copies the state of sequences that have ended.
  void KeepEnded(int64_t s, int64_t b0, int64_t b1) {
    const int64_t u0 = b0 * a_.order.columns, u1 = std::min(b1 * a_.order.columns, r_.hidden);
    for (int64_t i = 0; lengths_ && i < rows_; ++i) {
      if (s >= Length(i)) std::copy(h_ + i * a_.state() + u0, h_ + i * a_.state() + u1, next_ + i * a_.state() + u0);
    }
  }

  // Returns the states, quantized if the operator is. One range covers all sequences that have not ended.
  const float* Seen(int64_t s) {
    if (!r_.quantized) return h_;
    Quantizer quantizer = {*a_.cells};
    for (int64_t i = 0; i < rows_; ++i) {
      if (s < Length(i)) quantizer.Cover(h_ + i * a_.state(), r_.hidden);
    }
    seen_rows_ = {reinterpret_cast<uint8_t*>(seen_), r_.hidden, quantizer.scale(), quantizer.zero()};
    for (int64_t i = 0; i < rows_; ++i) {
      const float* h = h_ + i * a_.state();
      if (!a_.int8)
        quantizer.Requantize(h, r_.hidden, seen_ + i * a_.state());
      else
        *seen_rows_.sum(i) = a_.bytes->quantize(h, r_.hidden, seen_rows_.scale, seen_rows_.zero, seen_rows_.row(i));
    }
    return seen_;
  }

  void Step(int64_t s, int64_t s0) {
    const int64_t blocks = a_.order.blocks, chunks = threads_.Chunks(a_.unit_chunks);
    auto each = [&](auto&& body) {
      threads_.Each(chunks, [&](int64_t i) { body(blocks * i / chunks, blocks * (i + 1) / chunks); });
    };
    if (r_.kind != Recurrence::Kind::kGru) {
      const float* state = Seen(s);
      return each([&](int64_t b0, int64_t b1) {
        Recur(s, s0, state, b0 * r_.gates, b1 * r_.gates, nullptr);
        RunCells(r_.kind == Recurrence::Kind::kLstm ? a_.cells->lstm : a_.cells->rnn, s, s0, b0, b1);
        KeepEnded(s, b0, b1);
      });
    }
    auto gates = [&](int64_t b0, int64_t b1) {
      Recur(s, s0, h_, 2 * b0, 2 * b1, nullptr);
      RunCells(a_.cells->gru_gates, s, s0, b0, b1);
    };
    auto hidden = [&](int64_t b0, int64_t b1) {
      const float* bias = a_.separate_bias() ? bias_ + width_ + b0 * a_.order.columns : nullptr;
      Recur(s, s0, bias ? h_ : reset_, 2 * blocks + b0, 2 * blocks + b1, bias);
      RunCells(a_.cells->gru, s, s0, b0, b1);
      KeepEnded(s, b0, b1);
    };
    if (a_.separate_bias()) {
      return each([&](int64_t b0, int64_t b1) {
        gates(b0, b1);
        hidden(b0, b1);
      });
    }
    each(gates);  // computes the reset gates of all units, which the next line reads
    each(hidden);
  }

  const RecurrentArgs& a_;
  const Recurrence& r_;
  const mge_run* run_;
  Threads threads_;
  int64_t direction_, row0_, rows_;
  bool backwards_;
  int64_t width_;
  float *w_, *u_, *bias_, *x_;
  const int32_t* lengths_;
  float *y_, *sums_, *gates_, *h_, *next_, *c_, *reset_, *seen_;
  Int8Rows seen_rows_ = {};
  CellTask task_;
};

}  // namespace mge::cpu
