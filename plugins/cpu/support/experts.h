// SPDX-License-Identifier: Apache-2.0
// A layer of experts (MoE and QMoE of ONNX Runtime) as products, and the packed form of its weights.
//
// An expert computes down(act(gate(x))) or down(act(gate(x)) * linear(x)). The gate and the linear part have a matrix each, also
// where the node has them as rows of one input. The packed form of an input holds one matrix behind the other, each with all
// experts.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "mge/plugin.hpp"
#include "vec/gemm.h"
#include "vec/packed_int8.h"
#include "vec/packed_weights.h"

namespace mge::cpu {

// How rows are multiplied with the weights.
enum class ExpertForm : uint8_t {
  kFloats,  // the weights are floats
  kPacked,  // rows of floats, packed weights
  kInt8,    // rows that are rounded to 8 bits, packed weights
};

enum class ExpertActivation : uint8_t { kIdentity, kRelu, kSquaredRelu, kGeluTanh, kSwish };

// A matrix of every expert: `columns` columns of `depth` weights.
struct ExpertMatrix {
  int64_t columns = 0, depth = 0;
  int64_t blocks = 0, block = 0;                         // of packed weights
  int bits = 0;                                          // of packed weights
  bool scale_per_row = false;                            // the node has one scale for all blocks of a column
  int weights = -1, scales = -1, zeros = -1, bias = -1;  // numbers of operands; -1: absent
  int64_t rows = 0;                                      // of the input, for one expert
  int64_t first = 0, step = 1;                           // column c is row first + c * step of the input
  int64_t part = 0;                                      // the number of matrices before it in the packed form

  int64_t row_of(int64_t column) const { return first + column * step; }
};

struct ExpertLayer {
  int64_t tokens = 0, hidden = 0, inner = 0, experts = 0, chosen = 0;
  ExpertMatrix gate, linear, down;
  bool gated = false;                                // has `linear`
  int input = -1, router = -1, router_weights = -1;  // numbers of operands
  bool packed = false, allows_int8 = false;
  bool normalized = false, sparse_mixer = false;
  ExpertActivation activation = ExpertActivation::kIdentity;
  float alpha = 1, beta = 0;                             // act(x) = x * sigmoid(alpha * x); beta is added to the linear part
  float limit = std::numeric_limits<float>::infinity();  // of the gate and of the linear part
  bool limits_activated = false;                         // the limit is that of the activated gate

  int64_t pairs() const { return tokens * chosen; }  // of a token and an expert
};

// Reads a node. Returns the reason if it is not supported.
std::string ReadExperts(const Problem& p, ExpertLayer* out);

// Packs the weights of a layer for one form.
class ExpertPacking {
 public:
  ExpertPacking(const ExpertLayer& layer, ExpertForm form, Isa isa)
      : layer_(layer), form_(form), gemm_(&Gemm(isa)), int8_(&PackedInt8(isa)) {}

  int64_t panel_columns() const { return form_ == ExpertForm::kInt8 ? int8_->lanes : gemm_->columns; }
  int64_t panels(const ExpertMatrix& m) const { return (m.columns - 1) / panel_columns() + 1; }
  // Sizes of one expert.
  int64_t weight_bytes(const ExpertMatrix& m) const;
  int64_t numbers(const ExpertMatrix& m) const;  // of scales, and of zero points
  // Returns the bytes of the packed form of an operand; 0: it is used unpacked.
  uint64_t bytes(int operand) const;
  // Returns the name of the packed form of an operand.
  std::string form(int operand) const;
  void Pack(int operand, const void* source, void* destination) const;

 private:
  template <typename F>
  void ForMatrices(F&& f) const {
    f(layer_.gate);
    if (layer_.gated) f(layer_.linear);
    f(layer_.down);
  }
  void PackWeights(const ExpertMatrix& m, const void* source, char* out) const;
  void PackNumbers(const ExpertMatrix& m, bool zeros, const void* source, float* out) const;

  const ExpertLayer layer_;
  const ExpertForm form_;
  const GemmTable* gemm_;
  const PackedInt8Table* int8_;
};

}  // namespace mge::cpu
