// SPDX-License-Identifier: Apache-2.0
// Inputs and results of sessions, and a model with blocks that backends fuse.
#pragma once

#include <string>
#include <vector>

#include "core/engine/session.h"

namespace mge {

// Returns pseudo-random numbers between -2 and 2, which depend on the seed.
inline HostValue Numbers(Shape shape, int seed = 1) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, std::move(shape));
  int i = 0;
  for (float& x : v.tensor.MutableData<float>()) x = static_cast<float>((i++ * 37 + seed * 11) % 64 - 32) / 16;
  return v;
}

// Runs the session. Returns the elements of all outputs, which must be float32, in order.
inline absl::StatusOr<std::vector<float>> ResultsOf(Session& session, const std::vector<HostValue>& in, RunState& control) {
  std::vector<HostValue> out(static_cast<size_t>(session.output_count()));
  MGE_RETURN_IF_ERROR(session.Run(in, out, control));
  std::vector<float> all;
  for (HostValue& v : out) {
    auto data = v.tensor.Data<float>();
    all.insert(all.end(), data.begin(), data.end());
  }
  return all;
}

inline absl::StatusOr<std::vector<float>> ResultsOf(Session& session, const std::vector<HostValue>& in) {
  RunState control;
  return ResultsOf(session, in, control);
}

// Returns a model of `count` blocks: a matrix product followed by nodes that a backend fuses with it.
inline std::string Blocks(int count) {
  std::string text = "input x : float32[8,8]\nconst w = float32[8,8]<0.25>\n", last = "x";
  for (int i = 0; i < count; ++i) {
    std::string n = std::to_string(i), next = "m" + n;
    text += next + " = MatMul(" + last + ", w)\n";
    for (const char* op : {"Sigmoid", "Neg", "Tanh", "Abs", "Sqrt", "Relu"}) {
      last = next;
      next = op + n;
      text += next + " = " + op + "(" + last + ")\n";
    }
    last = next;
  }
  return text + "output " + last + "\n";
}

}  // namespace mge
