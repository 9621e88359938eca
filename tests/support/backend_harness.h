// SPDX-License-Identifier: Apache-2.0
// Drives a backend's kernels through its table, without planner or engine: every candidate of a problem is prepared, bound
// and run, alone and on several threads, in place where it says it can, with canaries round every buffer, and its results
// are compared with those of the reference evaluators.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "mge/plugin.h"

namespace mge::testing {

// How far a result may be from the reference: |a - b| <= absolute + relative * |b|. Integers and bool must be equal.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};
// What rounding in the element type excuses, times `factor`.
Tolerance ToleranceOf(DType dtype, double factor = 4);
inline Tolerance Exactly(DType) { return {}; }
inline Tolerance Closely(DType t) { return ToleranceOf(t, 4); }
inline Tolerance Roughly(DType t) { return ToleranceOf(t, 40); }

// A graph with its inputs' tensors; `constant[i]` makes input i known to the backend at once.
struct Case {
  Graph graph;
  std::vector<Tensor> inputs;
  std::string name;
};

Attributes With(std::initializer_list<std::pair<const char*, AttributeValue>> list);

// One node. Inputs may be undefined tensors (absent). Those whose number is in `constants` are constants.
Case OneNode(std::string op, std::vector<Tensor> inputs, Attributes attrs = {}, std::vector<int> constants = {},
             int outputs = 1, std::string domain = "");

// Deterministic values: floats in [low, high], integers the same, rounded.
Tensor Random(DType dtype, Shape shape, double low = -2, double high = 2, uint64_t seed = 1);
Tensor Integers(std::vector<int64_t> values);
Tensor Fill(DType dtype, Shape shape, const std::vector<double>& values);
double At(const Tensor& t, int64_t i);

class Backend {
 public:
  explicit Backend(const std::string& path);  // fails the test if it cannot be loaded
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const mge_plugin& plugin() const { return *plugin_; }
  void Set(const std::string& key, const std::string& value) { settings_[key] = value; }
  // The threads that problems are for, 2 unless set.
  void SetThreads(uint32_t threads) { threads_ = threads; }

  struct Outcome {
    std::vector<std::string> candidates;  // ids, as offered
    std::vector<uint64_t> attributes;     // of the candidates; by Offers() only
    std::vector<std::string> refusals;    // "kernel: reason"
    std::vector<int32_t> codes;           // of the runs of candidate i
    std::vector<std::string> errors;
    std::vector<double> us;               // Measure() only
  };
  // Runs every candidate and adds test failures where results differ. Without `expected`, the reference evaluators' results
  // are expected.
  Outcome Check(const Case& c, std::function<Tolerance(DType)> tolerance, const std::vector<Tensor>* expected = nullptr);
  // Every candidate, on one thread and on several, in a run that is stopped before it begins.
  Outcome RunStopped(const Case& c);
  // The best time of every candidate on this thread.
  Outcome Measure(const Case& c, int repeat = 20);
  // Enumerates only; touches no element of `expected` and of inputs that are not constant.
  Outcome Offers(const Case& c, const std::vector<Tensor>* expected = nullptr);
  // Groups offered by claims, as "name: op op op".
  std::vector<std::string> Claims(const Case& c);
  // Runs a reorder between two layouts of a tensor and compares with a plain permutation.
  void CheckReorder(const Tensor& t, const mge_layout& from, const mge_layout& to);

 private:
  struct Impl;
  void* library_ = nullptr;
  const mge_plugin* plugin_ = nullptr;
  mge_device* device_ = nullptr;
  std::map<std::string, std::string> settings_;
  uint32_t threads_ = 2;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mge::testing
