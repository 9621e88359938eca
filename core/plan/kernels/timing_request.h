// SPDX-License-Identifier: Apache-2.0
// The request to the program mge-worker to time kernels, and the lines in which it reports.
//
// The worker must measure exactly what this process would. The request therefore holds the nodes of the group with their
// constants, the device's name, and all settings that are not defaults. The worker loads the same backend with these
// settings and asks it for candidates. It measures only if its problem has the same ProblemKey::timing, which also names the
// build of the backend.
//
// Both programs are of one build. A request of another build has another first line and is refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/cover.h"
#include "core/plan/kernels/measure.h"

namespace mge {

struct TimingRequest {
  std::vector<std::string> plugin_directories;
  std::vector<std::pair<std::string, std::string>> settings;  // keys and values
  std::string device;
  std::string key;  // ProblemKey::timing
  uint32_t threads = 1;
  uint64_t require = 0, forbid = 0, workspace_limit = UINT64_MAX;  // constraints of the candidates
  double seconds = 0;                                              // MeasureLimits
  uint64_t bytes = 0;
  std::vector<std::string> offered;   // candidates that may run, also as a reference
  std::vector<std::string> measured;  // those of them to measure
  Graph graph;                        // the nodes of the group and their values, in the order of the group's AbiGraph
  std::vector<int32_t> uses;          // by ValueId: see AbiGraph
};

// Sets request.graph and request.uses to the nodes of the group. Constants share their bytes with `graph`.
void SetGraph(const Graph& graph, const Group& group, TimingRequest& request);

// Returns the request as bytes.
std::string TimingRequestBytes(const TimingRequest& request);
// Reads a request. Fails with kUsage if the bytes are no request of this build.
absl::StatusOr<TimingRequest> ReadTimingRequest(std::string_view bytes);

// A line of the worker's report. It ends with a line break.
struct TimingLine {
  enum class Kind { kReady, kBegin, kEnd, kResult, kFailed };
  Kind kind = Kind::kReady;  // kReady: the problem is complete. kBegin: `id` runs next. kEnd: no candidate runs.
  std::string id = {};       // kBegin, kResult: the candidate
  Measurement result = {};   // kResult
  std::string error = {};    // kFailed: the reason why nothing can be measured
};
std::string TimingLineText(const TimingLine& line);
// Returns false if the line is not from the worker: the backend has written it.
bool ParseTimingLine(std::string_view text, TimingLine* line);

}  // namespace mge
