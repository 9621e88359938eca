// SPDX-License-Identifier: Apache-2.0
// Options of `mge train` that are lists in one argument.
#pragma once

#include <string>
#include <vector>

#include "core/cli/common.h"
#include "mge/mge.hpp"
#include "mge/schedules.hpp"

namespace mge::cli {

// The arguments as texts.
struct TrainLists {
  std::string class_weights;        // "1,2.5,1"
  std::string points;               // "0:1,0.5:0.1"
  std::vector<std::string> groups;  // "head.*:rate=10,decay=0"
};

// Reads the texts to the options. Returns 0, or the exit code of a usage error, which it reports.
int ReadTrainLists(const Globals& globals, const TrainLists& texts, TrainingOptions* options,
                   std::vector<SchedulePoint>* points);

}  // namespace mge::cli
