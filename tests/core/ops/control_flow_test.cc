// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan: bodies, limits, and carried values.
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Outputs(std::string_view text) {
  auto results = RunText(text);
  if (!results.ok()) return "error: " + ErrorTitle(results.status());
  std::string out;
  for (const HostValue& value : *results) out += (out.empty() ? "" : " ") + TensorToText(value.tensor);
  return out;
}

std::string If(std::string_view condition, std::string_view otherwise = "capture x\nv = Squeeze(x)\noutput v") {
  return Outputs(
      fmt::format("const c = {}\nconst x = int8[2,1]<1, 2>\n"
                  "y = If(c) captures(x, x) {{then_branch=graph {{\ncapture x\nv = Transpose(x)\noutput v\n}}, "
                  "else_branch=graph {{\n{}\n}}}}\noutput y\n",
                  condition, otherwise));
}

TEST(If, RunsOneBranch) {
  EXPECT_EQ(If("bool[]<true>"), "int8[1,2]<1, 2>");
  EXPECT_EQ(If("bool[1]<false>"), "int8[2]<1, 2>");
}

TEST(If, IgnoresErrorsOfABranchThatCannotRun) {
  const char* broken = "capture x\nconst a = int64[1]<0>\nv = Squeeze(x, a)\noutput v";
  EXPECT_EQ(If("bool[]<true>", broken), "int8[1,2]<1, 2>");
  EXPECT_THAT(If("bool[]<false>", broken), HasSubstr("only size 1 can be removed"));
}

// Returns the text of an If whose condition c is a graph input, known only in the run.
std::string IfOfInput(bool condition, std::string_view then, std::string_view otherwise) {
  auto graph =
      ParseGraphText(fmt::format("input c : bool[]\ninput x : float32[2,3]\n"
                                 "y = If(c) captures(x, x) {{then_branch=graph {{\ncapture x\n{}\noutput v\n}}, "
                                 "else_branch=graph {{\ncapture x\n{}\noutput v\n}}}}\noutput y\n",
                                 then, otherwise));
  if (!graph.ok()) return FormatError(graph.status());
  if (absl::Status status = InferTypes(*graph); !status.ok()) return "at load: " + ErrorTitle(status);
  HostValue c, x;
  c.tensor = Tensor::Scalar<bool>(condition);
  x.tensor = *Tensor::Create(DType::kF32, {2, 3});
  for (float& f : x.tensor.MutableData<float>()) f = 7;
  auto results = Interpret(*graph, {c, x});
  return results.ok() ? TensorToText((*results)[0].tensor) : "in the run: " + ErrorTitle(results.status());
}

TEST(If, ReportsTheErrorOfABranchWhenThatBranchRuns) {
  const char *good = "v = ReduceMax(x)", *bad = "const a = int64[1]<0>\nt = Squeeze(x, a)\nv = ReduceMax(t)";
  EXPECT_EQ(IfOfInput(true, good, bad), "float32[1,1]<7.0>");
  EXPECT_EQ(IfOfInput(false, bad, good), "float32[1,1]<7.0>");
  EXPECT_THAT(IfOfInput(false, good, bad), AllOf(HasSubstr("in the run: "), HasSubstr("only size 1 can be removed")));
  EXPECT_THAT(IfOfInput(true, bad, good), AllOf(HasSubstr("in the run: "), HasSubstr("only size 1 can be removed")));
  EXPECT_THAT(IfOfInput(true, bad, bad), AllOf(HasSubstr("at load: "), HasSubstr("only size 1 can be removed")));
}

TEST(If, RefusesConditionsAndBranchesThatDoNotFit) {
  EXPECT_THAT(If("bool[2]<true, false>"), HasSubstr("one bool is expected"));
  EXPECT_THAT(If("bool[0]<>"), HasSubstr("one bool is expected"));
  EXPECT_THAT(If("bool[]<true>", "capture x\nv = Squeeze(x)\noutput v, v"), HasSubstr("has 2 outputs, the node has 1"));
  EXPECT_THAT(If("bool[]<true>", "input z\ncapture x\nv = Squeeze(x)\noutput v"), HasSubstr("a branch must not have any"));
}

TEST(If, NeedsEqualTypesInBothBranchesIfTheConditionIsUnknown) {
  auto graph = ParseGraphText(
      "input c : bool\ny = If(c) {then_branch=graph {\nv = Constant() {value_int=1}\noutput v\n}, "
      "else_branch=graph {\nv = Constant() {value_float=1.0}\noutput v\n}}\noutput y\n");
  ASSERT_TRUE(graph.ok()) << FormatError(graph.status());
  EXPECT_THAT(FormatError(InferTypes(*graph)), HasSubstr("differs in type between the branches"));
}

// Returns a Loop that carries a vector, appends one element per iteration and scans its size. The condition of the body is
// false once the vector has five elements.
std::string Grow(std::string_view trips, std::string_view condition) {
  std::string inputs =
      "const one = int8[1]<1>\nconst v = int8[2]<7, 8>\nconst more = bool[6]<true, true, true, true, true, false>\n";
  std::string m = "_", c = "_";
  if (!trips.empty()) inputs += fmt::format("const {} = {}\n", m = "m", trips);
  if (!condition.empty()) inputs += fmt::format("const {} = {}\n", c = "c", condition);
  return Outputs(
      inputs +
      fmt::format(
          "w, s = Loop({}, {}, v) captures(one, more) {{body=graph {{\n"
          "input i : int64[]\ninput go : bool[]\ninput a : int8[?]\ncapture one\ncapture more\n"
          "b = Concat(a, one) {{axis=0}}\nn = Size(b)\nagain = Gather(more, n)\noutput again, b, n\n}}}}\noutput w, s\n",
          m, c));
}

TEST(Loop, RunsUntilTheConditionIsFalseOrTheTripCountIsReached) {
  EXPECT_EQ(Grow("", ""), "int8[5]<7, 8, 1, 1, 1> int64[3]<3, 4, 5>");
  EXPECT_EQ(Grow("int64[]<2>", "bool[]<true>"), "int8[4]<7, 8, 1, 1> int64[2]<3, 4>");
  EXPECT_EQ(Grow("int64[1]<9223372036854775807>", ""), "int8[5]<7, 8, 1, 1, 1> int64[3]<3, 4, 5>");
}

TEST(Loop, WithoutAnIterationYieldsEmptyScans) {
  EXPECT_EQ(Grow("int64[]<0>", ""), "int8[2]<7, 8> int64[0]<>");
  EXPECT_EQ(Grow("int64[]<-5>", ""), "int8[2]<7, 8> int64[0]<>");
  EXPECT_EQ(Grow("", "bool[]<false>"), "int8[2]<7, 8> int64[0]<>");
}

TEST(Loop, RefusesScansOfChangingShape) {
  EXPECT_THAT(Outputs("const m = int64[]<3>\nconst one = int8[1]<1>\nconst v = int8[1]<1>\n"
                      "w, s = Loop(m, _, v) captures(one) {body=graph {\ninput i\ninput go : bool[]\ninput a\ncapture one\n"
                      "b = Concat(a, one) {axis=0}\noutput go, b, b\n}}\noutput s\n"),
              HasSubstr("scan output 0 is int8[3] in iteration 1 but was int8[2] before"));
}

TEST(Loop, RefusesBodiesThatDoNotFit) {
  EXPECT_THAT(Outputs("const m = int64[]<3>\nw = Loop(m) {body=graph {\ninput i\noutput i\n}}\noutput w\n"),
              HasSubstr("the body has 1 inputs and 1 outputs"));
  EXPECT_THAT(Outputs("const m = int64[]<3>\nconst v = int8[1]<1>\nw = Loop(m, _, v) {body=graph {\ninput i\n"
                      "input go : bool[]\ninput a\nb = Shape(a)\noutput go, b\n}}\noutput w\n"),
              HasSubstr("carried value 0 is int8 but becomes int64"));
  EXPECT_THAT(Outputs("const m = int64[2]<3, 4>\nconst v = int8[1]<1>\nw = Loop(m, _, v) {body=graph {\ninput i\n"
                      "input go : bool[]\ninput a\noutput go, a\n}}\noutput w\n"),
              HasSubstr("must be one integer"));
}

TEST(Loop, CarriesSequences) {
  EXPECT_EQ(Outputs("const m = int64[]<3>\nconst v = int8[1]<4>\ns = SequenceEmpty() {dtype=3}\n"
                    "t = Loop(m, _, s) captures(v) {body=graph {\ninput i\ninput go : bool[]\n"
                    "input a : seq int8\ncapture v\nb = SequenceInsert(a, v)\noutput go, b\n}}\n"
                    "n = SequenceLength(t)\noutput n\n"),
            "int64[]<3>");
}

const char* const kEndless =
    "const v = int8[1]<1>\nconst m = int64[]<9223372036854775807>\n"
    "w, s = Loop(m, _, v) {body=graph {\ninput i : int64[]\ninput go : bool[]\ninput a\noutput go, a, a\n}}\noutput w, s\n";

TEST(Loop, StopsAnEndlessLoopOnCancellation) {
  auto graph = ParseGraphText(kEndless);
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  int asked = 0;
  auto results = Interpret(*graph, {}, UnlimitedHostAllocator(),
                           [&] { return ++asked > 1000 ? Fail(errors::kTimeout, "the time is over") : absl::OkStatus(); });
  EXPECT_EQ(ErrorId(results.status()), errors::kTimeout.id);
}

TEST(Loop, StopsEndlessScansAtTheMemoryBudget) {
  struct Limited : HostAllocator {
    int64_t left = 1 << 20;
    absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
      if (bytes > left) return Fail(errors::kOverBudget, "over the limit");
      left -= bytes;
      MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, UnlimitedHostAllocator().Allocate(bytes));
      return std::shared_ptr<std::byte>(memory.get(), [this, bytes, memory](std::byte*) { left += bytes; });
    }
  } limited;
  auto graph = ParseGraphText(kEndless);
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  EXPECT_EQ(ErrorId(Interpret(*graph, {}, limited).status()), errors::kOverBudget.id);
  EXPECT_EQ(limited.left, 1 << 20);
}

std::string Scan(std::string_view x, std::string_view attrs, std::string_view op = "Scan", std::string_view first = "") {
  return Outputs(fmt::format(
      "const x = {}\nconst h = int8[0]<>\n{}"
      "y, z = {} {{num_scan_inputs=1{}, body=graph {{\ninput s\ninput e\nt = Concat(s, e) {{axis=0}}\noutput t, e\n}}}}\n"
      "output y, z\n",
      x, first.empty() ? "" : fmt::format("const l = {}\nconst g = int8[2,0]<>\n", first),
      first.empty() ? "Scan(h, x)" : fmt::format("{}(l, g, x)", op), attrs));
}

TEST(Scan, CutsAndStacksAlongAnyAxis) {
  const char* x = "int8[2,3]<1, 2, 3, 4, 5, 6>";
  EXPECT_EQ(Scan(x, ""), "int8[6]<1, 2, 3, 4, 5, 6> int8[2,3]<1, 2, 3, 4, 5, 6>");
  EXPECT_EQ(Scan(x, ", scan_input_axes=[-1], scan_output_axes=[1]"),
            "int8[6]<1, 4, 2, 5, 3, 6> int8[2,3]<1, 2, 3, 4, 5, 6>");
  EXPECT_EQ(Scan(x, ", scan_input_directions=[1]"), "int8[6]<4, 5, 6, 1, 2, 3> int8[2,3]<4, 5, 6, 1, 2, 3>");
  EXPECT_EQ(Scan(x, ", scan_output_directions=[1]"), "int8[6]<1, 2, 3, 4, 5, 6> int8[2,3]<4, 5, 6, 1, 2, 3>");
}

TEST(Scan, MayHaveNoSteps) { EXPECT_EQ(Scan("int8[0,3]<>", ""), "int8[0]<> int8[0,3]<>"); }

TEST(Scan, OfOperatorSetEightHasABatch) {
  EXPECT_EQ(Scan("int8[2,2,1]<1, 2, 3, 4>", "", "Scan@8", "int64[2]<2, 2>"),
            "int8[2,2]<1, 2, 3, 4> int8[2,2,1]<1, 2, 3, 4>");
  EXPECT_EQ(Scan("int8[2,2,1]<1, 2, 3, 4>", ", directions=[1]", "Scan@8", "int64[2]<1, 1>"),
            "int8[2,1]<1, 3> int8[2,2,1]<1, 0, 3, 0>");
  EXPECT_THAT(Scan("int8[2,2,1]<1, 2, 3, 4>", "", "Scan@8", "int64[2]<2, 3>"), HasSubstr("is 3; it must be in [0, 2]"));
}

TEST(Scan, RefusesInputsThatDoNotFit) {
  EXPECT_THAT(Scan("int8[]<1>", ""), HasSubstr("axis 0 is outside of [0, 0)"));
  EXPECT_THAT(Scan("int8[2,3]<1>", ", scan_input_axes=[2]"), HasSubstr("axis 2 is outside"));
  EXPECT_THAT(Scan("int8[2,3]<1>", ", scan_input_axes=[0,0]"), HasSubstr("2 entries; it must have 1"));
  EXPECT_THAT(Scan("int8[2,3]<1>", ", scan_output_directions=[2]"), HasSubstr("2 is not allowed; use 0 or 1"));
  EXPECT_THAT(
      Outputs("const x = int8[1]<1>\ny = Scan(x) {num_scan_inputs=2, body=graph {\ninput e\noutput e\n}}\noutput y\n"),
      HasSubstr("num_scan_inputs is 2"));
}

}  // namespace
}  // namespace mge
