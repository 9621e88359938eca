// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/blob_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "core/base/errno_text.h"
#include "core/base/errors.h"
#include "core/base/file_trust.h"
#include "fmt/format.h"

#define XXH_INLINE_ALL
#include "xxhash.h"

namespace mge {
namespace {

constexpr std::string_view kSuffix = ".blob", kTemporary = ".tmp";
constexpr int64_t kAbandonedAfter = 3600;  // seconds; the writer of an older temporary file has died

// The first bytes of a file. The key and the data follow.
struct Head {
  char magic[8];
  uint64_t key_bytes;
  uint64_t data_bytes;
  XXH128_canonical_t sum;  // of the members above, the key and the data
};
constexpr char kMagic[8] = {'M', 'G', 'E', 'B', 'L', 'O', 'B', '1'};

XXH128_canonical_t SumOf(const Head& head, std::string_view key, Bytes data) {
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  XXH3_128bits_update(state.get(), &head, offsetof(Head, sum));
  XXH3_128bits_update(state.get(), key.data(), key.size());
  XXH3_128bits_update(state.get(), data.data(), data.size());
  XXH128_canonical_t out;
  XXH128_canonicalFromHash(&out, XXH3_128bits_digest(state.get()));
  return out;
}

// Returns the identity of this machine, or its host name if it has none.
std::string Machine() {
  if (absl::StatusOr<RegularFile> file = OpenRegularFile("/etc/machine-id"); file.ok() && file->size > 0) {
    std::string id(static_cast<size_t>(std::min<int64_t>(file->size, 64)), '\0');
    if (ReadRange(file->fd.get(), 0, std::as_writable_bytes(std::span(id)), "/etc/machine-id").ok()) return id;
  }
  char name[HOST_NAME_MAX + 1] = {};
  gethostname(name, HOST_NAME_MAX);
  return name;
}

absl::Status CannotStore(std::string_view directory, std::string what, std::string fix) {
  return Fail(errors::kFileWrite, fmt::format("the cache '{}' of compiled kernels cannot be used", directory),
              {.what = std::move(what), .fix = std::move(fix)});
}

// Removes the files that were used the longest time ago until the rest has at most `max_bytes`. Another process may remove
// the same files at the same time.
void Evict(const std::string& directory, uint64_t max_bytes) {
  struct File {
    timespec used;
    uint64_t bytes;
    std::string name;
  };
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(directory.c_str()), closedir);
  if (!dir) return;
  std::vector<File> files;
  uint64_t total = 0;
  const int at = dirfd(dir.get());
  while (const dirent* row = readdir(dir.get())) {
    const std::string_view name = row->d_name;
    const bool temporary = name.ends_with(kTemporary);
    struct stat st;
    if (!temporary && !name.ends_with(kSuffix)) continue;
    if (fstatat(at, row->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (temporary) {
      if (st.st_mtim.tv_sec + kAbandonedAfter < time(nullptr)) unlinkat(at, row->d_name, 0);
      continue;
    }
    files.push_back({st.st_mtim, static_cast<uint64_t>(st.st_size), std::string(name)});
    total += files.back().bytes;
  }
  if (total <= max_bytes) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const File& file : files) {
    if (total <= max_bytes) return;
    unlinkat(at, file.name.c_str(), 0);
    total -= file.bytes;
  }
}

}  // namespace

BlobCache::BlobCache(BlobCacheOptions options, std::string_view build)
    : options_(std::move(options)), owner_(fmt::format("{}\n{}\n", build, Machine())) {}

std::string BlobCache::FullKey(Bytes key) const { return owner_ + std::string(AsText(key)); }

std::string BlobCache::PathOf(std::string_view full_key) const {
  const XXH128_hash_t hash = XXH3_128bits(full_key.data(), full_key.size());
  return fmt::format("{}/{:016x}{:016x}{}", options_.directory, hash.high64, hash.low64, kSuffix);
}

std::optional<std::string> BlobCache::Load(Bytes key) const {
  if (options_.directory.empty() || options_.max_bytes == 0) return std::nullopt;
  const std::string full_key = FullKey(key), path = PathOf(full_key);
  const Fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  struct stat st;
  if (!fd.valid() || fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode) || !WhyNotTrusted(fd.get()).empty()) {
    return std::nullopt;
  }
  const auto size = static_cast<uint64_t>(st.st_size);
  Head head;
  auto read = [&](int64_t offset, void* to, size_t bytes) {
    return ReadRange(fd.get(), offset, {static_cast<std::byte*>(to), bytes}, path).ok();
  };
  if (size < sizeof(head) + full_key.size() || !read(0, &head, sizeof(head))) return std::nullopt;
  const uint64_t data_bytes = size - sizeof(head) - full_key.size();
  if (std::memcmp(head.magic, kMagic, sizeof(kMagic)) != 0 || head.key_bytes != full_key.size() ||
      head.data_bytes != data_bytes) {
    return std::nullopt;
  }
  std::string stored(full_key.size(), '\0'), data(data_bytes, '\0');
  if (!read(sizeof(head), stored.data(), stored.size()) || stored != full_key) return std::nullopt;
  if (!read(static_cast<int64_t>(sizeof(head) + stored.size()), data.data(), data.size())) return std::nullopt;
  const XXH128_canonical_t sum = SumOf(head, stored, AsBytes(data));
  if (std::memcmp(&sum, &head.sum, sizeof(sum)) != 0) return std::nullopt;
  futimens(fd.get(), nullptr);  // it was used now
  return data;
}

absl::Status BlobCache::Store(Bytes key, Bytes data) const {
  const std::string& directory = options_.directory;
  if (directory.empty() || options_.max_bytes == 0) {
    return CannotStore(directory, "it has no directory, or a limit of 0 bytes", "set cache.dir and cache.bytes");
  }
  const std::string full_key = FullKey(key);
  Head head = {};
  const uint64_t bytes = sizeof(head) + full_key.size() + data.size();
  if (bytes > options_.max_bytes) {
    return Fail(errors::kLimit, "a blob is too large for the cache of compiled kernels",
                {.what = fmt::format("{} bytes; the limit is {}", bytes, options_.max_bytes), .fix = "raise cache.bytes"});
  }
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(directory).parent_path(), code);
  const bool made = mkdir(directory.c_str(), 0700) == 0;
  if (const int error = errno; !made && error != EEXIST) {
    return CannotStore(directory, ErrnoText(error), "set cache.dir to a directory that you may write");
  }
  MGE_ASSIGN_OR_RETURN(const Fd fd, OpenDirectory(directory));
  if (std::string why = WhyNotTrusted(fd.get()); !why.empty()) {
    return CannotStore(directory, std::move(why), "remove the rights of other users (chmod go-w), or set cache.dir");
  }
  std::memcpy(head.magic, kMagic, sizeof(kMagic));
  head.key_bytes = full_key.size();
  head.data_bytes = data.size();
  head.sum = SumOf(head, full_key, data);
  MGE_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(PathOf(full_key), FileMode::kPrivate));
  MGE_RETURN_IF_ERROR(file.Append(std::as_bytes(std::span(&head, 1))));
  MGE_RETURN_IF_ERROR(file.Append(AsBytes(full_key)));
  MGE_RETURN_IF_ERROR(file.Append(data));
  MGE_RETURN_IF_ERROR(file.Commit());
  Evict(directory, options_.max_bytes);
  return absl::OkStatus();
}

}  // namespace mge
