// SPDX-License-Identifier: Apache-2.0
// The identity of a backend's file: its ELF note and build id.
//
// Why: the host must know name, ABI version and instruction sets before it opens the file, because dlopen() runs code of it.
//
// Algorithm: check the ELF header (64-bit, little-endian, this machine, shared object). Check that each segment is within
// the file. Read every PT_NOTE segment and parse the notes with owner MGE_NOTE_OWNER (identity) and "GNU" (build id). Each
// offset and size is checked before it is used. Formats: System V gABI, and sdk/include/mge/plugin.h for the identity note.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/plugin/verdict.h"

namespace mge {

// The content of an identity note. Texts are checked: terminated, and only allowed characters.
struct PluginNote {
  bool is_transport = false;  // of mge/transport.h, which has no device
  std::string name;
  std::string version;
  std::vector<std::string> classes;
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  uint32_t abi_minor_min = 0;
  uint64_t header_hash = 0;
  uint32_t isa = 0;  // MGE_ISA_ bits
};

// The result of ReadNote(). If `code` is not kOk, `reason` says why this machine cannot open the file as a backend.
struct NoteReading {
  VerdictCode code = VerdictCode::kOk;
  std::string reason;
  PluginNote note;
  std::string build_id;  // hexadecimal; set even for an error if it could be read
};

// Reads the headers and notes of an open file. `fd` is not owned. Accepts any content.
NoteReading ReadNote(int fd);

// Returns the identifier of a build: `build_id`, or "sha256-" plus the hash of the open file if `build_id` is empty. Fails
// with kFileAccess if the file cannot be read.
absl::StatusOr<std::string> BuildOf(int fd, std::string_view path, std::string_view build_id);
absl::StatusOr<std::string> BuildOf(const std::string& path, std::string_view build_id);  // opens the file

// Returns "" if the backend's ABI version works with this host, else a sentence that names both versions.
std::string WhyAbiDiffers(const PluginNote& note);

// Returns "" if a machine with the instruction sets `isa` can run the backend, else a sentence that names the missing ones.
std::string WhyIsaIsMissing(const PluginNote& note, uint32_t isa);

// Returns whether a name is valid for a backend: first a-z, then a-z, 0-9 and '_'.
bool IsBackendName(std::string_view name);
// Checks a backend name that a user typed. Fails with kUsage and the reason.
absl::Status CheckBackendName(std::string_view name);
// Returns whether a name is valid for a device class: a-z and '_'. Classes of the host itself ("multithread") are valid.
bool IsClassName(std::string_view name);

}  // namespace mge
