// SPDX-License-Identifier: Apache-2.0
// Tests of `mge doctor`: a backend that crashes or hangs does so in a child process, is named, and is quarantined.
#include <gmock/gmock.h>

#include "tests/hostile/hostile.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kQuick = "doctor --json --timeout 1";

struct Deadly {
  const char* name;
  const char* reason;
};

class DeadlyStart : public testing::TestWithParam<Deadly> {};

TEST_P(DeadlyStart, HappensInAChildIsNamedAndQuarantinesUntilReleased) {
  HostileFolder folder;
  std::string name = GetParam().name;
  folder.AddHostile(name);
  folder.AddHostile("quiet");
  Outcome o = folder.Mge(kQuick);
  EXPECT_EQ(o.code, 5) << o.err;
  Json row = RowOf(o.json()["plugins"], name);
  EXPECT_EQ(row["state"], "found");
  EXPECT_EQ(row["verdict"], "refused");
  EXPECT_EQ(row["code"], "quarantined");
  EXPECT_EQ(row["quarantined"], true);
  EXPECT_THAT(row["reason"].get<std::string>(),
              AllOf(HasSubstr(GetParam().reason), HasSubstr("while starting"), Not(HasSubstr("mge doctor"))));
  EXPECT_THAT(row["fix"].get<std::string>(), HasSubstr("mge doctor --end-quarantine " + name));
  EXPECT_EQ(RowOf(o.json()["plugins"], "quiet")["state"], "passed");

  // Other commands do not open the quarantined backend.
  Outcome listed = folder.Mge("plugins --json");
  ASSERT_EQ(listed.code, 0) << listed.err;
  Json kept = RowOf(listed.json()["files"], name);
  EXPECT_EQ(kept["verdict"], "refused");
  EXPECT_EQ(kept["code"], "quarantined");
  EXPECT_THAT(kept["reason"].get<std::string>(), HasSubstr(GetParam().reason));
  EXPECT_EQ(RowOf(listed.json()["files"], "quiet")["verdict"], "accepted");
}

INSTANTIATE_TEST_SUITE_P(Doctor, DeadlyStart,
                         testing::Values(Deadly{"load_abort", "signal 6"}, Deadly{"load_exit", "exit code 3"},
                                         Deadly{"query_exit", "exit code 3"}, Deadly{"query_abort", "signal 6"},
                                         Deadly{"query_segfault", "signal 11"},
                                         Deadly{"query_loop", "did not respond within 1 s"},
                                         Deadly{"start_exit", "exit code 3"}, Deadly{"start_leave", "exit code 0"},
                                         Deadly{"start_abort", "signal 6"}, Deadly{"start_segfault", "signal 11"},
                                         Deadly{"start_illegal", "signal 4"},
                                         Deadly{"start_loop", "did not respond within 1 s"},
                                         Deadly{"enumerate_loop", "did not respond within 1 s"}),
                         [](const auto& info) { return std::string(info.param.name); });

// A command that is not `mge doctor` cannot survive such a start, but it names the backend, and the next command works.
class DeadlyInACommand : public testing::TestWithParam<const char*> {};

TEST_P(DeadlyInACommand, IsNamedQuarantinedAndNotStartedAgain) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer handles faults itself";
#endif
  HostileFolder folder;
  const std::string name = GetParam();
  folder.AddHostile(name);
  folder.AddHostile("quiet");
  Outcome first = folder.Mge("devices");
  EXPECT_NE(first.code, 0);
  EXPECT_THAT(first.err, AllOf(HasSubstr("backend '" + name + "' (" + folder.At("mge_" + name + ".so") +
                                         ") ended the process while it was being started"),
                               HasSubstr("mge doctor --end-quarantine " + name)));
  Outcome second = folder.Mge("devices");
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("hostile0"));
  Json kept = RowOf(folder.Mge("plugins --json").json()["files"], name);
  EXPECT_EQ(kept["code"], "quarantined");
  EXPECT_EQ(folder.Mge("doctor --end-quarantine " + name + " --timeout 1").code, 5);  // released, tried, and kept again
}

INSTANTIATE_TEST_SUITE_P(Doctor, DeadlyInACommand,
                         testing::Values("load_abort", "load_exit", "query_segfault", "start_abort", "start_exit",
                                         "start_segfault"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Doctor, QuarantinesABackendWhoseStaticObjectsThrow) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "no exception gets through a sanitizer's dlopen";
#endif
  HostileFolder folder;
  folder.AddHostile("load_throw");
  folder.AddHostile("quiet");
  Outcome before = folder.Mge("devices");
  EXPECT_EQ(before.code, 0) << before.err;
  EXPECT_THAT(before.out, HasSubstr("hostile0"));
  EXPECT_THAT(before.err, AllOf(HasSubstr("'load_throw' (" + folder.At("mge_load_throw.so")), HasSubstr("`mge doctor`")));

  Outcome o = folder.Mge(kQuick);
  EXPECT_EQ(o.code, 5) << o.err;
  Json row = RowOf(o.json()["plugins"], "load_throw");
  EXPECT_EQ(row["state"], "found");
  EXPECT_EQ(row["code"], "quarantined");
  EXPECT_EQ(row["quarantined"], true);
  EXPECT_THAT(row["reason"].get<std::string>(),
              AllOf(HasSubstr("while it was being opened"), HasSubstr("thrown by the hostile backend")));
  EXPECT_THAT(row["fix"].get<std::string>(), HasSubstr("mge doctor --end-quarantine load_throw"));
  EXPECT_EQ(RowOf(o.json()["plugins"], "quiet")["state"], "passed");

  Outcome after = folder.Mge("plugins --json");
  EXPECT_EQ(RowOf(after.json()["files"], "load_throw")["code"], "quarantined");
  EXPECT_EQ(after.err, "");
}

TEST(Doctor, IsSuggestedWhenABackendCrashesACommand) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer speaks there";
#endif
  for (const char* name : {"start_abort", "start_segfault"}) {
    HostileFolder folder;
    folder.AddHostile(name);
    Outcome o = folder.Mge("devices", "MGE_LOG_LEVEL=info");
    EXPECT_GT(o.code, 128) << name;
    EXPECT_THAT(o.err, HasSubstr(std::string("starting backend ") + name)) << name;
    EXPECT_THAT(o.err, HasSubstr("mge doctor --end-quarantine " + std::string(name))) << name;
  }
}

TEST(Doctor, IsSuggestedWhenAStartExceedsItsLimitAndOtherDevicesWork) {
  HostileFolder folder;
  folder.AddHostile("start_loop");
  const std::string model = MGE_SOURCE_DIR "/packaging/digits/digits.onnx", limit = "MGE_PLUGIN_START_TIMEOUT_SECONDS=1";
  const auto names_it = AllOf(HasSubstr("start_loop"), HasSubstr("has not started within 1 s"), HasSubstr("`mge doctor`"),
                              HasSubstr("MGE_PLUGIN_SKIP=start_loop "));
  Outcome any = folder.Mge("run " + model, limit);
  EXPECT_EQ(any.code, 0) << any.err;
  EXPECT_THAT(any.err, names_it);
  Outcome own = folder.Mge("run --device hostile0 " + model, limit);
  EXPECT_EQ(own.code, 5) << own.err;
  EXPECT_THAT(own.err, AllOf(names_it, HasSubstr(folder.At("mge_start_loop.so") + " is accepted: it has not started")));
  Outcome without = folder.Mge("devices", "MGE_PLUGIN_SKIP=start_loop");
  EXPECT_EQ(without.code, 0) << without.err;
  EXPECT_EQ(without.err, "");
}

// ---------------------------------------------------------------- backends that start when they are needed

TEST(LazyStart, ListingDevicesDoesNotWaitForABackendThatHangs) {
  HostileFolder folder;
  folder.AddHostile("start_loop");
  folder.AddHostile("quiet");
  for (const char* command : {"devices", "env"}) {
    Outcome o = folder.Mge(std::string(command) + " --json", "MGE_PLUGIN_START_TIMEOUT_SECONDS=0.5");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.json()["not_started"], Json::array({"start_loop"}));
    EXPECT_THAT(
        o.err, AllOf(HasSubstr("'start_loop' (" + folder.At("mge_start_loop.so")), HasSubstr("has not started within 0.5 s"),
                     HasSubstr("`mge doctor`"), HasSubstr("MGE_PLUGIN_SKIP=start_loop ")));
  }
  EXPECT_THAT(folder.Mge("devices", "MGE_PLUGIN_START_TIMEOUT_SECONDS=0.5").out,
              AllOf(HasSubstr("hostile0"), HasSubstr("cpu0")));
}

TEST(LazyStart, ACommandForOneDeviceNeverOpensABrokenBackend) {
  HostileFolder folder;
  for (const char* name : {"load_abort", "start_abort", "start_loop"}) folder.AddHostile(name);
  Outcome run = folder.Mge("run --device cpu0 " MGE_SOURCE_DIR "/packaging/digits/digits.onnx");
  EXPECT_EQ(run.code, 0) << run.err;
  Outcome listed = folder.Mge("plugins --json");
  EXPECT_EQ(listed.code, 0) << listed.err;
  for (const Json& row : listed.json()["files"]) EXPECT_EQ(row["verdict"], "accepted") << row;
}

TEST(LazyStart, SettingsOfABackendAreCheckedWhenItOpens) {
  HostileFolder folder;
  const std::string model = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";
  for (const char* bad : {"--set virtual.devices=many", "--set virtual.devicez=1"}) {
    Outcome other = folder.Mge("run --device cpu0 " + model + " " + bad, "MGE_ENV_STRICT=1");
    EXPECT_EQ(other.code, 0) << other.err;
    Outcome own = folder.Mge("run --device virtual0 " + model + " " + bad);
    EXPECT_EQ(own.code, 5) << own.err;
    EXPECT_THAT(own.err, HasSubstr("virtual.device")) << bad;
  }
  EXPECT_THAT(folder.Mge("devices", "MGE_VIRTUAL_DEVISES=1").err, HasSubstr("Did you mean \"MGE_VIRTUAL_DEVICES\"?"));
}

TEST(Doctor, ASlowStartPassesWithALongerTimeLimitWhichTheFixNames) {
  HostileFolder folder;
  folder.AddHostile("start_slow");
  Outcome hasty = folder.Mge(kQuick);
  EXPECT_EQ(hasty.code, 5);
  EXPECT_THAT(RowOf(hasty.json()["plugins"], "start_slow")["fix"].get<std::string>(),
              HasSubstr("mge doctor --end-quarantine start_slow --timeout 10, if it is only slow"));
  Outcome patient = folder.Mge("doctor --json --end-quarantine start_slow");
  EXPECT_EQ(patient.code, 0) << patient.out;
  EXPECT_EQ(patient.json()["timeout_s"], 5.0);
  EXPECT_EQ(RowOf(patient.json()["plugins"], "start_slow")["state"], "passed");
}

TEST(Doctor, AStartThatFailsOrThrowsIsRefusedWithoutQuarantine) {
  HostileFolder folder;
  for (const char* name : {"query_throw", "query_error", "start_throw", "start_error"}) folder.AddHostile(name);
  Outcome o = folder.Mge(kQuick);
  EXPECT_EQ(o.code, 5);
  const Json report = o.json();
  int verified = 0;
  for (const Json& row : report["plugins"]) {
    if (!row["path"].get<std::string>().starts_with(folder.path())) continue;  // a backend of the built-in directory
    ++verified;
    EXPECT_EQ(row["state"], "found") << row;
    EXPECT_EQ(row["verdict"], "refused") << row;
    EXPECT_EQ(row["quarantined"], false) << row;
    EXPECT_NE(row["reason"], "") << row;
  }
  EXPECT_EQ(verified, 4);
  EXPECT_THAT(RowOf(o.json()["plugins"], "start_throw")["reason"].get<std::string>(),
              HasSubstr("thrown by the hostile backend"));
}

TEST(Doctor, ABackendThatCouldNotBeTriedIsNotReportedAsFaulty) {
  int untried = 0;
  for (int files = 6; files <= 16; ++files) {
    HostileFolder folder;
    folder.AddHostile("quiet");
    Outcome o = folder.Mge(kQuick, fmt::format("prlimit --nofile={}", files));
    EXPECT_FALSE(std::filesystem::exists(folder.state() + "/mge/quarantine")) << files << ": " << o.out;
    const Json report = o.json();
    if (!report.is_object() || !report.contains("plugins")) continue;  // the limit was too low for the command itself
    for (const Json& row : report["plugins"]) {
      EXPECT_EQ(row["quarantined"], false) << row;
      if (row["code"] != "not_probed") continue;
      ++untried;
      EXPECT_EQ(o.code, 5);
      EXPECT_EQ(row["verdict"], "accepted");
      EXPECT_THAT(row["reason"].get<std::string>(),
                  AllOf(HasSubstr("could not be tested"), HasSubstr("Too many open files")));
      EXPECT_THAT(row["fix"].get<std::string>(), HasSubstr("ulimit -n"));
    }
  }
  EXPECT_GT(untried, 0);
}

TEST(Doctor, WaitsForItsChildrenEvenIfItIgnoresTheSignalOfTheirEnd) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  Outcome o = folder.Mge("doctor", "env --ignore-signal=CHLD");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
}

TEST(Doctor, ABackendIsTriedAgainAfterItsRelease) {
  HostileFolder folder;
  folder.AddHostile("start_abort");
  ASSERT_EQ(folder.Mge(kQuick).code, 5);
  Outcome again = folder.Mge(kQuick);  // the backend is not tried; its row comes from the loader
  EXPECT_THAT(RowOf(again.json()["plugins"], "start_abort")["reason"].get<std::string>(), HasSubstr("it is in quarantine"));
  Outcome released = folder.Mge(std::string(kQuick) + " --end-quarantine start_abort");
  EXPECT_THAT(RowOf(released.json()["plugins"], "start_abort")["reason"].get<std::string>(), HasSubstr("it was killed"));
  Outcome none = folder.Mge("doctor --end-quarantine nobody --json");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("no backend 'nobody' is in quarantine"));
}

TEST(Doctor, ANewBuildIsTriedAgain) {
  HostileFolder folder;
  folder.AddHostile("start_abort", 1);
  ASSERT_EQ(folder.Mge(kQuick).code, 5);
  folder.AddHostile("start_abort", 2);
  Outcome verified = folder.Mge("plugins verify " + folder.At("mge_start_abort.so") + " --json");
  EXPECT_EQ(verified.json()["verdict"], "accepted") << verified.out;
}

TEST(Doctor, ADamagedQuarantineEntryAppliesUntilReleased) {
  HostileFolder folder;
  folder.AddHostile("start_abort");
  ASSERT_EQ(folder.Mge(kQuick).code, 5);
  for (const auto& file : std::filesystem::directory_iterator(folder.state() + "/mge/quarantine")) {
    std::ofstream(file.path()) << "\1\2";
  }
  Outcome o = folder.Mge("plugins --json");
  EXPECT_EQ(o.code, 0);
  EXPECT_EQ(RowOf(o.json()["files"], "start_abort")["code"], "quarantined");
  Outcome released = folder.Mge(std::string(kQuick) + " --end-quarantine start_abort");
  EXPECT_THAT(RowOf(released.json()["plugins"], "start_abort")["reason"].get<std::string>(), HasSubstr("it was killed"));
}

TEST(Doctor, WithoutAStateDirectoryItReportsThatNothingWasRecorded) {
  HostileFolder folder;
  folder.AddHostile("start_abort");
  Outcome o = folder.Mge(kQuick, "XDG_STATE_HOME=/proc/nowhere");
  EXPECT_EQ(o.code, 5);
  Json row = RowOf(o.json()["plugins"], "start_abort");
  EXPECT_THAT(row["reason"].get<std::string>(), HasSubstr("could not be put into quarantine"));
  EXPECT_EQ(row["code"], "crashed");
  EXPECT_EQ(row["quarantined"], false);
}

struct LaterFault {
  const char* name;
  const char* reason;
};
class Later : public testing::TestWithParam<LaterFault> {};

// A fault after the start is reported without quarantine: it affects only users of that device.
TEST_P(Later, FaultsAreReportedWithTheStageAndWithoutQuarantine) {
  HostileFolder folder;
  folder.AddHostile(GetParam().name);
  Outcome o = folder.Mge(kQuick);
  EXPECT_EQ(o.code, 5) << o.err;
  Json row = RowOf(o.json()["plugins"], GetParam().name);
  EXPECT_EQ(row["state"], "loadable") << row;
  EXPECT_EQ(row["quarantined"], false);
  EXPECT_THAT(row.dump(), HasSubstr(GetParam().reason));
  EXPECT_THAT(folder.Mge("doctor --timeout 2 --set virtual.devices=1").out,
              AllOf(Not(HasSubstr("(ok)")), Not(HasSubstr("it has no device"))));
}

INSTANTIATE_TEST_SUITE_P(Doctor, Later,
                         testing::Values(LaterFault{"open_abort", "while opening its devices"},
                                         LaterFault{"open_error", "cannot be opened: backend 'open_error': "},
                                         LaterFault{"enqueue_segfault", "while running an operator on hostile0"},
                                         LaterFault{"kernel_segfault", "signal 11"},
                                         LaterFault{"kernel_loop", "while running an operator on hostile0"},
                                         LaterFault{"kernel_error", "the hostile backend gives up"},
                                         LaterFault{"kernel_wrong", "Relu gives 7 at element 0 instead of 0"},
                                         LaterFault{"kernel_overrun", "wrote outside of its memory"},
                                         LaterFault{"stop_abort", "while stopping"},
                                         LaterFault{"unload_abort", "while leaving the process"}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Doctor, GoodBackendsPassWithTheOperatorThatRan) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  Outcome o = folder.Mge("doctor --json");
  ASSERT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(o.json()["schema"], "mge.doctor/1");
  Json row = RowOf(o.json()["plugins"], "quiet");
  EXPECT_EQ(row["state"], "passed");
  ASSERT_EQ(row["devices"].size(), 1u);
  EXPECT_EQ(row["devices"][0]["name"], "hostile0");
  EXPECT_EQ(row["devices"][0]["operator"], "Relu");
  EXPECT_EQ(RowOf(o.json()["plugins"], "cpu")["state"], "passed");
  Outcome text = folder.Mge("doctor");
  EXPECT_THAT(text.out, AllOf(HasSubstr("passed    " + folder.At("mge_quiet.so")), HasSubstr("hostile0: Relu runs")));
}

TEST(Doctor, TriesOperatorsUntilOneRunsOnTheDeviceItself) {
  HostileFolder folder;
  folder.AddHostile("kernel_neg");
  Outcome o = folder.Mge("doctor --json");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  Json row = RowOf(o.json()["plugins"], "kernel_neg");
  EXPECT_EQ(row["state"], "passed") << row;
  EXPECT_EQ(row["devices"][0]["operator"], "Neg") << row;
}

TEST(Doctor, ADeviceThatRanNoOperatorNeitherPassedNorFailed) {
  HostileFolder folder;
  folder.AddHostile("kernel_erf");  // its only operator, Erf, is not tried
  Outcome o = folder.Mge("doctor --json");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(o.json()["troubled"], 0);
  Json row = RowOf(o.json()["plugins"], "kernel_erf");
  EXPECT_EQ(row["state"], "loadable") << row;
  Json device = row["devices"][0];
  EXPECT_EQ(device["state"], "loadable") << row;
  EXPECT_EQ(device["operator"], "") << row;
  EXPECT_THAT(device["reason"].get<std::string>(),
              AllOf(HasSubstr("no kernel for any of Relu, Add, "), HasSubstr("nothing was run")));
  EXPECT_THAT(device["fix"].get<std::string>(), HasSubstr("mge sdk test '" + folder.At("mge_kernel_erf.so") + "'"));
}

TEST(Doctor, ABadSettingOfOneBackendDoesNotFailTheOthers) {
  if (!std::filesystem::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  HostileFolder folder;
  folder.AddHostile("quiet");
  folder.Write("virtual.toml", "[virtual]\ndevices = 2\n");
  const std::pair<std::string, std::string> ways[] = {{"--set virtual.devices=2", ""},
                                                      {"--config " + folder.At("virtual.toml"), ""},
                                                      {"", "MGE_ENV_STRICT=1 MGE_VIRTUAL_DEVICES=2"}};
  for (const auto& [option, variables] : ways) {
    Outcome o = folder.Mge("doctor --json " + option, variables);
    EXPECT_EQ(o.code, 0) << option << variables << o.out << o.err;
    const Json report = o.json();
    for (const Json& row : report["plugins"]) EXPECT_EQ(row["troubled"], false) << option << variables << row;
    EXPECT_EQ(RowOf(report["plugins"], "quiet")["state"], "passed") << option << variables;
    EXPECT_EQ(RowOf(report["plugins"], "virtual")["devices"].size(), 2u) << option << variables;
  }
}

TEST(Doctor, TriesABackendInADirectoryWithSpecialCharacters) {
  HostileFolder folder;
  std::filesystem::create_directory(folder.At("a:b,c d"));
  folder.Mode("a:b,c d", 0755);
  folder.Write("a:b,c d/mge_quiet.so", HostileBytes("quiet"));
  folder.Write("mge.toml", fmt::format("[plugin]\npath = [\"{}\"]\n", folder.At("a:b,c d")));
  Outcome o = folder.Mge("doctor --json --config " + folder.At("mge.toml"), "MGE_PLUGIN_PATH=");
  EXPECT_EQ(o.code, 0) << o.out << o.err;
  EXPECT_EQ(RowOf(o.json()["plugins"], "quiet")["state"], "passed");
}

TEST(Doctor, TriesEveryDeviceOfABackend) {
  HostileFolder folder;
  if (!std::filesystem::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  Json row = RowOf(folder.Mge("doctor --json --set virtual.devices=2").json()["plugins"], "virtual");
  EXPECT_EQ(row["state"], "passed");
  ASSERT_EQ(row["devices"].size(), 2u);
  EXPECT_EQ(row["devices"][1]["operator"], "Relu");
  row = RowOf(folder.Mge("doctor --json").json()["plugins"], "virtual");
  EXPECT_EQ(row["state"], "loadable");
  EXPECT_EQ(row["devices"].size(), 0u);
  EXPECT_THAT(folder.Mge("doctor").out, HasSubstr("  it has no device\n"));
}

}  // namespace
}  // namespace mge
