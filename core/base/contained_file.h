// SPDX-License-Identifier: Apache-2.0
// Opens files that another file names, such as the external data of a model. The names are not trusted: an opened file must
// lie in a folder that belongs to the naming file.
#pragma once

#include <string>
#include <vector>

#include "core/base/file.h"

namespace mge {

// The folders whose files a file may name.
struct DataFolders {
  std::vector<std::string> search;   // a name is relative to the first of these in which it exists
  std::vector<std::string> allowed;  // real paths; the opened file lies below one of them
};

// Returns the folders of the file that was opened as `path`: the folder that the path names and, if the path is a symbolic
// link, the folder of the file itself. The cache of a model hub has ENTRY/snapshots/REVISION/..., with links into ENTRY/blobs;
// there, also allows ENTRY/blobs. Without folders if the file is not in the file system (a pipe).
DataFolders FoldersOf(const std::string& path, int fd);

// Returns the same for a folder that the user names. Errors: kFileAccess if it is not a folder.
absl::StatusOr<DataFolders> FoldersAt(const std::string& folder);

// Opens the regular file `name`, a relative path. Symbolic links and ".." are followed. The check of the place uses the
// opened file, so nobody can exchange it between check and use. Errors: kFileAccess, whose parts `what` and `fix` suit the
// file that has the name in it.
absl::StatusOr<RegularFile> OpenContained(const DataFolders& folders, const std::string& name);

}  // namespace mge
