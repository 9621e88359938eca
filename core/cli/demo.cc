// SPDX-License-Identifier: Apache-2.0
// mge demo: reads handwritten digits with a small embedded network, and shows the device and kernels that ran it.
#include <algorithm>
#include <chrono>

#include "core/cli/common.h"
#include "core/cli/demo_data.h"
#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr size_t kPixels = 64;
constexpr size_t kShown = 8;
constexpr int kTimedRuns = 200;

// Returns images side by side, one character per pixel.
std::string Pictures(std::span<const float> images, size_t count) {
  static constexpr char kInk[] = " .:-=+*#%@";
  std::string out;
  for (size_t row = 0; row < 8; ++row) {
    out += "  ";
    for (size_t image = 0; image < count; ++image) {
      for (size_t column = 0; column < 8; ++column) {
        float ink = images[image * kPixels + row * 8 + column];
        out += kInk[std::clamp(static_cast<int>(ink * 9.99f), 0, 9)];
      }
      out += "  ";
    }
    out += "\n";
  }
  return out;
}

Result<Tensor> ReadArray(std::span<const unsigned char> bytes) { return Tensor::ReadNpyBytes(bytes.data(), bytes.size()); }

int RunDemo(const Globals& globals) {
  Runtime runtime;
  Session session;
  if (Status s = MakeRuntime(globals, &runtime); !s.ok()) return Report(globals, s);
  SessionOptions options;
  options.device = globals.device;
  options.threads = globals.threads;
  std::span<const unsigned char> model = DemoModel();
  if (Status s = Session::LoadBytes(runtime, model.data(), model.size(), options).MoveTo(session); !s.ok())
    return Report(globals, s);
  Tensor images, labels;
  if (Status s = ReadArray(DemoImages()).MoveTo(images); !s.ok()) return Report(globals, s);
  if (Status s = ReadArray(DemoLabels()).MoveTo(labels); !s.ok()) return Report(globals, s);
  std::vector<Tensor> outputs;
  const Tensor* in[] = {&images};
  double best_us = 1e30;
  for (int i = 0; i < kTimedRuns; ++i) {
    auto begin = std::chrono::steady_clock::now();
    if (Status s = session.Run(in, outputs); !s.ok()) return Report(globals, s);
    best_us = std::min(best_us, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  size_t count = static_cast<size_t>(labels.elements());
  std::span<const float> probabilities = outputs[0].data<float>();
  std::span<const int64_t> truth = labels.data<int64_t>();
  std::vector<int64_t> read;
  size_t right = 0;
  for (size_t i = 0; i < count; ++i) {
    auto row = probabilities.subspan(i * 10, 10);
    read.push_back(std::max_element(row.begin(), row.end()) - row.begin());
    right += read[i] == truth[i];
  }
  mge_memory_facts facts = {};
  if (Status s = session.Memory().MoveTo(facts); !s.ok()) return Report(globals, s);
  std::string plan_text, plugins_text;
  if (Status s = session.Plan(in, "mge.plan/1", false).MoveTo(plan_text); !s.ok()) return Report(globals, s);
  if (Status s = runtime.Report("mge.plugins/1").MoveTo(plugins_text); !s.ok()) return Report(globals, s);
  Json plan = Json::parse(plan_text), plugins = Json::parse(plugins_text);
  std::string device = plan["device"];
  if (globals.json) {
    PrintJson({{"schema", "mge.demo/1"},
               {"device", device},
               {"images", count},
               {"right", right},
               {"predictions", read},
               {"latency_us", best_us},
               {"planned_peak_bytes", facts.planned_peak_bytes},
               {"measured_peak_bytes", facts.measured_peak_bytes},
               {"steps", facts.steps},
               {"reference_steps", facts.reference_steps}});
    return kExitOk;
  }
  Print(fmt::format("MGE {} reads handwritten digits\n\n", mge_version()));
  Print("Backends found\n");
  for (const Json& f : plugins["files"]) {
    Print(fmt::format("  {:<8} {:<6} {}\n", f["verdict"].get<std::string>(), Escape(f["name"].get<std::string>()),
                      Escape(f["reason"] == "" ? f["path"].get<std::string>() : f["reason"].get<std::string>())));
  }
  if (plugins["files"].empty()) Print("  none; the built-in reference device runs the model\n");
  Print(fmt::format("\nDevice chosen: {}\n", device));
  for (const Json& u : plan["units"]) {
    std::string ops;
    for (const Json& o : u["operators"]) ops += (ops.empty() ? "" : "+") + o.get<std::string>();
    Print(fmt::format("  {:<9} {:<22} {}\n", u["kind"].get<std::string>(), ops.empty() ? "-" : ops,
                      u["kernel"].get<std::string>()));
  }
  Print(fmt::format("\n{} images that the network was not trained on; the first {}:\n\n", count, kShown));
  Print(Pictures(images.data<float>(), kShown));
  std::string predicted = "  ", actual = "  ";
  for (size_t i = 0; i < kShown; ++i) {
    predicted += fmt::format("{:^10}", fmt::format("read {}", read[i]));
    actual += fmt::format("{:^10}", fmt::format("is {}", truth[i]));
  }
  Print(predicted + "\n" + actual + "\n\n");
  Print(fmt::format("Right         {} of {}\n", right, count));
  Print(fmt::format("Latency       {:.0f} us for all {}, the best of {} runs\n", best_us, count, kTimedRuns));
  Print(fmt::format("Memory        planned {}, measured {}\n", HumanBytes(facts.planned_peak_bytes),
                    HumanBytes(facts.measured_peak_bytes)));
  Print("\nNext: `mge zoo resnet50 -o rn50.onnx && mge plan rn50.onnx --why`, `mge devices`, `mge --help`\n");
  return kExitOk;
}

}  // namespace

Action DeclareDemo(Arguments, const Globals& globals) {
  return [&globals] { return RunDemo(globals); };
}

}  // namespace mge::cli
