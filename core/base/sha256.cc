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

struct Sha256::State {
  sha256_ctx context;
};

Sha256::Sha256() : state_(std::make_unique<State>()) { sha256_init(&state_->context); }
Sha256::~Sha256() = default;

void Sha256::Update(const void* data, size_t bytes) {
  if (bytes > 0) sha256_update(&state_->context, bytes, static_cast<const uint8_t*>(data));
}

std::string Sha256::Digest() {
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&state_->context, sizeof(digest), digest);  // also begins a new hash
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

absl::StatusOr<std::string> Sha256OfFile(int fd, std::string_view path) {
  Sha256 hash;
  std::vector<uint8_t> buffer(1 << 16);
  for (off_t at = 0;;) {
    ssize_t n = pread(fd, buffer.data(), buffer.size(), at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return Fail(errors::kFileAccess, fmt::format("cannot read '{}'", path), {.what = ErrnoText(errno)});
    }
    if (n == 0) break;
    hash.Update(buffer.data(), static_cast<size_t>(n));
    at += n;
  }
  return hash.Digest();
}

}  // namespace mge
