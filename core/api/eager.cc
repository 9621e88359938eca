// SPDX-License-Identifier: Apache-2.0
// The API functions of eager mode.
#include <string>
#include <utility>
#include <vector>

#include "core/api/json.h"
#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/base/errors.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

using mge::EagerTensorPtr;
using mge::Tensor;
using mge::api::Misuse;
using mge::api::Wrap;

namespace {

mge_eager_tensor* NewHandle(EagerTensorPtr tensor) { return new mge_eager_tensor{std::move(tensor)}; }

// Converts the tensors into handles, all or none.
void GiveHandles(std::vector<EagerTensorPtr> tensors, mge_eager_tensor** out) {
  std::vector<std::unique_ptr<mge_eager_tensor>> handles;
  for (EagerTensorPtr& t : tensors) handles.emplace_back(t ? NewHandle(std::move(t)) : nullptr);
  for (size_t i = 0; i < handles.size(); ++i) out[i] = handles[i].release();
}

std::string Text(const char* text) { return text ? text : ""; }

// Converts an attribute. Fails with kApiMisuse if a pointer or the type is wrong.
absl::StatusOr<mge::AttributeValue> AttributeValueOf(const mge_attribute& a) {
  const bool single = a.type == MGE_ATTRIBUTE_INT || a.type == MGE_ATTRIBUTE_FLOAT || a.type == MGE_ATTRIBUTE_TEXT ||
                      a.type == MGE_ATTRIBUTE_TENSOR;
  auto wrong = [&](std::string_view what) {
    return mge::Fail(mge::errors::kApiMisuse, fmt::format("attribute '{}' of an eager operator has {}", a.name, what),
                     {.where = "mge_eager_apply"});
  };
  if (single && a.count != 1) return wrong(fmt::format("the count {}, not 1", a.count));
  auto missing = [&](const void* data) { return a.count > 0 && !data; };
  switch (a.type) {
    case MGE_ATTRIBUTE_INT:
    case MGE_ATTRIBUTE_INTS:
      if (missing(a.ints)) return wrong("no ints");
      if (single) return mge::AttributeValue(a.ints[0]);
      return mge::AttributeValue(mge::Ints(a.ints, a.ints + a.count));
    case MGE_ATTRIBUTE_FLOAT:
    case MGE_ATTRIBUTE_FLOATS:
      if (missing(a.floats)) return wrong("no floats");
      if (single) return mge::AttributeValue(a.floats[0]);
      return mge::AttributeValue(mge::Floats(a.floats, a.floats + a.count));
    case MGE_ATTRIBUTE_TEXT:
    case MGE_ATTRIBUTE_TEXTS: {
      if (missing(a.texts)) return wrong("no texts");
      mge::Texts texts;
      for (size_t i = 0; i < a.count; ++i) {
        if (!a.texts[i]) return wrong(fmt::format("no text {}", i));
        texts.emplace_back(a.texts[i]);
      }
      if (single) return mge::AttributeValue(std::move(texts[0]));
      return mge::AttributeValue(std::move(texts));
    }
    case MGE_ATTRIBUTE_TENSOR: {
      if (missing(a.tensor) || !a.tensor->life.alive()) return wrong("no tensor");
      MGE_ASSIGN_OR_RETURN(Tensor host, mge::HostCopyOf(a.tensor->value.tensor));
      return mge::AttributeValue(std::move(host));
    }
    default: return wrong(fmt::format("the type {}, which is not one of MGE_ATTRIBUTE_...", a.type));
  }
}

absl::StatusOr<mge::OperatorRequest> RequestOf(const mge_eager_operator& op) {
  mge::OperatorRequest request = {
      .op = op.op, .domain = Text(op.domain), .version = op.version, .attrs = {}, .outputs = op.output_count};
  if (op.attribute_count > 0) {
    MGE_RETURN_IF_ERROR(mge::api::CheckStructSize<mge_attribute>(op.attribute_size, "mge_eager_operator", "attribute_size"));
  }
  for (size_t i = 0; i < op.attribute_count; ++i) {
    const auto* row = reinterpret_cast<const std::byte*>(op.attributes) + i * op.attribute_size;
    MGE_ASSIGN_OR_RETURN(const mge_attribute a, mge::api::CopyStruct(reinterpret_cast<const mge_attribute*>(row),
                                                                     op.attribute_size, "mge_attribute"));
    if (!a.name) {
      return mge::Fail(mge::errors::kApiMisuse, fmt::format("attribute {} of an eager operator has no name", i),
                       {.where = "mge_eager_apply"});
    }
    MGE_ASSIGN_OR_RETURN(mge::AttributeValue value, AttributeValueOf(a));
    request.attrs.Set(a.name, std::move(value));
  }
  return request;
}

}  // namespace

mge_status* mge_eager_create(mge_runtime* runtime, mge_eager** out) try {
  MGE_API_NEEDS({"runtime", runtime}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(std::shared_ptr<mge::EagerInterpreter> made,
                           mge::EagerInterpreter::Create(runtime->runtime, mge::api::EagerWatch(*runtime)));
  *out = new mge_eager{std::move(made)};
  return nullptr;
}
MGE_API_CATCH

void mge_eager_release(mge_eager* eager) { delete eager; }

mge_status* mge_eager_put(mge_eager* eager, const mge_tensor* value, const char* device, mge_eager_tensor** out) try {
  MGE_API_NEEDS({"eager", eager}, {"value", value}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(EagerTensorPtr made, eager->interpreter->Put(value->value, Text(device)));
  *out = NewHandle(std::move(made));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_eager_host_operand(mge_eager* eager, const mge_tensor* value, mge_eager_tensor** out) try {
  MGE_API_NEEDS({"eager", eager}, {"value", value}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::HostValue copy, mge::HostCopyOf(value->value));
  *out = NewHandle(eager->interpreter->HostOperand(std::move(copy)));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_eager_apply(mge_eager* eager, const mge_eager_operator* op, mge_eager_tensor* const* inputs,
                            size_t input_count, mge_eager_tensor** outputs, size_t capacity, size_t* count) try {
  MGE_API_NEEDS({"eager", eager}, {"op", op}, {"inputs", input_count == 0 || inputs}, {"outputs", outputs},
                {"count", count});
  MGE_API_ASSIGN_OR_RETURN(const mge_eager_operator o, mge::api::CopyOptions(op, "mge_eager_operator"));
  MGE_API_NEEDS({"op->op", o.op}, {"op->attributes", o.attribute_count == 0 || o.attributes});
  MGE_API_ASSIGN_OR_RETURN(const mge::OperatorRequest request, RequestOf(o));
  if (const size_t needed = mge::RequestedOutputs(request); needed > capacity) {
    return Misuse("mge_eager_apply", fmt::format("{} has {} outputs, and there is room for {}", o.op, needed, capacity));
  }
  absl::InlinedVector<EagerTensorPtr, 4> given;
  for (size_t i = 0; i < input_count; ++i) given.push_back(inputs[i] ? inputs[i]->tensor : nullptr);
  MGE_API_ASSIGN_OR_RETURN(std::vector<EagerTensorPtr> made, eager->interpreter->Apply(request, given, Text(o.device)));
  *count = made.size();
  GiveHandles(std::move(made), outputs);
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_eager_synchronize(mge_eager* eager) try {
  MGE_API_NEEDS({"eager", eager});
  return Wrap(eager->interpreter->Synchronize());
}
MGE_API_CATCH

mge_status* mge_eager_report(mge_eager* eager, const char* schema, mge_string** out) try {
  MGE_API_NEEDS({"eager", eager}, {"schema", schema}, {"out", out});
  if (std::string_view(schema) != "mge.eager/1") {
    return Misuse("mge_eager_report", fmt::format("'{}' is not a report on eager mode; use \"mge.eager/1\"", schema));
  }
  const mge::EagerCounters c = eager->interpreter->counters();
  *out = mge::api::NewString(mge::api::Dump({{"schema", "mge.eager/1"},
                                             {"commands", c.commands},
                                             {"runs", c.runs},
                                             {"operators", c.operators},
                                             {"operators_created", c.operators_created},
                                             {"queue_peak", c.queue_peak},
                                             {"live_bytes", c.live_bytes},
                                             {"peak_bytes", c.peak_bytes},
                                             {"evictions", c.evictions},
                                             {"drops", c.drops},
                                             {"recomputations", c.recomputations},
                                             {"swaps_out", c.swaps_out},
                                             {"swaps_in", c.swaps_in}}));
  return nullptr;
}
MGE_API_CATCH

void mge_eager_tensor_release(mge_eager_tensor* tensor) { delete tensor; }

mge_status* mge_eager_tensor_get(mge_eager_tensor* tensor, mge_tensor** out) try {
  MGE_API_NEEDS({"tensor", tensor}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::HostValue value, tensor->tensor->interpreter().Get(*tensor->tensor));
  *out = new mge_tensor{.value = std::move(value), .read_only = true};
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_eager_tensor_wait(mge_eager_tensor* tensor) try {
  MGE_API_NEEDS({"tensor", tensor});
  return Wrap(tensor->tensor->interpreter().Wait(*tensor->tensor));
}
MGE_API_CATCH

mge_status* mge_eager_tensor_type(mge_eager_tensor* tensor, int32_t* kind, mge_dtype* dtype, size_t* rank,
                                  const int64_t** dims) try {
  MGE_API_NEEDS({"tensor", tensor}, {"kind", kind}, {"dtype", dtype}, {"rank", rank}, {"dims", dims});
  MGE_API_RETURN_IF_ERROR(tensor->tensor->interpreter().TypeOf(*tensor->tensor).status());
  const mge::ValueType& type = tensor->tensor->value()->type();
  *kind = mge::api::PublicKind(type.kind);
  *dtype = static_cast<mge_dtype>(type.type.dtype);
  *rank = type.type.dims.size();
  *dims = type.type.dims.data();
  return nullptr;
}
MGE_API_CATCH

int32_t mge_eager_tensor_state(const mge_eager_tensor* tensor) {
  switch (tensor->tensor->state()) {
    case mge::EagerState::kPending: return MGE_EAGER_PENDING;
    case mge::EagerState::kReady: return MGE_EAGER_READY;
    case mge::EagerState::kDropped: return MGE_EAGER_DROPPED;
    case mge::EagerState::kSwapped: return MGE_EAGER_SWAPPED;
    case mge::EagerState::kFailed: break;
  }
  return MGE_EAGER_FAILED;
}

const char* mge_eager_tensor_device(const mge_eager_tensor* tensor) {
  return tensor->tensor->is_host_operand() ? "" : tensor->tensor->value()->place()->spec.c_str();
}

mge_status* mge_eager_tensor_drop(mge_eager_tensor* tensor) try {
  MGE_API_NEEDS({"tensor", tensor});
  return Wrap(tensor->tensor->interpreter().Drop(*tensor->tensor));
}
MGE_API_CATCH

mge_status* mge_eager_tensor_swap_out(mge_eager_tensor* tensor) try {
  MGE_API_NEEDS({"tensor", tensor});
  return Wrap(tensor->tensor->interpreter().SwapOut(*tensor->tensor));
}
MGE_API_CATCH

mge_status* mge_eager_tensor_swap_in(mge_eager_tensor* tensor) try {
  MGE_API_NEEDS({"tensor", tensor});
  return Wrap(tensor->tensor->interpreter().SwapIn(*tensor->tensor));
}
MGE_API_CATCH

mge_status* mge_eager_tape_create(mge_eager* eager, mge_eager_tape** out) try {
  MGE_API_NEEDS({"eager", eager}, {"out", out});
  *out = new mge_eager_tape{std::make_shared<mge::EagerTape>(eager->interpreter)};
  return nullptr;
}
MGE_API_CATCH

void mge_eager_tape_release(mge_eager_tape* tape) {
  if (tape) tape->tape->Stop();
  delete tape;
}

mge_status* mge_eager_tape_start(mge_eager_tape* tape) try {
  MGE_API_NEEDS({"tape", tape});
  tape->tape->Start();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_eager_tape_stop(mge_eager_tape* tape) try {
  MGE_API_NEEDS({"tape", tape});
  tape->tape->Stop();
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_eager_tape_watch(mge_eager_tape* tape, mge_eager_tensor* tensor) try {
  MGE_API_NEEDS({"tape", tape}, {"tensor", tensor});
  return Wrap(tape->tape->Watch(tensor->tensor));
}
MGE_API_CATCH

mge_status* mge_eager_tape_gradient(mge_eager_tape* tape, mge_eager_tensor* target, mge_eager_tensor* weights,
                                    mge_eager_tensor* const* sources, size_t count, mge_eager_tensor** outputs) try {
  MGE_API_NEEDS({"tape", tape}, {"target", target}, {"sources", count == 0 || sources}, {"outputs", count == 0 || outputs});
  std::vector<EagerTensorPtr> by;
  for (size_t i = 0; i < count; ++i) {
    if (!sources[i]) return Misuse("mge_eager_tape_gradient", fmt::format("source {} is NULL", i));
    by.push_back(sources[i]->tensor);
  }
  MGE_API_ASSIGN_OR_RETURN(std::vector<EagerTensorPtr> made,
                           tape->tape->Gradient(target->tensor, by, weights ? weights->tensor : nullptr));
  GiveHandles(std::move(made), outputs);
  return nullptr;
}
MGE_API_CATCH
