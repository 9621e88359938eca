// SPDX-License-Identifier: Apache-2.0
// The applications among the SDK's examples run and print what they promise. A lint (tests/lint/bindings_test.cc) checks that
// they call every function of the C API.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/support/decoder_folder.h"
#include "tests/support/plugin_files.h"

namespace mge {
namespace {

using testing::HasSubstr;

constexpr char kDigits[] = MGE_SOURCE_DIR "/packaging/digits";
constexpr char kPlugins[] = MGE_BINARY_DIR "/lib/mge/plugins";

struct Program {
  std::string name, arguments;  // $D: the folder of the digits; $P: of the backends
  std::vector<std::string> lines;
};
void PrintTo(const Program& program, std::ostream* out) { *out << program.name << " " << program.arguments; }

const std::vector<Program>& Programs() {
  static const std::vector<Program> programs = {
      {"run", "$D/digits.onnx $D/digits_images.npy", {"input image: float32[-1,1,8,8]", "largest: 7 2 4 6"}},
      {"errors", "$D/digits.onnx", {"E0701: ", "the code is MGE_NOT_FOUND", "E0502: ", "would end with 5"}},
      {"model", "$D/digits.onnx $D/digits_images.npy .", {"mge.model/1", "mge.inspect/1", "output of 10 elements"}},
      {"devices", "virtual0", {"threads: 2", "device virtual1 of virtual", "bytes are free"}},
      {"tensors", "cpu0 .", {"float32[2,3]", "the host can access it", "released 1 time", "read back: 1 and 6"}},
      {"tensors",
       "virtual0 .",
       {"on virtual0, context ", "the host cannot access it", "back on the host: 6", "page-locked: yes"}},
      {"values", "", {"block: onethree", "dog: 0.75 and 0"}},
      {"sources", "$D/digits.onnx", {"read: 1 of 1", "1 inputs"}},
      {"async", "$D/digits.onnx $D/digits_images.npy cpu0", {"sum of their tags 3", "cancelled: yes"}},
      {"async", "$D/digits.onnx $D/digits_images.npy virtual0", {"enqueued runs ended: yes", "cancelled: yes"}},
      {"streams", "$D/digits.onnx $D/digits_images.npy", {"the run followed the stream: yes", "its work has ended: yes"}},
      {"profile", "$D/digits.onnx $D/digits_images.npy trace.json", {"mge.profile/1", "trace written"}},
      {"training",
       "$D/digits.onnx $D/digits_images.npy $D/digits_labels.npy trained.onnx",
       {"6 parameters", "the loss has become smaller", "saved"}},
      {"checkpoint",
       "$D/digits.onnx $D/digits_images.npy $D/digits_labels.npy state.ckpt trained.onnx",
       {"begins at step 0", "the loss has become smaller", "saved after step 5"}},
      {"eager", "cpu0", {"loss: 56", "gradient: -4", "dropped: yes", "computed again: 4"}},
      {"eager", "virtual0", {"elements on virtual0", "dropped: yes", "computed again: 4"}},
      {"generate",
       "decoder 5 1",
       {"at most 64 tokens on cpu0", "source: the model has no encoder", "most probable: 3 9 7 2 6 (end of the text)",
        "not 3: 0", "3 tokens, the last one is 0", "together: 0:3 1:3 0:9 1:9 0:7 1:7 0:2 1:2 (5 tokens in sequence 1)"}},
      {"collective", "virtual0 virtual1", {"rank 0: 2 1", "rank 1: 2 1"}},
      {"plugins", "$P/mge_virtual.so virtual .", {"accepted", "quarantined: yes", "removed: "}},
      {"exchange", "", {"shared: 7 and 7"}},
      {"handles", "example_driver0", {"through the driver's memory on example_driver0: 4"}},
  };
  return programs;
}

std::string FolderOf(const std::string& name) { return name == "handles" ? "driver" : "application"; }

class Applications : public testing::TestWithParam<Program> {};
INSTANTIATE_TEST_SUITE_P(Examples, Applications, testing::ValuesIn(Programs()),
                         [](const auto& info) { return info.param.name + "_" + std::to_string(info.index); });

TEST_P(Applications, PrintWhatTheyPromise) {
  if (!std::filesystem::exists(std::string(kPlugins) + "/mge_virtual.so"))
    GTEST_SKIP() << "the backend virtual is not built";
  const PluginFolder folder;
  WriteDecoderFolder(folder.At("decoder"));
  const Program& program = GetParam();
  const std::string line = "cd " + folder.path() + " && D=" + kDigits + " P=" + kPlugins +
                           "; export MGE_VIRTUAL_DEVICES=2 MGE_VIRTUAL_GPU=1 XDG_CACHE_HOME=$PWD XDG_STATE_HOME=$PWD "
                           "MGE_PLUGIN_PATH=" MGE_BINARY_DIR
                           "/tests/examples; unset MGE_DEFAULT_DEVICE; timeout 240 " MGE_EXAMPLES "/" +
                           FolderOf(program.name) + "/" + program.name + " " + program.arguments + " >out 2>&1 </dev/null";
  const int status = std::system(line.c_str());
  const std::string printed = ReadAll(folder.At("out"));
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0) << printed;
  for (const std::string& expected : program.lines) EXPECT_THAT(printed, HasSubstr(expected));
}

TEST(ApplicationExamples, AreAllRun) {
  std::set<std::string> run, found;
  for (const Program& program : Programs()) run.insert(FolderOf(program.name) + "/" + program.name + ".c");
  const std::filesystem::path examples = MGE_SOURCE_DIR "/sdk/examples";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(examples)) {
    if (entry.path().extension() == ".c") found.insert(entry.path().lexically_relative(examples).string());
  }
  EXPECT_EQ(run, found);
}

}  // namespace
}  // namespace mge
