// SPDX-License-Identifier: Apache-2.0
// Runs ONNX's backend tests on the reference evaluators, without plans and devices. Every case must pass or be listed in
// core/cli/onnx_gaps.txt with a reason.
//
//   test_onnx_suite [--data=DIR] [--only=TEXT]
//
// DIR contains node/, simple/, pytorch-converted/ and pytorch-operator/ with one folder per case. --only runs and prints the
// cases whose name contains TEXT.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/onnx/reader.h"
#include "core/onnx/tensor_file.h"
#include "core/ops/interpreter.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/support/compare_values.h"

namespace mge {
namespace {

namespace fs = std::filesystem;

struct Flags {
  std::string data = "/usr/share/libonnx-testdata/data";
  std::string only;
} flags;

constexpr auto kTimeLimit = std::chrono::seconds(60);

// Reads a value in the type that the model declares, because the test data store bfloat16 as uint16.
absl::StatusOr<HostValue> ReadAs(const fs::path& file, const ValueType& declared) {
  MGE_ASSIGN_OR_RETURN(onnx::NamedValue read, onnx::ReadValueFile(file, declared.kind));
  Tensor& t = read.value.tensor;
  if (declared.type.dtype == DType::kBF16 && t.dtype() == DType::kU16) {
    t = t.Within(DType::kBF16, t.shape(), t.data());
  }
  return std::move(read.value);
}

absl::Status RunCase(const fs::path& folder) {
  MGE_ASSIGN_OR_RETURN(onnx::Model model, onnx::ReadModel(folder / "model.onnx"));
  MGE_RETURN_IF_ERROR(VerifyGraph(model.graph));
  MGE_RETURN_IF_ERROR(InferTypes(model.graph));
  int sets = 0;
  for (;; ++sets) {
    fs::path data = folder / fmt::format("test_data_set_{}", sets);
    if (!fs::exists(data)) break;
    std::vector<HostValue> inputs;
    for (size_t i = 0; i < model.graph.inputs().size(); ++i) {
      const Value& declared = model.graph.value(model.graph.inputs()[i]);
      MGE_ASSIGN_OR_RETURN(HostValue input, ReadAs(data / fmt::format("input_{}.pb", i), {declared.type, declared.kind}));
      inputs.push_back(std::move(input));
    }
    auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
    auto stop = [&] {
      return std::chrono::steady_clock::now() < deadline ? absl::OkStatus() : Fail(errors::kTimeout, "too slow");
    };
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> outputs,
                         Interpret(model.graph, std::move(inputs), UnlimitedHostAllocator(), stop));
    for (size_t i = 0; i < outputs.size(); ++i) {
      MGE_ASSIGN_OR_RETURN(HostValue want, ReadAs(data / fmt::format("output_{}.pb", i), model.info.outputs[i].type));
      if (absl::Status status = CompareValues(outputs[i], want); !status.ok()) {
        return AddWhere(status, fmt::format("{}, output {}", data.filename().string(), i));
      }
    }
  }
  return sets > 0 ? absl::OkStatus() : Fail(errors::kFileAccess, "the case has no test_data_set_0");
}

// Returns the error kind of each known gap, by name. The file has the format of `mge check --gaps`. The names of tests begin with
// the kind of test.
std::map<std::string, int> ReadGaps() {
  std::map<std::string, int> gaps;
  std::ifstream in(MGE_SOURCE_DIR "/core/cli/onnx_gaps.txt");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name, error;
    if (line.starts_with("#") || !(words >> name >> error)) continue;
    constexpr std::string_view kDebian = "libonnx-testdata/data/";
    if (name.starts_with(kDebian)) name.erase(0, kDebian.size());
    gaps[name] = std::stoi(error.substr(1)) / 100;
  }
  return gaps;
}

TEST(OnnxSuite, EveryCasePassesOrIsAKnownGap) {
  if (!fs::exists(flags.data)) GTEST_SKIP() << "no " << flags.data << " (Debian's libonnx-testdata)";
  std::map<std::string, int> gaps = ReadGaps();
  ASSERT_FALSE(gaps.empty());
  int passed = 0, known = 0;
  for (const char* kind : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    std::vector<fs::path> cases;
    for (const auto& entry : fs::directory_iterator(fs::path(flags.data) / kind)) cases.push_back(entry.path());
    std::sort(cases.begin(), cases.end());
    for (const fs::path& folder : cases) {
      std::string name = fmt::format("{}/{}", kind, folder.filename().string());
      if (name.find(flags.only) == std::string::npos) continue;
      absl::Status status = RunCase(folder);
      if (!flags.only.empty()) std::printf("%s %s\n", name.c_str(), status.ok() ? "ok" : FormatError(status).c_str());
      auto gap = gaps.find(name);
      if (gap == gaps.end()) {
        EXPECT_TRUE(status.ok()) << name << "\n" << FormatError(status);
        passed += status.ok();
      } else {
        EXPECT_EQ(static_cast<int>(KindOf(status)), gap->second) << name << " is a known gap\n" << FormatError(status);
        ++known;
      }
    }
  }
  std::printf("%d passed, %d known gaps\n", passed, known);
  EXPECT_GT(passed + known, 0) << "no case has a name with '" << flags.only << "'";
}

}  // namespace
}  // namespace mge

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg.starts_with("--data=")) {
      mge::flags.data = arg.substr(7);
    } else if (arg.starts_with("--only=")) {
      mge::flags.only = arg.substr(7);
    } else {
      std::fprintf(stderr, "unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
