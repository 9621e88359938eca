// SPDX-License-Identifier: Apache-2.0
// Tests of the pages that `mge plan --html` and `mge memory --html` write for a browser.
#include "gmock/gmock.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;
namespace ob = onnx_builder;

constexpr char kHostile[] = "</script></title><img src=x onerror=\"alert('1')\">&\x1b[31m";

class Pages : public Command {
 protected:
  // Writes a chain of nodes that are not fused, and do not write in place.
  void Chain(size_t nodes, const std::string& name = "v") const {
    std::vector<std::string> all;
    std::string before = "x";
    for (size_t i = 0; i < nodes; ++i) {
      const std::string value = i + 1 == nodes ? "y" : name + std::to_string(i);
      all.push_back(ob::NodeProto("MatMul", {before, before}, {value}, {.name = "node " + value}));
      before = value;
    }
    Write("m.onnx", ob::ModelProto({.graph = ob::GraphProto(
                                        {.nodes = all,
                                         .inputs = {ob::ValueInfo("x", DType::kF32, {int64_t{16}, int64_t{16}})},
                                         .outputs = {ob::ValueInfo("y", DType::kF32, {int64_t{16}, int64_t{16}})}})}));
  }

  // Expects a page that a browser shows without a network and without scripts.
  static void ExpectOffline(const std::string& page) {
    EXPECT_THAT(page, testing::StartsWith("<!DOCTYPE html>"));
    EXPECT_THAT(page, HasSubstr("content=\"default-src 'none'; style-src 'unsafe-inline'\""));
    for (const char* part : {"<script", "<img", "<link", "http:", "https:", "url(", "\x1b"})
      EXPECT_THAT(page, Not(HasSubstr(part)));
    EXPECT_THAT(page, HasSubstr("prefers-color-scheme: dark"));
  }
};

TEST_F(Pages, ShowStepsWithKernelsTimesAndAlternatives) {
  Chain(3);
  const Outcome o = Mge("plan m.onnx --measure --html plan.html --device host");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("wrote plan.html"));
  EXPECT_THAT(o.out, HasSubstr("MatMul"));
  const std::string page = Read("plan.html");
  ExpectOffline(page);
  EXPECT_THAT(page, HasSubstr("<p>3 steps, 3 of them by reference evaluators"));
  EXPECT_THAT(page, HasSubstr("<title>nodes: node v0\nkernel: "));
  EXPECT_THAT(page, HasSubstr("Bars show measured times."));
  EXPECT_THAT(page, ContainsRegex("measured: [0-9.]+ "));
  EXPECT_EQ(Mge("plan m.onnx --html estimated.html").code, 0);
  EXPECT_THAT(Read("estimated.html"), HasSubstr("--measure shows measured ones"));
}

TEST_F(Pages, ShowTheBuffersOfAnArena) {
  Chain(4);
  EXPECT_EQ(Mge("memory m.onnx --html memory.html").code, 0);
  const std::string page = Read("memory.html");
  ExpectOffline(page);
  EXPECT_THAT(page, HasSubstr("Arena 0 on cpu0: "));
  EXPECT_THAT(page, ContainsRegex("<title>v1\nactivation 1.0 KiB, offset [0-9]+\nsteps 1 to 2</title>"));
  EXPECT_EQ(Mge("memory m.onnx m.onnx --html memory.html").code, 2);
}

TEST_F(Pages, EscapeTheNamesOfAModel) {
  Chain(3, kHostile);
  for (const char* command : {"plan", "memory"}) {
    ASSERT_EQ(Mge(std::string(command) + " m.onnx --html page.html").code, 0) << command;
    const std::string page = Read("page.html");
    ExpectOffline(page);
    EXPECT_THAT(page,
                HasSubstr("&lt;/script&gt;&lt;/title&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;"))
        << command;
  }
}

TEST_F(Pages, HaveABoundedSize) {
  Chain(4000);
  EXPECT_EQ(Mge("plan m.onnx --html page.html --device host").code, 0);
  EXPECT_THAT(Read("page.html"), HasSubstr("The page shows 3000 of 4000 steps"));
  EXPECT_LT(Read("page.html").size(), 6u << 20);
}

TEST_F(Pages, SayThatAFileCannotBeWritten) {
  Chain(1);
  const Outcome o = Mge("plan m.onnx --html missing/page.html");
  EXPECT_EQ(o.code, 7);
  EXPECT_THAT(o.err, HasSubstr("missing/page.html"));
}

}  // namespace
}  // namespace mge
