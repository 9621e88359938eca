// SPDX-License-Identifier: Apache-2.0
#include "core/base/lazy_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "core/base/errors.h"
#include "fmt/format.h"

namespace mge {
namespace {

// Returns zeroed pages, which go back to the system when they are freed.
std::shared_ptr<std::byte> MapPages(int64_t bytes) {
  const size_t size = std::max<size_t>(static_cast<size_t>(bytes), 1);
  void* p = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(p), [size](std::byte* b) { munmap(b, size); }};
}

}  // namespace

// Returns nullptr if the bytes are not in memory.
std::shared_ptr<const std::byte> LazyBytes::PresentLocked() {
  if (pinned_.load(std::memory_order_relaxed) && !mapped_) return pages_;
  if (!first_) return held_.lock();
  held_ = first_;
  return std::move(first_);
}

absl::StatusOr<std::shared_ptr<const std::byte>> LazyBytes::Hold() {
  std::lock_guard lock(mutex_);
  if (auto present = PresentLocked()) return present;
  const std::shared_ptr<std::byte> pages = MapPages(bytes_);
  if (!pages) return Fail(errors::kOutOfMemory, fmt::format("the system has no memory for {} bytes", bytes_));
  MGE_RETURN_IF_ERROR(fill_({pages.get(), static_cast<size_t>(bytes_)}));
  held_ = pages;
  return pages;
}

absl::Status LazyBytes::ReadInto(std::span<std::byte> out) {
  std::shared_ptr<const std::byte> present;
  {
    std::lock_guard lock(mutex_);
    MGE_RETURN_IF_ERROR(status_);
    present = PresentLocked();
  }
  if (!present) return fill_(out);
  std::memcpy(out.data(), present.get(), out.size());
  return absl::OkStatus();
}

const std::byte* LazyBytes::Pin() {
  if (const std::byte* known = pinned_.load(std::memory_order_acquire)) return known;
  std::lock_guard lock(mutex_);
  if (const std::byte* known = pinned_.load(std::memory_order_relaxed)) return known;
  if (!pages_ && map_.make) {
    if (absl::StatusOr<std::shared_ptr<std::byte>> mapping = map_.make(); mapping.ok()) pages_ = *std::move(mapping);
    mapped_ = pages_ != nullptr;
  }
  if (!pages_) pages_ = MapPages(bytes_);
  if (!pages_) throw std::bad_alloc();
  const std::shared_ptr<const std::byte> present = mapped_ ? nullptr : PresentLocked();
  if (mapped_) {
    // status() checks the file.
  } else if (present) {
    std::memcpy(pages_.get(), present.get(), static_cast<size_t>(bytes_));
  } else if (absl::Status filled = fill_({pages_.get(), static_cast<size_t>(bytes_)}); !filled.ok()) {
    std::memset(pages_.get(), 0, static_cast<size_t>(bytes_));
    status_ = std::move(filled);
  }
  pinned_.store(pages_.get(), std::memory_order_release);
  return pages_.get();
}

void LazyBytes::AddReader() {
  std::lock_guard lock(mutex_);
  ++readers_;
}

void LazyBytes::RemoveReader() {
  std::lock_guard lock(mutex_);
  if (--readers_ == 0) UnpinLocked();
}

void LazyBytes::Unpin() {
  std::lock_guard lock(mutex_);
  if (readers_ <= 1) UnpinLocked();
}

void LazyBytes::UnpinLocked() {
  if (!pinned_.load(std::memory_order_relaxed) || pages_.use_count() > 1) return;  // Hold() gave them away
  pinned_.store(nullptr, std::memory_order_release);
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), begin = reinterpret_cast<uintptr_t>(pages_.get());
  const size_t before = begin % page;  // a mapping need not begin at a page
  madvise(reinterpret_cast<void*>(begin - before), static_cast<size_t>(bytes_) + before, MADV_DONTNEED);
}

absl::Status LazyBytes::status() const {
  std::lock_guard lock(mutex_);
  return mapped_ && pinned_.load(std::memory_order_relaxed) ? map_.check() : status_;
}

}  // namespace mge
