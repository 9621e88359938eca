// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <new>

#include "support/program.h"

namespace mge::cpu {
namespace {

struct View {
  const ProgramHeader& h;
  const ProgramOperand* operands;
  const ProgramOperand* outputs;
  const ProgramStep* steps;
};

View ViewOf(const ProgramHeader& h) {
  auto* operands = reinterpret_cast<const ProgramOperand*>(&h + 1);
  auto* outputs = operands + h.operands;
  return {h, operands, outputs, reinterpret_cast<const ProgramStep*>(outputs + h.outputs)};
}

template <typename T>
void CopyStrided(const T* from, int64_t stride, T* to, int64_t n) {
  if (stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
  } else if (stride == 0) {
    T x = *from;
    for (int64_t i = 0; i < n; ++i) to[i] = x;
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i * stride];
  }
}

int64_t RowOffset(const ProgramHeader& h, const ProgramOperand& op, int64_t row) {
  int64_t offset = 0;
  for (int d = h.outer_rank - 1; d >= 0; --d) {
    offset += row % h.outer[d] * op.outer_strides[d];
    row /= h.outer[d];
  }
  return offset;
}

// Fills `to` with the operand's elements for `n` output elements, beginning at position `begin` of row `row`.
template <typename T>
void Gather(const ProgramHeader& h, const ProgramOperand& op, const char* base, int64_t row, int64_t begin, int64_t n,
            void* to) {
  auto* from = reinterpret_cast<const T*>(base);
  auto* out = static_cast<T*>(to);
  int64_t index[kMaxDims] = {};
  int64_t offset = 0;
  for (int d = h.outer_rank - 1; d >= 0; --d) {
    index[d] = row % h.outer[d];
    row /= h.outer[d];
    offset += index[d] * op.outer_strides[d];
  }
  while (n > 0) {
    int64_t take = std::min(n, h.inner - begin);
    CopyStrided(from + offset + begin * op.inner_stride, op.inner_stride, out, take);
    out += take;
    n -= take;
    begin = 0;
    for (int d = h.outer_rank - 1; d >= 0; --d) {
      offset += op.outer_strides[d];
      if (++index[d] < h.outer[d]) break;
      offset -= h.outer[d] * op.outer_strides[d];
      index[d] = 0;
    }
  }
}

void GatherTile(const ProgramHeader& h, const ProgramOperand& op, const char* base, int64_t row, int64_t begin, int64_t n,
                void* to) {
  switch (op.bytes) {
    case 1: return Gather<uint8_t>(h, op, base, row, begin, n, to);
    case 2: return Gather<uint16_t>(h, op, base, row, begin, n, to);
    case 4: return Gather<uint32_t>(h, op, base, row, begin, n, to);
    default: return Gather<uint64_t>(h, op, base, row, begin, n, to);
  }
}

void RunSteps(const ProgramStep* step, const ProgramStep* end, char* const* places, int64_t n) {
  for (; step != end; ++step) {
    if (step->code) {
      step->code(places, n);
      continue;
    }
    step->fn(places[step->a], places[step->b], places[step->c], places[step->out], step->elements ? step->elements : n,
             step->params);
  }
}

void RunTiles(const View& v, const mge_run* run, uint64_t first, uint64_t last) {
  const ProgramHeader& h = v.h;
  alignas(64) char buffers[kMaxBuffers][kTileBytes];
  char* places[kMaxOperands + kMaxBuffers];
  const char* bases[kMaxOperands];
  int count = h.operands + h.outputs;
  for (int i = 0; i < count; ++i) {
    bases[i] = places[i] = At<char>(run, v.operands[i].slot);  // outputs follow the operands
  }
  for (int i = 0; i < kMaxBuffers; ++i) places[count + i] = buffers[i];
  for (int i = 0; i < h.operands; ++i) {
    const ProgramOperand& op = v.operands[i];
    if (op.access == Access::kGatherOnce) GatherTile(h, op, bases[i], 0, 0, h.tile, places[op.place]);
  }
  RunSteps(v.steps, v.steps + h.first_steps, places, h.tile);

  for (uint64_t t = first, tiles = 1; t < last; t += tiles) {
    int64_t tile = static_cast<int64_t>(t), row = 0, begin = 0, n = 0;
    if (h.rows_per_tile > 1) {
      row = tile * h.rows_per_tile;
      n = std::min(h.tile, h.total - row * h.inner);
    } else {
      row = tile / h.tiles_per_row;
      begin = (tile - row * h.tiles_per_row) * h.tile;
      if (h.joins_tiles) tiles = std::min(last - t, static_cast<uint64_t>((row + 1) * h.tiles_per_row - tile));
      n = std::min(h.tile * static_cast<int64_t>(tiles), h.inner - begin);
    }
    int64_t position = row * h.inner + begin;
    for (int i = 0; i < count; ++i) {
      const ProgramOperand& op = v.operands[i];
      switch (op.access) {
        case Access::kDense: places[i] = const_cast<char*>(bases[i]) + position * op.bytes; break;
        case Access::kRow: places[i] = const_cast<char*>(bases[i]) + (RowOffset(h, op, row) + begin) * op.bytes; break;
        case Access::kRowElement: places[i] = const_cast<char*>(bases[i]) + RowOffset(h, op, row) * op.bytes; break;
        case Access::kGather: GatherTile(h, op, bases[i], row, begin, n, places[op.place]); break;
        case Access::kElement:
        case Access::kGatherOnce: break;
      }
    }
    RunSteps(v.steps + h.first_steps, v.steps + h.steps, places, n);
  }
}

}  // namespace

uint32_t Program::args_bytes() const {
  return static_cast<uint32_t>(sizeof(ProgramHeader) + (operands_.size() + outputs_.size()) * sizeof(ProgramOperand) +
                               steps_.size() * sizeof(ProgramStep));
}

void Program::Write(const Binding& binding, void* args) const {
  auto* h = new (args) ProgramHeader(header_);
  auto* op = reinterpret_cast<ProgramOperand*>(h + 1);
  for (size_t i = 0; i < operands_.size(); ++i, ++op) {
    new (op) ProgramOperand(operands_[i]);
    op->slot = binding.input(operand_inputs_[i]);
  }
  for (size_t o = 0; o < outputs_.size(); ++o, ++op) {
    new (op) ProgramOperand(outputs_[o]);
    op->slot = binding.output(static_cast<int>(o));
  }
  auto* step = reinterpret_cast<ProgramStep*>(op);
  for (const ProgramStep& s : steps_) new (step++) ProgramStep(s);
}

double Program::code_us(const CodePlan& plan) const {
  // Measured: a value that stays in a register instead of a tile saves kValueNs per element. Beyond the second-level cache, streams
  // that are read and written in turns take kStreamsNs longer than the interpreter's, which it reads and writes one after the other.
  constexpr double kValueNs = 0.05, kStreamsNs = 0.06;
  constexpr int64_t kManyStreams = 3;
  double steps = static_cast<double>(plan.ranges.size() + steps_.size());
  for (const ChainRange& r : plan.ranges) steps -= r.last - r.first;
  const auto elements = static_cast<double>(header_.total);
  double us = serial_us_ - calls_us_ * (1 - steps / static_cast<double>(steps_.size()));
  us -= (static_cast<double>(steps_.size()) - steps) * elements * kValueNs * 1e-3;
  const auto is_stream = [](const ProgramOperand& op) { return op.access == Access::kDense; };
  const auto streams = std::count_if(operands_.begin(), operands_.end(), is_stream) + static_cast<int64_t>(outputs_.size());
  if (streams >= kManyStreams && bytes_ > ThisProcessor().l2_bytes) us += elements * kStreamsNs * 1e-3;
  return std::max(us, 0.25 * serial_us_);
}

Result Program::MakeCode(Isa isa, Compiler compiler) {
  std::vector<ProgramStep> steps;
  std::vector<std::shared_ptr<const ChainCode>> codes;
  int next = 0;
  const auto keep = [&](int end) { steps.insert(steps.end(), steps_.begin() + next, steps_.begin() + end); };
  for (const ChainRange& range : PlanCode(chain_, compiler).ranges) {
    std::shared_ptr<const ChainCode> code;
    if (Result r = CodeOf(chain_, range, isa, compiler, &code); !r.ok()) return r;
    keep(range.first);
    ProgramStep step;
    step.code = code->function();
    steps.push_back(step);
    codes.push_back(std::move(code));
    next = range.last;
  }
  keep(static_cast<int>(steps_.size()));
  steps_ = std::move(steps);
  codes_ = std::move(codes);
  header_.steps = static_cast<int32_t>(steps_.size());
  // A buffer holds the values of one tile only.
  const bool fills_buffers = std::any_of(operands_.begin(), operands_.end(),
                                         [](const ProgramOperand& op) { return op.access == Access::kGather; }) ||
                             std::any_of(steps_.begin(), steps_.begin() + header_.first_steps,
                                         [](const ProgramStep& s) { return s.elements == 0; });
  header_.joins_tiles = header_.steps == header_.first_steps + 1 && !fills_buffers;
  return {};
}

mge_code LaunchProgram(const ProgramHeader& header, const mge_run* run) {
  View v = ViewOf(header);
  if (v.h.total == 0) return MGE_OK;
  if (MeasuredWork* work = v.h.work; work && !work->Pays(run, v.h.chunks.count)) {
    work->Measure([&] { RunTiles(v, run, 0, v.h.chunks.items); });
    return MGE_OK;
  }
  ForChunks(run, v.h.chunks, [&](uint64_t first, uint64_t last) { RunTiles(v, run, first, last); });
  return MGE_OK;
}

}  // namespace mge::cpu
