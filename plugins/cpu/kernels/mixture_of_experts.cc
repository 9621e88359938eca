// SPDX-License-Identifier: Apache-2.0
// Layers of experts: MoE and QMoE of ONNX Runtime. Pairs of a token and one of its experts are sorted by expert, and computed in
// batches: the rows of an expert are neighbours, so that its weights are read once for all of them. Each token adds the results
// of its experts in their order, whichever tokens are computed with it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "support/experts.h"
#include "support/gemm.h"
#include "support/kernel.h"
#include "support/work.h"
#include "vec/tile.h"

namespace mge::cpu {
namespace {

constexpr int64_t kBatchRows = 512;        // pairs that are computed together
constexpr int64_t kManyRows = 8;           // from which on packed weights are unpacked for a product of floats
constexpr uint64_t kMaxUnpackChunks = 16;  // each has a panel in the workspace

// A matrix and the places of its packed weights.
struct Matrix {
  ExpertMatrix shape;
  Slot weights, scales, zeros, bias;
  int64_t weight_bytes, numbers;  // of one expert

  const char* Weights(const mge_run* run, int64_t part_of, int64_t expert) const {
    return At<char>(run, weights) + (shape.part * part_of + expert) * weight_bytes;
  }
  const float* Numbers(const mge_run* run, const Slot& slot, int64_t part_of, int64_t expert) const {
    return At<float>(run, slot) + (shape.part * part_of + expert) * numbers;
  }
};

// Rows in the form in which they are multiplied.
struct Rows {
  int64_t stride;             // bytes of a row
  int64_t registers, sums;    // kPacked: registers of a row; floats of its sums
  uint64_t rows_at, sums_at;  // in the workspace
};

struct Choice {
  int32_t expert;
  float weight;
};

// Neighbours in the sorted pairs that have the same expert.
struct Segment {
  int64_t expert, first, count;  // rows of the batch
};

struct Args {
  ExpertForm form;
  ExpertLayer layer;
  Matrix gate, linear, down;
  Rows input, inner;
  const GemmTable* gemm;
  const PackedTable* packed;
  const PackedInt8Table* int8;
  void (*run_int8)(const PackedInt8Task& task, int64_t p0, int64_t p1);
  TileFn sigmoid, gelu;
  Chunks tokens, first_panels, second_panels;
  int64_t panel, batch;  // columns of a panel; rows of a batch
  // In the workspace: choices of each pair, sorted pairs, pairs before each expert, segments, results of the first products and of
  // the second one, unpacked panels.
  uint64_t choices_at, order_at, starts_at, segments_at, gate_at, linear_at, results_at, panels_at;
  Slot x, router, router_weights, y, workspace;

  template <typename T>
  T* Work(const mge_run* run, uint64_t at) const {
    return reinterpret_cast<T*>(At<char>(run, workspace) + at);
  }
};

// ---------------------------------------------------------------- the choice of experts

// Returns the largest score among the experts that are not chosen yet; the first one of equal scores.
int32_t Largest(const float* scores, int64_t experts, const Choice* chosen, int64_t count) {
  int32_t best = -1;
  for (int32_t e = 0; e < experts; ++e) {
    if (best >= 0 && !(scores[e] > scores[best])) continue;
    if (std::any_of(chosen, chosen + count, [&](const Choice& c) { return c.expert == e; })) continue;
    best = e;
  }
  return best;
}

// Returns the probability of an expert among the scores close to its own. `other` does not take part; -1: all do.
float ProbabilityAmongClose(const float* scores, int64_t experts, int32_t expert, int32_t other) {
  const float score = scores[expert];
  float sum = 0;
  for (int32_t e = 0; e < experts; ++e) {
    if (e == other || (score - scores[e]) / std::max(std::abs(scores[e]), score) > 0.02f) continue;
    sum += std::exp(scores[e] - score);
  }
  return 1 / sum;
}

void Choose(const ExpertLayer& l, const float* scores, const float* weights, Choice* out) {
  for (int64_t i = 0; i < l.chosen; ++i) out[i] = {Largest(scores, l.experts, out, i), 0};
  if (l.sparse_mixer) {
    out[0].weight = ProbabilityAmongClose(scores, l.experts, out[0].expert, -1);
    out[1].weight = ProbabilityAmongClose(scores, l.experts, out[1].expert, out[0].expert);
    return;
  }
  float sum = 0;
  for (int64_t i = 0; i < l.chosen; ++i) {
    const int32_t e = out[i].expert;
    out[i].weight = weights ? weights[e] : std::exp(scores[e] - scores[out[0].expert]);
    sum += out[i].weight;
  }
  if (!l.normalized && weights) return;
  if (!l.normalized) {
    sum = 0;
    for (int64_t e = 0; e < l.experts; ++e) sum += std::exp(scores[e] - scores[out[0].expert]);
  }
  for (int64_t i = 0; i < l.chosen; ++i) out[i].weight /= sum;
}

void ChooseAll(const Args& a, const mge_run* run) {
  const ExpertLayer& l = a.layer;
  auto* choices = a.Work<Choice>(run, a.choices_at);
  ForChunks(run, a.tokens, [&](uint64_t begin, uint64_t end) {
    for (auto t = static_cast<int64_t>(begin); t < static_cast<int64_t>(end); ++t) {
      const float* weights = l.router_weights >= 0 ? At<float>(run, a.router_weights) + t * l.experts : nullptr;
      Choose(l, At<float>(run, a.router) + t * l.experts, weights, choices + t * l.chosen);
    }
  });
}

// Sorts the pairs by expert. Pairs of one expert keep their order.
void Sort(const Args& a, const mge_run* run) {
  const int64_t pairs = a.layer.pairs(), experts = a.layer.experts;
  const auto* choices = a.Work<Choice>(run, a.choices_at);
  auto* order = a.Work<int64_t>(run, a.order_at);
  auto* starts = a.Work<int64_t>(run, a.starts_at);
  std::fill(starts, starts + experts + 1, 0);
  for (int64_t i = 0; i < pairs; ++i) ++starts[choices[i].expert + 1];
  for (int64_t e = 0; e < experts; ++e) starts[e + 1] += starts[e];
  for (int64_t i = 0; i < pairs; ++i) order[starts[choices[i].expert]++] = i;
}

// ---------------------------------------------------------------- products

// Writes `x` as row `row` of the batch. `many`: the weights will be unpacked.
void PrepareRow(const Args& a, const mge_run* run, const Rows& rows, const ExpertMatrix& m, const float* x, int64_t row,
                bool many) {
  char* to = a.Work<char>(run, rows.rows_at) + row * rows.stride;
  if (a.form == ExpertForm::kInt8) {
    const Int8Blocks size = {m.depth, m.columns, m.blocks, m.block, m.bits};
    a.int8->round(x, size, reinterpret_cast<int8_t*>(to), a.Work<Int8RowBlock>(run, rows.sums_at) + row * m.blocks);
  } else if (a.form == ExpertForm::kPacked && !many) {
    a.packed->arrange(x, m.depth, m.bits, rows.registers, reinterpret_cast<float*>(to),
                      a.Work<float>(run, rows.sums_at) + row * rows.sums);
  } else {
    std::memcpy(to, x, static_cast<size_t>(m.depth) * sizeof(float));
  }
}

// Computes columns of panels p0..p1 of the rows of a segment. `c` has the columns of the matrix. `unpacked` is memory for a panel.
void Multiply(const Args& a, const mge_run* run, const Rows& rows, const Matrix& matrix, const Segment& s, int64_t p0,
              int64_t p1, float* unpacked, float* c) {
  const ExpertMatrix& m = matrix.shape;
  const int64_t experts = a.layer.experts, n1 = std::min(m.columns, p1 * a.panel);
  const char* weights = matrix.Weights(run, experts, s.expert);
  const char* x = a.Work<char>(run, rows.rows_at) + s.first * rows.stride;
  const float* bias = nullptr;
  if (m.bias >= 0) bias = At<float>(run, matrix.bias) + (m.part * experts + s.expert) * m.columns;
  c += s.first * m.columns;

  GemmTask product = {};
  product.a = {x, MGE_DTYPE_F32, rows.stride / static_cast<int64_t>(sizeof(float)), 1, 1.0f, nullptr};
  product.m = s.count;
  product.k = m.depth;
  product.ldc = m.columns;
  if (a.form == ExpertForm::kFloats) {
    product.b = reinterpret_cast<const float*>(weights);
    product.n = m.columns;
    product.c = c;
    product.bias = bias;
    return a.gemm->run(product, 0, s.count, p0, p1);
  }
  const float* scales = matrix.Numbers(run, matrix.scales, experts, s.expert);
  const float* zeros = m.zeros >= 0 ? matrix.Numbers(run, matrix.zeros, experts, s.expert) : nullptr;
  if (a.form == ExpertForm::kInt8) {
    PackedInt8Task task = {};
    task.size = {m.depth, m.columns, m.blocks, m.block, m.bits};
    task.panels = reinterpret_cast<const uint32_t*>(weights);
    task.scales = scales;
    task.zeros = zeros;
    task.rows = reinterpret_cast<const int8_t*>(x);
    task.row_blocks = a.Work<Int8RowBlock>(run, rows.sums_at) + s.first * m.blocks;
    task.rows_count = s.count;
    task.bias = bias;
    task.c = c;
    return a.run_int8(task, p0, p1);
  }
  const PackedWeights packed = {reinterpret_cast<const uint8_t*>(weights), scales, zeros, m.blocks, m.block, m.bits};
  if (s.count < kManyRows) {
    PackedTask task = {};
    task.weights = packed;
    task.rows = reinterpret_cast<const float*>(x);
    task.sums = a.Work<float>(run, rows.sums_at) + s.first * rows.sums;
    task.k = m.depth;
    task.rows_count = s.count;
    task.bias = bias;
    task.c = c;
    task.ldc = m.columns;
    return a.packed->run(task, p0 * a.panel, n1);
  }
  for (int64_t n0 = p0 * a.panel; n0 < n1; n0 += a.panel) {
    a.packed->unpack(packed, m.depth, n0, m.columns, a.panel, unpacked);
    product.b = unpacked;
    product.n = std::min(a.panel, m.columns - n0);
    product.c = c + n0;
    product.bias = bias ? bias + n0 : nullptr;
    a.gemm->run(product, 0, s.count, 0, 1);
  }
}

// ---------------------------------------------------------------- activations

// gate[i] = act(gate[i]), times the linear part if there is one, for i < count.
void Activate(const Args& a, float* gate, const float* linear, int64_t count) {
  constexpr int64_t kTile = 256;
  const ExpertLayer& l = a.layer;
  float tile[kTile];
  for (int64_t first = 0; first < count; first += kTile, gate += kTile, linear += linear ? kTile : 0) {
    const int64_t n = std::min(kTile, count - first);
    switch (l.activation) {
      case ExpertActivation::kIdentity: break;
      case ExpertActivation::kRelu:
        for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] < 0 ? 0 : gate[i];
        break;
      case ExpertActivation::kSquaredRelu:
        for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] < 0 ? 0 : gate[i] * gate[i];
        break;
      case ExpertActivation::kGeluTanh: a.gelu(gate, nullptr, nullptr, gate, n, nullptr); break;
      case ExpertActivation::kSwish: {
        const float early = l.limits_activated ? std::numeric_limits<float>::infinity() : l.limit;
        for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] > early ? early : gate[i];
        for (int64_t i = 0; i < n; ++i) tile[i] = l.alpha * gate[i];
        a.sigmoid(tile, nullptr, nullptr, tile, n, nullptr);
        for (int64_t i = 0; i < n; ++i) gate[i] *= tile[i];
        if (!l.limits_activated) break;
        for (int64_t i = 0; i < n; ++i) gate[i] = gate[i] > l.limit ? l.limit : gate[i];
        break;
      }
    }
    if (!linear) continue;
    for (int64_t i = 0; i < n; ++i) {
      const float x = linear[i] > l.limit ? l.limit : linear[i];
      gate[i] *= (x < -l.limit ? -l.limit : x) + l.beta;
    }
  }
}

// ---------------------------------------------------------------- a run

// Computes `count` sorted pairs from `first` on.
void RunBatch(const Args& a, const mge_run* run, int64_t first, int64_t count) {
  const ExpertLayer& l = a.layer;
  const auto* choices = a.Work<Choice>(run, a.choices_at);
  const int64_t* order = a.Work<int64_t>(run, a.order_at) + first;
  auto* segments = a.Work<Segment>(run, a.segments_at);
  int64_t segment_count = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t expert = choices[order[i]].expert;
    if (i == 0 || segments[segment_count - 1].expert != expert) segments[segment_count++] = {expert, i, 0};
    ++segments[segment_count - 1].count;
  }
  const auto for_segments = [&](auto&& body) { std::for_each(segments, segments + segment_count, body); };
  const Chunks rows = SplitWork(static_cast<uint64_t>(count), 1e-3 * static_cast<double>(l.hidden));
  const auto prepare = [&](const Rows& form, const ExpertMatrix& m, auto&& row_of) {
    ForChunks(run, rows, [&](uint64_t begin, uint64_t end) {
      for_segments([&](const Segment& s) {
        const int64_t r0 = std::max(s.first, static_cast<int64_t>(begin));
        const int64_t r1 = std::min(s.first + s.count, static_cast<int64_t>(end));
        for (int64_t r = r0; r < r1; ++r) PrepareRow(a, run, form, m, row_of(r), r, s.count >= kManyRows);
      });
    });
  };
  const auto unpacked = [&](const Chunks& chunks, uint64_t begin) {
    const auto floats = static_cast<int64_t>(begin / chunks.per_chunk) * std::max(l.hidden, l.inner) * a.panel;
    return a.Work<float>(run, a.panels_at) + floats;
  };

  const float* x = At<float>(run, a.x);
  auto* gate = a.Work<float>(run, a.gate_at);
  auto* linear = a.Work<float>(run, a.linear_at);
  prepare(a.input, a.gate.shape, [&](int64_t r) { return x + order[r] / l.chosen * l.hidden; });
  ForChunks(run, a.first_panels, [&](uint64_t begin, uint64_t end) {
    const auto p0 = static_cast<int64_t>(begin), p1 = static_cast<int64_t>(end);
    float* panel = unpacked(a.first_panels, begin);
    for_segments([&](const Segment& s) {
      Multiply(a, run, a.input, a.gate, s, p0, p1, panel, gate);
      if (l.gated) Multiply(a, run, a.input, a.linear, s, p0, p1, panel, linear);
    });
    const int64_t n0 = p0 * a.panel, n1 = std::min(l.inner, p1 * a.panel);
    for (int64_t r = 0; r < count; ++r) {
      Activate(a, gate + r * l.inner + n0, l.gated ? linear + r * l.inner + n0 : nullptr, n1 - n0);
    }
  });
  if (a.form != ExpertForm::kFloats) prepare(a.inner, a.down.shape, [&](int64_t r) { return gate + r * l.inner; });
  auto* results = a.Work<float>(run, a.results_at);
  auto* y = At<float>(run, a.y);
  ForChunks(run, a.second_panels, [&](uint64_t begin, uint64_t end) {
    const auto p0 = static_cast<int64_t>(begin), p1 = static_cast<int64_t>(end);
    float* panel = unpacked(a.second_panels, begin);
    for_segments([&](const Segment& s) { Multiply(a, run, a.inner, a.down, s, p0, p1, panel, results); });
    const int64_t n0 = p0 * a.panel, n1 = std::min(l.hidden, p1 * a.panel);
    for (int64_t r = 0; r < count; ++r) {
      const float weight = choices[order[r]].weight;
      if (weight == 0) continue;
      const float* from = results + r * l.hidden;
      float* to = y + order[r] / l.chosen * l.hidden;
      for (int64_t n = n0; n < n1; ++n) to[n] += weight * from[n];
    }
  });
}

mge_code Launch(const Args& a, const mge_run* run) {
  const int64_t pairs = a.layer.pairs();
  ChooseAll(a, run);
  Sort(a, run);
  std::memset(At<char>(run, a.y), 0, static_cast<size_t>(a.layer.tokens * a.layer.hidden) * sizeof(float));
  for (int64_t first = 0; first < pairs; first += a.batch) RunBatch(a, run, first, std::min(a.batch, pairs - first));
  return MGE_OK;
}

// ---------------------------------------------------------------- the kernel

double SerialUs(const ExpertLayer& l, ExpertForm form, Isa isa) {
  const int64_t active = std::min(l.experts, l.pairs());
  const int64_t matrices = l.gated ? 3 : 2;
  if (active == 0) return 0.1;
  const int64_t rows = (l.pairs() + active - 1) / active;
  if (form == ExpertForm::kFloats) {
    return static_cast<double>(active * matrices) * GemmSerialUs({rows, l.inner, l.hidden}, isa);
  }
  const double weights = static_cast<double>(matrices) * static_cast<double>(l.inner) * static_cast<double>(l.hidden);
  const double int8_us = isa == Isa::kAvx512 ? 200e3 : 80e3, float_us = isa == Isa::kAvx512 ? 70e3
                                                                        : isa == Isa::kAvx2 ? 30e3
                                                                                            : 4e3;
  const double per_us = form == ExpertForm::kInt8 ? int8_us : float_us;  // products
  const double of_rows =
      rows >= kManyRows && form == ExpertForm::kPacked
          ? 5 * weights / per_us + static_cast<double>(matrices) * GemmSerialUs({rows, l.inner, l.hidden}, isa)
          : static_cast<double>(rows + 1) * weights / per_us;
  return static_cast<double>(active) * std::max(StreamUs(weights * l.gate.bits / 8), of_rows);
}

class ExpertsKernel : public Kernel {
 public:
  ExpertsKernel(const ExpertLayer& layer, ExpertForm form, Isa isa) : packing_(layer, form, isa) {
    Args& a = args_;
    a.form = form;
    a.layer = layer;
    a.gemm = &Gemm(isa);
    a.packed = &PackedProduct(isa);
    a.int8 = &PackedInt8(isa);
    a.run_int8 = AllowsVnni(isa) ? a.int8->run_vnni : a.int8->run;
    a.sigmoid = FindTile(isa, TileOp::kSigmoid, MGE_DTYPE_F32, kTileVectors);
    a.gelu = FindTile(isa, TileOp::kGeluTanh, MGE_DTYPE_F32, kTileVectors);
    a.panel = packing_.panel_columns();
    a.batch = std::min(kBatchRows, std::max<int64_t>(layer.pairs(), 1));
    for (auto [m, shape] : {std::pair{&a.gate, &layer.gate}, {&a.linear, &layer.linear}, {&a.down, &layer.down}}) {
      if (m == &a.linear && !layer.gated) continue;
      *m = {*shape, {}, {}, {}, {}, packing_.weight_bytes(*shape), packing_.numbers(*shape)};
    }
    const double us =
        SerialUs(layer, form, isa) * static_cast<double>(a.batch) / static_cast<double>(std::max<int64_t>(layer.pairs(), 1));
    const auto split = [&](const ExpertMatrix& m, double part) {
      const auto panels = static_cast<uint64_t>(packing_.panels(m));
      Chunks c = SplitWork(panels, part * us / static_cast<double>(panels));
      if (form != ExpertForm::kPacked || c.count <= kMaxUnpackChunks) return c;
      c.per_chunk = (panels + kMaxUnpackChunks - 1) / kMaxUnpackChunks;
      c.count = (panels + c.per_chunk - 1) / c.per_chunk;
      return c;
    };
    a.first_panels = split(layer.gate, layer.gated ? 2.0 / 3 : 0.5);
    a.second_panels = split(layer.down, layer.gated ? 1.0 / 3 : 0.5);
    a.tokens = SplitWork(static_cast<uint64_t>(layer.tokens), 2e-3 * static_cast<double>(layer.experts * layer.chosen));
    workspace_ = PlaceParts(layer, &a);
  }

  // Returns the bytes of the workspace. Sets the places of its parts.
  static uint64_t PlaceParts(const ExpertLayer& l, Args* a) {
    uint64_t bytes = 0;
    const auto place = [&](int64_t size) {
      const uint64_t at = bytes;
      bytes = (at + static_cast<uint64_t>(size) + 63) / 64 * 64;
      return at;
    };
    const auto floats = [](int64_t n) { return n * static_cast<int64_t>(sizeof(float)); };
    a->choices_at = place(l.pairs() * static_cast<int64_t>(sizeof(Choice)));
    a->order_at = place(l.pairs() * static_cast<int64_t>(sizeof(int64_t)));
    a->starts_at = place((l.experts + 1) * static_cast<int64_t>(sizeof(int64_t)));
    a->segments_at = place(std::min(l.experts, a->batch) * static_cast<int64_t>(sizeof(Segment)));
    a->gate_at = place(floats(a->batch * l.inner));
    a->linear_at = place(l.gated ? floats(a->batch * l.inner) : 0);
    a->results_at = place(floats(a->batch * l.hidden));
    for (auto [rows, m] : {std::pair{&a->input, &l.gate}, {&a->inner, &l.down}}) {
      *rows = {};
      rows->stride = floats(m->depth);
      if (a->form == ExpertForm::kInt8) {
        rows->stride = m->blocks * m->block;
        rows->sums_at = place(a->batch * m->blocks * static_cast<int64_t>(sizeof(Int8RowBlock)));
      } else if (a->form == ExpertForm::kPacked) {
        const int lanes = a->packed->lanes;
        rows->registers = PackedRegisters(m->blocks, m->block, m->bits, lanes);
        rows->sums = rows->registers * lanes;
        rows->stride = floats(ArrangedFloats(rows->registers, m->bits, lanes));
        rows->sums_at = place(floats(a->batch * rows->sums));
      }
      const bool in_place =
          a->form == ExpertForm::kFloats && rows == &a->inner;  // the activated rows are multiplied as they are
      rows->rows_at = in_place ? a->gate_at : place(a->batch * rows->stride);
    }
    const bool unpacks = a->form == ExpertForm::kPacked;
    const auto chunks = static_cast<int64_t>(std::max(a->first_panels.count, a->second_panels.count));
    a->panels_at = place(unpacks ? floats(chunks * std::max(l.hidden, l.inner) * a->panel) : 0);
    return bytes;
  }

  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  uint64_t prepack_bytes(int input) const override { return packing_.bytes(input); }
  std::string prepack_form(int input) const override { return packing_.form(input); }
  Result Prepack(int input, const void* source, void* destination) override {
    packing_.Pack(input, source, destination);
    return {};
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    Args* a = new (args) Args(args_);
    for (Matrix* m : {&a->gate, &a->linear, &a->down}) {
      const auto bind = [&](int operand, Slot* slot) {
        if (operand >= 0) *slot = binding.input(operand);
      };
      bind(m->shape.weights, &m->weights);
      bind(m->shape.scales, &m->scales);
      bind(m->shape.zeros, &m->zeros);
      bind(m->shape.bias, &m->bias);
    }
    a->x = binding.input(args_.layer.input);
    a->router = binding.input(args_.layer.router);
    if (args_.layer.router_weights >= 0) a->router_weights = binding.input(args_.layer.router_weights);
    a->y = binding.output(0);
    a->workspace = binding.workspace();
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  const ExpertPacking packing_;
  Args args_ = {};
  uint64_t workspace_ = 0;
};

struct ExpertsRow {
  static void Offer(const Problem& p, Offers& offers) {
    if (!Accept(p, offers)) return;
    ExpertLayer layer;
    if (const std::string why = ReadExperts(p, &layer); !why.empty()) return offers.Refuse(why);
    const Isa isa = AllowedIsa();
    const auto offer = [&](ExpertForm form, const char* id, uint64_t attributes) {
      Add(offers, isa,
          {.id = id,
           .attributes = attributes,
           .workspace = ExpertsKernel(layer, form, isa).workspace_bytes(),
           .cost_us = RunUs(p, SerialUs(layer, form, isa)),
           .variant = static_cast<uint64_t>(form)});
    };
    if (!layer.packed) return offer(ExpertForm::kFloats, "cpu.experts", kExact);
    if (layer.allows_int8 && PackedInt8(isa).run) {
      offer(ExpertForm::kInt8, "cpu.experts.int8", kExact | MGE_KERNEL_MODEL_PRECISION);
    }
    // Rows are multiplied with unpacked weights if the expert has many of them, which rounds otherwise.
    offer(ExpertForm::kPacked, "cpu.experts.packed", MGE_KERNEL_DETERMINISTIC);
  }
  static KernelPtr Make(const Problem& p, const Candidate& c) {
    ExpertLayer layer;
    if (!ReadExperts(p, &layer).empty()) return nullptr;
    return std::make_unique<ExpertsKernel>(layer, static_cast<ExpertForm>(KindOf(c)), IsaOf(c));
  }
};

constexpr KernelRow kRows[] = {Row<ExpertsRow>("MoE", "com.microsoft"), Row<ExpertsRow>("QMoE", "com.microsoft")};

}  // namespace

MGE_KERNELS(mixture_of_experts) = kRows;

}  // namespace mge::cpu
