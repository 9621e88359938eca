// SPDX-License-Identifier: Apache-2.0
// Inputs that mge generates: their sizes fit the model, the model accepts their values, and both are reported.
#include "gmock/gmock.h"
#include "nlohmann/json.hpp"
#include "tests/support/command.h"

namespace mge {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;
namespace ob = onnx_builder;

class MadeUp : public Command {
 protected:
  // Writes the model inputs -> nodes -> y.
  std::string Build(const std::string& name, const std::vector<std::string>& nodes, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& weights = {}) const {
    return Write(name,
                 ob::ModelProto({.graph = ob::GraphProto({.nodes = nodes,
                                                          .inputs = inputs,
                                                          .outputs = {ob::TextField(ob::field::value_info::kName, "y")},
                                                          .initializers = weights})}));
  }
};

TEST_F(MadeUp, InputsAreDescribed) {
  Build("m.onnx", {ob::NodeProto("Relu", {"x"}, {"y"})}, {ob::ValueInfo("x", DType::kF32, {"batch", int64_t{3}})});
  Outcome o = Mge("run m.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("generated input x: float32[1,3], floats in [-1, 1); batch = 1 (a batch of 1)"));
  EXPECT_THAT(Mge("run m.onnx --quiet").err, Not(HasSubstr("generated")));
  for (const char* command : {"run", "bench --runs 3"}) {
    const json inputs = json::parse(Mge(std::string(command) + " m.onnx --json --shape x=5x3").out)["inputs"];
    ASSERT_EQ(inputs.size(), 1u);
    EXPECT_EQ(inputs[0]["shape"], json({5, 3}));
    EXPECT_EQ(inputs[0]["given"], false);
  }
}

TEST_F(MadeUp, ListsOfSizesGiveEachRunTheNextSize) {
  Build("m.onnx", {ob::NodeProto("Relu", {"x"}, {"y"})}, {ob::ValueInfo("x", DType::kF32, {"batch", int64_t{3}})});
  Outcome o = Mge("bench m.onnx --device cpu0 --runs 12 --shape x=60..69x3");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("(12 runs)"));
  o = Mge("plan m.onnx --device cpu0 --shape x=60..64x3");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, HasSubstr("for a range of sizes, x[59..73,3]"));
  EXPECT_THAT(Mge("plan m.onnx --device cpu0 --shape x=64x3").out, Not(HasSubstr("range of sizes")));
  for (const char* wrong : {"x=9..8x3", "x=..8x3", "x=1..x3", "x=1..9999x3", "x=1..2x3..4"}) {
    o = Mge(std::string("bench m.onnx --shape ") + wrong);
    EXPECT_EQ(o.code, 2) << wrong;
    EXPECT_THAT(o.err, HasSubstr("list")) << wrong;
  }
}

TEST_F(MadeUp, SizesFitTheModelsShapes) {
  Build("m.onnx", {ob::NodeProto("MatMul", {"x", "w"}, {"y"})}, {ob::ValueInfo("x", DType::kF32, {"n", "k"})},
        {ob::FloatTensor("w", {7, 2}, std::vector<float>(14, 1))});
  Outcome o = Mge("run m.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("float32[1,7]"));
  EXPECT_THAT(o.err, HasSubstr("k = 7 (the first size that is valid for the model)"));
  o = Mge("run m.onnx --shape x=2x6");
  EXPECT_EQ(o.code, 3) << o.err;
}

TEST_F(MadeUp, AShapeThatTheModelDoesNotDeclareIsNamed) {
  Build("m.onnx", {ob::NodeProto("Relu", {"x"}, {"y"})}, {ob::ValueInfo("x", DType::kF32, {"batch", int64_t{3}})});
  for (auto [shape, text] : {std::pair("2x3x4", "got float32[2,3,4]: rank 3 instead of 2"),
                             std::pair("2x4", "got float32[2,4]: dimension 1 is 4 instead of 3")}) {
    Outcome o = Mge(std::string("run m.onnx --shape x=") + shape);
    EXPECT_EQ(o.code, 3) << o.err;
    EXPECT_THAT(o.err, HasSubstr("input 'x' does not fit the model"));
    EXPECT_THAT(o.err, HasSubstr(text));
  }
}

TEST_F(MadeUp, ValuesAreInTheRangeThatTheModelAccepts) {
  Build("ids.onnx",
        {ob::NodeProto("Gather", {"w", "ids"}, {"e"}),
         ob::NodeProto("Cast", {"attention_mask"}, {"m"}, {.attributes = {ob::IntAttr("to", 1)}}),
         ob::NodeProto("Mul", {"e", "m"}, {"y"})},
        {ob::ValueInfo("ids", DType::kI64, {int64_t{1}, "seq"}),
         ob::ValueInfo("attention_mask", DType::kI64, {int64_t{1}, "seq"})},
        {ob::FloatTensor("w", {3}, {1, 2, 3})});
  Outcome o = Mge("run ids.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("ids: int64[1,16], integers in 0..2"));
  EXPECT_THAT(o.err, HasSubstr("attention_mask: int64[1,16], all 1: a mask"));
  Build("rate.onnx", {ob::NodeProto("Equal", {"sr", "rate"}, {"y"})}, {ob::ValueInfo("sr", DType::kI64, {})},
        {ob::RawTensor("rate", DType::kI64, {}, std::string("\x80\x3e\0\0\0\0\0\0", 8))});
  o = Mge("run rate.onnx");
  EXPECT_THAT(o.err, HasSubstr("sr: int64[], all 16000: the model compares it with this value"));
}

TEST_F(MadeUp, ValuesThatGiveNanAreReplaced) {
  Model("log.onnx", {ob::NodeProto("Log", {"x"}, {"y"})});
  for (const char* command : {"run", "bench --runs 3"}) {
    Outcome o = Mge(std::string(command) + " log.onnx");
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_THAT(o.err, HasSubstr("output 'y' holds NaN for the first values"));
    EXPECT_THAT(o.err, HasSubstr("floats in (0, 1]"));
    EXPECT_THAT(o.out, Not(HasSubstr("nan")));
  }
  Model("nan.onnx", {ob::NodeProto("Sub", {"x", "x"}, {"z"}), ob::NodeProto("Div", {"z", "z"}, {"y"})});
  Outcome o = Mge("run nan.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("NaN for all generated values"));
}

TEST_F(MadeUp, ValuesThatGiveNanAreKeptIfAllOthersAreRefused) {
  // The number of positive elements is used as an index. It is out of range if all elements are positive.
  Model("m.onnx",
        {ob::NodeProto("Ceil", {"x"}, {"c"}),
         ob::NodeProto("ReduceSum", {"c"}, {"s"}, {.attributes = {ob::IntAttr("keepdims", 0)}}),
         ob::NodeProto("Cast", {"s"}, {"i"}, {.attributes = {ob::IntAttr("to", 7)}}),
         ob::NodeProto("Gather", {"w", "i"}, {"g"}), ob::NodeProto("Log", {"x"}, {"l"}),
         ob::NodeProto("Add", {"l", "g"}, {"y"})},
        {ob::FloatTensor("w", {6}, {1, 2, 3, 4, 5, 6})});
  Outcome o = Mge("run m.onnx");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.err, HasSubstr("NaN for all generated values"));
}

TEST_F(MadeUp, EveryCommandThatRunsAModelReplacesValuesThatItRefuses) {
  // floor(x) - 1 is an index into one element. For a negative x it is -2, which is out of range.
  Model("m.onnx",
        {ob::NodeProto("Floor", {"x"}, {"f"}), ob::NodeProto("Sub", {"f", "one"}, {"g"}),
         ob::NodeProto("Cast", {"g"}, {"i"}, {.attributes = {ob::IntAttr("to", 7)}}),
         ob::NodeProto("Gather", {"w", "i"}, {"y"})},
        {ob::FloatTensor("one", {1}, {1}), ob::FloatTensor("w", {1}, {1})});
  for (const char* command : {"run", "bench --runs 3", "profile --runs 3", "memory", "plan --measure", "compare"}) {
    Outcome o = Mge(std::string(command) + " m.onnx");
    EXPECT_EQ(o.code, 0) << command << o.err;
    EXPECT_THAT(o.err, HasSubstr("the model fails for the first values")) << command;
  }
}

TEST_F(MadeUp, OptionsThatNameNoInputAreQuoted) {
  Good();
  ASSERT_EQ(Mge("run good.onnx --output-dir out").code, 0);
  Outcome o = Mge("run good.onnx --input out/y.npy --input other.npy");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("--input other.npy: more values than inputs; the model has 1"));
  o = Mge("run good.onnx --input x=out/y.npy --input x=out/y.npy");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("input 'x' is given twice"));
  o = Mge("run good.onnx --input x=out/y.npy --shape x=2x3");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("the input is read from out/y.npy"));
  o = Mge("run good.onnx --shape x=2y3");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("'2y3' is not a shape"));
  o = Mge("run good.onnx --shape xx=2x3");
  EXPECT_EQ(o.code, 2);
  EXPECT_THAT(o.err, HasSubstr("did you mean 'x'?"));
}

}  // namespace
}  // namespace mge
