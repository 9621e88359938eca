// SPDX-License-Identifier: Apache-2.0
// Code of the compilers that jit.backend names: the interpreter is the judge, with the tolerance of `mge compare`.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/random_chain.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

const char* const kReason = "no compiler is built: libhalide14-0-dev, libmlir-15-dev and llvm-15-dev are missing";

// The compilers whose libraries this build has.
const std::vector<std::string>& Installed() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const char* name : {"halide", "mlir"}) {
      if (std::filesystem::exists(MGE_BINARY_DIR "/lib/mge/jit/libmge_jit_" + std::string(name) + ".so"))
        found.push_back(name);
    }
    return found;
  }();
  return names;
}

// Sets jit.backend during its life.
class Using {
 public:
  explicit Using(const std::string& compiler) { UnderTest().Set("jit.backend", compiler); }
  Using(const Using&) = delete;
  ~Using() { UnderTest().Set("jit.backend", "auto"); }
};

Tolerance Anything(DType) { return {std::numeric_limits<double>::infinity(), 0}; }

// Returns whether `mge compare` would accept the number.
bool IsNear(DType type, double got, double want) {
  if (std::isnan(want) || std::isinf(want)) return std::isnan(want) ? std::isnan(got) : got == want;
  if (!kFloating.Contains(type)) return got == want;
  const double rounding = type == DType::kBF16 ? 0x1p-8 : type == DType::kF16 ? 0x1p-11 : 0x1p-24;
  return std::abs(got - want) <= 1e-7 + std::max(1e-3, 3 * rounding) * std::abs(want);
}

// Returns the number of elements that are near neither of the two expected ones.
int64_t CountFar(const Tensor& got, const Tensor& want, const Tensor& other) {
  int64_t far = 0;
  for (int64_t i = 0; i < want.elements(); ++i) {
    far += !IsNear(want.dtype(), At(got, i), At(want, i)) && !IsNear(want.dtype(), At(got, i), At(other, i));
  }
  return far;
}

// Returns the interpreter's outputs for an instruction set and a layout ("" or ".nhwc").
std::vector<Tensor> Interpreted(const Backend::Outcome& r, const std::string& layout, const std::string& isa) {
  for (size_t i = 0; i < r.candidates.size(); ++i) {
    if (r.candidates[i] == "cpu.elementwise" + layout + "." + isa) return r.outputs[i];
  }
  return {};
}

// Compares the candidates of the compiler with the interpreter: that of the same instruction set, or the portable one, which
// rounds products and sums apart, as Halide does. Adds a failure for each that differs. Returns the number of candidates.
int CompareWithTheInterpreter(const Case& c, const std::string& compiler) {
  const Using backend(compiler);
  const std::string code = "cpu.elementwise." + compiler;
  if (UnderTest().Offers(c).candidates.empty()) return 0;  // too many values for one program
  const Backend::Outcome r = UnderTest().Check(c, Anything);
  UnderTest().Set("cpu.isa", "portable");
  const Backend::Outcome portable = UnderTest().Check(c, Anything);
  UnderTest().Set("cpu.isa", "auto");
  int compared = 0;
  for (size_t i = 0; i < r.candidates.size(); ++i) {
    if (!r.candidates[i].starts_with(code)) continue;
    const std::string rest = r.candidates[i].substr(code.size());  // as in ".nhwc.avx2"
    const std::string layout = rest.substr(0, rest.rfind('.')), isa = rest.substr(rest.rfind('.') + 1);
    const std::vector<Tensor> same = Interpreted(r, layout, isa), apart = Interpreted(portable, layout, "portable");
    ++compared;
    for (size_t o = 0; o < r.outputs[i].size(); ++o) {
      EXPECT_EQ(CountFar(r.outputs[i][o], same.at(o), apart.at(o)), 0)
          << c.name << " " << r.candidates[i] << " output " << o;
    }
  }
  return compared;
}

// Returns a case with an output for each of `count` functions of one operand.
Case Functions(DType type, int64_t n, size_t first, size_t count) {
  Case c;
  c.name = "functions from " + std::to_string(first);
  Tensor x = Special(type, {n}, 5);
  const ValueId input = c.graph.AddInput("x", {type, true, x.shape(), {}});
  c.inputs.push_back(std::move(x));
  const std::vector<Unary> all = UnaryOps();
  for (size_t i = first; i < std::min(first + count, all.size()); ++i) {
    const Unary& u = all[i];
    mge::Node node;
    node.op = u.op;
    node.name = u.op + std::to_string(i);
    node.version = 24;
    node.attrs = u.attrs;
    node.inputs = {input};
    node.outputs = {c.graph.AddTemporary(node.name + "_y")};
    c.graph.outputs().push_back(node.outputs[0]);
    c.graph.AddNode(std::move(node));
  }
  return c;
}

TEST(Compilers, EveryFunctionIsNearThatOfTheInterpreter) {
  if (Installed().empty()) GTEST_SKIP() << kReason;
  for (const std::string& compiler : Installed()) {
    for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
      const size_t count = 7;  // a result of 16 bits needs a buffer, of which a program has few
      for (size_t first = 0; first < UnaryOps().size(); first += count) {
        EXPECT_GE(CompareWithTheInterpreter(Functions(type, 1029, first, count), compiler), 1) << compiler;
      }
    }
  }
}

TEST(Compilers, BroadcastOperandsAndEachLengthAreNearTheInterpreter) {
  if (Installed().empty()) GTEST_SKIP() << kReason;
  for (const std::string& compiler : Installed()) {
    for (const Shape& other : {Shape{3, 5, 137}, Shape{137}, Shape{3, 5, 1}, Shape{5, 1}}) {
      Case c = OneNode("Neg", {Special(DType::kF32, {3, 5, 137}, 3)});
      Then(c, "Add", {Special(DType::kF32, other, 7)}, {}, false);
      Then(c, "Max", {Special(DType::kF32, {}, 8)});
      EXPECT_GE(CompareWithTheInterpreter(c, compiler), 1) << compiler;
    }
    for (const int64_t n : {1, 7, 8, 15, 17, 5003}) {
      Case c = OneNode("Abs", {Special(DType::kF32, {n}, 3)});
      Then(c, "Less", {Special(DType::kF32, {n}, 5)}, {}, false);
      Then(c, "Not");
      Then(c, "Where", {Special(DType::kF32, {n}, 1), Special(DType::kF32, {}, 2)}, {}, false);
      EXPECT_GE(CompareWithTheInterpreter(c, compiler), 1) << compiler;
    }
  }
}

TEST(Compilers, QuantizationOfBytesIsThatOfTheInterpreter) {
  if (Installed().empty()) GTEST_SKIP() << kReason;
  for (const std::string& compiler : Installed()) {
    for (const DType q : {DType::kI8, DType::kU8}) {
      Case c = OneNode("DequantizeLinear", {Special(q, {203}, 3), Fill(DType::kF32, {}, {0.021})});
      Then(c, "Relu");
      Then(c, "QuantizeLinear", {Fill(DType::kF32, {}, {0.037}), Fill(q, {}, {q == DType::kU8 ? 113.0 : -7.0})});
      EXPECT_GE(CompareWithTheInterpreter(c, compiler), 1) << compiler;
    }
  }
}

TEST(Compilers, RandomChainsAreNearTheInterpreter) {
  if (Installed().empty()) GTEST_SKIP() << kReason;
  const char* count = std::getenv("MGE_TEST_COMPILED_CHAINS");  // of the long form
  const uint64_t chains = count ? std::strtoull(count, nullptr, 10) : 8;
  for (const std::string& compiler : Installed()) {
    int with_code = 0;
    for (uint64_t seed = 1; seed <= chains; ++seed) {
      with_code += CompareWithTheInterpreter(RandomChain(seed).Make(), compiler);
      if (HasFailure()) FAIL() << compiler << ", seed " << seed;
    }
    EXPECT_GE(with_code, static_cast<int>(chains / 2)) << compiler;
  }
}

TEST(Compilers, NameTheInstructionsThatTheyCannotExpress) {
  if (Installed().empty()) GTEST_SKIP() << kReason;
  for (const std::string& compiler : Installed()) {
    const Using backend(compiler);
    Case c = OneNode("Abs", {Random(DType::kF32, {100})});
    for (const char* op : {"Neg", "Sin", "Exp", "Neg"}) Then(c, op);
    const Backend::Outcome r = UnderTest().Offers(c);
    EXPECT_THAT(r.candidates, Contains(StartsWith("cpu.elementwise." + compiler)));
    EXPECT_THAT(r.refusals, Contains(HasSubstr("code of " + compiler + " only around sin, which it cannot express")));
  }
}

TEST(Compilers, AreUsedOnlyIfTheSettingNamesThem) {
  Case c = OneNode("Abs", {Random(DType::kF32, {100})});
  Then(c, "Exp");
  for (const char* backend : {"auto", "nvrtc"}) {
    const Using setting(backend);
    for (const char* compiler : {"halide", "mlir"}) {
      EXPECT_THAT(UnderTest().Offers(c).candidates, Not(Contains(HasSubstr(compiler))));
    }
  }
}

TEST(Compilers, KeepTheirSourceIfTheUserAsksForIt) {
  if (Installed().empty()) GTEST_SKIP() << kReason;
  for (const std::string& compiler : Installed()) {
    const Using backend(compiler);
    const std::string folder = ::testing::TempDir() + "/mge_" + compiler + "_" + std::to_string(getpid());
    UnderTest().Set("jit.keep_files", "1");
    UnderTest().Set("jit.work_dir", folder);
    Case c = OneNode("Sigmoid", {Random(DType::kF32, {100})});
    Then(c, "Mul", {Fill(DType::kF32, {}, {7.625})});
    UnderTest().Check(c, Roughly);
    UnderTest().Set("jit.keep_files", "0");
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
    EXPECT_THAT(names, Contains(EndsWith(compiler == "halide" ? ".stmt" : ".mlir")));
    EXPECT_THAT(names, Contains(EndsWith(".bin")));
    EXPECT_THAT(names, Contains(EndsWith(".txt")));
    std::filesystem::remove_all(folder);
  }
}

// ROCm's compiler has an LLVM of its own, whose options must not meet those of the others.
TEST(Compilers, WorkBesideTheCompilerOfRocm) {
  if (Installed().empty()) GTEST_SKIP() << kReason;
  if (!dlopen("libamd_comgr.so.2", RTLD_NOW | RTLD_LOCAL)) GTEST_SKIP() << "needs libamd_comgr.so.2 (Debian package hipcc)";
  for (const std::string& compiler : Installed()) {
    Case c = OneNode("Tanh", {Random(DType::kF32, {100})});
    Then(c, "Mul", {Fill(DType::kF32, {}, {3.375})});
    EXPECT_GE(CompareWithTheInterpreter(c, compiler), 1) << compiler;
  }
}

}  // namespace
}  // namespace mge::testing
