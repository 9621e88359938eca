// SPDX-License-Identifier: Apache-2.0
#include "support/program_places.h"

#include <algorithm>
#include <string>

namespace mge::cpu {
namespace {

class Placer {
 public:
  Placer(int count, std::vector<Datum>& data, std::vector<Step>& steps) : count_(count), data_(data), steps_(steps) {}

  Result Run(std::vector<ProgramOperand>& operands) {
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (int d : {steps_[i].a, steps_[i].b, steps_[i].c}) {
        if (d >= 0) At(d).last_use = static_cast<int>(i);
      }
    }
    if (Result r = PlaceOperands(operands); !r.ok()) return r;
    for (size_t i = 0; i < steps_.size(); ++i) {
      if (Result r = PlaceResult(steps_[i], static_cast<int>(i)); !r.ok()) return r;
    }
    return {};
  }

 private:
  Datum& At(int d) { return data_[static_cast<size_t>(d)]; }

  int TakeBuffer() {
    for (int b = 0; b < kMaxBuffers; ++b) {
      if (!busy_[b]) {
        busy_[b] = true;
        return count_ + b;
      }
    }
    return -1;
  }

  static bool Ends(const Datum& d, int step) { return d.kind == Datum::kBuffer && !d.once && d.last_use == step; }

  Result PlaceOperands(std::vector<ProgramOperand>& operands) {
    for (Datum& d : data_) {
      if (d.kind == Datum::kOutput) d.place = static_cast<int>(operands.size()) + d.index;
      if (d.kind != Datum::kOperand) continue;
      ProgramOperand& op = operands[static_cast<size_t>(d.index)];
      bool gathered = op.access == Access::kGather || op.access == Access::kGatherOnce;
      if (gathered && d.last_use < 0) op.access = Access::kElement, gathered = false;  // never read
      d.place = gathered ? TakeBuffer() : d.index;
      if (d.place < 0) return {MGE_UNIMPLEMENTED, "too many operands that are broadcast along short rows"};
      op.place = static_cast<int16_t>(d.place);
    }
    return {};
  }

  Result PlaceResult(const Step& s, int i) {
    Datum& out = At(s.out);
    if (out.kind == Datum::kBuffer) {
      // Reuses the buffer of an operand whose last use is here, if the types are equal.
      for (int d : {s.a, s.b, s.c}) {
        if (d < 0 || out.place >= 0) continue;
        Datum& in = At(d);
        if (Ends(in, i) && !s.once && in.single == out.single && in.type == out.type) out.place = in.place;
      }
      if (out.place < 0) out.place = TakeBuffer();
      if (out.place < 0) return {MGE_UNIMPLEMENTED, "too many values in use at the same time"};
    }
    for (int d : {s.a, s.b, s.c}) {
      if (d >= 0 && Ends(At(d), i) && At(d).place != out.place) busy_[At(d).place - count_] = false;
    }
    if (out.last_use < 0 && out.kind == Datum::kBuffer && !out.once) busy_[out.place - count_] = false;
    return {};
  }

  const int count_;  // operands and outputs
  std::vector<Datum>& data_;
  const std::vector<Step>& steps_;
  bool busy_[kMaxBuffers] = {};
};

}  // namespace

Result AssignPlaces(int outputs, std::vector<Datum>& data, std::vector<Step>& steps, std::vector<ProgramOperand>& operands) {
  std::stable_partition(steps.begin(), steps.end(), [](const Step& s) { return s.once; });
  if (static_cast<int>(steps.size()) > kMaxSteps)
    return {MGE_UNIMPLEMENTED, "more than " + std::to_string(kMaxSteps) + " instructions"};
  return Placer(static_cast<int>(operands.size()) + outputs, data, steps).Run(operands);
}

std::vector<ProgramStep> StepsOf(const std::vector<Datum>& data, const std::vector<Step>& steps) {
  std::vector<ProgramStep> result;
  result.reserve(steps.size());
  auto place = [&](int d) { return static_cast<int16_t>(d < 0 ? 0 : data[static_cast<size_t>(d)].place); };
  for (const Step& s : steps) {
    ProgramStep step;
    step.fn = s.fn;
    step.a = place(s.a), step.b = place(s.b), step.c = place(s.c), step.out = place(s.out);
    step.elements = data[static_cast<size_t>(s.out)].single ? 1 : 0;
    step.params[0] = s.params[0], step.params[1] = s.params[1];
    result.push_back(step);
  }
  return result;
}

Chain ChainOf(const std::vector<Datum>& data, const std::vector<Step>& steps) {
  Chain chain;
  chain.values.reserve(data.size());
  for (const Datum& d : data) {
    ChainValue v;
    v.type = d.type;
    v.single = d.single;
    v.constant = d.constant;
    v.output = d.kind == Datum::kOutput;
    v.number = d.number;
    v.place = d.place;
    v.last_use = d.last_use;
    chain.values.push_back(v);
  }
  chain.steps.reserve(steps.size());
  for (const Step& s : steps) {
    if (s.once) ++chain.first;
    chain.steps.push_back({s.op, s.half, s.a, s.b, s.c, s.out, {s.params[0], s.params[1]}});
  }
  return chain;
}

}  // namespace mge::cpu
