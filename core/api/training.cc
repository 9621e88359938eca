// SPDX-License-Identifier: Apache-2.0
// The API functions of states, and of sessions that train.
#include "core/train/training.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/api/objects.h"
#include "core/api/options.h"
#include "core/base/errors.h"
#include "core/env/settings_train.h"
#include "core/onnx/weights_writer.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

using mge::api::Misuse;
using mge::api::Wrap;

namespace mge::api {

namespace {

// Reads options, and keeps each as a line "name: value" for the comparison with other processes.
class OptionReader {
 public:
  template <typename From, typename To>
  void Take(std::string_view name, const From& from, To& to) {
    to = static_cast<To>(from);
    Keep(name, to);
  }
  // An empty text, or none, leaves the default.
  void TakeText(std::string_view name, const char* text, std::string& to) {
    if (text && *text) to = text;
    Keep(name, to);
  }
  template <typename T>
  void Keep(std::string_view name, const T& value) {
    lines_ += fmt::format("{}: {}\n", name, value);
  }
  const std::string& lines() const { return lines_; }

 private:
  std::string lines_ = fmt::format("version of MGE: {}\n", mge_version());
};

}  // namespace

absl::StatusOr<TrainingRequest> TrainingRequestOf(const mge_training_options& given, const Snapshot& settings) {
  MGE_ASSIGN_OR_RETURN(const mge_training_options o, CopyOptions(&given, "mge_training_options"));
  TrainingRequest request;
  TrainingOptions& options = request.options;
  OptionReader reader;
  reader.TakeText("loss", o.loss, options.loss);
  reader.TakeText("loss_output", o.loss_output, options.loss_output);
  reader.TakeText("labels_name", o.labels_name, options.labels_name);
  reader.TakeText("optimizer", o.optimizer, options.optimizer);
  reader.TakeText("on_nan", o.on_nan, options.on_nan);
  reader.Take("momentum", o.momentum, options.momentum);
  reader.Take("beta1", o.beta1, options.beta1);
  reader.Take("beta2", o.beta2, options.beta2);
  reader.Take("epsilon", o.epsilon, options.epsilon);
  reader.Take("weight_decay", o.weight_decay, options.weight_decay);
  reader.Take("clip_norm", o.clip_norm, options.clip_norm);
  reader.Take("clip_value", o.clip_value, options.clip_value);
  reader.Take("label_smoothing", o.label_smoothing, options.label_smoothing);
  reader.Take("accumulate", o.accumulate == 0 ? 1 : o.accumulate, options.accumulate);
  reader.Take("huber_delta", o.huber_delta == 0 ? 1 : o.huber_delta, options.huber_delta);
  reader.Take("average_decay", o.average_decay, options.average_decay);
  reader.Take("keep_gradients", o.keep_gradients, options.keep_gradients);
  for (size_t i = 0; i < o.frozen_count; ++i) options.frozen.emplace_back(o.frozen[i]);
  reader.Keep("frozen", fmt::format("{}", fmt::join(options.frozen, " ")));
  options.class_weights.assign(o.class_weights, o.class_weights + o.class_weight_count);
  reader.Keep("class_weights", fmt::format("{}", fmt::join(options.class_weights, " ")));
  for (size_t i = 0; i < o.group_count; ++i) {
    const mge_parameter_group& group = o.groups[i];
    options.groups.push_back({group.pattern ? group.pattern : "", group.rate, group.weight_decay});
    const auto& added = options.groups.back();
    reader.Keep("group", fmt::format("{} rate {} weight_decay {}", added.pattern, group.rate, group.weight_decay));
  }
  options.mirror = settings.Get<kTrainMirror>();
  options.inplace_update = settings.Get<kTrainInplaceUpdate>();
  if (settings.Get<kTrainSublinear>()) {
    options.sublinear = SublinearOptions{.tries = settings.Get<kSublinearTries>(),
                                         .generations = settings.Get<kSublinearGenerations>(),
                                         .population = settings.Get<kSublinearPopulation>(),
                                         .lower_bound = settings.Get<kSublinearLowerBound>() << 20,
                                         .workers = settings.Get<kSublinearWorkers>()};
  }
  request.data_parallel = o.data_parallel != 0;
  request.facts = reader.lines() + (o.facts ? o.facts : "");
  return request;
}

absl::Status CheckNoNan(const std::string& name, const Tensor& state) {
  bool has_nan = false;
  DispatchFloating(state.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (T x : state.Data<T>()) has_nan = has_nan || std::isnan(static_cast<double>(static_cast<Compute<T>>(x)));
  });
  if (!has_nan) return absl::OkStatus();
  return Fail(errors::kNotFinite, fmt::format("state '{}' has NaN", name),
              {.what = "nothing was written; an earlier file is unchanged",
               .fix = "load an earlier checkpoint, and use a lower learning rate or clip_norm"});
}

}  // namespace mge::api

size_t mge_session_state_count(const mge_session* s) { return s->states.size(); }

const char* mge_session_state_name(const mge_session* s, size_t i) {
  return i < s->states.size() ? s->states[i].c_str() : nullptr;
}

size_t mge_session_parameter_count(const mge_session* s) { return s->trained ? s->trained->parameters.size() : 0; }

const char* mge_session_parameter_name(const mge_session* s, size_t i) {
  return i < mge_session_parameter_count(s) ? s->trained->parameters[i].c_str() : nullptr;
}

mge_status* mge_session_read_state(mge_session* s, const char* name, mge_tensor** out) try {
  MGE_API_NEEDS({"session", s}, {"name", name}, {"out", out});
  MGE_API_ASSIGN_OR_RETURN(mge::Tensor tensor, s->session->ReadState(name));
  *out = mge::api::NewTensor(std::move(tensor));
  return nullptr;
}
MGE_API_CATCH

mge_status* mge_session_write_state(mge_session* s, const char* name, const mge_tensor* tensor) try {
  MGE_API_NEEDS({"session", s}, {"name", name}, {"tensor", tensor});
  if (tensor->value.kind != mge::ValueKind::kTensor) {
    return Misuse("mge_session_write_state", "a state is a tensor, and the given value is a sequence, an optional or a map");
  }
  return Wrap(s->session->WriteState(name, tensor->value.tensor));
}
MGE_API_CATCH

namespace {

// Returns a copy of a parameter, or of its average in the parameter's type.
absl::StatusOr<mge::Tensor> ReadParameter(mge_session& s, const std::string& name) {
  const std::string average = name + ".average";
  MGE_ASSIGN_OR_RETURN(mge::Tensor parameter, s.session->ReadState(name));
  if (std::ranges::find(s.states, average) == s.states.end()) return parameter;
  MGE_ASSIGN_OR_RETURN(mge::Tensor read, s.session->ReadState(average));
  if (read.dtype() == parameter.dtype()) return read;
  mge::DispatchFloating(parameter.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto from = read.Data<float>();  // the average of a parameter of 16 bits
    std::ranges::transform(from, parameter.MutableData<T>().begin(), [](float x) { return static_cast<T>(x); });
  });
  return parameter;
}

mge_status* Save(const char* function, mge_session* s, const char* path, mge::onnx::NodeForm form) {
  if (mge_status* null = mge::api::NullAmong(function, {{"session", s}, {"path", path}})) return null;
  if (!s->trained) return Misuse(function, "the session does not train, so that nothing has changed");
  std::map<std::string, mge::Tensor> weights;
  for (const std::string& name : s->trained->parameters) {
    MGE_API_ASSIGN_OR_RETURN(weights[name], ReadParameter(*s, name));
    MGE_API_RETURN_IF_ERROR(mge::api::CheckNoNan(name, weights[name]));
  }
  const mge::api::TrainedModel& model = *s->trained;
  for (const mge::TransposedCopy& copy : model.restored.copies) {
    if (const auto at = weights.find(copy.parameter); at != weights.end()) {
      MGE_API_ASSIGN_OR_RETURN(weights[copy.name], mge::TransposedMatrix(at->second));
    }
  }
  mge::Bytes bytes = model.bytes;
  mge::Tensor read;
  if (model.file) {
    MGE_API_ASSIGN_OR_RETURN(read, mge::Tensor::Create(mge::DType::kU8, {model.file->size()}));
    const std::span<std::byte> out(static_cast<std::byte*>(read.mutable_data()), static_cast<size_t>(read.bytes()));
    MGE_API_RETURN_IF_ERROR(model.file->Read(0, out));
    bytes = out;
  }
  return Wrap(mge::onnx::WriteWithWeights(bytes, weights, path, model.folder, form, model.restored.added));
}

}  // namespace

mge_status* mge_session_save(mge_session* s, const char* path) try {
  return Save("mge_session_save", s, path, mge::onnx::NodeForm::kUnchanged);
}
MGE_API_CATCH

mge_status* mge_session_save_for_inference(mge_session* s, const char* path) try {
  return Save("mge_session_save_for_inference", s, path, mge::onnx::NodeForm::kInference);
}
MGE_API_CATCH
