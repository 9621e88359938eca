// SPDX-License-Identifier: Apache-2.0
// Plans random graphs on random devices, and checks the rules of check_plan.h. MGE_TEST_RANDOM_PLANS is the number of plans.
#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "fmt/format.h"
#include "fmt/ranges.h"
#include "gtest/gtest.h"
#include "tests/plans/make_plan.h"

namespace mge {
namespace {

const std::vector<std::string> kUnary = {"Abs", "Neg", "Relu", "Exp", "Sin", "Cos"};
const std::vector<std::string> kBinary = {"Add", "Mul", "Sub"};
const std::vector<std::string> kLayouts = {"plain", "nhwc", "any", "perm(0,1,2,3 16x1)", "sealed(1)"};

// A random set-up and graph.
class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed) {
    MakeDevices();
    for (const std::string& cls : classes_) MakeKernels(cls);
    MakeGraph();
    MakeClaims();
  }
  std::string setup, graph;

 private:
  bool Chance(double probability) { return std::uniform_real_distribution<>(0, 1)(random_) < probability; }
  int Below(size_t end) { return std::uniform_int_distribution<>(0, static_cast<int>(end) - 1)(random_); }
  const std::string& OneOf(const std::vector<std::string>& list) { return list[static_cast<size_t>(Below(list.size()))]; }

  void MakeDevices() {
    std::vector<std::string> devices;
    for (const std::string cls : {"acc", "cpu", "npu", "dsp"}) {
      const int count = Chance(0.6) ? 1 + Chance(0.4) : 0;
      if (count) classes_.push_back(cls);
      for (int i = 0; i < count; ++i) devices.push_back(fmt::format("{}{}", cls, i));
    }
    if (devices.empty()) devices = {"acc0"}, classes_ = {"acc"};
    std::shuffle(devices.begin(), devices.end(), random_);
    std::vector<std::string> sorted = devices;
    std::sort(sorted.begin(), sorted.end());
    for (const std::string& device : sorted) {
      const bool own_memory = device.starts_with("acc") || device.starts_with("npu");
      setup += fmt::format("device {}{}{}\n", device, own_memory && Chance(0.1) ? " largest=4096" : "",
                           Chance(0.2) ? " alignment=256" : "");
      if (own_memory && Chance(0.5)) setup.insert(setup.size() - 1, " compute_queues=3");
    }
    for (const std::string& from : devices) {
      for (const std::string& to : devices) {
        if (from != to && Chance(0.5)) setup += fmt::format("link {} {} gb_s=10\n", from, to);
      }
    }
    setup += fmt::format("use {}\n", fmt::join(devices, Chance(0.5) ? "+" : ","));
    if (Chance(0.1)) setup += "set plan.inplace 0\n";
    if (Chance(0.2)) setup += fmt::format("set plan.match_range {}\n", Below(5));
    if (Chance(0.2)) setup += fmt::format("set plan.workspaces {}\n", 1 + Below(4));
    if (Chance(0.1)) setup += "set debug.check_memory 1\n";
    if (Chance(0.3)) setup += "set engine.bulk_inference 0\n";
  }

  std::string Options(size_t inputs) {
    std::string out = fmt::format(" cost={}", 1 + Below(Chance(0.5) ? 20 : 100));
    if (Chance(0.4)) {
      out += " layout=" + OneOf(kLayouts);
    } else {
      out += fmt::format(" in={} out={}", OneOf(kLayouts), OneOf(kLayouts));
    }
    if (Chance(0.5)) out += inputs == 2 ? " in_place=0:0/0:1" : " in_place";
    if (Chance(0.2)) out += fmt::format(" workspace={}", 1 + Below(5000));
    if (Chance(0.5)) out += " capture_safe";
    if (Chance(0.2)) out += fmt::format(" pack=1:{}{}", 2048 + Below(3), Chance(0.5) ? ":form" : "");
    if (Chance(0.05)) out += " unable";
    return out;
  }

  void MakeKernels(const std::string& cls) {
    setup += fmt::format("kernel {} reorder = Reorder cost={}\n", cls, 1 + Below(5));
    for (const auto* ops : {&kUnary, &kBinary}) {
      for (const std::string& op : *ops) {
        for (int i = 0; Chance(0.6) && i < 3; ++i) {
          setup += fmt::format("kernel {} {}{} = {}{}\n", cls, op, i, op, Options(ops == &kUnary ? 1 : 2));
        }
      }
    }
  }

  struct Value {
    std::string name;
    bool reshaped;
    std::string op;  // empty: no claim may name it
  };

  void MakeGraph() {
    for (int i = 0; i < 1 + Below(3); ++i) {
      values_.push_back({fmt::format("x{}", i), false, ""});
      graph += fmt::format("input x{} : float32[1,8,4,4]\n", i);
    }
    graph += "const w = float32[1,8,4,4]<2>\nconst narrow = int64[4]<1, 4, 8, 4>\nconst wide = int64[4]<1, 8, 4, 4>\n";
    const int nodes = 3 + Below(Chance(0.3) ? 100 : 25);
    for (int i = 0; i < nodes; ++i) {
      // Mostly reads a late value, so that the graph is deep.
      const size_t from = Chance(0.6) && values_.size() > 4 ? values_.size() - 4 : 0;
      const Value in = values_[from + static_cast<size_t>(Below(values_.size() - from))];
      Value out = {fmt::format("v{}", i), in.reshaped, ""};
      if (Chance(0.1)) {
        out.reshaped = !in.reshaped;
        graph += fmt::format("{} = Reshape({}, {})\n", out.name, in.name, out.reshaped ? "narrow" : "wide");
      } else if (Chance(0.5)) {
        out.op = OneOf(kUnary);
        graph += fmt::format("{} = {}({})\n", out.name, out.op, in.name);
      } else {
        std::vector<std::string> others;
        for (const Value& v : values_) {
          if (v.reshaped == in.reshaped) others.push_back(v.name);
        }
        if (!in.reshaped) others.emplace_back("w");
        out.op = OneOf(kBinary);
        graph += fmt::format("{} = {}({}, {})\n", out.name, out.op, in.name, OneOf(others));
      }
      values_.push_back(out);
    }
    std::vector<std::string> outputs = {values_.back().name};
    for (const Value& v : values_) {
      if (Chance(0.15)) outputs.push_back(v.name);
    }
    graph += fmt::format("output {}\n", fmt::join(outputs, ", "));
  }

  void MakeClaims() {
    for (size_t i = 0; i + 1 < values_.size(); ++i) {
      const size_t k = i + 1 + static_cast<size_t>(Below(std::min<size_t>(3, values_.size() - i - 1)));
      const Value &a = values_[i], &b = values_[k];
      if (a.op.empty() || b.op.empty() || !Chance(0.3)) continue;
      const std::string& cls = OneOf(classes_);
      setup += fmt::format("claim {} pair = {}, {} benefit={}\n", cls, a.name, b.name, 1 + Below(9));
      setup += fmt::format("kernel {} pair = {}+{} writes={}{}\n", cls, a.op, b.op, b.name, Options(2));
    }
  }

  std::mt19937 random_;
  std::vector<std::string> classes_;
  std::vector<Value> values_;
};

TEST(RandomPlans, KeepTheRulesOfEveryPlan) {
  const char* given = std::getenv("MGE_TEST_RANDOM_PLANS");
  const uint32_t count = given ? static_cast<uint32_t>(std::atoi(given)) : 300;
  for (uint32_t seed = 0; seed < count && !HasFailure(); ++seed) {
    const RandomModel model(seed);
    const std::string plan = MakePlanText(model.setup, model.graph);
    EXPECT_TRUE(plan.find("FAULT") == std::string::npos && plan.starts_with("units:")) << "seed " << seed << "\n"
                                                                                       << model.setup << "---\n"
                                                                                       << model.graph << "---\n"
                                                                                       << plan;
  }
}

}  // namespace
}  // namespace mge
