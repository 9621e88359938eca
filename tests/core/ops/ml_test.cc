// SPDX-License-Identifier: Apache-2.0
// The operators of ai.onnx.ml, and the tokenizer that models of texts begin with.
#include "core/ops/eval_context.h"
#include "core/ops/families/token_pattern.h"
#include "tests/support/ops_test_util.h"

namespace mge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

std::string Ml(const std::string& op, const std::vector<std::string>& inputs, std::string_view attrs = "", int wanted = 0) {
  const int outputs = op.find("Classifier") == std::string::npos ? 1 : 2;
  return RunOp("ai.onnx.ml::" + op, inputs, attrs, outputs, wanted);
}

TEST(ArrayFeatureExtractor, TakesColumnsAndMakesAVectorOneRow) {
  EXPECT_EQ(Ml("ArrayFeatureExtractor@1", {"int32[2,3]<1, 2, 3, 4, 5, 6>", "int64[2]<2, 0>"}), "int32[2,2]<3, 1, 6, 4>");
  EXPECT_EQ(Ml("ArrayFeatureExtractor@1", {"string[2]<\"a\", \"b\">", "int64[3]<1, 0, 1>"}),
            "string[1,3]<\"b\", \"a\", \"b\">");
  EXPECT_THAT(Ml("ArrayFeatureExtractor@1", {"int32[1,3]<1>", "int64[1]<3>"}), HasSubstr("index 3 is outside of [0, 3)"));
  EXPECT_THAT(Ml("ArrayFeatureExtractor@1", {"int32[]<1>", "int64[1]<0>"}), HasSubstr("scalar"));
}

TEST(Binarizer, ComparesWithTheThreshold) {
  EXPECT_EQ(Ml("Binarizer@1", {"float32[3]<0.5, 1.0, 1.5>"}, "{threshold=1.0}"), "float32[3]<0.0, 0.0, 1.0>");
  EXPECT_EQ(Ml("Binarizer@1", {"int64[2]<-1, 1>"}), "int64[2]<0, 1>");
}

TEST(CategoryMapper, MapsBothWays) {
  const std::string_view attrs = "{cats_strings=[\"x\",\"y\"], cats_int64s=[5,7], default_string=\"?\"}";
  EXPECT_EQ(Ml("CategoryMapper@1", {"string[3]<\"y\", \"x\", \"z\">"}, attrs), "int64[3]<7, 5, -1>");
  EXPECT_EQ(Ml("CategoryMapper@1", {"int64[3]<7, 5, 1>"}, attrs), "string[3]<\"y\", \"x\", \"?\">");
}

TEST(LabelEncoder, SupportsEveryOperatorSet) {
  EXPECT_EQ(Ml("LabelEncoder@1", {"string[2]<\"b\", \"c\">"}, "{classes_strings=[\"a\",\"b\"]}"), "int64[2]<1, -1>");
  EXPECT_EQ(Ml("LabelEncoder@1", {"int64[2]<0, 2>"}, "{classes_strings=[\"a\",\"b\"]}"), "string[2]<\"a\", \"_Unused\">");
  EXPECT_EQ(Ml("LabelEncoder@2", {"float32[2]<1.5, 2.0>"}, "{keys_floats=[1.5], values_strings=[\"a\"]}"),
            "string[2]<\"a\", \"_Unused\">");
  EXPECT_EQ(Ml("LabelEncoder@4", {"string[3]<\"a\", \"b\", \"z\">"},
               "{keys_tensor=string[2]<\"a\", \"b\">, values_tensor=int16[2]<3, 4>, default_tensor=int16[1]<9>}"),
            "int16[3]<3, 4, 9>");
}

TEST(LabelEncoder, FindsNanAndTheFirstOfEqualKeys) {
  EXPECT_EQ(Ml("LabelEncoder@2", {"float32[2]<nan, -0.0>"}, "{keys_floats=[nan,0.0,0.0], values_int64s=[1,2,3]}"),
            "int64[2]<1, 2>");
}

TEST(LabelEncoder, NamesListsThatDoNotFit) {
  EXPECT_THAT(Ml("LabelEncoder@2", {"int64[1]<1>"}, "{keys_int64s=[1,2], values_int64s=[1]}"),
              HasSubstr("2 keys and 1 values"));
  EXPECT_THAT(Ml("LabelEncoder@2", {"int64[1]<1>"}, "{keys_floats=[1.0], values_int64s=[1]}"),
              HasSubstr("the keys are float32"));
  EXPECT_THAT(Ml("LabelEncoder@2", {"int64[1]<1>"}, "{keys_int64s=[1]}"), HasSubstr("values_strings"));
}

// A step of a plan, which keeps what an evaluator prepares.
class Step {
 public:
  explicit Step(Node node) : node_(std::move(node)) {}
  Node& node() { return node_; }
  std::string Run(Tensor x) {
    HostValue input;
    input.tensor = std::move(x);
    Context context(*this, input);
    auto results = context.Run();
    return results.ok() ? TensorToText(results->front().tensor) : "error: " + ErrorTitle(results.status());
  }

 private:
  struct Context : HostEvalContext {
    Context(Step& step, const HostValue& input)
        : HostEvalContext(step.node_, {&input}, UnlimitedHostAllocator(), kNoStop, 0), step(step) {}
    PreparedData* prepared() override { return &step.kept_; }
    static inline const StopCheck kNoStop = nullptr;
    Step& step;
  };
  Node node_;
  PreparedData kept_;
};

Node NodeOf(std::string op, Attributes attrs) {
  Node node;
  node.op = std::move(op);
  node.domain = "ai.onnx.ml";
  node.inputs = {0};
  node.outputs = {0};
  node.attrs = std::move(attrs);
  node.def = FindOp(node.domain, node.op);
  AddDefaults(*node.def, node.attrs);
  return node;
}

TEST(LabelEncoder, BuildsItsTableInTheFirstRunOfAStepOnly) {
  Attributes attrs;
  attrs.Set("classes_strings", Texts{"a", "b"});
  Step step(NodeOf("LabelEncoder", attrs));
  EXPECT_EQ(step.Run(Tensor::Scalar<std::string>("b")), "int64[]<1>");
  step.node().attrs.Set("classes_strings", Texts{"b", "a"});
  EXPECT_EQ(step.Run(Tensor::Scalar<std::string>("b")), "int64[]<1>");
  EXPECT_EQ(step.Run(Tensor::Scalar<int64_t>(0)), "string[]<\"b\">");  // of another type: a table of its own
}

TEST(SvmRegressor, ChecksTheFeaturesOfEachRunOfAStep) {
  Attributes attrs;
  attrs.Set("coefficients", Floats{1, 2});
  attrs.Set("rho", Floats{0.5f});
  Step step(NodeOf("SVMRegressor", attrs));
  EXPECT_EQ(step.Run(Tensor::Vector<float>(Floats{1, 1})), "float32[1,1]<3.5>");
  EXPECT_THAT(step.Run(Tensor::Vector<float>(Floats{1, 1, 1})), HasSubstr("number of features"));
}

TEST(FeatureVectorizer, CutsAndFillsColumns) {
  EXPECT_EQ(Ml("FeatureVectorizer@1", {"int32[2,2]<1, 2, 3, 4>", "float32[2,1]<0.5, 1.5>"}, "{inputdimensions=[1,2]}"),
            "float32[2,3]<1.0, 0.5, 0.0, 3.0, 1.5, 0.0>");
  EXPECT_EQ(Ml("FeatureVectorizer@1", {"int32[2]<1, 2>", "int64[1]<3>"}), "float32[1,3]<1.0, 2.0, 3.0>");
  EXPECT_THAT(Ml("FeatureVectorizer@1", {"int32[2,1]<1>", "int64[3,1]<3>"}), HasSubstr("number of rows"));
}

TEST(Imputer, ReplacesNanAndNumbers) {
  EXPECT_EQ(
      Ml("Imputer@1", {"float32[2,2]<nan, 1.0, 2.0, nan>"}, "{imputed_value_floats=[5.0,6.0], replaced_value_float=nan}"),
      "float32[2,2]<5.0, 1.0, 2.0, 6.0>");
  EXPECT_EQ(Ml("Imputer@1", {"int64[3]<0, 1, 0>"}, "{imputed_value_int64s=[7]}"), "int64[3]<7, 1, 7>");
  EXPECT_THAT(Ml("Imputer@1", {"float32[1,3]<1.0>"}, "{imputed_value_floats=[5.0,6.0]}"), HasSubstr("2 imputed values"));
}

TEST(Normalizer, DividesByTheNormUnlessItIsZero) {
  EXPECT_EQ(Ml("Normalizer@1", {"float32[2,2]<-8.0, 4.0, 0.0, 0.0>"}), "float32[2,2]<-2.0, 1.0, 0.0, 0.0>");
  EXPECT_EQ(Ml("Normalizer@1", {"int32[2]<-1, 3>"}, "{norm=\"L1\"}"), "float32[2]<-0.25, 0.75>");
  EXPECT_EQ(Ml("Normalizer@1", {"float64[2]<-3.0, 4.0>"}, "{norm=\"L2\"}"), "float32[2]<-0.6, 0.8>");
}

TEST(OneHotEncoder, EncodesNumbersAndStrings) {
  EXPECT_EQ(Ml("OneHotEncoder@1", {"float32[2]<2.0, 9.0>"}, "{cats_int64s=[1,2]}"), "float32[2,2]<0.0, 1.0, 0.0, 0.0>");
  EXPECT_EQ(Ml("OneHotEncoder@1", {"int64[3]<-7, 0, 7>"}, "{cats_int64s=[7,-7,7]}"),
            "float32[3,3]<0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0>");
  EXPECT_EQ(Ml("OneHotEncoder@1", {"int64[3]<-9223372036854775808, 0, 5>"},
               "{cats_int64s=[9223372036854775807,-9223372036854775808]}"),
            "float32[3,2]<0.0, 1.0, 0.0, 0.0, 0.0, 0.0>");
  EXPECT_EQ(Ml("OneHotEncoder@1", {"string[1,1]<\"b\">"}, "{cats_strings=[\"a\",\"b\"]}"), "float32[1,1,2]<0.0, 1.0>");
  EXPECT_THAT(Ml("OneHotEncoder@1", {"int64[1]<9>"}, "{cats_int64s=[1,2], zeros=0}"), HasSubstr("no known category"));
  EXPECT_THAT(Ml("OneHotEncoder@1", {"int64[1]<9>"}, "{cats_strings=[\"a\"]}"), HasSubstr("differs from the categories'"));
}

TEST(Scaler, ScalesEachFeature) {
  EXPECT_EQ(Ml("Scaler@1", {"float32[2,2]<1.0, 2.0, 3.0, 4.0>"}, "{offset=[1.0,2.0], scale=[2.0,0.5]}"),
            "float32[2,2]<0.0, 0.0, 4.0, 1.0>");
  EXPECT_EQ(Ml("Scaler@1", {"int64[3]<1, 2, 3>"}, "{scale=[2.0]}"), "float32[3]<2.0, 4.0, 6.0>");
  EXPECT_THAT(Ml("Scaler@1", {"int64[3]<1, 2, 3>"}, "{scale=[2.0,1.0]}"), HasSubstr("2 elements for 3 features"));
}

TEST(LinearRegressor, AddsInterceptsAndTransforms) {
  EXPECT_EQ(Ml("LinearRegressor@1", {"float32[2,2]<1.0, 2.0, 3.0, 4.0>"},
               "{coefficients=[1.0,1.0,2.0,-1.0], intercepts=[0.5,0.0], targets=2}"),
            "float32[2,2]<3.5, 0.0, 7.5, 2.0>");
  EXPECT_EQ(Ml("LinearRegressor@1", {"float32[2]<1.0, -1.0>"}, "{coefficients=[1.0,1.0], post_transform=\"LOGISTIC\"}"),
            "float32[1,1]<0.5>");
  EXPECT_THAT(Ml("LinearRegressor@1", {"float32[2]<1.0, 2.0>"}, "{coefficients=[1.0,1.0,1.0]}"), HasSubstr("do not fit 2"));
}

TEST(LinearClassifier, ChoosesTheLabelAndGivesTheFirstOfTwoTheOppositeScore) {
  const std::string_view one = "{coefficients=[1.0], intercepts=[0.0], classlabels_strings=[\"no\",\"yes\"]}";
  EXPECT_EQ(Ml("LinearClassifier@1", {"float32[2,1]<0.25, -1.0>"}, one), "string[2]<\"yes\", \"no\">");
  EXPECT_EQ(Ml("LinearClassifier@1", {"float32[2,1]<0.25, -1.0>"}, one, 1), "float32[2,2]<-0.25, 0.25, 1.0, -1.0>");
  const std::string_view three = "{coefficients=[1.0,0.0,-1.0], intercepts=[0.0,0.5,0.0], classlabels_ints=[4,5,6]}";
  EXPECT_EQ(Ml("LinearClassifier@1", {"int32[3,1]<2, 0, -2>"}, three), "int64[3]<4, 5, 6>");
  EXPECT_EQ(Ml("LinearClassifier@1", {"int32[1,1]<2>"}, three, 1), "float32[1,3]<2.0, 0.5, -2.0>");
}

constexpr std::string_view kTwoVectors =
    "{kernel_type=\"LINEAR\", support_vectors=[1.0,0.0,0.0,1.0], coefficients=[1.0,-1.0], rho=[0.5], "
    "vectors_per_class=[1,1], classlabels_ints=[3,8]}";

TEST(SvmClassifier, VotesForPairsOfClasses) {
  EXPECT_EQ(Ml("SVMClassifier@1", {"float32[2,2]<1.0, 0.0, 0.0, 1.0>"}, kTwoVectors), "int64[2]<3, 8>");
  EXPECT_EQ(Ml("SVMClassifier@1", {"float32[2,2]<1.0, 0.0, 0.0, 1.0>"}, kTwoVectors, 1),
            "float32[2,2]<-1.5, 1.5, 0.5, -0.5>");
  EXPECT_THAT(Ml("SVMClassifier@1", {"float32[1,3]<1.0>"}, kTwoVectors), HasSubstr("number of features"));
}

TEST(SvmClassifier, CouplesProbabilities) {
  const std::string attrs =
      "{support_vectors=[1.0,0.0,0.0,1.0], coefficients=[1.0,-1.0], rho=[0.0], vectors_per_class=[1,1], "
      "classlabels_ints=[3,8], prob_a=[-1.0], prob_b=[0.0]}";
  // The probability of the first class is the logistic function of the score, 0.
  EXPECT_EQ(Ml("SVMClassifier@1", {"float32[1,2]<2.0, 2.0>"}, attrs, 1), "float32[1,2]<0.5, 0.5>");
  EXPECT_THAT(Ml("SVMClassifier@1", {"float32[1,2]<2.0>"},
                 "{coefficients=[1.0], rho=[0.0], support_vectors=[1.0,0.0,0.0,1.0], vectors_per_class=[1,1], "
                 "classlabels_ints=[3,8]}"),
              HasSubstr("do not fit 2 classes"));
}

TEST(SvmRegressor, SumsKernelsAndReportsOneClass) {
  const std::string attrs = "n_supports=2, support_vectors=[1.0,0.0,0.0,1.0], coefficients=[1.0,2.0], rho=[-1.5]";
  EXPECT_EQ(Ml("SVMRegressor@1", {"float32[2,2]<1.0, 0.0, 0.0, 1.0>"}, "{" + attrs + "}"), "float32[2,1]<-0.5, 0.5>");
  EXPECT_EQ(Ml("SVMRegressor@1", {"float32[2,2]<1.0, 0.0, 0.0, 1.0>"}, "{one_class=1, " + attrs + "}"),
            "float32[2,1]<-1.0, 1.0>");
  EXPECT_EQ(
      Ml("SVMRegressor@1", {"float32[1,2]<1.0, 0.0>"}, "{kernel_type=\"POLY\", kernel_params=[2.0,1.0,2.0], " + attrs + "}"),
      "float32[1,1]<9.5>");
}

TEST(ZipMap, ReturnsAMapForEachRow) {
  auto results = RunText(
      "const x = float32[2,2]<0.25, 0.75, 1.0, 0.0>\nz = ai.onnx.ml::ZipMap@1(x) {classlabels_strings=[\"a\",\"b\"]}\n"
      "output z\n");
  ASSERT_TRUE(results.ok()) << FormatError(results.status());
  const HostValue& z = results->front();
  EXPECT_EQ(z.kind, ValueKind::kMapSequence);
  ASSERT_EQ(z.sequence.size(), 4u);
  EXPECT_THAT(z.sequence[2].Data<std::string>(), ElementsAre("a", "b"));
  EXPECT_THAT(z.sequence[3].Data<float>(), ElementsAre(1.0f, 0.0f));
  EXPECT_THAT(Ml("ZipMap@1", {"float32[1,3]<1.0>"}, "{classlabels_int64s=[1,2]}"), HasSubstr("number of columns"));
}

// Runs one node on a map.
std::string OnMap(std::string_view node, std::string_view type, Tensor keys, Tensor values) {
  auto graph = ParseGraphText(fmt::format("input m : map {}\ny = ai.onnx.ml::{}\noutput y\n", type, node));
  EXPECT_TRUE(graph.ok()) << FormatError(graph.status());
  if (absl::Status status = InferTypes(*graph); !status.ok()) return "error: " + ErrorTitle(status);
  HostValue map;
  map.kind = ValueKind::kMap;
  map.sequence = {std::move(keys), std::move(values)};
  auto results = Interpret(*graph, {std::move(map)});
  return results.ok() ? TensorToText(results->front().tensor) : "error: " + ErrorTitle(results.status());
}

const Tensor kTextKeys = Tensor::Vector<std::string>(std::vector<std::string>{"b", "a"});
const Tensor kIntKeys = Tensor::Vector<int64_t>(std::vector<int64_t>{3, 1});

TEST(DictVectorizer, OrdersValuesByTheVocabulary) {
  EXPECT_EQ(OnMap("DictVectorizer@1(m) {string_vocabulary=[\"a\",\"b\",\"c\"]}", "float32", kTextKeys,
                  Tensor::Vector<float>(std::vector<float>{2, 1})),
            "float32[1,3]<1.0, 2.0, 0.0>");
  EXPECT_EQ(OnMap("DictVectorizer@1(m) {int64_vocabulary=[1,2]}", "string", kIntKeys, kTextKeys),
            "string[1,2]<\"a\", \"\">");
  EXPECT_THAT(OnMap("DictVectorizer@1(m) {int64_vocabulary=[1,2]}", "string", kTextKeys, kTextKeys),
              HasSubstr("differs from the vocabulary's"));
}

TEST(CastMap, CastsDenseAndSparseMaps) {
  const Tensor values = Tensor::Vector<float>(std::vector<float>{1.5f, 0.5f});
  EXPECT_EQ(OnMap("CastMap@1(m)", "float32", kIntKeys, values), "float32[1,2]<0.5, 1.5>");
  EXPECT_EQ(OnMap("CastMap@1(m) {map_form=\"SPARSE\", max_map=4}", "float32", kIntKeys, values),
            "float32[1,4]<0.0, 0.5, 0.0, 1.5>");
  EXPECT_EQ(OnMap("CastMap@1(m) {cast_to=\"TO_STRING\"}", "float32", kIntKeys, values),
            "string[1,2]<\"0.500000\", \"1.500000\">");
  EXPECT_EQ(OnMap("CastMap@1(m) {cast_to=\"TO_INT64\"}", "string", kIntKeys,
                  Tensor::Vector<std::string>(std::vector<std::string>{"7", "-8"})),
            "int64[1,2]<-8, 7>");
  EXPECT_THAT(OnMap("CastMap@1(m) {cast_to=\"TO_INT64\"}", "string", kIntKeys, kTextKeys), HasSubstr("is not a number"));
}

// Three inner nodes and four leaves: feature 0 against 0.5, then feature 1 against 1 on the left, 2 on the right.
constexpr std::string_view kNodes =
    "nodes_treeids=[0,0,0,0,0,0,0], nodes_nodeids=[0,1,2,3,4,5,6], nodes_featureids=[0,1,1,0,0,0,0], "
    "nodes_modes=[\"BRANCH_LEQ\",\"BRANCH_LT\",\"BRANCH_GTE\",\"LEAF\",\"LEAF\",\"LEAF\",\"LEAF\"], "
    "nodes_values=[0.5,1.0,2.0,0.0,0.0,0.0,0.0], nodes_truenodeids=[1,3,5,0,0,0,0], nodes_falsenodeids=[2,4,6,0,0,0,0]";

TEST(TreeEnsembleRegressor, FollowsThePathsOfEachRow) {
  const std::string attrs = fmt::format(
      "{{{}, target_treeids=[0,0,0,0], target_nodeids=[3,4,5,6], target_ids=[0,0,0,0], target_weights=[1.0,2.0,4.0,8.0], "
      "n_targets=1",
      kNodes);
  const std::string x = "float32[5,2]<0.5, 0.5, 0.5, 1.0, 1.0, 2.0, 1.0, 1.0, nan, nan>";
  EXPECT_EQ(Ml("TreeEnsembleRegressor@1", {x}, attrs + "}"), "float32[5,1]<1.0, 2.0, 4.0, 8.0, 8.0>");
  EXPECT_EQ(
      Ml("TreeEnsembleRegressor@1", {x}, attrs + ", base_values=[0.5], nodes_missing_value_tracks_true=[1,1,0,0,0,0,0]}"),
      "float32[5,1]<1.5, 2.5, 4.5, 8.5, 1.5>");
  EXPECT_EQ(Ml("TreeEnsembleRegressor@3", {"float64[1,2]<0.5, 0.5>"},
               fmt::format("{{{}, target_treeids=[0,0], target_nodeids=[3,3], target_ids=[1,0], "
                           "target_weights_as_tensor=float64[2]<0.25, 0.5>, n_targets=2, aggregate_function=\"AVERAGE\"}}",
                           kNodes)),
            "float32[1,2]<0.5, 0.25>");
}

TEST(TreeEnsembleRegressor, NamesListsThatAreNoTrees) {
  auto run = [](std::string nodes) {
    return Ml("TreeEnsembleRegressor@1", {"float32[1,2]<0.5>"},
              "{" + nodes + ", target_treeids=[0], target_nodeids=[3], target_ids=[0], target_weights=[1.0], n_targets=1}");
  };
  auto with = [](std::string_view from, std::string_view to) {
    std::string nodes(kNodes);
    return nodes.replace(nodes.find(from), from.size(), to);
  };
  EXPECT_THAT(run(with("nodes_truenodeids=[1,3,", "nodes_truenodeids=[1,0,")), HasSubstr("has a cycle"));
  EXPECT_THAT(run(with("nodes_truenodeids=[1,3,", "nodes_truenodeids=[1,9,")), HasSubstr("tree 0 has no node 9"));
  EXPECT_THAT(run(with("nodes_nodeids=[0,1,", "nodes_nodeids=[0,0,")), HasSubstr("node 0 of tree 0 is given twice"));
  EXPECT_THAT(run(with("BRANCH_LT", "BRANCH")), HasSubstr("is not a mode"));
  EXPECT_THAT(run(with("nodes_featureids=[0,1,", "nodes_featureids=[0,2,")), HasSubstr("compares feature 2"));
  EXPECT_THAT(run(with("nodes_values=[0.5,", "nodes_values=[")), HasSubstr("have 7 and 6 elements"));
}

TEST(TreeEnsembleRegressor, LimitsTheTargets) {
  const std::string attrs = fmt::format(
      "{{{}, target_treeids=[0], target_nodeids=[3], target_ids=[0], target_weights=[1.0], n_targets=2000000000}}", kNodes);
  EXPECT_THAT(Ml("TreeEnsembleRegressor@1", {"float32[1,2]<0.5>"}, attrs), HasSubstr("error: "));
}

TEST(TreeEnsembleClassifier, GivesTheOnlyScoreOfTwoLabelsToTheSecond) {
  auto attrs = [](std::string_view weights, std::string_view transform) {
    return fmt::format(
        "{{{}, class_treeids=[0,0,0,0], class_nodeids=[3,4,5,6], class_ids=[0,0,0,0], class_weights=[{}], "
        "classlabels_strings=[\"no\",\"yes\"], post_transform=\"{}\"}}",
        kNodes, weights, transform);
  };
  const std::string x = "float32[2,2]<0.5, 0.5, 0.5, 1.0>";
  const std::string probabilities = attrs("0.25,0.75,0.0,0.0", "NONE"), margins = attrs("-1.0,1.0,0.0,0.0", "NONE");
  EXPECT_EQ(Ml("TreeEnsembleClassifier@1", {x}, probabilities), "string[2]<\"no\", \"yes\">");
  EXPECT_EQ(Ml("TreeEnsembleClassifier@1", {x}, probabilities, 1), "float32[2,2]<0.75, 0.25, 0.25, 0.75>");
  EXPECT_EQ(Ml("TreeEnsembleClassifier@1", {x}, margins), "string[2]<\"no\", \"yes\">");
  EXPECT_EQ(Ml("TreeEnsembleClassifier@1", {x}, margins, 1), "float32[2,2]<1.0, -1.0, -1.0, 1.0>");
  EXPECT_EQ(Ml("TreeEnsembleClassifier@1", {x}, attrs("0.0,0.0,0.0,-1.0", "LOGISTIC"), 1),
            "float32[2,2]<0.5, 0.5, 0.5, 0.5>");
}

TEST(TreeEnsembleClassifier, ChoosesAmongTheLabelsThatHaveAScore) {
  const std::string attrs = fmt::format(
      "{{{}, class_treeids=[0,0,0], class_nodeids=[3,3,4], class_ids=[0,2,1], class_weights=[-2.0,-1.0,5.0], "
      "classlabels_int64s=[10,20,30]}}",
      kNodes);
  EXPECT_EQ(Ml("TreeEnsembleClassifier@1", {"float32[2,2]<0.5, 0.5, 0.5, 1.0>"}, attrs), "int64[2]<30, 20>");
  EXPECT_EQ(Ml("TreeEnsembleClassifier@1", {"float32[2,2]<0.5, 0.5, 0.5, 1.0>"}, attrs, 1),
            "float32[2,3]<-2.0, 0.0, -1.0, 0.0, 5.0, 0.0>");
}

TEST(TreeEnsemble, ComparesWithSets) {
  // The node is fulfilled by 1 and 7, the next one by 5.
  EXPECT_EQ(Ml("TreeEnsemble@5", {"float32[4,1]<7.0, 1.0, 5.0, 2.0>"},
               "{tree_roots=[0], nodes_modes=uint8[2]<6, 6>, nodes_featureids=[0,0], nodes_splits=float32[2]<0>, "
               "membership_values=float32[5]<1.0, 7.0, nan, 5.0, nan>, nodes_truenodeids=[0,1], nodes_trueleafs=[1,1], "
               "nodes_falsenodeids=[1,2], nodes_falseleafs=[0,1], leaf_targetids=[0,0,0], "
               "leaf_weights=float32[3]<1.0, 2.0, 3.0>, n_targets=1}"),
            "float32[4,1]<1.0, 1.0, 2.0, 3.0>");
}

TEST(TreeEnsemble, CombinesTreesInEveryWay) {
  auto run = [](int aggregate) {
    return Ml("TreeEnsemble@5", {"float64[1,1]<7.0>"},
              fmt::format(
                  "{{tree_roots=[0,1], nodes_modes=uint8[2]<0>, nodes_featureids=[0,0], nodes_splits=float64[2]<9.0, 1.0>, "
                  "nodes_truenodeids=[0,0], nodes_trueleafs=[1,1], nodes_falsenodeids=[1,1], nodes_falseleafs=[1,1], "
                  "leaf_targetids=[0,0], leaf_weights=float64[2]<1.0, 2.0>, aggregate_function={}}}",
                  aggregate));
  };
  EXPECT_EQ(run(0), "float64[1,1]<1.5>");
  EXPECT_EQ(run(1), "float64[1,1]<3.0>");
  EXPECT_EQ(run(2), "float64[1,1]<1.0>");
  EXPECT_EQ(run(3), "float64[1,1]<2.0>");
}

TEST(Tokenizer, CutsByTokensSeparatorsAndCharacters) {
  auto run = [](std::string_view attrs) {
    return RunOp("com.microsoft::Tokenizer@1", {"string[2]<\"a bc,d\", \"é\">"}, attrs);
  };
  EXPECT_EQ(run("{mark=0, mincharnum=1, pad_value=\"#\", tokenexp=\"[a-z]+\"}"),
            "string[2,3]<\"a\", \"bc\", \"d\", \"#\", \"#\", \"#\">");
  EXPECT_EQ(run("{mark=0, mincharnum=1, pad_value=\"#\", separators=[\",\",\" \"]}"),
            "string[2,3]<\"a\", \"bc\", \"d\", \"é\", \"#\", \"#\">");
  EXPECT_EQ(run("{mark=0, mincharnum=2, pad_value=\"#\", separators=[\"[, ]\"]}"), "string[2,1]<\"bc\", \"#\">");
  EXPECT_EQ(run("{mark=1, mincharnum=1, pad_value=\"#\", tokenexp=\"\\\\w\\\\w\"}"),
            "string[2,3]<\"\\x02\", \"bc\", \"\\x03\", \"\\x02\", \"#\", \"\\x03\">");
}

std::vector<std::pair<size_t, size_t>> Find(std::string_view pattern, std::string_view text) {
  auto parsed = TokenPattern::Parse(pattern);
  EXPECT_TRUE(parsed.ok()) << pattern;
  return parsed.ok() ? parsed->FindAll(ToCodePoints(text)->values) : std::vector<std::pair<size_t, size_t>>();
}

TEST(TokenPattern, MatchesClassesRepetitionsAndBoundaries) {
  EXPECT_THAT(Find("(?u)\\b\\w\\w+\\b", "a bc def"), ElementsAre(Pair(2, 4), Pair(5, 8)));
  EXPECT_THAT(Find("[^ ]{2,3}", "a bcde"), ElementsAre(Pair(2, 5)));
  EXPECT_THAT(Find("a*b", "aaab aac"), ElementsAre(Pair(0, 4)));
  EXPECT_THAT(Find("a+a", "aaa"), ElementsAre(Pair(0, 3)));
  EXPECT_THAT(Find("\\d?\\.\\S", "1.x .y"), ElementsAre(Pair(0, 3), Pair(4, 6)));
  EXPECT_THAT(Find("[a\\-c]+", "a-b"), ElementsAre(Pair(0, 2)));
}

TEST(TokenPattern, NamesWhatItDoesNotSupport) {
  for (std::string_view bad : {"(a)", "a|b", "a+?", "[a", "a{2", "\\", "\\q", "^a", "[z-a]", "\\b+", "a{3,2}"}) {
    EXPECT_FALSE(TokenPattern::Parse(bad).ok()) << bad;
  }
}

TEST(TokenPattern, TakesBoundedTimeForEveryPattern) {
  std::string pattern;
  for (int i = 0; i < 30; ++i) pattern += "a*";
  EXPECT_TRUE(Find(pattern + "b", std::string(300, 'a')).empty());
}

}  // namespace
}  // namespace mge
