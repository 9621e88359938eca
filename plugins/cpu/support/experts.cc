// SPDX-License-Identifier: Apache-2.0
#include "support/experts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <vector>

namespace mge::cpu {
namespace {

// The numbers of the inputs for fc1, fc2 and fc3; -1: none.
struct InputNumbers {
  std::array<int, 3> weights, scales, biases, zeros;
  int router_weights;
};
constexpr InputNumbers kFloatInputs = {{2, 4, 6}, {-1, -1, -1}, {3, 5, 7}, {-1, -1, -1}, -1};
constexpr InputNumbers kPackedInputs = {{2, 5, 8}, {3, 6, 9}, {4, 7, 10}, {11, 12, 13}, 14};
constexpr int kInput = 0, kRouter = 1;

constexpr int64_t kMinBlock = 16, kMaxBlock = 128;

// Returns the largest block that divides a row with one scale, or the smallest block, to which the row is then padded.
int64_t BlockOfRow(int64_t depth) {
  int64_t block = kMinBlock;
  while (block < kMaxBlock && depth % (2 * block) == 0) block *= 2;
  return block;
}

// Reads input `i` of the kind fc1, fc2 or fc3.
std::string ReadMatrix(const Problem& p, const InputNumbers& in, int i, int64_t columns, int64_t depth, bool packed,
                       ExpertMatrix* out) {
  const Node& node = p.node();
  ExpertMatrix m;
  const auto operand = [&](int k) { return node.has_input(k) ? p.operand(0, k) : -1; };
  m.columns = m.rows = columns;
  m.depth = depth;
  m.weights = operand(in.weights[static_cast<size_t>(i)]);
  m.scales = operand(in.scales[static_cast<size_t>(i)]);
  m.zeros = operand(in.zeros[static_cast<size_t>(i)]);
  m.bias = operand(in.biases[static_cast<size_t>(i)]);
  if (packed) {
    const std::string own = "fc" + std::to_string(i + 1) + "_expert_weight_bits";
    m.bits = static_cast<int>(node.Int(own, node.Int("expert_weight_bits")));
    m.block = node.Int("block_size");
    m.scale_per_row = m.block <= 0;
    if (m.scale_per_row) m.block = BlockOfRow(depth);
    if (m.block < kMinBlock || !std::has_single_bit(static_cast<uint64_t>(m.block))) {
      return "the block is not a power of two from 16 on";
    }
    if (m.bits != 2 && m.bits != 4 && m.bits != 8) return "the weights have another number of bits than 2, 4 or 8";
    if (depth * m.bits % 8 != 0 || m.scales < 0) return "rows do not end with a byte, or scales are absent";
    m.blocks = (depth - 1) / m.block + 1;
  }
  *out = m;
  return {};
}

ExpertActivation ActivationOf(std::string_view name) {
  if (name == "relu") return ExpertActivation::kRelu;
  if (name == "relu2") return ExpertActivation::kSquaredRelu;
  if (name == "gelu" || name == "geglu") return ExpertActivation::kGeluTanh;
  if (name == "silu" || name == "swiglu") return ExpertActivation::kSwish;
  return ExpertActivation::kIdentity;
}

// Returns the reason if operands are not constants of a type that is packed, or have more than one role.
std::string CheckOperands(const Problem& p, const ExpertLayer& layer) {
  std::set<int> seen;
  std::string why;
  const auto check = [&](int operand, mge_dtype type) {
    if (operand < 0) return;
    const Value v = p.input(operand);
    if (!v.is_constant()) why = "the weights are not constant";
    if (v.dtype() != type) why = "the type is not supported";
  };
  for (const ExpertMatrix* m : {&layer.gate, &layer.linear, &layer.down}) {
    check(m->weights, layer.packed ? MGE_DTYPE_U8 : MGE_DTYPE_F32);
    check(m->scales, MGE_DTYPE_F32);
    check(m->zeros, MGE_DTYPE_U8);
    check(m->bias, MGE_DTYPE_F32);
    if (m == &layer.linear && m->part > 0) continue;  // the operands of the gate
    for (int operand : {m->weights, m->scales, m->zeros, m->bias}) {
      if (operand >= 0 && !seen.insert(operand).second) why = "an input has several roles";
    }
  }
  return why;
}

}  // namespace

std::string ReadExperts(const Problem& p, ExpertLayer* out) {
  const Node& node = p.node();
  ExpertLayer l;
  l.packed = node.op() == "QMoE";
  const InputNumbers& in = l.packed ? kPackedInputs : kFloatInputs;
  const Value x = node.input(kInput), router = node.input(kRouter), first = node.input(in.weights[0]);
  if (x.dtype() != MGE_DTYPE_F32 || router.dtype() != MGE_DTYPE_F32) return "the type is not supported";
  if (x.rank() < 2 || router.rank() != 2 || first.rank() != 3) return "a rank is not supported";
  l.hidden = x.dim(-1);
  l.tokens = router.dim(0);
  l.experts = router.dim(1);
  l.chosen = node.Int("k");
  const bool has_third = node.has_input(in.weights[2]);
  const int64_t fusion = node.Int("swiglu_fusion");
  const std::string_view activation = node.Word("activation_type");
  const bool fused = !has_third && (activation == "swiglu" || activation == "geglu");
  const int64_t rows = first.dim(1);
  l.inner = fused ? rows / 2 : rows;
  l.gated = fused || has_third;
  std::string why = ReadMatrix(p, in, 0, l.inner, l.hidden, l.packed, &l.gate);
  if (why.empty()) why = ReadMatrix(p, in, 1, l.hidden, l.inner, l.packed, &l.down);
  if (why.empty() && has_third) why = ReadMatrix(p, in, 2, l.inner, l.hidden, l.packed, &l.linear);
  if (!why.empty()) return why;
  if (fused) {
    l.gate.rows = rows;
    l.gate.step = fusion == 1 ? 2 : 1;
    l.linear = l.gate;
    l.linear.first = fusion == 1 ? 1 : l.inner;
    l.linear.part = 1;
  }
  l.input = p.operand(0, kInput);
  l.router = p.operand(0, kRouter);
  if (node.has_input(in.router_weights)) l.router_weights = p.operand(0, in.router_weights);
  if (l.router_weights >= 0 && p.input(l.router_weights).dtype() != MGE_DTYPE_F32) return "the type is not supported";
  l.normalized = node.Int("normalize_routing_weights") != 0 || (l.packed && l.router_weights < 0);
  l.sparse_mixer = node.Int("use_sparse_mixer") != 0;
  l.activation = ActivationOf(activation);
  if (activation == "swiglu") {
    l.alpha = node.Float("activation_alpha");
    l.beta = node.Float("activation_beta");
    l.limit = node.Float("swiglu_limit", l.limit);
    l.limits_activated = node.Int("swiglu_limit_after_activation") != 0;
  }
  l.allows_int8 = l.packed && node.Int("accuracy_level") == 4 && l.gate.bits != 2 && l.linear.bits != 2 && l.down.bits != 2;
  if (why = CheckOperands(p, l); !why.empty()) return why;
  *out = l;
  return {};
}

int64_t ExpertPacking::weight_bytes(const ExpertMatrix& m) const {
  if (form_ == ExpertForm::kFloats) {
    return PackedFloats(m.depth, m.columns, gemm_->columns) * static_cast<int64_t>(sizeof(float));
  }
  const int64_t columns = form_ == ExpertForm::kInt8 ? panels(m) * panel_columns() : m.columns;
  return columns * m.blocks * m.block * m.bits / 8;
}

int64_t ExpertPacking::numbers(const ExpertMatrix& m) const {
  return (form_ == ExpertForm::kInt8 ? panels(m) * panel_columns() : m.columns) * m.blocks;
}

uint64_t ExpertPacking::bytes(int operand) const {
  int64_t sum = 0;
  ForMatrices([&](const ExpertMatrix& m) {
    const auto floats = [](int64_t n) { return n * static_cast<int64_t>(sizeof(float)); };
    if (operand == m.weights) sum += weight_bytes(m);
    if (operand == m.scales || operand == m.zeros) sum += floats(numbers(m));
    if (operand == m.bias) sum += floats(m.columns);
  });
  return static_cast<uint64_t>(sum * layer_.experts);
}

std::string ExpertPacking::form(int operand) const {
  std::string text;
  ForMatrices([&](const ExpertMatrix& m) {
    const char* role = operand == m.weights  ? "weights"
                       : operand == m.scales ? "scales"
                       : operand == m.zeros  ? "zero points"
                       : operand == m.bias   ? "bias"
                                             : nullptr;
    if (!role) return;
    text += std::string(role) + " of experts";
    for (int64_t n : {int64_t{static_cast<int>(form_)}, panel_columns(), layer_.experts, m.columns, m.depth, m.block,
                      int64_t{m.bits}, int64_t{m.scale_per_row}, m.rows, m.first, m.step}) {
      text += " " + std::to_string(n);
    }
    text += "; ";
  });
  return text;
}

void ExpertPacking::PackWeights(const ExpertMatrix& m, const void* source, char* out) const {
  if (form_ == ExpertForm::kFloats) {
    const float* first = static_cast<const float*>(source) + m.first * m.depth;
    return gemm_->pack(first, MGE_DTYPE_F32, 1, m.step * m.depth, m.depth, m.columns, 1.0f, reinterpret_cast<float*>(out), 0,
                       panels(m));
  }
  const int64_t from = m.depth * m.bits / 8, to = m.blocks * m.block * m.bits / 8;  // bytes of a row
  const auto copy_row = [&](int64_t column, char* row) {
    std::memcpy(row, static_cast<const char*>(source) + m.row_of(column) * from, static_cast<size_t>(from));
    std::memset(row + from, 0, static_cast<size_t>(to - from));
  };
  if (form_ == ExpertForm::kPacked) {
    for (int64_t c = 0; c < m.columns; ++c) copy_row(c, out + c * to);
    return;
  }
  const int64_t lanes = panel_columns(), words = to / static_cast<int64_t>(sizeof(uint32_t));
  std::vector<uint32_t> rows(static_cast<size_t>(lanes * words));
  for (int64_t panel = 0; panel < panels(m); ++panel) {
    const int64_t count = std::min(lanes, m.columns - panel * lanes);
    for (int64_t i = 0; i < count; ++i) copy_row(panel * lanes + i, reinterpret_cast<char*>(rows.data() + i * words));
    int8_->pack(rows.data(), words, count, 0, reinterpret_cast<uint32_t*>(out) + panel * lanes * words);
  }
}

void ExpertPacking::PackNumbers(const ExpertMatrix& m, bool zeros, const void* source, float* out) const {
  const int64_t per_row = m.scale_per_row ? 1 : m.blocks;
  const int64_t zero_bytes = (per_row * m.bits + 7) / 8;  // of a row with several blocks
  const float middle = form_ == ExpertForm::kInt8 ? static_cast<float>(1 << (m.bits - 1)) : 0;
  const auto number = [&](int64_t column, int64_t block) -> float {
    const int64_t row = m.row_of(column), at = m.scale_per_row ? 0 : block;
    if (!zeros) return static_cast<const float*>(source)[row * per_row + at];
    const auto* bytes = static_cast<const uint8_t*>(source) + (m.scale_per_row ? 0 : row * zero_bytes);
    const int64_t bit = (m.scale_per_row ? row : at) * m.bits;
    return static_cast<float>(bytes[bit / 8] >> (bit % 8) & ((1 << m.bits) - 1)) - middle;
  };
  if (form_ == ExpertForm::kPacked) {
    for (int64_t c = 0; c < m.columns; ++c) {
      for (int64_t b = 0; b < m.blocks; ++b) *out++ = number(c, b);
    }
    return;
  }
  const int64_t lanes = panel_columns();
  for (int64_t panel = 0; panel < panels(m); ++panel) {
    for (int64_t b = 0; b < m.blocks; ++b) {
      for (int64_t i = 0; i < lanes; ++i) {
        const int64_t column = panel * lanes + i;
        *out++ = column < m.columns ? number(column, b) : 0;
      }
    }
  }
}

void ExpertPacking::Pack(int operand, const void* source, void* destination) const {
  auto* out = static_cast<char*>(destination);
  const auto* in = static_cast<const char*>(source);
  ForMatrices([&](const ExpertMatrix& m) {
    const auto floats = [](int64_t n) { return n * static_cast<int64_t>(sizeof(float)); };
    for (int64_t e = 0; e < layer_.experts; ++e) {
      if (operand == m.weights) {
        const int64_t row = layer_.packed ? m.depth * m.bits / 8 : floats(m.depth);
        PackWeights(m, in + e * m.rows * row, out);
        out += weight_bytes(m);
      } else if (operand == m.scales) {
        PackNumbers(m, false, in + e * floats(m.rows * (m.scale_per_row ? 1 : m.blocks)), reinterpret_cast<float*>(out));
        out += floats(numbers(m));
      } else if (operand == m.zeros) {
        const int64_t of_row = (m.blocks * m.bits + 7) / 8, of_rows = (m.rows * m.bits + 7) / 8;
        PackNumbers(m, true, in + e * (m.scale_per_row ? of_rows : m.rows * of_row), reinterpret_cast<float*>(out));
        out += floats(numbers(m));
      } else if (operand == m.bias) {
        auto* to = reinterpret_cast<float*>(out);
        const float* from = reinterpret_cast<const float*>(in) + e * m.rows;
        for (int64_t c = 0; c < m.columns; ++c) to[c] = from[m.row_of(c)];
        out += floats(m.columns);
      }
    }
  });
}

}  // namespace mge::cpu
