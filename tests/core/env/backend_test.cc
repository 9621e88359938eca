// SPDX-License-Identifier: Apache-2.0
#include "tests/core/env/env_test_util.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<BackendSetting> VirtualRows() {
  return {
      {.key = "virtual.devices",
       .type = SettingType::kInt,
       .default_value = "2",
       .min = "0",
       .max = "16",
       .unit = "devices",
       .doc = "Devices that exist."},
      {.key = "virtual.memory_bytes",
       .type = SettingType::kBytes,
       .default_value = "256MiB",
       .min = "1MiB",
       .doc = "Memory of each device."},
      {.key = "virtual.link",
       .type = SettingType::kChoice,
       .default_value = "ring",
       .choices = {"ring", "full"},
       .lifecycle = Lifecycle::kDynamic,
       .doc = "Links between devices."},
      {.key = "virtual.verbose", .type = SettingType::kBool, .doc = "Says more."},
  };
}

TEST(BackendSettings, AreReadFromEverySource) {
  ScratchDir dir;
  auto registry = MustCreate({.command_line = {{"virtual.link", "full"}},
                              .config_files = {dir.Write("a.toml", "[virtual]\nmemory_bytes = \"1GiB\"\n")},
                              .environment = {{{"MGE_VIRTUAL_DEVICES", "4"}}}});
  auto values = registry->RegisterBackend("virtual", VirtualRows());
  ASSERT_TRUE(values.ok()) << FormatError(values.status());
  EXPECT_THAT(*values, ElementsAre("4", "1073741824", "full", "0"));
  ASSERT_TRUE(registry->CheckUnknown().ok());
  EXPECT_EQ(InfoOf(*registry, "virtual.devices").origin, "environment MGE_VIRTUAL_DEVICES");
  EXPECT_EQ(InfoOf(*registry, "virtual.memory_bytes").origin, dir.path() + "/a.toml:2");
  EXPECT_EQ(InfoOf(*registry, "virtual.link").origin, "command line --set virtual.link=full");
  EXPECT_EQ(InfoOf(*registry, "virtual.verbose").origin, "default");
  EXPECT_EQ(InfoOf(*registry, "virtual.devices").owner, "virtual");
  EXPECT_EQ(InfoOf(*registry, "virtual.memory_bytes").allowed, "1MiB or more");

  const std::vector<SettingSlot>* slots = registry->snapshot()->Backend("virtual");
  ASSERT_NE(slots, nullptr);
  ASSERT_EQ(slots->size(), 4u);
  EXPECT_EQ((*slots)[0].value, SettingValue(int64_t{4}));
  EXPECT_EQ((*slots)[2].value, SettingValue(int64_t{1}));  // index of the second choice
  EXPECT_EQ(registry->snapshot()->Backend("cuda"), nullptr);
}

std::vector<BackendSetting> CpuRows(SettingType type = SettingType::kBool) {
  const char* on = type == SettingType::kBool ? "true" : "1";
  return {
      {.key = "cpu.onednn", .type = type, .default_value = on, .lifecycle = Lifecycle::kDynamic, .doc = "Offers oneDNN."}};
}

TEST(BackendSettings, TakeTheValueOfTheCoreSettingThatNamesThem) {
  struct Case {
    std::vector<std::pair<std::string, std::string>> environment;
    std::vector<Assignment> command_line;
    const char* value;
    const char* origin;
  };
  for (const Case& c : {
           Case{{}, {}, "1", "default"},
           Case{{{"MXNET_MKLDNN_ENABLED", "0"}}, {}, "0", "environment MXNET_MKLDNN_ENABLED"},
           Case{{{"MXNET_MKLDNN_ENABLED", "0"}, {"MGE_CPU_ONEDNN", "1"}}, {}, "1", "environment MGE_CPU_ONEDNN"},
           Case{{{"MGE_CPU_ONEDNN", "1"}}, {{"compute.mkldnn", "0"}}, "0", "command line --set compute.mkldnn=0"},
           Case{{{"MXNET_MKLDNN_ENABLED", "0"}}, {{"cpu.onednn", "1"}}, "1", "command line --set cpu.onednn=1"},
       }) {
    auto registry = MustCreate({.command_line = c.command_line, .environment = {c.environment}});
    auto values = registry->RegisterBackend("cpu", CpuRows());
    ASSERT_TRUE(values.ok()) << FormatError(values.status());
    EXPECT_THAT(*values, ElementsAre(c.value)) << c.origin;
    EXPECT_EQ(InfoOf(*registry, "cpu.onednn").origin, c.origin);
  }
}

TEST(BackendSettings, MustHaveTheTypeOfTheCoreSettingThatNamesThem) {
  auto registry = MustCreate({});
  auto values = registry->RegisterBackend("cpu", CpuRows(SettingType::kInt));
  ASSERT_FALSE(values.ok());
  EXPECT_THAT(FormatError(values.status()), HasSubstr("compute.mkldnn sets it and has another type"));
}

TEST(BackendSettings, ObeyTheRulesOfTheCore) {
  auto bad = MustCreate(FromEnvironment({{"MGE_VIRTUAL_DEVICES", "17"}}));
  EXPECT_THAT(FormatError(bad->RegisterBackend("virtual", VirtualRows()).status()),
              AllOf(HasSubstr("E0202"), HasSubstr("MGE_VIRTUAL_DEVICES = \"17\" is outside of 0..16")));

  LogLines log;
  auto typo = MustCreate(FromEnvironment({{"MGE_VIRTUAL_DEVISES", "1"}}), log.logger());
  ASSERT_TRUE(typo->RegisterBackend("virtual", VirtualRows()).ok());
  ASSERT_TRUE(typo->CheckUnknown().ok());
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("Did you mean \"MGE_VIRTUAL_DEVICES\"?")));

  auto late = MustCreate({});
  ASSERT_TRUE(late->RegisterBackend("virtual", VirtualRows()).ok());
  late->MarkRead();
  EXPECT_EQ(ErrorId(late->Set("virtual.devices", "1")), errors::kSettingTooLate.id);
  EXPECT_TRUE(late->Set("virtual.link", "full").ok());
  EXPECT_THAT(late->snapshot()->DynamicKey(), HasSubstr("virtual.link"));
}

TEST(BackendSettings, OfABackendLoadedLateAreReadWhenItRegisters) {
  auto registry = MustCreate({});
  registry->MarkRead();
  ASSERT_TRUE(registry->RegisterBackend("virtual", VirtualRows()).ok());
  EXPECT_EQ(ErrorId(registry->Set("virtual.devices", "1")), errors::kSettingTooLate.id);
}

TEST(BackendSettings, OfABackendThatIsNotOpenWaitAndAreCheckedWhenItOpens) {
  LogLines log;
  auto registry = MustCreate({.command_line = {{"virtual.devices", "2"}},
                              .environment = {{{"MGE_VIRTUAL_MEMORYY", "1G"}, {"MGE_VIRTUAL_MEMORY_BYTES", "2G"}}}},
                             log.logger());
  const std::vector<std::string> waiting = {"virtual", "other"};
  ASSERT_TRUE(registry->CheckUnknown({}, waiting).ok());
  registry->MarkRead();
  EXPECT_THAT(log.lines, testing::IsEmpty());
  EXPECT_TRUE(registry->Set("virtual.devices", "1").ok());
  EXPECT_TRUE(registry->Set("virtual.devices", "3").ok());
  std::vector<Assignment> session = {{"virtual.devices", "4"}};
  EXPECT_EQ(ErrorId(registry->SnapshotWith(session).status()), errors::kSettingTooLate.id);
  auto values = registry->RegisterBackend("virtual", VirtualRows());
  ASSERT_TRUE(values.ok()) << FormatError(values.status());
  EXPECT_EQ((*values)[0], "3");
  EXPECT_TRUE(registry->CheckNamesOf("virtual").ok());
  EXPECT_THAT(log.lines, ElementsAre(HasSubstr("Did you mean \"MGE_VIRTUAL_MEMORY_BYTES\"?")));
  EXPECT_EQ(ErrorId(registry->Set("virtual.devices", "1")), errors::kSettingTooLate.id);

  ASSERT_TRUE(registry->Set("other.level", "1").ok());
  EXPECT_TRUE(registry->CheckNamesOf("virtual").ok());
  ASSERT_TRUE(registry->RegisterBackend("other", {}).ok());
  for (int i = 0; i < 2; ++i) EXPECT_EQ(ErrorId(registry->CheckNamesOf("other")), errors::kUnknownSetting.id);
}

TEST(BackendSettings, OfTheCoreAreReadByKey) {
  auto registry = MustCreate({.call = {{"MGE_THREADS", "3"}, {"cache.bytes", "2KiB"}}});
  EXPECT_EQ(registry->CoreText("threads"), "3");
  EXPECT_EQ(registry->CoreText("cache.bytes"), "2048");
  EXPECT_EQ(registry->CoreText("MGE_THREADS"), std::nullopt);
  ASSERT_TRUE(registry->RegisterBackend("virtual", VirtualRows()).ok());
  EXPECT_EQ(registry->CoreText("virtual.devices"), std::nullopt);
}

TEST(BackendSettings, OfABackendThatIsNotLoadedAreNotReportedAsTypos) {
  LogLines log;
  auto registry = MustCreate(
      {.call = {{"virtual.devices", "2"}}, .environment = {{{"MGE_VIRTUAL_MEMORY_BYTES", "1G"}, {"MGE_ENV_STRICT", "1"}}}},
      log.logger());
  std::vector<std::string> absent = {"virtual"};
  EXPECT_TRUE(registry->CheckUnknown(absent).ok());
  EXPECT_THAT(log.lines, ElementsAre(AllOf(HasSubstr("MGE_VIRTUAL_MEMORY_BYTES"), HasSubstr("virtual is not loaded")),
                                     AllOf(HasSubstr("virtual.devices"), HasSubstr("virtual is not loaded"))));
  auto unknown = MustCreate(FromEnvironment({{"MGE_VIRTUAL_MEMORY_BYTES", "1G"}, {"MGE_ENV_STRICT", "1"}}));
  EXPECT_EQ(ErrorId(unknown->CheckUnknown()), errors::kUnknownSetting.id);
}

TEST(BackendSettings, OfASkippedBackendAreNotReported) {
  LogLines log;
  auto registry = MustCreate({.call = {{"virtual.devices", "2"}, {"plugin.skip", "cuda,virtual"}},
                              .environment = {{{"MGE_VIRTUAL_MEMORY_BYTES", "1G"}, {"MGE_ENV_STRICT", "1"}}}},
                             log.logger());
  std::vector<std::string> absent = {"virtual"};
  EXPECT_TRUE(registry->CheckUnknown(absent).ok());
  EXPECT_THAT(log.lines, testing::IsEmpty());
}

TEST(BackendSettings, AreRefusedIfTheirDeclarationIsWrong) {
  auto error = [](BackendSetting row) {
    auto registry = MustCreate({});
    auto status =
        registry->RegisterBackend("virtual", {{.key = "virtual.good", .doc = "Good row."}, std::move(row)}).status();
    EXPECT_EQ(registry->snapshot()->Backend("virtual"), nullptr);
    EXPECT_EQ(registry->List().size(), kSettings.size());
    EXPECT_EQ(ErrorId(status), errors::kPluginRefused.id);
    return PartsOf(status).what;
  };
  EXPECT_THAT(error({.key = "log.level", .doc = "Not its own."}), HasSubstr("begin with the backend's name"));
  EXPECT_THAT(error({.key = "virtual.good", .doc = "Twice there."}), HasSubstr("is also that of virtual.good"));
  EXPECT_THAT(error({.key = "virtual.Bad", .doc = "Capital letter."}), HasSubstr("small letters"));
  EXPECT_THAT(error({.key = "virtual.x", .doc = "no sentence"}), HasSubstr("not a sentence"));
  EXPECT_THAT(error({.key = "virtual.x", .type = SettingType::kInt, .default_value = "x", .doc = "Bad default."}),
              HasSubstr("its default \"x\" is not a whole number"));
  EXPECT_THAT(
      error({.key = "virtual.x", .type = SettingType::kInt, .default_value = "9", .max = "8", .doc = "Bad default."}),
      HasSubstr("is outside of 8 or less"));
  EXPECT_THAT(error({.key = "virtual.x", .type = SettingType::kInt, .min = "many", .doc = "Bad limit."}),
              HasSubstr("its limit \"many\""));
  EXPECT_THAT(error({.key = "virtual.x", .min = "1", .doc = "Text with a limit."}), HasSubstr("only numbers"));
  EXPECT_THAT(error({.key = "virtual.x", .type = SettingType::kChoice, .doc = "No choices."}), HasSubstr("choices"));
  EXPECT_THAT(error({.key = "virtual." + std::string(100, 'x'), .doc = "Long key."}), HasSubstr("longer"));

  auto registry = MustCreate({});
  EXPECT_EQ(ErrorId(registry->RegisterBackend("core", {}).status()), errors::kPluginRefused.id);
  auto alias = MustCreate({});
  auto status = alias->RegisterBackend("log", {{.key = "log.level", .doc = "Takes the core's name."}}).status();
  EXPECT_THAT(PartsOf(status).what, HasSubstr("already used by log.level of core"));
}

// Two backends with one name can declare settings if the first one did not start or refused the user's value.
TEST(BackendSettings, BelongToTheLastBackendOfANameThatDeclaredThem) {
  ScratchDir dir;
  auto registry = MustCreate({.call = {{"x.link", "a"}},
                              .command_line = {{"x.level", "7"}},
                              .config_files = {dir.Write("a.toml", "[x]\nname = \"n\"\n")},
                              .environment = {{{"MGE_X_DEPTH", "9"}}}});
  ASSERT_TRUE(
      registry->RegisterBackend("y", {{.key = "y.own", .default_value = "kept", .doc = "Of another backend."}}).ok());
  const std::vector<BackendSetting> rows = {
      {.key = "x.link", .doc = "Some text."},
      {.key = "x.level", .type = SettingType::kInt, .default_value = "1", .doc = "Some text."},
      {.key = "x.name", .doc = "Some text."},
      {.key = "x.depth", .type = SettingType::kInt, .default_value = "1", .doc = "Some text."}};
  std::vector<BackendSetting> narrow = rows;
  narrow[3].min = "0", narrow[3].max = "5";
  EXPECT_EQ(ErrorId(registry->RegisterBackend("x", narrow).status()), errors::kBadSetting.id);
  for (int i = 0; i < 2; ++i) {
    auto values = registry->RegisterBackend("x", rows);
    ASSERT_TRUE(values.ok()) << FormatError(values.status());
    EXPECT_THAT(*values, ElementsAre("a", "7", "n", "9"));
  }
  EXPECT_EQ(InfoOf(*registry, "y.own").value, "kept");
  EXPECT_EQ(registry->snapshot()->Backend("x")->size(), 4u);
  EXPECT_TRUE(registry->CheckUnknown().ok());
  ASSERT_TRUE(registry->RegisterBackend("x", {}).ok());
  EXPECT_FALSE(registry->CheckUnknown().ok());
}

TEST(BackendSettings, KeepTheirTextsWhenTheCallerDropsThem) {
  auto registry = MustCreate({});
  {
    std::vector<BackendSetting> rows = VirtualRows();
    ASSERT_TRUE(registry->RegisterBackend("virtual", rows).ok());
    for (BackendSetting& row : rows) row = {};
  }
  EXPECT_EQ(InfoOf(*registry, "virtual.link").allowed, "ring, full");
  EXPECT_EQ(InfoOf(*registry, "virtual.devices").doc, "Devices that exist.");
}

TEST(BackendSettings, MakeTheSameKeyInAnyOrderOfLoading) {
  auto make = [](bool first) {
    auto registry = MustCreate({.call = {{"a.x", "1"}, {"b.x", "1"}}});
    for (std::string name : first ? std::vector{"a", "b"} : std::vector{"b", "a"}) {
      EXPECT_TRUE(
          registry->RegisterBackend(name, {{.key = name + ".x", .lifecycle = Lifecycle::kDynamic, .doc = "Some text."}})
              .ok());
    }
    return registry->snapshot()->DynamicKey();
  };
  EXPECT_EQ(make(true), make(false));
}

}  // namespace
}  // namespace mge
