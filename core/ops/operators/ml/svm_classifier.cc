// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "core/ops/families/svm.h"

namespace mge::op_svm_classifier {
namespace {

struct Classifier {
  Svm svm;
  ClassLabels labels;
  PostTransform transform = PostTransform::kNone;
  Ints per_class, first;  // number and first of the support vectors of each class
  Floats prob_a, prob_b;  // one for each pair of classes; empty: no probabilities
  int64_t classes = 0;
  int64_t pairs = 0;     // pairs of classes, each with a score
  bool positive = true;  // no coefficient is negative

  bool linear() const { return svm.count == 0; }
  // Returns the number of columns of the scores.
  int64_t width() const { return linear() || !prob_a.empty() || classes == 2 ? classes : pairs; }
};

absl::StatusOr<Classifier> Read(const Attributes& attrs, int64_t columns) {
  Classifier c;
  MGE_ASSIGN_OR_RETURN(c.labels, ReadLabels(attrs, "classlabels_ints"));
  MGE_ASSIGN_OR_RETURN(c.transform, ReadPostTransform(attrs));
  c.classes = c.labels.count();
  c.pairs = c.classes * (c.classes - 1) / 2;
  c.per_class = attrs.IntList("vectors_per_class");
  int64_t count = 0;
  for (int64_t n : c.per_class) {
    c.first.push_back(count);
    if (n < 0 || !CheckedAdd(count, n, &count)) return BadNode("vectors_per_class has an invalid size");
  }
  MGE_ASSIGN_OR_RETURN(c.svm, ReadSvm(attrs, count, c.classes));
  MGE_RETURN_IF_ERROR(RequireSize("the number of features", columns, c.svm.columns));
  c.prob_a = attrs.FloatList("prob_a");
  c.prob_b = attrs.FloatList("prob_b");
  c.positive = std::all_of(c.svm.coefficients.begin(), c.svm.coefficients.end(), [](float v) { return v >= 0; });
  if (c.linear()) return c;
  auto fits = [](const auto& list, int64_t size) { return static_cast<int64_t>(list.size()) == size; };
  if (c.classes < 2 || !fits(c.per_class, c.classes) || !fits(c.svm.rho, c.pairs) ||
      !fits(c.svm.coefficients, (c.classes - 1) * c.svm.count) || !fits(c.prob_b, static_cast<int64_t>(c.prob_a.size())) ||
      (!c.prob_a.empty() && !fits(c.prob_a, c.pairs))) {
    return BadNode(
        fmt::format("the sizes of vectors_per_class ({}), rho ({}), coefficients ({}), prob_a ({}) and prob_b "
                    "({}) do not fit {} classes and {} support vectors",
                    c.per_class.size(), c.svm.rho.size(), c.svm.coefficients.size(), c.prob_a.size(), c.prob_b.size(),
                    c.classes, c.svm.count));
  }
  return c;
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(RowShape shape, InferredRows(ctx));
  MGE_ASSIGN_OR_RETURN(Classifier c, Read(ctx.attrs(), shape.columns));
  SetClassifierOutputs(ctx, c.labels, shape.rows, c.width());
  return absl::OkStatus();
}

// Sets the score of each pair of classes i < j, and counts the pairs that each class wins. The coefficients of class i
// against a class j are row j - 1 for j > i, else row j.
void ScorePairs(const Classifier& c, const Floats& kernels, std::span<float> scores, Ints& votes) {
  auto sum = [&](int64_t row, int64_t of) {
    double total = 0;
    const float* coefficients = c.svm.coefficients.data() + row * c.svm.count;
    for (int64_t k = c.first[of]; k < c.first[of] + c.per_class[of]; ++k) {
      total += static_cast<double>(coefficients[k]) * static_cast<double>(kernels[k]);
    }
    return total;
  };
  int64_t pair = 0;
  for (int64_t i = 0; i < c.classes; ++i) {
    for (int64_t j = i + 1; j < c.classes; ++j, ++pair) {
      const double score = sum(j - 1, i) + sum(i, j) + static_cast<double>(c.svm.rho[pair]);
      scores[pair] = static_cast<float>(score);
      ++votes[score > 0 ? i : j];
    }
  }
}

// Couples the probabilities of pairs to one for each class. Wu, Lin, Weng: "Probability Estimates for Multi-class
// Classification by Pairwise Coupling", method 2.
void CoupleProbabilities(const Classifier& c, std::span<const float> scores, std::span<float> out) {
  constexpr int kMaxSteps = 100;
  constexpr float kMin = 1e-7f;
  const int64_t n = c.classes;
  Floats r(n * n), q(n * n), qp(n);
  int64_t pair = 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = i + 1; j < n; ++j, ++pair) {
      const float p = 1 - Logistic(scores[pair] * c.prob_a[pair] + c.prob_b[pair]);
      r[i * n + j] = std::clamp(p, kMin, 1 - kMin);
      r[j * n + i] = 1 - r[i * n + j];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      if (i == j) continue;
      q[i * n + i] += r[j * n + i] * r[j * n + i];
      q[i * n + j] = -r[j * n + i] * r[i * n + j];
    }
  }
  std::fill(out.begin(), out.end(), 1.0f / static_cast<float>(n));
  for (int step = 0; step < kMaxSteps; ++step) {
    float pqp = 0, error = 0;
    for (int64_t i = 0; i < n; ++i) {
      qp[i] = 0;
      for (int64_t j = 0; j < n; ++j) qp[i] += q[i * n + j] * out[j];
      pqp += out[i] * qp[i];
    }
    for (float v : qp) error = std::max(error, std::abs(v - pqp));
    if (error < 0.005f / static_cast<float>(n)) return;
    for (int64_t i = 0; i < n; ++i) {
      const float change = (pqp - qp[i]) / q[i * n + i], scale = 1 + change;
      out[i] += change;
      pqp = (pqp + change * (change * q[i * n + i] + 2 * qp[i])) / scale / scale;
      for (int64_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + change * q[i * n + j]) / scale;
        out[j] /= scale;
      }
    }
  }
}

// Returns the class that a linear model chooses from its scores.
int64_t LinearChoice(const Classifier& c, std::span<const float> scores) {
  const auto most = std::max_element(scores.begin(), scores.end());
  if (c.classes == 2 && c.prob_a.empty() && (c.positive ? *most >= 0.5f : *most > 0)) return 1;
  return most - scores.begin();
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(const Tensor x, AsFloats(ctx.input(0), ctx.allocator()));
  MGE_ASSIGN_OR_RETURN(RowShape shape, RowShapeOf(x.shape()));
  MGE_ASSIGN_OR_RETURN(const auto prepared, Prepared<Classifier>(ctx, [&] { return Read(ctx.attrs(), shape.columns); }));
  const Classifier& c = *prepared;
  MGE_RETURN_IF_ERROR(RequireSize("the number of features", shape.columns, c.svm.columns));
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, c.labels.dtype(), {shape.rows}));
  MGE_ASSIGN_OR_RETURN(Tensor * z, ctx.Output(1, DType::kF32, {shape.rows, c.width()}));
  Floats kernels(c.svm.count), scores(c.pairs);
  for (int64_t row = 0; row < shape.rows; ++row) {
    if (row % 256 == 0) MGE_RETURN_IF_ERROR(ctx.CheckStop());
    const std::span<const float> features = x.Data<float>().subspan(row * shape.columns, shape.columns);
    const std::span<float> out = z->MutableData<float>().subspan(row * c.width(), c.width());
    if (c.linear()) {
      SvmKernels(c.svm, features, c.svm.coefficients, out);
      for (float& v : out) v += c.svm.rho[0];
      SetLabel(*y, row, c.labels, LinearChoice(c, out));
      TransformScores(c.transform, out);
      continue;
    }
    SvmKernels(c.svm, features, c.svm.vectors, kernels);
    Ints votes(c.classes, 0);
    ScorePairs(c, kernels, scores, votes);
    SetLabel(*y, row, c.labels, std::max_element(votes.begin(), votes.end()) - votes.begin());
    if (!c.prob_a.empty()) {
      CoupleProbabilities(c, scores, out);
      TransformScores(c.transform, out);
    } else if (c.classes == 2) {
      TransformBinaryScore(c.transform, scores[0], out);
    } else {
      std::copy(scores.begin(), scores.end(), out.begin());
      TransformScores(c.transform, out);
    }
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(svm_classifier) = {
    .name = "SVMClassifier",
    .domain = kMlDomain,
    .doc =
        "The label that a support vector machine chooses, and its scores: of each class, or of each pair of classes if "
        "there are more than two and prob_a is absent.",
    .inputs = {{"X", kMlNumbers}},
    .outputs = {{"Y"}, {"Z"}},
    .attrs = {{"classlabels_ints", AttrType::kInts, Presence::kOptional, "the classes; absent: the strings have them"},
              {"classlabels_strings", AttrType::kTexts, Presence::kOptional, "the classes; absent: the integers have them"},
              {"coefficients", AttrType::kFloats, Presence::kRequired, "the coefficients"},
              {"kernel_params", AttrType::kFloats, Presence::kOptional, "gamma, coef0 and degree of the kernel; absent: 0"},
              {"kernel_type", "LINEAR", "LINEAR, POLY, RBF or SIGMOID"},
              {"post_transform", "NONE", "applied to the scores: NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT"},
              {"prob_a", AttrType::kFloats, Presence::kOptional, "absent: no probabilities"},
              {"prob_b", AttrType::kFloats, Presence::kOptional, "absent: no probabilities"},
              {"rho", AttrType::kFloats, Presence::kRequired, "the constants"},
              {"support_vectors", AttrType::kFloats, Presence::kOptional, "absent: a linear model"},
              {"vectors_per_class", AttrType::kInts, Presence::kOptional, "absent: a linear model"}},
    .infer = Infer,
    .eval = Eval,
    .examples = {"(T[5,2]) {kernel_type=\"RBF\", kernel_params=[0.5,0.0,3.0], vectors_per_class=[1,2], rho=[0.25], "
                 "classlabels_ints=[0,1], coefficients=[1.5,-1.0,0.5], support_vectors=[0.5,1.5,-1.0,2.0,0.75,-0.5]} -> 2",
                 "(T[7,2]) {coefficients=[1.5,-1.0,0.5,0.25], rho=[0.25], classlabels_ints=[4,9]} -> 2"},
};

}  // namespace mge::op_svm_classifier
