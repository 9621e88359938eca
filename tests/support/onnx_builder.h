// SPDX-License-Identifier: Apache-2.0
// Builds ONNX models in memory, well-formed or not: every function answers an encoded message.
//
//   Proto model = Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})},
//                                        .inputs = {ValueInfo("x", DType::kF32, {2, 3})},
//                                        .outputs = {ValueInfo("y", DType::kF32, {2, 3})}})});
#pragma once

#include <cstdint>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/base/tensor.h"
#include "core/onnx/fields.h"
#include "core/onnx/tensor_file.h"

namespace mge::onnx_builder {

using Proto = std::string;
using Names = std::vector<std::string>;
namespace field = onnx::field;

// One field, to be appended to a message.
inline Proto Int(uint32_t number, int64_t value) {
  Proto out;
  protozero::pbf_writer(out).add_int64(number, value);
  return out;
}
inline Proto Text(uint32_t number, const std::string& value) {
  Proto out;
  protozero::pbf_writer(out).add_bytes(number, value);
  return out;
}
inline Proto Texts(uint32_t number, const Names& values) {
  Proto out;
  for (const std::string& value : values) out += Text(number, value);
  return out;
}
inline Proto PackedInts(uint32_t number, const std::vector<int64_t>& values) {
  Proto out;
  protozero::pbf_writer(out).add_packed_int64(number, values.begin(), values.end());
  return out;
}
inline Proto PackedFloats(uint32_t number, const std::vector<float>& values) {
  Proto out;
  protozero::pbf_writer(out).add_packed_float(number, values.begin(), values.end());
  return out;
}

// TensorProto with any declared dims and data, without a look at whether they fit.
inline Proto RawTensor(const std::string& name, DType dtype, const std::vector<int64_t>& dims,
                       const std::string& raw) {
  return PackedInts(field::tensor::kDims, dims) +
         Int(field::tensor::kDataType, static_cast<int64_t>(dtype)) +
         Text(field::tensor::kName, name) + Text(field::tensor::kRaw, raw);
}
inline Proto TensorHead(const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
  return PackedInts(field::tensor::kDims, dims) +
         Int(field::tensor::kDataType, static_cast<int64_t>(dtype)) +
         Text(field::tensor::kName, name);
}
inline Proto FloatTensor(const std::string& name, const std::vector<int64_t>& dims,
                         const std::vector<float>& values) {
  std::string raw(values.size() * 4, '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return RawTensor(name, DType::kF32, dims, raw);
}
inline Proto IntTensor(const std::string& name, const std::vector<int64_t>& values) {
  return TensorHead(name, DType::kI64, {static_cast<int64_t>(values.size())}) +
         PackedInts(field::tensor::kInt64s, values);
}
inline Proto Entry(const std::string& key, const std::string& value) {
  return Text(field::entry::kKey, key) + Text(field::entry::kValue, value);
}
// A tensor whose data lies in a file; `entries` as they are.
inline Proto ExternalTensor(const std::string& name, DType dtype, const std::vector<int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  Proto out = TensorHead(name, dtype, dims);
  for (const auto& [key, value] : entries) out += Text(field::tensor::kExternal, Entry(key, value));
  return out + Int(field::tensor::kLocation, onnx::kLocationExternal);
}

using Dim = std::variant<int64_t, std::string>;

inline Proto TensorType(DType dtype, const std::vector<Dim>& dims) {
  Proto shape;
  for (const Dim& dim : dims) {
    shape += Text(field::shape::kDim, std::holds_alternative<int64_t>(dim)
                                          ? Int(field::dim::kValue, std::get<int64_t>(dim))
                                          : Text(field::dim::kParam, std::get<std::string>(dim)));
  }
  return Text(field::type::kTensor, Int(field::tensor_type::kElement, static_cast<int64_t>(dtype)) +
                                        Text(field::tensor_type::kShape, shape));
}
inline Proto ValueInfo(const std::string& name, const Proto& type) {
  return Text(field::value_info::kName, name) + Text(field::value_info::kType, type);
}
inline Proto ValueInfo(const std::string& name, DType dtype, const std::vector<Dim>& dims) {
  return ValueInfo(name, TensorType(dtype, dims));
}

inline Proto Attribute(const std::string& name, onnx::AttributeKind kind, const Proto& value) {
  return Text(field::attribute::kName, name) +
         Int(field::attribute::kKind, static_cast<int64_t>(kind)) + value;
}
inline Proto IntAttr(const std::string& name, int64_t value) {
  return Attribute(name, onnx::AttributeKind::kInt, Int(field::attribute::kInt, value));
}
inline Proto IntsAttr(const std::string& name, const std::vector<int64_t>& values) {
  return Attribute(name, onnx::AttributeKind::kInts, PackedInts(field::attribute::kInts, values));
}
inline Proto TensorAttr(const std::string& name, const Proto& tensor) {
  return Attribute(name, onnx::AttributeKind::kTensor, Text(field::attribute::kTensor, tensor));
}
inline Proto GraphAttr(const std::string& name, const Proto& graph) {
  return Attribute(name, onnx::AttributeKind::kGraph, Text(field::attribute::kGraph, graph));
}
// Within a function: stands for the function's attribute `reference`.
inline Proto ReferenceAttr(const std::string& name, onnx::AttributeKind kind,
                           const std::string& reference) {
  return Attribute(name, kind, Text(field::attribute::kReference, reference));
}

struct NodeOptions {
  std::vector<Proto> attributes = {};
  std::string name = {};
  std::string domain = {};
};
inline Proto Node(const std::string& op, const Names& inputs, const Names& outputs,
                  const NodeOptions& options = {}) {
  Proto out = Texts(field::node::kInput, inputs) + Texts(field::node::kOutput, outputs) +
              Text(field::node::kOpType, op);
  if (!options.name.empty()) out += Text(field::node::kName, options.name);
  if (!options.domain.empty()) out += Text(field::node::kDomain, options.domain);
  return out + Texts(field::node::kAttribute, options.attributes);
}

struct GraphSpec {
  std::vector<Proto> nodes = {};
  std::vector<Proto> inputs = {};   // ValueInfo
  std::vector<Proto> outputs = {};  // ValueInfo
  std::vector<Proto> initializers = {};
  std::string name = "g";
};
inline Proto Graph(const GraphSpec& spec) {
  return Texts(field::graph::kNode, spec.nodes) + Text(field::graph::kName, spec.name) +
         Texts(field::graph::kInitializer, spec.initializers) +
         Texts(field::graph::kInput, spec.inputs) + Texts(field::graph::kOutput, spec.outputs);
}

inline Proto OpsetImport(const std::string& domain, int64_t version) {
  return Text(field::opset::kDomain, domain) + Int(field::opset::kVersion, version);
}

struct FunctionSpec {
  std::string domain, name;
  Names inputs = {}, outputs = {}, attributes = {};
  std::vector<Proto> nodes = {};
  std::vector<Proto> defaults = {};
};
inline Proto Function(const FunctionSpec& spec) {
  return Text(field::function::kName, spec.name) + Texts(field::function::kInput, spec.inputs) +
         Texts(field::function::kOutput, spec.outputs) +
         Texts(field::function::kAttribute, spec.attributes) +
         Texts(field::function::kNode, spec.nodes) +
         Texts(field::function::kDefault, spec.defaults) +
         Text(field::function::kOpsetImport, OpsetImport("", 13)) +
         Text(field::function::kDomain, spec.domain);
}

struct ModelSpec {
  Proto graph;
  int64_t ir_version = 8;
  std::vector<std::pair<std::string, int64_t>> opsets = {{"", 13}};
  std::vector<Proto> functions = {};
};
inline Proto Model(const ModelSpec& spec) {
  Proto out =
      Int(field::model::kIrVersion, spec.ir_version) + Text(field::model::kProducerName, "test");
  out += Text(field::model::kGraph, spec.graph);
  for (const auto& [domain, version] : spec.opsets)
    out += Text(field::model::kOpsetImport, OpsetImport(domain, version));
  return out + Texts(field::model::kFunctions, spec.functions);
}

// The smallest model: y = Relu(x).
inline Proto ReluModel() {
  return Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})},
                                .inputs = {ValueInfo("x", DType::kF32, {2})},
                                .outputs = {ValueInfo("y", DType::kF32, {2})}})});
}

}  // namespace mge::onnx_builder
