// SPDX-License-Identifier: Apache-2.0
#include "core/cli/device_roofs.h"

#include <chrono>
#include <vector>

#include "core/cli/zoo/model_writer.h"

namespace mge::cli {
namespace {

constexpr int64_t kRoofSide = 1024;                   // of the matrices
constexpr int64_t kRoofElements = int64_t{32} << 20;  // of the Relu: more than caches have
constexpr int kRoofRuns = 8;
constexpr double kRoofSeconds = 1;  // of a run and, about, of all

// Runs a model of one operator on a square matrix or a vector of ones, and returns its fastest step. Null if it cannot run.
Json FastestStep(const Globals& globals, Runtime& runtime, const std::string& op, size_t inputs,
                 const std::vector<int64_t>& dims) {
  ModelWriter model(op, {.seed = 0});
  model.Node(op, std::vector<std::string>(inputs, model.Input("x", dims)), {}, "y");
  model.Output("y", dims);
  const std::string bytes = model.Finish();
  Session session;
  if (!Session::LoadBytes(runtime, bytes.data(), bytes.size(), SessionOptionsOf(globals)).MoveTo(session).ok()) return {};
  size_t elements = 1;
  for (int64_t dim : dims) elements *= static_cast<size_t>(dim);
  Tensor input;
  if (!Tensor::Of<float>(dims, std::vector<float>(elements, 1.0f)).MoveTo(input).ok()) return {};
  auto profile = Profile::Create();
  auto control = RunControl::Create();
  if (!profile.ok() || !control.ok()) return {};
  std::vector<Tensor> outputs;
  control->SetTimeout(kRoofSeconds);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i <= kRoofRuns; ++i) {
    // Enough for a slow device.
    if (i > 1 && std::chrono::steady_clock::now() - begin > std::chrono::duration<double>(kRoofSeconds)) break;
    if (i == 1) control->SetProfile(&*profile);  // the first run plans
    if (!session.Run({&input}, outputs, {.control = &*control}).ok()) return {};
  }
  std::string text;
  if (!profile->Report("mge.profile/1").MoveTo(text).ok()) return {};
  Json report = Json::parse(text);
  for (Json& step : report["steps"]) {
    if (step["operator"] == op) return std::move(step);
  }
  return {};
}

// Returns thousands of `work` per microsecond of the fastest call, which are 10^9 per second.
double BestRate(const Json& step, const char* work) {
  if (!step.is_object() || !step[work].is_number()) return 0;
  const double us = step["call_min_us"];
  return us > 0 ? step[work].get<double>() / us * 1e-3 : 0;
}

}  // namespace

html::Roofs MeasureRoofs(const Globals& globals, Runtime& runtime) {
  return {.gflops_per_s = BestRate(FastestStep(globals, runtime, "MatMul", 2, {kRoofSide, kRoofSide}), "flops"),
          .gb_per_s = BestRate(FastestStep(globals, runtime, "Relu", 1, {kRoofElements}), "bytes")};
}

}  // namespace mge::cli
