// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/timing_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "core/ops/op.h"

namespace mge {
namespace {

using testing::HasSubstr;

TimingRequest Example() {
  TimingRequest r;
  r.plugin_directories = {"/a", "/b"};
  r.settings = {{"threads", "2"}, {"cpu.onednn", "0"}};
  r.device = "cpu0";
  r.key = "0123";
  r.threads = 2;
  r.require = 1;
  r.workspace_limit = 1 << 20;
  r.seconds = 0.05;
  r.offered = {"one", "two"};
  r.measured = {"two"};
  const ValueId x = r.graph.AddValue({.name = "x", .type = {DType::kF32, true, {1, 1, 4, 4}}, .role = Role::kInput});
  const ValueId w = r.graph.AddConstant("w", Tensor::Of<float>({1, 1, 1, 1}, std::vector<float>{3}));
  const ValueId y = r.graph.AddValue({.name = "y", .type = {DType::kF32, true, {1, 1, 4, 4}}});
  Node node = {.op = "Conv", .name = "c", .version = 11, .inputs = {x, w, kNone}, .outputs = {y}};
  node.attrs.Set("strides", Ints{1, 1});
  node.attrs.Set("auto_pad", std::string("NOTSET"));
  r.graph.AddNode(std::move(node));
  r.uses = {1, 1, 1};
  return r;
}

TEST(TimingRequest, IsReadAsItWasWritten) {
  const TimingRequest before = Example();
  absl::StatusOr<TimingRequest> after = ReadTimingRequest(TimingRequestBytes(before));
  ASSERT_TRUE(after.ok()) << FormatError(after.status());
  EXPECT_EQ(after->plugin_directories, before.plugin_directories);
  EXPECT_EQ(after->settings, before.settings);
  EXPECT_EQ(after->offered, before.offered);
  EXPECT_EQ(after->measured, before.measured);
  EXPECT_EQ(after->workspace_limit, before.workspace_limit);
  EXPECT_EQ(after->uses, before.uses);
  EXPECT_EQ(GraphText(after->graph), GraphText(before.graph));
  EXPECT_EQ(after->graph.value(1).constant.Data<float>()[0], 3);
  EXPECT_EQ(after->graph.node(0).def, FindOp("", "Conv"));
  EXPECT_EQ(TimingRequestBytes(*after), TimingRequestBytes(before));
}

TEST(TimingRequest, ThatIsCutOrOfAnotherVersionIsRefused) {
  const std::string bytes = TimingRequestBytes(Example());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ReadTimingRequest(bytes.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(ReadTimingRequest(bytes + "x").ok());
  EXPECT_THAT(ErrorTitle(ReadTimingRequest("mge-worker/0" + bytes.substr(12)).status()), HasSubstr("another version"));
}

TEST(TimingLine, IsReadAsItWasWrittenAndOutputOfABackendIsNot) {
  TimingLine line;
  const Measurement m = {.us = 12.5, .fault = "two\tlines\nof text", .unchecked = true, .kept = true};
  const std::string text = TimingLineText({.kind = TimingLine::Kind::kResult, .id = "a b", .result = m});
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  ASSERT_TRUE(ParseTimingLine(std::string_view(text).substr(0, text.size() - 1), &line));
  EXPECT_EQ(line.kind, TimingLine::Kind::kResult);
  EXPECT_EQ(line.id, "a b");
  EXPECT_EQ(line.result.us, 12.5);
  EXPECT_EQ(line.result.fault, "two lines of text");
  EXPECT_TRUE(line.result.unchecked && line.result.kept && !line.result.wrong);
  ASSERT_TRUE(ParseTimingLine("mge\tfailed\tno such device", &line));
  EXPECT_EQ(line.error, "no such device");
  for (const char* other : {"", "hello", "mge", "mge\tnonsense\tx", "mge\tresult\tx", "mge\tresult\tx\ty\t000\t"}) {
    EXPECT_FALSE(ParseTimingLine(other, &line)) << other;
  }
}

}  // namespace
}  // namespace mge
