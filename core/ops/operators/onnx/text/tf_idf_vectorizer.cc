// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "core/ops/families/movement.h"
#include "core/ops/op_helpers.h"

namespace mge::op_tf_idf_vectorizer {
namespace {

enum Mode { kTf, kIdf, kTfIdf };

// The checked attributes. For a pool of strings, tokens 0, 1, ... are its strings. Numbers are their own tokens.
struct Settings {
  Mode mode = kTf;
  int64_t shortest = 1, longest = 1, max_skip = 0;
  Ints pool;
  std::unordered_map<std::string, int64_t> tokens;
  Ints counts;   // positions in the pool at which the 1-grams, 2-grams, ... begin
  Ints indexes;  // output index of each n-gram
  Floats weights;
  int64_t width = 0;
};

absl::StatusOr<Settings> Read(const Attributes& attrs) {
  Settings s;
  MGE_ASSIGN_OR_RETURN(int mode, ReadChoice(attrs, "mode", {"TF", "IDF", "TFIDF"}));
  s.mode = static_cast<Mode>(mode);
  s.shortest = attrs.Int("min_gram_length");
  s.longest = attrs.Int("max_gram_length");
  s.max_skip = attrs.Int("max_skip_count");
  s.counts = attrs.IntList("ngram_counts");
  s.indexes = attrs.IntList("ngram_indexes");
  s.weights = attrs.FloatList("weights");
  if (attrs.Has("pool_strings") == attrs.Has("pool_int64s")) {
    return BadNode("exactly one of pool_strings and pool_int64s must be given");
  }
  s.pool = attrs.IntList("pool_int64s");
  for (std::string& word : attrs.TextList("pool_strings")) {
    s.pool.push_back(s.tokens.emplace(std::move(word), static_cast<int64_t>(s.tokens.size())).first->second);
  }
  if (s.shortest < 1 || s.longest < s.shortest || s.max_skip < 0) {
    return BadNode(fmt::format("invalid n-grams: {} to {} tokens, up to {} skipped", s.shortest, s.longest, s.max_skip));
  }
  if (s.longest > static_cast<int64_t>(s.counts.size())) {
    return BadNode(fmt::format("max_gram_length is {}, but ngram_counts has {} entries", s.longest, s.counts.size()));
  }
  const int64_t size = static_cast<int64_t>(s.pool.size());
  int64_t grams = 0;
  for (size_t i = 0; i < s.counts.size(); ++i) {
    int64_t end = i + 1 < s.counts.size() ? s.counts[i + 1] : size;
    if (s.counts[i] < 0 || end < s.counts[i] || end > size || (end - s.counts[i]) % (i + 1) != 0) {
      return BadNode(
          fmt::format("ngram_counts {} do not divide a pool of {} tokens into n-grams", ShapeText(s.counts), size));
    }
    grams += (end - s.counts[i]) / (i + 1);
  }
  if (static_cast<int64_t>(s.indexes.size()) != grams ||
      (!s.weights.empty() && static_cast<int64_t>(s.weights.size()) != grams)) {
    return BadNode(fmt::format("{} ngram_indexes and {} weights for {} n-grams", s.indexes.size(), s.weights.size(), grams));
  }
  for (int64_t i : s.indexes) {
    if (i < 0 || i == INT64_MAX) return BadNode(fmt::format("ngram_indexes holds {}, which is not a valid index", i));
    s.width = std::max(s.width, i + 1);
  }
  return s;
}

absl::StatusOr<Shape> Result(std::span<const int64_t> x, int64_t width) {
  if (x.size() == 1) return Shape{width};
  if (x.size() == 2) return Shape{x[0], width};
  return BadNode(fmt::format("input has shape {}; [C] or [N,C] is expected", ShapeText(x)));
}

absl::Status Infer(InferContext& ctx) {
  MGE_ASSIGN_OR_RETURN(Settings s, Read(ctx.attrs()));
  const TensorType& x = ctx.input(0);
  if (x.dtype != DType::kUndefined && (x.dtype == DType::kString) != ctx.attrs().Has("pool_strings")) {
    return ctx.Invalid(fmt::format("the input is {}; its type differs from the pool's", DTypeName(x.dtype)));
  }
  if (!x.has_rank) {
    ctx.SetOutput(0, UnrankedType(DType::kF32));
    return absl::OkStatus();
  }
  MGE_ASSIGN_OR_RETURN(Shape dims, Result(x.dims, s.width));
  ctx.SetOutput(0, MakeType(DType::kF32, std::move(dims)));
  return absl::OkStatus();
}

std::string Key(const Ints& gram) {
  return std::string(reinterpret_cast<const char*>(gram.data()), gram.size() * sizeof(int64_t));
}

// The settings, with the number of every n-gram of the pool.
struct Vocabulary {
  Settings settings;
  std::unordered_map<std::string, int64_t> numbers;
};

// Returns the number of every n-gram of the pool, in order.
std::unordered_map<std::string, int64_t> Number(const Settings& s) {
  std::unordered_map<std::string, int64_t> numbers;
  int64_t number = 0;
  for (size_t i = 0; i < s.counts.size(); ++i) {
    int64_t end = i + 1 < s.counts.size() ? s.counts[i + 1] : static_cast<int64_t>(s.pool.size());
    for (int64_t at = s.counts[i]; at < end; at += i + 1) {
      numbers.emplace(Key(Ints(s.pool.begin() + at, s.pool.begin() + at + i + 1)), number++);
    }
  }
  return numbers;
}

absl::StatusOr<Vocabulary> ReadVocabulary(const Attributes& attrs) {
  MGE_ASSIGN_OR_RETURN(Settings settings, Read(attrs));
  std::unordered_map<std::string, int64_t> numbers = Number(settings);
  return Vocabulary{std::move(settings), std::move(numbers)};
}

absl::Status Eval(EvalContext& ctx) {
  const Tensor& x = ctx.input(0);
  MGE_ASSIGN_OR_RETURN(const auto vocabulary, Prepared<Vocabulary>(ctx, [&] { return ReadVocabulary(ctx.attrs()); }));
  const Settings& s = vocabulary->settings;
  MGE_ASSIGN_OR_RETURN(Shape shape, Result(x.shape(), s.width));
  const bool strings = x.dtype() == DType::kString;
  if (strings != ctx.attrs().Has("pool_strings")) {
    return ctx.Invalid(fmt::format("the input is {}; its type differs from the pool's", DTypeName(x.dtype())));
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, DType::kF32, std::move(shape)));
  Fill(*y, nullptr);
  if (x.elements() == 0 || s.width == 0) return absl::OkStatus();
  const std::unordered_map<std::string, int64_t>& numbers = vocabulary->numbers;
  const int64_t length = x.shape().back(), rows = x.elements() / length;
  auto token = [&](int64_t i) -> int64_t {
    if (!strings) return IndexView(x)[i];
    auto found = s.tokens.find(x.Data<std::string>()[i]);
    return found == s.tokens.end() ? -1 : found->second;
  };
  Ints words(length), gram;
  for (int64_t row = 0; row < rows; ++row) {
    MGE_RETURN_IF_ERROR(ctx.CheckStop());
    for (int64_t i = 0; i < length; ++i) words[i] = token(row * length + i);
    float* out = y->MutableData<float>().data() + row * s.width;
    for (int64_t n = s.shortest; n <= std::min(s.longest, length); ++n) {
      // Skips do not apply to a single token: it counts once.
      for (int64_t skip = 0; skip <= (n == 1 ? 0 : std::min(s.max_skip, length)); ++skip) {
        for (int64_t i = 0; i + (n - 1) * (skip + 1) < length; ++i) {
          gram.clear();
          for (int64_t k = 0; k < n; ++k) gram.push_back(words[i + k * (skip + 1)]);
          auto found = numbers.find(Key(gram));
          if (found == numbers.end()) continue;
          float weight = s.mode == kTf || s.weights.empty() ? 1 : s.weights[found->second];
          float& target = out[s.indexes[found->second]];
          target = s.mode == kIdf ? weight : target + weight;
        }
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(tf_idf_vectorizer) = {
    .name = "TfIdfVectorizer",
    .doc = "Counts the n-grams of a pool in sequences of tokens, optionally weighted.",
    .inputs = {{"X", kIndex | kStrings}},
    .outputs = {{"Y"}},
    .attrs = {{"max_gram_length", AttrType::kInt, Presence::kRequired, "the longest gram"},
              {"max_skip_count", AttrType::kInt, Presence::kRequired, "the most items to skip"},
              {"min_gram_length", AttrType::kInt, Presence::kRequired, "the shortest gram"},
              {"mode", AttrType::kText, Presence::kRequired, "TF, IDF or TFIDF"},
              {"ngram_counts", AttrType::kInts, Presence::kRequired, "first entries of the pool by length"},
              {"ngram_indexes", AttrType::kInts, Presence::kRequired, "the outputs of the grams"},
              {"pool_int64s", AttrType::kInts, Presence::kOptional, "the grams; absent: pool_strings"},
              {"pool_strings", AttrType::kTexts, Presence::kOptional, "the grams; absent: pool_int64s"},
              {"weights", AttrType::kFloats, Presence::kOptional, "factors of the grams; absent: 1"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly,
    .since = 9};

}  // namespace mge::op_tf_idf_vectorizer
