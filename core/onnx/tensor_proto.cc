// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/tensor_proto.h"

#include <cstring>
#include <limits>

#include "core/base/lazy_bytes.h"
#include "core/base/narrow.h"
#include "core/onnx/fields.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

namespace f = field::tensor;

// The fields of a TensorProto, with its data not decoded.
struct Parts {
  std::string_view name;
  Ints dims;
  int64_t data_type = 0;
  int64_t location = kLocationDefault;
  Bytes raw;
  uint32_t typed_field = 0;  // the field that holds typed data, 0 if none
  std::vector<Bytes> runs;   // its packed runs or single elements
  std::vector<std::string_view> texts;
  ExternalEntries external;
};

std::string_view TypedFieldName(uint32_t number) {
  switch (number) {
    case f::kFloats: return "float_data";
    case f::kInt32s: return "int32_data";
    case f::kTexts: return "string_data";
    case f::kInt64s: return "int64_data";
    case f::kDoubles: return "double_data";
    default: return "uint64_data";
  }
}

uint32_t TypedFieldOf(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kC64: return f::kFloats;
    case DType::kF64:
    case DType::kC128: return f::kDoubles;
    case DType::kI64: return f::kInt64s;
    case DType::kU32:
    case DType::kU64: return f::kUint64s;
    case DType::kString: return f::kTexts;
    default: return f::kInt32s;
  }
}

absl::Status Invalid(const Parts& parts, std::string what) {
  return Fail(errors::kInvalidTensor, fmt::format("tensor '{}' is invalid", parts.name), {.what = std::move(what)});
}

absl::StatusOr<Parts> ReadParts(const WireSource& source, Bytes message) {
  Parts parts;
  WireReader reader(source, "TensorProto", message);
  absl::Status fault;
  auto typed = [&](Bytes run) {
    if (run.empty()) return;
    if (parts.typed_field != 0 && parts.typed_field != reader.field() && fault.ok()) {
      fault = reader.Error("a tensor holds two kinds of data",
                           fmt::format("{} and {}", TypedFieldName(parts.typed_field), TypedFieldName(reader.field())));
    }
    parts.typed_field = reader.field();
    parts.runs.push_back(run);
  };
  while (fault.ok() && reader.Next()) {
    switch (reader.field()) {
      case f::kDims: reader.AppendInts(parts.dims); break;
      case f::kDataType: parts.data_type = reader.Int(); break;
      case f::kName: parts.name = reader.Text(); break;
      case f::kRaw: parts.raw = reader.Message(); break;
      case f::kFloats: typed(reader.Run(WireReader::Packed::kFixed32)); break;
      case f::kDoubles: typed(reader.Run(WireReader::Packed::kFixed64)); break;
      case f::kInt32s:
      case f::kInt64s:
      case f::kUint64s: typed(reader.Run(WireReader::Packed::kVarint)); break;
      case f::kTexts: parts.texts.push_back(reader.Text()); break;
      case f::kLocation: parts.location = reader.Int(); break;
      case f::kSegment:
        return Fail(errors::kUnsupportedFeature, "tensors in segments are not supported", {.where = source.place});
      case f::kExternal: {
        WireReader entry(source, "StringStringEntryProto", reader.Message());
        std::string_view key, value;
        while (entry.Next()) {
          if (entry.field() == field::entry::kKey) {
            key = entry.Text();
          } else if (entry.field() == field::entry::kValue) {
            value = entry.Text();
          } else {
            entry.Skip();
          }
        }
        MGE_RETURN_IF_ERROR(entry.status());
        if (parts.external.size() >= 16) return Invalid(parts, "it has more than 16 entries of external data");
        parts.external.emplace_back(key, value);
        break;
      }
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(fault);
  MGE_RETURN_IF_ERROR(reader.status());
  if (!parts.texts.empty() && parts.typed_field != 0) {
    return Invalid(parts, fmt::format("it holds both string_data and {}", TypedFieldName(parts.typed_field)));
  }
  if (!parts.texts.empty()) parts.typed_field = f::kTexts;
  return parts;
}

// Decodes the numbers of a varint field into elements of type T. Each must be in [low, high].
template <typename T, typename Wide>
absl::Status DecodeRuns(const Parts& parts, Wide low, Wide high, std::span<T> out) {
  size_t n = 0;
  Wide outside = 0;
  bool in_range = true;
  for (Bytes run : parts.runs) {
    bool whole = ForEachVarint(run, [&](uint64_t bits) {
      Wide value = static_cast<Wide>(bits);
      if (value < low || value > high) {
        outside = value;
        in_range = false;
        return false;
      }
      if (n < out.size()) out[n] = static_cast<T>(value);
      ++n;
      return true;
    });
    if (!whole) return Invalid(parts, fmt::format("element {} of its data is cut off or too long", n));
    if (!in_range) {
      return Invalid(parts, fmt::format("element {} is {}, outside of [{}, {}]", n, outside, low, high));
    }
  }
  if (n != out.size()) return Invalid(parts, fmt::format("expected {} elements, got {}", out.size(), n));
  return absl::OkStatus();
}

template <typename T>
absl::Status DecodeAs(const Parts& parts, Tensor& out) {
  using Limits = std::numeric_limits<T>;
  using Wide = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  // int32_data is signed on the wire, also for unsigned element types.
  if constexpr (sizeof(T) < 4 && !std::is_signed_v<T>) {
    return DecodeRuns<T, int64_t>(parts, 0, Limits::max(), out.MutableData<T>());
  } else {
    return DecodeRuns<T, Wide>(parts, Limits::min(), Limits::max(), out.MutableData<T>());
  }
}

absl::Status DecodeVarints(const Parts& parts, Tensor& out) {
  switch (out.dtype()) {
    case DType::kI8: return DecodeAs<int8_t>(parts, out);
    case DType::kI16: return DecodeAs<int16_t>(parts, out);
    case DType::kI32: return DecodeAs<int32_t>(parts, out);
    case DType::kI64: return DecodeAs<int64_t>(parts, out);
    case DType::kU8:
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2:
    case DType::kF8E5M2FNUZ:
    case DType::kF8E8M0: return DecodeAs<uint8_t>(parts, out);
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16: return DecodeAs<uint16_t>(parts, out);
    case DType::kU32: return DecodeAs<uint32_t>(parts, out);
    case DType::kU64: return DecodeAs<uint64_t>(parts, out);
    case DType::kBool: return DecodeRuns<bool, int64_t>(parts, 0, 1, out.MutableData<bool>());
    default: return absl::InternalError("not a type of varints");
  }
}

absl::StatusOr<Tensor> DecodeTyped(const Parts& parts, DType dtype, const Shape& shape, int64_t n,
                                   HostAllocator& allocator) {
  uint32_t wanted = TypedFieldOf(dtype);
  if (parts.typed_field != 0 && parts.typed_field != wanted) {
    return Invalid(parts, fmt::format("{} is given in {}; expected {}", DTypeName(dtype), TypedFieldName(parts.typed_field),
                                      TypedFieldName(wanted)));
  }
  int64_t present = 0;  // number of bytes; a varint has at least one. Checked before memory for n elements is allocated.
  for (Bytes run : parts.runs) present += static_cast<int64_t>(run.size());
  if (wanted == f::kTexts) {
    present = static_cast<int64_t>(parts.texts.size());
    if (n != present) return Invalid(parts, fmt::format("expected {} strings, got {}", n, present));
  } else if (wanted == f::kFloats || wanted == f::kDoubles) {
    MGE_ASSIGN_OR_RETURN(int64_t bytes, NumBytes(dtype, shape));
    if (bytes != present) return Invalid(parts, fmt::format("expected {} bytes, got {}", bytes, present));
  } else if (n > present) {
    return Invalid(parts, fmt::format("expected {} elements, got at most {}", n, present));
  }
  MGE_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, shape, allocator));
  if (wanted == f::kTexts) {
    std::copy(parts.texts.begin(), parts.texts.end(), tensor.MutableData<std::string>().begin());
  } else if (wanted == f::kFloats || wanted == f::kDoubles) {
    std::byte* to = static_cast<std::byte*>(tensor.mutable_data());
    for (Bytes run : parts.runs) {
      std::memcpy(to, run.data(), run.size());
      to += run.size();
    }
  } else {
    MGE_RETURN_IF_ERROR(DecodeVarints(parts, tensor));
  }
  return tensor;
}

absl::StatusOr<Tensor> Decode(const Parts& parts, const WireSource& source, ExternalFiles* external,
                              HostAllocator& allocator, bool may_view);

// Decodes elements of less than a byte.
absl::StatusOr<Tensor> DecodePacked(const Parts& parts, DType dtype, const WireSource& source, ExternalFiles* external,
                                    HostAllocator& allocator) {
  const Shape shape(parts.dims.begin(), parts.dims.end());
  if (absl::StatusOr<int64_t> bytes = NumBytes(dtype, shape); !bytes.ok()) return Invalid(parts, ErrorTitle(bytes.status()));
  Parts as_bytes = parts;
  as_bytes.data_type = static_cast<int64_t>(DType::kU8);
  as_bytes.dims = {PackedBytes(dtype, Elements(shape))};
  MGE_ASSIGN_OR_RETURN(const Tensor bytes, Decode(as_bytes, source, external, allocator, /*may_view=*/true));
  MGE_ASSIGN_OR_RETURN(Tensor out, Tensor::Create(dtype, shape, allocator));
  UnpackNarrow(dtype, bytes.Data<uint8_t>(), out.MutableData<uint8_t>());
  return out;
}

absl::StatusOr<Tensor> Decode(const Parts& parts, const WireSource& source, ExternalFiles* external,
                              HostAllocator& allocator, bool may_view) {
  if (parts.data_type == 0) return Invalid(parts, "it has no element type");
  if (static_cast<int>(parts.dims.size()) > kMaxRank) {
    return Invalid(parts, fmt::format("it has rank {}; the limit is {}", parts.dims.size(), kMaxRank));
  }
  MGE_ASSIGN_OR_RETURN(DType dtype, ElementType(parts.data_type));
  if (const int bits = NarrowBits(dtype); bits > 0 && bits < 8) {
    return DecodePacked(parts, dtype, source, external, allocator);
  }
  Shape shape(parts.dims.begin(), parts.dims.end());
  absl::StatusOr<int64_t> bytes = NumBytes(dtype, shape);
  if (!bytes.ok()) return Invalid(parts, ErrorTitle(bytes.status()));
  int64_t n = Elements(shape);

  bool has_raw = !parts.raw.empty(), has_typed = parts.typed_field != 0;
  if (parts.location != kLocationDefault && parts.location != kLocationExternal) {
    return Invalid(parts, fmt::format("its data location is {}; expected 0 or 1", parts.location));
  }
  if (has_raw && has_typed) {
    return Invalid(parts, fmt::format("it holds both raw_data and {}", TypedFieldName(parts.typed_field)));
  }
  if (parts.location == kLocationExternal) {
    if (has_raw || has_typed) return Invalid(parts, "it is external but also holds data");
    if (!external) return Fail(errors::kExternalData, fmt::format("tensor '{}' must hold its data itself", parts.name));
    return external->Read(parts.external, parts.name, dtype, shape, allocator);
  }
  if (!parts.external.empty()) return Invalid(parts, "it has external_data, but its data location is not external");
  if (has_raw) {
    if (dtype == DType::kString) return Invalid(parts, "strings must be in string_data, not in raw_data");
    if (static_cast<int64_t>(parts.raw.size()) != *bytes) {
      return Invalid(parts, fmt::format("{}{}: expected {} bytes, got {}", DTypeName(dtype), ShapeText(shape), *bytes,
                                        parts.raw.size()));
    }
    if (source.file && *bytes >= kLazyBytes) {  // only the file has them (structure.h)
      return TensorFromFile(dtype, shape, source.file, source.OffsetOf(parts.raw), allocator);
    }
    // The structure of a file is freed after reading.
    return TensorFromRaw(dtype, shape, parts.raw, may_view && !source.file, source.owner, allocator);
  }
  return DecodeTyped(parts, dtype, shape, n, allocator);
}

}  // namespace

absl::StatusOr<DType> ElementType(int64_t data_type) {
  if (data_type >= 1 && data_type < kDTypeCount) return static_cast<DType>(data_type);
  return Fail(errors::kInvalidTensor, fmt::format("element type {} does not exist", data_type));
}

absl::StatusOr<TensorDecoder::Size> TensorDecoder::SizeOf(Bytes message) const {
  MGE_ASSIGN_OR_RETURN(Parts parts, ReadParts(source_, message));
  MGE_ASSIGN_OR_RETURN(DType dtype, ElementType(parts.data_type));
  MGE_ASSIGN_OR_RETURN(int64_t bytes, NumBytes(dtype, Shape(parts.dims.begin(), parts.dims.end())));
  return Size{parts.name, bytes};
}

absl::StatusOr<NamedTensor> TensorDecoder::Dense(Bytes message) const {
  MGE_ASSIGN_OR_RETURN(Parts parts, ReadParts(source_, message));
  absl::StatusOr<Tensor> tensor = Decode(parts, source_, external_, allocator_, may_view_);
  if (!tensor.ok()) {
    absl::Status status = tensor.status();
    if (ErrorTitle(status).find(parts.name) == std::string::npos) {
      status = AddWhere(status, fmt::format("tensor '{}'", parts.name));
    }
    return AddWhere(status, source_.place);
  }
  return NamedTensor{parts.name, *std::move(tensor)};
}

}  // namespace mge::onnx
