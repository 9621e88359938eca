// SPDX-License-Identifier: Apache-2.0
// The page of `mge train --html`: the course of a training, live.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/cli/common.h"
#include "core/html/series.h"

namespace mge::cli {

// Writes a page while a training goes on, at most once a second and atomically. A browser loads it again every two seconds
// until the training has ended. If the object is destroyed before End(), the page says that the training has stopped. Does
// nothing with an empty path. If a write fails, prints the error once; the training goes on.
class TrainPage {
 public:
  struct Facts {
    std::string model, devices, optimizer, loss;
    int64_t parameters = 0, examples = 0, batch = 0, epochs = 0;
  };

  TrainPage(const Globals& globals, std::string path, Facts facts);
  ~TrainPage();
  TrainPage(const TrainPage&) = delete;
  TrainPage& operator=(const TrainPage&) = delete;

  // Adds a step that has computed `examples` examples.
  void AddStep(int64_t step, double loss, double rate, int64_t examples);
  // Adds the end of an epoch. `validation` and `accuracy` are NaN if there is none.
  void AddEpoch(int64_t epoch, int64_t step, double loss, double validation, double accuracy);
  // The memory of a step on its devices, as planned.
  void SetPlannedPeak(uint64_t planned_peak_bytes) { planned_peak_bytes_ = planned_peak_bytes; }
  void End();

 private:
  using Clock = std::chrono::steady_clock;
  void EndWindow();  // adds the throughput of the window, and the memory
  void Write(std::string_view state, bool live);
  std::string Body(std::string_view state) const;

  const Globals& globals_;
  const std::string path_;
  const Facts facts_;
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point step_begin_ = begin_, written_ = begin_;
  Clock::duration window_time_ = {};  // of the steps since the last number of the throughput
  int64_t window_examples_ = 0;
  html::Series loss_, rate_, speed_, memory_, validation_, accuracy_;
  std::vector<std::vector<std::string>> epochs_;  // rows of the table, the newest last
  int64_t epoch_ = 0, step_ = 0;
  uint64_t planned_peak_bytes_ = 0;
  bool ended_ = false, failed_ = false;
};

}  // namespace mge::cli
