// SPDX-License-Identifier: Apache-2.0
// `mge doctor` with backends that damage the child process in which they are tried: they close its file descriptors, or
// leave processes behind.
#include <gmock/gmock.h>
#include <signal.h>

#include <cerrno>

#include "tests/hostile/hostile.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Runs `mge doctor`. Returns the row of the backend `name`, which must have failed without quarantine. Expects also that the
// backend "quiet" passes.
Json RowBesideAQuietOne(const HostileFolder& folder, const std::string& name) {
  Outcome o = folder.Mge("doctor --json --timeout 5");
  EXPECT_EQ(o.code, 5) << o.err;
  const Json report = o.json();
  if (!report.is_object() || !report.contains("plugins")) {
    ADD_FAILURE() << o.out << o.err;
    return Json::object();
  }
  Json row = RowOf(report["plugins"], name);
  EXPECT_EQ(row["troubled"], true) << row;
  EXPECT_EQ(row["quarantined"], false) << row;
  EXPECT_EQ(row["code"], "foreign_descriptor") << row;
  EXPECT_EQ(RowOf(report["plugins"], "quiet")["state"], "passed");
  EXPECT_FALSE(std::filesystem::exists(folder.state() + "/mge/quarantine"));
  return row;
}

TEST(DoctorsChild, TriesABackendThatClosesDescriptorsCompletelyAndReportsIt) {
  HostileFolder folder;
  folder.AddHostile("start_closes");
  folder.AddHostile("quiet");
  Json row = RowBesideAQuietOne(folder, "start_closes");
  EXPECT_EQ(row["verdict"], "loaded") << row;
  EXPECT_EQ(row["state"], "loadable") << row;
  EXPECT_EQ(row["reason"], "it closed descriptors that are not its own, while starting");
  ASSERT_EQ(row["devices"].size(), 1u) << row;
  EXPECT_EQ(row["devices"][0]["state"], "passed");
  EXPECT_EQ(ReadAll(folder.state() + "/taken"), "");
}

TEST(DoctorsChild, ReportsOnlyTheFaultOfABackendThatClosesEveryDescriptor) {
  HostileFolder folder;
  folder.AddHostile("start_closes_all");
  folder.AddHostile("quiet");
  Json row = RowBesideAQuietOne(folder, "start_closes_all");
  EXPECT_EQ(row["state"], "found") << row;
  EXPECT_EQ(row["reason"], "it closed descriptors that are not its own, while starting, and the test could not continue");
  EXPECT_TRUE(std::filesystem::exists(folder.state() + "/taken"));
  EXPECT_EQ(ReadAll(folder.state() + "/taken"), "");
}

TEST(DoctorsChild, IgnoresReportLinesThatABackendWrites) {
  HostileFolder folder;
  folder.AddHostile("kernel_row");
  folder.AddHostile("quiet");
  Json row = RowBesideAQuietOne(folder, "kernel_row");
  EXPECT_EQ(row["state"], "loadable") << row;
  EXPECT_EQ(row["reason"], "it wrote to a descriptor that is not its own: '{\"plugin\":7}'");
  ASSERT_EQ(row["devices"].size(), 1u) << row;
  EXPECT_EQ(row["devices"][0]["name"], "hostile0");
}

TEST(DoctorsChild, ReportsCorrectlyAfterAnUnfinishedLineOfABackend) {
  HostileFolder folder;
  folder.AddHostile("start_part");
  folder.AddHostile("quiet");
  Json row = RowBesideAQuietOne(folder, "start_part");
  EXPECT_EQ(row["reason"], "it wrote to a descriptor that is not its own: 'begun'");
  EXPECT_EQ(row["devices"].size(), 1u) << row;
}

TEST(DoctorsChild, IsWaitedForEvenIfTheCommandIgnoresTheSignalOfItsEnd) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  const std::string line = fmt::format("env --ignore-signal=CHLD XDG_STATE_HOME={0} MGE_PLUGIN_PATH={1} " MGE_BINARY_DIR
                                       "/bin/mge doctor >{0}/said 2>&1 </dev/null",
                                       folder.state(), folder.path());
  EXPECT_EQ(std::system(line.c_str()), 0) << ReadAll(folder.state() + "/said");
}

TEST(DoctorsChild, LeavesNoDaemonBehind) {
  HostileFolder folder;
  folder.AddHostile("start_daemon");
  Outcome o = folder.Mge("doctor --json");
  EXPECT_EQ(RowOf(o.json()["plugins"], "start_daemon")["state"], "passed") << o.out << o.err;
  const pid_t daemon = std::atoi(ReadAll(folder.state() + "/daemon").c_str());
  ASSERT_GT(daemon, 1);
  EXPECT_NE(kill(daemon, 0), 0);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
}  // namespace mge
