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

  // Runs `mge ARGS` with a limited stack of the main thread, in KiB.
  Outcome MgeWithStack(int kib, const std::string& args) const {
    const std::string line = "cd " + folder_ + " && ulimit -s " + std::to_string(kib) + " && exec " + MGE_BINARY_DIR +
                             "/bin/mge " + args + " >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(line.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read("stdout.txt"), Read("stderr.txt")};
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
  // Writes a model of two products of one tensor with biases, whose results are multiplied. Returns its path.
  std::string TwoProducts() const {
    using namespace onnx_builder;  // NOLINT: its functions build models
    std::vector<float> a(16 * 16), b(16 * 16);
    for (size_t i = 0; i < a.size(); ++i) {
      a[i] = 0.25f * static_cast<float>(i % 7) - 0.75f;
      b[i] = 0.25f * static_cast<float>(i % 5) - 0.5f;
    }
    const std::vector<float> biases(16, 0.5f);
    return Model("two_products.onnx",
                 {NodeProto("MatMul", {"x", "a"}, {"xa"}), NodeProto("Add", {"xa", "of_a"}, {"s"}),
                  NodeProto("MatMul", {"x", "b"}, {"xb"}), NodeProto("Add", {"xb", "of_b"}, {"t"}),
                  NodeProto("Mul", {"s", "t"}, {"y"})},
                 {FloatTensor("a", {16, 16}, a), FloatTensor("b", {16, 16}, b), FloatTensor("of_a", {16}, biases),
                  FloatTensor("of_b", {16}, biases)},
                 {int64_t{16}, int64_t{16}});
  }
  std::string Good() const { return Model("good.onnx", {onnx_builder::NodeProto("Relu", {"x"}, {"y"})}); }

  std::string folder_;
};

}  // namespace mge
