// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/start_record.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fmt/format.h"

namespace mge {

StartRecord::StartRecord(const Quarantine& quarantine, const Quarantine::Entry& entry)
    : file_(memfd_create(kStartRecordName, MFD_CLOEXEC)) {
  const std::string text = fmt::format("{}\n{}\n{}", gettid(), quarantine.PathOf(entry), Quarantine::ContentOf(entry));
  if (file_.get() >= 0 && write(file_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) file_ = Fd();
}

}  // namespace mge
