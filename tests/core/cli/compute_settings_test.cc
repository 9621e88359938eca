// SPDX-License-Identifier: Apache-2.0
// The effects of settings on the choice of kernels, on copies and on threads, as a user of the mge command sees them.
#include <algorithm>
#include <set>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace ob = onnx_builder;

constexpr char kDigits[] = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class Compute : public Command {
 protected:
  bool HasVirtual() const { return Mge("devices", "MGE_VIRTUAL_DEVICES=1").out.find("virtual0") != std::string::npos; }

  // Writes a chain of 3x3 convolutions of x[1,channels,side,side], which pad by 1. `outputs` are the channels of each.
  std::string Convolutions(int64_t side, int64_t channels, const std::vector<int64_t>& outputs) const {
    std::vector<std::string> nodes, weights;
    std::string x = "x";
    for (size_t i = 0; i < outputs.size(); ++i) {
      const std::string w = "w" + std::to_string(i), y = i + 1 == outputs.size() ? "y" : "v" + std::to_string(i);
      weights.push_back(ob::FloatTensor(w, {outputs[i], channels, 3, 3},
                                        std::vector<float>(static_cast<size_t>(outputs[i] * channels * 9), 0.5f)));
      nodes.push_back(ob::NodeProto("Conv", {x, w}, {y}, {.attributes = {ob::IntsAttr("pads", {1, 1, 1, 1})}}));
      x = y;
      channels = outputs[i];
    }
    return Model("conv.onnx", nodes, weights, {int64_t{1}, kInputs, side, side});
  }
  static constexpr int64_t kInputs = 16;

  // Returns the most threads that took part in a step whose label begins so, over all runs of a trace, and the calling
  // thread.
  static size_t MostThreads(const std::string& trace, const std::string& label) {
    const json parsed = json::parse(trace);
    size_t most = 1;
    std::set<int> workers;  // of one step, whose event comes before those of its workers
    for (const json& event : parsed["traceEvents"]) {
      if (event.value("cat", "") == "step") workers.clear();
      if (event.value("cat", "") != "work" || !event["name"].get<std::string>().starts_with(label)) continue;
      workers.insert(event["tid"].get<int>());
      most = std::max(most, workers.size() + 1);
    }
    return most;
  }
};

TEST_F(Compute, ConvolutionAutotuneChoosesByEstimateOrTimeWithinTheWorkspaceLimit) {
  if (!HasVirtual()) GTEST_SKIP() << "no virtual GPU";
  auto plan = [&](const std::string& env) {
    Outcome o = Mge("plan " + std::string(kDigits) + " --why --device virtual0",
                    "MGE_VIRTUAL_DEVICES=1 MGE_VIRTUAL_GPU=1 MGE_FASTRUN_CACHE_TYPE=memory " + env);
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out;
  };
  auto times = [](const std::string& text) { return CountOf(text, "measured "); };
  EXPECT_EQ(times(plan("")), 0u);
  EXPECT_EQ(times(plan("MXNET_CUDNN_AUTOTUNE_DEFAULT=0")), 0u);
  EXPECT_GT(times(plan("MXNET_CUDNN_AUTOTUNE_DEFAULT=1")), 0u);
  EXPECT_GT(times(plan("MXNET_CUDNN_AUTOTUNE_DEFAULT=2")), 0u);
  EXPECT_EQ(times(plan("MXNET_CUDNN_AUTOTUNE_DEFAULT=1 MEGENGINE_EXECUTION_STRATEGY=REPRODUCIBLE")), 0u);
  // Only the convolutions are timed; with PROFILE and 0, only the other operators.
  const std::string all = plan("MEGENGINE_EXECUTION_STRATEGY=PROFILE");
  EXPECT_LT(times(plan("MXNET_CUDNN_AUTOTUNE_DEFAULT=1")), times(all));
  EXPECT_LT(times(plan("MXNET_CUDNN_AUTOTUNE_DEFAULT=0 MEGENGINE_EXECUTION_STRATEGY=PROFILE")), times(all));
  // Candidates with more workspace than the limit are refused, except in the mode 2.
  for (const char* mode : {"0", "1", "2"}) {
    const std::string text = plan("MGE_SELECT_WORKSPACE_BYTES=0 MXNET_CUDNN_AUTOTUNE_DEFAULT=" + std::string(mode));
    EXPECT_THAT(text, HasSubstr("convolutions on GPUs are chosen by")) << mode;
    EXPECT_EQ(CountOf(text, "workspace up to 0 bytes"), *mode == '2' ? 0u : 1u) << mode;
  }
}

TEST_F(Compute, WithoutPeerToPeerPlansCopyBetweenGpusOverTheHost) {
  if (!HasVirtual()) GTEST_SKIP() << "no virtual GPU";
  std::string digests[2];
  for (const int p2p : {0, 1}) {
    const std::string env = "MGE_VIRTUAL_DEVICES=2 MGE_VIRTUAL_GPU=1 MXNET_ENABLE_GPU_P2P=" + std::to_string(p2p);
    const std::string model = std::string(kDigits) + " --device virtual0+virtual1 ";
    Outcome run = Mge("run " + model + "--json --digest --set profile.mode=1 --set profile.file=t.json",
                      env + " MXNET_PROFILER_AUTOSTART=1");
    ASSERT_EQ(run.code, 0) << run.err;
    digests[p2p] = json::parse(run.out)["digest"];
    EXPECT_EQ(CountOf(Read("t.json"), "\"peer copy\"") > 0, p2p == 1);
    EXPECT_EQ(CountOf(Mge("plan " + model + "--why", env).out, "kvstore.gpu_p2p forbids direct copies") > 0, p2p == 0);
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(Compute, FallbacksAreLoggedOnceOrNotAtAll) {
  using ob::TextField;
  const std::string sparse = TextField(onnx::field::sparse::kValues, ob::FloatTensor("w", {2}, {5, 7})) +
                             TextField(onnx::field::sparse::kIndices, ob::IntTensor("i", {1, 3})) +
                             ob::PackedIntField(onnx::field::sparse::kDims, {4});
  const std::vector<std::string> nodes = {ob::NodeProto("Add", {"x", "w"}, {"s"}), ob::NodeProto("Sin", {"s"}, {"y"})};
  Write("m.onnx", ob::ModelProto({.graph = ob::GraphProto({.nodes = nodes,
                                                           .inputs = {ob::ValueInfo("x", DType::kF32, {int64_t{4}})},
                                                           .outputs = {TextField(ob::field::value_info::kName, "y")}}) +
                                           TextField(onnx::field::graph::kSparseInitializer, sparse)}));
  const std::string dense = "fallback: the sparse tensor 'w' is made dense";
  Outcome o = Mge("run m.onnx --against cpu0 --device host", "MGE_LOG_LEVEL=info");
  ASSERT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(CountOf(o.err, dense), 1u) << o.err;
  EXPECT_EQ(CountOf(o.err, "is computed by the reference evaluator"), CountOf(o.err, "fallback: operator")) << o.err;
  Outcome off = Mge("run m.onnx --against cpu0 --device host", "MGE_LOG_LEVEL=info MXNET_STORAGE_FALLBACK_LOG_VERBOSE=0");
  EXPECT_EQ(off.code, 0);
  EXPECT_THAT(off.err, Not(HasSubstr("fallback")));
  EXPECT_EQ(off.out, o.out);
  // The default level shows what happens to storage; setting the variable shows the operators there too.
  const Outcome unset = Mge("run m.onnx --device host"),
                set = Mge("run m.onnx --device host", "MXNET_STORAGE_FALLBACK_LOG_VERBOSE=1");
  EXPECT_EQ(CountOf(unset.err, dense), 1u) << unset.err;
  EXPECT_EQ(CountOf(unset.err, "fallback: operator"), 0u) << unset.err;
  EXPECT_EQ(CountOf(set.err, dense), 1u);
  EXPECT_GT(CountOf(set.err, "fallback: operator"), 0u) << set.err;
  if (!HasVirtual()) GTEST_SKIP() << "no virtual GPU";
  // The virtual GPU has no kernel for Det.
  Model("det.onnx", {ob::NodeProto("Relu", {"x"}, {"r"}), ob::NodeProto("Det", {"r"}, {"y"})}, {}, {int64_t{3}, int64_t{3}});
  Outcome other = Mge("run det.onnx --device virtual0,cpu0", "MGE_VIRTUAL_DEVICES=1 MGE_LOG_LEVEL=info");
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_EQ(CountOf(other.err, "fallback: operator Det "), 1u) << other.err;
}

TEST_F(Compute, NnpackThreadsLimitOwnConvolutions) {
  Convolutions(64, kInputs, {64, 64});
  auto threads = [&](const std::string& env) {
    Outcome o =
        Mge("bench conv.onnx --runs 400 --device cpu0 --set profile.file=t.json",
            "MGE_THREADS=4 MGE_CPU_ONEDNN=0 MGE_CPU_OPENBLAS=0 MXNET_PROFILER_AUTOSTART=1 MXNET_PROFILER_MODE=3 " + env);
    EXPECT_EQ(o.code, 0) << o.err;
    const std::string trace = Read("t.json");
    return MostThreads(trace, "Conv");
  };
  EXPECT_EQ(threads("MXNET_CPU_NNPACK_NTHREADS=1"), 1u);
  EXPECT_EQ(threads("MXNET_CPU_NNPACK_NTHREADS=2"), 2u);
  EXPECT_EQ(threads("MXNET_CPU_NNPACK_NTHREADS=1 MGE_CPU_CONV_THREADS=2"), 2u);
  EXPECT_GE(threads(""), 2u);
}

TEST_F(Compute, ParallelCopySizeDecidesWhetherThreadsShareACopy) {
  constexpr int64_t kElements = 300'000;
  Model("copy.onnx", {ob::NodeProto("Identity", {"x"}, {"y"})}, {}, {kElements});
  auto threads = [&](const std::string& env) {
    Outcome o = Mge("bench copy.onnx --runs 300 --device cpu0 --set profile.file=t.json",
                    "MGE_THREADS=2 MXNET_PROFILER_AUTOSTART=1 MXNET_PROFILER_MODE=3 " + env);
    EXPECT_EQ(o.code, 0) << o.err;
    const std::string trace = Read("t.json");
    EXPECT_GT(CountOf(trace, "\"name\":\"copy"), 0u) << trace.substr(0, 800);
    return MostThreads(trace, "copy");
  };
  EXPECT_EQ(threads(""), 1u);
  EXPECT_EQ(threads("MXNET_CPU_PARALLEL_COPY_SIZE=" + std::to_string(kElements + 1)), 1u);
  EXPECT_EQ(threads("MXNET_CPU_PARALLEL_COPY_SIZE=" + std::to_string(kElements)), 2u);
}

TEST_F(Compute, OperatorTuningUsesThreadsOnlyWhereMeasuredTimesSayThatTheyPay) {
  auto threads = [&](int64_t elements, const std::string& env) {
    Model("exp.onnx", {ob::NodeProto("Exp", {"x"}, {"y"})}, {}, {elements});
    Outcome o = Mge("bench exp.onnx --runs 300 --device cpu0 --set profile.file=t.json",
                    "MGE_THREADS=2 MXNET_PROFILER_AUTOSTART=1 MXNET_PROFILER_MODE=3 " + env);
    EXPECT_EQ(o.code, 0) << o.err;
    const std::string trace = Read("t.json");
    EXPECT_GT(CountOf(trace, "\"name\":\"Exp"), 0u) << trace.substr(0, 800);
    return MostThreads(trace, "Exp");
  };
  constexpr int64_t kFew = 64, kMany = 4'000'000;
  EXPECT_EQ(threads(kFew, "MXNET_USE_OPERATOR_TUNING=1"), 1u);
  EXPECT_EQ(threads(kMany, "MXNET_USE_OPERATOR_TUNING=float32"), 2u);
  EXPECT_EQ(threads(kMany, "MXNET_USE_OPERATOR_TUNING=1 MXNET_USE_NUM_CORES_OPERATOR_TUNING=1"), 1u);
  const Outcome bad = Mge("run exp.onnx --device cpu0", "MGE_CPU_OPERATOR_TUNING=float32,word");
  EXPECT_NE(bad.code, 0);
  EXPECT_THAT(bad.err, AllOf(HasSubstr("cpu.operator_tuning"), HasSubstr("'word'"), HasSubstr("float16")));
}

TEST_F(Compute, PrimitivesOutliveTheirPlansUpToTheCacheSize) {
  if (Mge("plan " + std::string(kDigits) + " --why --device cpu0", "MGE_CPU_ONEDNN=0").out.find("switched off by") ==
      std::string::npos) {
    GTEST_SKIP() << "the CPU backend has no oneDNN";
  }
  Convolutions(32, kInputs, {32, 48, 64});
  // Two sessions in one runtime plan the same convolutions. oneDNN reports each primitive that it creates.
  auto created = [&](const std::string& env) {
    Outcome o = Mge("run conv.onnx --device cpu0 --against cpu0 --threads 1", "DNNL_VERBOSE=2 ONEDNN_VERBOSE=2 " + env);
    EXPECT_EQ(o.code, 0) << o.err;
    size_t count = 0;
    for (size_t at = 0, end; (end = o.out.find('\n', at)) != std::string::npos; at = end + 1) {
      const std::string line = o.out.substr(at, end - at);
      count += line.find("create:") != std::string::npos && line.find(",convolution,") != std::string::npos;
    }
    return count;
  };
  EXPECT_EQ(created(""), 3u);
  EXPECT_EQ(created("MXNET_MKLDNN_CACHE_NUM=-1"), 3u);
  EXPECT_EQ(created("MXNET_MKLDNN_CACHE_NUM=3"), 3u);
  EXPECT_EQ(created("MXNET_MKLDNN_CACHE_NUM=2"), 6u);
  EXPECT_EQ(created("MXNET_MKLDNN_CACHE_NUM=0"), 6u);
}

TEST_F(Compute, ReproducibleRunsHaveOneDigestWithAnyThreadsAndTuningCache) {
  const std::string env = "MGE_FASTRUN_CACHE_DIR=" + folder_ + "/tuning ";
  auto digest = [&](const std::string& options, const std::string& more) {
    Outcome o = Mge("run " + std::string(kDigits) + " --device cpu0 --json --digest " + options, env + more);
    EXPECT_EQ(o.code, 0) << o.err;
    return json::parse(o.out)["digest"].get<std::string>();
  };
  std::set<std::string> digests;
  for (const char* cache : {"cold", "warm"}) {
    for (const char* threads : {"1", "2"}) {
      for (int i = 0; i < 100; ++i) {
        digests.insert(digest("--threads " + std::string(threads), "MEGENGINE_EXECUTION_STRATEGY=REPRODUCIBLE"));
      }
      // Times for this number of threads are stored only after the cold runs.
      if (cache == std::string("cold"))
        (void)digest("--threads " + std::string(threads), "MEGENGINE_EXECUTION_STRATEGY=PROFILE");
    }
  }
  EXPECT_EQ(digests.size(), 1u);
  EXPECT_EQ(digests.begin()->size(), 64u);
  EXPECT_NE(*digests.begin(), digest("--seed 3", "MEGENGINE_EXECUTION_STRATEGY=REPRODUCIBLE"));
}

}  // namespace
}  // namespace mge
