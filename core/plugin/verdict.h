// SPDX-License-Identifier: Apache-2.0
// Verdicts: the result for each file and directory that was searched for backends, with the reason and a fix.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mge {

// kLoaded: the backend runs. kAccepted: all checks that do not open the file have passed. kSkipped: the file is not a
// backend, is left out by a setting, is not usable on this machine, or another file is used instead. kRefused: the file must
// not be used.
enum class Verdict { kLoaded, kAccepted, kSkipped, kRefused };

// The reason of a verdict. Each has a stable name for scripts.
enum class VerdictCode {
  kOk,
  kDirectoryNotAbsolute,
  kDirectoryMissing,
  kUntrusted,    // another user could write the file, a directory above it, or a library that it loads
  kLinkOutside,  // a symbolic link that leaves its directory
  kNotAllowed,   // not on the list of plugin.allow
  kQuarantined,  // its start crashed or hung a process
  kLeftOut,      // plugin.skip names it
  kUnreadable,
  kNotElf,
  kDamaged,  // a truncated ELF file, or one with inconsistent headers
  kWrongMachine,
  kNoNote,
  kBadNote,
  kAbiMismatch,
  kIsaMissing,
  kSearchPath,  // the dynamic linker would look for its libraries in the working directory
  kDuplicateName,
  kDuplicateFile,
  kMissingLibrary,
  kMissingSymbol,
  kNotOpened,   // dlopen fails for another reason
  kOpenThrew,   // a static object threw through dlopen, which leaves the dynamic linker of this process locked
  kOlderInUse,  // the process has opened another build from the same path before
  kNoEntry,
  kQueryRefused,  // the backend itself declines this host
  kBadTable,
  kBadSetting,
  kStartFailed,
  kUnavailable,  // the backend cannot work here: no driver, no hardware
  kOutOfMemory,  // there is not enough memory to start it
  kBadDevice,    // enumerate() fails, or describes a device wrongly
};

std::string_view VerdictName(Verdict verdict);       // "refused"
std::string_view VerdictCodeName(VerdictCode code);  // "abi_mismatch"

// One row of `mge plugins`. Unknown members are empty.
struct PluginFile {
  std::string path;
  Verdict verdict = Verdict::kRefused;
  VerdictCode code = VerdictCode::kOk;
  std::string reason;   // a sentence; empty if loaded
  std::string fix;      // what the user can do
  std::string warning;  // a sentence about a problem of a file that works; usually empty
  std::string name;
  std::string version;
  std::string abi;  // "0.1"
  std::vector<std::string> classes;
  std::string build_id;  // hexadecimal
  int devices = -1;      // number of devices that it lists, usable or not; -1: it is not loaded
};

// Sets verdict, code, reason and fix of a row.
void SetVerdict(PluginFile& file, Verdict verdict, VerdictCode code, std::string reason, std::string fix = {});

}  // namespace mge
