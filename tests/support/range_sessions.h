// SPDX-License-Identifier: Apache-2.0
// Sessions whose plans may belong to ranges of sizes.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/session_values.h"

namespace mge {

using Settings = decltype(SessionOptions::settings);

// Returns a runtime with the backends of the build.
inline std::shared_ptr<Runtime> CpuRuntime(Settings settings = {}) {
  RuntimeOptions options;
  options.sources.call = std::move(settings);
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  return runtime.ok() ? *runtime : nullptr;
}

// Returns a session of the model in the text form of graphs.
inline std::shared_ptr<Session> Make(const std::shared_ptr<Runtime>& runtime, const char* text, Settings settings = {},
                                     const std::string& device = "cpu0") {
  onnx::Model model;
  model.graph = *ParseGraphText(text);
  auto session = Session::Create(runtime, std::move(model), {.device = device, .settings = std::move(settings)});
  EXPECT_TRUE(session.ok()) << FormatError(session.status());
  return session.ok() ? *session : nullptr;
}

// Returns whether the plan of the last run belongs to a range.
inline bool IsOfARange(const Session& session) { return !session.last_plan()->report.ranges.empty(); }

}  // namespace mge
