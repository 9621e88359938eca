// SPDX-License-Identifier: Apache-2.0
#include "core/base/npy.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "core/base/narrow.h"
#include "core/base/npy_header.h"
#include "core/base/utf8.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeader = 64 << 10;   // a header is a line of text; NumPy's own default limit is 10000
constexpr uintptr_t kViewAlignment = 64;  // as NumPy aligns the elements

absl::Status BadNpy(std::string_view place, std::string what, std::string fix = {}) {
  return Fail(errors::kBadInputFile, "the npy file is malformed",
              {.what = std::move(what), .where = std::string(place), .fix = std::move(fix)});
}

// Reverses the bytes of each unit. A unit is the part to which byte order applies: half of a complex number, or one
// character of text.
void SwapUnits(std::span<std::byte> data, size_t unit) {
  for (size_t i = 0; unit > 1 && i + unit <= data.size(); i += unit) {
    std::reverse(data.begin() + i, data.begin() + i + unit);
  }
}

// Iterates over a column-major array in row-major order. The i-th call of Next() returns the position of the element with
// the row-major index i.
class ColumnMajor {
 public:
  explicit ColumnMajor(std::span<const int64_t> shape) : shape_(shape.begin(), shape.end()), index_(shape.size(), 0) {}
  int64_t Next() {
    int64_t at = 0, stride = 1;
    for (size_t d = 0; d < shape_.size(); ++d) {
      at += index_[d] * stride;
      stride *= shape_[d];
    }
    for (size_t d = shape_.size(); d-- > 0 && ++index_[d] == shape_[d];) index_[d] = 0;
    return at;
  }

 private:
  Shape shape_, index_;
};

// Appends NumPy's text, which is UTF-32 padded with zeros, to `out` as UTF-8. Returns false for an invalid character.
bool DecodeText(Bytes data, bool big_endian, std::string& out) {
  for (size_t i = 0; i + 4 <= data.size(); i += 4) {
    std::byte unit[4];
    std::copy_n(data.begin() + i, 4, unit);
    if (big_endian) std::reverse(unit, unit + 4);
    uint32_t c;
    std::memcpy(&c, unit, 4);
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
    AppendUtf8(c, out);
  }
  out.erase(out.find_last_not_of('\0') + 1);
  return true;
}

}  // namespace

absl::StatusOr<Tensor> ReadNpyBytes(Bytes bytes, std::string_view place, HostAllocator& allocator,
                                    const std::shared_ptr<const void>& owner) {
  if (!AsText(bytes).starts_with(kMagic)) {
    bool zip = AsText(bytes).starts_with("PK\x03\x04"), pickle = AsText(bytes).starts_with("\x80");
    return BadNpy(place, "it does not begin with NumPy's signature",
                  zip      ? "this is an archive; read it as .npz"
                  : pickle ? "pickled objects are never read; save a plain array with numpy.save"
                           : "");
  }
  if (bytes.size() < 10) return BadNpy(place, fmt::format("it ends at byte {}, inside of the header", bytes.size()));
  auto byte = [&](size_t i) { return std::to_integer<size_t>(bytes[i]); };
  size_t version = byte(6), prefix = version == 1 ? 10 : 12;
  if (version < 1 || version > 3 || byte(7) != 0) {
    return BadNpy(place,
                  fmt::format("format version {}.{} is not supported; supported are 1.0, 2.0 and 3.0", version, byte(7)));
  }
  if (bytes.size() < prefix) return BadNpy(place, fmt::format("it ends at byte {}, inside of the header", bytes.size()));
  size_t length = byte(8) | byte(9) << 8;
  if (version > 1) length |= byte(10) << 16 | byte(11) << 24;
  if (length > kMaxHeader || length > bytes.size() - prefix) {
    return BadNpy(place, fmt::format("byte offset 8: the header has {} bytes; {} are left, and the limit is {}", length,
                                     bytes.size() - prefix, kMaxHeader));
  }
  absl::StatusOr<NpyHeader> header = ParseNpyHeader(AsText(bytes.subspan(prefix, length)));
  if (!header.ok()) return AddWhere(header.status(), place);
  Bytes data = bytes.subspan(prefix + length);

  bool text = header->dtype == DType::kString;
  absl::StatusOr<int64_t> n = NumElements(header->shape);
  int64_t wanted;
  if (!n.ok() || !CheckedMul(*n, header->element_bytes, &wanted)) {
    return BadNpy(place, fmt::format("size overflow: the shape is {}", ShapeText(header->shape)));
  }
  if (wanted != static_cast<int64_t>(data.size())) {
    return BadNpy(place, fmt::format("shape {} of '{}' needs {} bytes of data, {} are there", ShapeText(header->shape),
                                     header->descr, wanted, data.size()));
  }
  if (text && header->element_bytes == 0 && *n > (1 << 20)) {
    return BadNpy(place, fmt::format("{} empty strings without any data", *n));
  }
  const bool column_major = header->fortran_order && header->shape.size() > 1;
  const bool converts = text || column_major || header->big_endian || header->dtype == DType::kBool;
  if (owner && !converts && !data.empty() && reinterpret_cast<uintptr_t>(data.data()) % kViewAlignment == 0) {
    return Tensor::View(header->dtype, header->shape, data.data(), owner);
  }
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(header->dtype, header->shape, allocator));
  size_t width = static_cast<size_t>(header->element_bytes);
  if (text || column_major) {
    ColumnMajor at(out.shape());
    auto* to = static_cast<std::byte*>(out.mutable_data());
    for (int64_t i = 0; i < *n; ++i) {
      Bytes element = data.subspan(static_cast<size_t>(column_major ? at.Next() : i) * width, width);
      if (!text) {
        std::memcpy(to + static_cast<size_t>(i) * width, element.data(), width);
      } else if (!DecodeText(element, header->big_endian, out.MutableData<std::string>()[i])) {
        return BadNpy(place, fmt::format("element {} has an invalid Unicode character", i));
      }
    }
  } else if (!data.empty()) {
    std::memcpy(out.mutable_data(), data.data(), data.size());
  }
  if (!text && header->big_endian) {
    bool complex = kComplex.Contains(out.dtype());
    SwapUnits({static_cast<std::byte*>(out.mutable_data()), data.size()}, complex ? width / 2 : width);
  }
  if (out.dtype() == DType::kBool) {
    auto bad = std::find_if(data.begin(), data.end(), [](std::byte b) { return b > std::byte{1}; });
    if (bad != data.end()) {
      return BadNpy(place, fmt::format("element {} of a bool array is byte {}, not 0 or 1", bad - data.begin(),
                                       std::to_integer<int>(*bad)));
    }
  }
  return out;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(const InputBytes file, ReadInput(path, kMaxArrayFileBytes));
  return ReadNpyBytes(file.bytes, file.name, allocator, &allocator == &UnlimitedHostAllocator() ? file.owner : nullptr);
}

absl::StatusOr<std::string> NpyBytes(const Tensor& tensor) {
  if (kNarrow.Contains(tensor.dtype())) {  // npy has the values as float32, int8 or uint8
    const bool integer = kNarrowInteger.Contains(tensor.dtype());
    MGE_ASSIGN_OR_RETURN(const Tensor wide, integer ? WidenedInts(tensor, UnlimitedHostAllocator())
                                                    : NarrowToFloat(tensor, UnlimitedHostAllocator()));
    return NpyBytes(wide);
  }
  std::string descr, data;
  DType dtype = tensor.dtype();
  if (dtype == DType::kBF16) {
    descr = "<f4";
    std::vector<float> wide(tensor.Data<BFloat16>().begin(), tensor.Data<BFloat16>().end());
    data.assign(reinterpret_cast<const char*>(wide.data()), wide.size() * sizeof(float));
  } else if (dtype == DType::kString) {
    std::vector<std::u32string> texts;
    size_t longest = 1;
    for (const std::string& text : tensor.Data<std::string>()) {
      std::optional<std::u32string> wide = Utf8ToUtf32(text);
      if (!wide) {
        return Fail(errors::kUnsupportedType,
                    fmt::format("element {} is not valid UTF-8; npy cannot store it", texts.size()));
      }
      longest = std::max(longest, wide->size());
      texts.push_back(*std::move(wide));
    }
    descr = fmt::format("<U{}", longest);
    for (std::u32string& text : texts) {
      text.resize(longest, U'\0');
      data.append(reinterpret_cast<const char*>(text.data()), longest * 4);
    }
  } else {
    descr = NpyDescr(dtype);
    if (descr.empty()) {
      return Fail(errors::kUnsupportedType, fmt::format("npy has no element type for {}", DTypeName(dtype)));
    }
    data.assign(static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  }
  std::string shape;
  for (int64_t d : tensor.shape()) shape += fmt::format("{},{}", d, tensor.rank() > 1 ? " " : "");
  if (tensor.rank() > 1) shape.resize(shape.size() - 2);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  // The data begins at a multiple of 64.
  header.append(63 - (10 + header.size()) % 64, ' ').append(1, '\n');
  if (header.size() > 0xffff) return Fail(errors::kUnsupportedType, "the shape does not fit into an npy header");
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
  return out + header + data;
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  MGE_ASSIGN_OR_RETURN(std::string bytes, NpyBytes(tensor));
  return WriteFileAtomically(path, AsBytes(bytes));
}

}  // namespace mge
