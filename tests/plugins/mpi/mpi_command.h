// SPDX-License-Identifier: Apache-2.0
// Runs the command under mpirun. The tests skip where mpirun is missing.
#pragma once

#include <cstdlib>
#include <string>

#include "tests/support/command.h"

namespace mge {

// Lets mpirun start processes as root, on fewer cores than processes, and in containers. TOOL is the command.
inline constexpr char kMpiExports[] =
    "unset MGE_DEFAULT_DEVICE; export TOOL=" MGE_BINARY_DIR
    "/bin/mge OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
    "OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none\n";

class MpiCommand : public Command {
 protected:
  void SetUp() override {
    Command::SetUp();
    if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun; install openmpi-bin";
  }
  // Runs a command of the shell in the folder. $TOOL is the command.
  Outcome Shell(const std::string& line) const {
    Write("line.sh", kMpiExports + line + "\n");
    const std::string run = "cd " + folder_ + " && timeout 120 bash line.sh >stdout.txt 2>stderr.txt </dev/null";
    const int status = std::system(run.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), Read("stdout.txt"), Read("stderr.txt")};
  }
};

}  // namespace mge
