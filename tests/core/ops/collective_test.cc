// SPDX-License-Identifier: Apache-2.0
// Operators that exchange data with other ranks: the types of their outputs, and nodes that are refused.
#include <gmock/gmock.h>

#include <string>

#include "core/base/errors.h"
#include "core/graph/graph.h"
#include "core/ops/op.h"

namespace mge {
namespace {

using testing::HasSubstr;

// Returns the error of type inference, or the type of the output y.
std::string Infer(const std::string& node) {
  auto graph = ParseGraphText("input x : float32[2,3]\ninput z : int64[4]\n" + node + "\noutput y\n");
  if (!graph.ok()) return FormatError(graph.status());
  if (absl::Status s = InferTypes(*graph); !s.ok()) return FormatError(s);
  return graph->value(graph->outputs()[0]).type.ToString();
}

// A step of the planner pairs outputs with inputs by their places, so that none may be absent.
TEST(Collectives, HaveAnInputAndAnOutputForEachOther) {
  EXPECT_EQ(Infer("y, w = mge::AllReduce(x, z)"), "float32[2,3]");
  EXPECT_THAT(Infer("_, y = mge::AllReduce(x, z)"), HasSubstr("output 0 is absent"));
  EXPECT_THAT(Infer("w, y = mge::Broadcast(_, z)"), HasSubstr("input 0 may not be absent"));
  EXPECT_THAT(Infer("y = mge::AllReduce(x, z)"), HasSubstr("as many outputs as inputs"));
}

TEST(Exchange, HasOutputsOfTheTypesOfItsInputs) {
  EXPECT_EQ(Infer("y = mge::Exchange(x, z) {to=[1,-1], to_key=[0,0], from=[1], from_key=[3], like=[1]}"), "int64[4]");
}

TEST(Exchange, NeedsARankAndAKeyForEachTensor) {
  auto error = [](const std::string& outputs, const std::string& inputs, const std::string& attributes) {
    return Infer(outputs + " = mge::Exchange(" + inputs + ") {" + attributes + "}");
  };
  EXPECT_THAT(error("y", "x", "to=[1,1], to_key=[0], from=[1], from_key=[0], like=[0]"), HasSubstr("it has 1 inputs"));
  EXPECT_THAT(error("y", "x", "to=[1], to_key=[0], from=[1], from_key=[], like=[0]"), HasSubstr("it has 1 outputs"));
  EXPECT_THAT(error("y", "x", "to=[1], to_key=[0], from=[1], from_key=[0], like=[1]"), HasSubstr("like[0] is 1"));
  EXPECT_THAT(error("y", "_, x", "to=[1,1], to_key=[0,1], from=[1], from_key=[0], like=[1]"),
              HasSubstr("input 0 may not be absent"));
  EXPECT_THAT(error("_, y", "x", "to=[1], to_key=[0], from=[1,1], from_key=[0,1], like=[0,0]"),
              HasSubstr("output 0 is absent"));
  EXPECT_THAT(error("y", "x", "to=[1], to_key=[0], like=[0]"), HasSubstr("from"));
}

TEST(StartSum, ReturnsATokenForTheEndOfTheSum) {
  const std::string start = "const t = int64[]<0>\nn = mge::StartSum(t, x, z) {bucket=0}\n";
  EXPECT_EQ(Infer(start + "y, w = mge::EndSum(n) {bucket=0, elements=[6,4], types=[1,7]}"), "float32[6]");
  EXPECT_EQ(Infer(start + "w, y = mge::EndSum(n) {bucket=0, elements=[6,4], types=[1,7]}"), "int64[4]");
  EXPECT_THAT(Infer(start + "y = mge::EndSum(n) {bucket=0, elements=[6,4], types=[1,7]}"),
              HasSubstr("it has 1 outputs, 2 numbers in 'elements' and 2 in 'types'"));
  EXPECT_THAT(Infer(start + "y = mge::EndSum(n) {bucket=0, elements=[-6], types=[1]}"), HasSubstr("elements[0] is -6"));
  for (const char* type : {"0", "8", "99", "-1", "257"}) {  // none, and texts
    EXPECT_THAT(Infer(start + "y = mge::EndSum(n) {bucket=0, elements=[6], types=[" + type + "]}"),
                HasSubstr(std::string("types[0] is ") + type));
  }
}

TEST(AllGather, HasVectorsOfTheSizesThatItNames) {
  const std::string token = "const t = int64[]<0>\n";
  EXPECT_EQ(Infer(token + "n, w, y = mge::AllGather(t, x, z) {elements=[6,9]}"), "int64[9]");
  EXPECT_THAT(Infer(token + "n, w, y = mge::AllGather(t, x, z) {elements=[6]}"), HasSubstr("1 numbers in 'elements'"));
  EXPECT_THAT(Infer(token + "n, y = mge::AllGather(t, z) {elements=[-1]}"), HasSubstr("elements[0] is -1"));
}

}  // namespace
}  // namespace mge
