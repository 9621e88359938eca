// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/base/errors.h"
#include "core/base/file_trust.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

struct Location {
  std::string file;
  int64_t offset = 0;
  std::optional<int64_t> length;
  bool has_checksum = false;
};

bool ParseSize(std::string_view text, int64_t* out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size() && *out >= 0;
}

absl::Status Bad(std::string_view tensor, std::string what, std::string fix = {}) {
  return Fail(errors::kExternalData, fmt::format("tensor '{}': its external data cannot be used", tensor),
              {.what = std::move(what), .fix = std::move(fix)});
}

absl::StatusOr<Location> ParseLocation(const ExternalEntries& entries, std::string_view tensor) {
  Location location;
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto& [key, value] = entries[i];
    for (size_t j = 0; j < i; ++j) {
      if (entries[j].first == key) return Bad(tensor, fmt::format("key '{}' is given twice", key));
    }
    int64_t number = 0;
    if (key == "location") {
      location.file = std::string(value);
    } else if (key == "offset" || key == "length") {
      if (!ParseSize(value, &number)) {
        return Bad(tensor, fmt::format("{} is '{}'; expected a number of bytes from 0 to 2^63-1", key, value));
      }
      if (key == "offset") location.offset = number;
      if (key == "length") location.length = number;
    } else if (key == "checksum") {
      location.has_checksum = true;
    } else {
      return Bad(tensor, fmt::format("key '{}' is unknown; supported are location, offset, length, checksum", key));
    }
  }
  if (location.file.empty()) return Bad(tensor, "no location is given");
  return location;
}

}  // namespace

absl::StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape, Bytes bytes, bool may_view,
                                     const std::shared_ptr<const void>& owner, const MappedFile* file,
                                     HostAllocator& allocator) {
  if (dtype == DType::kBool) {
    auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
    if (bad != bytes.end()) {
      return Fail(errors::kInvalidTensor, fmt::format("element {} of a bool tensor is byte {}, not 0 or 1",
                                                      bad - bytes.begin(), static_cast<int>(*bad)));
    }
  }
  uintptr_t alignment = static_cast<uintptr_t>(std::clamp<int64_t>(ElementBytes(dtype), 1, 8));
  if (may_view && !bytes.empty() && reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) {
    return Tensor::View(dtype, shape, bytes.data(), owner);
  }
  MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, shape, allocator));
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  if (file) file->ReleasePages(bytes);
  return tensor;
}

absl::StatusOr<Tensor> ExternalFiles::Read(const ExternalEntries& entries, std::string_view tensor, DType dtype,
                                           const Shape& shape, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(Location location, ParseLocation(entries, tensor));
  has_checksums_ = has_checksums_ || location.has_checksum;
  if (directory_.empty()) return Bad(tensor, "the model was not read from a file", "read the model by its path");
  if (dtype == DType::kString) return Bad(tensor, "strings cannot be external");
  MGE_ASSIGN_OR_RETURN(int64_t bytes, NumBytes(dtype, shape));
  if (location.length && *location.length != bytes) {
    return Bad(tensor, fmt::format("{}{} needs {} bytes, length is {}", DTypeName(dtype), ShapeText(shape), bytes,
                                   *location.length));
  }
  auto check_range = [&](int64_t size) -> absl::Status {
    int64_t end;
    if (CheckedAdd(location.offset, bytes, &end) && end <= size) return absl::OkStatus();
    return Bad(tensor, fmt::format("file '{}' has {} bytes; {} are needed from byte {} on", location.file, size, bytes,
                                   location.offset));
  };

  auto found = mapped_.find(location.file);
  if (found == mapped_.end()) {
    if (!directory_fd_.valid()) {
      MGE_ASSIGN_OR_RETURN(directory_fd_, OpenDirectory(directory_));
    }
    absl::StatusOr<RegularFile> file = OpenBeneath(directory_fd_.get(), location.file);
    if (!file.ok()) {
      return Bad(tensor, fmt::format("file '{}': {}", location.file, PartsOf(file.status()).what),
                 fmt::format("put the data as a regular file of its own beneath '{}'", directory_));
    }
    MGE_RETURN_IF_ERROR(check_range(file->size));
    if (!WhyNotTrusted(file->fd.get()).empty()) {
      // Other users can change this file at any time. Read only the needed bytes, and only once, into own
      // memory.
      MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> memory, allocator.Allocate(bytes));
      std::span<std::byte> out(memory.get(), static_cast<size_t>(bytes));
      if (absl::Status status = ReadRange(file->fd.get(), location.offset, out, location.file); !status.ok()) {
        return Bad(tensor, fmt::format("file '{}': {}", location.file, PartsOf(status).what));
      }
      return TensorFromRaw(dtype, shape, out, true, memory, nullptr, allocator);
    }
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> mapped, MappedFile::FromFile(*std::move(file), location.file));
    found = mapped_.emplace(location.file, std::move(mapped)).first;
  }
  const std::shared_ptr<const MappedFile>& mapped = found->second;
  MGE_RETURN_IF_ERROR(check_range(static_cast<int64_t>(mapped->bytes().size())));
  Bytes range = mapped->bytes().subspan(static_cast<size_t>(location.offset), static_cast<size_t>(bytes));
  return TensorFromRaw(dtype, shape, range, true, mapped, mapped.get(), allocator);
}

}  // namespace mge::onnx
