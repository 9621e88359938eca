// SPDX-License-Identifier: Apache-2.0
// Runs ONNX's backend tests on the reference evaluators: every case passes, or stands in
// gaps_host.txt with a reason.
//
//   test_onnx_suite [--data=DIR] [--only=TEXT] [--update]
//
// DIR holds node/, simple/, pytorch-converted/ and pytorch-operator/ with one folder a case. --only
// runs the cases whose name contains TEXT and prints each; --update rewrites the gaps file.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
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
  bool update = false;
} flags;

constexpr auto kTimeLimit = std::chrono::seconds(60);

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
      ValueKind kind = model.graph.value(model.graph.inputs()[i]).kind;
      MGE_ASSIGN_OR_RETURN(onnx::NamedValue input,
                           onnx::ReadValueFile(data / fmt::format("input_{}.pb", i), kind));
      inputs.push_back(std::move(input.value));
    }
    auto deadline = std::chrono::steady_clock::now() + kTimeLimit;
    auto stop = [&] {
      return std::chrono::steady_clock::now() < deadline ? absl::OkStatus()
                                                         : Fail(errors::kTimeout, "too slow");
    };
    MGE_ASSIGN_OR_RETURN(std::vector<HostValue> outputs,
                         Interpret(model.graph, std::move(inputs), UnlimitedHostAllocator(), stop));
    for (size_t i = 0; i < outputs.size(); ++i) {
      MGE_ASSIGN_OR_RETURN(onnx::NamedValue want,
                           onnx::ReadValueFile(data / fmt::format("output_{}.pb", i),
                                               model.info.outputs[i].type.kind));
      if (absl::Status status = CompareValues(outputs[i], want.value); !status.ok()) {
        return AddWhere(status, fmt::format("{}, output {}", data.filename().string(), i));
      }
    }
  }
  return sets > 0 ? absl::OkStatus() : Fail(errors::kFileAccess, "the case has no test_data_set_0");
}

// "name: reason" lines; empty ones and those that begin with # do not count.
std::map<std::string, std::string> ReadGaps(const std::string& path) {
  std::map<std::string, std::string> gaps;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    size_t colon = line.find(": ");
    if (line.empty() || line[0] == '#' || colon == std::string::npos) continue;
    gaps[line.substr(0, colon)] = line.substr(colon + 2);
  }
  return gaps;
}

std::string Reason(const absl::Status& status) {
  ErrorParts parts = PartsOf(status);
  std::string out = EscapeControl(ErrorTitle(status));
  if (!parts.what.empty()) out += "; " + EscapeControl(parts.what);
  return out.size() > 160 ? out.substr(0, 160) : out;
}

TEST(OnnxSuite, EveryCasePassesOrIsAKnownGap) {
  if (!fs::exists(flags.data))
    GTEST_SKIP() << "no " << flags.data << " (Debian's libonnx-testdata)";
  std::string gaps_path = std::string(MGE_TEST_DIR) + "/gaps_host.txt";
  std::map<std::string, std::string> gaps = ReadGaps(gaps_path), found;
  int passed = 0, failed = 0, unsupported = 0;
  for (const char* kind : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    std::vector<fs::path> cases;
    for (const auto& entry : fs::directory_iterator(fs::path(flags.data) / kind))
      cases.push_back(entry.path());
    std::sort(cases.begin(), cases.end());
    for (const fs::path& folder : cases) {
      std::string name = fmt::format("{}/{}", kind, folder.filename().string());
      if (name.find(flags.only) == std::string::npos) continue;
      absl::Status status = RunCase(folder);
      bool is_unsupported = KindOf(status) == ErrorKind::kUnsupported;
      passed += status.ok();
      unsupported += is_unsupported;
      failed += !status.ok() && !is_unsupported;
      if (!status.ok())
        found[name] = (is_unsupported ? "unsupported: " : "failed: ") + Reason(status);
      if (!flags.only.empty())
        std::printf("%s %s\n", name.c_str(), status.ok() ? "ok" : FormatError(status).c_str());
      if (flags.update) continue;
      if (status.ok()) {
        EXPECT_FALSE(gaps.contains(name))
            << name << " passes: remove it from gaps_host.txt (or run --update)";
      } else {
        EXPECT_TRUE(gaps.contains(name)) << name << "\n" << FormatError(status);
      }
    }
  }
  std::printf("%d passed, %d failed, %d unsupported\n", passed, failed, unsupported);
  EXPECT_GT(passed + failed + unsupported, 0) << "no case has a name with '" << flags.only << "'";
  if (!flags.update) return;
  ASSERT_TRUE(flags.only.empty()) << "--update needs all cases";
  std::ofstream out(gaps_path);
  out << "# Backend tests of ONNX that the reference evaluators do not pass, and why. Written by "
         "test_onnx_suite --update.\n";
  for (const auto& [name, reason] : found) out << name << ": " << reason << "\n";
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
    } else if (arg == "--update") {
      mge::flags.update = true;
    } else {
      std::fprintf(stderr, "unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
