// SPDX-License-Identifier: Apache-2.0
// Generated code of elementwise chains: the interpreter's micro-kernels are the judge, and bits must be equal.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/plugins/cpu/random_chain.h"
#include "tests/plugins/cpu/under_test.h"
#include "tests/support/chain.h"

namespace mge::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

// Returns the bits of an element; all NaN are equal.
uint64_t BitsOf(const Tensor& t, int64_t i) {
  if (kFloating.Contains(t.dtype()) && std::isnan(At(t, i))) return ~uint64_t{0};
  uint64_t bits = 0;
  const auto bytes = static_cast<size_t>(ElementBytes(t.dtype()));
  std::memcpy(&bits, static_cast<const char*>(t.data()) + static_cast<size_t>(i) * bytes, bytes);
  return bits;
}

std::string FirstDifference(const Tensor& got, const Tensor& want) {
  for (int64_t i = 0; i < want.elements(); ++i) {
    if (BitsOf(got, i) == BitsOf(want, i)) continue;
    return std::to_string(i) + " of " + std::to_string(want.elements()) + ": " + std::to_string(At(got, i)) + ", expected " +
           std::to_string(At(want, i));
  }
  return "";
}

Tolerance Anything(DType) { return {std::numeric_limits<double>::infinity(), 0}; }

// The instruction sets of this machine that code is generated for. Empty for a build without Xbyak.
const std::vector<std::string>& CodeSets() {
  static std::vector<std::string> sets;
  if (!MGE_HAS_XBYAK || !sets.empty()) return sets;
  for (const char* isa : {"avx2", "avx512"}) {
    UnderTest().Set("cpu.isa", isa);
    const auto ids = UnderTest().Offers(OneNode("Neg", {Random(DType::kF32, {4})})).candidates;
    if (!ids.empty() && ids[0].ends_with(isa)) sets.push_back(isa);
  }
  UnderTest().Set("cpu.isa", "auto");
  return sets;
}

// Runs each candidate with generated code, plain and with channels last, and compares it with the interpreter's. Returns the number
// of candidates with code.
int CompareWithTheInterpreter(const Case& c, const std::function<Tolerance(DType)>& tolerance) {
  const std::string code = "cpu.elementwise.jit";
  int compared = 0;
  for (const std::string& isa : CodeSets()) {
    UnderTest().Set("cpu.isa", isa);
    const Backend::Outcome r = UnderTest().Check(c, tolerance);
    for (size_t i = 0; i < r.candidates.size(); ++i) {
      if (!r.candidates[i].starts_with(code)) continue;
      const std::string plain = "cpu.elementwise" + r.candidates[i].substr(code.size());
      const auto judge =
          static_cast<size_t>(std::find(r.candidates.begin(), r.candidates.end(), plain) - r.candidates.begin());
      ++compared;
      for (size_t o = 0; o < r.outputs[i].size(); ++o) {
        EXPECT_EQ(FirstDifference(r.outputs[i][o], r.outputs.at(judge)[o]), "")
            << c.name << " " << r.candidates[i] << " output " << o;
      }
    }
  }
  UnderTest().Set("cpu.isa", "auto");
  return compared;
}

void ExpectTheBitsOfTheInterpreter(const Case& c) {
  EXPECT_GE(CompareWithTheInterpreter(c, Anything), CodeSets().empty() ? 0 : 1) << c.name;
}

const int64_t kLengths[] = {1, 7, 8, 9, 16, 31, 33, 1029, 5003};

TEST(Jit, EveryFunctionOfOneOperandGivesTheBitsOfTheInterpreter) {
  for (const Unary& u : UnaryOps()) {
    for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (int64_t n : kLengths) {
        Case c = OneNode(u.op, {Special(t, {n}, static_cast<uint64_t>(n))}, u.attrs);
        Then(c, "Mul", {Fill(t, {}, {1.25})});
        ExpectTheBitsOfTheInterpreter(c);
      }
    }
  }
}

TEST(Jit, EveryFunctionOfTwoOperandsGivesTheBitsOfTheInterpreterForEachBroadcast) {
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "PRelu"}) {
    for (DType t : {DType::kF32, DType::kF16, DType::kBF16}) {
      for (const Shape& other : {Shape{3, 5, 137}, Shape{}, Shape{137}, Shape{3, 5, 1}, Shape{3, 1, 137}, Shape{5, 1}}) {
        for (bool constant : {true, false}) {
          Case c = OneNode("Neg", {Special(t, {3, 5, 137}, 3)});
          Then(c, op, {Special(t, other, 7)}, {}, constant);
          Then(c, "Abs");
          ExpectTheBitsOfTheInterpreter(c);
        }
      }
    }
  }
}

TEST(Jit, LimitsOfEachSignGiveTheBitsOfTheInterpreter) {
  for (double low : {0.0, -0.0, -1.5, 1.0, double{NAN}, -double{INFINITY}}) {
    for (double high : {0.0, -0.0, 6.0, -2.0, double{NAN}, double{INFINITY}}) {
      Case c = OneNode("Neg", {Special(DType::kF32, {203}, 5)});
      Then(c, "Clip", {Fill(DType::kF32, {}, {low}), Fill(DType::kF32, {}, {high})});
      ExpectTheBitsOfTheInterpreter(c);
    }
  }
}

TEST(Jit, ShortRowsStridesAndChannelsLastGiveTheBitsOfTheInterpreter) {
  for (DType t : {DType::kF32, DType::kF16}) {
    for (const Shape& shape : {Shape{2, 7, 5, 3}, Shape{1, 16, 9, 9}, Shape{4, 3, 2, 200}}) {
      for (const Shape& other :
           {Shape{shape[1], 1, 1}, Shape{shape[3]}, Shape{shape[2], 1}, Shape{shape[0], 1, 1, shape[3]}}) {
        Case c = OneNode("Sigmoid", {Special(t, shape, 9)});
        Then(c, "Mul", {Special(t, other, 2)});
        Then(c, "Add", {Special(t, shape, 4)}, {}, false);
        Then(c, "Sub", {Special(t, {shape[1], 1, 1}, 6)}, {}, false);
        ExpectTheBitsOfTheInterpreter(c);
      }
    }
  }
}

TEST(Jit, ComparisonsConditionsAndCastsGiveTheBitsOfTheInterpreter) {
  constexpr int64_t kBool = 9, kFloat = 1, kFloat16 = 10, kBfloat16 = 16;
  for (int64_t n : kLengths) {
    for (const char* op : {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}) {
      Case c = OneNode("Abs", {Special(DType::kF32, {n}, 3)});
      Then(c, op, {Special(DType::kF32, {n}, 5)}, {}, false);
      Then(c, "Not");
      Then(c, "Xor", {Special(DType::kBool, {n}, 6)}, {}, false);
      ExpectTheBitsOfTheInterpreter(c);
      Then(c, "And", {Special(DType::kBool, {n}, 7)}, {}, false);
      Then(c, "Or", {Special(DType::kBool, {}, 8)}, {}, false);
      Then(c, "Where", {Special(DType::kF32, {n}, 1), Special(DType::kF32, {}, 2)}, {}, false);
      ExpectTheBitsOfTheInterpreter(c);
    }
    for (const auto& [from, to] : std::vector<std::pair<DType, int64_t>>{{DType::kF32, kFloat16},
                                                                         {DType::kF32, kBfloat16},
                                                                         {DType::kF16, kFloat},
                                                                         {DType::kBF16, kFloat},
                                                                         {DType::kF16, kBfloat16},
                                                                         {DType::kBF16, kFloat16},
                                                                         {DType::kBool, kFloat},
                                                                         {DType::kI8, kFloat},
                                                                         {DType::kU8, kFloat16},
                                                                         {DType::kF16, kBool}}) {
      Case c = OneNode("Cast", {Special(from, {n}, 3)}, With({{"to", to}}));
      if (to == kBool) {
        Then(c, "Not");
      } else {
        Then(c, "Neg");
        Then(c, "Abs");
      }
      ExpectTheBitsOfTheInterpreter(c);
    }
    for (const char* op : {"IsNaN", "IsInf"}) {
      Case c = OneNode(op, {Special(DType::kF32, {n}, 3)});
      Then(c, "Not");
      ExpectTheBitsOfTheInterpreter(c);
    }
  }
}

TEST(Jit, QuantizationOfBytesGivesTheBitsOfTheInterpreter) {
  for (DType q : {DType::kI8, DType::kU8}) {
    const double zero = q == DType::kU8 ? 113 : -7;
    for (int64_t n : kLengths) {
      Case c = OneNode("Relu", {Special(DType::kF32, {n}, 3)});
      Then(c, "QuantizeLinear", {Fill(DType::kF32, {}, {0.037}), Fill(q, {}, {zero})});
      ExpectTheBitsOfTheInterpreter(c);
      Then(c, "DequantizeLinear", {Fill(DType::kF32, {}, {0.021}), Fill(q, {}, {zero})});
      Then(c, "Neg");
      ExpectTheBitsOfTheInterpreter(c);
      Case d = OneNode("DequantizeLinear", {Special(q, {n}, 3), Fill(DType::kF32, {}, {0.021})});
      Then(d, "Sigmoid");
      Then(d, "QuantizeLinear", {Fill(DType::kF32, {}, {0.004})});
      ExpectTheBitsOfTheInterpreter(d);
    }
    Case axis =
        OneNode("DequantizeLinear", {Special(q, {3, 5, 140}, 3), Random(DType::kF32, {5}, 0.1, 1), Random(q, {5}, 0, 9)},
                With({{"axis", int64_t{1}}}));
    Then(axis, "Tanh");
    ExpectTheBitsOfTheInterpreter(axis);
  }
}

TEST(Jit, RandomChainsGiveTheBitsOfTheInterpreter) {
  const char* count = std::getenv("MGE_TEST_RANDOM_CHAINS");  // of the long form
  const uint64_t chains = count ? std::strtoull(count, nullptr, 10) : 60;
  uint64_t with_code = 0;
  for (uint64_t seed = 1; seed <= chains; ++seed) {
    with_code += static_cast<uint64_t>(CompareWithTheInterpreter(RandomChain(seed).Make(), Anything));
    if (HasFailure()) FAIL() << "seed " << seed;
  }
  EXPECT_GE(with_code, CodeSets().empty() ? 0 : chains / 2);
}

TEST(Jit, NamesTheInstructionsThatItCannotExpress) {
  if (CodeSets().empty()) GTEST_SKIP() << "needs AVX2 and a build with Xbyak";
  Case around = OneNode("Abs", {Random(DType::kF32, {100})});
  for (const char* op : {"Neg", "Sin", "Exp", "Neg"}) Then(around, op);
  const Backend::Outcome some = UnderTest().Offers(around);
  EXPECT_THAT(some.candidates, Contains(StartsWith("cpu.elementwise.jit.")));
  EXPECT_THAT(some.refusals, Contains(HasSubstr("generated code only around sin, which it cannot express")));

  Case none = OneNode("Sin", {Random(DType::kF32, {100})});
  Then(none, "Cos");
  const Backend::Outcome refused = UnderTest().Offers(none);
  EXPECT_THAT(refused.candidates, Not(Contains(StartsWith("cpu.elementwise.jit."))));
  EXPECT_THAT(refused.refusals, Contains(HasSubstr("no generated code: sin, cos cannot be expressed")));
}

TEST(Jit, ASettingTurnsItOff) {
  Case c = OneNode("Abs", {Random(DType::kF32, {100})});
  Then(c, "Exp");
  UnderTest().Set("cpu.jit", "0");
  const Backend::Outcome r = UnderTest().Check(c, Closely);
  UnderTest().Set("cpu.jit", "1");
  EXPECT_THAT(r.candidates, Not(Contains(StartsWith("cpu.elementwise.jit."))));
  EXPECT_THAT(r.refusals, Contains(HasSubstr("cpu.jit is off")));
}

TEST(Jit, FilesOfTheCodeAreKeptIfTheUserAsksForThem) {
  if (CodeSets().empty()) GTEST_SKIP() << "needs AVX2 and a build with Xbyak";
  const std::string folder = ::testing::TempDir() + "/mge_jit_" + std::to_string(getpid()) + "/new";
  UnderTest().Set("jit.keep_files", "1");
  UnderTest().Set("jit.work_dir", folder);
  Case c = OneNode("Sigmoid", {Random(DType::kF32, {100})});
  Then(c, "Mul", {Fill(DType::kF32, {}, {7.625})});
  UnderTest().Check(c, Closely);
  UnderTest().Set("jit.keep_files", "0");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  EXPECT_THAT(names, UnorderedElementsAre(EndsWith(".txt"), EndsWith(".bin")));
  for (const std::string& name : names) {
    std::ifstream file(folder + "/" + name);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_FALSE(text.empty());
    if (name.ends_with(".txt")) {
      EXPECT_THAT(text, AllOf(HasSubstr("= sigmoid(%0)"), HasSubstr("= mul(")));
    }
  }
  EXPECT_THAT(UnderTest().log(), HasSubstr("the files of generated kernels are kept in " + folder));
  std::filesystem::remove_all(std::filesystem::path(folder).parent_path());
}

// Returns the bytes of executable memory that belongs to no file.
uint64_t ExecutableBytes() {
  uint64_t sum = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin, end, inode;
    char rights[5];
    if (std::sscanf(line.c_str(), "%llx-%llx %4s %*s %*s %llu", &begin, &end, rights, &inode) != 4) continue;
    if (rights[2] == 'x' && inode == 0) sum += end - begin;
  }
  return sum;
}

TEST(Jit, AProcessKeepsTheCodeOfALimitedNumberOfChains) {
  if (CodeSets().empty()) GTEST_SKIP() << "needs AVX2 and a build with Xbyak";
  constexpr int kKept = 256, kChains = 600;
  const uint64_t before = ExecutableBytes();
  for (int i = 0; i < kChains; ++i) {
    Case c = OneNode("Abs", {Random(DType::kF32, {16})});
    Then(c, "Mul", {Fill(DType::kF32, {}, {1.0 + i})});
    UnderTest().Check(c, Closely);
  }
  EXPECT_LE(ExecutableBytes(), before + (kKept + 1) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)));
}

#if defined(__x86_64__)
// Makes mprotect() fail for executable pages in this process, as systemd's MemoryDenyWriteExecute does.
void ForbidExecutablePages() {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter = {std::size(program), program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0) std::exit(77);
}

// Runs two chains where executable pages are refused. Returns whether the interpreter computes them, and one message says why.
bool InterpretsWithoutExecutablePages() {
  ForbidExecutablePages();
  for (const char* op : {"Exp", "Tanh"}) {
    Case c = OneNode("Abs", {Random(DType::kF32, {100})});
    Then(c, op);
    const Backend::Outcome r = UnderTest().Check(c, Closely);
    EXPECT_THAT(r.candidates, Not(Contains(StartsWith("cpu.elementwise.jit."))));
    EXPECT_THAT(r.refusals, Contains(HasSubstr("the system refuses executable pages (mprotect")));
  }
  const std::string message = "elementwise chains are interpreted: the system refuses executable pages",
                    &log = UnderTest().log();
  EXPECT_NE(log.find(message), std::string::npos);
  EXPECT_EQ(log.find(message), log.rfind(message));
  return !::testing::Test::HasFailure();
}

TEST(JitDeathTest, ChainsAreInterpretedIfTheSystemRefusesExecutablePages) {
  if (CodeSets().empty()) GTEST_SKIP() << "needs AVX2 and a build with Xbyak";
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a new process, which has not tried executable pages yet
  EXPECT_EXIT(std::exit(InterpretsWithoutExecutablePages() ? 0 : 1), ::testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace mge::testing
