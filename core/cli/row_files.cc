// SPDX-License-Identifier: Apache-2.0
#include "core/cli/row_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <utility>

#include "fmt/format.h"

namespace mge::cli {
namespace {

constexpr size_t kMagicBytes = 6, kMaxHeaderBytes = 1 << 16;

// Reads exactly so many bytes. Returns false after an error, or at the end of the file.
bool ReadAt(int fd, int64_t place, char* to, size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = pread(fd, to, bytes, place);
    if (got <= 0 && (got == 0 || errno != EINTR)) return false;
    if (got < 0) continue;
    to += got;
    place += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// Opens a file for reading. Returns nullptr if that fails.
std::shared_ptr<const int> OpenToRead(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  return {new int(fd), [](const int* p) {
            close(*p);
            delete p;
          }};
}

// The beginning of a .npy file.
struct Header {
  std::string bytes;                    // all before the elements
  size_t count_at = 0, count_size = 0;  // where the number of rows is
  int64_t rows = 0;
};

// Returns nullopt if the file has no header of format 1 to 3 with at least one dimension.
std::optional<Header> ReadHeader(int fd) {
  char begin[12] = {};
  if (!ReadAt(fd, 0, begin, sizeof begin) || std::memcmp(begin, "\x93NUMPY", kMagicBytes) != 0) return std::nullopt;
  const bool wide = begin[6] > 1;
  auto byte = [&](size_t i) { return size_t{static_cast<unsigned char>(begin[i])}; };
  const size_t length = wide ? byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24 : byte(8) | byte(9) << 8;
  if (length > kMaxHeaderBytes) return std::nullopt;
  Header out;
  out.bytes.resize((wide ? 12 : 10) + length);
  if (!ReadAt(fd, 0, out.bytes.data(), out.bytes.size())) return std::nullopt;
  const size_t shape = out.bytes.find("'shape'");
  const size_t open = shape == std::string::npos ? shape : out.bytes.find('(', shape);
  if (open == std::string::npos) return std::nullopt;
  out.count_at = out.bytes.find_first_not_of(' ', open + 1);
  if (out.count_at == std::string::npos) return std::nullopt;
  const char* const from = out.bytes.data() + out.count_at;
  const auto [end, error] = std::from_chars(from, out.bytes.data() + out.bytes.size(), out.rows);
  if (error != std::errc() || out.rows < 0) return std::nullopt;
  out.count_size = static_cast<size_t>(end - from);
  return out;
}

// Returns the type and the dimensions of one row, read as an array of one row.
Result<Tensor> FirstRow(const Header& header, std::span<const char> row) {
  std::string bytes = header.bytes;
  bytes.replace(header.count_at, header.count_size, std::string(header.count_size - 1, ' ') + "1");
  bytes.append(row.data(), row.size());
  return Tensor::ReadNpyBytes(bytes.data(), bytes.size());
}

}  // namespace

Status RowFiles::Open(const std::vector<std::string>& paths, RowFiles* out, std::string* problem) {
  for (const std::string& path : paths) {
    if (Status s = out->Add(path, problem); !s.ok() || !problem->empty()) return s;
  }
  return {};
}

Status RowFiles::Add(const std::string& path, std::string* problem) {
  File file = {path, OpenToRead(path), rows(), rows(), 0};
  const int fd = file.fd ? *file.fd : -1;
  const int64_t size = file.fd ? lseek(fd, 0, SEEK_END) : -1;
  const std::optional<Header> header = size < 0 ? std::nullopt : ReadHeader(fd);
  if (!header) {
    if (Status s = Tensor::Read(path).status(); !s.ok()) return s;  // says what is wrong
    *problem = fmt::format("{}: its array has no rows", path);
    return {};
  }
  file.data = static_cast<int64_t>(header->bytes.size());
  file.end = file.begin + header->rows;
  if (header->rows == 0) return {};
  const auto row_bytes = static_cast<size_t>((size - file.data) / header->rows);
  std::vector<char> bytes(row_bytes);
  Tensor row;
  if (!ReadAt(fd, file.data, bytes.data(), row_bytes)) return Tensor::Read(path).status();
  if (Status s = FirstRow(*header, bytes).MoveTo(row); !s.ok()) return Tensor::Read(path).status();
  const auto dims = row.dims();
  const bool is_first = files_.empty();
  const std::vector<int64_t> row_dims(dims.begin() + 1, dims.end());
  const bool as_in_file = row.dtype() != MGE_DTYPE_STRING && row.bytes() == row_bytes &&
                          std::memcmp(row.raw_data(), bytes.data(), row_bytes) == 0 &&
                          header->bytes.find("'fortran_order': True") == std::string::npos;
  if (!as_in_file) {
    *problem = fmt::format("{}: its elements are texts, big-endian, or in the order of columns", path);
  } else if (static_cast<int64_t>(row_bytes) * header->rows != size - file.data) {
    return Tensor::Read(path).status();
  } else if (!is_first && (row.dtype() != dtype_ || row_dims != row_dims_)) {
    *problem = fmt::format("{}: its rows are not those of {}", path, files_[0].path);
  }
  if (!problem->empty()) return {};
  dtype_ = row.dtype();
  row_dims_ = row_dims;
  row_bytes_ = row_bytes;
  files_.push_back(std::move(file));
  return {};
}

Status RowFiles::Copy(std::span<const int64_t> numbers, char* to) const {
  for (const int64_t number : numbers) {
    const auto file = std::ranges::upper_bound(files_, number, {}, &File::end);
    const int64_t place = file->data + (number - file->begin) * static_cast<int64_t>(row_bytes_);
    while (!ReadAt(*file->fd, place, to, row_bytes_)) {  // read the file as a whole, which says what is wrong
      if (Status s = Tensor::Read(file->path).status(); !s.ok()) return s;
      if (Status s = Tensor::Read(fmt::format("/proc/self/fd/{}", *file->fd)).status(); !s.ok()) return s;
    }
    to += row_bytes_;
  }
  return {};
}

std::vector<std::string> FilesOfArray(const std::string& folder, const std::string& name) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string file = entry.path().filename().string();
    if (!file.ends_with(".npy")) continue;
    if (file == name + ".npy" || file.starts_with(name + "-")) out.push_back(entry.path().string());
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace mge::cli
