// SPDX-License-Identifier: Apache-2.0
#include "tests/core/ops/rewrites/rewrites_test_util.h"

namespace mge {
namespace {

// A tree of one node, and a tree of one leaf. `ids` are the classes or targets of the three leaves.
std::string Model(const std::string& x, const std::string& op, const std::string& stem, const std::string& ids,
                  const std::string& rest, const std::string& weights = "_weights=[1.0,2.0,4.0]") {
  const std::string outputs = stem == "class" ? "y, z" : "y";
  return "input x : " + x + "\n" + outputs + " = ai.onnx.ml::" + op +
         "@3(x) {nodes_treeids=[0,0,0,1], nodes_nodeids=[0,1,2,0], nodes_featureids=[1,0,0,0], "
         "nodes_modes=[\"BRANCH_LEQ\",\"LEAF\",\"LEAF\",\"LEAF\"], nodes_values=[0.5,0.0,0.0,0.0], "
         "nodes_truenodeids=[1,0,0,0], nodes_falsenodeids=[2,0,0,0], " +
         stem + "_treeids=[0,0,1], " + stem + "_nodeids=[1,2,0], " + stem + "_ids=[" + ids + "], " + stem + weights + rest +
         "}\noutput " + outputs + "\n";
}
std::string Classifier(const std::string& x, const std::string& ids, const std::string& rest) {
  return Model(x, "TreeEnsembleClassifier", "class", ids, ", " + rest);
}

TEST(TreeModelsRewrite, MakesATreeEnsembleOfARegressor) {
  const std::string op = "TreeEnsembleRegressor", rest = ", n_targets=1";
  EXPECT_EQ(AfterRewrite("tree_models", Model("float32[7,3]", op, "target", "0,0,0", rest)), "TreeEnsemble");
  EXPECT_EQ(AfterRewrite("tree_models", Model("int64[7,3]", op, "target", "0,0,0", rest + ", base_values=[0.5]")),
            "Cast TreeEnsemble");
  EXPECT_EQ(AfterRewrite("tree_models",
                         Model("float32[7,3]", op, "target", "0,0,0", rest, "_weights_as_tensor=float64[3]<1.0, 2.0, 4.0>")),
            "Cast TreeEnsemble Cast");
  EXPECT_EQ(
      AfterRewrite("tree_models", Model("float32[7,3]", op, "target", "0,0,0", rest + ", post_transform=\"LOGISTIC\"")),
      "TreeEnsembleRegressor");
}

TEST(TreeModelsRewrite, SeparatesTheScoresOfAClassifierFromItsLabels) {
  const std::string both = "TreeEnsemble TreeLabels";
  const std::string two = "classlabels_strings=[\"a\",\"b\"], post_transform=\"LOGISTIC\"";
  EXPECT_EQ(AfterRewrite("tree_models", Classifier("float32[7,3]", "0,0,0", two)), both);
  EXPECT_EQ(AfterRewrite("tree_models", Classifier("float32[7,3]", "1,1,1", two)), both);
  EXPECT_EQ(AfterRewrite("tree_models", Classifier("float32[7,3]", "0,0,0", two + ", base_values=[0.5]")), both);
  EXPECT_EQ(AfterRewrite("tree_models", Classifier("float32[7,3]", "0,0,0", two + ", base_values=[0.5,1.0]")), both);
  EXPECT_EQ(AfterRewrite("tree_models", Classifier("float64[7,3]", "0,0,2", "classlabels_int64s=[7,8,9]")),
            "TreeEnsemble Cast TreeLabels");
}

TEST(TreeModelsRewrite, LeavesClassifiersWhoseScoredClassesDependOnTheRow) {
  EXPECT_EQ(AfterRewrite("tree_models", Classifier("float32[7,3]", "0,1,2", "classlabels_int64s=[7,8,9]")),
            "TreeEnsembleClassifier");
  EXPECT_EQ(AfterRewrite("tree_models", Classifier("float32[7,3]", "1,1,1", "classlabels_int64s=[7,8], base_values=[1.0]")),
            "TreeEnsembleClassifier");
}

}  // namespace
}  // namespace mge
