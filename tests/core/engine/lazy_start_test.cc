// SPDX-License-Identifier: Apache-2.0
// A session opens the backends that it needs, and no other.
#include <algorithm>
#include <filesystem>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/plugin/context.h"
#include "gmock/gmock.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr char kModel[] = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";

// A folder with copies of the backends of this build tree. The copies are mapped by no other test.
class LazyStart : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"mge_cpu.so", "mge_virtual.so", "mge_null.so"}) {
      folder_.Write(name, ReadAll(std::string(MGE_BINARY_DIR "/lib/mge/plugins/") + name));
    }
    folder_.Write("mge_async.so", ReadAll(MGE_BINARY_DIR "/tests/async/async.so"));
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {folder_.path()};
    options.sources.call = {{"virtual.devices", "1"}};
    auto runtime = Runtime::Create(std::move(options));
    ASSERT_TRUE(runtime.ok()) << FormatError(runtime.status());
    runtime_ = *runtime;
  }
  // Returns the names of the backends' files that are mapped into this process.
  std::vector<std::string> Mapped() const {
    const std::string maps = ReadAll("/proc/self/maps");
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      if (maps.find(entry.path()) != maps.npos) out.push_back(entry.path().filename());
    }
    std::sort(out.begin(), out.end());
    return out;
  }
  absl::Status Run(const std::string& device) {
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<Session> session, Session::Load(runtime_, kModel, {.device = device}));
    HostValue image;
    image.tensor = *Tensor::Create(DType::kF32, {1, 1, 8, 8});
    std::vector<HostValue> in = {image}, out(static_cast<size_t>(session->output_count()));
    RunState control;
    return session->Run(in, out, control);
  }
  PluginFolder folder_;
  std::shared_ptr<Runtime> runtime_;
};

TEST_F(LazyStart, ARunOnTheCpuMapsNoOtherBackend) {
  EXPECT_THAT(Mapped(), IsEmpty());
  absl::Status ran = Run("cpu0");
  EXPECT_TRUE(ran.ok()) << FormatError(ran);
  EXPECT_THAT(Mapped(), ElementsAre("mge_cpu.so"));
}

TEST_F(LazyStart, AContextOfTheCpuOpensTheCpuAlone) {
  EXPECT_EQ(CurrentContext(runtime_->devices(), std::nullopt)->ToString(), "cpu(0)");
  EXPECT_THAT(Mapped(), IsEmpty());
  ContextScope scope(Cpu(0));
  absl::Status ran = Run("");
  EXPECT_TRUE(ran.ok()) << FormatError(ran);
  EXPECT_THAT(Mapped(), ElementsAre("mge_cpu.so"));
}

TEST_F(LazyStart, AListOfDevicesOpensTheBackendsOfItsClasses) {
  absl::Status ran = Run("virtual0,cpu0");
  EXPECT_TRUE(ran.ok()) << FormatError(ran);
  EXPECT_THAT(Mapped(), ElementsAre("mge_cpu.so", "mge_virtual.so"));
}

TEST_F(LazyStart, TheBestDeviceNeedsAllBackends) {
  absl::Status ran = Run("xpux");
  EXPECT_TRUE(ran.ok()) << FormatError(ran);
  EXPECT_EQ(Mapped().size(), 4u);
}

}  // namespace
}  // namespace mge
