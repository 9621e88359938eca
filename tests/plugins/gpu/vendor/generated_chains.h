// SPDX-License-Identifier: Apache-2.0
// Tests of generated chains that are the same for the compilers of all vendors.
#pragma once

#include <dlfcn.h>

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "core/ops/op.h"
#include "mge/plugin/elementwise.hpp"
#include "tests/plugins/gpu/run_time_compiler/twins.h"
#include "tests/plugins/gpu/vendor/software_driver.h"
#include "tests/support/command.h"

namespace mge {

inline constexpr DType kChainTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,
                                        DType::kI16, DType::kI32, DType::kI64,  DType::kU8,  DType::kU16,
                                        DType::kU32, DType::kU64, DType::kBool};

// Returns the right side of an operator of x in the text form.
inline std::string CallOf(const ElementwiseOp& op, DType to) {
  const std::string name = op.name;
  switch (op.form) {
    case ElementwiseForm::kBinary:
    case ElementwiseForm::kVariadic:
    case ElementwiseForm::kMean: return name + (name == "Mod" ? "(x, z) {fmod=1}" : "(x, z)");
    case ElementwiseForm::kWhere: return name + "(c, x, z)";
    case ElementwiseForm::kClip: return name + "(x, low)";
    case ElementwiseForm::kCast:
      return name == "Cast" ? name + "(x) {to=" + std::to_string(static_cast<int>(to)) + "}" : name + "(x, c)";
    default: return name + "(x)";
  }
}

// Returns the inputs of a graph whose x has the type.
inline std::string Inputs(DType type) {
  const std::string name(DTypeName(type));
  return "input first : " + name + "[3,8]\ninput z : " + name + "[3,8]\ninput c : bool[3,8]\nconst low = " + name + "[]<" +
         (type == DType::kBool ? "true" : "1") + ">\n" +
         (type == DType::kBool ? "x = Xor(first, z)\n" : "x = Add(first, z)\n");
}

// Returns the type of an expression of these inputs, or kUndefined if the operator does not take them.
inline DType ResultTypeOf(DType type, const std::string& call) {
  auto graph = ParseGraphText(Inputs(type) + "y = " + call + "\noutput y\n");
  if (!graph.ok() || !InferTypes(*graph).ok()) return DType::kUndefined;
  return graph->value(graph->outputs()[0]).type.dtype;
}

// Returns a graph that combines the results of all operators that take the type.
inline std::string ChainOfEveryOperator(DType type) {
  std::string text = Inputs(type), sum = "x";
  int results = 0;
  auto add = [&](const ElementwiseOp& op, DType to) {
    const std::string call = CallOf(op, to), id = std::to_string(results);
    const DType result = ResultTypeOf(type, call);
    if (result == DType::kUndefined) return;
    std::string term = "t" + id;
    text += term + " = " + call + "\n";
    if (result != type && result != DType::kBool) {
      text += "back" + id + " = Cast(" + term + ") {to=" + std::to_string(static_cast<int>(type)) + "}\n";
      term = "back" + id;
    }
    const std::string next = "sum" + id;
    if (type == DType::kBool)
      text += next + " = Xor(" + sum + ", " + term + ")\n";
    else if (result == DType::kBool)
      text += next + " = Where(" + term + ", " + sum + ", z)\n";
    else
      text += next + " = Add(" + sum + ", " + term + ")\n";
    sum = next;
    ++results;
  };
  for (const ElementwiseOp& op : kElementwiseOps) {
    // A chain has no use of copies and shifts.
    if (op.form == ElementwiseForm::kCopy || op.function == ElementwiseFunction::kShiftRight) continue;
    if (op.form != ElementwiseForm::kCast || op.name != std::string_view("Cast"))
      add(op, type);
    else
      for (const DType to : kChainTypes) {
        if (to != type) add(op, to);
      }
  }
  return text + "output " + sum + "\n";
}

// The tests of one vendor's chains.
class GeneratedChains : public Command {
 protected:
  struct Libraries {
    const char* driver;    // in software
    const char* compiler;  // in place of the true one
    const char* true_one;  // which `compiler` uses too, if it is installed
  };

  // One chain per element type has all operators that take the type.
  static void ExpectEveryFunctionCompiles(const std::string& backend, const std::string& setting, const Libraries& use) {
    for (const DType type : kChainTypes) {
      SCOPED_TRACE(DTypeName(type));
      DriverInSoftware driver(use.driver);
      auto graph = ParseGraphText(ChainOfEveryOperator(type));
      ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
      auto session = Session::Create(RuntimeOver(backend, use.driver, {{setting, use.compiler}}), {*std::move(graph), {}},
                                     {.device = backend + "0"});
      ASSERT_TRUE(session.ok()) << FormatError(session.status());
      std::vector<InputType> types;
      for (const DType input : {type, type, DType::kBool}) types.push_back({.dtype = input, .shape = {3, 8}});
      const auto plan = (*session)->PlanFor(types);
      ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
      std::set<std::string> outside;
      for (const Unit& unit : (*plan)->units) {
        if (!unit.kernel.starts_with("gpu.compiled_chain")) outside.insert(unit.ops.begin(), unit.ops.end());
      }
      // Divisions of integers report faults. The others have no function of integers.
      if (DTypeName(type).find("int") != std::string_view::npos) {
        EXPECT_THAT(outside, testing::IsSupersetOf({"Div", "Mod"}));
        for (const char* op : {"Div", "Mod", "Erf", "Pow", "PRelu", "Shrink"}) outside.erase(op);
      }
      EXPECT_THAT(outside, testing::IsEmpty());
    }
    if (!std::filesystem::exists(use.true_one)) GTEST_SKIP() << "compiled for this machine only: no " << use.true_one;
    void* compiler = dlopen(use.compiler, RTLD_NOW | RTLD_LOCAL);
    EXPECT_GE(reinterpret_cast<uint64_t (*)()>(dlsym(compiler, "emulating_true_compilations"))(), std::size(kChainTypes));
  }

  // Runs the command, which collects sources of chains. Compiles them as one unit, and runs the command with these twins.
  // `environment` selects the driver and the compiler.
  Outcome RunWithOneUnit(const std::string& command, const std::string& environment, const Libraries& use) const {
    const std::string folder = Path("chains"), unit = Path("chains.so");
    std::filesystem::create_directory(folder);
    Mge(command, environment + " " + kCollectVariable + "=" + folder);
    const std::vector<std::string> sources = CollectedSources(folder);
    EXPECT_GT(sources.size(), 50u);
    EXPECT_TRUE(CompileTwins(sources, use.driver, unit));
    return Mge(command, environment + " " + kUnitVariable + "=" + unit);
  }

  // The cases have expected results, with which the second run compares what the chains compute.
  void ExpectCasesOfOnnxCompileAsOneUnit(const std::string& device, const std::string& environment,
                                         const Libraries& use) const {
    constexpr char kCases[] = "/usr/share/libonnx-testdata/data";
    if (!std::filesystem::exists(kCases)) GTEST_SKIP() << "no " << kCases << " (Debian's libonnx-testdata)";
    const Outcome o = RunWithOneUnit("check --device " + device + " " + kCases, environment, use);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.err, testing::Not(testing::HasSubstr("cannot be compiled")));
    if (!std::filesystem::exists(use.true_one)) GTEST_SKIP() << "compiled for this machine only: no " << use.true_one;
  }
};

}  // namespace mge
