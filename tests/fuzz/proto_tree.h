// SPDX-License-Identifier: Apache-2.0
// An ONNX model as a tree of its messages, which can be changed and written again. Fields that are not messages stay bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mge::fuzz {

enum class MessageType {
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kValueInfo,
  kType,
  kTensorType,
  kShape,
  kDim,
  kOpset,
  kFunction
};

struct Message;

struct Field {
  uint32_t number = 0;
  uint32_t wire = 0;       // 0 varint, 1 fixed 64, 2 delimited, 5 fixed 32
  uint64_t varint = 0;     // wire 0
  std::string bytes = {};  // wires 1, 2 and 5; empty if there is a message
  std::unique_ptr<Message> message = nullptr;
};

struct Message {
  MessageType type;
  std::vector<Field> fields;

  Field* Find(uint32_t number);
  std::vector<size_t> All(uint32_t number) const;  // indices of the fields with this number
  std::string Text(uint32_t number) const;
  void SetVarint(uint32_t number, uint64_t value);
  void SetBytes(uint32_t number, std::string value);
};

// Parses a message. Returns nullopt if the bytes are not protobuf.
std::optional<Message> ParseMessage(std::string_view bytes, MessageType type);
std::string Serialize(const Message& message);

// Appends the message and all nested messages to `out`.
void Collect(Message& message, std::vector<Message*>* out);

}  // namespace mge::fuzz
