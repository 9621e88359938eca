// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/type_proto.h"

#include "core/onnx/fields.h"
#include "core/onnx/tensor_proto.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

// Returns whether exporters use the name for any unknown size. Two dimensions with such a name may differ.
bool IsPlaceholder(std::string_view symbol) {
  for (std::string_view name : {"?", "*", "-1", "None", "unknown"}) {
    if (symbol == name) return true;
  }
  return symbol.starts_with("unk__");
}

absl::Status ReadDim(const WireSource& source, Bytes message, TensorType& type) {
  WireReader reader(source, "TensorShapeProto.Dimension", message);
  int64_t size = kUnknownDim;
  std::string_view symbol;
  while (reader.Next()) {
    switch (reader.field()) {
      case field::dim::kValue: size = reader.Int(); break;
      case field::dim::kParam: symbol = reader.Text(); break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (size < kUnknownDim) {
    return Fail(errors::kInvalidTensor, fmt::format("size overflow: dimension {} is {}", type.dims.size(), size),
                {.what = "expected 0 or more, or -1 if it is unknown"});
  }
  if (static_cast<int>(type.dims.size()) >= kMaxRank) {
    return Fail(errors::kInvalidTensor, fmt::format("a rank beyond {} is not supported", kMaxRank));
  }
  type.dims.push_back(size);
  const bool named = size == kUnknownDim && !IsPlaceholder(symbol);
  type.symbols.emplace_back(named ? symbol : std::string_view());
  return absl::OkStatus();
}

absl::StatusOr<TensorType> ReadTensorType(const WireSource& source, Bytes message) {
  TensorType type;
  WireReader reader(source, "TypeProto.Tensor", message);
  while (reader.Next()) {
    if (reader.field() == field::tensor_type::kElement) {
      int64_t element = reader.Int();
      if (element == 0) continue;
      MGE_ASSIGN_OR_RETURN(type.dtype, ElementType(element));
    } else if (reader.field() == field::tensor_type::kShape) {
      type.has_rank = true;
      WireReader shape(source, "TensorShapeProto", reader.Message());
      while (shape.Next()) {
        if (shape.field() == field::shape::kDim) {
          MGE_RETURN_IF_ERROR(ReadDim(source, shape.Message(), type));
        } else {
          shape.Skip();
        }
      }
      MGE_RETURN_IF_ERROR(shape.status());
    } else {
      reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (type.IsStatic()) MGE_RETURN_IF_ERROR(NumBytes(type.dtype, type.dims).status());
  bool named = false;
  for (const std::string& symbol : type.symbols) named = named || !symbol.empty();
  if (!named) type.symbols.clear();
  return type;
}

absl::Status UnsupportedType(std::string_view what) {
  return Fail(errors::kUnsupportedType, fmt::format("values of type {} are not supported", what));
}

}  // namespace

absl::StatusOr<ValueType> ReadTypeProto(const WireSource& source, Bytes message) {
  ValueType out;
  // optional(sequence(tensor)) and sequence(map(tensor)) are the deepest supported types. Each iteration goes one level down.
  for (int level = 0;; ++level) {
    uint32_t kind = 0;
    Bytes inner;
    WireReader reader(source, "TypeProto", message);
    while (reader.Next()) {
      switch (reader.field()) {
        case field::type::kTensor:
        case field::type::kSequence:
        case field::type::kOptional:
        case field::type::kMap:
        case field::type::kOpaque:
        case field::type::kSparse:
          kind = reader.field();
          inner = reader.Message();
          break;
        default: reader.Skip();
      }
    }
    MGE_RETURN_IF_ERROR(reader.status());
    switch (kind) {
      case 0: return out;
      case field::type::kTensor: {
        MGE_ASSIGN_OR_RETURN(out.type, ReadTensorType(source, inner));
        // A map declares the type of one value. The vector of its values has any length.
        if (out.kind == ValueKind::kMap || out.kind == ValueKind::kMapSequence) out.type = {.dtype = out.type.dtype};
        return out;
      }
      case field::type::kMap:
        if (out.kind != ValueKind::kTensor && out.kind != ValueKind::kSequence)
          return UnsupportedType("map in a map or an optional");
        out.kind = out.kind == ValueKind::kSequence ? ValueKind::kMapSequence : ValueKind::kMap;
        break;
      case field::type::kOpaque: return UnsupportedType("opaque");
      case field::type::kSparse: return UnsupportedType("sparse tensor");
      case field::type::kOptional:
        if (level != 0) return UnsupportedType("optional within another type");
        out.kind = ValueKind::kOptional;
        break;
      default:
        if (out.kind != ValueKind::kTensor && out.kind != ValueKind::kOptional) {
          return UnsupportedType(out.kind == ValueKind::kMap ? "map of sequences" : "sequence of sequences");
        }
        out.kind = out.kind == ValueKind::kOptional ? ValueKind::kOptionalSequence : ValueKind::kSequence;
    }
    WireReader nested(source, "TypeProto", inner);
    message = {};
    const uint32_t element =
        kind == field::type::kMap ? uint32_t{field::map_type::kValue} : uint32_t{field::nested_type::kElement};
    while (nested.Next()) {
      if (nested.field() == element) {
        message = nested.Message();
      } else {
        nested.Skip();
      }
    }
    MGE_RETURN_IF_ERROR(nested.status());
  }
}

absl::StatusOr<DeclaredValue> ReadValueInfo(const WireSource& source, Bytes message) {
  DeclaredValue out;
  Bytes type;
  WireReader reader(source, "ValueInfoProto", message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::value_info::kName: out.name = reader.Text(); break;
      case field::value_info::kType:
        type = reader.Message();
        out.has_type = true;
        break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  if (!out.has_type) return out;
  absl::StatusOr<ValueType> read = ReadTypeProto(source, type);
  if (!read.ok()) return AddWhere(AddWhere(read.status(), fmt::format("value '{}'", out.name)), source.place);
  out.type = *std::move(read);
  return out;
}

std::string ValueTypeText(const ValueType& type) {
  std::string out = fmt::format("tensor({})", DTypeName(type.type.dtype));
  bool optional = type.kind == ValueKind::kOptional || type.kind == ValueKind::kOptionalSequence;
  const bool maps = type.kind == ValueKind::kMap || type.kind == ValueKind::kMapSequence;
  if (maps) out = fmt::format("map({})", out);
  if (type.kind == ValueKind::kSequence || type.kind == ValueKind::kOptionalSequence || type.kind == ValueKind::kMapSequence)
    out = fmt::format("seq({})", out);
  if (optional) out = fmt::format("optional({})", out);
  return out;
}

}  // namespace mge::onnx
