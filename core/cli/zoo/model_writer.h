// SPDX-License-Identifier: Apache-2.0
// Writes ONNX models with seeded random weights, in the protobuf wire format.
#pragma once

#include <cstdint>
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

class ModelWriter {
 public:
  ModelWriter(std::string name, uint64_t seed) : name_(std::move(name)), seed_(seed) {}

  // Add an input or output. `dtype` is a TensorProto.DataType; 1 is float32. Input() returns the name.
  std::string Input(const std::string& name, const std::vector<int64_t>& dims, int32_t dtype = 1);
  void Output(const std::string& name, const std::vector<int64_t>& dims, int32_t dtype = 1);

  // Adds a float32 weight with normally distributed elements; with deviation 0, all are equal to `mean`. Returns the name.
  std::string Weight(const std::string& name, const std::vector<int64_t>& dims, float deviation, float mean = 0);
  std::string Ints(const std::string& name, const std::vector<int64_t>& values);  // int64[n]
  std::string Scalar(const std::string& name, float value);

  // Adds a node with one output and returns the output's name: `output`, or a generated name if that is empty.
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<AttributeRow>& attrs = {}, const std::string& output = {});

  // Returns the model's bytes, with IR version 8 and operator set 17.
  std::string Finish() const;

 private:
  void AddTensor(const std::string& name, const std::vector<int64_t>& dims, int32_t dtype, std::string_view raw);
  double NextNormal();

  std::string name_;
  uint64_t seed_;
  std::string nodes_, weights_, inputs_, outputs_;  // encoded
  int64_t made_ = 0;
};

}  // namespace mge::cli
