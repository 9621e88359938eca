// SPDX-License-Identifier: Apache-2.0
// The environment of the process: decoy libraries in directories that must not be searched, raised privileges, and other
// libraries in the process.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "core/env/environment.h"
#include "mge/mge.h"
#include "tests/hostile/hostile.h"
#include "tests/hostile/watch.h"

namespace mge {
namespace {

using testing::HasSubstr;

TEST(Decoys, AreNeverOpenedFromTheWorkingDirectoryOrTheLibraryPath) {
  HostileFolder folder;
  folder.AddHostile("quiet");
  PluginFolder decoys;
  decoys.Write("mge_cpu.so", HostileBytes("start_abort"));
  decoys.Write("libmge_cpu.so", HostileBytes("start_abort"));
  std::filesystem::copy(decoys.path(), folder.state());
  Watch here(folder.state()), there(decoys.path());
  Outcome o = folder.Mge("plugins --json", "LD_LIBRARY_PATH=" + decoys.path());
  EXPECT_EQ(o.code, 0) << o.err;
  for (const char* name : {"mge_cpu.so", "libmge_cpu.so"}) {
    EXPECT_FALSE(here.Opened(name));
    EXPECT_FALSE(there.Opened(name));
  }
  EXPECT_TRUE(here.Opened("stdout.txt"));  // proves that the watch records opened files
}

TEST(Decoys, RelativeAndEmptyEntriesOfThePathAreNotSearched) {
  HostileFolder folder;
  std::filesystem::create_directory(folder.state() + "/plugins");
  std::ofstream(folder.state() + "/plugins/mge_decoy.so") << HostileBytes("start_abort");
  Watch here(folder.state() + "/plugins");
  Outcome relative = folder.Mge("plugins", "MGE_PLUGIN_PATH=plugins");
  EXPECT_EQ(relative.code, 2);
  EXPECT_THAT(relative.err, HasSubstr("absolute directories"));
  Outcome both = folder.Mge("plugins", "MGE_PLUGIN_PATH=" + folder.path() + ":plugins");
  EXPECT_EQ(both.code, 2);
  Outcome empty = folder.Mge("plugins --json", "MGE_PLUGIN_PATH=:" + folder.path() + "::");
  EXPECT_EQ(empty.code, 0) << empty.err;  // an empty entry is ignored; it does not mean the working directory
  const Json searched = empty.json();
  EXPECT_GE(searched["directories"].size(), 1u);
  for (const Json& d : searched["directories"]) EXPECT_TRUE(d["path"].get<std::string>().starts_with("/"));
  EXPECT_FALSE(here.Opened("mge_decoy.so"));
}

TEST(Elevated, DISABLED_AProcessWithRaisedRights) {
  _exit(CaptureEnvironment().variables.empty() && StateDirectory(CaptureEnvironment()).empty() ? 0 : 1);
}

TEST(Elevated, AProcessWithRaisedRightsReadsNoVariable) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to give its rights away";
  auto run = [](bool elevated) {
    pid_t child = fork();
    if (child == 0) {
      // The real user is nobody, the effective user root. A program that exec() starts now has AT_SECURE, like a setuid
      // program.
      if (elevated && setresuid(65534, 0, 0) != 0) _exit(2);
      setenv("MGE_PLUGIN_PATH", "/tmp", 1);
      setenv("HOME", "/tmp", 1);
      execl("/proc/self/exe", "elevated", "--gtest_filter=Elevated.DISABLED_AProcessWithRaisedRights",
            "--gtest_also_run_disabled_tests", "--gtest_brief=1", nullptr);
      _exit(3);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(run(false), 1);  // an ordinary process reads the variables
  EXPECT_EQ(run(true), 0);
}

// Runs a model in a child process that also loads `library`, before or after libmge. libmge contains no protocol buffers, so
// those of another library must not matter.
int RunBeside(const char* library, bool before) {
  void* other = before ? dlopen(library, RTLD_NOW | RTLD_GLOBAL) : nullptr;
  void* mge = dlopen(MGE_BINARY_DIR "/lib/libmge.so", RTLD_NOW | RTLD_LOCAL);
  if (!mge || (before && !other)) return 10;
  auto create = reinterpret_cast<decltype(&mge_runtime_create)>(dlsym(mge, "mge_runtime_create"));
  auto load = reinterpret_cast<decltype(&mge_session_load)>(dlsym(mge, "mge_session_load"));
  auto make = reinterpret_cast<decltype(&mge_tensor_create)>(dlsym(mge, "mge_tensor_create"));
  auto run = reinterpret_cast<decltype(&mge_session_run)>(dlsym(mge, "mge_session_run"));
  auto data = reinterpret_cast<decltype(&mge_tensor_data)>(dlsym(mge, "mge_tensor_data"));
  mge_runtime* runtime = nullptr;
  mge_session* session = nullptr;
  mge_session_options options = {};
  options.struct_size = sizeof(options);
  options.device = "cpu0";
  if (create(nullptr, &runtime) || load(runtime, MGE_SOURCE_DIR "/packaging/digits/digits.onnx", &options, &session))
    return 11;
  if (!before && !dlopen(library, RTLD_NOW | RTLD_GLOBAL)) return 12;
  const int64_t dims[] = {1, 1, 8, 8};
  mge_tensor* image = nullptr;
  mge_tensor* result = nullptr;
  if (make(MGE_DTYPE_F32, dims, 4, &image) || run(session, &image, 1, &result, 1, nullptr, nullptr)) return 13;
  // Returns the result as exit code: the most likely digit for a white image.
  const float* p = static_cast<const float*>(data(result));
  int best = 0;
  for (int i = 1; i < 10; ++i) best = p[i] > p[best] ? i : best;
  return best;
}

TEST(OtherLibraries, ProtocolBuffersInTheProcessChangeNothingInEitherOrder) {
  const char* library = nullptr;
  for (const char* name : {"libprotobuf.so.32", "libprotobuf.so.23", "libprotobuf.so.17", "libprotobuf.so"}) {
    if (void* there = dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      dlclose(there);
      library = name;
      break;
    }
  }
  if (!library) GTEST_SKIP() << "no libprotobuf is installed here";
  std::vector<int> answers;
  for (bool before : {true, false}) {
    pid_t child = fork();
    if (child == 0) _exit(RunBeside(library, before));
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
    answers.push_back(WEXITSTATUS(status));
    EXPECT_LT(answers.back(), 10);
  }
  EXPECT_EQ(answers[0], answers[1]);
}

}  // namespace
}  // namespace mge
