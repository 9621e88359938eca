// SPDX-License-Identifier: Apache-2.0
// Reads a protobuf message field by field. Malformed bytes cause an error with their offset; no function
// throws.
//
//   WireReader reader(source, "TensorProto", bytes);
//   while (reader.Next()) {
//     switch (reader.field()) {
//       case field::tensor::kName: name = reader.Text(); break;
//       default: reader.Skip();
//     }
//   }
//   MGE_RETURN_IF_ERROR(reader.status());
//
// After an error, getters return empty values and Next() returns false. A known field with a wrong wire
// type is an error. Unknown fields are skipped, and their contents are not checked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/source_file.h"
#include "core/graph/attribute.h"

namespace mge::onnx {

// The source of the bytes: its name and size for errors, and the owner of its memory for views.
struct WireSource {
  std::string place;  // the file's name; may be empty
  Bytes bytes;        // the whole file; of a model's file, the structure only (structure.h)
  std::shared_ptr<const void> owner;
  /*nullable*/ std::shared_ptr<const SourceFile> file = nullptr;  // the file that has the elements of large tensors
  const ErrorRow* error = &errors::kMalformedModel;

  int64_t OffsetOf(Bytes part) const { return part.data() - bytes.data(); }
};

class WireReader {
 public:
  // `message` must be a part of source.bytes. `type` is the name of the message for errors. All arguments must
  // outlive the reader.
  WireReader(const WireSource& source, const char* type, Bytes message);

  // Goes to the next field. Returns false at the end of the message and after an error. Exactly one of the functions
  // below must then read or skip the field's value.
  bool Next();
  uint32_t field() const { return field_; }

  int64_t Int();
  float Float();
  std::string_view Text();
  Bytes Message();
  void Skip();
  Bytes Whole();  // skips the value and returns the bytes of the field, with its tag

  // Returns the bytes of a repeated number's field, without tag and length: one element or a packed run of elements.
  // `element` is the wire type of an unpacked element.
  enum class Packed { kVarint, kFixed32, kFixed64 };
  Bytes Run(Packed element);
  // Decodes the same and appends the elements to `out`.
  void AppendInts(Ints& out);
  void AppendFloats(Floats& out);

  const absl::Status& status() const { return status_; }
  // Returns an error about this message. Its place is the message's first byte.
  absl::Status Error(std::string title, std::string what = {}) const;

 private:
  uint64_t Varint();
  Bytes Take(uint64_t size);
  Bytes Delimited();
  bool Expect(uint32_t wire_type);
  void SetError(std::string what);

  const WireSource& source_;
  const char* type_;
  Bytes message_;
  Bytes rest_;  // from the current field's value to the end of the message
  const std::byte* field_begin_ = nullptr;
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  absl::Status status_;
};

// Removes one varint from the front of `run`. Returns false if the varint is cut off or longer than ten
// bytes.
bool TakeVarint(Bytes* run, uint64_t* value);

// Calls out(value) for each varint in `run`, until out returns false. Returns false if a varint is cut off
// or too long.
template <typename F>
bool ForEachVarint(Bytes run, F out) {
  uint64_t value;
  while (!run.empty()) {
    if (!TakeVarint(&run, &value)) return false;
    if (!out(value)) return true;
  }
  return true;
}

}  // namespace mge::onnx
