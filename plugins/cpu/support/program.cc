// SPDX-License-Identifier: Apache-2.0
#include "support/program.h"

#include <cstring>

#include "mge/plugin/problems/quantize.hpp"
#include "support/elementwise_ops.h"
#include "support/kernel.h"
#include "support/program_operands.h"
#include "support/program_places.h"

namespace mge::cpu {
namespace {

mge_dtype ComputeType(mge_dtype t) { return IsHalf(t) ? MGE_DTYPE_F32 : t; }

constexpr int kAbsent = -1;

}  // namespace

class ProgramBuilder {
 public:
  // `widest` is the size in bytes of the largest element in a tile buffer.
  ProgramBuilder(const Problem& problem, Isa isa, bool channels_last, uint32_t widest)
      : p_(problem), isa_(isa), channels_last_(channels_last), widest_(widest), program_(std::make_unique<Program>()) {}

  Result Run(std::unique_ptr<Program>* out) {
    if (Result r = Shape(); !r.ok()) return r;
    for (int i = 0; i < p_.node_count(); ++i) {
      if (Result r = Translate(p_.node(i)); !r.ok()) return r;
    }
    for (int o = 0; o < p_.output_count(); ++o) Finish(o);
    if (Result r = AssignPlaces(p_.output_count(), data_, steps_, program_->operands_); !r.ok()) return r;
    Complete();
    Estimate();
    *out = std::move(program_);
    return {};
  }

  // Returns the size of the largest element that the built program reads or writes.
  uint32_t Widest() const {
    uint32_t widest = 1;
    for (const Datum& d : data_) widest = std::max(widest, SizeOf(d.type));
    return widest;
  }

 private:
  static Result No(std::string why) { return {MGE_UNIMPLEMENTED, std::move(why)}; }

  // ------------------------------------------------------------ shapes, tiles, access

  // Returns the strides of an input, plain or (`last`) with channels last, in the order of iteration.
  std::vector<int64_t> StridesOf(int input, bool last) const {
    const Value v = p_.input(input);
    int rank = static_cast<int>(dims_.size()), own = v.rank();
    std::vector<int64_t> strides(rank, 0);
    if (const int axis = axes_[static_cast<size_t>(input)]; axis >= 0) {
      for (int i = 0; i < rank; ++i) strides[i] = order_[i] == axis ? 1 : 0;
      return strides;
    }
    std::vector<int> order(own);
    for (int i = 0; i < own; ++i) order[i] = last ? order_[i] : i;  // dimensions in memory order, outermost first
    int64_t step = 1;
    for (int i = own - 1; i >= 0; --i) {
      int axis = order[i];
      strides[axis + rank - own] = v.dims()[axis] == 1 ? 0 : step;
      step *= v.dims()[axis];
    }
    std::vector<int64_t> walked(rank);
    for (int i = 0; i < rank; ++i) walked[i] = strides[order_[i]];
    return walked;
  }

  Result Shape() {
    Value first = p_.node(0).output(0);
    dims_.assign(first.dims().begin(), first.dims().end());
    int rank = static_cast<int>(dims_.size());
    if (rank > kMaxDims) return No("more than 8 dimensions");
    if (channels_last_ && rank < 3) return No("channels last needs three dimensions");
    if (p_.input_count() + p_.output_count() > kMaxOperands) return No("too many operands");
    mge_layout last = ChannelsLast(rank);
    for (int i = 0; i < rank; ++i) order_.push_back(channels_last_ ? last.perm[i] : i);
    std::vector<int64_t> walked;
    for (int axis : order_) walked.push_back(dims_[axis]);

    for (int i = 0; i < p_.node_count(); ++i) {
      for (int k = 0; k < p_.node(i).output_count(); ++k) {
        if (!p_.node(i).has_output(k)) continue;
        Value v = p_.node(i).output(k);
        if (!std::ranges::equal(v.dims(), dims_)) return No("outputs of different shapes");
      }
    }

    if (Result r = FindScaleAxes(p_, &axes_); !r.ok()) return r;
    std::vector<std::vector<int64_t>> strides;
    for (int i = 0; i < p_.input_count(); ++i) {
      if (p_.input(i).rank() > rank) return No("an operand has more dimensions than the result");
      strides.push_back(StridesOf(i, TakesChannelsLast(i)));
    }
    Collapse(walked, strides);
    SetTiles(walked);
    SetOperands(walked, strides);
    return {};
  }

  // Returns whether the input has channels last: it must have the full rank. Constants are always plain.
  bool TakesChannelsLast(int input) const {
    Value v = p_.input(input);
    return channels_last_ && axes_[static_cast<size_t>(input)] < 0 && v.rank() == static_cast<int>(dims_.size()) &&
           !v.is_constant();
  }

  void SetTiles(const std::vector<int64_t>& dims) {
    ProgramHeader& h = program_->header_;
    h.inner = dims.back();
    h.outer_rank = static_cast<int32_t>(dims.size()) - 1;
    int64_t rows = 1;
    for (int d = 0; d < h.outer_rank; ++d) rows *= h.outer[d] = dims[d];
    h.total = rows * h.inner;
    int64_t room = kTileBytes / widest_;
    if (threads_ == Threads::kAlways && p_.threads() > 1) {
      room = std::clamp<int64_t>((h.total + p_.threads() - 1) / p_.threads(), 1, room);
    }
    constexpr int64_t kShortRow = 128;
    if (h.inner < kShortRow && rows > 1 && h.inner > 0) {
      h.rows_per_tile = std::min(rows, std::max<int64_t>(1, room / h.inner));
      h.tile = h.rows_per_tile * h.inner;
      tiles_ = (rows + h.rows_per_tile - 1) / h.rows_per_tile;
    } else {
      h.tile = std::max<int64_t>(1, std::min(room, h.inner));
      h.tiles_per_row = std::max<int64_t>(1, (h.inner + h.tile - 1) / h.tile);
      tiles_ = rows * h.tiles_per_row;
    }
    if (h.total == 0) tiles_ = 0;
  }

  void SetOperands(const std::vector<int64_t>& dims, const std::vector<std::vector<int64_t>>& strides) {
    const ProgramHeader& h = program_->header_;
    std::vector<int64_t> dense(dims.size());
    int64_t step = 1;
    for (size_t d = dims.size(); d-- > 0; step *= dims[d]) dense[d] = dims[d] == 1 ? 0 : step;
    for (size_t i = 0; i < strides.size(); ++i) {
      const auto& s = strides[i];
      ProgramOperand op;
      op.bytes = static_cast<uint8_t>(SizeOf(p_.input(static_cast<int>(i)).dtype()));
      op.inner_stride = s.back();
      for (int d = 0; d < h.outer_rank; ++d) op.outer_strides[d] = s[d];
      bool fixed = std::all_of(s.begin(), s.end() - 1, [](int64_t x) { return x == 0; });
      if (s == dense) {
        op.access = Access::kDense;
      } else if (fixed && s.back() == 0) {
        op.access = Access::kElement;
      } else if (h.rows_per_tile > 1) {
        op.access = fixed ? Access::kGatherOnce : Access::kGather;
      } else {
        op.access = s.back() == 0 ? Access::kRowElement : s.back() == 1 ? Access::kRow : Access::kGather;
      }
      Datum d = {.kind = Datum::kOperand, .type = p_.input(static_cast<int>(i)).dtype(), .index = static_cast<int>(i)};
      d.once = op.access == Access::kElement || op.access == Access::kGatherOnce;
      d.single = op.access == Access::kElement || op.access == Access::kRowElement;
      if (const Value v = p_.input(static_cast<int>(i)); v.is_constant() && v.elements() == 1 && d.type == MGE_DTYPE_F32) {
        d.constant = op.access == Access::kElement;
        d.number = v.data<float>()[0];
      }
      raw_.emplace_back(p_.raw()->graph->inputs[i], Add(d));
      program_->operands_.push_back(op);
      program_->operand_inputs_.push_back(static_cast<int32_t>(i));
    }
    for (int o = 0; o < p_.output_count(); ++o) {
      ProgramOperand op;
      op.bytes = static_cast<uint8_t>(SizeOf(p_.output(o).dtype()));
      program_->outputs_.push_back(op);
      output_data_.push_back(Add({.kind = Datum::kOutput, .type = p_.output(o).dtype(), .index = o}));
    }
  }

  // ------------------------------------------------------------ instructions

  int Add(Datum d) {
    data_.push_back(d);
    return static_cast<int>(data_.size()) - 1;
  }

  // Returns the datum of a value in one of the maps, or kAbsent.
  static int Find(const std::vector<std::pair<int32_t, int>>& map, int32_t value) {
    for (const auto& [id, datum] : map) {
      if (id == value) return datum;
    }
    return kAbsent;
  }

  // Appends out = fn(a, b, c), which computes `op`, and returns its datum. If `out` is kAbsent, creates a datum of `type`.
  int Emit(TileFn fn, TileOp op, mge_dtype type, int a, int b, int c, int out, const float* params = nullptr) {
    bool once = data_[a].once && (b < 0 || data_[b].once) && (c < 0 || data_[c].once);
    bool single = data_[a].single && (b < 0 || data_[b].single) && (c < 0 || data_[c].single);
    if (out < 0 || single) {  // an output is a whole tile, which Finish() fills
      out = Add({.type = type, .once = once, .single = single});
    } else {
      once = false;
    }
    Step s = {fn, op, MGE_DTYPE_UNDEFINED, a, b, c, out, once, {}};
    if (params) s.params[0] = params[0], s.params[1] = params[1];
    steps_.push_back(s);
    return out;
  }

  int CastTo(int datum, mge_dtype to, int out = kAbsent) {
    if (data_[datum].type == to && out < 0) return datum;
    mge_dtype from = data_[datum].type;
    ns_ += TileOpNs(isa_, TileOp::kAdd, from);
    if (from == to) return Emit(TileUnary(isa_).find(TileOp::kCopy, to), TileOp::kCopy, to, datum, -1, -1, out);
    return Emit(FindCast(isa_, from, to), TileOp::kCast, to, datum, -1, -1, out);
  }

  // Returns a datum that fills whole tiles with the value of `datum`.
  int Whole(int datum) {
    if (!data_[datum].single) return datum;
    int out = Add({.type = data_[datum].type, .once = data_[datum].once});
    Step s;
    s.fn = TileUnary(isa_).find(TileOp::kSplat, data_[datum].type);
    s.op = TileOp::kSplat;
    s.a = datum;
    s.out = out;
    s.once = data_[datum].once;
    steps_.push_back(s);
    return out;
  }

  // Returns the value of input k in its compute type, rounded if necessary.
  int Source(const Node& n, int k) {
    int32_t id = n.input_id(k);
    if (int d = Find(computed_, id); d >= 0) return d;
    int d = Find(unrounded_, id);
    d = d >= 0 ? RoundTo(d, n.input(k).dtype()) : Widen(Find(raw_, id));
    computed_.emplace_back(id, d);
    return d;
  }

  int Widen(int raw) { return CastTo(raw, ComputeType(data_[raw].type)); }

  int RoundTo(int datum, mge_dtype half) {
    ns_ += TileOpNs(isa_, TileOp::kAdd, MGE_DTYPE_F32);
    const TileFn fn = FindTile(isa_, TileOp::kRoundTo, half, kTileVectors);
    const int out = Emit(fn, TileOp::kRoundTo, MGE_DTYPE_F32, datum, -1, -1, kAbsent);
    steps_.back().half = half;
    return out;
  }

  // Returns the node's output datum if it has the compute type, so that the result is written there. Otherwise kAbsent.
  int Target(const Node& n, mge_dtype type) const {
    for (int o = 0; o < p_.output_count(); ++o) {
      if (p_.raw()->graph->outputs[o] == n.output_id(0) && p_.output(o).dtype() == type) return output_data_[o];
    }
    return kAbsent;
  }

  void Define(const Node& n, const Elementwise& e, int datum) {
    mge_dtype own = n.output(0).dtype();
    if (data_[datum].type == own) raw_.emplace_back(n.output_id(0), datum);
    if (data_[datum].type != ComputeType(own)) return;
    (IsHalf(own) && !KeepsHalf(e) ? unrounded_ : computed_).emplace_back(n.output_id(0), datum);
  }

  Result Unary(const Node& n, TileOp op, int a, mge_dtype result, int* out, int target, const float* params = nullptr) {
    mge_dtype type = data_[a].type;
    TileFn fn = FindTile(isa_, op, type, kTileVectors);
    if (!fn) return No(std::string(n.op()) + " does not take " + std::string(TypeName(n.input(0).dtype())));
    ns_ += TileOpNs(isa_, op, type);
    *out = Emit(fn, op, result, a, -1, -1, target, params);
    return {};
  }

  Result Binary(const Node& n, TileOp op, int a, int b, mge_dtype result, int* out, int target) {
    mge_dtype type = data_[a].type;
    if (data_[b].type != type) return No(std::string(n.op()) + " of different types");
    int mode = kTileVectors;
    if (data_[a].single != data_[b].single) mode = data_[a].single ? kTileScalarA : kTileScalarB;
    TileFn fn = FindTile(isa_, op, type, mode);
    if (!fn) return No(std::string(n.op()) + " does not take " + std::string(TypeName(n.input(0).dtype())));
    ns_ += TileOpNs(isa_, op, type);
    *out = Emit(fn, op, result, a, b, -1, target);
    return {};
  }

  Result Translate(const Node& n) {
    Elementwise e;
    if (!ReadElementwise(n, &e)) return No(std::string(n.op()) + " is not elementwise");
    if (!n.has_input(0)) return No(std::string(n.op()) + " without an operand");
    mge_dtype type = ComputeType(n.output(0).dtype());
    int target = Target(n, type), out = kAbsent;
    Result r;
    switch (e.form) {
      case Form::kUnary: {
        const float params[2] = {e.a, e.b};
        r = Unary(n, TileOpOf(e.function), Source(n, 0), type, &out, target, params);
        break;
      }
      case Form::kBinary: r = BinaryOfInputs(n, e.function, type, &out, target); break;
      case Form::kVariadic:
      case Form::kMean: r = Variadic(n, e, type, &out, target); break;
      case Form::kWhere: {
        int c = Whole(Source(n, 0)), x = Whole(Source(n, 1)), y = Whole(Source(n, 2));
        if (data_[x].type != data_[y].type) return No("Where of different types");
        ns_ += TileOpNs(isa_, TileOp::kWhere, type);
        out = Emit(FindTile(isa_, TileOp::kWhere, type, kTileVectors), TileOp::kWhere, type, c, x, y, target);
        break;
      }
      case Form::kCast: {
        mge_dtype to = n.output(0).dtype();
        out = CastTo(Source(n, 0), to, Target(n, to));
        break;
      }
      case Form::kClip: r = Clip(n, type, &out, target); break;
      case Form::kCopy:
        if (n.has_output(1)) return No(std::string(n.op()) + " with a mask");
        if (n.has_input(2) && !IsFalse(n.input(2))) return No("Dropout in training");
        Alias(n);
        return {};
      case Form::kQuantize: r = Quantize(n, &out, target); break;
      case Form::kDequantize: r = Dequantize(n, &out, target); break;
    }
    if (!r.ok()) return r;
    Define(n, e, out);
    return {};
  }

  // Returns the zero point of a QuantizeLinear or DequantizeLinear, or kAbsent.
  int ZeroPoint(const Node& n) { return n.has_input(2) ? Source(n, 2) : kAbsent; }
  float CountOf(int parameter) const { return parameter < 0 ? 0.0f : data_[parameter].single ? 1.0f : 2.0f; }

  Result Quantize(const Node& n, int* out, int target) {
    mge_dtype to = n.output(0).dtype(), half = n.input(1).dtype();
    int x = Source(n, 0), scale = Source(n, 1), zero = ZeroPoint(n);
    if (ReadQuantization(n).division != half) return No("a division of another precision");
    if (data_[x].type == MGE_DTYPE_I32) x = CastTo(x, MGE_DTYPE_F32);
    if (data_[x].type != MGE_DTYPE_F32 || data_[scale].type != MGE_DTYPE_F32) return No("scales of this type");
    if (IsHalf(half) || !data_[scale].single) {  // divides first
      if (IsHalf(half) && n.input(0).dtype() != half) x = RoundTo(x, half);
      if (Result r = Binary(n, TileOp::kDiv, x, scale, MGE_DTYPE_F32, &x, kAbsent); !r.ok()) return r;
      if (IsHalf(half)) x = RoundTo(x, half);
      scale = kAbsent;
    }
    if (zero >= 0 && data_[zero].type != to) return No("a zero point of another type");
    if (data_[x].single && CountOf(zero) == 2) return No("one element with several zero points");
    const float params[2] = {CountOf(scale), CountOf(zero)};
    TileFn fn = FindQuantize(isa_, to, CountOf(zero) == 2);
    if (!fn) return No("no quantization to " + std::string(TypeName(to)));
    ns_ += TileOpNs(isa_, scale < 0 ? TileOp::kAdd : TileOp::kDiv, MGE_DTYPE_F32);
    *out = Emit(fn, TileOp::kQuantize, to, x, scale, zero, target, params);
    return {};
  }

  Result Dequantize(const Node& n, int* out, int target) {
    int x = Source(n, 0), scale = Source(n, 1), zero = ZeroPoint(n);
    mge_dtype from = data_[x].type;
    if (data_[scale].type != MGE_DTYPE_F32 || ComputeType(n.output(0).dtype()) != MGE_DTYPE_F32)
      return No("scales of this type");
    if (zero >= 0 && data_[zero].type != from) return No("a zero point of another type");
    const float params[2] = {CountOf(scale), CountOf(zero)};
    if (data_[x].single && (params[0] == 2 || params[1] == 2)) return No("one element with several scales");
    TileFn fn = FindDequantize(isa_, from, params[0] == 2 || params[1] == 2);
    if (!fn) return No("no dequantization of " + std::string(TypeName(from)));
    ns_ += TileOpNs(isa_, TileOp::kAdd, MGE_DTYPE_F32);
    *out = Emit(fn, TileOp::kDequantize, MGE_DTYPE_F32, x, scale, zero, target, params);
    return {};
  }

  // Makes the output another name of the input.
  void Alias(const Node& n) {
    for (auto* map : {&raw_, &computed_, &unrounded_}) {
      if (int datum = Find(*map, n.input_id(0)); datum >= 0) map->emplace_back(n.output_id(0), datum);
    }
  }

  Result Variadic(const Node& n, const Elementwise& e, mge_dtype type, int* out, int target) {
    int count = n.input_count();
    bool mean = e.form == Form::kMean && count > 1;
    if (count == 1) {
      *out = CastTo(Source(n, 0), type, target);
      return {};
    }
    int sum = Source(n, 0);
    for (int k = 1; k < count; ++k) {
      if (Result r =
              Binary(n, TileOpOf(e.function), sum, Source(n, k), type, &sum, k + 1 == count && !mean ? target : kAbsent);
          !r.ok()) {
        return r;
      }
    }
    *out = sum;
    if (!mean) return {};
    float params[2] = {static_cast<float>(count), 0};
    return Unary(n, TileOp::kDivideBy, sum, type, out, target, params);
  }

  Result Clip(const Node& n, mge_dtype type, int* out, int target) {
    bool low = n.has_input(1), high = n.has_input(2);
    int x = Source(n, 0);
    if (low) {
      if (Result r = Binary(n, TileOp::kMax, x, Source(n, 1), type, &x, high ? kAbsent : target); !r.ok()) return r;
    }
    if (high) {
      if (Result r = Binary(n, TileOp::kMin, x, Source(n, 2), type, &x, target); !r.ok()) return r;
    }
    *out = low || high ? x : CastTo(x, type, target);
    return {};
  }

  // Uses cheap instructions for common exponents, and the library's function for the others.
  Result Pow(const Node& n, mge_dtype type, int* out, int target) {
    Value e = n.input(1);
    if (e.is_constant() && e.elements() == 1) {
      double exponent = NumberOf(e);
      TileOp op = exponent == 2 ? TileOp::kSquare : exponent == 3 ? TileOp::kCube : TileOp::kNone;
      if (IsFloating(type)) {
        if (exponent == 0.5) op = TileOp::kPowHalf;
        if (exponent == -1) op = TileOp::kReciprocal;
      }
      int x = Source(n, 0);
      if (op != TileOp::kNone && !data_[x].single) return Unary(n, op, x, type, out, target);
    }
    mge_dtype exponent_type = ComputeType(e.dtype());
    if (exponent_type == type) {
      if (IsInteger(type) && !HoldsNoneBelow(e, 0)) return No("an integer power that could be negative");
      return Binary(n, TileOp::kPow, Source(n, 0), Source(n, 1), type, out, target);
    }
    if (IsInteger(type) && IsInteger(exponent_type)) return No("an integer power of another type");
    int result = kAbsent;
    Result r = Binary(n, TileOp::kPow, CastTo(Source(n, 0), MGE_DTYPE_F64), CastTo(Source(n, 1), MGE_DTYPE_F64),
                      MGE_DTYPE_F64, &result, kAbsent);
    if (r.ok()) *out = CastTo(result, type, target);
    return r;
  }

  Result BinaryOfInputs(const Node& n, Function function, mge_dtype type, int* out, int target) {
    switch (function) {
      case Function::kPow: return Pow(n, type, out, target);
      case Function::kDiv:
      case Function::kMod:
      case Function::kFmod:  // a program cannot report a division by zero
        if (IsInteger(type) && !HoldsNoZero(n.input(1))) return No("an integer divisor that could be zero");
        break;
      case Function::kShiftLeft:
      case Function::kShiftRight:
        if (IsSigned(type)) return No("a shift of signed integers");
        break;
      default: break;
    }
    return Binary(n, TileOpOf(function), Source(n, 0), Source(n, 1), type, out, target);
  }

  // Copies an output's value into its memory if no instruction wrote it there.
  void Finish(int o) {
    int32_t id = p_.raw()->graph->outputs[o];
    int from = Find(raw_, id);
    if (from == output_data_[o]) return;
    if (from < 0) from = Find(computed_, id);
    if (from < 0) from = Find(unrounded_, id);
    mge_dtype type = p_.output(o).dtype();
    if (data_[from].single) from = Whole(CastTo(from, type));
    CastTo(from, type, output_data_[o]);
  }

  // Writes the steps, and what follows from them.
  void Complete() {
    ProgramHeader& h = program_->header_;
    program_->steps_ = StepsOf(data_, steps_);
    program_->chain_ = ChainOf(data_, steps_);
    h.first_steps = program_->chain_.first;
    h.operands = p_.input_count();
    h.outputs = p_.output_count();
    h.steps = static_cast<int32_t>(steps_.size());
    if (h.outputs != 1) return;
    for (int i = 0; i < h.operands; ++i) {
      const ProgramOperand& op = program_->operands_[i];
      if (op.access == Access::kDense && op.bytes == program_->outputs_[0].bytes) {
        program_->in_place_.push_back(static_cast<uint32_t>(i));
      }
    }
  }

  void Estimate() {
    double bytes = 0;
    for (int i = 0; i < p_.input_count(); ++i) bytes += static_cast<double>(p_.input(i).bytes());
    for (int o = 0; o < p_.output_count(); ++o) bytes += static_cast<double>(p_.output(o).bytes());
    program_->bytes_ = bytes;
    double elements = static_cast<double>(program_->header_.total);
    double us = StreamUs(bytes) + elements * ns_ * 1e-3;
    for (const ProgramOperand& op : program_->operands_) {
      if (op.access == Access::kGather) us += elements * (op.inner_stride > 1 ? 2e-3 : 2e-4);
    }
    program_->calls_us_ = static_cast<double>(tiles_) * static_cast<double>(steps_.size()) * 4e-3;
    program_->serial_us_ = us + program_->calls_us_;
    program_->header_.chunks =
        SplitWork(static_cast<uint64_t>(tiles_), tiles_ ? program_->serial_us_ / static_cast<double>(tiles_) : 0);
    if (threads_ != Threads::kEstimated) {
      program_->header_.chunks = SplitForThreads(program_->header_.chunks, static_cast<uint32_t>(p_.threads()));
    }
    if (threads_ == Threads::kMeasured) {
      program_->work_ = std::make_unique<MeasuredWork>();
      program_->header_.work = program_->work_.get();
    }
  }

  const Problem& p_;
  Isa isa_;
  bool channels_last_;
  const uint32_t widest_;
  const Threads threads_ = ThreadsOf(p_.output(0).dtype());
  std::unique_ptr<Program> program_;
  std::vector<int64_t> dims_;  // logical dimensions of every output
  std::vector<int> order_;     // dimensions in memory order, outermost first
  std::vector<int> axes_;      // for each input, the axis of its scales or zero points; -1: others
  int64_t tiles_ = 0;
  double ns_ = 0;  // time per element
  std::vector<Datum> data_;
  std::vector<int> output_data_;
  std::vector<std::pair<int32_t, int>> raw_;        // value -> datum in the value's type
  std::vector<std::pair<int32_t, int>> computed_;   // value -> datum in the compute type
  std::vector<std::pair<int32_t, int>> unrounded_;  // like computed_, for 16-bit values that are not rounded yet
  std::vector<Step> steps_;
};

Result Program::Build(const Problem& problem, Isa isa, bool channels_last, std::unique_ptr<Program>* out) {
  for (uint32_t widest = sizeof(float);;) {  // the built program knows it; tile sizes do not change it
    ProgramBuilder builder(problem, isa, channels_last, widest);
    if (Result r = builder.Run(out); !r.ok() || builder.Widest() == widest) return r;
    widest = builder.Widest();
  }
}

}  // namespace mge::cpu
