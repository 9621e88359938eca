// SPDX-License-Identifier: Apache-2.0
// Tests of the pages that the option --html writes for a browser.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
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

  // The arguments of a training of the handwritten digits.
  static std::string Digits() {
    const std::string folder = MGE_SOURCE_DIR "/packaging/digits/digits";
    return "train " + folder + ".onnx --input image=" + folder + "_images.npy --input labels=" + folder + "_labels.npy";
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
  EXPECT_THAT(page, ContainsRegex("by reference evaluators</span><b>3</b>"));
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
  EXPECT_THAT(page, HasSubstr("size of the arena: "));
  EXPECT_EQ(Mge("memory m.onnx m.onnx --html memory.html").code, 2);
}

TEST_F(Pages, ShowTheTimelineTheRooflineAndTheSlowestSteps) {
  Chain(3);
  const Outcome o = Mge("profile m.onnx --runs 4 --html profile.html --device cpu0,host");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("sum: the wall time"));
  const std::string page = Read("profile.html");
  ExpectOffline(page);
  for (const char* part : {"Timeline of one run", "time in the run", ">Operators<", "Roofline", "rate (GFLOP/s)",
                           "Slowest steps", "<td>node v1</td>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, ContainsRegex("<title>node v1\nMatMul by "));
}

TEST_F(Pages, ShowARowForEachQueueOfADevice) {
  if (!std::filesystem::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  Chain(3);
  const Outcome o = Mge("profile m.onnx --runs 2 --html p.html --device virtual0", "MGE_VIRTUAL_DEVICES=1");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(Read("p.html"), ContainsRegex(">virtual0, queue "));
}

TEST_F(Pages, ShowATrainingThatHasEnded) {
  const Outcome o = Mge(Digits() + " --epochs 3 --html train.html --validate-input image=" MGE_SOURCE_DIR
                                   "/packaging/digits/digits_images.npy --validate-input labels=" MGE_SOURCE_DIR
                                   "/packaging/digits/digits_labels.npy");
  EXPECT_EQ(o.code, 0) << o.err;
  const std::string page = Read("train.html");
  ExpectOffline(page);
  for (const char* part : {"<b>complete</b>", "<b>3 of 3</b>", ">Loss<", ">validation<", "Accuracy on the validation",
                           "Learning rate", "examples per second", "Memory of the process", "<td class=\"n\">3</td>"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
  EXPECT_THAT(page, Not(HasSubstr("http-equiv=\"refresh\"")));
}

TEST_F(Pages, LoadThemselvesAgainWhileATrainingGoesOn) {
  // A training that would take hours, of which a copy of its page is kept as soon as that has steps.
  Write("watch.sh",
        "\"$@\" & for i in $(seq 600); do grep -q \">Loss<\" live.html 2>/dev/null && break; sleep 0.1; done\n"
        "cp live.html copy.html; kill $!; wait $!\n");
  const std::string command = "cd " + folder_ + " && bash watch.sh " MGE_BINARY_DIR "/bin/mge " + Digits() +
                              " --epochs 100000000 --html live.html >out.txt 2>&1";
  (void)!std::system(command.c_str());
  const std::string page = Read("copy.html");
  ExpectOffline(page);
  EXPECT_THAT(page, HasSubstr("<meta http-equiv=\"refresh\" content=\"2\">"));
  EXPECT_THAT(page, HasSubstr("<b>training</b>"));
}

// Returns a .npy file with elements of the type `item`, whose `bytes` bytes are all `fill`.
std::string Npy(const std::string& item, const std::string& shape, size_t bytes, char fill) {
  std::string head = "{'descr': '" + item + "', 'fortran_order': False, 'shape': " + shape + ", }";
  head.resize(117, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + head + "\n" + std::string(bytes, fill);
}

TEST_F(Pages, SayThatATrainingHasStopped) {
  Write("image.npy", Npy("<f4", "(4, 1, 8, 8)", 4 * 64 * 4, '\xff'));  // NaN, which ends the training with an error
  Write("labels.npy", Npy("<i8", "(4,)", 4 * 8, '\0'));
  const Outcome o = Mge("train " MGE_SOURCE_DIR
                        "/packaging/digits/digits.onnx --input image=image.npy --input "
                        "labels=labels.npy --html train.html");
  ASSERT_NE(o.code, 0) << o.out;
  const std::string page = Read("train.html");
  ExpectOffline(page);
  EXPECT_THAT(page, HasSubstr("<b>stopped before the end</b>"));
  EXPECT_THAT(page, Not(HasSubstr("http-equiv=\"refresh\"")));
}

TEST_F(Pages, CompareMeasurements) {
  Chain(3);
  Write("before.json", Mge("bench m.onnx --runs 3 --json").out);
  Write("after.json", Mge("bench m.onnx --runs 3 --json").out);
  Outcome o = Mge("bench diff before.json after.json --html diff.html");
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* text : {"AFTER/BEFORE", "latency, median", "peak memory of the process", "m.onnx on cpu0"}) {
    EXPECT_THAT(o.out, HasSubstr(text));
  }
  ExpectOffline(Read("diff.html"));
  EXPECT_THAT(Read("diff.html"), HasSubstr("after / before; less is better"));
  Write("p.json", Mge("profile m.onnx --runs 3 --json").out);
  o = Mge("bench diff p.json p.json --html diff.html --json");
  EXPECT_EQ(o.code, 0) << o.err;
  const nlohmann::json diff = nlohmann::json::parse(o.out);
  EXPECT_EQ(diff["schema"], "mge.bench_diff/1");
  EXPECT_EQ(diff["groups"][1]["title"], "operators");
  EXPECT_EQ(diff["groups"][2]["rows"].size(), 3u);
  EXPECT_EQ(diff["groups"][2]["rows"][0]["ratio"], 1.0);
  EXPECT_THAT(Read("diff.html"), HasSubstr("after - before, per run"));
}

// Returns a report of `mge bench` with this median in microseconds.
std::string BenchReport(const std::string& model, double us) {
  return nlohmann::json({{"schema", "mge.bench/1"},
                         {"model", model},
                         {"device", "cpu0"},
                         {"threads", 1},
                         {"latency_us", {{"p50", us}}}})
             .dump() +
         "\n";
}

TEST_F(Pages, MatchMeasurementsOfSeveralModelsByTheirNames) {
  Write("before.json", BenchReport("x/a.onnx", 100) + BenchReport("x/b.onnx", 100) + BenchReport("x/b.onnx", 80) +
                           BenchReport("x/c.onnx", 1));
  Write("after.json", BenchReport("y/b.onnx", 40) + BenchReport("y/a.onnx", 200) + BenchReport("y/d.onnx", 1));
  const Outcome o = Mge("bench diff before.json after.json --json");
  const nlohmann::json diff = nlohmann::json::parse(o.out);
  ASSERT_EQ(diff["groups"].size(), 1u) << o.out;
  const nlohmann::json& rows = diff["groups"][0]["rows"];
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0]["ratio"], 2.0);
  EXPECT_EQ(rows[1]["ratio"], 0.5);  // of equal reports, the fastest counts
  EXPECT_EQ(diff["only_before"], nlohmann::json({"c.onnx on cpu0, 1 threads"}));
  EXPECT_EQ(diff["only_after"], nlohmann::json({"d.onnx on cpu0, 1 threads"}));
}

TEST_F(Pages, SayWhatCannotBeCompared) {
  Write("good.json", BenchReport("a.onnx", 100));
  Write("text.json", "not JSON");
  Write("other.json", R"({"schema": "mge.plan/1"})");
  Write("empty.json", "");
  Write("profile.json", R"({"schema": "mge.profile/1", "wall_us": 1})");
  Write("nothing.json", R"({"schema": "mge.bench/1", "latency_us": [1], "load_ms": "x"})");
  for (const auto& [file, text] : std::vector<std::pair<std::string, std::string>>{{"text.json", "not a report"},
                                                                                   {"other.json", "mge.plan/1"},
                                                                                   {"empty.json", "it is empty"},
                                                                                   {"profile.json", "mge.bench/1"},
                                                                                   {"nothing.json", "no row"},
                                                                                   {"missing.json", "missing.json"}}) {
    const Outcome o = Mge("bench diff good.json " + file);
    EXPECT_NE(o.code, 0) << file;
    EXPECT_THAT(o.err, HasSubstr(text)) << file;
    EXPECT_THAT(o.err, HasSubstr("fix:")) << file;
  }
  EXPECT_THAT(Mge("bench --seconds 1").err, HasSubstr("MODEL is required"));
}

TEST_F(Pages, DescribeTheMachineForTheReportOfAFault) {
  const Outcome o = Mge("doctor --html doctor.html --set memory.pool=unpooled --json");
  const nlohmann::json report = nlohmann::json::parse(o.out);
  EXPECT_EQ(report["changed_settings"][0]["key"], "memory.pool");
  const std::string page = Read("doctor.html");
  ExpectOffline(page);
  for (const char* part : {"<h2>Devices</h2>", "<h2>Files of backends</h2>", "<td>memory.pool</td><td>unpooled</td>",
                           "<span>C library</span><b>glibc ", "<span>commit</span>", "mge_cpu.so"}) {
    EXPECT_THAT(page, HasSubstr(part));
  }
}

TEST_F(Pages, EscapeTheNamesOfAModel) {
  Chain(3, kHostile);
  Write(std::string("a<b>&.json"), Mge("profile m.onnx --runs 2 --json").out);
  for (const char* command :
       {"plan m.onnx", "memory m.onnx", "profile m.onnx --runs 2", "bench diff 'a<b>&.json' 'a<b>&.json'"}) {
    ASSERT_EQ(Mge(std::string(command) + " --html page.html").code, 0) << command;
    const std::string page = Read("page.html");
    ExpectOffline(page);
    EXPECT_THAT(page, Not(HasSubstr("<b>&.json")));
    EXPECT_THAT(page,
                HasSubstr("&lt;/script&gt;&lt;/title&gt;&lt;img src=x onerror=&quot;alert(&#39;1&#39;)&quot;&gt;&amp;"))
        << command;
  }
}

TEST_F(Pages, HaveABoundedSize) {
  Chain(4000);
  for (const char* command : {"plan", "memory", "profile --runs 1 --warm 1"}) {
    const Outcome o = Mge(std::string(command) + " m.onnx --html page.html --device host");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(Read("page.html"), ContainsRegex("The page shows 3000 of (3999|4000) ")) << command;
    EXPECT_LT(Read("page.html").size(), 6u << 20) << command;
  }
}

TEST_F(Pages, CutLongNames) {
  Chain(2, std::string(1 << 20, 'n'));
  for (const char* command : {"plan", "memory", "profile --runs 1 --warm 1"}) {
    EXPECT_EQ(Mge(std::string(command) + " m.onnx --html page.html --device host").code, 0);
    EXPECT_LT(Read("page.html").size(), 40000u) << command;
  }
}

TEST_F(Pages, SayThatAFileCannotBeWritten) {
  Chain(1);
  Write("b.json", BenchReport("a.onnx", 100));
  for (const std::string& command : {std::string("plan m.onnx"), std::string("memory m.onnx"), std::string("profile m.onnx"),
                                     std::string("doctor"), std::string("bench diff b.json b.json"), Digits()}) {
    const Outcome o = Mge(command + " --html missing/page.html");
    EXPECT_EQ(o.code, 7) << command;
    EXPECT_THAT(o.err, HasSubstr("missing/page.html")) << command;
    EXPECT_THAT(o.err, HasSubstr("fix:")) << command;
    EXPECT_THAT(o.out, testing::IsEmpty()) << command;  // before any work
  }
}

}  // namespace
}  // namespace mge
