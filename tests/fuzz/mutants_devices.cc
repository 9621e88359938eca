// SPDX-License-Identifier: Apache-2.0
// Runs each mutant on the reference evaluators and on cpu0, through the public API. Both must give the same numbers, or both
// must refuse the mutant.
#include <algorithm>
#include <cmath>

#include "core/cli/common.h"
#include "core/cli/compare.h"
#include "core/cli/inputs.h"
#include "fmt/format.h"
#include "tests/fuzz/mutants.h"

namespace mge::fuzz {
namespace {

constexpr int64_t kMaxElements = 1 << 20;  // largest number of elements of a generated input
// A wide tolerance, because sums of random numbers cancel and the rest depends on the order of the terms.
constexpr cli::Tolerance kTolerance = {.relative = 2e-2, .absolute = 2e-3};
constexpr int kInternalId = 101, kIndexId = 309;

struct Outcome {
  Status status;
  std::vector<Tensor> outputs;
  bool random = false;
};

bool IsLarge(const Session& session) {
  for (size_t i = 0; i < session.input_count(); ++i) {
    double elements = 1;
    for (int64_t d : session.input(i).dims()) elements *= static_cast<double>(std::max<int64_t>(d, 1));
    if (elements > kMaxElements) return true;
  }
  return false;
}

Outcome RunOn(Runtime& runtime, const Mutant& mutant, const std::string& device, bool* too_large) {
  Outcome out;
  Session session;
  SessionOptions options;
  options.device = device;
  out.status = Session::LoadBytes(runtime, mutant.bytes.data(), mutant.bytes.size(), options).MoveTo(session);
  if (!out.status.ok()) return out;
  if ((*too_large = IsLarge(session))) return out;
  std::string report;
  if (session.Report("mge.inspect/1").MoveTo(report).ok()) out.random = cli::Json::parse(report)["random"].get<bool>();
  std::vector<Tensor> inputs;
  int usage = 0;
  cli::Globals quiet;
  quiet.quiet = true;
  out.status = cli::MakeInputs(quiet, session, {}, &inputs, &usage);
  if (!out.status.ok()) return out;
  Result<RunControl> control = RunControl::Create();
  out.status = control.status();
  if (!out.status.ok()) return out;
  control->SetTimeout(5);
  out.status = session.Run(cli::Pointers(inputs), out.outputs, {.control = &*control});
  return out;
}

// Checks for an error of memory or time. Devices reach these limits at different nodes, so the two may differ.
bool IsLimit(const Status& status) { return status.exit_code() == 6 || status.exit_code() == 124; }

std::string Compare(const Mutant& mutant) {
  static Runtime runtime = [] {
    Runtime made;
    RuntimeOptions options;
    options.command_line = {"memory.limit=128MiB"};
    Status status = Runtime::Create(options).MoveTo(made);
    if (!status.ok()) std::fprintf(stderr, "%s\n", std::string(status.text()).c_str());
    return made;
  }();
  if (!runtime.get()) return "no runtime";
  bool too_large = false;
  Outcome host = RunOn(runtime, mutant, "host", &too_large), cpu;
  if (!too_large) cpu = RunOn(runtime, mutant, "cpu0", &too_large);
  if (too_large || IsLimit(host.status) || IsLimit(cpu.status)) return "";
  for (const Outcome* o : {&host, &cpu}) {
    if (o->status.id() == kInternalId) return std::string(o->status.text());
  }
  // If no element is read, some implementations refuse a bad index and others ignore it.
  auto is_empty = [](const Tensor& t) { return t.bytes() == 0; };
  if (host.status.id() == kIndexId && cpu.status.ok() && std::all_of(cpu.outputs.begin(), cpu.outputs.end(), is_empty)) {
    return "";
  }
  if (host.status.ok() != cpu.status.ok()) {
    return fmt::format("host: {}\ncpu0: {}", std::string(host.status.ok() ? "ok" : host.status.text()),
                       std::string(cpu.status.ok() ? "ok" : cpu.status.text()));
  }
  if (!host.status.ok() || host.random) return "";
  for (size_t i = 0; i < host.outputs.size(); ++i) {
    std::string difference = cli::Sentence(cli::Compare(cpu.outputs[i], host.outputs[i], kTolerance));
    if (!difference.empty()) return fmt::format("output {}: {}", i, difference);
  }
  return "";
}

}  // namespace
}  // namespace mge::fuzz

int main(int argc, char** argv) {
  mge::fuzz::Options options;
  options.count = 5000;
  return mge::fuzz::ParseOptions(argc, argv, &options) ? mge::fuzz::TryMutants(options, {}, mge::fuzz::Compare) : 2;
}
