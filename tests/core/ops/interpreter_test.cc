// SPDX-License-Identifier: Apache-2.0
#include "core/ops/interpreter.h"

#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::HasSubstr;

TEST(Interpreter, RunsAChain) {
  auto results =
      RunText("const a = float32[3]<-1, 2, 3>\nconst b = float32[]<10>\nr = Relu(a)\ns = Add(r, b)\noutput s, r\n");
  ASSERT_TRUE(results.ok()) << FormatError(results.status());
  EXPECT_EQ(TensorToText((*results)[0].tensor), "float32[3]<10.0, 12.0, 13.0>");
  EXPECT_EQ(TensorToText((*results)[1].tensor), "float32[3]<0.0, 2.0, 3.0>");
}

TEST(Interpreter, ChecksInputsAgainstTheGraph) {
  auto graph = ParseGraphText("input x : float32[2]\ny = Relu(x)\noutput y\n");
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  EXPECT_FALSE(Interpret(*graph, {}).ok());
  HostValue wrong;
  wrong.tensor = Tensor::Scalar<float>(1);
  EXPECT_FALSE(Interpret(*graph, {wrong}).ok());
}

TEST(Interpreter, StopsWhenAsked) {
  auto graph = ParseGraphText("const x = float32[2]<1>\ny = Relu(x)\noutput y\n");
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  auto results = Interpret(*graph, {}, UnlimitedHostAllocator(), [] { return Fail(errors::kCancelled, "enough"); });
  EXPECT_EQ(ErrorId(results.status()), errors::kCancelled.id);
}

TEST(Interpreter, FreesValuesAfterTheirLastUse) {
  struct Counting : HostAllocator {
    int64_t now = 0, peak = 0;
    absl::StatusOr<std::shared_ptr<std::byte>> Allocate(int64_t bytes) override {
      now += bytes;
      peak = std::max(peak, now);
      return std::shared_ptr<std::byte>(new std::byte[bytes], [this, bytes](std::byte* p) {
        now -= bytes;
        delete[] p;
      });
    }
  } allocator;
  std::string text = "const x0 = float32[256]<1>\n";
  for (int i = 0; i < 20; ++i) text += "x" + std::to_string(i + 1) + " = Relu(x" + std::to_string(i) + ")\n";
  auto graph = ParseGraphText(text + "output x20\n");
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  ASSERT_TRUE(Interpret(*graph, {}, allocator).ok());
  EXPECT_EQ(allocator.peak, 2 * 1024);
}

TEST(Interpreter, NamesTheNodeOfAnError) {
  auto graph = ParseGraphText("input a\ninput b\ny = Add(a, b) as \"sum\"\noutput y\n");
  ASSERT_TRUE(graph.ok() && InferTypes(*graph).ok());
  HostValue a, b;
  a.tensor = Tensor::Vector<float>(std::vector<float>{1, 2});
  b.tensor = Tensor::Vector<float>(std::vector<float>{1, 2, 3});
  auto results = Interpret(*graph, {a, b});
  ASSERT_FALSE(results.ok());
  EXPECT_THAT(FormatError(results.status()), HasSubstr("node 'sum' (Add)"));
}

}  // namespace
}  // namespace mge
