// SPDX-License-Identifier: Apache-2.0
// The API functions on a session's inputs and outputs and on the model's metadata.
#include "core/api/objects.h"

namespace {

enum class Side { kInput, kOutput };

mge::ValueType TypeOf(const mge_session& s, Side side, size_t i) {
  return side == Side::kInput ? mge::api::DeclaredInput(s, i) : s.session->output_types()[i];
}

const mge::TensorType* TensorTypeOf(const mge_session* s, Side side, size_t i) {
  const mge::Graph& graph = s->session->graph();
  if (side == Side::kInput) return i < graph.inputs().size() ? &graph.value(graph.inputs()[i]).type : nullptr;
  return i < s->session->output_types().size() ? &s->session->output_types()[i].type : nullptr;
}

mge_dtype DTypeOf(const mge_session* s, Side side, size_t i) {
  const mge::TensorType* type = TensorTypeOf(s, side, i);
  return type ? static_cast<mge_dtype>(type->dtype) : MGE_DTYPE_UNDEFINED;
}

int32_t RankOf(const mge_session* s, Side side, size_t i) {
  const mge::TensorType* type = TensorTypeOf(s, side, i);
  return type && type->has_rank ? static_cast<int32_t>(type->dims.size()) : -1;
}

const int64_t* DimsOf(const mge_session* s, Side side, size_t i) {
  const mge::TensorType* type = TensorTypeOf(s, side, i);
  return type ? type->dims.data() : nullptr;
}

const char* DimNameOf(const mge_session* s, Side side, size_t i, size_t axis) {
  const mge::TensorType* type = TensorTypeOf(s, side, i);
  if (!type || axis >= type->dims.size()) return nullptr;
  return axis < type->symbols.size() ? type->symbols[axis].c_str() : "";
}

int32_t KindOf(const mge_session* s, Side side, size_t i) {
  return TensorTypeOf(s, side, i) ? mge::api::PublicKind(TypeOf(*s, side, i).kind) : MGE_VALUE_TENSOR;
}

int32_t PartKindOf(const mge_session* s, Side side, size_t i) {
  const mge::ValueKind kind = TensorTypeOf(s, side, i) ? TypeOf(*s, side, i).kind : mge::ValueKind::kTensor;
  if (kind == mge::ValueKind::kMapSequence) return MGE_VALUE_MAP;
  return kind == mge::ValueKind::kOptionalSequence ? MGE_VALUE_SEQUENCE : MGE_VALUE_TENSOR;
}

}  // namespace

mge::ValueType mge::api::DeclaredInput(const mge_session& s, size_t i) {
  const Value& value = s.session->graph().value(s.session->graph().inputs()[i]);
  return {value.type, value.kind};
}

size_t mge_session_input_count(const mge_session* s) { return s->session->graph().inputs().size(); }
size_t mge_session_output_count(const mge_session* s) { return s->session->graph().outputs().size(); }
const char* mge_session_input_name(const mge_session* s, size_t i) {
  const mge::Graph& graph = s->session->graph();
  return i < graph.inputs().size() ? graph.value(graph.inputs()[i]).name.c_str() : nullptr;
}
const char* mge_session_output_name(const mge_session* s, size_t i) {
  const mge::Graph& graph = s->session->graph();
  return i < graph.outputs().size() ? graph.value(graph.outputs()[i]).name.c_str() : nullptr;
}

int32_t mge_session_input_kind(const mge_session* s, size_t i) { return KindOf(s, Side::kInput, i); }
int32_t mge_session_input_part_kind(const mge_session* s, size_t i) { return PartKindOf(s, Side::kInput, i); }
mge_dtype mge_session_input_dtype(const mge_session* s, size_t i) { return DTypeOf(s, Side::kInput, i); }
int32_t mge_session_input_rank(const mge_session* s, size_t i) { return RankOf(s, Side::kInput, i); }
const int64_t* mge_session_input_dims(const mge_session* s, size_t i) { return DimsOf(s, Side::kInput, i); }
const char* mge_session_input_dim_name(const mge_session* s, size_t i, size_t axis) {
  return DimNameOf(s, Side::kInput, i, axis);
}
int32_t mge_session_output_kind(const mge_session* s, size_t i) { return KindOf(s, Side::kOutput, i); }
int32_t mge_session_output_part_kind(const mge_session* s, size_t i) { return PartKindOf(s, Side::kOutput, i); }
mge_dtype mge_session_output_dtype(const mge_session* s, size_t i) { return DTypeOf(s, Side::kOutput, i); }
int32_t mge_session_output_rank(const mge_session* s, size_t i) { return RankOf(s, Side::kOutput, i); }
const int64_t* mge_session_output_dims(const mge_session* s, size_t i) { return DimsOf(s, Side::kOutput, i); }
const char* mge_session_output_dim_name(const mge_session* s, size_t i, size_t axis) {
  return DimNameOf(s, Side::kOutput, i, axis);
}

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
