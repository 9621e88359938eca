// SPDX-License-Identifier: Apache-2.0
#include "core/base/sha256.h"

#include <nettle/sha2.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace mge {

absl::StatusOr<std::string> Sha256OfFile(int fd, std::string_view path) {
  sha256_ctx context;
  sha256_init(&context);
  std::vector<uint8_t> buffer(1 << 16);
  for (off_t at = 0;;) {
    ssize_t n = pread(fd, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return Fail(errors::kFileAccess, fmt::format("cannot read '{}'", path), {.what = ErrnoText(errno)});
    }
    if (n == 0) break;
    sha256_update(&context, static_cast<size_t>(n), buffer.data());
    at += n;
  }
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&context, sizeof(digest), digest);
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace mge
