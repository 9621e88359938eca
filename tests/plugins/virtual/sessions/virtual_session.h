// SPDX-License-Identifier: Apache-2.0
// Runtimes with virtual devices beside the CPU's, and sessions of graphs that are written as text.
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

namespace mge {

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

// Between -2 and 2, and others for another seed.
inline HostValue Numbers(Shape shape, int seed = 1) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, std::move(shape));
  int i = 0;
  for (float& x : v.tensor.MutableData<float>()) x = static_cast<float>((i++ * 37 + seed * 11) % 64 - 32) / 16;
  return v;
}

// Every output, one after the other; all of float32.
inline absl::StatusOr<std::vector<float>> ResultsOf(Session& session, const std::vector<HostValue>& in) {
  std::vector<HostValue> out(static_cast<size_t>(session.output_count()));
  RunControl control;
  MGE_RETURN_IF_ERROR(session.Run(in, out, control));
  std::vector<float> all;
  for (HostValue& v : out) {
    auto data = v.tensor.Data<float>();
    all.insert(all.end(), data.begin(), data.end());
  }
  return all;
}

}  // namespace mge
