// SPDX-License-Identifier: Apache-2.0
// Runtimes and sessions on the fake backend "tuner".
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/ops/op.h"
#include "tests/core/engine/fakes/tuner.h"

namespace mge {

// A temporary directory, removed by the destructor.
class Folder {
 public:
  Folder() {
    std::string name = testing::TempDir() + "mge_tuner_XXXXXX";
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string At(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::vector<std::string> Files(const std::string& extension) const {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() == extension) out.push_back(entry.path());
    }
    return out;
  }

 private:
  std::string path_;
};

inline std::string ReadText(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
inline void WriteText(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

inline Assignment Set(std::string name, std::string text) { return {std::move(name), std::move(text)}; }

// A runtime that stands for a separate process: two of them share nothing except files.
class Host {
 public:
  explicit Host(std::vector<Assignment> settings = {}, const std::string& device = "tuner0",
                const std::string& backends = MGE_BINARY_DIR "/tests/engine_fakes",
                const std::string& worker = MGE_BINARY_DIR "/lib/mge/mge-worker")
      : device_(device) {
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {backends};
    options.worker = worker;
    settings.insert(settings.begin(), {{"MGE_FASTRUN_CACHE_TYPE", "memory"}, {"threads", "1"}});
    options.sources.call = std::move(settings);
    options.logger = Logger(
        LogLevel::kWarning,
        [](void* self, LogLevel, std::string_view m) { static_cast<Host*>(self)->warnings.emplace_back(m); }, this);
    auto made = Runtime::Create(std::move(options));
    status = made.status();
    if (made.ok()) runtime = *made;
  }

  TunerRecord& record() {
    Device* device = runtime->devices().Resolve(device_, "test")->devices[0].device;
    const void* table = device->backend().plugin().extension(MGE_TUNER_RECORD, 1);
    return *static_cast<TunerRecord*>(const_cast<void*>(table));
  }

  absl::StatusOr<std::shared_ptr<Session>> Make(std::string_view graph) {
    onnx::Model model;
    MGE_ASSIGN_OR_RETURN(model.graph, ParseGraphText(graph));
    for (NodeId id = 0; id < model.graph.node_count(); ++id) MGE_RETURN_IF_ERROR(BindNode(model.graph, id));
    return Session::Create(runtime, std::move(model), {.device = device_});
  }

  // Returns the plan of a graph whose only input is float32 with `n` elements.
  absl::StatusOr<std::shared_ptr<const Plan>> PlanOf(std::string_view graph, int64_t n = 64) {
    MGE_ASSIGN_OR_RETURN(session, Make(graph));
    std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {n}}};
    return session->PlanFor(types);
  }
  // Returns the id of the plan's first kernel, or the error as the user sees it.
  std::string Chosen(std::string_view graph, int64_t n = 64) {
    auto plan = PlanOf(graph, n);
    return plan.ok() ? (*plan)->units[0].kernel : FormatError(plan.status());
  }

  absl::Status status;
  std::vector<std::string> warnings;
  std::shared_ptr<Runtime> runtime;
  std::shared_ptr<Session> session;

 private:
  std::string device_;
};

inline std::vector<std::string> Kernels(const Plan& plan) {
  std::vector<std::string> out;
  for (const Unit& u : plan.units) out.push_back(u.kernel);
  return out;
}

}  // namespace mge
