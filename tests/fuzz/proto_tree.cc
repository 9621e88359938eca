// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/proto_tree.h"

#include "core/onnx/fields.h"

namespace mge::fuzz {
namespace {

namespace field = onnx::field;

struct Nesting {
  MessageType outer;
  uint32_t number;
  MessageType inner;
};
constexpr Nesting kNesting[] = {
    {MessageType::kModel, field::model::kGraph, MessageType::kGraph},
    {MessageType::kModel, field::model::kOpsetImport, MessageType::kOpset},
    {MessageType::kModel, field::model::kFunctions, MessageType::kFunction},
    {MessageType::kFunction, field::function::kNode, MessageType::kNode},
    {MessageType::kFunction, field::function::kOpsetImport, MessageType::kOpset},
    {MessageType::kGraph, field::graph::kNode, MessageType::kNode},
    {MessageType::kGraph, field::graph::kInitializer, MessageType::kTensor},
    {MessageType::kGraph, field::graph::kInput, MessageType::kValueInfo},
    {MessageType::kGraph, field::graph::kOutput, MessageType::kValueInfo},
    {MessageType::kNode, field::node::kAttribute, MessageType::kAttribute},
    {MessageType::kAttribute, field::attribute::kTensor, MessageType::kTensor},
    {MessageType::kAttribute, field::attribute::kGraph, MessageType::kGraph},
    {MessageType::kValueInfo, field::value_info::kType, MessageType::kType},
    {MessageType::kType, field::type::kTensor, MessageType::kTensorType},
    {MessageType::kTensorType, field::tensor_type::kShape, MessageType::kShape},
    {MessageType::kShape, field::shape::kDim, MessageType::kDim},
};

bool TakeVarint(std::string_view* in, uint64_t* out) {
  *out = 0;
  for (int shift = 0; shift < 64 && !in->empty(); shift += 7) {
    auto byte = static_cast<unsigned char>((*in)[0]);
    in->remove_prefix(1);
    *out |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

void AddVarint(uint64_t value, std::string* out) {
  for (; value >= 128; value >>= 7) out->push_back(static_cast<char>(value | 128));
  out->push_back(static_cast<char>(value));
}

}  // namespace

Field* Message::Find(uint32_t number) {
  for (Field& f : fields) {
    if (f.number == number) return &f;
  }
  return nullptr;
}

std::vector<size_t> Message::All(uint32_t number) const {
  std::vector<size_t> out;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].number == number) out.push_back(i);
  }
  return out;
}

std::string Message::Text(uint32_t number) const {
  std::vector<size_t> places = All(number);
  return places.empty() ? "" : fields[places.back()].bytes;
}

void Message::SetVarint(uint32_t number, uint64_t value) {
  Field* f = Find(number);
  if (!f) f = &fields.emplace_back();
  *f = {.number = number, .wire = 0, .varint = value};
}

void Message::SetBytes(uint32_t number, std::string value) {
  Field* f = Find(number);
  if (!f) f = &fields.emplace_back();
  *f = {.number = number, .wire = 2, .bytes = std::move(value)};
}

std::optional<Message> ParseMessage(std::string_view bytes, MessageType type) {
  Message out = {type, {}};
  while (!bytes.empty()) {
    uint64_t key, size;
    if (!TakeVarint(&bytes, &key)) return std::nullopt;
    Field f = {.number = static_cast<uint32_t>(key >> 3), .wire = static_cast<uint32_t>(key & 7)};
    if (f.wire == 0) {
      if (!TakeVarint(&bytes, &f.varint)) return std::nullopt;
    } else {
      size = f.wire == 1 ? 8 : 4;
      if (f.wire == 2 && !TakeVarint(&bytes, &size)) return std::nullopt;
      if ((f.wire != 1 && f.wire != 2 && f.wire != 5) || size > bytes.size()) return std::nullopt;
      f.bytes = std::string(bytes.substr(0, size));
      bytes.remove_prefix(size);
    }
    for (const Nesting& n : kNesting) {
      if (n.outer != type || n.number != f.number || f.wire != 2) continue;
      std::optional<Message> inner = ParseMessage(f.bytes, n.inner);
      if (!inner) return std::nullopt;
      f.message = std::make_unique<Message>(std::move(*inner));
      f.bytes.clear();
    }
    out.fields.push_back(std::move(f));
  }
  return out;
}

std::string Serialize(const Message& message) {
  std::string out;
  for (const Field& f : message.fields) {
    AddVarint(uint64_t{f.number} << 3 | f.wire, &out);
    if (f.wire == 0) {
      AddVarint(f.varint, &out);
      continue;
    }
    const std::string bytes = f.message ? Serialize(*f.message) : f.bytes;
    if (f.wire == 2) AddVarint(bytes.size(), &out);
    out += bytes;
  }
  return out;
}

void Collect(Message& message, std::vector<Message*>* out) {
  out->push_back(&message);
  for (Field& f : message.fields) {
    if (f.message) Collect(*f.message, out);
  }
}

}  // namespace mge::fuzz
