// SPDX-License-Identifier: Apache-2.0
// Writes ONNX models with seeded random weights, in the protobuf wire format.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mge::cli {

using AttributeData = std::variant<int64_t, float, std::string, std::vector<int64_t>>;
struct AttributeRow {
  std::string name;
  AttributeData value;
};

// Element types, as a TensorProto.DataType.
enum ElementType : int32_t { kFloat32 = 1, kInt64 = 7, kFloat16 = 10, kBFloat16 = 16 };

// The choices of a user for a model.
struct ModelRequest {
  uint64_t seed = 1;            // of the weights
  int64_t batch = 1;            // size of the batch dimension
  ElementType type = kFloat32;  // of all floating values: kFloat32, kFloat16 or kBFloat16
};

class ModelWriter {
 public:
  ModelWriter(std::string name, const ModelRequest& request)
      : name_(std::move(name)), seed_(request.seed), type_(request.type) {}

  // Add an input or output of floating values, or an input of `type`. Input() returns the name.
  std::string Input(const std::string& name, const std::vector<int64_t>& dims) { return Input(name, dims, type_); }
  std::string Input(const std::string& name, const std::vector<int64_t>& dims, ElementType type);
  void Output(const std::string& name, const std::vector<int64_t>& dims);

  // Adds a floating weight with normally distributed elements; with deviation 0, all are equal to `mean`. Returns the name.
  std::string Weight(const std::string& name, const std::vector<int64_t>& dims, float deviation, float mean = 0);
  std::string Ints(const std::string& name, const std::vector<int64_t>& values);  // int64[n]
  std::string Scalar(const std::string& name, float value);

  // Adds a node with one output and returns the output's name: `output`, or a generated name if that is empty.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<AttributeRow>& attrs = {}, const std::string& output = {});

  // Returns the model's bytes, with IR version 8 and operator set 17.
  std::string Finish() const;

 private:
  void AddTensor(const std::string& name, const std::vector<int64_t>& dims, ElementType type, std::string_view raw);
  void AddFloats(const std::string& name, const std::vector<int64_t>& dims, std::span<const float> values);
  double NextNormal();

  std::string name_;
  uint64_t seed_;
  ElementType type_;
  std::string nodes_, weights_, inputs_, outputs_;  // encoded
  int64_t made_ = 0;
};

}  // namespace mge::cli
