// SPDX-License-Identifier: Apache-2.0
#include "core/cli/zoo/model_writer.h"

#include <cmath>

#include "core/base/float16.h"
#include "fmt/format.h"
#include "protozero/pbf_writer.hpp"

namespace mge::cli {
namespace {

// The field numbers of onnx.proto.
namespace model {
constexpr uint32_t kIrVersion = 1, kProducer = 2, kGraph = 7, kOpset = 8;
}
namespace opset {
constexpr uint32_t kVersion = 2;
}
namespace graph {
constexpr uint32_t kNode = 1, kName = 2, kInitializer = 5, kInput = 11, kOutput = 12;
}
namespace node {
constexpr uint32_t kInput = 1, kOutput = 2, kName = 3, kOp = 4, kAttribute = 5;
}
namespace attribute {
constexpr uint32_t kName = 1, kFloat = 2, kInt = 3, kText = 4, kInts = 8, kType = 20;
}
namespace tensor {
constexpr uint32_t kDims = 1, kType = 2, kName = 8, kRaw = 9;
}
namespace value_info {
constexpr uint32_t kName = 1, kType = 2;
}
namespace type {
constexpr uint32_t kTensor = 1, kElement = 1, kShape = 2, kDim = 1, kValue = 1;
}
enum AttributeType : int32_t { kTypeFloat = 1, kTypeInt = 2, kTypeText = 3, kTypeInts = 7 };

constexpr int64_t kIrVersion = 8;
constexpr int64_t kOperatorSet = 17;

std::string ValueInfo(const std::string& name, const std::vector<int64_t>& dims, ElementType element) {
  std::string shape, tensor_type, type_bytes, out;
  protozero::pbf_writer shape_writer(shape);
  for (int64_t d : dims) {
    std::string dim;
    protozero::pbf_writer(dim).add_int64(type::kValue, d);
    shape_writer.add_message(type::kDim, dim);
  }
  protozero::pbf_writer t(tensor_type);
  t.add_int32(type::kElement, element);
  t.add_message(type::kShape, shape);
  protozero::pbf_writer(type_bytes).add_message(type::kTensor, tensor_type);
  protozero::pbf_writer w(out);
  w.add_string(value_info::kName, name);
  w.add_message(value_info::kType, type_bytes);
  return out;
}

std::string_view Raw(const void* data, size_t bytes) { return {static_cast<const char*>(data), bytes}; }

}  // namespace

std::string ModelWriter::Input(const std::string& name, const std::vector<int64_t>& dims, ElementType type) {
  protozero::pbf_writer(inputs_).add_message(graph::kInput, ValueInfo(name, dims, type));
  return name;
}

void ModelWriter::Output(const std::string& name, const std::vector<int64_t>& dims) {
  protozero::pbf_writer(outputs_).add_message(graph::kOutput, ValueInfo(name, dims, type_));
}

void ModelWriter::AddTensor(const std::string& name, const std::vector<int64_t>& dims, ElementType type,
                            std::string_view raw) {
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (int64_t d : dims) w.add_int64(tensor::kDims, d);
  w.add_int32(tensor::kType, type);
  w.add_string(tensor::kName, name);
  w.add_bytes(tensor::kRaw, raw.data(), raw.size());
  protozero::pbf_writer(weights_).add_message(graph::kInitializer, bytes);
}

void ModelWriter::AddFloats(const std::string& name, const std::vector<int64_t>& dims, std::span<const float> values) {
  if (type_ == kFloat32) return AddTensor(name, dims, kFloat32, Raw(values.data(), values.size_bytes()));
  std::vector<uint16_t> halves;
  for (float v : values) halves.push_back(type_ == kFloat16 ? FloatToHalfBits(v) : FloatToBFloat16Bits(v));
  AddTensor(name, dims, type_, Raw(halves.data(), halves.size() * sizeof(uint16_t)));
}

// Returns a normally distributed number by the Box-Muller method. The uniform numbers come from SplitMix64 (G. Steele et
// al., 2014), so they are the same on every machine.
double ModelWriter::NextNormal() {
  auto uniform = [this] {
    uint64_t x = seed_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return static_cast<double>((x ^ (x >> 31)) >> 11) * 0x1p-53;
  };
  double radius = std::sqrt(-2 * std::log(1 - uniform()));
  return radius * std::cos(6.283185307179586 * uniform());
}

std::string ModelWriter::Weight(const std::string& name, const std::vector<int64_t>& dims, float deviation, float mean) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::vector<float> values(static_cast<size_t>(n), mean);
  if (deviation > 0) {
    for (float& v : values) v += deviation * static_cast<float>(NextNormal());
  }
  AddFloats(name, dims, values);
  return name;
}

std::string ModelWriter::Ints(const std::string& name, const std::vector<int64_t>& values) {
  AddTensor(name, {static_cast<int64_t>(values.size())}, kInt64, Raw(values.data(), values.size() * sizeof(int64_t)));
  return name;
}

std::string ModelWriter::Scalar(const std::string& name, float value) {
  AddFloats(name, {}, {&value, 1});
  return name;
}

std::string ModelWriter::Node(const std::string& op, const std::vector<std::string>& inputs,
                              const std::vector<AttributeRow>& attrs, const std::string& output) {
  std::string name = fmt::format("{}_{}", op, made_++);
  std::string out = output.empty() ? name + "_out" : output;
  std::string bytes;
  protozero::pbf_writer w(bytes);
  for (const std::string& i : inputs) w.add_string(node::kInput, i);
  w.add_string(node::kOutput, out);
  w.add_string(node::kName, name);
  w.add_string(node::kOp, op);
  for (const AttributeRow& row : attrs) {
    std::string attr;
    protozero::pbf_writer a(attr);
    a.add_string(attribute::kName, row.name);
    if (const auto* i = std::get_if<int64_t>(&row.value)) {
      a.add_int64(attribute::kInt, *i);
      a.add_int32(attribute::kType, kTypeInt);
    } else if (const auto* f = std::get_if<float>(&row.value)) {
      a.add_float(attribute::kFloat, *f);
      a.add_int32(attribute::kType, kTypeFloat);
    } else if (const auto* t = std::get_if<std::string>(&row.value)) {
      a.add_string(attribute::kText, *t);
      a.add_int32(attribute::kType, kTypeText);
    } else {
      for (int64_t i : std::get<std::vector<int64_t>>(row.value)) a.add_int64(attribute::kInts, i);
      a.add_int32(attribute::kType, kTypeInts);
    }
    w.add_message(node::kAttribute, attr);
  }
  protozero::pbf_writer(nodes_).add_message(graph::kNode, bytes);
  return out;
}

std::string ModelWriter::Finish() const {
  // Nodes, weights, inputs and outputs are already encoded fields of the graph, so they are concatenated.
  std::string graph_bytes = nodes_;
  protozero::pbf_writer(graph_bytes).add_string(graph::kName, name_);
  graph_bytes += weights_ + inputs_ + outputs_;
  std::string set, out;
  protozero::pbf_writer(set).add_int64(opset::kVersion, kOperatorSet);
  protozero::pbf_writer w(out);
  w.add_int64(model::kIrVersion, kIrVersion);
  w.add_string(model::kProducer, "mge zoo");
  w.add_message(model::kOpset, set);
  w.add_message(model::kGraph, graph_bytes);
  return out;
}

}  // namespace mge::cli
