// SPDX-License-Identifier: Apache-2.0
// Backends built from older and newer headers run on this host. Only the header hash is that of this host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/run_state.h"
#include "core/engine/session.h"
#include "tests/abi/queues.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

namespace ob = onnx_builder;
using testing::ElementsAre;

// A runtime with one backend of the synthetic headers, and a model on its device.
class OtherHeaders : public testing::TestWithParam<const char*> {
 protected:
  void Load(const std::string& backend, std::vector<Assignment> settings = {}) {
    RuntimeOptions options;
    options.plugin_directories = {MGE_BINARY_DIR "/tests/abi/" + backend + ".so"};
    options.built_in_plugins = false;
    options.sources.call = std::move(settings);
    auto runtime = Runtime::Create(std::move(options));
    ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
    runtime_ = *runtime;
    runtime_->devices().StartAll();
    const PluginFile file = runtime_->devices().files().at(0);
    ASSERT_EQ(file.verdict, Verdict::kLoaded) << file.reason;
  }
  const mge_plugin& plugin() const { return runtime_->devices().all()[0]->backend().plugin(); }

  // Runs the model x -> nodes -> y on the device. Stores the result in `y`.
  void Run(const std::string& device, const std::vector<std::string>& nodes, const std::vector<float>& x,
           std::vector<float>* y) {
    const std::string path = testing::TempDir() + "mge_abi_" + device + "_" + GetParam() + ".onnx";
    const ob::Dim n = static_cast<int64_t>(x.size());
    std::ofstream(path, std::ios::binary) << ob::ModelProto(
        {.graph = ob::GraphProto({.nodes = nodes,
                                  .inputs = {ob::ValueInfo("x", DType::kF32, {n})},
                                  .outputs = {ob::TextField(ob::field::value_info::kName, "y")}})});
    auto session = Session::Load(runtime_, path, {.device = device});
    ASSERT_TRUE(session.ok()) << FormatError(session.status());
    session_ = *session;
    HostValue value;
    value.tensor = *Tensor::Create(DType::kF32, {static_cast<int64_t>(x.size())});
    std::copy(x.begin(), x.end(), value.tensor.MutableData<float>().begin());
    std::vector<HostValue> in = {value}, out(1);
    RunState control;
    absl::Status status = session_->Run(in, out, control);
    ASSERT_TRUE(status.ok()) << FormatError(status);
    auto data = out[0].tensor.Data<float>();
    y->assign(data.begin(), data.end());
  }

  std::shared_ptr<Runtime> runtime_;
  std::shared_ptr<Session> session_;
};

TEST_P(OtherHeaders, LoadAndRunAModel) {
  const std::string age = GetParam();
  ASSERT_NO_FATAL_FAILURE(Load("relu_" + age));
  std::vector<float> y;
  ASSERT_NO_FATAL_FAILURE(Run("relu0", {ob::NodeProto("Relu", {"x"}, {"y"})}, {-1, 1, -1, 1}, &y));
  EXPECT_THAT(y, ElementsAre(0, 1, 0, 1));
  // Tables that the backend's headers lack are absent. Members that only a later host knows are ignored.
  EXPECT_EQ(plugin().queue, nullptr);
  EXPECT_EQ(plugin().strategy, nullptr);
  EXPECT_EQ(plugin().profile, nullptr);
  EXPECT_EQ(plugin().device->status, nullptr);
  EXPECT_EQ(plugin().memory->range_reserve, nullptr);
  EXPECT_EQ(plugin().struct_size > sizeof(mge_plugin), age == "newer");
  EXPECT_EQ(plugin().struct_size < sizeof(mge_plugin), age == "older");
}

TEST_P(OtherHeaders, MayHaveQueuesClaimsLayoutsAndPartsOfTheirOwn) {
  const std::string age = GetParam();
  ASSERT_NO_FATAL_FAILURE(Load("queues_" + age, {{"select.strategy", "profile"}, {"MGE_FASTRUN_CACHE_TYPE", "memory"}}));
  std::vector<float> y;
  ASSERT_NO_FATAL_FAILURE(
      Run("queues0", {ob::NodeProto("Neg", {"x"}, {"t"}), ob::NodeProto("Relu", {"t"}, {"y"})}, {-1, 2, -3, 4, -5, 6}, &y));
  EXPECT_THAT(y, ElementsAre(1, 0, 3, 0, 5, 0));
  std::vector<std::string> kernels;
  for (const Unit& u : session_->last_plan()->units) {
    if (u.kind == Unit::Kind::kKernel || u.kind == Unit::Kind::kReorder) kernels.push_back(u.kernel);
  }
  // The backend's claim, strategy and layout led to these kernels.
  EXPECT_THAT(kernels, ElementsAre("turn", "neg_relu.backwards", "turn"));
  const auto* asked = static_cast<const Asked*>(plugin().extension(MGE_TEST_ASKED, 1));
  ASSERT_NE(asked, nullptr);
  for (; asked->slot; ++asked) EXPECT_GT(asked->times, 0u) << asked->slot;
  // The tables are shorter or longer than this host's. Missing slots are absent.
  EXPECT_EQ(plugin().queue->capture_begin, nullptr);
  EXPECT_EQ(plugin().strategy->flags, 0u);
  for (auto [theirs, ours] : {std::pair(plugin().queue->struct_size, sizeof(mge_queue_api)),
                              {plugin().strategy->struct_size, sizeof(mge_strategy_api)},
                              {plugin().memory->own_pool->struct_size, sizeof(mge_pool_api)}}) {
    EXPECT_EQ(theirs > ours, age == "newer");
    EXPECT_EQ(theirs < ours, age == "older");
  }
}

// Returns the names that a library exports, one per line, with their version nodes if `nodes`: "mge_version MGE_0.2". Leaves out
// those for the programs of the same build, whose node is MGE_PRIVATE.
std::string Exports(const std::string& library, bool nodes) {
  std::string out;
  FILE* pipe = popen(("nm -D --with-symbol-versions --defined-only '" + library + "'").c_str(), "r");
  if (!pipe) return out;
  std::set<std::string> names;
  for (char line[4096]; std::fgets(line, sizeof(line), pipe);) {
    std::string text = line, name = text.substr(text.rfind(' ') + 1);
    name.erase(name.find_last_not_of('\n') + 1);
    const size_t at = name.find('@');
    const std::string node = at == name.npos || !nodes ? "" : " " + name.substr(name.find_first_not_of('@', at));
    name.resize(std::min(at, name.size()));
    bool by_linker = name == "__bss_start" || name == "_edata" || name == "_end";
    const bool is_private = text.find("@MGE_PRIVATE") != std::string::npos;
    if (!by_linker && !is_private && text.find(" A ") == std::string::npos)
      names.insert(name + node);  // "A" marks the version node
  }
  EXPECT_EQ(pclose(pipe), 0);
  for (const std::string& name : names) out += name + "\n";
  return out;
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Symbols, OfTheLibraryAreThoseOfTheCheckedInList) {
  std::string now = Exports(MGE_BINARY_DIR "/lib/libmge.so", true);
  std::ofstream(MGE_BINARY_DIR "/tests/libmge_symbols.txt") << now;
  EXPECT_EQ(now, ReadText(MGE_SOURCE_DIR "/tests/abi/libmge_symbols.txt"))
      << "if the change is meant, copy " MGE_BINARY_DIR "/tests/libmge_symbols.txt to tests/abi/";
}

TEST(Symbols, OfTheHeaderAreThoseOfTheLibrary) {
  std::string declared = Exports(MGE_INTERFACES, false);
  for (const char* own : {"mge_plugin_query\n", "mge_test_ready_made\n"}) {
    size_t at = declared.find(own);
    ASSERT_NE(at, std::string::npos);
    declared.erase(at, std::strlen(own));
  }
  EXPECT_EQ(declared, Exports(MGE_BINARY_DIR "/lib/libmge.so", false));
}

INSTANTIATE_TEST_SUITE_P(Abi, OtherHeaders, testing::Values("older", "same", "newer"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mge
