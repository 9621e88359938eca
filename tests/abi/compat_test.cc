// SPDX-License-Identifier: Apache-2.0
// Backends built from older and newer headers, the header hash apart, run on this host.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "tests/support/onnx_builder.h"

namespace mge {
namespace {

namespace ob = onnx_builder;

class OtherHeaders : public testing::TestWithParam<const char*> {};

TEST_P(OtherHeaders, LoadAndRunAModel) {
  RuntimeOptions options;
  options.plugin_directories = {std::string(MGE_BINARY_DIR "/tests/abi/relu_") + GetParam() + ".so"};
  options.built_in_plugins = false;
  auto runtime = Runtime::Create(std::move(options));
  ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
  const PluginFile& file = (*runtime)->devices().files().at(0);
  ASSERT_EQ(file.verdict, Verdict::kLoaded) << file.reason;
  std::string path = testing::TempDir() + "mge_abi_" + GetParam() + ".onnx";
  FILE* f = std::fopen(path.c_str(), "wb");
  ASSERT_NE(f, nullptr);
  std::string bytes =
      ob::ModelProto({.graph = ob::GraphProto({.nodes = {ob::NodeProto("Relu", {"x"}, {"y"})},
                                               .inputs = {ob::ValueInfo("x", DType::kF32, {int64_t{4}})},
                                               .outputs = {ob::TextField(ob::field::value_info::kName, "y")}})});
  std::fwrite(bytes.data(), 1, bytes.size(), f);
  std::fclose(f);
  auto session = Session::Load(*runtime, path, {.device = "relu0"});
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  HostValue x;
  x.tensor = *Tensor::Create(DType::kF32, {4});
  auto data = x.tensor.MutableData<float>();
  for (size_t i = 0; i < 4; ++i) data[i] = i % 2 ? 1.0f : -1.0f;
  std::vector<HostValue> in = {x}, out(1);
  RunControl control;
  absl::Status status = (*session)->Run(in, out, control);
  ASSERT_TRUE(status.ok()) << FormatError(status);
  auto y = out[0].tensor.Data<float>();
  EXPECT_EQ(std::vector<float>(y.begin(), y.end()), (std::vector<float>{0, 1, 0, 1}));
  // What the backend does not know is absent, what only a later host would know is not looked at.
  const mge_plugin& plugin = (*runtime)->devices().all()[0]->backend().plugin();
  EXPECT_EQ(plugin.queue, nullptr);
  EXPECT_EQ(plugin.strategy, nullptr);
  EXPECT_EQ(plugin.profile, nullptr);
  EXPECT_EQ(plugin.device->status, nullptr);
  EXPECT_EQ(plugin.memory->range_reserve, nullptr);
  bool same = std::string(GetParam()) == "same", newer = std::string(GetParam()) == "newer";
  EXPECT_EQ(plugin.struct_size > sizeof(mge_plugin), newer);
  EXPECT_EQ(plugin.struct_size < sizeof(mge_plugin), !same && !newer);
}

// Names that a library exports, its version node apart.
std::string Exports(const std::string& library) {
  std::string out;
  FILE* pipe = popen(("nm -D --defined-only '" + library + "'").c_str(), "r");
  if (!pipe) return out;
  std::set<std::string> names;
  for (char line[4096]; std::fgets(line, sizeof(line), pipe);) {
    std::string text = line, name = text.substr(text.rfind(' ') + 1);
    name = name.substr(0, name.find_first_of("@\n"));
    bool by_linker = name == "__bss_start" || name == "_edata" || name == "_end";
    if (!by_linker && text.find(" A ") == std::string::npos) names.insert(name);  // A: the node itself
  }
  EXPECT_EQ(pclose(pipe), 0);
  for (const std::string& name : names) out += name + "\n";
  return out;
}

std::string ReadText(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(Symbols, OfTheLibraryAreThoseThatAreWrittenDown) {
  std::string now = Exports(MGE_BINARY_DIR "/lib/libmge.so");
  std::ofstream(MGE_BINARY_DIR "/tests/libmge_symbols.txt") << now;
  EXPECT_EQ(now, ReadText(MGE_SOURCE_DIR "/tests/abi/libmge_symbols.txt"))
      << "if the change is meant, copy " MGE_BINARY_DIR "/tests/libmge_symbols.txt to tests/abi/";
}

TEST(Symbols, OfTheHeaderAreThoseOfTheLibrary) {
  std::string declared = Exports(MGE_INTERFACES);
  for (const char* own : {"mge_plugin_query\n", "mge_test_ready_made\n"}) {
    size_t at = declared.find(own);
    ASSERT_NE(at, std::string::npos);
    declared.erase(at, std::strlen(own));
  }
  EXPECT_EQ(declared, Exports(MGE_BINARY_DIR "/lib/libmge.so"));
}

INSTANTIATE_TEST_SUITE_P(Abi, OtherHeaders, testing::Values("older", "same", "newer"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace mge
