// SPDX-License-Identifier: Apache-2.0
// Folders of hostile backends, and the mge command run with them.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "fmt/format.h"
#include "nlohmann/json.hpp"
#include "tests/support/plugin_files.h"

namespace mge {

using Json = nlohmann::json;

// Returns the bytes of the hostile backend with this name in its note. The build id depends on `name` and `build`.
inline std::string HostileBytes(const std::string& name, int build = 0) {
  std::string bytes = WithNote(ReadAll(FakeFile("hostile")), [&](mge_note& n) {
    std::memset(n.name, 0, sizeof(n.name));
    std::memcpy(n.name, name.data(), name.size());
  });
  size_t at = bytes.find(std::string("\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16));
  EXPECT_NE(at, std::string::npos) << "no build id";
  size_t hash = std::hash<std::string>()(name + std::to_string(build));
  std::memcpy(bytes.data() + at + 16, &hash, sizeof(hash));
  return bytes;
}

struct Outcome {
  int code = -1;
  std::string out, err;
  Json json() const { return Json::parse(out, nullptr, false); }
};

// A temporary folder of backends, with a temporary home directory.
class HostileFolder : public PluginFolder {
 public:
  std::string AddHostile(const std::string& name, int build = 0) {
    return Write("mge_" + name + ".so", HostileBytes(name, build));
  }
  std::string state() const { return home_.path(); }

  // Runs `ENV mge ARGS` in the home directory. Only this folder and the built-in one are searched for backends.
  Outcome Mge(const std::string& args, const std::string& env = "") const {
    std::string line = fmt::format(
        "cd {0} && env -i PATH=$PATH HOME={0} XDG_STATE_HOME={0} MGE_PLUGIN_PATH={1} ASAN_OPTIONS=$ASAN_OPTIONS"
        " TSAN_OPTIONS=$TSAN_OPTIONS {2} timeout 60 " MGE_BINARY_DIR "/bin/mge {3} >stdout.txt 2>stderr.txt </dev/null",
        home_.path(), path(), env, args);
    int status = std::system(line.c_str());
    Outcome o;
    o.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    o.out = ReadAll(home_.At("stdout.txt"));
    o.err = ReadAll(home_.At("stderr.txt"));
    return o;
  }

 private:
  PluginFolder home_;
};

// Returns the row of the backend `name` in a report's list.
inline Json RowOf(const Json& rows, const std::string& name) {
  for (const Json& row : rows) {
    if (row.value("name", "") == name) return row;
  }
  ADD_FAILURE() << "no row for " << name << " in " << rows.dump(1);
  return Json::object();
}

}  // namespace mge
