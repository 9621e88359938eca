// SPDX-License-Identifier: Apache-2.0
// Walks one protobuf message field by field. Bad bytes are an error with their offset, never an
// exception.
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
// An error sticks: after it, getters answer empty values and Next() answers false. A field that is
// known with another wire type is an error; unknown fields are skipped as bytes, whatever they
// hold.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/graph/attribute.h"

namespace mge::onnx {

// Where bytes come from: what an error needs to name the place, and what a view needs to keep them
// alive.
struct WireSource {
  std::string place;  // the file's name; may be empty
  Bytes bytes;        // the whole file
  std::shared_ptr<const void> owner;
  /*nullable*/ const MappedFile* file = nullptr;  // what `owner` keeps, if it is a file
  const ErrorRow* error = &errors::kMalformedModel;

  int64_t OffsetOf(Bytes part) const { return part.data() - bytes.data(); }
};

class WireReader {
 public:
  // `message` is a part of source.bytes. `type` names the message in errors. Both outlive the
  // reader.
  WireReader(const WireSource& source, const char* type, Bytes message);

  bool Next();
  uint32_t field() const { return field_; }

  int64_t Int();
  float Float();
  std::string_view Text();
  Bytes Message();
  void Skip();

  // The value's bytes without tag and length: of a repeated number, one element or a packed run of
  // them. `element` is the wire type of an unpacked element.
  enum class Packed { kVarint, kFixed32, kFixed64 };
  Bytes Run(Packed element);
  // The same, decoded and appended.
  void AppendInts(Ints& out);
  void AppendFloats(Floats& out);

  const absl::Status& status() const { return status_; }
  // An error of this message's, at its first byte.
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
  Bytes rest_;  // from the present field's value on
  uint32_t field_ = 0;
  uint32_t wire_type_ = 0;
  absl::Status status_;
};

// One varint from the front of `run`, which it shortens; false if it is cut off or longer than ten
// bytes.
bool TakeVarint(Bytes* run, uint64_t* value);

// Decodes varints to the end of `run`, or until out(value) answers false; false if one is cut off
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
