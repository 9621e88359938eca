// SPDX-License-Identifier: Apache-2.0
#include "tests/core/api/api_models.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "core/base/float16.h"
#include "mge/float16.hpp"
#include "tests/support/decoder_folder.h"
#include "tests/support/onnx_builder.h"

namespace mge {

std::string api_models::TwoOutputs() {
  using namespace onnx_builder;  // NOLINT: its functions build models
  return ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"t"}), NodeProto("Neg", {"t"}, {"y"}),
                                                    NodeProto("Gather", {"weights", "i"}, {"z"})},
                                          .inputs = {ValueInfo("x", DType::kF32, {"batch", int64_t{2}}),
                                                     ValueInfo("i", DType::kI64, {int64_t{1}})},
                                          .outputs = {ValueInfo("y", DType::kF32, {"batch", int64_t{2}}),
                                                      ValueInfo("z", DType::kF32, {int64_t{1}})},
                                          .initializers = {FloatTensor("weights", {2}, {7, 8})}})}) +
         TextField(field::model::kMetadata, Entry("author", "me"));
}

std::string api_models::RunningTotal() {
  using namespace onnx_builder;  // NOLINT: its functions build models
  return ModelProto({.graph = GraphProto(
                         {.nodes = {NodeProto("Add", {"state", "x"}, {"total"}), NodeProto("Relu", {"total"}, {"positive"}),
                                    NodeProto("Mul", {"positive", "total"}, {"y"})},
                          .inputs = {ValueInfo("state", DType::kF32, {"n"}), ValueInfo("x", DType::kF32, {"n"})},
                          .outputs = {ValueInfo("total", DType::kF32, {"n"}), ValueInfo("y", DType::kF32, {"n"})}})});
}

void api_models::WriteDecoder(const std::string& folder) { WriteDecoderFolder(folder); }

std::string api_models::LargeWeights(int64_t size, float weight, int64_t period, bool folds) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  std::vector<float> weights(static_cast<size_t>(size * size));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = weight + static_cast<float>(static_cast<int64_t>(i) % period);
  const std::string raw(reinterpret_cast<const char*>(weights.data()), weights.size() * sizeof(float));
  std::vector<Proto> nodes = {NodeProto("MatMul", {"x", folds ? "v" : "w"}, {"p"}),
                              NodeProto("Gather", {"table", "row"}, {"r"}), NodeProto("Add", {"p", "r"}, {"y"})};
  if (folds) nodes.insert(nodes.begin(), NodeProto("Transpose", {"w"}, {"v"}));
  return ModelProto({.graph = GraphProto(
                         {.nodes = nodes,
                          .inputs = {ValueInfo("x", DType::kF32, {"n", size}), ValueInfo("row", DType::kI64, {int64_t{1}})},
                          .outputs = {ValueInfo("y", DType::kF32, {"n", size})},
                          .initializers = {RawTensor("w", DType::kF32, {size, size}, raw),
                                           RawTensor("table", DType::kF32, {size, size}, raw)}})});
}

std::string api_models::TiedEmbedding() {
  using namespace onnx_builder;  // NOLINT: its functions build models
  auto noted = [](const Proto& node, const std::string& function, const std::string& arguments) {
    const std::string call =
        "%y : [num_users=1] = call_function[target=torch.ops." + function + "](args = (" + arguments + "), kwargs = {})";
    return node + TextField(field::node::kMetadata, Entry("pkg.torch.onnx.fx_node", call));
  };
  return ModelProto({.graph = GraphProto({.nodes = {noted(NodeProto("Gather", {"emb.weight", "ids"}, {"embedding"}),
                                                          "aten.embedding.default", "%p_emb_weight, %ids"),
                                                    noted(NodeProto("MatMul", {"embedding", "val_3"}, {"y"}),
                                                          "aten.linear.default", "%embedding, %p_emb_weight")},
                                          .inputs = {ValueInfo("ids", DType::kI64, {int64_t{2}})},
                                          .outputs = {ValueInfo("y", DType::kF32, {int64_t{2}, int64_t{3}})},
                                          .initializers = {FloatTensor("emb.weight", {3, 2}, {1, 2, 3, 4, 5, 6}),
                                                           FloatTensor("val_3", {2, 3}, {1, 3, 5, 2, 4, 6})}})}) +
         TextField(field::model::kProducerName, "pytorch");
}

std::string api_models::Line(std::string rest[2]) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  rest[0] = FloatTensor("c", {2}, {7, 8});
  rest[1] = NodeProto("Add", {"p", "b"}, {"y"});
  return ModelProto(
      {.graph = GraphProto({.nodes = {NodeProto("MatMul", {"x", "w"}, {"p"}), rest[1]},
                            .inputs = {ValueInfo("x", DType::kF32, {"N", int64_t{1}})},
                            .outputs = {ValueInfo("y", DType::kF32, {"N", int64_t{1}})},
                            .initializers = {FloatTensor("w", {1, 1}, {1}), FloatTensor("b", {1}, {0.5f}), rest[0]}})});
}

std::string api_models::SequenceLength() {
  using namespace onnx_builder;  // NOLINT: its functions build models
  namespace f = onnx::field;
  const Proto parts =
      TextField(f::type::kSequence, TextField(f::nested_type::kElement, TensorTypeProto(DType::kF32, {"n"})));
  return ModelProto({.graph = GraphProto({.nodes = {NodeProto("SequenceLength", {"parts"}, {"length"})},
                                          .inputs = {ValueInfo("parts", parts)},
                                          .outputs = {ValueInfo("length", DType::kI64, {})}})});
}

std::string api_models::LabelledScores() {
  using namespace onnx_builder;  // NOLINT: its functions build models
  namespace f = onnx::field;
  const Proto labels =
      Attribute("classlabels_strings", onnx::AttributeKind::kTexts, TextFields(f::attribute::kTexts, {"no", "yes"}));
  const Proto map = TextField(f::type::kMap, IntField(f::map_type::kKey, MGE_DTYPE_STRING) +
                                                 TextField(f::map_type::kValue, TensorTypeProto(DType::kF32, {})));
  const Proto maps = TextField(f::type::kSequence, TextField(f::nested_type::kElement, map));
  return ModelProto({.graph = GraphProto({.nodes = {NodeProto("ZipMap", {"scores"}, {"maps"},
                                                              {.attributes = {labels}, .domain = "ai.onnx.ml"})},
                                          .inputs = {ValueInfo("scores", DType::kF32, {"n", 2})},
                                          .outputs = {ValueInfo("maps", maps)}}),
                     .opsets = {{"", 13}, {"ai.onnx.ml", 3}}});
}

namespace {

TEST(SixteenBitFloats, AreConvertedAsInTheCore) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    F16 half;
    BF16 brain;
    half.bits = brain.bits = static_cast<uint16_t>(bits);
    const float h = HalfBitsToFloat(half.bits), b = BFloat16BitsToFloat(brain.bits);
    ASSERT_EQ(std::bit_cast<uint32_t>(static_cast<float>(half)), std::bit_cast<uint32_t>(h)) << bits;
    ASSERT_EQ(std::bit_cast<uint32_t>(static_cast<float>(brain)), std::bit_cast<uint32_t>(b)) << bits;
    for (float value : {h, b, h * 1.0003f, b * 1.003f, std::nextafter(h, 1e9f), std::nextafter(b, -1e9f)}) {
      ASSERT_EQ(F16(value).bits, FloatToHalfBits(value)) << value;
      ASSERT_EQ(BF16(value).bits, FloatToBFloat16Bits(value)) << value;
    }
  }
}

}  // namespace
}  // namespace mge
