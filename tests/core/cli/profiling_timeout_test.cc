// SPDX-License-Identifier: Apache-2.0
// MGB_CONV_PROFILING_TIMEOUT as a user of the mge command sees it. The backend tuner_stuck has a convolution that never
// returns and one that crashes.
#include <chrono>

#include "gmock/gmock.h"
#include "tests/support/command.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
namespace ob = onnx_builder;

constexpr char kDigits[] = MGE_SOURCE_DIR "/packaging/digits/digits.onnx";
constexpr char kTimed[] = " are timed in '" MGE_BINARY_DIR "/lib/mge/mge-worker'";

size_t CountOf(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

class ProfilingTimeout : public Command {
 protected:
  std::string Convolution() const {
    return Model("conv.onnx", {ob::NodeProto("Conv", {"x", "w"}, {"y"})}, {ob::FloatTensor("w", {1, 1, 1, 1}, {3})},
                 {int64_t{1}, int64_t{1}, int64_t{4}, int64_t{4}});
  }
  // Returns the variables for a run that times kernels of tuner_stuck. The times are stored in the folder `cache`.
  std::string Stuck(const std::string& cache) const {
    return "MARK=" + folder_ +
           " MGE_PLUGIN_PATH=" MGE_BINARY_DIR
           "/tests/engine_fakes/tuner_stuck.so MGE_LOG_LEVEL=debug MEGENGINE_EXECUTION_STRATEGY=PROFILE "
           "MGE_FASTRUN_CACHE_TYPE=FILE MGE_FASTRUN_CACHE_DIR=" +
           Path(cache) + " ";
  }
  // Returns whether a process that a run started is left.
  bool SomeProcessIsLeft() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream in(entry.path() / "environ", std::ios::binary);
      const std::string variables{std::istreambuf_iterator<char>(in), {}};
      if (variables.find("MARK=" + folder_) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_F(ProfilingTimeout, AKernelThatHangsOrCrashesIsLeftOutWhateverTheSource) {
  const std::string model = Convolution(), run = "run " + model + " --device tuner_stuck0 --against host";
  const std::string config = Write("c.toml", "[select]\nprofiling_timeout_seconds = 1\n");
  struct {
    const char* cache;
    std::string env, options;
  } sources[] = {{"a", "MGB_CONV_PROFILING_TIMEOUT=1", ""},
                 {"b", "MGE_SELECT_PROFILING_TIMEOUT_SECONDS=1s", ""},
                 {"c", "", " --set select.profiling_timeout_seconds=1"},
                 {"d", "", " --config " + config}};
  for (const auto& source : sources) {
    const auto begin = std::chrono::steady_clock::now();
    Outcome o = Mge(run + source.options, Stuck(source.cache) + source.env);
    EXPECT_EQ(o.code, 0) << o.err;  // the results are those of the host
    EXPECT_THAT(o.err, AllOf(HasSubstr("kernel 'stuck' of backend tuner_stuck is not used for Conv"),
                             HasSubstr("it did not respond within 1 s (select.profiling_timeout_seconds)"),
                             HasSubstr("kernel 'breaks' of backend tuner_stuck is not used for Conv"),
                             HasSubstr("it was killed by signal 6 (Aborted)"), HasSubstr(kTimed)));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
    EXPECT_FALSE(SomeProcessIsLeft());

    Outcome warm = Mge(run + source.options, Stuck(source.cache) + source.env);
    EXPECT_EQ(warm.code, 0) << warm.err;
    EXPECT_THAT(warm.err, AllOf(HasSubstr("kernel 'stuck'"), Not(HasSubstr(kTimed))));
  }
  Outcome why = Mge("plan " + model + " --why --device tuner_stuck0", Stuck("a") + "MGB_CONV_PROFILING_TIMEOUT=1");
  EXPECT_THAT(why.out, AllOf(HasSubstr("roomy"), HasSubstr("not stuck: left out: while it was timed, it did not respond"),
                             HasSubstr("not breaks: left out: while it was timed, it was killed by signal 6")));
}

TEST_F(ProfilingTimeout, WithoutMgeWorkerTimingIsInTheProcessAndDoctorWorks) {
  // A tree without the program: bin/mge finds libmge beside itself.
  namespace fs = std::filesystem;
  const std::string tree = Path("tree");
  fs::create_directories(tree + "/bin");
  fs::create_directories(tree + "/lib/mge/plugins");
  fs::copy(MGE_BINARY_DIR "/bin/mge", tree + "/bin");
  fs::copy_file(MGE_BINARY_DIR "/lib/libmge.so.0", tree + "/lib/libmge.so.0");
  fs::permissions(tree, fs::perms::owner_all);
  const std::string env = "MGE_PLUGIN_PATH=" MGE_BINARY_DIR
                          "/tests/engine_fakes/tuner.so MGB_CONV_PROFILING_TIMEOUT=1 "
                          "MEGENGINE_EXECUTION_STRATEGY=PROFILE MGE_FASTRUN_CACHE_TYPE=MEMORY";
  Outcome o = Mge("run " + Convolution() + " --device tuner0 --against host", env, tree);
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_EQ(CountOf(o.err, "kernels of tuner0 are timed in this process, without select.profiling_timeout_seconds: '" +
                               tree + "/lib/mge/mge-worker', a part of MGE: No such file or directory"),
            1u)
      << o.err;
  Outcome doctor = Mge("doctor", env, tree);
  EXPECT_EQ(doctor.code, 0) << doctor.out << doctor.err;
  EXPECT_THAT(doctor.out, HasSubstr("tuner0: Relu runs"));
}

TEST_F(ProfilingTimeout, KernelsOfVirtualGpusAreTimedInMgeWorkerToo) {
  if (Mge("devices", "MGE_VIRTUAL_DEVICES=1").out.find("virtual0") == std::string::npos) GTEST_SKIP() << "no virtual GPU";
  for (const bool limit : {false, true}) {
    Outcome o = Mge("run " + std::string(kDigits) + " --device virtual0 --against host",
                    "MGE_VIRTUAL_DEVICES=1 MGE_VIRTUAL_GPU=1 MGE_LOG_LEVEL=debug MEGENGINE_EXECUTION_STRATEGY=PROFILE "
                    "MGE_FASTRUN_CACHE_TYPE=MEMORY MGB_CONV_PROFILING_TIMEOUT=" +
                        std::string(limit ? "50" : "0"));
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(CountOf(o.err, std::string("kernels of virtual0") + kTimed) > 0, limit) << o.err;
    EXPECT_THAT(o.err, Not(HasSubstr("in this process")));
  }
}

}  // namespace
}  // namespace mge
