// SPDX-License-Identifier: Apache-2.0
#include "core/cli/probe.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "core/cli/common.h"
#include "core/cli/unexpected.h"
#include "core/cli/zoo/model_writer.h"
#include "core/process/child.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

// An operator with its expected results, which are small whole numbers: every floating-point type represents them exactly.
struct Operator {
  const char* name;
  int inputs;  // number of inputs; each is kInput
  float expected[4];
};
constexpr float kInput[4] = {-1, 2, -3, 4};
constexpr Operator kOperators[] = {
    {"Relu", 1, {0, 2, 0, 4}},    {"Add", 2, {-2, 4, -6, 8}}, {"Mul", 2, {1, 4, 9, 16}},  {"MatMul", 2, {-5, 6, -9, 10}},
    {"Gemm", 2, {-5, 6, -9, 10}}, {"Sub", 2, {0, 0, 0, 0}},   {"Neg", 1, {1, -2, 3, -4}}, {"Abs", 1, {1, 2, 3, 4}},
};
constexpr size_t kGuard = 16;  // elements before and after an output
constexpr float kGuardValue = 12345;
constexpr int kUnsupported = 4;  // kind of a status: the settings allow no kernel for the operator

// Writes the row and the next action to kReportFd.
void EnterStage(std::string_view stage, Json& row) {
  row["stage"] = stage;
  // The line break before the object ends a line that the backend may have begun.
  const std::string line = "\n" + row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = write(kReportFd, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      fmt::print(stderr, "the report cannot be written: {}\n", strerror(errno));
      _exit(1);
    }
    done += static_cast<size_t>(n);
  }
}

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
    if (got[i] != op.expected[i])
      *wrong = fmt::format("{} gives {} at element {} instead of {}", op.name, got[i], i, op.expected[i]);
  }
  for (size_t i = 0; i < std::size(memory) && wrong->empty(); ++i) {
    bool guard = i < kGuard || i >= kGuard + 4;
    if (guard && memory[i] != kGuardValue) *wrong = fmt::format("{} writes outside of its output", op.name);
  }
  return {};
}

Json RowOf(const Json& device, const char* state, bool troubled, const Json& reason) {
  return {{"name", device["name"]}, {"class", device["class"]}, {"state", state}, {"troubled", troubled},
          {"operator", ""},         {"reason", reason},         {"fix", ""}};
}

// Tests a device with the first operator of kOperators for which it has a kernel.
Json TryDevice(Runtime& runtime, const Json& device, const std::string& file) {
  std::string none;
  for (const Operator& op : kOperators) {
    bool offered = false;
    std::string wrong;
    Status s = RunOperator(runtime, device["name"], op, &offered, &wrong);
    if (s.ok() && !offered) {
      none += fmt::format("{}{}", none.empty() ? "" : ", ", op.name);
      continue;
    }
    const bool passed = s.ok() && wrong.empty();
    Json row = RowOf(device, passed ? "passed" : "loadable", !passed, wrong);
    row["operator"] = op.name;
    if (!wrong.empty()) row["fix"] = "do not use this device; report it to the author of the backend";
    if (!s.ok()) {
      row["reason"] = s.what().empty() ? std::string(s.title()) : fmt::format("{}: {}", s.title(), s.what());
      row["fix"] = s.fix();
    }
    return row;
  }
  Json row = RowOf(device, "loadable", false, fmt::format("it has no kernel for any of {}, so nothing was run", none));
  row["fix"] = fmt::format("to test the kernels that it has: mge sdk test '{}'", file);
  return row;
}

// Gets the devices except `host`.
Status ListDevices(const Runtime& runtime, std::vector<Json>* devices) {
  std::string text;
  if (Status s = runtime.Report("mge.devices/1", &text); !s.ok()) return s;
  const Json report = Json::parse(text);
  for (const Json& device : report["devices"]) {
    if (device["name"] != "host") devices->push_back(device);
  }
  return {};
}

// Starts a backend without devices again with one device, if it creates devices on demand: it has a setting for their number
// whose default is 0 and is in use.
Status CreateADevice(RuntimeOptions options, Json& row, Runtime* runtime, std::vector<Json>* devices) {
  std::string text, assignment;
  if (Status s = runtime->Report("mge.env/1", &text); !s.ok()) return s;
  const Json env = Json::parse(text);
  for (const Json& setting : env["settings"]) {
    if (setting["unit"] == "devices" && setting["type"] == "int" && setting["default"] == "0" &&
        setting["origin"] == "default") {
      assignment = setting["key"].get<std::string>() + "=1";
    }
  }
  if (assignment.empty()) return {};
  *runtime = Runtime();
  options.command_line.push_back(assignment);
  if (Status s = Runtime::Create(options, runtime); !s.ok()) return s;
  row["on_demand"] = assignment;
  return ListDevices(*runtime, devices);
}

Status Test(const Globals& globals, const std::string& file, Json& row) {
  RuntimeOptions options;
  options.command_line = globals.settings;
  options.config_files = globals.config_files;
  Runtime runtime;
  if (Status s = Runtime::Create(options, &runtime); !s.ok()) return s;
  std::string text;
  if (Status s = runtime.Report("mge.plugins/1", &text); !s.ok()) return s;
  const Json plugins = Json::parse(text);
  for (const Json& found : plugins["files"]) {
    if (found["path"] != file) continue;
    for (const char* key : {"verdict", "code", "reason", "fix"}) row[key] = found[key];
  }
  if (row.value("verdict", "") != "loaded") return {};
  EnterStage("opening its devices", row);
  std::vector<Json> devices;
  if (Status s = ListDevices(runtime, &devices); !s.ok()) return s;
  if (devices.empty()) {
    if (Status s = CreateADevice(options, row, &runtime, &devices); !s.ok()) return s;
  }
  for (const Json& device : devices) {
    if (device["state"] == "loadable") {
      EnterStage(fmt::format("running an operator on {}", device["name"].get<std::string>()), row);
      row["devices"].push_back(TryDevice(runtime, device, file));
    } else {
      row["devices"].push_back(RowOf(device, "found", device["usable"], device["reason"]));
    }
  }
  EnterStage("stopping", row);
  return {};
}

}  // namespace

int ProbeBackend(const Globals& globals, const std::string& file) {
  const rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  LeaveFaults();
  Json row = Json::object();
  EnterStage(kFirstStage, row);
  if (Status s = Test(globals, file, row); !s.ok()) {
    row.update({{"verdict", "refused"}, {"code", "bad_setting"}, {"reason", s.title()}, {"fix", s.fix()}});
  }
  EnterStage(kLastStage, row);
  return 0;
}

}  // namespace mge::cli
