// SPDX-License-Identifier: Apache-2.0
// The losses of training sessions, one row each: the names for mge_training_options::loss, and the options that they read. The
// check of options, the errors and `mge train --help` are made of these rows. Needs nothing else of MGE.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace mge {

struct LossRow {
  std::string_view name, doc;
  std::array<std::string_view, 2> options = {};  // that it reads; "": none
};

inline constexpr LossRow kLosses[] = {
    {"cross_entropy", "of scores [N,C,...] and class numbers [N,...]", {"label_smoothing", "class_weights"}},
    {"token_cross_entropy", "the same with the classes in the last dimension", {"label_smoothing", "class_weights"}},
    {"binary_cross_entropy", "of scores and probabilities", {"class_weights"}},
    {"kl_divergence", "the relative entropy of probabilities from scores or their logarithms"},
    {"mse", "the mean squared error"},
    {"mae", "the mean absolute error"},
    {"huber", "squared for small errors, absolute for large ones", {"huber_delta"}},
    {"output", "the model computes its loss, without labels"},
};

// Returns the row, or nullptr.
constexpr const LossRow* FindLoss(std::string_view name) {
  for (const LossRow& row : kLosses) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

constexpr bool ReadsOption(const LossRow& loss, std::string_view option) {
  for (const std::string_view name : loss.options) {
    if (name == option) return true;
  }
  return false;
}

// Returns "cross_entropy, token_cross_entropy, ...", or only those that read an option.
inline std::string LossNames(std::string_view option = {}) {
  std::string out;
  for (const LossRow& row : kLosses) {
    if (!option.empty() && !ReadsOption(row, option)) continue;
    if (!out.empty()) out += ", ";
    out += row.name;
  }
  return out;
}

}  // namespace mge
