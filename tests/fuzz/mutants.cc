// SPDX-License-Identifier: Apache-2.0
// Changed models of ONNX's backend tests: each is read and run once within bounds, and nothing but a documented error may
// come of it. Whatever goes wrong names the mutant, and --only runs it again.
//
//   fuzz_mutants [--count=N] [--seconds=S] [--seed=N] [--only=N] [--data=DIR]
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include "core/onnx/fields.h"
#include "tests/fuzz/mutator.h"
#include "tests/support/read_and_run.h"
#include "tests/support/small_models.h"

namespace mge::fuzz {
namespace {

namespace fs = std::filesystem;

struct Flags {
  int64_t count = 50000;
  int64_t seconds = 0;  // in place of count
  int64_t seed = 1;
  int64_t only = -1;
  std::string data = "/usr/share/libonnx-testdata/data";
} flags;

struct Model {
  std::string name;
  std::string bytes;
};

// Small ones only: the fault is in how a model is read, not in how large it is.
std::vector<Model> ReadModels() {
  constexpr uintmax_t kMaxBytes = 1 << 16;
  std::vector<Model> out;
  for (auto& [name, bytes] : onnx_builder::SmallModels()) out.push_back({name, bytes});
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(flags.data, ec)) {
    if (entry.path().extension() != ".onnx" || entry.file_size() > kMaxBytes) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    out.push_back({entry.path().parent_path().filename(), {std::istreambuf_iterator<char>(in), {}}});
  }
  std::sort(out.begin(), out.end(), [](const Model& a, const Model& b) { return a.name < b.name; });
  return out;
}

char where[64];  // for the handler of a crash, which may do little

void OnCrash(int signal) {
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, where, std::strlen(where));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

int Run() {
  std::vector<Model> models = ReadModels();
  std::set<std::string> operator_set;
  for (const Model& m : models) {
    std::optional<Message> tree = ParseMessage(m.bytes, MessageType::kModel);
    if (!tree) continue;
    std::vector<Message*> all;
    Collect(*tree, &all);
    for (Message* part : all) {
      if (part->type == MessageType::kNode) operator_set.insert(part->Text(onnx::field::node::kOpType));
    }
  }
  const std::vector<std::string> operators(operator_set.begin(), operator_set.end());
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, OnCrash);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(flags.seconds);
  int64_t ran = 0, good = 0, broken = 0;
  for (int64_t i = std::max<int64_t>(flags.only, 0);; ++i, ++ran) {
    if (flags.only >= 0 ? ran > 0 : flags.seconds > 0 ? std::chrono::steady_clock::now() > end : ran >= flags.count) break;
    std::snprintf(where, sizeof(where), "\nmutant: --seed=%lld --only=%lld\n", static_cast<long long>(flags.seed),
                  static_cast<long long>(i));
    Random random(static_cast<uint64_t>(flags.seed) * 1'000'000'007u + static_cast<uint64_t>(i));
    const Model& model = models[random() % models.size()];
    std::optional<Message> tree = ParseMessage(model.bytes, MessageType::kModel);
    if (!tree) continue;
    std::string changes;
    for (uint64_t change = 0, most = 1 + random() % 4; change < most; ++change) {
      std::string what = Mutate(*tree, operators, random);
      if (!what.empty()) changes += (changes.empty() ? "" : ", ") + what;
    }
    const std::string bytes = Serialize(*tree);
    if (flags.only >= 0) {
      std::printf("%s: %s\n", model.name.c_str(), changes.c_str());
      std::ofstream("mutant.onnx", std::ios::binary) << bytes;
    }
    bool promise_kept = true;
    absl::Status status = ReadAndRun(AsBytes(bytes), &promise_kept);
    good += status.ok();
    if (flags.only >= 0) std::printf("%s\n", FormatError(status).c_str());
    if (promise_kept) continue;
    ++broken;
    std::printf("--seed=%lld --only=%lld: %s: %s\n%s\n", static_cast<long long>(flags.seed), static_cast<long long>(i),
                model.name.c_str(), changes.c_str(), FormatError(status).c_str());
  }
  std::printf("%lld mutants of %zu models, %lld of which ran, %lld broke a promise\n", static_cast<long long>(ran),
              models.size(), static_cast<long long>(good), static_cast<long long>(broken));
  return broken > 0 || ran == 0;
}

}  // namespace
}  // namespace mge::fuzz

int main(int argc, char** argv) {
  using mge::fuzz::flags;
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    bool known = false;
    for (auto [name, value] : {std::pair("--count=", &flags.count),
                               {"--seconds=", &flags.seconds},
                               {"--seed=", &flags.seed},
                               {"--only=", &flags.only}}) {
      if (!arg.starts_with(name)) continue;
      arg.remove_prefix(std::string_view(name).size());
      auto [stop, failure] = std::from_chars(arg.data(), arg.data() + arg.size(), *value);
      known = failure == std::errc() && stop == arg.data() + arg.size();
      break;
    }
    if (!known && arg.starts_with("--data=")) {
      flags.data = arg.substr(7);
      known = true;
    }
    if (!known) {
      std::fprintf(stderr, "unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  return mge::fuzz::Run();
}
