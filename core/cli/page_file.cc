// SPDX-License-Identifier: Apache-2.0
#include "core/cli/page_file.h"

#include "core/base/file.h"
#include "fmt/format.h"

namespace mge::cli {

Argument AddPageOption(Arguments app, std::string& path, const std::string& doc) {
  return app.Add("--html", path, doc).ValueName("FILE");
}

int CheckPagePath(const Globals& globals, const std::string& path) {
  if (path.empty()) return kExitOk;
  const absl::Status writable = AtomicFile::Create(path).status();
  return writable.ok() ? kExitOk : Report(globals, writable);
}

int WritePage(const Globals& globals, const std::string& path, const std::string& page) {
  if (absl::Status s = WriteFileAtomically(path, AsBytes(page)); !s.ok()) return Report(globals, s);
  PrintMessage(globals, fmt::format("wrote {}", Escape(path)));
  return kExitOk;
}

}  // namespace mge::cli
