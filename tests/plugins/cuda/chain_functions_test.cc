// SPDX-License-Identifier: Apache-2.0
// The functions of generated chains in each element type: NVRTC compiles all of them.
#include <dlfcn.h>

#include <filesystem>
#include <set>

#include "core/ops/op.h"
#include "plugins/gpu/support/elementwise_ops.h"
#include "tests/plugins/cuda/software_driver.h"

namespace mge {
namespace {

using gpu::ElementwiseOp;
using gpu::Form;

constexpr char kEmulating[] = MGE_BINARY_DIR "/tests/cuda/libnvrtc.so";
constexpr char kReal[] = "/usr/local/cuda/lib64/libnvrtc.so.13";
constexpr DType kTypes[] = {DType::kF32, DType::kF16, DType::kBF16, DType::kF64, DType::kI8,  DType::kI16, DType::kI32,
                            DType::kI64, DType::kU8,  DType::kU16,  DType::kU32, DType::kU64, DType::kBool};

uint64_t Emulating(const char* what) {
  void* library = dlopen(kEmulating, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<uint64_t (*)()>(dlsym(library, what))();
}

// Returns the right side of an operator of x in the text form.
std::string Call(const ElementwiseOp& op, DType to) {
  const std::string name = op.name;
  switch (op.form) {
    case Form::kBinary:
    case Form::kPow:
    case Form::kVariadic:
    case Form::kMean: return name + "(x, z)";
    case Form::kMod: return name + "(x, z) {fmod=1}";
    case Form::kWhere: return name + "(c, x, z)";
    case Form::kClip: return name + "(x, low)";
    case Form::kCast:
      return name == "Cast" ? name + "(x) {to=" + std::to_string(static_cast<int>(to)) + "}" : name + "(x, c)";
    default: return name + "(x)";
  }
}

// Returns the inputs of a graph whose x has the type.
std::string Inputs(DType type) {
  const std::string name(DTypeName(type));
  return "input first : " + name + "[3,8]\ninput z : " + name + "[3,8]\ninput c : bool[3,8]\nconst low = " + name + "[]<" +
         (type == DType::kBool ? "true" : "1") + ">\n" +
         (type == DType::kBool ? "x = Xor(first, z)\n" : "x = Add(first, z)\n");
}

// Returns the type of an expression of these inputs, or kUndefined if the operator does not take them.
DType TypeOf(DType type, const std::string& call) {
  auto graph = ParseGraphText(Inputs(type) + "y = " + call + "\noutput y\n");
  if (!graph.ok() || !InferTypes(*graph).ok()) return DType::kUndefined;
  return graph->value(graph->outputs()[0]).type.dtype;
}

// Returns a graph that combines the results of all operators that take the type.
std::string AllOf(DType type) {
  std::string text = Inputs(type), sum = "x";
  int results = 0;
  auto add = [&](const ElementwiseOp& op, DType to) {
    const std::string call = Call(op, to), id = std::to_string(results);
    const DType result = TypeOf(type, call);
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
  for (const ElementwiseOp& op : gpu::kElementwiseOps) {
    if (op.form == Form::kCopy || op.form == Form::kShift) continue;  // a chain has no use of them
    if (op.form != Form::kCast || op.name != std::string_view("Cast"))
      add(op, type);
    else
      for (const DType to : kTypes) {
        if (to != type) add(op, to);
      }
  }
  return text + "output " + sum + "\n";
}

TEST(ChainFunctions, OfEveryOperatorAndTypeAreCompiledByNvrtc) {
  for (const DType type : kTypes) {
    SCOPED_TRACE(DTypeName(type));
    SoftwareDriver driver;
    auto graph = ParseGraphText(AllOf(type));
    ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
    auto session = Session::Create(CudaRuntime({{"cuda.nvrtc", kEmulating}}), {*std::move(graph), {}}, {.device = "cuda0"});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    const Shape dims = {3, 8};
    const auto plan = (*session)->PlanFor(std::vector<InputType>{
        {.dtype = type, .shape = dims}, {.dtype = type, .shape = dims}, {.dtype = DType::kBool, .shape = dims}});
    ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
    std::set<std::string> outside;
    for (const Unit& unit : (*plan)->units) {
      if (!unit.kernel.starts_with("gpu.compiled_chain")) outside.insert(unit.ops.begin(), unit.ops.end());
    }
    // Divisions of integers report faults. The others have no function of integers.
    const bool integers = DTypeName(type).find("int") != std::string_view::npos;
    if (integers) {
      EXPECT_THAT(outside, testing::IsSupersetOf({"Div", "Mod"}));
      for (const char* op : {"Div", "Mod", "Erf", "Pow", "PRelu", "Shrink"}) outside.erase(op);
    }
    EXPECT_THAT(outside, testing::IsEmpty());
  }
  if (!std::filesystem::exists(kReal)) GTEST_SKIP() << "compiled for this machine only: no " << kReal;
  EXPECT_GE(Emulating("emulating_true_compilations"), std::size(kTypes));
}

}  // namespace
}  // namespace mge
