// SPDX-License-Identifier: Apache-2.0
// Runtimes with virtual devices and the CPU, and sessions of graphs in text form.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "tests/support/session_values.h"

namespace mge {

// Returns a runtime with these settings.
inline std::shared_ptr<Runtime> NewRuntime(std::vector<Assignment> settings) {
  RuntimeOptions options;
  options.built_in_plugins = false;
  options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
  options.sources.call = std::move(settings);
  auto runtime = Runtime::Create(std::move(options));
  EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
  return runtime.ok() ? *runtime : nullptr;
}

inline absl::StatusOr<std::shared_ptr<Session>> Load(std::shared_ptr<Runtime> runtime, std::string_view text,
                                                     const std::string& device) {
  MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
  return Session::Create(std::move(runtime), {std::move(graph), {}}, {.device = device});
}

}  // namespace mge
