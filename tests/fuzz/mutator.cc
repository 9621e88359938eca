// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/mutator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/onnx/fields.h"

namespace mge::fuzz {
namespace {

namespace field = onnx::field;

constexpr int64_t kIntegers[] = {0,
                                 -1,
                                 1,
                                 2,
                                 3,
                                 4,
                                 5,
                                 7,
                                 -2,
                                 -3,
                                 8,
                                 16,
                                 17,
                                 100,
                                 255,
                                 1000,
                                 -100,
                                 65536,
                                 1 << 20,
                                 int64_t{1} << 31,
                                 int64_t{1} << 33,
                                 int64_t{1} << 40,
                                 std::numeric_limits<int64_t>::max(),
                                 std::numeric_limits<int64_t>::min()};
// Values for attributes and tensors. No product of them overflows, because an overflow would depend on the order of sums.
constexpr float kFloats[] = {0.0f,   -0.0f, 1.0f,  -1.0f,  0.5f,
                             1e-30f, 1e6f,  -3.0f, 100.0f, std::numeric_limits<float>::quiet_NaN()};

size_t Below(size_t n, Random& random) { return static_cast<size_t>(random() % n); }  // std distributions are not portable

int64_t AnyInteger(Random& random) {
  return random() % 4 == 0 ? static_cast<int64_t>(random() % 40) - 10 : kIntegers[Below(std::size(kIntegers), random)];
}

void Erase(Message& m, size_t place) { m.fields.erase(m.fields.begin() + static_cast<std::ptrdiff_t>(place)); }

std::string MutateAttribute(Message& attribute, Random& random) {
  std::string name = attribute.Text(field::attribute::kName);
  if (Field* number = attribute.Find(field::attribute::kInt)) {
    number->varint = static_cast<uint64_t>(AnyInteger(random));
    return "int attribute " + name;
  }
  if (Field* real = attribute.Find(field::attribute::kFloat); real && real->wire == 5) {
    float value = kFloats[Below(std::size(kFloats), random)];
    std::memcpy(real->bytes.data(), &value, 4);
    return "float attribute " + name;
  }
  std::vector<size_t> ints = attribute.All(field::attribute::kInts);
  if (!ints.empty()) {
    size_t place = ints[Below(ints.size(), random)];
    switch (random() % 3) {
      case 0: Erase(attribute, place); return "a shorter list " + name;
      case 1: {
        attribute.fields.push_back({.number = field::attribute::kInts, .varint = static_cast<uint64_t>(AnyInteger(random))});
        return "a longer list " + name;
      }
      default:
        attribute.fields[place] = {.number = field::attribute::kInts, .varint = static_cast<uint64_t>(AnyInteger(random))};
        return "an element of " + name;
    }
  }
  if (Field* text = attribute.Find(field::attribute::kText)) {
    static const char* kWords[] = {"",     "SAME_UPPER", "SAME_LOWER", "VALID", "constant",      "reflect",
                                   "edge", "linear",     "nearest",    "cubic", "bidirectional", "reverse",
                                   "sum",  "none",       "ij->ji",     "i,i->", "...i,...i"};
    text->bytes = kWords[Below(std::size(kWords), random)];
    return "text attribute " + name;
  }
  return "";
}

// Returns whether the tensor has the weights of a convolution. They get no NaN: in the padding, some implementations multiply
// the weights by zeros, which gives NaN, and others leave these terms out. Both occur in runtimes that are in use.
bool IsWeightsOfConvolution(const Message& tensor, const std::vector<Message*>& all) {
  const std::string name = tensor.Text(field::tensor::kName);
  return std::any_of(all.begin(), all.end(), [&](const Message* node) {
    if (node->type != MessageType::kNode || node->Text(field::node::kOpType).find("Conv") == std::string::npos) return false;
    const std::vector<size_t> inputs = node->All(field::node::kInput);
    return inputs.size() > 1 && node->fields[inputs[1]].bytes == name;
  });
}

// Returns whether one of the two elements of float32 in these bytes is NaN.
bool HasNan(int64_t bytes) {
  const auto floats = std::bit_cast<std::array<float, 2>>(bytes);
  return std::isnan(floats[0]) || std::isnan(floats[1]);
}

std::string MutateTensor(Message& tensor, const std::vector<Message*>& all, Random& random) {
  std::vector<size_t> dims = tensor.All(field::tensor::kDims);
  switch (random() % 4) {
    case 0: tensor.SetVarint(field::tensor::kDataType, random() % 18); return "type of a tensor";
    case 1:
      if (dims.empty()) return "";
      tensor.fields[dims[Below(dims.size(), random)]] = {.number = field::tensor::kDims,
                                                         .varint = static_cast<uint64_t>(AnyInteger(random))};
      return "size of a tensor";
    case 2: {
      // Changes an element of 8 bytes, which may be part of a shape, an axis or an index.
      Field* raw = tensor.Find(field::tensor::kRaw);
      if (!raw || raw->bytes.size() < 8) return "";
      int64_t value = AnyInteger(random);
      if (HasNan(value) && IsWeightsOfConvolution(tensor, all)) return "";
      std::memcpy(raw->bytes.data() + Below(raw->bytes.size() / 8, random) * 8, &value, 8);
      return "an element of a tensor";
    }
    default: {
      if (dims.empty()) return "";
      Erase(tensor, dims[Below(dims.size(), random)]);
      return "rank of a tensor";
    }
  }
}

std::string MutateShape(Message& shape, Random& random) {
  std::vector<size_t> dims = shape.All(field::shape::kDim);
  if (random() % 4 == 0) {
    if (dims.empty() || random() % 2) {
      Field dim = {.number = field::shape::kDim, .wire = 2};
      dim.message = std::make_unique<Message>(Message{MessageType::kDim, {}});
      dim.message->SetVarint(field::dim::kValue, random() % 5);
      shape.fields.push_back(std::move(dim));
      return "a dimension more";
    }
    Erase(shape, dims[Below(dims.size(), random)]);
    return "a dimension less";
  }
  if (dims.empty()) return "";
  Message& dim = *shape.fields[dims[Below(dims.size(), random)]].message;
  dim.fields.clear();
  if (random() % 6 == 0) {
    dim.SetBytes(field::dim::kParam, "N");
  } else {
    dim.SetVarint(field::dim::kValue,
                  static_cast<uint64_t>(random() % 3 ? static_cast<int64_t>(random() % 9) : AnyInteger(random)));
  }
  return "a dimension";
}

std::string MutateNode(Message& node, const std::vector<std::string>& values, const std::vector<std::string>& operators,
                       Random& random) {
  std::vector<size_t> inputs = node.All(field::node::kInput), attributes = node.All(field::node::kAttribute);
  std::vector<size_t> outputs = node.All(field::node::kOutput);
  std::string op = node.Text(field::node::kOpType);
  switch (random() % 7) {
    case 0:
      if (inputs.empty()) return "";
      Erase(node, inputs[Below(inputs.size(), random)]);
      return "an input less of " + op;
    case 1:
      if (inputs.empty()) return "";
      node.fields[inputs[Below(inputs.size(), random)]].bytes.clear();
      return "an absent input of " + op;
    case 2:
      if (inputs.empty() || values.empty()) return "";
      node.fields[inputs[Below(inputs.size(), random)]].bytes = values[Below(values.size(), random)];
      return "another input of " + op;
    case 3:
      if (values.empty()) return "";
      node.fields.push_back({.number = field::node::kInput, .wire = 2, .bytes = values[Below(values.size(), random)]});
      return "an input more of " + op;
    case 4:
      if (attributes.empty()) return "";
      Erase(node, attributes[Below(attributes.size(), random)]);
      return "an attribute less of " + op;
    case 5:
      if (outputs.empty()) return "";
      node.fields[outputs[Below(outputs.size(), random)]].bytes.clear();
      return "an absent output of " + op;
    default:
      node.SetBytes(field::node::kOpType, operators[Below(operators.size(), random)]);
      return op + " becomes " + node.Text(field::node::kOpType);
  }
}

}  // namespace

std::string Mutate(Message& model, const std::vector<std::string>& operators, Random& random) {
  std::vector<Message*> all;
  Collect(model, &all);
  std::vector<std::string> values;
  for (Message* m : all) {
    if (m->type == MessageType::kTensor) values.push_back(m->Text(field::tensor::kName));
    if (m->type == MessageType::kValueInfo) values.push_back(m->Text(field::value_info::kName));
    if (m->type != MessageType::kNode) continue;
    for (size_t i : m->All(field::node::kOutput)) values.push_back(m->fields[i].bytes);
  }
  Message& at = *all[Below(all.size(), random)];
  switch (at.type) {
    case MessageType::kNode: return MutateNode(at, values, operators, random);
    case MessageType::kAttribute: return MutateAttribute(at, random);
    case MessageType::kTensor: return MutateTensor(at, all, random);
    case MessageType::kShape: return MutateShape(at, random);
    case MessageType::kTensorType: at.SetVarint(field::tensor_type::kElement, random() % 18); return "an element type";
    case MessageType::kOpset: at.SetVarint(field::opset::kVersion, 1 + random() % 20); return "the operator set";
    default: return "";
  }
}

}  // namespace mge::fuzz
