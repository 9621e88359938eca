// SPDX-License-Identifier: Apache-2.0
// The API functions on a session's inputs and outputs and on the model's metadata.
#include <algorithm>
#include <cstring>

#include "core/api/objects.h"
#include "core/api/options.h"
#include "fmt/format.h"

using mge::api::Misuse;

namespace {

int32_t PartKindOf(mge::ValueKind kind) {
  if (kind == mge::ValueKind::kMapSequence) return MGE_VALUE_MAP;
  return kind == mge::ValueKind::kOptionalSequence ? MGE_VALUE_SEQUENCE : MGE_VALUE_TENSOR;
}

// Writes the facts on value `i` of `values`. `function` is the one that the application has called.
mge_status* Describe(const char* function, std::span<const mge::api::DescribedValue> values, size_t i,
                     mge_value_facts* out) {
  MGE_API_RETURN_IF_ERROR(mge::api::CheckStructSize<mge_value_facts>(out->struct_size, "mge_value_facts"));
  if (i >= values.size()) return Misuse(function, fmt::format("value {} of {}", i, values.size()));
  const mge::api::DescribedValue& value = values[i];
  const mge::TensorType& type = value.type.type;
  mge_value_facts facts = {};
  facts.struct_size = out->struct_size;
  facts.name = value.name.c_str();
  facts.kind = mge::api::PublicKind(value.type.kind);
  facts.part_kind = PartKindOf(value.type.kind);
  facts.dtype = static_cast<mge_dtype>(type.dtype);
  facts.rank = type.has_rank ? static_cast<int32_t>(type.dims.size()) : -1;
  facts.dims = type.dims.data();
  facts.dim_names = value.dim_names.data();
  std::memcpy(out, &facts, std::min(out->struct_size, sizeof(facts)));
  return nullptr;
}

}  // namespace

namespace mge::api {

DescribedValue::DescribedValue(std::string value_name, ValueType value_type)
    : name(std::move(value_name)), type(std::move(value_type)), dim_names(type.type.dims.size(), "") {
  for (size_t d = 0; d < std::min(dim_names.size(), type.type.symbols.size()); ++d) {
    dim_names[d] = type.type.symbols[d].c_str();
  }
}

void DescribeValues(mge_session& s) {
  const Graph& graph = s.session->graph();
  s.inputs.reserve(graph.inputs().size());
  s.outputs.reserve(graph.outputs().size());
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    s.inputs.emplace_back(graph.value(graph.inputs()[i]).name, DeclaredInput(s, i));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    s.outputs.emplace_back(graph.value(graph.outputs()[i]).name, s.session->output_types()[i]);
  }
}

}  // namespace mge::api

mge::ValueType mge::api::DeclaredInput(const mge_session& s, size_t i) {
  const Value& value = s.session->graph().value(s.session->graph().inputs()[i]);
  return {value.type, value.kind};
}

size_t mge_session_input_count(const mge_session* s) { return s->session->graph().inputs().size(); }
size_t mge_session_output_count(const mge_session* s) { return s->session->graph().outputs().size(); }

mge_status* mge_session_input(const mge_session* s, size_t i, mge_value_facts* out) try {
  MGE_API_NEEDS({"session", s}, {"out", out});
  return Describe(__func__, s->inputs, i, out);
}
MGE_API_CATCH

mge_status* mge_session_output(const mge_session* s, size_t i, mge_value_facts* out) try {
  MGE_API_NEEDS({"session", s}, {"out", out});
  return Describe(__func__, s->outputs, i, out);
}
MGE_API_CATCH

size_t mge_session_metadata_count(const mge_session* s) { return s->session->info().metadata.size(); }
const char* mge_session_metadata_key(const mge_session* s, size_t i) {
  return i < mge_session_metadata_count(s) ? s->session->info().metadata[i].first.c_str() : nullptr;
}
const char* mge_session_metadata_value(const mge_session* s, size_t i) {
  return i < mge_session_metadata_count(s) ? s->session->info().metadata[i].second.c_str() : nullptr;
}

size_t mge_session_device_count(const mge_session* s) { return s->session->devices().size(); }
const char* mge_session_device(const mge_session* s, size_t index) {
  return index < s->session->devices().size() ? s->session->devices()[index]->name().c_str() : nullptr;
}
int32_t mge_session_threads(const mge_session* s) { return static_cast<int32_t>(s->session->threads()); }
