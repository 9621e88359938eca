// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutants.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/onnx/fields.h"
#include "fmt/format.h"
#include "tests/fuzz/mutator.h"

namespace mge::fuzz {
namespace {

namespace fs = std::filesystem;

// Adds the small models below `folder`. Large ones are skipped, because reading and planning do not depend on the size.
void AddModels(const std::string& folder, std::vector<Model>* out) {
  constexpr uintmax_t kMaxBytes = 1 << 16;
  std::error_code ec;
  for (const auto& entry : fs::recursive_directory_iterator(folder, ec)) {
    if (entry.path().extension() != ".onnx" || entry.file_size() > kMaxBytes) continue;
    std::ifstream in(entry.path(), std::ios::binary);
    out->push_back({entry.path().parent_path().filename(), {std::istreambuf_iterator<char>(in), {}}});
  }
  std::sort(out->begin(), out->end(), [](const Model& a, const Model& b) { return a.name < b.name; });
}

std::vector<std::string> Operators(const std::vector<Model>& models) {
  std::set<std::string> out;
  for (const Model& m : models) {
    std::optional<Message> tree = ParseMessage(m.bytes, MessageType::kModel);
    if (!tree) continue;
    std::vector<Message*> all;
    Collect(*tree, &all);
    for (Message* part : all) {
      if (part->type == MessageType::kNode) out.insert(part->Text(onnx::field::node::kOpType));
    }
  }
  return {out.begin(), out.end()};
}

Mutant Make(const std::vector<Model>& models, const std::vector<std::string>& operators, int64_t seed, int64_t number) {
  Random random(static_cast<uint64_t>(seed) * 1'000'000'007u + static_cast<uint64_t>(number));
  const Model& model = models[random() % models.size()];
  std::optional<Message> tree = ParseMessage(model.bytes, MessageType::kModel);
  if (!tree) return {model.name, model.bytes};
  Mutant out = {model.name + ":", ""};
  for (uint64_t change = 0, most = 1 + random() % 4; change < most; ++change) {
    if (std::string what = Mutate(*tree, operators, random); !what.empty()) out.about += " " + what + ";";
  }
  out.bytes = Serialize(*tree);
  return out;
}

char crashed[64];  // text that the crash handler prints; the handler may not allocate

void OnCrash(int signal) {
  [[maybe_unused]] ssize_t n = write(STDERR_FILENO, crashed, std::strlen(crashed));
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

bool ParseOptions(int argc, char** argv, Options* out) {
  for (int i = 1; i < argc; ++i) {
    std::string_view arg = argv[i];
    if (arg.starts_with("--data=")) {
      out->data = arg.substr(7);
      continue;
    }
    bool known = false;
    for (auto [name, value] : {std::pair("--count=", &out->count),
                               {"--seconds=", &out->seconds},
                               {"--seed=", &out->seed},
                               {"--only=", &out->only}}) {
      if (!arg.starts_with(name)) continue;
      const char* end = arg.data() + arg.size();
      auto [stop, failure] = std::from_chars(arg.data() + std::strlen(name), end, *value);
      known = failure == std::errc() && stop == end;
    }
    if (known) continue;
    std::fprintf(stderr, "unknown argument '%s'\n", argv[i]);
    return false;
  }
  return true;
}

int TryMutants(const Options& options, std::vector<Model> models, std::string (*check)(const Mutant& mutant)) {
  AddModels(options.data, &models);
  if (models.empty()) {
    std::printf("no models below %s\n", options.data.c_str());
    return 0;
  }
  const std::vector<std::string> operators = Operators(models);
  for (int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL}) std::signal(signal, OnCrash);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
  auto enough = [&](int64_t ran) {
    if (options.only >= 0) return ran == 1;
    return options.seconds > 0 ? std::chrono::steady_clock::now() > end : ran == options.count;
  };
  int64_t ran = 0, wrong = 0;
  for (int64_t number = std::max<int64_t>(options.only, 0); !enough(ran); ++number, ++ran) {
    const std::string name = fmt::format("--seed={} --only={}", options.seed, number);
    std::snprintf(crashed, sizeof(crashed), "\nmutant: %s\n", name.c_str());
    const Mutant mutant = Make(models, operators, options.seed, number);
    if (options.only >= 0) {
      std::printf("%s\n", mutant.about.c_str());
      std::ofstream("mutant.onnx", std::ios::binary) << mutant.bytes;
    }
    const std::string fault = check(mutant);
    if (fault.empty()) continue;
    ++wrong;
    std::printf("%s %s\n%s\n", name.c_str(), mutant.about.c_str(), fault.c_str());
  }
  std::printf("%lld mutants of %zu models, %lld of them wrong\n", static_cast<long long>(ran), models.size(),
              static_cast<long long>(wrong));
  return wrong > 0;
}

}  // namespace mge::fuzz
