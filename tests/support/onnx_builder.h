// SPDX-License-Identifier: Apache-2.0
// Builds ONNX models in memory, well-formed or not. Every function returns an encoded message.
//
//   Proto model = ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
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

// Returns one encoded field, which can be appended to a message.
inline Proto IntField(uint32_t number, int64_t value) {
  Proto out;
  protozero::pbf_writer(out).add_int64(number, value);
  return out;
}
inline Proto TextField(uint32_t number, const std::string& value) {
  Proto out;
  protozero::pbf_writer(out).add_bytes(number, value);
  return out;
}
inline Proto TextFields(uint32_t number, const Names& values) {
  Proto out;
  for (const std::string& value : values) out += TextField(number, value);
  return out;
}
inline Proto PackedIntField(uint32_t number, const std::vector<int64_t>& values) {
  Proto out;
  protozero::pbf_writer(out).add_packed_int64(number, values.begin(), values.end());
  return out;
}
inline Proto PackedFloatField(uint32_t number, const std::vector<float>& values) {
  Proto out;
  protozero::pbf_writer(out).add_packed_float(number, values.begin(), values.end());
  return out;
}

// Returns a TensorProto with any dims and data. Does not check that they fit.
inline Proto RawTensor(const std::string& name, DType dtype, const std::vector<int64_t>& dims, const std::string& raw) {
  return PackedIntField(field::tensor::kDims, dims) + IntField(field::tensor::kDataType, static_cast<int64_t>(dtype)) +
         TextField(field::tensor::kName, name) + TextField(field::tensor::kRaw, raw);
}
inline Proto TensorHead(const std::string& name, DType dtype, const std::vector<int64_t>& dims) {
  return PackedIntField(field::tensor::kDims, dims) + IntField(field::tensor::kDataType, static_cast<int64_t>(dtype)) +
         TextField(field::tensor::kName, name);
}
inline Proto FloatTensor(const std::string& name, const std::vector<int64_t>& dims, const std::vector<float>& values) {
  std::string raw(values.size() * 4, '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return RawTensor(name, DType::kF32, dims, raw);
}
inline Proto IntTensor(const std::string& name, const std::vector<int64_t>& values) {
  return TensorHead(name, DType::kI64, {static_cast<int64_t>(values.size())}) +
         PackedIntField(field::tensor::kInt64s, values);
}
inline Proto Entry(const std::string& key, const std::string& value) {
  return TextField(field::entry::kKey, key) + TextField(field::entry::kValue, value);
}
// Returns a tensor with external data. `entries` are written unchecked.
inline Proto ExternalTensor(const std::string& name, DType dtype, const std::vector<int64_t>& dims,
                            const std::vector<std::pair<std::string, std::string>>& entries) {
  Proto out = TensorHead(name, dtype, dims);
  for (const auto& [key, value] : entries) out += TextField(field::tensor::kExternal, Entry(key, value));
  return out + IntField(field::tensor::kLocation, onnx::kLocationExternal);
}

using Dim = std::variant<int64_t, std::string>;

inline Proto TensorTypeProto(DType dtype, const std::vector<Dim>& dims) {
  Proto shape;
  for (const Dim& dim : dims) {
    shape += TextField(field::shape::kDim, std::holds_alternative<int64_t>(dim)
                                               ? IntField(field::dim::kValue, std::get<int64_t>(dim))
                                               : TextField(field::dim::kParam, std::get<std::string>(dim)));
  }
  return TextField(field::type::kTensor, IntField(field::tensor_type::kElement, static_cast<int64_t>(dtype)) +
                                             TextField(field::tensor_type::kShape, shape));
}
inline Proto ValueInfo(const std::string& name, const Proto& type) {
  return TextField(field::value_info::kName, name) + TextField(field::value_info::kType, type);
}
inline Proto ValueInfo(const std::string& name, DType dtype, const std::vector<Dim>& dims) {
  return ValueInfo(name, TensorTypeProto(dtype, dims));
}

inline Proto Attribute(const std::string& name, onnx::AttributeKind kind, const Proto& value) {
  return TextField(field::attribute::kName, name) + IntField(field::attribute::kKind, static_cast<int64_t>(kind)) + value;
}
inline Proto IntAttr(const std::string& name, int64_t value) {
  return Attribute(name, onnx::AttributeKind::kInt, IntField(field::attribute::kInt, value));
}
inline Proto IntsAttr(const std::string& name, const std::vector<int64_t>& values) {
  return Attribute(name, onnx::AttributeKind::kInts, PackedIntField(field::attribute::kInts, values));
}
inline Proto TextAttr(const std::string& name, const std::string& value) {
  return Attribute(name, onnx::AttributeKind::kText, TextField(field::attribute::kText, value));
}
inline Proto TensorAttr(const std::string& name, const Proto& tensor) {
  return Attribute(name, onnx::AttributeKind::kTensor, TextField(field::attribute::kTensor, tensor));
}
inline Proto GraphAttr(const std::string& name, const Proto& graph) {
  return Attribute(name, onnx::AttributeKind::kGraph, TextField(field::attribute::kGraph, graph));
}
// Returns an attribute, for a node of a function, that refers to the function's attribute `reference`.
inline Proto ReferenceAttr(const std::string& name, onnx::AttributeKind kind, const std::string& reference) {
  return Attribute(name, kind, TextField(field::attribute::kReference, reference));
}

struct NodeOptions {
  std::vector<Proto> attributes = {};
  std::string name = {};
  std::string domain = {};
};
inline Proto NodeProto(const std::string& op, const Names& inputs, const Names& outputs, const NodeOptions& options = {}) {
  Proto out = TextFields(field::node::kInput, inputs) + TextFields(field::node::kOutput, outputs) +
              TextField(field::node::kOpType, op);
  if (!options.name.empty()) out += TextField(field::node::kName, options.name);
  if (!options.domain.empty()) out += TextField(field::node::kDomain, options.domain);
  return out + TextFields(field::node::kAttribute, options.attributes);
}

struct GraphSpec {
  std::vector<Proto> nodes = {};
  std::vector<Proto> inputs = {};   // ValueInfo
  std::vector<Proto> outputs = {};  // ValueInfo
  std::vector<Proto> initializers = {};
  std::string name = "g";
};
inline Proto GraphProto(const GraphSpec& spec) {
  return TextFields(field::graph::kNode, spec.nodes) + TextField(field::graph::kName, spec.name) +
         TextFields(field::graph::kInitializer, spec.initializers) + TextFields(field::graph::kInput, spec.inputs) +
         TextFields(field::graph::kOutput, spec.outputs);
}

inline Proto OpsetImport(const std::string& domain, int64_t version) {
  return TextField(field::opset::kDomain, domain) + IntField(field::opset::kVersion, version);
}

struct FunctionSpec {
  std::string domain, name;
  Names inputs = {}, outputs = {}, attributes = {};
  std::vector<Proto> nodes = {};
  std::vector<Proto> defaults = {};
};
inline Proto FunctionProto(const FunctionSpec& spec) {
  return TextField(field::function::kName, spec.name) + TextFields(field::function::kInput, spec.inputs) +
         TextFields(field::function::kOutput, spec.outputs) + TextFields(field::function::kAttribute, spec.attributes) +
         TextFields(field::function::kNode, spec.nodes) + TextFields(field::function::kDefault, spec.defaults) +
         TextField(field::function::kOpsetImport, OpsetImport("", 13)) + TextField(field::function::kDomain, spec.domain);
}

struct ModelSpec {
  Proto graph;
  int64_t ir_version = 8;
  std::vector<std::pair<std::string, int64_t>> opsets = {{"", 13}};
  std::vector<Proto> functions = {};
};
inline Proto ModelProto(const ModelSpec& spec) {
  Proto out = IntField(field::model::kIrVersion, spec.ir_version) + TextField(field::model::kProducerName, "test");
  out += TextField(field::model::kGraph, spec.graph);
  for (const auto& [domain, version] : spec.opsets)
    out += TextField(field::model::kOpsetImport, OpsetImport(domain, version));
  return out + TextFields(field::model::kFunctions, spec.functions);
}

// Returns a minimal model: y = Relu(x).
inline Proto ReluModel() {
  return ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                                          .inputs = {ValueInfo("x", DType::kF32, {2})},
                                          .outputs = {ValueInfo("y", DType::kF32, {2})}})});
}

}  // namespace mge::onnx_builder
