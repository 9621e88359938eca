// SPDX-License-Identifier: Apache-2.0
// The identity of a backend's file: its ELF note and build id, read from the open file before any of its code can run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/verdict.h"

namespace mge {

// What the note says, checked: texts are terminated and of the allowed characters.
struct PluginNote {
  std::string name;
  std::string version;
  std::vector<std::string> classes;
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  uint32_t abi_minor_min = 0;
  uint64_t header_hash = 0;
  uint32_t isa = 0;  // MGE_ISA_ bits
};

// The answer of ReadNote. `code` is kOk, or the reason why the file is no backend that this machine could open.
struct NoteReading {
  VerdictCode code = VerdictCode::kOk;
  std::string reason;
  PluginNote note;
  std::string build_id;  // filled whenever it could be read
};

// Reads headers and notes with bounded pread; nothing in the file is trusted.
NoteReading ReadNote(int fd);

// What tells an open file from any other build of it: `build_id`, or "sha256-" and the file's hash where that is empty.
// kFileAccess.
absl::StatusOr<std::string> BuildOf(int fd, std::string_view path, std::string_view build_id);
absl::StatusOr<std::string> BuildOf(const std::string& path, std::string_view build_id);  // opens it

// Whether host and backend understand each other: "" or a sentence that names both sides.
std::string WhyAbiDiffers(const PluginNote& note);

// Whether a machine that offers the instruction sets `isa` may open it: "" or a sentence that names what is missing.
std::string WhyIsaIsMissing(const PluginNote& note, uint32_t isa);

// a-z first, then a-z, 0-9 and '_'; device classes hold no digits. A name of the host's own is a class here, too.
bool IsBackendName(std::string_view name);
absl::Status CheckBackendName(std::string_view name);  // the same of what a user typed: kUsage, with the reason
bool IsClassName(std::string_view name);

}  // namespace mge
