// SPDX-License-Identifier: Apache-2.0
// The field numbers and enumerations of onnx.proto that are read or written here.
#pragma once

#include <cstdint>

namespace mge::onnx {

namespace field {
namespace model {
enum : uint32_t {
  kIrVersion = 1,
  kProducerName = 2,
  kProducerVersion = 3,
  kDomain = 4,
  kModelVersion = 5,
  kDoc = 6,
  kGraph = 7,
  kOpsetImport = 8,
  kMetadata = 14,
  kFunctions = 25
};
}
namespace opset {
enum : uint32_t { kDomain = 1, kVersion = 2 };
}
namespace entry {  // StringStringEntryProto
enum : uint32_t { kKey = 1, kValue = 2 };
}
namespace graph {
enum : uint32_t { kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12, kSparseInitializer = 15 };
}
namespace node {
enum : uint32_t {
  kInput = 1,
  kOutput = 2,
  kName = 3,
  kOpType = 4,
  kAttribute = 5,
  kDomain = 7,
  kOverload = 8,
  kMetadata = 9
};
}
namespace attribute {
enum : uint32_t {
  kName = 1,
  kFloat = 2,
  kInt = 3,
  kText = 4,
  kTensor = 5,
  kGraph = 6,
  kFloats = 7,
  kInts = 8,
  kTexts = 9,
  kTensors = 10,
  kGraphs = 11,
  kType = 14,
  kTypes = 15,
  kKind = 20,
  kReference = 21,
  kSparse = 22,
  kSparses = 23
};
}
namespace value_info {
enum : uint32_t { kName = 1, kType = 2 };
}
namespace type {
enum : uint32_t { kTensor = 1, kSequence = 4, kMap = 5, kOpaque = 7, kSparse = 8, kOptional = 9 };
}
namespace tensor_type {
enum : uint32_t { kElement = 1, kShape = 2 };
}
namespace nested_type {  // TypeProto.Sequence, TypeProto.Optional
enum : uint32_t { kElement = 1 };
}
namespace map_type {  // TypeProto.Map
enum : uint32_t { kKey = 1, kValue = 2 };
}
namespace shape {
enum : uint32_t { kDim = 1 };
}
namespace dim {
enum : uint32_t { kValue = 1, kParam = 2 };
}
namespace tensor {
enum : uint32_t {
  kDims = 1,
  kDataType = 2,
  kSegment = 3,
  kFloats = 4,
  kInt32s = 5,
  kTexts = 6,
  kInt64s = 7,
  kName = 8,
  kRaw = 9,
  kDoubles = 10,
  kUint64s = 11,
  kExternal = 13,
  kLocation = 14
};
}
namespace sparse {
enum : uint32_t { kValues = 1, kIndices = 2, kDims = 3 };
}
namespace function {
enum : uint32_t {
  kName = 1,
  kInput = 4,
  kOutput = 5,
  kAttribute = 6,
  kNode = 7,
  kOpsetImport = 9,
  kDomain = 10,
  kDefault = 11,
  kOverload = 13
};
}
namespace sequence {
enum : uint32_t { kName = 1, kKind = 2, kTensors = 3, kSparses = 4, kSequences = 5, kMaps = 6, kOptionals = 7 };
}
namespace map {
enum : uint32_t { kName = 1, kKeyType = 2, kKeys = 3, kTextKeys = 4, kValues = 5 };
}
namespace optional {
enum : uint32_t { kName = 1, kKind = 2, kTensor = 3, kSparse = 4, kSequence = 5, kMap = 6, kOptional = 7 };
}
}  // namespace field

// AttributeProto.AttributeType
enum class AttributeKind : int64_t {
  kUndefined = 0,
  kFloat,
  kInt,
  kText,
  kTensor,
  kGraph,
  kFloats,
  kInts,
  kTexts,
  kTensors,
  kGraphs,
  kSparse,
  kSparses,
  kType,
  kTypes,
};

// TensorProto.DataLocation
inline constexpr int64_t kLocationDefault = 0;
inline constexpr int64_t kLocationExternal = 1;

}  // namespace mge::onnx
