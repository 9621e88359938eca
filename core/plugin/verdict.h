// SPDX-License-Identifier: Apache-2.0
// Verdicts: what became of each file and directory that was searched for backends, why, and what to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mge {

// Accepted: passes all that can be judged without opening it. Skipped: not for us, or another file serves. Refused: a
// backend, or what should be one, that must not be used.
enum class Verdict { kLoaded, kAccepted, kSkipped, kRefused };

// Why. Each has a stable name for scripts.
enum class VerdictCode {
  kOk,
  kDirectoryNotAbsolute,
  kDirectoryMissing,
  kUntrusted,         // owner or mode of the file, or of a directory above it
  kLinkOutside,       // a symbolic link that leaves its directory
  kNotAllowed,        // not on the list of plugin.allow
  kQuarantined,       // its start ended or hung a process
  kLeftOut,           // plugin.skip names it
  kUnreadable,
  kNotElf,
  kDamaged,           // an ELF file whose headers lie, or a truncated one
  kWrongMachine,
  kNoNote,
  kBadNote,
  kAbiMismatch,
  kIsaMissing,
  kSearchPath,        // its libraries would be looked for in the working directory
  kDuplicateName,
  kDuplicateFile,
  kMissingLibrary,
  kMissingSymbol,
  kNotOpened,         // dlopen fails for another reason
  kOpenThrew,         // an exception of its static objects came through dlopen, which this process does not get over
  kOlderInUse,        // the process has opened what lay at its path before
  kNoEntry,
  kQueryRefused,      // the backend itself says no
  kBadTable,
  kBadSetting,
  kStartFailed,
  kUnavailable,       // the backend cannot work here: no driver, no hardware
  kOutOfMemory,       // there is none for its start at present
  kBadDevice,         // enumerate fails, or describes devices that cannot be
};

std::string_view VerdictName(Verdict verdict);          // "refused"
std::string_view VerdictCodeName(VerdictCode code);     // "abi_mismatch"

// One row of `mge plugins`. What is not known is empty.
struct PluginFile {
  std::string path;
  Verdict verdict = Verdict::kRefused;
  VerdictCode code = VerdictCode::kOk;
  std::string reason;  // a sentence; empty if loaded
  std::string fix;     // what the user can do
  std::string warning;  // a sentence on what is wrong with it, though it works
  std::string name;
  std::string version;
  std::string abi;     // "0.1"
  std::vector<std::string> classes;
  std::string build_id;  // hexadecimal
  int devices = -1;      // that it lists on this machine, usable or not; -1: it is not loaded
};

// Fills verdict, code, reason and fix.
void Judge(PluginFile& file, Verdict verdict, VerdictCode code, std::string reason, std::string fix = {});

}  // namespace mge
