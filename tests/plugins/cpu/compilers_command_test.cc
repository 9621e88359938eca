// SPDX-License-Identifier: Apache-2.0
// The compilers of jit.backend as users of the command see them: names, cached code, missing libraries, mge doctor.
#include <algorithm>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::UnorderedElementsAreArray;

class CompilerCommand : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    for (const char* name : {"halide", "mlir"}) {
      if (std::filesystem::exists(Library(name))) installed_.push_back(name);
    }
    ASSERT_EQ(Mge("zoo eltwise-chain -o " + Path("chain.onnx")).code, 0);
  }

  static std::string Library(const std::string& name) { return MGE_BINARY_DIR "/lib/mge/jit/libmge_jit_" + name + ".so"; }
  // Runs the command on the chain and the CPU, with a cache of its own.
  Outcome OnChain(const std::string& command, const std::string& env) const {
    return Mge(command + " " + Path("chain.onnx") + " --device cpu0", env + " MGE_CACHE_DIR=" + Path("cache"));
  }

  std::vector<std::string> installed_;
};

TEST_F(CompilerCommand, PlanNamesTheCompiler) {
  if (installed_.empty()) GTEST_SKIP() << "no compiler is built";
  for (const std::string& name : installed_) {
    EXPECT_THAT(OnChain("plan --why", "MGE_JIT_BACKEND=" + name).out, HasSubstr("cpu.elementwise." + name)) << name;
  }
}

TEST_F(CompilerCommand, ASecondProcessOpensNoCompiler) {
  if (installed_.empty()) GTEST_SKIP() << "no compiler is built";
  for (const std::string& name : installed_) {
    const std::string env = "LD_DEBUG=files MGE_JIT_BACKEND=" + name, library = "libmge_jit_" + name;
    const Outcome first = OnChain("run", env), second = OnChain("run", env);
    EXPECT_EQ(first.code + second.code, 0) << first.err;
    EXPECT_NE(first.err.find(library), std::string::npos) << name;
    EXPECT_EQ(second.err.find(library), std::string::npos) << name;
    EXPECT_EQ(first.out, second.out);
  }
}

TEST_F(CompilerCommand, AMissingLibraryIsAnErrorThatNamesThePackage) {
  // A backend without compilers beside it.
  std::filesystem::create_directories(Path("lib/plugins"));
  std::filesystem::copy_file(MGE_BINARY_DIR "/lib/mge/plugins/mge_cpu.so", Path("lib/plugins/mge_cpu.so"));
  for (const std::string name : {"halide", "mlir"}) {
    const Outcome o = OnChain("run", "MGE_PLUGIN_PATH=" + Path("lib/plugins") + " MGE_JIT_BACKEND=" + name);
    EXPECT_EQ(o.code, 5) << o.err;
    EXPECT_THAT(o.err, AllOf(HasSubstr("jit.backend is " + name), HasSubstr("libmge_jit_" + name + ".so is missing"),
                             HasSubstr("install the package mge-jit-" + name)));
  }
  EXPECT_EQ(OnChain("run", "MGE_PLUGIN_PATH=" + Path("lib/plugins")).code, 0);
}

TEST_F(CompilerCommand, AWorkFolderThatCannotBeWrittenIsAWarning) {
  if (installed_.empty()) GTEST_SKIP() << "no compiler is built";
  for (const std::string& name : installed_) {
    const Outcome o = OnChain("run", "MGE_JIT_BACKEND=" + name + " MGB_JIT_KEEP_INTERM=1 MGB_JIT_WORKDIR=/proc/nowhere");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.err, HasSubstr("the files of generated kernels cannot be written to /proc/nowhere"));
  }
}

TEST_F(CompilerCommand, DevicesAndDoctorListTheCompilers) {
  const json devices = json::parse(Mge("devices --json").out)["devices"];
  const auto cpu = std::find_if(devices.begin(), devices.end(), [](const json& d) { return d["name"] == "cpu0"; });
  ASSERT_NE(cpu, devices.end());
  std::string expected;
  for (const std::string& name : installed_) expected += (expected.empty() ? "" : " ") + name;
  EXPECT_EQ((*cpu)["properties"]["compilers"], expected);
  std::vector<std::string> passed;
  const json report = json::parse(Mge("doctor --json").out);
  for (const json& file : report["plugins"]) {
    for (const json& device : file["devices"]) {
      for (const json& c : device["compilers"]) {
        EXPECT_EQ(c["state"], "passed") << c.dump();
        passed.push_back(c["name"]);
      }
    }
  }
  EXPECT_THAT(passed, UnorderedElementsAreArray(installed_));
}

}  // namespace
}  // namespace mge
