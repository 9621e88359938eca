// SPDX-License-Identifier: Apache-2.0
#include <unordered_map>

#include "core/ops/families/ml.h"
#include "core/ops/families/movement.h"

namespace mge::op_dict_vectorizer {
namespace {

absl::Status Infer(InferContext& ctx) {
  const Ints ints = ctx.attrs().IntList("int64_vocabulary");
  const Texts texts = ctx.attrs().TextList("string_vocabulary");
  if (ints.empty() == texts.empty()) {
    return ctx.Invalid("exactly one of int64_vocabulary and string_vocabulary must be given");
  }
  ctx.SetOutput(0, MakeType(ctx.input(0).dtype, {1, static_cast<int64_t>(ints.size() + texts.size())}));
  return absl::OkStatus();
}

// Sets each element of `y` to the value of its key; of an absent key, to zero.
template <typename Key>
void Vectorize(const std::vector<Key>& vocabulary, const Tensor& keys, const Tensor& values, Tensor& y) {
  std::unordered_map<Key, int64_t> position;
  for (int64_t i = 0; i < keys.elements(); ++i) position.emplace(keys.Data<Key>()[i], i);
  Fill(y, nullptr);
  for (size_t i = 0; i < vocabulary.size(); ++i) {
    auto at = position.find(vocabulary[i]);
    if (at != position.end()) CopyElements(values, at->second, y, static_cast<int64_t>(i), 1);
  }
}

absl::Status Eval(EvalContext& ctx) {
  MGE_ASSIGN_OR_RETURN(const MapView map, MapInput(ctx));
  const Ints ints = ctx.attrs().IntList("int64_vocabulary");
  const Texts texts = ctx.attrs().TextList("string_vocabulary");
  if ((map.keys.dtype() == DType::kString) != ints.empty() || ints.empty() == texts.empty()) {
    return ctx.Invalid("the type of the map's keys differs from the vocabulary's");
  }
  MGE_ASSIGN_OR_RETURN(Tensor * y, ctx.Output(0, map.values.dtype(), {1, static_cast<int64_t>(ints.size() + texts.size())}));
  if (ints.empty()) {
    Vectorize(texts, map.keys, map.values, *y);
  } else {
    Vectorize(ints, map.keys, map.values, *y);
  }
  return absl::OkStatus();
}

}  // namespace

MGE_OP(dict_vectorizer) = {
    .name = "DictVectorizer",
    .domain = kMlDomain,
    .doc = "The values of a map in the order of a vocabulary of keys; 0 or \"\" for absent keys.",
    .inputs = {{.name = "X", .types = {DType::kI64, DType::kF32, DType::kF64, DType::kString}, .kind = ValueKind::kMap}},
    .outputs = {{"Y"}},
    .attrs = {{"int64_vocabulary", AttrType::kInts, Presence::kOptional, "absent: string_vocabulary"},
              {"string_vocabulary", AttrType::kTexts, Presence::kOptional, "absent: int64_vocabulary"}},
    .infer = Infer,
    .eval = Eval,
    .traits = kHostOnly};

}  // namespace mge::op_dict_vectorizer
