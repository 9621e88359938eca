// SPDX-License-Identifier: Apache-2.0
// Tensors in models: every encoding of data, and every error in it.
#include "core/onnx/tensor_file.h"
#include "core/onnx/tensor_proto.h"
#include "tests/core/onnx/onnx_test_util.h"

namespace mge::onnx {
namespace {

absl::StatusOr<Tensor> Decode(const Proto& bytes) {
  MGE_ASSIGN_OR_RETURN(NamedValue value, ReadValueBytes(AsBytes(bytes)));
  return value.value.tensor;
}

Proto WithInitializer(const Proto& tensor) {
  return ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                                          .inputs = {ValueInfo("x", DType::kF32, {2})},
                                          .outputs = {ValueInfo("y", DType::kF32, {2})},
                                          .initializers = {tensor}})});
}

TEST(TensorProto, ReadsTypedDataOfEveryType) {
  auto f = Decode(TensorHead("f", DType::kF32, {2}) + PackedFloatField(field::tensor::kFloats, {1.5f, -2}));
  ASSERT_TRUE(f.ok());
  EXPECT_THAT(f->Data<float>(), ::testing::ElementsAre(1.5f, -2));
  for (DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kU8, DType::kU16}) {
    auto t = Decode(TensorHead("t", dtype, {3}) + PackedIntField(field::tensor::kInt32s, {0, 1, 100}));
    ASSERT_TRUE(t.ok()) << FormatError(t.status());
    EXPECT_THAT(t->ToInts(), ::testing::ElementsAre(0, 1, 100));
  }
  auto negative = Decode(TensorHead("t", DType::kI8, {1}) + PackedIntField(field::tensor::kInt32s, {-128}));
  EXPECT_THAT(negative->ToInts(), ::testing::ElementsAre(-128));
  auto u = Decode(TensorHead("t", DType::kU64, {1}) + PackedIntField(field::tensor::kUint64s, {-1}));
  EXPECT_EQ(u->Data<uint64_t>()[0], ~uint64_t{0});
  auto h = Decode(TensorHead("t", DType::kF16, {1}) + PackedIntField(field::tensor::kInt32s, {0x3c00}));
  EXPECT_EQ(static_cast<float>(h->Data<Half>()[0]), 1);
  auto b = Decode(TensorHead("t", DType::kBF16, {1}) + PackedIntField(field::tensor::kInt32s, {0xc000}));
  EXPECT_EQ(static_cast<float>(b->Data<BFloat16>()[0]), -2);
  auto t = Decode(TensorHead("t", DType::kBool, {2}) + PackedIntField(field::tensor::kInt32s, {1, 0}));
  EXPECT_THAT(t->ToInts(), ::testing::ElementsAre(1, 0));
  auto s = Decode(TensorHead("t", DType::kString, {2}) + TextFields(field::tensor::kTexts, {"a", std::string("\0b", 2)}));
  EXPECT_THAT(s->Data<std::string>(), ::testing::ElementsAre("a", std::string("\0b", 2)));
  auto i =
      Decode(TensorHead("t", DType::kI64, {2}) + IntField(field::tensor::kInt64s, 7) + IntField(field::tensor::kInt64s, -8));
  EXPECT_THAT(i->ToInts(), ::testing::ElementsAre(7, -8));
}

TEST(TensorProto, WriteThenReadIsTheSame) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  Tensor tensor = Tensor::Of<float>({2, 3}, values);
  auto back = ReadValueBytes(AsBytes(TensorBytes(tensor, "x")));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->name, "x");
  EXPECT_EQ(back->value.tensor.shape(), tensor.shape());
  EXPECT_THAT(back->value.tensor.Data<float>(), ::testing::ElementsAreArray(values));
  auto scalar = ReadValueBytes(AsBytes(TensorBytes(Tensor::Scalar<int64_t>(5), "")));
  ASSERT_TRUE(scalar.ok());
  EXPECT_EQ(scalar->value.tensor.rank(), 0);
}

TEST(TensorProto, RefusesSizesThatOverflow) {
  for (std::vector<int64_t> dims : {std::vector<int64_t>{-2},
                                    {int64_t{1} << 31, int64_t{1} << 31, 4},
                                    {INT64_MAX},
                                    {INT64_MAX, INT64_MAX},
                                    {INT64_MIN},
                                    {0, INT64_MAX, INT64_MAX}}) {
    auto read = Read(WithInitializer(RawTensor("w", DType::kF32, dims, "1234")));
    ExpectError(read.status(), errors::kInvalidTensor, "tensor 'w'");
    EXPECT_THAT(FormatError(read.status()), ::testing::AnyOf(HasSubstr("size overflow"), HasSubstr("negative")));
  }
  auto input =
      ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                                       .inputs = {ValueInfo("x", DType::kF32, {int64_t{1} << 31, int64_t{1} << 31, 4})},
                                       .outputs = {ValueInfo("y", DType::kF32, {1})}})});
  ExpectError(Read(input).status(), errors::kInvalidTensor, "size overflow");
}

TEST(TensorProto, ADeclaredSizeWithoutDataAllocatesNothing) {
  // The tensor declares a petabyte and holds four bytes.
  ExpectError(Decode(RawTensor("w", DType::kF32, {1 << 20, 1 << 28}, "1234")).status(), errors::kInvalidTensor, "got 4");
  ExpectError(
      Decode(TensorHead("w", DType::kI64, {1 << 20, 1 << 28}) + PackedIntField(field::tensor::kInt64s, {1})).status(),
      errors::kInvalidTensor, "got at most 1");
  ExpectError(Decode(TensorHead("w", DType::kString, {1 << 20, 1 << 28})).status(), errors::kInvalidTensor,
              "strings, got 0");
  ExpectError(Decode(TensorHead("w", DType::kF32, {1 << 20, 1 << 28})).status(), errors::kInvalidTensor, "got 0");
}

TEST(TensorProto, ExpectedAndPresentBytesAreNamed) {
  ExpectError(Read(WithInitializer(FloatTensor("w", {3}, {1, 2}))).status(), errors::kInvalidTensor,
              "expected 12 bytes, got 8");
  ExpectError(Decode(TensorHead("w", DType::kI64, {1}) + PackedIntField(field::tensor::kInt64s, {1, 2})).status(),
              errors::kInvalidTensor, "expected 1 elements, got 2");
}

TEST(TensorProto, TwoKindsOfDataAreRefused) {
  ExpectError(Decode(FloatTensor("w", {1}, {1}) + PackedFloatField(field::tensor::kFloats, {1})).status(),
              errors::kInvalidTensor, "both raw_data and float_data");
  ExpectError(Decode(TensorHead("w", DType::kF32, {1}) + PackedFloatField(field::tensor::kFloats, {1}) +
                     PackedIntField(field::tensor::kInt32s, {1}))
                  .status(),
              errors::kBadInputFile, "float_data and int32_data");
  ExpectError(Decode(TensorHead("w", DType::kF32, {1}) + PackedIntField(field::tensor::kInt32s, {1})).status(),
              errors::kInvalidTensor, "expected float_data");
}

TEST(TensorProto, ValuesOutsideOfTheTypeAreRefused) {
  ExpectError(Decode(TensorHead("w", DType::kU8, {2}) + PackedIntField(field::tensor::kInt32s, {1, 300})).status(),
              errors::kInvalidTensor, "element 1 is 300, outside of [0, 255]");
  ExpectError(Decode(TensorHead("w", DType::kU16, {1}) + PackedIntField(field::tensor::kInt32s, {-1})).status(),
              errors::kInvalidTensor, "-1");
  ExpectError(Decode(RawTensor("w", DType::kBool, {2}, "\x01\x02")).status(), errors::kInvalidTensor, "not 0 or 1");
}

// Returns the weight of a model whose node reads it as its only input, or as the first of two.
absl::StatusOr<Tensor> ReadWeight(const Proto& weight, const std::string& op) {
  std::vector<std::string> inputs = {"w"};
  if (op != "Cast" && op != "Identity") inputs.push_back("s");
  const std::vector<Proto> attrs = op == "Cast" ? std::vector<Proto>{IntAttr("to", 1)} : std::vector<Proto>();
  auto model = Read(ModelProto({.graph = GraphProto({.nodes = {NodeProto(op, inputs, {"y"}, {.attributes = attrs})},
                                                     .outputs = {ValueInfo("y", DType::kF32, {})},
                                                     .initializers = {weight, FloatTensor("s", {}, {1})}}),
                                .opsets = {{"", 23}}}));
  if (!model.ok()) return model.status();
  for (ValueId v = 0; v < model->graph.value_count(); ++v) {
    if (model->graph.value(v).name == "w") return model->graph.value(v).constant;
  }
  return Tensor();
}

TEST(TensorProto, WeightsOfLessThanAByteBecomeBytes) {
  const auto packed = [](int type, std::vector<int64_t> shape, const std::string& bytes) {
    return ReadWeight(RawTensor("w", static_cast<DType>(type), std::move(shape), bytes), "DequantizeLinear");
  };
  constexpr int kUint4 = 21, kInt4 = 22, kUint2 = 25, kInt2 = 26;
  EXPECT_THAT(packed(kUint4, {3}, "\x8f\x07")->ToInts(), testing::ElementsAre(15, 8, 7));
  EXPECT_THAT(packed(kInt4, {1, 3}, "\x8f\x07")->ToInts(), testing::ElementsAre(-1, -8, 7));
  EXPECT_THAT(packed(kUint2, {4}, "\xe4")->ToInts(), testing::ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(packed(kInt2, {5}, "\xe4\x03")->ToInts(), testing::ElementsAre(0, 1, -2, -1, -1));
  EXPECT_EQ(packed(kInt4, {2}, "\x8f")->dtype(), DType::kI8);
  // Typed data has one byte per number.
  const Proto typed = TensorHead("w", static_cast<DType>(kInt4), {3}) + PackedIntField(field::tensor::kInt32s, {0x8f, 7});
  EXPECT_THAT(ReadWeight(typed, "DequantizeLinear")->ToInts(), testing::ElementsAre(-1, -8, 7));
  EXPECT_THAT(ReadWeight(typed, "Cast")->ToInts(), testing::ElementsAre(-1, -8, 7));
  ExpectError(packed(kInt4, {3}, "\x8f").status(), errors::kInvalidTensor, "expected 2 bytes, got 1");
  ExpectError(packed(kInt4, std::vector<int64_t>(100, 1), "1").status(), errors::kInvalidTensor, "rank 100");
}

TEST(TensorProto, WeightsOfLessThanAByteKeepTheirTypeForOtherOperators) {
  const Proto weight = RawTensor("w", DType::kI4, {2}, "\x8f");
  EXPECT_EQ(ReadWeight(weight, "Identity")->dtype(), DType::kI4);
  EXPECT_THAT(ReadWeight(weight, "Identity")->ToInts(), testing::ElementsAre(-1, -8));
  EXPECT_EQ(Decode(weight)->dtype(), DType::kI4);
  ExpectError(ReadWeight(weight, "Mul").status(), errors::kUnsupportedType, "has type int4");
}

// Both inputs of DequantizeLinear have one type, so the weight cannot become bytes if its zero point does not.
TEST(TensorProto, WeightsKeepTheTypeOfTheirZeroPoint) {
  auto model = Read(
      ModelProto({.graph = GraphProto({.nodes = {NodeProto("DequantizeLinear", {"w", "s", "z"}, {"y"}),
                                                 NodeProto("QuantizeLinear", {"y", "s", "z"}, {"q"})},
                                       .outputs = {ValueInfo("q", DType::kI4, {})},
                                       .initializers = {RawTensor("w", DType::kI4, {2}, "\x8f"),
                                                        RawTensor("z", DType::kI4, {}, "\x01"), FloatTensor("s", {}, {1})}}),
                  .opsets = {{"", 23}}}));
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  for (ValueId v = 0; v < model->graph.value_count(); ++v) {
    const Value& value = model->graph.value(v);
    if (value.name == "w" || value.name == "z") {
      EXPECT_EQ(value.type.dtype, DType::kI4) << value.name;
    }
  }
}

TEST(TensorProto, ElementsOf8BitsAreRead) {
  const Tensor raw = *Decode(RawTensor("w", DType::kF8E4M3FN, {2}, "\x38\xff"));
  EXPECT_EQ(raw.dtype(), DType::kF8E4M3FN);
  const Tensor typed = *Decode(TensorHead("w", DType::kF8E8M0, {2}) + PackedIntField(field::tensor::kInt32s, {127, 255}));
  EXPECT_THAT(typed.Data<uint8_t>(), testing::ElementsAre(127, 255));
}

TEST(TensorProto, UnknownElementTypesAreNamed) {
  ExpectError(Decode(RawTensor("w", static_cast<DType>(99), {1}, "1")).status(), errors::kInvalidTensor, "99");
  ExpectError(Decode(RawTensor("w", DType::kUndefined, {1}, "1")).status(), errors::kInvalidTensor, "no element type");
}

TEST(TensorProto, RanksBeyondTheLimitAreRefused) {
  ExpectError(Decode(RawTensor("w", DType::kF32, std::vector<int64_t>(100, 1), "1234")).status(), errors::kInvalidTensor,
              "rank 100");
}

TEST(TensorProto, WeightsAreViewsOfTheFileWhereAligned) {
  // Tries eight lengths of the name, one of which aligns the data.
  for (int pad = 0; pad < 8; ++pad) {
    auto owner = std::make_shared<std::string>(WithInitializer(FloatTensor("w" + std::string(pad, '_'), {2}, {3, 4})));
    auto model = ReadModelBytes(AsBytes(*owner), owner);
    ASSERT_TRUE(model.ok());
    for (ValueId id = 0; id < model->graph.value_count(); ++id) {
      const Value& value = model->graph.value(id);
      if (value.role != Role::kConstant) continue;
      const char* data = static_cast<const char*>(value.constant.data());
      bool inside = data >= owner->data() && data < owner->data() + owner->size();
      size_t at = owner->find(std::string(static_cast<const char*>(value.constant.data()), 8));
      EXPECT_EQ(inside, reinterpret_cast<uintptr_t>(owner->data() + at) % 4 == 0);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4, 0u);
      EXPECT_THAT(value.constant.Data<float>(), ::testing::ElementsAre(3, 4));
    }
  }
}

TEST(TensorProto, SparseInitializersBecomeDense) {
  auto model = [](const Proto& sparse) {
    return ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"x", "w"}, {"y"})},
                                            .inputs = {ValueInfo("x", DType::kF32, {4})},
                                            .outputs = {ValueInfo("y", DType::kF32, {4})}}) +
                                TextField(field::graph::kSparseInitializer, sparse)});
  };
  Proto values = TextField(field::sparse::kValues, FloatTensor("w", {2}, {5, 7}));
  auto dims = [](std::vector<int64_t> d) { return PackedIntField(field::sparse::kDims, d); };
  auto run =
      RunModel(model(values + TextField(field::sparse::kIndices, IntTensor("i", {1, 3})) + dims({4})), {{0, 0, 0, 0}});
  ASSERT_TRUE(run.ok()) << FormatError(run.status());
  EXPECT_THAT(*run, ::testing::ElementsAre(0, 5, 0, 7));
  ExpectError(Read(model(values + TextField(field::sparse::kIndices, IntTensor("i", {1, 4})) + dims({4}))).status(),
              errors::kInvalidTensor, "index 4 is outside");
  ExpectError(Read(model(values + TextField(field::sparse::kIndices, IntTensor("i", {1})) + dims({4}))).status(),
              errors::kInvalidTensor, "indices");
  ExpectError(
      Read(model(values + TextField(field::sparse::kIndices, IntTensor("i", {1, 3})) + dims({int64_t{1} << 40}))).status(),
      errors::kLimit, "too large");
}

TEST(ValueFile, HoldsSequencesAndOptionals) {
  Proto one = FloatTensor("", {1}, {1}), two = FloatTensor("", {2}, {2, 3});
  Proto sequence = TextField(field::sequence::kName, "s") + IntField(field::sequence::kKind, 1) +
                   TextFields(field::sequence::kTensors, {one, two});
  auto read = ReadValueBytes(AsBytes(sequence), ValueKind::kSequence);
  ASSERT_TRUE(read.ok()) << FormatError(read.status());
  EXPECT_EQ(read->name, "s");
  ASSERT_EQ(read->value.sequence.size(), 2u);
  EXPECT_THAT(read->value.sequence[1].Data<float>(), ::testing::ElementsAre(2, 3));
  Proto optional = IntField(field::optional::kKind, 3) + TextField(field::optional::kSequence, sequence);
  auto some = ReadValueBytes(AsBytes(optional), ValueKind::kOptionalSequence);
  ASSERT_TRUE(some.ok()) << FormatError(some.status());
  EXPECT_TRUE(some->value.present);
  EXPECT_EQ(some->value.sequence.size(), 2u);
  auto none = ReadValueBytes({}, ValueKind::kOptional);
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->value.present);
  ExpectError(ReadValueBytes(AsBytes(optional), ValueKind::kOptional).status(), errors::kBadInputFile, "expected 1");
  ExpectError(ReadValueBytes(AsBytes(IntField(field::sequence::kKind, 3)), ValueKind::kSequence).status(),
              errors::kUnsupportedType, "sequences of anything but tensors");
}

TEST(ValueFile, HoldsMapsAndSequencesOfMaps) {
  const Proto values = IntField(field::sequence::kKind, 1) +
                       TextFields(field::sequence::kTensors, {FloatTensor("", {}, {1}), FloatTensor("", {1}, {2})});
  const Proto map =
      TextField(field::map::kName, "m") + PackedIntField(field::map::kKeys, {7, 9}) + TextField(field::map::kValues, values);
  auto one = ReadValueBytes(AsBytes(map), ValueKind::kMap);
  ASSERT_TRUE(one.ok()) << FormatError(one.status());
  EXPECT_EQ(one->name, "m");
  ASSERT_EQ(one->value.sequence.size(), 2u);
  EXPECT_THAT(one->value.sequence[0].Data<int64_t>(), ::testing::ElementsAre(7, 9));
  EXPECT_THAT(one->value.sequence[1].Data<float>(), ::testing::ElementsAre(1, 2));
  const Proto texts = TextFields(field::map::kTextKeys, {"a", "b"}) + TextField(field::map::kValues, values);
  const Proto sequence = IntField(field::sequence::kKind, 4) + TextFields(field::sequence::kMaps, {map, texts});
  auto many = ReadValueBytes(AsBytes(sequence), ValueKind::kMapSequence);
  ASSERT_TRUE(many.ok()) << FormatError(many.status());
  ASSERT_EQ(many->value.sequence.size(), 4u);
  EXPECT_THAT(many->value.sequence[2].Data<std::string>(), ::testing::ElementsAre("a", "b"));
  ExpectError(ReadValueBytes(AsBytes(PackedIntField(field::map::kKeys, {7}) + TextField(field::map::kValues, values)),
                             ValueKind::kMap)
                  .status(),
              errors::kBadInputFile, "for each key");
  ExpectError(ReadValueBytes(AsBytes(IntField(field::sequence::kKind, 1)), ValueKind::kMapSequence).status(),
              errors::kBadInputFile, "does not hold maps");
}

TEST(ValueFile, EveryPrefixIsAnError) {
  Proto tensor = FloatTensor("name", {2, 1}, {1, 2});
  for (size_t n = 0; n < tensor.size(); ++n) {
    Proto cut = tensor.substr(0, n);
    EXPECT_FALSE(ReadValueBytes(AsBytes(cut)).ok()) << n;
  }
}

}  // namespace
}  // namespace mge::onnx
