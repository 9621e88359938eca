// SPDX-License-Identifier: Apache-2.0
#include "core/worker/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "fmt/format.h"
#include "mge/mge.hpp"
#include "nlohmann/json.hpp"

namespace mge::worker {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kUnsupported = 4;  // kind of a status: the settings allow no kernel for the operator

// The row of the file, and the pipe to which it is written.
struct TestReport {
  int fd;
  Json row = Json::object();

  // Writes the row with the next action.
  void Enter(std::string_view stage) {
    row["stage"] = stage;
    const std::string line = row.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (dprintf(fd, "%s\n", line.c_str()) >= 0) return;
    std::perror("the report cannot be written");
    _exit(1);
  }
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

// Runs the operator if the device has a kernel for it (*offered). Describes a wrong result in *wrong.
Status RunOperator(Runtime& runtime, const std::string& device, const Json& op, bool* offered, std::string* wrong) {
  const Json::binary_t& bytes = op["model"].get_binary();
  SessionOptions options;
  options.device = device;
  Session session;
  if (Status s = Session::LoadBytes(runtime, bytes.data(), bytes.size(), options, &session); !s.ok()) return s;
  Tensor input;
  const auto given = op["input"].get<std::vector<float>>(), expected = op["expected"].get<std::vector<float>>();
  if (Status s = Tensor::OfSpan<float>(std::vector<int64_t>{2, 2}, given, &input); !s.ok()) return s;
  if (Status s = IsPlannedOn(device, session, input, offered); !s.ok() || !*offered) return s;
  std::vector<Tensor> outputs;
  if (Status s = session.Run({&input}, &outputs); !s.ok()) return s;
  const std::span<const float> got = outputs[0].data<float>();
  for (size_t i = 0; i < got.size() && wrong->empty(); ++i) {
    if (got[i] != expected[i])
      *wrong = fmt::format("{} gives {} at element {} instead of {}", op["name"].get<std::string>(), got[i], i, expected[i]);
  }
  return {};
}

Json RowOf(const Json& device, const char* state, bool troubled, const Json& reason) {
  return {{"name", device["name"]}, {"class", device["class"]}, {"state", state}, {"troubled", troubled},
          {"operator", ""},         {"reason", reason},         {"fix", ""}};
}

// Tests a device with the first operator of the request for which it has a kernel.
Json TryDevice(Runtime& runtime, const Json& device, const Json& request) {
  std::string none;
  for (const Json& op : request["operators"]) {
    const std::string name = op["name"];
    bool offered = false;
    std::string wrong;
    Status s = RunOperator(runtime, device["name"], op, &offered, &wrong);
    if (s.ok() && !offered) {
      none += fmt::format("{}{}", none.empty() ? "" : ", ", name);
      continue;
    }
    const bool passed = s.ok() && wrong.empty();
    Json row = RowOf(device, passed ? "passed" : "loadable", !passed, wrong);
    row["operator"] = name;
    if (!wrong.empty()) row["fix"] = "do not use this device; report it to the author of the backend";
    if (!s.ok()) {
      row["reason"] = s.what().empty() ? std::string(s.title()) : fmt::format("{}: {}", s.title(), s.what());
      row["fix"] = s.fix();
    }
    return row;
  }
  Json row = RowOf(device, "loadable", false, fmt::format("it has no kernel for any of {}, so nothing was run", none));
  row["fix"] = fmt::format("to test the kernels that it has: mge sdk test '{}'", request["file"].get<std::string>());
  return row;
}

// Returns "NAME=1" if a backend creates devices on demand: it has a setting for their number whose default 0 is in use.
std::string DeviceSetting(const Json& env) {
  for (const Json& row : env["settings"]) {
    if (row["unit"] == "devices" && row["type"] == "int" && row["default"] == "0" && row["origin"] == "default")
      return row["key"].get<std::string>() + "=1";
  }
  return {};
}

// Starts the backend and tests its devices. If it creates devices on demand, starts it again with one device.
Status Test(const RuntimeOptions& options, const Json& request, TestReport& report) {
  Runtime runtime;
  if (Status s = Runtime::Create(options, &runtime); !s.ok()) return s;
  std::string plugins, devices, env;
  if (Status s = runtime.Report("mge.env/1", &env); !s.ok()) return s;  // starts it
  if (Status s = runtime.Report("mge.plugins/1", &plugins); !s.ok()) return s;
  const Json found = Json::parse(plugins);
  Json& row = report.row;
  for (const Json& own : found["files"]) {
    if (own["path"] != request["file"]) continue;
    for (const char* key : {"verdict", "code", "reason", "fix"}) row[key] = own[key];
  }
  if (row.value("verdict", "") != "loaded") return {};
  report.Enter("opening its devices");
  if (Status s = runtime.Report("mge.devices/1", &devices); !s.ok()) return s;
  const Json listed = Json::parse(devices);
  for (const Json& device : listed["devices"]) {
    if (device["name"] == "host") continue;
    if (device["state"] == "loadable") {
      report.Enter(fmt::format("running an operator on {}", device["name"].get<std::string>()));
      row["devices"].push_back(TryDevice(runtime, device, request));
    } else {
      row["devices"].push_back(RowOf(device, "found", device["usable"], device["reason"]));
    }
  }
  if (row.contains("devices") || row.contains("on_demand")) return report.Enter("stopping"), Status();
  const std::string assignment = DeviceSetting(Json::parse(env));
  if (assignment.empty()) return report.Enter("stopping"), Status();
  row["on_demand"] = assignment;
  runtime = Runtime();
  RuntimeOptions with_device = options;
  with_device.command_line.push_back(assignment);
  return Test(with_device, request, report);
}

}  // namespace

void TestBackend(std::string_view bytes, int fd) {
  const Json request = Json::from_cbor(bytes.begin(), bytes.end());
  TestReport report{fd};
  report.Enter(kFirstStage);
  RuntimeOptions options;
  options.settings = {"debug.check_memory=1",  // names a kernel that writes outside of its output
                      "plan.host_compute=0"};  // the host would compute so few elements
  options.command_line = request["settings"].get<std::vector<std::string>>();
  options.command_line.push_back("plugin.start_timeout=0");  // the parent process limits the time
  options.config_files = request["config_files"].get<std::vector<std::string>>();
  options.plugin_directories = request["plugin_directories"].get<std::vector<std::string>>();
  options.built_in_plugins = false;
  if (Status s = Test(options, request, report); !s.ok()) {
    report.row.update({{"verdict", "refused"}, {"code", "bad_setting"}, {"reason", s.title()}, {"fix", s.fix()}});
  }
  report.Enter(kLastStage);
  std::exit(0);
}

}  // namespace mge::worker
