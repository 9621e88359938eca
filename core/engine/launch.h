// SPDX-License-Identifier: Apache-2.0
// The place of this process among those that a launcher, such as mpirun, started for one training. Launchers describe it in
// variables of the environment; this is the only code that knows their names.
#pragma once

#include <cstdint>
#include <string>

#include "core/base/status.h"
#include "core/env/environment.h"
#include "core/env/snapshot.h"

namespace mge {

// The largest number of processes.
inline constexpr uint32_t kMaxProcesses = 1024;

struct Launch {
  uint32_t rank = 0;                // of this process, from 0
  uint32_t ranks = 1;               // number of processes
  uint32_t local_rank = 0;          // of this process among those of its host; 0 if the launcher does not say
  std::string launcher = {};        // "mpirun"; empty: there is none
  std::string source = {};          // the variable that has the number of processes: "OMPI_COMM_WORLD_SIZE"
  bool mpi = false;                 // MPI connects the processes
  std::string master_address = {};  // MASTER_ADDR: the host of rank 0; empty: not set
  int64_t master_port = 0;          // MASTER_PORT; 0: not set
  std::string host = {};            // the name of this process's host
};

// Returns the place of this process, by the setting collective.launcher. Fails with kBadSetting if the variables contradict
// each other, if one that is needed is missing, or if a launcher of parameter servers has started the process.
absl::StatusOr<Launch> LaunchOf(const Environment& environment, const Snapshot& settings);

}  // namespace mge
