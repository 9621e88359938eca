// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/einsum.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

absl::Status BadEquation(const std::string& text, std::string why) {
  return Fail(errors::kInvalidNode, fmt::format("equation '{}': {}", text.substr(0, 200), why));
}

// Parses one term. `rank` is the rank of its input. For the output it is -1, and `ellipsis` is the ellipsis's number of
// dimensions.
absl::StatusOr<Labels> ParseTerm(const std::string& text, std::string_view term, int64_t rank, int64_t ellipsis) {
  Labels labels;
  size_t dots = term.find("...");
  int64_t letters = static_cast<int64_t>(term.size()) - (dots == term.npos ? 0 : 3);
  if (rank >= 0) {
    if (dots == term.npos ? letters != rank : letters > rank) {
      return BadEquation(text, fmt::format("the term '{}' does not fit an input of rank {}", term, rank));
    }
    ellipsis = rank - letters;
  }
  for (size_t i = 0; i < term.size(); ++i) {
    if (i == dots) {
      for (int64_t d = ellipsis; d > 0; --d) labels.push_back(kEllipsisLabel + static_cast<int>(d) - 1);
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else {
      return BadEquation(text, fmt::format("unexpected '{}'", term[i]));
    }
  }
  return labels;
}

}  // namespace

absl::StatusOr<EinsumEquation> ParseEinsum(const std::string& text, std::span<const Shape> shapes) {
  std::string packed;
  std::copy_if(text.begin(), text.end(), std::back_inserter(packed), [](char c) { return c != ' '; });
  size_t arrow = packed.find("->");
  std::string left = packed.substr(0, arrow);
  EinsumEquation eq;
  std::vector<std::string> terms = {""};
  for (char c : left) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  if (terms.size() != shapes.size()) {
    return BadEquation(text, fmt::format("{} terms for {} inputs", terms.size(), shapes.size()));
  }
  std::map<int, int> uses;
  int64_t ellipsis = 0;
  for (size_t t = 0; t < terms.size(); ++t) {
    MGE_ASSIGN_OR_RETURN(Labels labels, ParseTerm(text, terms[t], static_cast<int64_t>(shapes[t].size()), 0));
    for (size_t d = 0; d < labels.size(); ++d) {
      int label = labels[d];
      int64_t size = shapes[t][d];
      ++uses[label];
      if (label >= kEllipsisLabel) ellipsis = std::max<int64_t>(ellipsis, label - kEllipsisLabel + 1);
      auto [at, fresh] = eq.size.try_emplace(label, size);
      if (fresh || at->second == size) continue;
      bool broadcast = label >= kEllipsisLabel;
      if (at->second == kUnknownDim || (broadcast && at->second == 1)) {
        at->second = size;
      } else if (size != kUnknownDim && !(broadcast && size == 1)) {
        return BadEquation(text, fmt::format("one dimension has both size {} and size {}", at->second, size));
      }
    }
    eq.terms.push_back(std::move(labels));
  }
  if (arrow != packed.npos) {
    MGE_ASSIGN_OR_RETURN(eq.output, ParseTerm(text, packed.substr(arrow + 2), -1, ellipsis));
    Labels sorted = eq.output;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) {
      if (!uses.contains(sorted[i])) return BadEquation(text, "the output has a label that no input has");
      if (i && sorted[i] == sorted[i - 1]) return BadEquation(text, "the output has a label twice");
    }
  } else {
    for (int64_t d = ellipsis; d > 0; --d) eq.output.push_back(kEllipsisLabel + static_cast<int>(d) - 1);
    for (auto [label, count] : uses) {
      if (label < kEllipsisLabel && count == 1) eq.output.push_back(label);
    }
  }
  return eq;
}

}  // namespace mge
