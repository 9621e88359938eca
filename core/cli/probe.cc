// SPDX-License-Identifier: Apache-2.0
#include "core/cli/probe.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <iterator>

#include "core/cli/common.h"
#include "core/cli/unexpected.h"
#include "core/cli/zoo/model_writer.h"
#include "core/process/child.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// An operator with its expected results. Results without a tolerance are small whole numbers, which every floating-point
// type represents exactly.
struct Operator {
  const char* name;
  int inputs;  // number of inputs; each is kInput
  float expected[4];
  float tolerance = 0;  // absolute up to 1, relative above 1
};
constexpr float kInput[4] = {-1, 2, -3, 4};
constexpr float kInexact = 0.02f;  // several times the rounding error of bfloat16
constexpr Operator kOperators[] = {
    {"Relu", 1, {0, 2, 0, 4}},
    {"Add", 2, {-2, 4, -6, 8}},
    {"Mul", 2, {1, 4, 9, 16}},
    {"MatMul", 2, {-5, 6, -9, 10}},
    {"Gemm", 2, {-5, 6, -9, 10}},
    {"Sub", 2, {0, 0, 0, 0}},
    {"Neg", 1, {1, -2, 3, -4}},
    {"Abs", 1, {1, 2, 3, 4}},
    {"Sigmoid", 1, {0.26894f, 0.88080f, 0.04743f, 0.98201f}, kInexact},
    {"Tanh", 1, {-0.76159f, 0.96403f, -0.99505f, 0.99933f}, kInexact},
    {"Exp", 1, {0.36788f, 7.38906f, 0.04979f, 54.59815f}, kInexact},
    {"Softmax", 1, {0.04743f, 0.95257f, 0.00091f, 0.99909f}, kInexact},
};
constexpr size_t kGuard = 16;  // elements before and after an output
constexpr float kGuardValue = 12345;
constexpr int kUnsupported = 4;  // kind of a status: the settings allow no kernel for the operator

// Ends the process by UnheardSignal(), which tells the parent that the report cannot be written.
[[noreturn]] void EndUnheard() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
  signal(UnheardSignal(), SIG_DFL);
  raise(UnheardSignal());
  _exit(1);
}

class Teller {
 public:
  void Tell(const Json& json) {
    if (!closed_ && !reporter_.untouched()) {
      closed_ = true;
      Send({{"closed", true}});
    }
    Send(json);
  }

 private:
  void Send(const Json& json) const {
    if (!reporter_.Tell(json.dump(-1, ' ', false, Json::error_handler_t::replace))) EndUnheard();
  }
  Reporter reporter_;
  bool closed_ = false;
};

// Sets *out to whether the plan runs the model on a kernel of the device, and not on the host's reference evaluator.
Status IsPlannedOn(const std::string& device, const Session& session, const Tensor& input, bool* out) {
  std::string text;
  const Tensor* inputs[] = {&input};
  Status s = session.Plan(inputs, "mge.plan/1", false, &text);
  if (s.kind() == kUnsupported) return {};
  if (!s.ok()) return s;
  const Json plan = Json::parse(text);
  const Json& units = plan["units"];
  *out = plan["reference_steps"] == 0 && std::any_of(units.begin(), units.end(), [&](const Json& unit) {
           return unit["kind"] == "kernel" && unit["device"] == device;
         });
  return {};
}

bool IsNear(float got, const Operator& op, size_t i) {
  return std::abs(got - op.expected[i]) <= op.tolerance * std::max(1.0f, std::abs(op.expected[i]));
}

// Runs the operator if the device has a kernel for it (*offered). Describes a wrong result in *wrong.
Status RunOperator(Runtime& runtime, const std::string& device, const Operator& op, bool* offered, std::string* wrong) {
  ModelWriter model(op.name, 0);
  std::string x = model.Input("x", {2, 2});
  model.Node(op.name, std::vector<std::string>(static_cast<size_t>(op.inputs), x), {}, "y");
  model.Output("y", {2, 2});
  std::string bytes = model.Finish();
  SessionOptions options;
  options.device = device;
  Session session;
  if (Status s = Session::LoadBytes(runtime, bytes.data(), bytes.size(), options, &session); !s.ok()) return s;
  Tensor input;
  if (Status s = Tensor::OfSpan<float>(std::vector<int64_t>{2, 2}, kInput, &input); !s.ok()) return s;
  if (Status s = IsPlannedOn(device, session, input, offered); !s.ok() || !*offered) return s;
  // The output is between red zones, which a kernel with access to host memory must not change.
  alignas(64) float memory[3 * kGuard];
  std::fill(std::begin(memory), std::end(memory), kGuardValue);
  float* got = memory + kGuard;
  const int64_t dims[] = {2, 2};
  std::vector<Tensor> outputs(1);
  if (Status s = Tensor::Wrap(MGE_DTYPE_F32, dims, got, sizeof(op.expected), &outputs[0]); !s.ok()) return s;
  if (Status s = session.Run({&input}, &outputs); !s.ok()) return s;
  for (size_t i = 0; i < 4 && wrong->empty(); ++i) {
    if (!IsNear(got[i], op, i))
      *wrong = fmt::format("{} gives {} at element {} instead of {}", op.name, got[i], i, op.expected[i]);
  }
  for (size_t i = 0; i < std::size(memory) && wrong->empty(); ++i) {
    bool guard = i < kGuard || i >= kGuard + 4;
    if (guard && memory[i] != kGuardValue) *wrong = fmt::format("{} writes outside of its output", op.name);
  }
  return {};
}

// Tests a device with the first operator of kOperators for which it has a kernel.
Json TryDevice(Runtime& runtime, const Json& device, const std::string& file) {
  std::string name = device["name"].get<std::string>(), none;
  Json row = {{"name", name},     {"class", device["class"]}, {"state", "loadable"},
              {"troubled", true}, {"operator", ""},           {"reason", ""},
              {"fix", ""}};
  for (const Operator& op : kOperators) {
    bool offered = false;
    std::string wrong;
    Status s = RunOperator(runtime, name, op, &offered, &wrong);
    if (s.ok() && !offered) {
      none += fmt::format("{}{}", none.empty() ? "" : ", ", op.name);
      continue;
    }
    row["operator"] = op.name;
    if (s.ok() && wrong.empty()) {
      row["state"] = "passed";
      row["troubled"] = false;
    } else if (s.ok()) {
      row["reason"] = wrong;
      row["fix"] = "do not use this device; report it to the author of the backend";
    } else {
      row["reason"] = s.what().empty() ? std::string(s.title()) : fmt::format("{}: {}", s.title(), s.what());
      row["fix"] = s.fix();
    }
    return row;
  }
  row["troubled"] = false;
  row["reason"] = fmt::format("it has no kernel for any of {}, so nothing was run", none);
  row["fix"] = fmt::format("to test the kernels that it has: mge sdk test '{}'", file);
  return row;
}

bool HasDevices(const Json& report) {
  return std::any_of(report["devices"].begin(), report["devices"].end(), [](const Json& d) { return d["name"] != "host"; });
}

// Sets `assignment` to "NAME=1" if the backend has a setting for its number of devices whose default is 0 and is in use.
Status AskForADevice(const Runtime& runtime, std::string* assignment) {
  std::string text;
  if (Status s = runtime.Report("mge.env/1", &text); !s.ok()) return s;
  const Json env = Json::parse(text);
  for (const Json& row : env["settings"]) {
    if (row["unit"] == "devices" && row["type"] == "int" && row["default"] == "0" && row["origin"] == "default")
      *assignment = row["key"].get<std::string>() + "=1";
  }
  return {};
}

// Gets the report on the devices. If the backend has none but can create devices on demand, starts it again with one.
Status ListDevices(RuntimeOptions options, Teller& teller, Runtime* runtime, Json* devices) {
  std::string text, assignment;
  if (Status s = runtime->Report("mge.devices/1", &text); !s.ok()) return s;
  *devices = Json::parse(text);
  if (HasDevices(*devices)) return {};
  if (Status s = AskForADevice(*runtime, &assignment); !s.ok() || assignment.empty()) return s;
  *runtime = Runtime();
  options.command_line.push_back(assignment);
  if (Status s = Runtime::Create(options, runtime); !s.ok()) return s;
  if (Status s = runtime->Report("mge.devices/1", &text); !s.ok()) return s;
  *devices = Json::parse(text);
  teller.Tell({{"on_demand", assignment}});
  return {};
}

// Creates a runtime that loads only this file. The other backends are excluded by plugin.skip, so that their settings are
// not reported as unknown.
Status StartAlone(const Globals& globals, const std::string& file, RuntimeOptions* options, Runtime* runtime) {
  options->command_line = globals.settings;
  options->config_files = globals.config_files;
  std::string text, own, others;
  if (Status s = Plugins::Verify(*options, "", &text); !s.ok()) return s;
  const Json found = Json::parse(text);
  for (const Json& row : found["files"]) {
    if (row["path"] == file) own = row["name"].get<std::string>();
  }
  for (const Json& row : found["files"]) {
    const std::string name = row["name"].get<std::string>();
    if (name != own && !name.empty()) others += (others.empty() ? "" : ",") + name;
  }
  options->settings = {"plugin.skip=" + others};
  return Runtime::Create(*options, runtime);
}

}  // namespace

int ProbeBackend(const Globals& globals, const std::string& file) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  signal(SIGPIPE, SIG_IGN);
  LeaveFaults();

  Teller teller;
  teller.Tell({{"stage", "starting"}});
  {
    RuntimeOptions options;
    Runtime runtime;
    if (Status s = StartAlone(globals, file, &options, &runtime); !s.ok()) {
      teller.Tell({{"plugin", {{"verdict", "refused"}, {"code", "bad_setting"}, {"reason", s.title()}, {"fix", s.fix()}}}});
      teller.Tell({{"stage", "leaving the process"}});
      return 0;
    }
    std::string text;
    if (Status s = runtime.Report("mge.plugins/1", &text); !s.ok()) return s.kind();
    const Json plugins = Json::parse(text);
    bool loaded = false;
    for (const Json& row : plugins["files"]) {
      if (row["path"] != file) continue;
      teller.Tell({{"plugin", row}});
      loaded = row["verdict"] == "loaded";
    }
    teller.Tell({{"stage", "opening its devices"}});
    Json devices = {{"devices", Json::array()}};
    if (loaded) {
      if (Status s = ListDevices(options, teller, &runtime, &devices); !s.ok()) return s.kind();
    }
    for (const Json& device : devices["devices"]) {
      if (device["name"] == "host") continue;
      std::string name = device["name"].get<std::string>();
      if (device["state"] != "loadable") {
        teller.Tell({{"device",
                      {{"name", name},
                       {"class", device["class"]},
                       {"state", "found"},
                       {"troubled", device["usable"]},
                       {"operator", ""},
                       {"reason", device["reason"]},
                       {"fix", ""}}}});
        continue;
      }
      teller.Tell({{"stage", fmt::format("running an operator on {}", name)}});
      teller.Tell({{"device", TryDevice(runtime, device, file)}});
    }
    teller.Tell({{"stage", "stopping"}});
  }
  teller.Tell({{"stage", "leaving the process"}});
  return 0;
}

}  // namespace mge::cli
