// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/external_data.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "core/base/errors.h"
#include "core/base/lazy_bytes.h"
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

// Checks that `bytes` bytes from the location on are in a file of this size.
absl::Status CheckRange(std::string_view tensor, const Location& location, int64_t bytes, int64_t size) {
  if (int64_t end; CheckedAdd(location.offset, bytes, &end) && end <= size) return absl::OkStatus();
  return Bad(tensor, fmt::format("file '{}' has {} bytes; {} are needed from byte {} on", location.file, size, bytes,
                                 location.offset));
}

// Returns whether a large constant of this type is mapped for backends instead of being read: weights, also quantized ones. Other
// integers are values that planning reads, such as indices.
bool IsMapped(DType dtype) { return kFloating.Contains(dtype) || dtype == DType::kU8 || dtype == DType::kI8; }

absl::Status CheckBools(Bytes bytes) {
  auto bad = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b > std::byte{1}; });
  if (bad == bytes.end()) return absl::OkStatus();
  return Fail(errors::kInvalidTensor, fmt::format("element {} of a bool tensor is byte {}, not 0 or 1", bad - bytes.begin(),
                                                  static_cast<int>(*bad)));
}

}  // namespace

absl::StatusOr<Tensor> TensorFromRaw(DType dtype, const Shape& shape, Bytes bytes, bool may_view,
                                     const std::shared_ptr<const void>& owner, HostAllocator& allocator) {
  if (dtype == DType::kBool) MGE_RETURN_IF_ERROR(CheckBools(bytes));
  uintptr_t alignment = static_cast<uintptr_t>(std::clamp<int64_t>(ElementBytes(dtype), 1, 8));
  if (may_view && !bytes.empty() && reinterpret_cast<uintptr_t>(bytes.data()) % alignment == 0) {
    return Tensor::View(dtype, shape, bytes.data(), owner);
  }
  MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, shape, allocator));
  if (!bytes.empty()) std::memcpy(tensor.mutable_data(), bytes.data(), bytes.size());
  return tensor;
}

absl::StatusOr<Tensor> TensorFromFile(DType dtype, const Shape& shape, std::shared_ptr<const SourceFile> file,
                                      int64_t offset, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(const int64_t bytes, NumBytes(dtype, shape));
  if (bytes < kLazyBytes || dtype == DType::kBool) {
    MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, shape, allocator));
    const std::span<std::byte> out(static_cast<std::byte*>(tensor.mutable_data()), static_cast<size_t>(bytes));
    MGE_RETURN_IF_ERROR(file->Read(offset, out));
    if (dtype == DType::kBool) MGE_RETURN_IF_ERROR(CheckBools(out));
    return tensor;
  }
  const FileVersion& id = file->version();
  std::string key = fmt::format("file {}:{}:{}:{} {}+{}", id.device, id.inode, id.size, id.modified_ns, offset, bytes);
  // While a plan is made, backends can see all constants, but hardly ever read large ones. A mapping costs nothing then.
  LazyBytes::Map map;
  if (IsMapped(dtype)) {
    map = {.make = [file, offset, bytes] { return file->Map(offset, bytes); },
           .check = [file] { return file->CheckMapped(); }};
  }
  auto fill = [file = std::move(file), offset](std::span<std::byte> out) { return file->Read(offset, out); };
  return Tensor::Lazy(dtype, shape,
                      std::make_shared<LazyBytes>(bytes, std::move(key), std::move(fill), nullptr, std::move(map)));
}

absl::StatusOr<Tensor> ExternalFiles::Read(const ExternalEntries& entries, std::string_view tensor, DType dtype,
                                           const Shape& shape, HostAllocator& allocator) {
  constexpr size_t kMaxKeptOpen = 64;  // an exporter may write a file for each tensor; a process may have 1024 open files
  MGE_ASSIGN_OR_RETURN(Location location, ParseLocation(entries, tensor));
  has_checksums_ = has_checksums_ || location.has_checksum;
  if (dtype == DType::kString) return Bad(tensor, "strings cannot be external");
  MGE_ASSIGN_OR_RETURN(int64_t bytes, NumBytes(dtype, shape));
  if (location.length && *location.length != bytes) {
    return Bad(tensor, fmt::format("{}{} needs {} bytes, length is {}", DTypeName(dtype), ShapeText(shape), bytes,
                                   *location.length));
  }
  const auto piece =
      std::find_if(in_memory_.begin(), in_memory_.end(), [&](const MemoryFile& file) { return file.name == location.file; });
  if (piece != in_memory_.end()) {
    const auto size = static_cast<int64_t>(piece->bytes.size());
    MGE_RETURN_IF_ERROR(CheckRange(tensor, location, bytes, size));
    const Bytes part = piece->bytes.subspan(static_cast<size_t>(location.offset), static_cast<size_t>(bytes));
    return TensorFromRaw(dtype, shape, part, true, piece->owner, allocator);
  }
  if (folders_.search.empty()) {
    return Bad(
        tensor, fmt::format("file '{}': the model was not read from a file of a folder", location.file),
        "read the model by its path, name the folder of its data with --data-folder (data_folder in the API), or give "
        "the file as one of the source's files in memory");
  }
  auto found = opened_.find(location.file);
  if (found == opened_.end()) {
    absl::StatusOr<RegularFile> file = OpenContained(folders_, location.file);
    if (!file.ok()) {
      const ErrorParts parts = PartsOf(file.status());
      return Bad(
          tensor, fmt::format("file '{}': {}", location.file, parts.what),
          parts.fix.empty() ? fmt::format("put the data as a regular file below '{}'", folders_.search.front()) : parts.fix);
    }
    auto source = std::make_shared<SourceFile>(*std::move(file), location.file, opened_.size() < kMaxKeptOpen);
    found = opened_.emplace(location.file, std::move(source)).first;
  }
  const std::shared_ptr<const SourceFile>& file = found->second;
  MGE_RETURN_IF_ERROR(CheckRange(tensor, location, bytes, file->size()));
  absl::StatusOr<Tensor> out = TensorFromFile(dtype, shape, file, location.offset, allocator);
  if (ErrorId(out.status()) != errors::kFileAccess.id) return out;
  return Bad(tensor, fmt::format("file '{}': {}", location.file, PartsOf(out.status()).what), PartsOf(out.status()).fix);
}

}  // namespace mge::onnx
