// SPDX-License-Identifier: Apache-2.0
// The checkpoints of `mge train` in a folder: step-NUMBER.ckpt after each interval, and best.ckpt.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "core/cli/common.h"
#include "mge/mge.hpp"

namespace mge::cli {

// How far a training is. A checkpoint has it as its notes.
struct TrainingProgress {
  int64_t steps = 0;                                      // so far
  int64_t epoch = 0;                                      // the one in progress, from 0
  int64_t examples_done = 0;                              // of this epoch, in its order
  double loss_sum = 0;                                    // of these examples
  double best = std::numeric_limits<double>::infinity();  // the lowest loss of an epoch so far
  // The options and data that the order of the examples depends on.
  uint64_t seed = 0;
  int64_t batch = 0, examples = 0;
};

class TrainCheckpoints {
 public:
  // `folder` must exist. Keeps the newest `keep` files besides the best one. A process that does not write only helps the one
  // that does, which must save at the same time.
  TrainCheckpoints(std::string folder, int64_t keep, bool writes = true)
      : folder_(std::move(folder)), keep_(keep), writes_(writes) {}

  bool IsEmpty() const;
  // Writes step-NUMBER.ckpt, then removes older ones.
  Status Save(const Session& session, const TrainingProgress& progress) const;
  // Writes best.ckpt.
  Status SaveBest(const Session& session, const TrainingProgress& progress) const;
  // Loads the newest checkpoint into the session. One that is damaged is reported, and the one before it is loaded. Returns 0, or
  // the exit code after reporting why there is none to load.
  int Load(const Globals& globals, const Session& session, TrainingProgress* progress) const;

 private:
  std::string folder_;
  int64_t keep_;
  bool writes_;
};

}  // namespace mge::cli
