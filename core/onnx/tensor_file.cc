// SPDX-License-Identifier: Apache-2.0
#include "core/onnx/tensor_file.h"

#include <cstring>
#include <protozero/pbf_writer.hpp>

#include "core/base/errors.h"
#include "core/base/input_file.h"
#include "core/base/narrow.h"
#include "core/graph/attribute.h"
#include "core/onnx/fields.h"
#include "core/onnx/tensor_proto.h"
#include "fmt/format.h"

namespace mge::onnx {
namespace {

constexpr int64_t kMaxFileBytes = (int64_t{1} << 31) - 1;

// SequenceProto.DataType and OptionalProto.DataType
constexpr int64_t kHoldsTensors = 1;
constexpr int64_t kHoldsSequence = 3;
constexpr int64_t kHoldsMaps = 4;

absl::Status Unsupported(const WireSource& source, std::string_view what) {
  return Fail(errors::kUnsupportedType, fmt::format("{} are not supported", what), {.where = source.place});
}

absl::StatusOr<std::vector<Tensor>> ReadSequence(const WireSource& source, const TensorDecoder& decoder, Bytes message,
                                                 std::string& name) {
  std::vector<Tensor> out;
  WireReader reader(source, "SequenceProto", message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::sequence::kName: name = std::string(reader.Text()); break;
      case field::sequence::kKind:
        if (int64_t kind = reader.Int(); kind > kHoldsTensors) {
          return Unsupported(source, "sequences of anything but tensors");
        }
        break;
      case field::sequence::kTensors: {
        MGE_ASSIGN_OR_RETURN(NamedTensor tensor, decoder.Dense(reader.Message()));
        out.push_back(std::move(tensor.tensor));
        break;
      }
      case field::sequence::kSparses:
      case field::sequence::kSequences:
      case field::sequence::kMaps:
      case field::sequence::kOptionals: return Unsupported(source, "sequences of anything but tensors");
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return out;
}

// Appends the keys and the values of a map to `out`.
absl::Status ReadMap(const WireSource& source, const TensorDecoder& decoder, Bytes message, std::string& name,
                     std::vector<Tensor>& out) {
  Ints ints;
  Texts texts;
  Bytes values;
  WireReader reader(source, "MapProto", message);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::map::kName: name = std::string(reader.Text()); break;
      case field::map::kKeys: reader.AppendInts(ints); break;
      case field::map::kTextKeys: texts.emplace_back(reader.Text()); break;
      case field::map::kValues: values = reader.Message(); break;
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  std::string inner_name;
  MGE_ASSIGN_OR_RETURN(std::vector<Tensor> elements, ReadSequence(source, decoder, values, inner_name));
  const size_t count = texts.empty() ? ints.size() : texts.size();
  const DType dtype = elements.empty() ? DType::kF32 : elements[0].dtype();
  MGE_ASSIGN_OR_RETURN(Tensor joined, Tensor::Create(dtype, {static_cast<int64_t>(count)}));
  bool valid = elements.size() == count && (texts.empty() || ints.empty());
  for (size_t i = 0; valid && i < count; ++i) {
    valid = elements[i].dtype() == dtype && elements[i].elements() == 1;
    if (!valid) break;
    if (dtype == DType::kString) {
      joined.MutableData<std::string>()[i] = elements[i].Data<std::string>()[0];
    } else {
      const auto size = static_cast<size_t>(ElementBytes(dtype));
      std::memcpy(static_cast<std::byte*>(joined.mutable_data()) + i * size, elements[i].data(), size);
    }
  }
  if (!valid) return reader.Error("a map needs keys of one type, and for each key a value of one element and one type");
  out.push_back(texts.empty() ? Tensor::Vector<int64_t>(ints) : Tensor::Vector<std::string>(texts));
  out.push_back(std::move(joined));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Tensor>> ReadMaps(const WireSource& source, const TensorDecoder& decoder, std::string& name) {
  std::vector<Tensor> out;
  WireReader reader(source, "SequenceProto", source.bytes);
  while (reader.Next()) {
    if (reader.field() == field::sequence::kMaps) {
      std::string inner_name;
      MGE_RETURN_IF_ERROR(ReadMap(source, decoder, reader.Message(), inner_name, out));
    } else if (reader.field() == field::sequence::kName) {
      name = std::string(reader.Text());
    } else if (reader.field() == field::sequence::kKind) {
      const int64_t kind = reader.Int();
      if (kind != 0 && kind != kHoldsMaps) return reader.Error("the sequence does not hold maps");
    } else {
      reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return out;
}

absl::StatusOr<NamedValue> ReadOptional(const WireSource& source, const TensorDecoder& decoder, ValueKind kind) {
  NamedValue out;
  out.value.kind = kind;
  out.value.present = false;
  WireReader reader(source, "OptionalProto", source.bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case field::optional::kName: out.name = std::string(reader.Text()); break;
      case field::optional::kKind: {
        int64_t given = reader.Int();
        int64_t wanted = kind == ValueKind::kOptional ? kHoldsTensors : kHoldsSequence;
        if (given != 0 && given != wanted) {
          return reader.Error("the optional holds another kind of value than the model expects",
                              fmt::format("kind {}, expected {}", given, wanted));
        }
        break;
      }
      case field::optional::kTensor: {
        if (kind != ValueKind::kOptional) return reader.Error("the optional holds a tensor, expected a sequence");
        MGE_ASSIGN_OR_RETURN(NamedTensor tensor, decoder.Dense(reader.Message()));
        out.value.tensor = std::move(tensor.tensor);
        out.value.present = true;
        break;
      }
      case field::optional::kSequence: {
        if (kind != ValueKind::kOptionalSequence) {
          return reader.Error("the optional holds a sequence, expected a tensor");
        }
        std::string inner_name;
        MGE_ASSIGN_OR_RETURN(out.value.sequence, ReadSequence(source, decoder, reader.Message(), inner_name));
        out.value.present = true;
        break;
      }
      case field::optional::kSparse:
      case field::optional::kMap:
      case field::optional::kOptional:
        return Unsupported(source, "optionals of anything but tensors and sequences of tensors");
      default: reader.Skip();
    }
  }
  MGE_RETURN_IF_ERROR(reader.status());
  return out;
}

absl::StatusOr<NamedValue> ReadNamedValue(const WireSource& source, ValueKind kind, HostAllocator& allocator) {
  TensorDecoder decoder(source, nullptr, allocator, /*may_view=*/false);
  NamedValue out;
  out.value.kind = kind;
  switch (kind) {
    case ValueKind::kTensor: {
      MGE_ASSIGN_OR_RETURN(NamedTensor tensor, decoder.Dense(source.bytes));
      out.name = std::string(tensor.name);
      out.value.tensor = std::move(tensor.tensor);
      return out;
    }
    case ValueKind::kSequence: {
      MGE_ASSIGN_OR_RETURN(out.value.sequence, ReadSequence(source, decoder, source.bytes, out.name));
      return out;
    }
    case ValueKind::kMap: {
      MGE_RETURN_IF_ERROR(ReadMap(source, decoder, source.bytes, out.name, out.value.sequence));
      return out;
    }
    case ValueKind::kMapSequence: {
      MGE_ASSIGN_OR_RETURN(out.value.sequence, ReadMaps(source, decoder, out.name));
      return out;
    }
    default: return ReadOptional(source, decoder, kind);
  }
}

}  // namespace

absl::StatusOr<NamedValue> ReadValueFile(const std::string& path, ValueKind kind, HostAllocator& allocator) {
  MGE_ASSIGN_OR_RETURN(const InputBytes file, ReadInput(path, kMaxFileBytes, "split the value, or pass it as .npy"));
  return ReadValueBytes(file.bytes, kind, allocator, file.name);
}

absl::StatusOr<NamedValue> ReadValueBytes(Bytes bytes, ValueKind kind, HostAllocator& allocator, std::string_view place) {
  WireSource source;
  source.place = place;
  source.bytes = bytes;
  source.error = &errors::kBadInputFile;
  return ReadNamedValue(source, kind, allocator);
}

std::string TensorBytes(const Tensor& tensor, std::string_view name) {
  std::string out;
  protozero::pbf_writer writer(out);
  writer.add_packed_int64(field::tensor::kDims, tensor.shape().begin(), tensor.shape().end());
  writer.add_int32(field::tensor::kDataType, static_cast<int32_t>(tensor.dtype()));
  if (tensor.dtype() == DType::kString) {
    for (const std::string& text : tensor.Data<std::string>()) writer.add_bytes(field::tensor::kTexts, text);
  } else if (NarrowBits(tensor.dtype()) > 0) {
    const std::vector<uint8_t> packed = PackNarrow(tensor);
    writer.add_bytes(field::tensor::kRaw, reinterpret_cast<const char*>(packed.data()), packed.size());
  } else {
    writer.add_bytes(field::tensor::kRaw, static_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  }
  writer.add_string(field::tensor::kName, name.data(), name.size());
  return out;
}

absl::Status WriteTensorFile(const std::string& path, const Tensor& tensor, std::string_view name) {
  if (tensor.bytes() > kMaxFileBytes - 4096) {
    return Fail(errors::kLimit, fmt::format("tensor '{}' of {} bytes is too large for a .pb file", name, tensor.bytes()),
                {.fix = "write it as .npy"});
  }
  return WriteFileAtomically(path, AsBytes(TensorBytes(tensor, name)));
}

}  // namespace mge::onnx
