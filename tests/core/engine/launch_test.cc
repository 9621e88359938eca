// SPDX-License-Identifier: Apache-2.0
// The place of a process among those of a launcher, from the variables of the environment.
#include "core/engine/launch.h"

#include <gmock/gmock.h>

#include "core/base/errors.h"
#include "core/env/registry.h"

namespace mge {
namespace {

using testing::HasSubstr;

using Variables = std::vector<std::pair<std::string, std::string>>;

absl::StatusOr<Launch> Read(const Variables& variables, const std::string& launcher = "auto") {
  Sources sources;
  sources.environment.variables = variables;
  sources.call = {{"collective.launcher", launcher}};
  const Environment environment = sources.environment;
  auto registry = Registry::Create(std::move(sources));
  EXPECT_TRUE(registry.ok()) << FormatError(registry.status());
  return LaunchOf(environment, *(*registry)->snapshot());
}

Launch Good(const Variables& variables, const std::string& launcher = "auto") {
  auto launch = Read(variables, launcher);
  EXPECT_TRUE(launch.ok()) << FormatError(launch.status());
  return launch.ok() ? *launch : Launch();
}

std::string Error(const Variables& variables, const std::string& launcher = "auto") {
  return FormatError(Read(variables, launcher).status());
}

const Variables kMpirun = {
    {"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}};
const Variables kTorchrun = {
    {"WORLD_SIZE", "8"}, {"RANK", "5"}, {"LOCAL_RANK", "1"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};

Variables Both(Variables a, const Variables& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

TEST(LaunchOf, IsAloneWithoutALauncher) {
  const Launch launch = Good({});
  EXPECT_EQ(launch.ranks, 1u);
  EXPECT_EQ(launch.launcher, "");
  EXPECT_NE(launch.host, "");
}

TEST(LaunchOf, ReadsTheVariablesOfEachLauncher) {
  const Launch mpirun = Good(kMpirun);
  EXPECT_EQ(mpirun.rank, 2u);
  EXPECT_EQ(mpirun.ranks, 4u);
  EXPECT_EQ(mpirun.local_rank, 1u);
  EXPECT_EQ(mpirun.launcher, "mpirun");
  EXPECT_TRUE(mpirun.mpi);

  const Launch pmi = Good({{"PMI_SIZE", "3"}, {"PMI_RANK", "2"}, {"MPI_LOCALRANKID", "2"}});
  EXPECT_EQ(pmi.rank, 2u);
  EXPECT_EQ(pmi.local_rank, 2u);
  EXPECT_TRUE(pmi.mpi);

  const Launch torchrun = Good(kTorchrun);
  EXPECT_EQ(torchrun.rank, 5u);
  EXPECT_EQ(torchrun.ranks, 8u);
  EXPECT_EQ(torchrun.master_address, "node0");
  EXPECT_EQ(torchrun.master_port, 29500);
  EXPECT_FALSE(torchrun.mpi);

  const Launch pmix =
      Good({{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "1"}, {"PMIX_RANK", "1"}});
  EXPECT_EQ(pmix.rank, 1u);
  EXPECT_TRUE(pmix.mpi);
}

TEST(LaunchOf, PrefersOwnSettingsThenMpiThenTheEnvironment) {
  EXPECT_EQ(Good(Both(kTorchrun, kMpirun)).launcher, "mpirun");
  const Launch own = Good(Both(kMpirun, {{"MGE_COLLECTIVE_RANKS", "6"}, {"MGE_COLLECTIVE_RANK", "3"}}));
  EXPECT_EQ(own.rank, 3u);
  EXPECT_EQ(own.ranks, 6u);
  EXPECT_EQ(Good(Both(kTorchrun, kMpirun), "env").ranks, 8u);
  EXPECT_EQ(Good(Both(kTorchrun, kMpirun), "none").ranks, 1u);
}

TEST(LaunchOf, ReadsSlurmInAStepOfSeveralTasksOnly) {
  const Variables shell = {{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}};  // of salloc
  EXPECT_EQ(Good(shell).ranks, 1u);
  EXPECT_EQ(Good(Both(shell, {{"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "1"}})).ranks, 1u);
  const Launch step =
      Good({{"SLURM_STEP_ID", "3"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}, {"SLURM_LOCALID", "1"}});
  EXPECT_EQ(step.rank, 2u);
  EXPECT_EQ(step.ranks, 4u);
  EXPECT_EQ(step.local_rank, 1u);
  EXPECT_EQ(step.launcher, "srun");
}

TEST(LaunchOf, LeavesSingleProcessesAlone) {
  EXPECT_EQ(Good({{"OMPI_COMM_WORLD_SIZE", "1"}, {"OMPI_COMM_WORLD_RANK", "0"}}).ranks, 1u);
  EXPECT_EQ(Good({{"RANK", "3"}}).ranks, 1u);  // of something else
  EXPECT_EQ(Good({{"WORLD_SIZE", "1"}}).ranks, 1u);
}

TEST(LaunchOf, RefusesWhatContradictsItself) {
  EXPECT_THAT(Error({{"WORLD_SIZE", "4"}}), HasSubstr("RANK is not set"));
  EXPECT_THAT(Error({{"WORLD_SIZE", "4"}, {"RANK", "4"}}), HasSubstr("rank 4 of 4 processes"));
  EXPECT_THAT(Error({{"WORLD_SIZE", "four"}, {"RANK", "0"}}), HasSubstr("WORLD_SIZE is 'four'"));
  EXPECT_THAT(Error({{"WORLD_SIZE", "5000"}, {"RANK", "0"}}), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(Error({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_PORT", "70000"}}), HasSubstr("MASTER_PORT is '70000'"));
  EXPECT_THAT(Error({{"MGE_COLLECTIVE_RANKS", "2"}, {"MGE_COLLECTIVE_RANK", "2"}}),
              HasSubstr("collective.rank is 2, but the group has 2 ranks"));
  EXPECT_THAT(Error({}, "mpi"), HasSubstr("mpirun"));
  EXPECT_THAT(Error(kMpirun, "env"), HasSubstr("WORLD_SIZE is not set"));
}

TEST(LaunchOf, NamesItsVariablesToUsersOfParameterServers) {
  for (const char* variable : {"DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_PS_ROOT_URI"}) {
    EXPECT_THAT(Error({{variable, "worker"}}), AllOf(HasSubstr(variable), HasSubstr("MGE_COLLECTIVE_RANK")));
    EXPECT_EQ(Good(Both(kMpirun, {{variable, "worker"}})).ranks, 4u);
    EXPECT_EQ(Good({{variable, "worker"}}, "none").ranks, 1u);
  }
}

}  // namespace
}  // namespace mge
