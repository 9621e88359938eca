// SPDX-License-Identifier: Apache-2.0
// Models whose bytes can be decoded but whose graph is invalid.
#include <chrono>

#include "tests/core/onnx/onnx_test_util.h"

namespace mge::onnx {
namespace {

const Proto kX = ValueInfo("x", DType::kF32, {2}), kY = ValueInfo("y", DType::kF32, {2});

absl::Status ReadNodes(const std::vector<Proto>& nodes, const std::vector<Proto>& initializers = {}) {
  return Read(ModelProto(
                  {.graph = GraphProto({.nodes = nodes, .inputs = {kX}, .outputs = {kY}, .initializers = initializers})}))
      .status();
}

TEST(WellFormed, CyclesAreNamed) {
  absl::Status status = ReadNodes({NodeProto("Add", {"x", "b"}, {"a"}, {.name = "first"}),
                                   NodeProto("Relu", {"a"}, {"b"}, {.name = "second"}), NodeProto("Relu", {"x"}, {"y"})});
  ExpectError(status, errors::kInvalidGraph, "cycle");
  EXPECT_THAT(FormatError(status), HasSubstr("'first'"));
  EXPECT_THAT(FormatError(status), HasSubstr("'second'"));
  ExpectError(ReadNodes({NodeProto("Relu", {"y"}, {"y"})}), errors::kInvalidGraph, "cycle");
  // A cycle through a body: the If uses its own result.
  Proto body = GraphProto({.nodes = {NodeProto("Relu", {"y"}, {"b"})}, .outputs = {ValueInfo("b", DType::kF32, {2})}});
  ExpectError(ReadNodes({NodeProto("If", {"p"}, {"y"},
                                   {.attributes = {GraphAttr("then_branch", body), GraphAttr("else_branch", body)}})},
                        {RawTensor("p", DType::kBool, {}, std::string(1, '\1'))}),
              errors::kInvalidGraph, "cycle");
}

TEST(WellFormed, EveryValueHasOneProducer) {
  ExpectError(
      ReadNodes({NodeProto("Relu", {"x"}, {"y"}, {.name = "n1"}), NodeProto("Add", {"x", "x"}, {"y"}, {.name = "n2"})}),
      errors::kInvalidGraph, "by node 'n1' (Relu) and by node 'n2' (Add)");
  ExpectError(ReadNodes({NodeProto("Relu", {"x"}, {"x"}), NodeProto("Relu", {"x"}, {"y"})}), errors::kInvalidGraph,
              "value 'x' is defined twice");
  ExpectError(Read(ModelProto({.graph = GraphProto(
                                   {.nodes = {NodeProto("Relu", {"x"}, {"y"})}, .inputs = {kX, kX}, .outputs = {kY}})}))
                  .status(),
              errors::kInvalidGraph, "input 'x' is listed twice");
}

TEST(WellFormed, CommonExporterDeviationsAreAcceptedWithAWarning) {
  auto model = Read(
      ModelProto({.graph = GraphProto({.nodes = {NodeProto("Add", {"x", "w"}, {"t"}),
                                                 NodeProto("Gelu", {"t"}, {"y"}, {.name = "g", .domain = "com.microsoft"})},
                                       .inputs = {kX},
                                       .outputs = {kY, kY},
                                       .initializers = {FloatTensor("w", {1}, {1}), FloatTensor("w", {2}, {2, 3})}})}));
  ASSERT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_THAT(model->info.deviations,
              ::testing::ElementsAre("initializer 'w' is duplicate: the last one is used",
                                     HasSubstr("domain 'com.microsoft' is not imported: version 1 is used"),
                                     "output 'y' is listed twice: it is returned twice"));
  EXPECT_EQ(model->graph.outputs().size(), 2u);
  auto pool = Read(ModelProto(
      {.graph = GraphProto({.nodes = {NodeProto("MaxPool", {"x"}, {"y"},
                                                {.attributes = {IntsAttr("kernel_shape", {3}), IntsAttr("pads", {1, 1}),
                                                                Attribute("auto_pad", AttributeKind::kText,
                                                                          TextField(field::attribute::kText, "VALID"))},
                                                 .name = "p"})},
                            .inputs = {ValueInfo("x", DType::kF32, {1, 1, 5})},
                            .outputs = {kY}})}));
  ASSERT_TRUE(pool.ok()) << FormatError(pool.status());
  EXPECT_THAT(pool->info.deviations, ::testing::ElementsAre("node 'p' (MaxPool) has auto_pad and pads: auto_pad is used"));
}

TEST(WellFormed, DanglingUsesAreNamed) {
  ExpectError(ReadNodes({NodeProto("Add", {"x", "q"}, {"y"}, {.name = "sum"})}), errors::kInvalidGraph,
              "'sum' reads 'q', which nothing computes");
  ExpectError(ReadNodes({NodeProto("Relu", {"x"}, {"z"})}), errors::kInvalidGraph, "nothing computes output 'y'");
  ExpectError(Read(ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})}, .inputs = {kX}})})).status(),
              errors::kInvalidGraph, "no outputs");
  ExpectError(Read(ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                                                    .inputs = {TextField(field::value_info::kName, "x")},
                                                    .outputs = {kY}})}))
                  .status(),
              errors::kInvalidGraph, "input 'x' has no type");
}

TEST(WellFormed, BodiesMayNotHideNames) {
  Proto body = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"t"})}, .outputs = {ValueInfo("t", DType::kF32, {2})}});
  ExpectError(ReadNodes({NodeProto("Relu", {"x"}, {"t"}),
                         NodeProto("If", {"p"}, {"y"},
                                   {.attributes = {GraphAttr("then_branch", body), GraphAttr("else_branch", body)}})},
                        {RawTensor("p", DType::kBool, {}, std::string(1, '\1'))}),
              errors::kInvalidGraph, "value 't' of a body has the name of a value of the outer graph");
}

TEST(WellFormed, FunctionsThatCallThemselvesAreNamed) {
  auto function = [](const std::string& name, const std::string& callee) {
    return FunctionProto({.domain = "my",
                          .name = name,
                          .inputs = {"a"},
                          .outputs = {"b"},
                          .nodes = {NodeProto(callee, {"a"}, {"b"}, {.domain = "my"})}});
  };
  auto call = [&](const std::vector<Proto>& functions) {
    return Read(
               ModelProto({.graph = GraphProto(
                               {.nodes = {NodeProto("A", {"x"}, {"y"}, {.domain = "my"})}, .inputs = {kX}, .outputs = {kY}}),
                           .functions = functions}))
        .status();
  };
  ExpectError(call({function("A", "A")}), errors::kInvalidGraph, "my.A -> my.A");
  ExpectError(call({function("A", "B"), function("B", "A")}), errors::kInvalidGraph, "my.A -> my.B -> my.A");
  ExpectError(call({function("A", "A"), function("A", "A")}), errors::kInvalidGraph, "function 'my.A' is defined twice");
}

TEST(WellFormed, ExponentialFunctionCallsHitALimit) {
  // Each level calls the next one twice: 2^40 nodes.
  std::vector<Proto> functions;
  for (int i = 0; i < 40; ++i) {
    std::string next = i + 1 < 40 ? "F" + std::to_string(i + 1) : "Relu", domain = i + 1 < 40 ? "my" : "";
    functions.push_back(FunctionProto(
        {.domain = "my",
         .name = "F" + std::to_string(i),
         .inputs = {"a"},
         .outputs = {"b"},
         .nodes = {NodeProto(next, {"a"}, {"t"}, {.domain = domain}), NodeProto(next, {"t"}, {"b"}, {.domain = domain})}}));
  }
  Proto bytes = ModelProto(
      {.graph = GraphProto({.nodes = {NodeProto("F0", {"x"}, {"y"}, {.domain = "my"})}, .inputs = {kX}, .outputs = {kY}}),
       .functions = functions});
  ReadOptions options;
  options.max_expansions = 20'000;
  ExpectError(Read(bytes, options).status(), errors::kLimit, "the limit is 20000; a call of 'my.F0' adds 2.199e+12");
}

TEST(WellFormed, ChainsOfFunctionsHitTheDepthLimit) {
  std::vector<Proto> functions;
  for (int i = 0; i < 300; ++i) {
    functions.push_back(FunctionProto({.domain = "my",
                                       .name = "F" + std::to_string(i),
                                       .inputs = {"a"},
                                       .outputs = {"b"},
                                       .nodes = {NodeProto("F" + std::to_string(i + 1), {"a"}, {"b"}, {.domain = "my"})}}));
  }
  ExpectError(
      Read(ModelProto({.graph = GraphProto(
                           {.nodes = {NodeProto("F0", {"x"}, {"y"}, {.domain = "my"})}, .inputs = {kX}, .outputs = {kY}}),
                       .functions = functions}))
          .status(),
      errors::kLimit, "deeper than 100 levels");
}

TEST(WellFormed, CallsMustMatchTheirFunction) {
  Proto f = FunctionProto(
      {.domain = "my", .name = "F", .inputs = {"a"}, .outputs = {"b"}, .nodes = {NodeProto("Relu", {"a"}, {"b"})}});
  auto call = [&](const Proto& node) {
    return Read(ModelProto({.graph = GraphProto({.nodes = {node}, .inputs = {kX}, .outputs = {kY}}), .functions = {f}}))
        .status();
  };
  ExpectError(call(NodeProto("F", {"x", "x"}, {"y"}, {.domain = "my"})), errors::kInvalidGraph,
              "does not match function 'my.F'");
  Proto empty = FunctionProto({.domain = "my", .name = "G", .inputs = {"a"}, .outputs = {"b"}});
  ExpectError(
      Read(ModelProto({.graph = GraphProto(
                           {.nodes = {NodeProto("G", {"x"}, {"y"}, {.domain = "my"})}, .inputs = {kX}, .outputs = {kY}}),
                       .functions = {empty}}))
          .status(),
      errors::kInvalidGraph, "nothing computes output 'b'");
}

TEST(WellFormed, ErrorsOfUnsupportedVersionsListTheSupportedOnes) {
  Proto graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}});
  ExpectError(Read(ModelProto({.graph = graph, .ir_version = 99})).status(), errors::kUnsupportedVersion,
              "supported are versions 1 to 14");
  ExpectError(Read(ModelProto({.graph = graph, .opsets = {{"", 999}}})).status(), errors::kUnsupportedVersion,
              "supported are versions 1 to");
  ExpectError(Read(ModelProto({.graph = graph, .opsets = {{"", 0}}})).status(), errors::kUnsupportedVersion,
              "operator set 0");
  ExpectError(Read(ModelProto({.graph = graph, .opsets = {{"", 13}, {"ai.onnx", 14}}})).status(), errors::kInvalidGraph,
              "imported twice");
}

TEST(WellFormed, UnknownOperatorsAreNamedWithTheNearest) {
  absl::Status status = ReadNodes({NodeProto("Rellu", {"x"}, {"y"})});
  ExpectError(status, errors::kUnsupportedOp, "Rellu");
  EXPECT_THAT(FormatError(status), HasSubstr("did you mean 'Relu'"));
  ExpectError(
      Read(ModelProto({.graph = GraphProto(
                           {.nodes = {NodeProto("Op", {"x"}, {"y"}, {.domain = "acme"})}, .inputs = {kX}, .outputs = {kY}}),
                       .opsets = {{"", 13}, {"acme", 1}}}))
          .status(),
      errors::kUnsupportedOp, "acme");
  ExpectError(ReadNodes({NodeProto("Op", {"x"}, {"y"}, {.domain = "acme"})}), errors::kInvalidGraph,
              "domain 'acme' is not imported");
}

TEST(WellFormed, AttributesAreChecked) {
  ExpectError(ReadNodes({NodeProto("Transpose", {"x"}, {"y"},
                                   {.attributes = {IntsAttr("perm", {0}), IntsAttr("perm", {0})}, .name = "t"})}),
              errors::kInvalidNode, "attribute 'perm' is given twice");
  ExpectError(ReadNodes({NodeProto("Transpose", {"x"}, {"y"}, {.attributes = {IntAttr("perm", 0)}})}), errors::kInvalidNode,
              "perm");
  ExpectError(ReadNodes({NodeProto("Relu", {"x"}, {"y"}, {.attributes = {IntAttr("bogus", 0)}})}), errors::kInvalidNode,
              "bogus");
  ExpectError(
      ReadNodes({NodeProto("Transpose", {"x"}, {"y"}, {.attributes = {ReferenceAttr("perm", AttributeKind::kInts, "p")}})}),
      errors::kInvalidGraph, "outside of a function");
}

TEST(WellFormed, UnsupportedTypesOfInputsAreNamed) {
  Proto opaque = TextField(field::type::kOpaque, "");
  ExpectError(Read(ModelProto({.graph = GraphProto({.nodes = {NodeProto("Relu", {"x"}, {"y"})},
                                                    .inputs = {ValueInfo("x", opaque)},
                                                    .outputs = {kY}})}))
                  .status(),
              errors::kUnsupportedType, "opaque");
}

TEST(WellFormed, InputsMayBeMapsAndSequencesOfMaps) {
  auto read = [](const Proto& type) {
    return Read(ModelProto(
        {.graph = GraphProto(
             {.nodes = {NodeProto("Identity", {"x"}, {"y"})}, .inputs = {ValueInfo("x", type)}, .outputs = {kY}})}));
  };
  const Proto map = TextField(field::type::kMap, IntField(field::map_type::kKey, 7) +
                                                     TextField(field::map_type::kValue, TensorTypeProto(DType::kF32, {1})));
  auto one = read(map);
  ASSERT_TRUE(one.ok()) << FormatError(one.status());
  const Value& x = one->graph.value(one->graph.inputs()[0]);
  EXPECT_EQ(TypeText(x.kind, x.type), "map float32");
  auto many = read(TextField(field::type::kSequence, TextField(field::nested_type::kElement, map)));
  ASSERT_TRUE(many.ok()) << FormatError(many.status());
  EXPECT_EQ(many->graph.value(many->graph.inputs()[0]).kind, ValueKind::kMapSequence);
  ExpectError(read(TextField(field::type::kMap, TextField(field::map_type::kValue, map))).status(), errors::kUnsupportedType,
              "map in a map or an optional");
  ExpectError(read(TextField(field::type::kOptional, TextField(field::nested_type::kElement, map))).status(),
              errors::kUnsupportedType, "map in a map or an optional");
}

TEST(WellFormed, HostileNamesAreEscapedInMessages) {
  std::string evil = std::string("\x1b[2J\x00\xff\xe2\x80\xae</script>", 18) + std::string(1 << 20, 'a');
  absl::Status status = ReadNodes({NodeProto("Add", {"x", evil}, {"y"}, {.name = evil})});
  EXPECT_EQ(ErrorId(status), errors::kInvalidGraph.id);
  std::string text = FormatError(status);
  EXPECT_LT(text.size(), 10'000u);
  EXPECT_THAT(text, HasSubstr("\\x1b[2J\\x00\\xff\\u202e"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  // A model with such names must still be read.
  EXPECT_TRUE(ReadNodes({NodeProto("Relu", {"x"}, {evil}, {.name = evil}), NodeProto("Relu", {evil}, {"y"})}).ok());
}

TEST(WellFormed, EqualNamesOfCallsDoNotTakeQuadraticTime) {
  Proto f = FunctionProto({.domain = "my",
                           .name = "F",
                           .inputs = {"a"},
                           .outputs = {"b"},
                           .nodes = {NodeProto("Relu", {"a"}, {"t"}), NodeProto("Relu", {"t"}, {"b"})}});
  std::vector<Proto> nodes;
  for (int i = 0; i < 20'000; ++i) {
    nodes.push_back(NodeProto("F", {i == 0 ? "x" : "v" + std::to_string(i)},
                              {i == 19'999 ? "y" : "v" + std::to_string(i + 1)}, {.name = "same", .domain = "my"}));
  }
  auto begin = std::chrono::steady_clock::now();
  auto model = Read(ModelProto({.graph = GraphProto({.nodes = nodes, .inputs = {kX}, .outputs = {kY}}), .functions = {f}}));
  EXPECT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace mge::onnx
