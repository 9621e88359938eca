// SPDX-License-Identifier: Apache-2.0
// Decodes TypeProto and ValueInfoProto.
#pragma once

#include <string>
#include <string_view>

#include "core/graph/graph.h"
#include "core/onnx/wire.h"

namespace mge::onnx {

struct DeclaredValue {
  std::string_view name;  // in the source's bytes
  bool has_type = false;
  ValueType type;
};

// Decodes a TypeProto or ValueInfoProto. Fails with kInvalidTensor for invalid sizes, and with kUnsupportedType for
// maps, sparse tensors and nested sequences.
absl::StatusOr<ValueType> ReadTypeProto(const WireSource& source, Bytes message);
absl::StatusOr<DeclaredValue> ReadValueInfo(const WireSource& source, Bytes message);

// Returns text such as "optional(seq(tensor(float32)))".
std::string ValueTypeText(const ValueType& type);

}  // namespace mge::onnx
