// SPDX-License-Identifier: Apache-2.0
// Sessions that are ranks of a group, for tests of collectives.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/session.h"
#include "core/graph/graph.h"
#include "core/plan/communicator.h"

namespace mge {

// A model with two collectives.
inline constexpr std::string_view kSumAndMax = R"(input x : float32[N]
h = Relu(x)
s = mge::AllReduce(h)
m = mge::AllReduce(x) {reduction="max"}
y = Neg(s)
output y
output m
)";

inline HostValue Vector(std::vector<float> elements) {
  HostValue v;
  v.tensor = *Tensor::Create(DType::kF32, {static_cast<int64_t>(elements.size())});
  std::copy(elements.begin(), elements.end(), v.tensor.MutableData<float>().begin());
  return v;
}

// Returns the id of a new group, made by a device.
inline std::string NewCollectiveId(Runtime& runtime, const std::string& device) {
  auto resolution = runtime.ResolveDevice(device, *runtime.registry().snapshot());
  EXPECT_TRUE(resolution.ok()) << FormatError(resolution.status());
  auto id = NewCollectiveId(*resolution->devices.front().device);
  EXPECT_TRUE(id.ok()) << FormatError(id.status());
  return id.ok() ? CollectiveIdText(*id) : "";
}

// Creates the session of one rank of a group.
inline absl::StatusOr<std::shared_ptr<Session>> LoadRank(std::shared_ptr<Runtime> runtime, std::string_view text,
                                                         const std::string& device, const std::string& id, int rank,
                                                         const std::string& timeout = "20", int ranks = 2) {
  MGE_ASSIGN_OR_RETURN(Graph graph, ParseGraphText(text));
  SessionOptions options;
  options.device = device;
  options.settings = {{"collective.ranks", std::to_string(ranks)},
                      {"collective.rank", std::to_string(rank)},
                      {"collective.id", id},
                      {"collective.timeout_seconds", timeout}};
  return Session::Create(std::move(runtime), {std::move(graph), {}}, options);
}

}  // namespace mge
