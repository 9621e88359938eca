// SPDX-License-Identifier: Apache-2.0
// A cache of blobs in files: results that a backend would otherwise compute again in each process, such as compiled kernels.
//
// Each blob is one file, whose name is a hash of its key. The key starts with the build of the backend and the identity of
// the machine, so that a shared home directory or a new build never yields a wrong blob. A file holds a checksum and the
// whole key, and is written to a temporary file that is then renamed. Readers and writers therefore need no lock, and a
// damaged file is the same as a missing one.
//
// The size is limited: a write removes the files that have not been read or written for the longest time. The directory
// must not be writable by other users, because backends execute what they load.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/file.h"
#include "core/base/status.h"

namespace mge {

// The place and the size limit of a cache, for all backends of a user.
struct BlobCacheOptions {
  std::string directory = {};  // created when it is needed; empty: nothing is kept
  uint64_t max_bytes = 0;      // of all files together; 0: nothing is kept
};

// The blobs of one build of a backend. Thread-safe. Several processes may use one directory.
class BlobCache {
 public:
  BlobCache(BlobCacheOptions options, std::string_view build);

  // Returns the blob with this key. Returns nullopt if there is none, or if its file is damaged or not trusted.
  std::optional<std::string> Load(Bytes key) const;

  // Stores a blob and removes the oldest ones until the limit holds. Fails with kLimit if the blob alone exceeds it, and
  // with kFileWrite if nothing is kept, or if the file cannot be written or would not be trusted.
  absl::Status Store(Bytes key, Bytes data) const;

 private:
  std::string FullKey(Bytes key) const;
  std::string PathOf(std::string_view full_key) const;

  BlobCacheOptions options_;
  std::string owner_;  // the build and the machine
};

}  // namespace mge
