// SPDX-License-Identifier: Apache-2.0
// Graphs whose bytes are sound but whose meaning is not.
#include <chrono>

#include "tests/core/onnx/onnx_test_util.h"

namespace mge::onnx {
namespace {

const Proto kX = ValueInfo("x", DType::kF32, {2}), kY = ValueInfo("y", DType::kF32, {2});

absl::Status ReadNodes(const std::vector<Proto>& nodes,
                       const std::vector<Proto>& initializers = {}) {
  return Read(Model({.graph = Graph({.nodes = nodes,
                                     .inputs = {kX},
                                     .outputs = {kY},
                                     .initializers = initializers})}))
      .status();
}

TEST(WellFormed, CyclesAreNamed) {
  absl::Status status =
      ReadNodes({Node("Add", {"x", "b"}, {"a"}, {.name = "first"}),
                 Node("Relu", {"a"}, {"b"}, {.name = "second"}), Node("Relu", {"x"}, {"y"})});
  ExpectError(status, errors::kInvalidGraph, "cycle");
  EXPECT_THAT(FormatError(status), HasSubstr("'first'"));
  EXPECT_THAT(FormatError(status), HasSubstr("'second'"));
  ExpectError(ReadNodes({Node("Relu", {"y"}, {"y"})}), errors::kInvalidGraph, "cycle");
  // Through a body: the If uses its own result.
  Proto body =
      Graph({.nodes = {Node("Relu", {"y"}, {"b"})}, .outputs = {ValueInfo("b", DType::kF32, {2})}});
  ExpectError(
      ReadNodes(
          {Node("If", {"p"}, {"y"},
                {.attributes = {GraphAttr("then_branch", body), GraphAttr("else_branch", body)}})},
          {RawTensor("p", DType::kBool, {}, std::string(1, '\1'))}),
      errors::kInvalidGraph, "cycle");
}

TEST(WellFormed, EveryValueHasOneProducer) {
  ExpectError(ReadNodes({Node("Relu", {"x"}, {"y"}, {.name = "n1"}),
                         Node("Add", {"x", "x"}, {"y"}, {.name = "n2"})}),
              errors::kInvalidGraph, "by node 'n1' (Relu) and by node 'n2' (Add)");
  ExpectError(ReadNodes({Node("Relu", {"x"}, {"x"}), Node("Relu", {"x"}, {"y"})}),
              errors::kInvalidGraph, "value 'x' is defined twice");
  ExpectError(ReadNodes({Node("Relu", {"x"}, {"y"})},
                        {FloatTensor("w", {1}, {1}), FloatTensor("w", {1}, {2})}),
              errors::kInvalidGraph, "initializer 'w' is given twice");
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})},
                                          .inputs = {kX, kX},
                                          .outputs = {kY}})}))
                  .status(),
              errors::kInvalidGraph, "input 'x' is listed twice");
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})},
                                          .inputs = {kX},
                                          .outputs = {kY, kY}})}))
                  .status(),
              errors::kInvalidGraph, "output 'y' is listed twice");
}

TEST(WellFormed, DanglingUsesAreNamed) {
  ExpectError(ReadNodes({Node("Add", {"x", "q"}, {"y"}, {.name = "sum"})}), errors::kInvalidGraph,
              "'sum' reads 'q', which nothing computes");
  ExpectError(ReadNodes({Node("Relu", {"x"}, {"z"})}), errors::kInvalidGraph,
              "nothing computes output 'y'");
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})}, .inputs = {kX}})}))
                  .status(),
              errors::kInvalidGraph, "no outputs");
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})},
                                          .inputs = {Text(field::value_info::kName, "x")},
                                          .outputs = {kY}})}))
                  .status(),
              errors::kInvalidGraph, "input 'x' has no type");
}

TEST(WellFormed, BodiesMayNotHideNames) {
  Proto body =
      Graph({.nodes = {Node("Relu", {"x"}, {"t"})}, .outputs = {ValueInfo("t", DType::kF32, {2})}});
  ExpectError(
      ReadNodes(
          {Node("Relu", {"x"}, {"t"}),
           Node("If", {"p"}, {"y"},
                {.attributes = {GraphAttr("then_branch", body), GraphAttr("else_branch", body)}})},
          {RawTensor("p", DType::kBool, {}, std::string(1, '\1'))}),
      errors::kInvalidGraph, "value 't' of a body hides");
}

TEST(WellFormed, FunctionsThatCallThemselvesAreNamed) {
  auto function = [](const std::string& name, const std::string& callee) {
    return Function({.domain = "my",
                     .name = name,
                     .inputs = {"a"},
                     .outputs = {"b"},
                     .nodes = {Node(callee, {"a"}, {"b"}, {.domain = "my"})}});
  };
  auto call = [&](const std::vector<Proto>& functions) {
    return Read(Model({.graph = Graph({.nodes = {Node("A", {"x"}, {"y"}, {.domain = "my"})},
                                       .inputs = {kX},
                                       .outputs = {kY}}),
                       .functions = functions}))
        .status();
  };
  ExpectError(call({function("A", "A")}), errors::kInvalidGraph, "my.A -> my.A");
  ExpectError(call({function("A", "B"), function("B", "A")}), errors::kInvalidGraph,
              "my.A -> my.B -> my.A");
  ExpectError(call({function("A", "A"), function("A", "A")}), errors::kInvalidGraph,
              "function 'my.A' is defined twice");
}

TEST(WellFormed, FunctionBombsHitALimit) {
  // Each level calls the next one twice: 2^40 nodes.
  std::vector<Proto> functions;
  for (int i = 0; i < 40; ++i) {
    std::string next = i + 1 < 40 ? "F" + std::to_string(i + 1) : "Relu",
                domain = i + 1 < 40 ? "my" : "";
    functions.push_back(Function({.domain = "my",
                                  .name = "F" + std::to_string(i),
                                  .inputs = {"a"},
                                  .outputs = {"b"},
                                  .nodes = {Node(next, {"a"}, {"t"}, {.domain = domain}),
                                            Node(next, {"t"}, {"b"}, {.domain = domain})}}));
  }
  Proto bytes = Model({.graph = Graph({.nodes = {Node("F0", {"x"}, {"y"}, {.domain = "my"})},
                                       .inputs = {kX},
                                       .outputs = {kY}}),
                       .functions = functions});
  ReadOptions options;
  options.max_expansions = 20'000;
  ExpectError(Read(bytes, options).status(), errors::kLimit, "limits are 20000 nodes");
}

TEST(WellFormed, ChainsOfFunctionsHitTheDepthLimit) {
  std::vector<Proto> functions;
  for (int i = 0; i < 300; ++i) {
    functions.push_back(
        Function({.domain = "my",
                  .name = "F" + std::to_string(i),
                  .inputs = {"a"},
                  .outputs = {"b"},
                  .nodes = {Node("F" + std::to_string(i + 1), {"a"}, {"b"}, {.domain = "my"})}}));
  }
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("F0", {"x"}, {"y"}, {.domain = "my"})},
                                          .inputs = {kX},
                                          .outputs = {kY}}),
                          .functions = functions}))
                  .status(),
              errors::kLimit, "deeper than 100 levels");
}

TEST(WellFormed, CallsMustFitTheirFunction) {
  Proto f = Function({.domain = "my",
                      .name = "F",
                      .inputs = {"a"},
                      .outputs = {"b"},
                      .nodes = {Node("Relu", {"a"}, {"b"})}});
  auto call = [&](const Proto& node) {
    return Read(Model({.graph = Graph({.nodes = {node}, .inputs = {kX}, .outputs = {kY}}),
                       .functions = {f}}))
        .status();
  };
  ExpectError(call(Node("F", {"x", "x"}, {"y"}, {.domain = "my"})), errors::kInvalidGraph,
              "does not fit function 'my.F'");
  Proto empty = Function({.domain = "my", .name = "G", .inputs = {"a"}, .outputs = {"b"}});
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("G", {"x"}, {"y"}, {.domain = "my"})},
                                          .inputs = {kX},
                                          .outputs = {kY}}),
                          .functions = {empty}}))
                  .status(),
              errors::kInvalidGraph, "nothing computes output 'b'");
}

TEST(WellFormed, UnsupportedVersionsListWhatIsSupported) {
  Proto graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}});
  ExpectError(Read(Model({.graph = graph, .ir_version = 99})).status(), errors::kUnsupportedVersion,
              "supported are versions 3 to 13");
  ExpectError(Read(Model({.graph = graph, .ir_version = 2})).status(), errors::kUnsupportedVersion,
              "3 to 13");
  ExpectError(Read(Model({.graph = graph, .opsets = {{"", 999}}})).status(),
              errors::kUnsupportedVersion, "supported are versions 1 to");
  ExpectError(Read(Model({.graph = graph, .opsets = {{"", 0}}})).status(),
              errors::kUnsupportedVersion, "operator set 0");
  ExpectError(Read(Model({.graph = graph, .opsets = {{"", 13}, {"ai.onnx", 14}}})).status(),
              errors::kInvalidGraph, "imported twice");
}

TEST(WellFormed, UnknownOperatorsAreNamedWithTheNearest) {
  absl::Status status = ReadNodes({Node("Rellu", {"x"}, {"y"})});
  ExpectError(status, errors::kUnsupportedOp, "Rellu");
  EXPECT_THAT(FormatError(status), HasSubstr("did you mean 'Relu'"));
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("Op", {"x"}, {"y"}, {.domain = "acme"})},
                                          .inputs = {kX},
                                          .outputs = {kY}}),
                          .opsets = {{"", 13}, {"acme", 1}}}))
                  .status(),
              errors::kUnsupportedOp, "acme");
  ExpectError(ReadNodes({Node("Op", {"x"}, {"y"}, {.domain = "acme"})}), errors::kInvalidGraph,
              "domain 'acme' is not imported");
}

TEST(WellFormed, AttributesAreChecked) {
  ExpectError(ReadNodes({Node(
                  "Transpose", {"x"}, {"y"},
                  {.attributes = {IntsAttr("perm", {0}), IntsAttr("perm", {0})}, .name = "t"})}),
              errors::kInvalidNode, "attribute 'perm' is given twice");
  ExpectError(ReadNodes({Node("Transpose", {"x"}, {"y"}, {.attributes = {IntAttr("perm", 0)}})}),
              errors::kInvalidNode, "perm");
  ExpectError(ReadNodes({Node("Relu", {"x"}, {"y"}, {.attributes = {IntAttr("bogus", 0)}})}),
              errors::kInvalidNode, "bogus");
  ExpectError(ReadNodes({Node("Transpose", {"x"}, {"y"},
                              {.attributes = {ReferenceAttr("perm", AttributeKind::kInts, "p")}})}),
              errors::kInvalidGraph, "outside of a function");
}

TEST(WellFormed, UnsupportedTypesOfInputsAreNamed) {
  Proto map = Text(field::type::kMap, "");
  ExpectError(Read(Model({.graph = Graph({.nodes = {Node("Relu", {"x"}, {"y"})},
                                          .inputs = {ValueInfo("x", map)},
                                          .outputs = {kY}})}))
                  .status(),
              errors::kUnsupportedType, "map");
}

TEST(WellFormed, HostileNamesAreEscapedInMessages) {
  std::string evil =
      std::string("\x1b[2J\x00\xff\xe2\x80\xae</script>", 18) + std::string(1 << 20, 'a');
  absl::Status status = ReadNodes({Node("Add", {"x", evil}, {"y"}, {.name = evil})});
  EXPECT_EQ(ErrorId(status), errors::kInvalidGraph.id);
  std::string text = FormatError(status);
  EXPECT_LT(text.size(), 10'000u);
  EXPECT_THAT(text, HasSubstr("\\x1b[2J\\x00\\xff\\u202e"));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  // Such names are no reason to refuse a model.
  EXPECT_TRUE(
      ReadNodes({Node("Relu", {"x"}, {evil}, {.name = evil}), Node("Relu", {evil}, {"y"})}).ok());
}

TEST(WellFormed, EqualNamesOfCallsDoNotTakeQuadraticTime) {
  Proto f = Function({.domain = "my",
                      .name = "F",
                      .inputs = {"a"},
                      .outputs = {"b"},
                      .nodes = {Node("Relu", {"a"}, {"t"}), Node("Relu", {"t"}, {"b"})}});
  std::vector<Proto> nodes;
  for (int i = 0; i < 20'000; ++i) {
    nodes.push_back(Node("F", {i == 0 ? "x" : "v" + std::to_string(i)},
                         {i == 19'999 ? "y" : "v" + std::to_string(i + 1)},
                         {.name = "same", .domain = "my"}));
  }
  auto begin = std::chrono::steady_clock::now();
  auto model = Read(
      Model({.graph = Graph({.nodes = nodes, .inputs = {kX}, .outputs = {kY}}), .functions = {f}}));
  EXPECT_TRUE(model.ok()) << FormatError(model.status());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

}  // namespace
}  // namespace mge::onnx
