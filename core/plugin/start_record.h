// SPDX-License-Identifier: Apache-2.0
// A record of the backend that a thread is starting, for a handler of the process's end. A start can crash the process or
// call exit(); then only what was written before can name the backend.
//
// The record is a file in memory (memfd_create) that exists while the start runs. A handler finds it in /proc/self/fd by its
// name, without a lock and without memory. Its lines:
//   the thread's id
//   the path of the file in the quarantine that would refuse this build, or an empty line
//   from here on, the content of that file
#pragma once

#include <string>

#include "core/base/file.h"
#include "core/plugin/quarantine.h"

namespace mge {

inline constexpr const char* kStartRecordName = "mge-start";

class StartRecord {
 public:
  // Writes the record for the calling thread. If that fails, there is none.
  StartRecord(const Quarantine& quarantine, const Quarantine::Entry& entry);

 private:
  Fd file_;
};

}  // namespace mge
