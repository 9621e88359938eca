// SPDX-License-Identifier: Apache-2.0
#include "core/engine/launch.h"

#include <unistd.h>

#include <charconv>
#include <optional>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The variables of one launcher.
struct LauncherRow {
  std::string_view name;
  std::string_view ranks, rank, local_rank;  // numbers
  bool mpi;                                  // MPI connects its processes
};
constexpr LauncherRow kMpiLaunchers[] = {
    {"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", true},
    {"a launcher of MPI", "PMI_SIZE", "PMI_RANK", "MPI_LOCALRANKID", true},
    {"srun with PMIx", "SLURM_STEP_NUM_TASKS", "PMIX_RANK", "SLURM_LOCALID", true},
};
constexpr LauncherRow kEnvLauncher = {"a launcher", "WORLD_SIZE", "RANK", "LOCAL_RANK", false};
constexpr LauncherRow kSlurm = {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_LOCALID", false};
constexpr std::string_view kServerVariables[] = {"DMLC_ROLE", "DMLC_NUM_WORKER", "DMLC_PS_ROOT_URI"};

absl::StatusOr<int64_t> NumberIn(std::string_view variable, std::string_view text, int64_t min, int64_t max) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= min && number <= max) return number;
  return Fail(errors::kBadSetting, fmt::format("{} is '{}'", variable, text),
              {.what = fmt::format("a data-parallel training needs a whole number from {} to {} there", min, max),
               .where = fmt::format("environment {}", variable),
               .fix = "start the processes with their launcher again, or set collective.launcher to none"});
}

absl::Status Contradiction(const LauncherRow& row, std::string what) {
  return Fail(errors::kBadSetting, fmt::format("{} and {} contradict each other", row.rank, row.ranks),
              {.what = std::move(what),
               .where = fmt::format("environment {}", row.rank),
               .fix = "start the processes with their launcher again, or set collective.launcher to none"});
}

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

// Reads the variables of one launcher into `out`. Returns false if it has not started this process.
absl::StatusOr<bool> ReadLauncher(const Environment& environment, const LauncherRow& row, Launch& out) {
  const auto ranks = environment.Find(row.ranks), rank = environment.Find(row.rank);
  if (!ranks) return false;
  if (!rank) {
    if (row.mpi) return false;  // the number of processes is a variable of several launchers
    MGE_ASSIGN_OR_RETURN(const int64_t size, NumberIn(row.ranks, *ranks, 1, kMaxProcesses));
    if (size == 1) return false;
    return Contradiction(row, fmt::format("{} is {}, and {} is not set", row.ranks, size, row.rank));
  }
  MGE_ASSIGN_OR_RETURN(const int64_t size, NumberIn(row.ranks, *ranks, 1, kMaxProcesses));
  MGE_ASSIGN_OR_RETURN(const int64_t number, NumberIn(row.rank, *rank, 0, kMaxProcesses - 1));
  if (number >= size) return Contradiction(row, fmt::format("rank {} of {} processes", number, size));
  if (const auto local = environment.Find(row.local_rank)) {
    MGE_ASSIGN_OR_RETURN(const int64_t of_host, NumberIn(row.local_rank, *local, 0, kMaxProcesses - 1));
    out.local_rank = static_cast<uint32_t>(of_host);
  }
  out.ranks = static_cast<uint32_t>(size);
  out.rank = static_cast<uint32_t>(number);
  out.launcher = row.name;
  out.source = row.ranks;
  out.mpi = row.mpi;
  return true;
}

absl::StatusOr<bool> ReadMpi(const Environment& environment, Launch& out) {
  for (const LauncherRow& row : kMpiLaunchers) {
    MGE_ASSIGN_OR_RETURN(const bool found, ReadLauncher(environment, row, out));
    if (found) return true;
  }
  return false;
}

// Reads RANK and the like, and then the variables of a step of SLURM. The shell of salloc has variables of SLURM, too, but is
// no step of several tasks.
absl::StatusOr<bool> ReadEnv(const Environment& environment, Launch& out) {
  MGE_ASSIGN_OR_RETURN(const bool found, ReadLauncher(environment, kEnvLauncher, out));
  if (found || !environment.Find("SLURM_STEP_ID")) return found;
  if (environment.Find(kSlurm.ranks) == "1") return false;
  return ReadLauncher(environment, kSlurm, out);
}

// Reads the settings collective.ranks and collective.rank.
absl::StatusOr<bool> ReadSettings(const Snapshot& settings, Launch& out) {
  if (settings.Get<kCollectiveRanks>() <= 1) return false;
  out.ranks = static_cast<uint32_t>(settings.Get<kCollectiveRanks>());
  out.rank = static_cast<uint32_t>(settings.Get<kCollectiveRank>());
  out.launcher = "the settings collective.*";
  out.source = settings.OriginOf<kCollectiveRanks>().Describe();
  if (out.rank < out.ranks) return true;
  return Fail(errors::kBadSetting, fmt::format("collective.rank is {}, but the group has {} ranks", out.rank, out.ranks),
              {.where = settings.OriginOf<kCollectiveRank>().Describe(),
               .fix = "set collective.ranks to the number of ranks, and collective.rank to a number below it"});
}

// Fails if a launcher of parameter servers has started the process.
absl::Status RefuseServers(const Environment& environment) {
  for (const std::string_view variable : kServerVariables) {
    if (!environment.Find(variable)) continue;
    return Fail(
        errors::kBadSetting, fmt::format("{} asks for a training with parameter servers", variable),
        {.what = "MGE has none: the processes sum their gradients themselves",
         .where = fmt::format("environment {}", variable),
         .fix = "start the workers with mpirun, or give each of them RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or "
                "MGE_COLLECTIVE_RANK, MGE_COLLECTIVE_RANKS and MGE_COLLECTIVE_ID"});
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ReadAny(const Environment& environment, const Snapshot& settings, Launch& out) {
  const LauncherChoice choice = settings.Get<kCollectiveLauncher>();
  if (choice == LauncherChoice::kNone) return false;
  MGE_ASSIGN_OR_RETURN(bool found, choice == LauncherChoice::kAuto ? ReadSettings(settings, out) : false);
  if (!found && choice != LauncherChoice::kEnv) {
    MGE_ASSIGN_OR_RETURN(found, ReadMpi(environment, out));
  }
  if (!found && choice != LauncherChoice::kMpi) {
    MGE_ASSIGN_OR_RETURN(found, ReadEnv(environment, out));
  }
  if (!found && choice == LauncherChoice::kAuto) MGE_RETURN_IF_ERROR(RefuseServers(environment));
  return found;
}

}  // namespace

absl::StatusOr<Launch> LaunchOf(const Environment& environment, const Snapshot& settings) {
  Launch out;
  MGE_ASSIGN_OR_RETURN(const bool found, ReadAny(environment, settings, out));
  const LauncherChoice choice = settings.Get<kCollectiveLauncher>();
  if (!found && (choice == LauncherChoice::kMpi || choice == LauncherChoice::kEnv)) {
    const bool mpi = choice == LauncherChoice::kMpi;
    return Fail(
        errors::kBadSetting,
        fmt::format("collective.launcher is {}, and this process has no variables of such a launcher", mpi ? "mpi" : "env"),
        {.what = mpi ? "neither OMPI_COMM_WORLD_SIZE nor PMI_SIZE is set" : "WORLD_SIZE is not set",
         .where = settings.OriginOf<kCollectiveLauncher>().Describe(),
         .fix = mpi ? "start the processes with mpirun" : "set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT"});
  }
  if (const auto address = environment.Find("MASTER_ADDR")) out.master_address = *address;
  if (const auto port = environment.Find("MASTER_PORT"); port && out.ranks > 1 && !out.mpi) {
    MGE_ASSIGN_OR_RETURN(out.master_port, NumberIn("MASTER_PORT", *port, 1, 65535));
  }
  out.host = HostName();
  return out;
}

}  // namespace mge
