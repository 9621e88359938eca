// SPDX-License-Identifier: Apache-2.0
// The optimizers of training sessions, one row each: the names for mge_training_options::optimizer, and the options that they
// read. The check of options, the errors and `mge train --help` are made of these rows. Needs nothing else of MGE.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace mge {

// How a parameter changes by its gradient; the library implements each rule (core/train/optimizer.cc).
enum class UpdateRule {
  kMomentum,
  kNesterov,
  kSquares,  // divides by the root of the sum of squares
  kVariance,
  kMoments,
  kMomentsDecayedApart,
  kLayerwiseMoments,
  kSign,
  kFactored
};

struct Optimizer {
  std::string_view name;
  UpdateRule step;
  double learning_rate;                     // the usual one
  std::array<std::string_view, 2> slots;    // states of each parameter, named PARAMETER.SLOT; "": none
  std::array<std::string_view, 4> options;  // the options that it reads; "": none
  std::string_view decay;                   // what the option weight_decay does
};

inline constexpr Optimizer kOptimizers[] = {
    {"sgd", UpdateRule::kMomentum, 0.01, {"momentum"}, {"momentum", "weight_decay"}, "added to the gradient"},
    {"adam",
     UpdateRule::kMoments,
     0.001,
     {"mean", "variance"},
     {"beta1", "beta2", "epsilon", "weight_decay"},
     "added to the gradient"},
    {"adamw",
     UpdateRule::kMomentsDecayedApart,
     0.001,
     {"mean", "variance"},
     {"beta1", "beta2", "epsilon", "weight_decay"},
     "added to the step"},
    {"nesterov", UpdateRule::kNesterov, 0.01, {"momentum"}, {"momentum", "weight_decay"}, "added to the gradient"},
    {"adagrad", UpdateRule::kSquares, 0.01, {"squares"}, {"epsilon", "weight_decay"}, "added to the gradient"},
    {"rmsprop",
     UpdateRule::kVariance,
     0.01,
     {"variance", "momentum"},
     {"momentum", "beta2", "epsilon", "weight_decay"},
     "added to the gradient"},
    {"lamb",
     UpdateRule::kLayerwiseMoments,
     0.001,
     {"mean", "variance"},
     {"beta1", "beta2", "epsilon", "weight_decay"},
     "added to the step"},
    {"lion", UpdateRule::kSign, 0.0001, {"mean"}, {"beta1", "beta2", "weight_decay"}, "added to the step"},
    {"adafactor", UpdateRule::kFactored, 0.01, {"rows", "columns"}, {"weight_decay"}, "added to the step"},
};

// Returns the row, or nullptr.
constexpr const Optimizer* FindOptimizer(std::string_view name) {
  for (const Optimizer& row : kOptimizers) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

constexpr bool ReadsOption(const Optimizer& optimizer, std::string_view option) {
  for (const std::string_view name : optimizer.options) {
    if (name == option) return true;
  }
  return false;
}

// Returns "sgd, adam, adamw, ...", or only those that read an option.
inline std::string OptimizerNames(std::string_view option = {}) {
  std::string out;
  for (const Optimizer& row : kOptimizers) {
    if (!option.empty() && !ReadsOption(row, option)) continue;
    if (!out.empty()) out += ", ";
    out += row.name;
  }
  return out;
}

}  // namespace mge
