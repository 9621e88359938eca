// SPDX-License-Identifier: Apache-2.0
// A test fixture that runs the mge command through the shell, in a temporary folder.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/onnx_builder.h"

namespace mge {

struct Outcome {
  int code = -1;
  std::string out, err;
};

class Command : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/mge-command-XXXXXX";
    folder_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ + "/" + name; }

  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
    return Path(name);
  }

  // Runs `ENV mge ARGS` through the shell, in the folder. `tree` is the build or install tree of the command.
  Outcome Mge(const std::string& args, const std::string& env = "", const std::string& tree = MGE_BINARY_DIR) const {
    std::string line = "cd " + folder_ + " && env -u MGE_DEFAULT_DEVICE " + env + " timeout 240 " + tree + "/bin/mge " +
                       args + " >stdout.txt 2>stderr.txt </dev/null";
    int status = std::system(line.c_str());
    Outcome o;
    o.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    o.out = Read("stdout.txt");
    o.err = Read("stderr.txt");
    return o;
  }

  std::string Read(const std::string& name) const {
    std::ifstream in(Path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // Writes the model x -> nodes -> y, where `dims` is the shape of x. Returns its path.
  std::string Model(const std::string& name, const std::vector<std::string>& nodes,
                    const std::vector<std::string>& weights = {},
                    std::vector<onnx_builder::Dim> dims = {int64_t{2}, int64_t{3}}) const {
    using namespace onnx_builder;  // NOLINT: its functions build models
    return Write(name, ModelProto({.graph = GraphProto({.nodes = nodes,
                                                        .inputs = {ValueInfo("x", DType::kF32, dims)},
                                                        .outputs = {TextField(field::value_info::kName, "y")},
                                                        .initializers = weights})}));
  }
  std::string Good() const { return Model("good.onnx", {onnx_builder::NodeProto("Relu", {"x"}, {"y"})}); }

  std::string folder_;
};

}  // namespace mge
