// SPDX-License-Identifier: Apache-2.0
// Times candidates in the program mge-worker, so that one that hangs or crashes can be left out of the choice.
//
// A kernel that never returns cannot be stopped inside of its process. With select.profiling_timeout_seconds, this process writes
// the problem to a file in memory (timing_request.h) and executes mge-worker with it. The worker measures one candidate after
// the other and reports each before it begins. The time limit starts then. When it is over, the worker is killed and waited
// for; a crash of the worker has the same effect. A new worker measures the rest, without that candidate, which is not used
// as a reference for others either.
//
// Only devices in host memory and devices for tests (MGE_DEVICE_ONLY_BY_NAME, such as the virtual GPU) are measured in a
// worker. On other devices a second process would need memory and a context of its own beside this one. There, and if
// mge-worker is missing, the candidates are measured in this process without a limit, and one warning says so.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/plan/kernels/timing_request.h"

namespace mge {

// Safe on any thread.
class TimingWorkers {
 public:
  struct Options {
    double seconds = 0;   // time limit for one candidate; greater than 0
    std::string program;  // path of mge-worker
    std::vector<std::string> plugin_directories;
    // Returns the settings that are not defaults, as pairs of key and value.
    std::function<std::vector<std::pair<std::string, std::string>>()> settings;
    Logger logger = Logger();
  };
  explicit TimingWorkers(Options options) : options_(std::move(options)) {}

  double seconds() const { return options_.seconds; }

  // Does the same as MeasureCandidates(), in workers. `key` is ProblemKey::timing of the problem. Returns nullopt if the
  // candidates must be measured in this process.
  std::optional<std::vector<Measurement>> Measure(const Graph& graph, const Group& group, std::span<const int> which,
                                                  uint32_t threads, const mge_constraints& constraints,
                                                  const std::string& key, const MeasureLimits& limits);

 private:
  struct Outcome;
  Outcome Run(TimingRequest& request, const StopControl* stop);
  std::string WhyInProcess(const Device& device) const;
  // Logs that candidates of the device are measured in this process. Logs each text once.
  void Warn(const Device& device, const std::string& why);

  const Options options_;
  std::mutex mutex_;
  std::set<std::string> warned_;
};

}  // namespace mge
