// SPDX-License-Identifier: Apache-2.0
// The mge command as a user runs it: its output on stdout and stderr, exit codes, and errors in four parts.
#include "tests/support/command.h"

#include <sys/stat.h>

#include <cstdio>

#include "gmock/gmock.h"
#include "nlohmann/json.hpp"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;
namespace ob = onnx_builder;

// ---- successful commands

TEST_F(Command, RunsAModelAndWritesItsOutputs) {
  Outcome o = Mge("run " + Good() + " --output-dir out");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("float32[2,3]"));
  EXPECT_TRUE(fs::exists(Path("out/y.npy")));
  Outcome again = Mge("run good.onnx --input x=out/y.npy --json");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(json::parse(again.out)["outputs"][0]["type"], "float32[2,3]");
}

TEST_F(Command, PutsTheSchemaFirstAndDataAloneOnStdout) {
  Good();
  const std::pair<const char*, const char*> rows[] = {{"devices", "mge.devices/1"},
                                                      {"plugins", "mge.plugins/1"},
                                                      {"env", "mge.env/1"},
                                                      {"version", "mge.version/1"},
                                                      {"run good.onnx", "mge.run/1"},
                                                      {"bench good.onnx --runs 3", "mge.bench/1"},
                                                      {"compare good.onnx", "mge.compare/1"},
                                                      {"--version", "mge.version/1"},
                                                      {"demo", "mge.demo/1"},
                                                      {"memory good.onnx", "mge.memory/1"},
                                                      {"inspect good.onnx", "mge.inspect/1"},
                                                      {"plan good.onnx --why", "mge.plan/1"},
                                                      {"profile good.onnx --runs 3", "mge.profile/1"},
                                                      {"zoo", "mge.zoo/1"}};
  for (const auto& [args, schema] : rows) {
    Outcome o = Mge(std::string(args) + " --json");
    EXPECT_EQ(o.code, 0) << args << o.err;
    EXPECT_EQ(o.out.find("\"schema\": \"" + std::string(schema) + "\""), o.out.find("\"schema\"")) << args;
    EXPECT_TRUE(json::accept(o.out)) << args;
    EXPECT_EQ(o.out.find_first_of('"'), o.out.find("\"schema\"")) << args;
  }
}

TEST_F(Command, ReadsDigitsOnTheCpu) {
  Outcome o = Mge("demo --json");
  ASSERT_EQ(o.code, 0) << o.err;
  json report = json::parse(o.out);
  EXPECT_EQ(report["device"], "cpu0");
  EXPECT_GE(report["right"].get<int>(), 46);
  EXPECT_EQ(report["planned_peak_bytes"], report["measured_peak_bytes"]);
  EXPECT_EQ(report["reference_steps"], 0);
}

TEST_F(Command, WritesTheSmallArchitecturesOfTheZoo) {
  for (const char* name : {"one-op", "tiny-ops", "tiny-mixed", "eltwise-chain"}) {
    Outcome o = Mge(std::string("zoo ") + name + " -o m.onnx");
    EXPECT_EQ(o.code, 0) << o.err;
    Outcome bench = Mge("bench m.onnx --runs 3 --json");
    ASSERT_EQ(bench.code, 0) << bench.err;
    json report = json::parse(bench.out);
    EXPECT_EQ(report["reference_steps"], 0) << name;
    EXPECT_EQ(report["planned_peak_bytes"], report["measured_peak_bytes"]) << name;
  }
}

TEST_F(Command, WritesZooModelsWithTheRequestedBatch) {
  ASSERT_EQ(Mge("zoo bert-tiny --batch 2 -o two.onnx").code, 0);
  json report = json::parse(Mge("inspect two.onnx --json").out);
  EXPECT_EQ(report["inputs"][0]["shape"], json::parse("[2, 128]")) << report["inputs"];
  Outcome run = Mge("run two.onnx --json");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(json::parse(run.out)["outputs"][0]["type"], "float32[2,128,128]");
  Outcome none = Mge("zoo one-op --batch 2");
  EXPECT_EQ(none.code, 2);
  EXPECT_THAT(none.err, HasSubstr("'one-op' has no batch dimension"));
}

TEST_F(Command, WritesZooModelsWithTheRequestedType) {
  for (const std::string type : {"float16", "bfloat16"}) {
    for (const char* name : {"bert-tiny", "mobilenetv2"}) {
      ASSERT_EQ(Mge(std::string("zoo ") + name + " --type " + type + " -o half.onnx").code, 0);
      const Outcome bench = Mge("bench half.onnx --runs 1 --warm 1 --json");
      ASSERT_EQ(bench.code, 0) << bench.err;
      EXPECT_EQ(json::parse(bench.out)["reference_steps"], 0) << name << " in " << type;
      const json outputs = json::parse(Mge("inspect half.onnx --json").out)["outputs"];
      EXPECT_EQ(outputs[0]["dtype"], type) << outputs;
    }
  }
  EXPECT_EQ(Mge("zoo one-op --type int8").code, 2);
}

TEST_F(Command, ExplainsAPlan) {
  Model("m.onnx", {ob::NodeProto("Exp", {"x"}, {"a"}), ob::NodeProto("Relu", {"a"}, {"y"})});
  Outcome o = Mge("plan m.onnx --why");
  EXPECT_EQ(o.code, 0);
  EXPECT_THAT(o.out, HasSubstr("device cpu0"));
  EXPECT_THAT(o.out, HasSubstr("us"));
}

TEST_F(Command, EscapesControlCharactersInNamesOfAModel) {
  Model("m.onnx", {ob::NodeProto("Relu", {"x"}, {"y"}, {.name = "evil\033[31m\nname"})});
  Outcome o = Mge("plan m.onnx --why");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("nodes:   evil\\x1b[31m\\x0aname"));
}

TEST_F(Command, ChecksAFolderOfTests) {
  fs::create_directories(Path("test_relu/test_data_set_0"));
  fs::rename(Good(), Path("test_relu/model.onnx"));
  Write("test_relu/test_data_set_0/input_0.pb", ob::FloatTensor("x", {2, 3}, {-1, 2, -3, 4, -5, 6}));
  Write("test_relu/test_data_set_0/output_0.pb", ob::FloatTensor("y", {2, 3}, {0, 2, 0, 4, 0, 6}));
  Outcome o = Mge("check . --json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["passed"], 1);
  Write("test_relu/test_data_set_0/output_0.pb", ob::FloatTensor("y", {2, 3}, {0, 2, 0, 4, 0, 7}));
  o = Mge("check .");
  EXPECT_EQ(o.code, 8);
  EXPECT_THAT(o.out, HasSubstr("element [1,2]: got 6, expected 7"));
  EXPECT_EQ(Mge("run test_relu/model.onnx --check test_relu/test_data_set_0").code, 8);
}

TEST_F(Command, ComparesADeviceWithAnother) {
  Good();
  Outcome o = Mge("run good.onnx --device cpu0 --against host --json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["device"], "cpu0");
  EXPECT_EQ(json::parse(o.out)["outputs"][0]["difference"], "");
  EXPECT_EQ(Mge("run good.onnx --against gpu7").code, 5);
  o = Mge("run good.onnx --against host --set select.strategy=reproducible", "MGE_SELECT_RECORD=" + Path("chosen.toml"));
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(Mge("run good.onnx --against host --check data").code, 2);
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  const std::string on_device = "MGE_VIRTUAL_DEVICES=1 MGE_PLAN_HOST_COMPUTE=0 ";  // the model has only 6 elements
  o = Mge("run good.onnx --device virtual0 --set virtual.wrong_kernel=1 --against host", on_device);
  EXPECT_EQ(o.code, 8) << o.err;
  EXPECT_THAT(o.out, HasSubstr("DIFFERS"));
  o = Mge("run good.onnx --against virtual0 --timeout 0.2", on_device + "MGE_VIRTUAL_FAULT=kernel@1=hang");
  EXPECT_EQ(o.code, 124) << o.err;
  EXPECT_THAT(o.err, HasSubstr("device virtual0"));
}

TEST_F(Command, ShowsNoAmountForUnknownMemory) {
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_null.so")) GTEST_SKIP() << "null is not built";
  EXPECT_THAT(Mge("devices").out, Not(HasSubstr("null0")));
  EXPECT_THAT(Mge("devices --all").out, testing::ContainsRegex("null0 +loadable +null +- +- +device 0"));
  const json listed = json::parse(Mge("devices --json").out);
  for (const json& d : listed["devices"]) {
    if (d["name"] == "null0") {
      EXPECT_EQ(d["memory_total"], 0);
    }
  }
}

TEST_F(Command, ListsPropertiesOfDevicesAsJson) {
  auto device = [&](const std::string& name) {
    const json listed = json::parse(Mge("devices --json --set virtual.devices=2 --set virtual.buffer_alignment=256").out);
    for (const json& d : listed["devices"]) {
      if (d["name"] == name) return d;
    }
    return json();
  };
  const json cpu = device("cpu0");
  EXPECT_EQ(cpu["buffer_alignment"], 64);
  EXPECT_EQ(cpu["compute_queues"], 1);
  for (const char* part : {"pool", "reserve", "strategy"}) EXPECT_FALSE(cpu[part].get<std::string>().empty()) << part;
  EXPECT_TRUE(cpu["properties"].contains("isa"));
  EXPECT_TRUE(cpu["properties"].contains("cores"));
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  const json gpu = device("virtual1");
  EXPECT_EQ(gpu["buffer_alignment"], 256);
  EXPECT_EQ(gpu["properties"]["uuid"], "76697274-7561-6c00-0000-000000000001");
  for (const char* key : {"pci", "capability", "multiprocessors", "memory_gb_s"}) {
    EXPECT_TRUE(gpu["properties"].contains(key)) << key;
  }
  EXPECT_THAT(Mge("devices").out, testing::Not(HasSubstr("uuid")));
}

TEST_F(Command, ExplainsHowToBuildABackendIfALibraryIsNone) {
  fs::create_directory(Path("plugins"));
  fs::copy_file(MGE_BINARY_DIR "/lib/libmge.so", Path("plugins/mge_none.so"));
  Outcome o = Mge("plugins", "MGE_PLUGIN_PATH=" + Path("plugins"));
  EXPECT_THAT(o.out, HasSubstr("MGE_BACKEND(...)")) << o.err;
}

// Each of the four products swaps the columns of its input and doubles it, so y is 16 x.
TEST_F(Command, RunsAModelOnSeveralDevicesAndShowsTheStepsOfEach) {
  if (!fs::exists(MGE_BINARY_DIR "/lib/mge/plugins/mge_virtual.so")) GTEST_SKIP() << "virtual is not built";
  auto product = [](const char* from, const char* to, const std::string& device = "") {
    std::string node = ob::NodeProto("MatMul", {from, "w"}, {to});
    if (!device.empty()) node += ob::TextField(onnx::field::node::kMetadata, ob::Entry("mge.device", device));
    return node;
  };
  const std::string weight = ob::FloatTensor("w", {2, 2}, {0, 2, 2, 0});
  Model("m.onnx", {product("x", "a"), product("a", "b"), product("b", "c"), product("c", "y")}, {weight},
        {int64_t{2}, int64_t{2}});
  Model("placed.onnx", {product("x", "a", "gpu1"), product("a", "b"), product("b", "c", "cpu0"), product("c", "y", "gpu1")},
        {weight}, {int64_t{2}, int64_t{2}});
  fs::create_directories(Path("data"));
  Write("data/input_0.pb", ob::FloatTensor("x", {2, 2}, {1, -2, 3, -4}));
  Write("data/output_0.pb", ob::FloatTensor("y", {2, 2}, {16, -32, 48, -64}));
  const std::string on_two = " --device virtual0+virtual1 --set virtual.devices=2";
  const std::string on_list = " --device gpu0,gpu1,cpu0 --set virtual.devices=2 --set virtual.gpu=1";

  Outcome o = Mge("run m.onnx --check data --json" + on_two);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["device"], "virtual0+virtual1");
  EXPECT_EQ(json::parse(o.out)["reference_steps"], 0);
  o = Mge("run placed.onnx --check data --json" + on_list);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(json::parse(o.out)["device"], "virtual1+virtual0+cpu0");
  Write("data/output_0.pb", ob::FloatTensor("y", {2, 2}, {16, -32, 48, -65}));
  EXPECT_EQ(Mge("run m.onnx --check data" + on_two).code, 8);

  o = Mge("plan m.onnx --why" + on_two);
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* part :
       {"device virtual0+virtual1: ", "copy from host  on virtual0, copy in", "peer copy  on virtual1, communication",
        "copy to host  on virtual1, copy out", "there because part 1 of 2", "there because part 2 of 2",
        "16 bytes from virtual0 to virtual1 directly"}) {
    EXPECT_THAT(o.out, HasSubstr(part));
  }
  o = Mge("plan placed.onnx --why" + on_list);
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* part : {"peer copy  on virtual0, communication", "copy to host  on virtual0, copy out",
                           "copy from host  on virtual1, copy in", "there because the model asks for it"}) {
    EXPECT_THAT(o.out, HasSubstr(part));
  }
}

TEST_F(Command, AcceptsAFailingTestOnlyWithTheErrorThatTheGapsFileNames) {
  fs::create_directories(Path("node/test_relu/test_data_set_0"));
  fs::rename(Good(), Path("node/test_relu/model.onnx"));
  Write("node/test_relu/test_data_set_0/input_0.pb", ob::FloatTensor("x", {2, 3}, {-1, 2, -3, 4, -5, 6}));
  Write("node/test_relu/test_data_set_0/output_0.pb", ob::FloatTensor("y", {2, 3}, {0, 2, 0, 4, 0, 7}));
  Write("gaps.txt", "# known\nnode/test_relu E0801 its six is wrong\n");
  json report = json::parse(Mge("check . --gaps gaps.txt --json").out);
  EXPECT_EQ(report["failed"], 0);
  EXPECT_EQ(report["unsupported"], 1);
  EXPECT_EQ(report["on_device"], 0);
  EXPECT_THAT(report["cases"][0]["reason"].get<std::string>(), HasSubstr("its six is wrong"));
  EXPECT_EQ(report["cases"][0]["error"], "E0801");
  EXPECT_EQ(Mge("check . --gaps none").code, 8);
  EXPECT_EQ(Mge("check node/test_relu/ --gaps gaps.txt").code, 0);
  Write("other.txt", "node/test_relu E0307 its input is wrong\n");
  Outcome o = Mge("check . --gaps other.txt");
  EXPECT_EQ(o.code, 8);
  EXPECT_THAT(o.out, HasSubstr("another error, E0307"));
  // A test that passes must not be listed as a gap.
  Write("node/test_relu/test_data_set_0/output_0.pb", ob::FloatTensor("y", {2, 3}, {0, 2, 0, 4, 0, 6}));
  o = Mge("check . --gaps gaps.txt");
  EXPECT_EQ(o.code, 8);
  EXPECT_THAT(o.out, HasSubstr("remove it"));
  for (const char* bad :
       {"node/test_relu its six is wrong\n", "node/test_relu E0801\n", "a E0801 x\na E0801 x\n", "a E08x1 y\n"}) {
    Write("bad.txt", bad);
    EXPECT_EQ(Mge("check . --gaps bad.txt").code, 2) << bad;
  }
  EXPECT_EQ(Mge("check . --gaps absent.txt").code, 2);
}

TEST_F(Command, FailsATestThatComparesNothing) {
  fs::create_directories(Path("test_relu"));
  fs::rename(Good(), Path("test_relu/model.onnx"));
  EXPECT_EQ(Mge("check .").code, 8);
  fs::create_directories(Path("test_relu/test_data_set_0"));
  Write("test_relu/test_data_set_0/input_0.pb", ob::FloatTensor("x", {2, 3}, {-1, 2, -3, 4, -5, 6}));
  Outcome o = Mge("check .");
  EXPECT_EQ(o.code, 8);
  EXPECT_THAT(o.out, HasSubstr("0 outputs"));
}

// ---- the command line

TEST_F(Command, SuggestsTheNearestCommandAndOption) {
  Outcome o = Mge("bnech x.onnx");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("did you mean 'bench'?"));
  o = Mge("run --ouptut-dir d " + Good());
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("--output-dir"));
  o = Mge("zoo resnet5O");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("did you mean 'resnet50'?"));
  EXPECT_THAT(o.out, IsEmpty());
}

TEST_F(Command, ShowsExamplesOfTheCommandInItsHelp) {
  const std::string bench = Mge("bench --help").out;
  EXPECT_THAT(bench, HasSubstr("mge bench model.onnx"));
  EXPECT_THAT(bench, HasSubstr("--device DEVICE"));
  for (const json& o : json::parse(Mge("help train --json").out)["commands"][0]["options"]) {
    if (o["names"] != json::array({"--epochs"})) continue;
    EXPECT_THAT(Mge("train --help").out, HasSubstr("over all examples; default: " + o["default"].get<std::string>()));
  }
  EXPECT_THAT(Mge("bench --help").out, Not(HasSubstr("mge demo")));
}

TEST_F(Command, ExplainsWhyANumberIsRefused) {
  Good();
  EXPECT_THAT(Mge("run good.onnx --threads two").err, HasSubstr("'two' is not a number"));
  EXPECT_THAT(Mge("run good.onnx --threads 5000").err, HasSubstr("5000 is not in 0 to 1024"));
}

TEST_F(Command, RepeatsTheTypedDeviceInErrors) {
  Good();
  EXPECT_THAT(Mge("run good.onnx --device rocm").err, HasSubstr("device 'rocm' cannot be used"));
}

TEST_F(Command, ReportsTheThreadsOfABench) {
  Good();
  EXPECT_EQ(json::parse(Mge("bench good.onnx --runs 3 --threads 2 --json").out)["threads"], 2);
  EXPECT_GE(json::parse(Mge("bench good.onnx --runs 3 --json").out)["threads"].get<int>(), 1);
}

TEST_F(Command, ExplainsEveryErrorAndCommand) {
  json errors = json::parse(Mge("help errors --json").out)["errors"];
  EXPECT_GT(errors.size(), 30u);
  for (const json& e : errors) {
    Outcome o = Mge("help " + e["id"].get<std::string>());
    EXPECT_EQ(o.code, 0);
    EXPECT_THAT(o.out, HasSubstr("Usual causes"));
    EXPECT_THAT(o.out, HasSubstr("What to do"));
  }
  EXPECT_EQ(Mge("help 502").out, Mge("help E0502").out);
  EXPECT_EQ(Mge("help bench").out, Mge("bench --help").out);
  EXPECT_EQ(Mge("help").out, Mge("--help").out);
  Outcome alone = Mge("");
  EXPECT_EQ(alone.code, 0);
  EXPECT_EQ(alone.out, Mge("--help").out);
  EXPECT_EQ(Mge("--json bench --help").out, Mge("help bench --json").out);
  EXPECT_EQ(Mge("sdk new --help --json").out, Mge("help sdk new --json").out);
  Outcome page = Mge("help --format bash --json");
  EXPECT_EQ(page.code, 2);
  EXPECT_EQ(json::parse(page.out)["schema"], "mge.error/1");
  EXPECT_EQ(Mge("help E0999").code, 2);
  Outcome o = Mge("help bnech");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("did you mean 'bench'?"));
  // An error names the command that explains it.
  EXPECT_THAT(Mge("run absent.onnx").err, HasSubstr("mge help E0701"));
}

TEST_F(Command, WritesAManPageOfEveryCommandThatTheFormatterAccepts) {
  std::string page = Mge("help --format man").out;
  json help = json::parse(Mge("help --json").out);
  for (const json& c : help["commands"][0]["commands"]) {
    EXPECT_THAT(page, HasSubstr(".SS \"mge " + c["command"].get<std::string>()));
  }
  for (const char* part : {"\\-\\-output\\-dir", ".B E0502", "MGE_DEFAULT_DEVICE"}) EXPECT_THAT(page, HasSubstr(part));
  if (std::system("command -v groff >/dev/null") != 0) GTEST_SKIP() << "no groff";
  Write("mge.1", page);
  ASSERT_EQ(std::system(("groff -man -Tutf8 -ww " + Path("mge.1") + " >/dev/null 2>" + Path("warnings")).c_str()), 0);
  EXPECT_THAT(Read("warnings"), IsEmpty());
}

TEST_F(Command, ColoursAndCutsLinesOnATerminalOnly) {
  EXPECT_THAT(Mge("env").out, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(Mge("env --color always").out, testing::StartsWith("\x1b[1m"));
  EXPECT_THAT(Mge("run absent.onnx --color always").err, HasSubstr("mge: \x1b[1;31merror[E0701]\x1b[0m cannot read"));
  EXPECT_EQ(Mge("env --color red").code, 2);
  if (std::system("command -v script >/dev/null") != 0) GTEST_SKIP() << "no script";
  auto terminal = [&](const std::string& variables) {
    const std::string line = variables +
                             " TERM=xterm script -qec 'stty cols 50; " MGE_BINARY_DIR "/bin/mge env' /dev/null >" +
                             Path("shown") + " </dev/null";
    EXPECT_EQ(std::system(line.c_str()), 0);
    return Read("shown");
  };
  EXPECT_THAT(terminal("env -u NO_COLOR"), HasSubstr("\x1b[1m"));
  const std::string plain = terminal("NO_COLOR=1");
  EXPECT_THAT(plain, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(plain, HasSubstr("…"));
  for (size_t at = 0, end; (end = plain.find("\r\n", at)) != std::string::npos; at = end + 2) {
    const auto begin = plain.begin() + static_cast<std::ptrdiff_t>(at),
               stop = plain.begin() + static_cast<std::ptrdiff_t>(end);
    EXPECT_LE(std::count_if(begin, stop, [](char c) { return (c & 0xC0) != 0x80; }), 50) << plain.substr(at, end - at);
  }
}

TEST_F(Command, SaysOfWhichBuildItIs) {
  const json version = json::parse(Mge("version --json").out);
  EXPECT_THAT(version["commit"].get<std::string>(), testing::ContainsRegex("^([0-9a-f]{12}[+]?|unknown)$"));
  EXPECT_THAT(Mge("version --verbose").out, HasSubstr("compiler  " + version["compiler"].get<std::string>()));
  EXPECT_EQ(Mge("version").out, "mge " + version["version"].get<std::string>() + "\n");
}

TEST_F(Command, CompletesForBash) {
  Write("completion", Mge("help --format bash").out);
  Write("model.onnx", "");
  fs::create_directory(Path("folder"));
  auto complete = [&](const std::string& words, int at) {
    std::string line = "cd " + folder_ + " && bash -c 'source completion; COMP_WORDS=(mge " + words +
                       "); COMP_CWORD=" + std::to_string(at) + "; _mge; printf \"%s,\" \"${COMPREPLY[@]}\"' >replies";
    EXPECT_EQ(std::system(line.c_str()), 0);
    return Read("replies");
  };
  EXPECT_EQ(complete("be", 1), "bench,");
  EXPECT_EQ(complete("bench --war", 2), "--warm,");
  EXPECT_EQ(complete("bench --js", 2), "--json,");
  EXPECT_EQ(complete("--json bench mod", 3), "model.onnx,");
  EXPECT_EQ(complete("check fo", 2), "folder,");
  EXPECT_EQ(complete("run --output-dir fo", 3), "folder,");
  EXPECT_EQ(complete("zoo resn", 2), "resnet50,");
  EXPECT_EQ(complete("run --device vir", 3), "virtual0,");
  EXPECT_EQ(complete("run --color al", 3), "always,");
  EXPECT_EQ(complete("help --format b", 3), "bash,");
  EXPECT_EQ(complete("env explain plan.cache_c", 3), "plan.cache_count,");
  EXPECT_EQ(complete("run --set plan.cache_c", 3), "plan.cache_count=,");
  EXPECT_EQ(complete("bench --runs \"\"", 3), ",");
}

TEST_F(Command, CompletesForFish) {
  if (std::system("command -v fish >/dev/null") != 0) GTEST_SKIP() << "no fish";
  Write("mge.fish", Mge("help --format fish").out);
  auto complete = [&](const std::string& line) {
    std::string command =
        "cd " + folder_ + " && HOME=" + folder_ + " fish -c 'source mge.fish; complete -C \"" + line + "\"' >replies 2>&1";
    EXPECT_EQ(std::system(command.c_str()), 0);
    return Read("replies");
  };
  EXPECT_THAT(complete("mge be"), HasSubstr("bench\t"));
  EXPECT_THAT(complete("mge bench --war"), HasSubstr("--warm\t"));
  EXPECT_THAT(complete("mge demo --war"), Not(HasSubstr("--warm")));
  EXPECT_THAT(complete("mge zoo resn"), HasSubstr("resnet50"));
  EXPECT_THAT(complete("mge run --set plan.cache_c"), HasSubstr("plan.cache_count="));
}

TEST_F(Command, CompletesForZsh) {
  if (std::system("command -v zsh >/dev/null") != 0) GTEST_SKIP() << "no zsh";
  Write("_mge", Mge("help --format zsh").out);
  // Records the arguments of _arguments, because completion itself needs a terminal.
  Write("try.zsh",
        "_arguments() { print -rl -- $@; state=argument; line=(bench) }\n_describe() { print -rl -- $commands }\n"
        "source ./_mge\n");
  ASSERT_EQ(std::system(("cd " + folder_ + " && zsh -f try.zsh >replies 2>&1").c_str()), 0);
  std::string replies = Read("replies");
  for (const char* part : {"--json[", "1:command:->command", "--warm[", "1:MODEL:_files", ":_mge_settings -S ="})
    EXPECT_THAT(replies, HasSubstr(part));
}

// ---- models

TEST_F(Command, RefusesFilesThatAreNotAModel) {
  Good();
  Write("empty.onnx", "");
  Write("text.onnx", "hello, this is a text\n");
  mkfifo(Path("fifo.onnx").c_str(), 0600);
  fs::create_directory(Path("folder.onnx"));
  for (const char* name : {"empty.onnx", "text.onnx", "fifo.onnx", "folder.onnx", "/dev/zero", MGE_BINARY_DIR "/bin/mge"}) {
    Outcome o = Mge(std::string("run ") + name);
    EXPECT_TRUE(o.code == 3 || o.code == 7) << name << " " << o.code << o.err;
    EXPECT_THAT(o.err, HasSubstr("error[E0")) << name;
  }
  EXPECT_EQ(Mge("run absent.onnx").code, 7);
  EXPECT_EQ(Mge("run good.onnx").code, 0);
}

TEST_F(Command, NamesAnUnknownOperatorInTheError) {
  Model("m.onnx", {ob::NodeProto("Rellu", {"x"}, {"y"})});
  Outcome o = Mge("run m.onnx");
  EXPECT_EQ(o.code, 4);
  EXPECT_THAT(o.err, HasSubstr("Rellu"));
  EXPECT_THAT(o.err, HasSubstr("Relu"));
}

TEST_F(Command, StaysWithinTheMemoryBudgetForEveryModel) {
  // Each operator that creates a tensor from a shape gets a shape of 2^50 bytes.
  std::string huge = ob::IntTensor("huge", {1 << 20, 1 << 20, 1 << 8});
  Model("fill.onnx",
        {ob::NodeProto("ConstantOfShape", {"huge"}, {"c"}), ob::NodeProto("ReduceSum", {"c"}, {"s"}),
         ob::NodeProto("Add", {"x", "s"}, {"y"})},
        {huge});
  Model("expand.onnx",
        {ob::NodeProto("ReduceSum", {"x"}, {"one"}, {.attributes = {ob::IntAttr("keepdims", 0)}}),
         ob::NodeProto("Expand", {"one", "huge"}, {"y"})},
        {huge});
  Model("tile.onnx", {ob::NodeProto("Tile", {"x", "times"}, {"y"})}, {ob::IntTensor("times", {1 << 24, 1 << 24})});
  for (const char* name : {"fill.onnx", "expand.onnx", "tile.onnx"}) {
    Outcome o = Mge(std::string("run ") + name, "MGE_MEMORY_LIMIT=256MiB");
    EXPECT_EQ(o.code, 6) << name << o.err;
    EXPECT_THAT(o.err, HasSubstr("268435456")) << name;
  }
}

TEST_F(Command, ReportsBadAttributesAndIndicesAsErrors) {
  std::string w = ob::FloatTensor("w", {1, 1, 2, 2}, {1, 2, 3, 4});
  std::vector<ob::Dim> image = {int64_t{1}, int64_t{1}, int64_t{4}, int64_t{4}};
  for (const std::string& attr : {ob::IntsAttr("strides", {0, 1}), ob::IntsAttr("dilations", {0, 1}),
                                  ob::IntAttr("group", 0), ob::IntsAttr("kernel_shape", {9, 9})}) {
    Model("m.onnx", {ob::NodeProto("Conv", {"x", "w"}, {"y"}, {.attributes = {attr}})}, {w}, image);
    Outcome o = Mge("run m.onnx");
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_THAT(o.err, HasSubstr("Conv"));
  }
  for (int64_t index : {int64_t{-3}, int64_t{2}, int64_t{1} << 40}) {
    Model("m.onnx", {ob::NodeProto("Gather", {"x", "i"}, {"y"})}, {ob::IntTensor("i", {index})});
    Outcome o = Mge("run m.onnx");
    EXPECT_EQ(o.code, 3) << index << o.err;
    EXPECT_THAT(o.err, HasSubstr(std::to_string(index)));
  }
}

// Returns a model of `depth` nested Ifs, whose condition is an input.
ob::Proto NestedIfs(int depth) {
  auto body = [](const std::string& node, const std::string& output) {
    return ob::GraphProto({.nodes = {node}, .outputs = {ob::ValueInfo(output, DType::kF32, {int64_t{2}})}});
  };
  ob::Proto inner = ob::NodeProto("Relu", {"x"}, {"y0"});
  for (int i = 0; i < depth; ++i) {
    const std::string other = "z" + std::to_string(i);
    inner = ob::NodeProto("If", {"c"}, {"y" + std::to_string(i + 1)},
                          {.attributes = {ob::GraphAttr("then_branch", body(inner, "y" + std::to_string(i))),
                                          ob::GraphAttr("else_branch", body(ob::NodeProto("Neg", {"x"}, {other}), other))}});
  }
  return ob::ModelProto(
      {.graph =
           ob::GraphProto({.nodes = {inner},
                           .inputs = {ob::ValueInfo("x", DType::kF32, {int64_t{2}}), ob::ValueInfo("c", DType::kBool, {})},
                           .outputs = {ob::ValueInfo("y" + std::to_string(depth), DType::kF32, {int64_t{2}})}})});
}

TEST_F(Command, RunsNestedModelsOnASmallStack) {
  Write("nested.onnx", NestedIfs(95));
  Write("too_deep.onnx", NestedIfs(2000));
  for (int kib : {8192, 64}) {
    EXPECT_EQ(MgeWithStack(kib, "run nested.onnx --device cpu0").code, 0) << kib << " KiB: " << Read("stderr.txt");
    const Outcome refused = MgeWithStack(kib, "run too_deep.onnx --device cpu0");
    EXPECT_NE(refused.code, 0);
    EXPECT_LT(refused.code, 128) << kib << " KiB: " << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("levels"));
    EXPECT_LT(MgeWithStack(kib, "inspect too_deep.onnx").code, 128) << kib << " KiB: " << Read("stderr.txt");
  }
}

TEST_F(Command, StopsALoopThatNeverEnds) {
  std::string body = ob::GraphProto(
      {.nodes = {ob::NodeProto("Identity", {"c"}, {"c2"}), ob::NodeProto("Add", {"v", "v"}, {"v2"})},
       .inputs = {ob::ValueInfo("i", DType::kI64, {}), ob::ValueInfo("c", DType::kBool, {}),
                  ob::ValueInfo("v", DType::kF32, {int64_t{2}, int64_t{3}})},
       .outputs = {ob::ValueInfo("c2", DType::kBool, {}), ob::ValueInfo("v2", DType::kF32, {int64_t{2}, int64_t{3}})}});
  Model("m.onnx", {ob::NodeProto("Loop", {"n", "", "x"}, {"y"}, {.attributes = {ob::GraphAttr("body", body)}})},
        {ob::RawTensor("n", DType::kI64, {}, std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8))});
  Outcome o = Mge("run m.onnx --timeout 0.5");
  EXPECT_EQ(o.code, 124) << o.err;
  EXPECT_THAT(o.err, HasSubstr("E12401"));
}

// ---- inputs

TEST_F(Command, NamesTheExpectedAndTheGivenInput) {
  Good();
  Write("wrong.pb", ob::FloatTensor("x", {2, 4}, std::vector<float>(8, 1)));
  Outcome o = Mge("run good.onnx --input x=wrong.pb");
  EXPECT_EQ(o.code, 3);
  EXPECT_THAT(o.err, HasSubstr("expected float32[2,3], got float32[2,4]"));
  o = Mge("run good.onnx --input xx=wrong.pb");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("did you mean 'x'?"));
  EXPECT_EQ(Mge("run good.onnx --input x=absent.npy").code, 7);
}

TEST_F(Command, RefusesDamagedNpyFiles) {
  Good();
  EXPECT_EQ(Mge("run good.onnx --output-dir out").code, 0);
  std::string npy = Read("out/y.npy");
  ASSERT_GT(npy.size(), 100u);
  std::string object = npy, huge = npy, longer = npy + "x";
  object.replace(object.find("<f4"), 3, "|O ");
  huge.replace(huge.find("(2, 3)"), 6, "(9, 9)");
  for (const std::string& bytes :
       {npy.substr(0, 20), npy.substr(0, npy.size() - 1), object, huge, longer, std::string("PK\x03\x04")}) {
    Write("bad.npy", bytes);
    Outcome o = Mge("run good.onnx --input x=bad.npy");
    EXPECT_EQ(o.code, bytes == object ? 4 : 3) << o.err;
    EXPECT_THAT(o.err, HasSubstr("bad.npy"));
  }
}

}  // namespace
}  // namespace mge
