// SPDX-License-Identifier: Apache-2.0
// A folder with the smallest language model: each token determines the next one.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/onnx_builder.h"

namespace mge {

inline constexpr int64_t kTinyVocabulary = 20;
// Returns the most probable token behind `id`: 1 3 9 7 2 6.
inline int64_t AfterToken(int64_t id) { return id == 0 ? 1 : id * 3 % 20 == 1 ? 2 : id * 3 % 20; }

// Writes genai_config.json and model.onnx into the folder, which it creates. The cache has a row of 20 numbers per token.
inline void WriteDecoderFolder(const std::string& folder) {
  using namespace onnx_builder;  // NOLINT: its functions build models
  std::vector<float> table(kTinyVocabulary * kTinyVocabulary);
  for (int64_t id = 0; id < kTinyVocabulary; ++id) table[static_cast<size_t>(id * kTinyVocabulary + AfterToken(id))] = 4;
  const Proto model = ModelProto(
      {.graph = GraphProto(
           {.nodes = {NodeProto("Gather", {"table", "input_ids"}, {"logits"}),
                      NodeProto("Unsqueeze", {"logits", "axes"}, {"row"}),
                      NodeProto("Concat", {"past_key_values.0.key", "row"}, {"present.0.key"},
                                {.attributes = {IntAttr("axis", 2)}})},
            .inputs = {ValueInfo("input_ids", DType::kI64, {"B", "S"}),
                       ValueInfo("past_key_values.0.key", DType::kF32, {"B", int64_t{1}, "P", kTinyVocabulary})},
            .outputs = {ValueInfo("logits", DType::kF32, {"B", "S", kTinyVocabulary}),
                        ValueInfo("present.0.key", DType::kF32, {"B", int64_t{1}, "T", kTinyVocabulary})},
            .initializers = {FloatTensor("table", {kTinyVocabulary, kTinyVocabulary}, table), IntTensor("axes", {1})}})});
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/model.onnx", std::ios::binary) << model;
  std::ofstream(folder + "/genai_config.json") << R"({"model": {"type": "llama", "vocab_size": 20, "context_length": 64,
      "eos_token_id": 6, "decoder": {"filename": "model.onnx", "num_hidden_layers": 1}}})";
}

}  // namespace mge
