// SPDX-License-Identifier: Apache-2.0
// Tests a backend's kernels through its table, without planner and engine.
//
// Every candidate of a problem is prepared, bound and run: on one thread, on several, and in place if the candidate
// allows it. Canary bytes surround every buffer. The results are compared with those of the reference evaluators.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "mge/plugin.h"

namespace mge::testing {

// The allowed difference of a result a from the reference b: |a - b| <= absolute + relative * |b|. Integers and bool must be
// equal. If `absolute` is infinity, nothing is compared.
struct Tolerance {
  double absolute = 0;
  double relative = 0;
};
// Returns the tolerance for rounding in the element type, times `factor`.
Tolerance ToleranceOf(DType dtype, double factor = 4);
inline Tolerance Exactly(DType) { return {}; }
inline Tolerance Closely(DType t) { return ToleranceOf(t, 4); }
inline Tolerance Roughly(DType t) { return ToleranceOf(t, 40); }

// A test case: a graph and its input tensors. `constant[i]` makes input i a constant, known to the backend at enumeration.
struct Case {
  Graph graph;
  std::vector<Tensor> inputs;
  std::string name;
};

Attributes With(std::initializer_list<std::pair<const char*, AttributeValue>> list);

// Returns a case of one node. An undefined tensor is an absent input. `constants` lists the numbers of constant inputs.
Case OneNode(std::string op, std::vector<Tensor> inputs, Attributes attrs = {}, std::vector<int> constants = {},
             int outputs = 1, std::string domain = "");

// Returns pseudo-random values in [low, high], rounded for integers. Equal arguments give equal values.
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
  // Sets a setting of the backend, or of the host.
  void Set(const std::string& key, const std::string& value) { settings_[key] = value; }
  // Sets the number of threads in the problems' constraints; 2 by default.
  void SetThreads(uint32_t threads) { threads_ = threads; }

  struct Outcome {
    std::vector<std::string> candidates;  // ids in the order of the offers
    std::vector<uint64_t> attributes;     // attributes of the candidates; set by Offers() only
    std::vector<std::string> refusals;    // "kernel: reason"
    std::vector<int32_t> codes;           // result codes of the runs of candidate i
    std::vector<std::string> errors;
    std::vector<double> us;                    // estimates in microseconds; set by Offers() only
    std::vector<std::vector<Tensor>> outputs;  // of candidate i on one thread, in plain order; set by Check() only
  };
  // Runs every candidate and adds a test failure for each wrong result. If `expected` is null, expects the results of the
  // reference evaluators.
  Outcome Check(const Case& c, std::function<Tolerance(DType)> tolerance, const std::vector<Tensor>* expected = nullptr);
  // Runs every candidate, on one thread and on several, in a run that was cancelled before it began.
  Outcome RunStopped(const Case& c);
  // Enumerates the candidates without running them. Accesses no element of `expected` or of inputs that are not constant.
  Outcome Offers(const Case& c, const std::vector<Tensor>* expected = nullptr);
  // Returns the groups that the backend claims, as "name: op op op".
  std::vector<std::string> Claims(const Case& c);
  // Returns what the backend has logged, one message a line.
  const std::string& log() const { return log_; }
  // Runs a reorder between two layouts of a tensor and compares the result with a plain permutation.
  void CheckReorder(const Tensor& t, const mge_layout& from, const mge_layout& to);

 private:
  struct Impl;
  void* library_ = nullptr;
  const mge_plugin* plugin_ = nullptr;
  mge_device* device_ = nullptr;
  std::map<std::string, std::string> settings_;
  std::string log_;
  uint32_t threads_ = 2;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mge::testing
