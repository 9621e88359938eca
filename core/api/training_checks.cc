// SPDX-License-Identifier: Apache-2.0
#include "core/api/training_checks.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "core/base/errors.h"
#include "core/plugin/device_tensor.h"
#include "fmt/format.h"

namespace mge::api {
namespace {

// Values of a step that are computed at a time to find the first one that is not finite.
constexpr size_t kProbedAtOnce = 8;

enum class Finite { kYes, kInfinite, kNan };

struct Found {
  Finite kind = Finite::kYes;
  size_t element = 0;  // the first one of the worst kind
};

Found Look(const Tensor& tensor) {
  Found out;
  DispatchFloating(tensor.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto all = tensor.Data<T>();
    for (size_t i = 0; i < all.size(); ++i) {
      const auto x = static_cast<double>(static_cast<Compute<T>>(all[i]));
      if (std::isfinite(x)) continue;
      if (std::isnan(x)) {
        out = {Finite::kNan, i};
        return;
      }
      if (out.kind == Finite::kYes) out = {Finite::kInfinite, i};
    }
  });
  return out;
}

std::string Text(std::string_view what, const std::string& name, const Found& found) {
  return fmt::format("{} '{}' has {} at element {}", what, name, found.kind == Finite::kNan ? "NaN" : "infinity",
                     found.element);
}

// Searches the first value of a step that is not finite although its node has read finite values.
class Search {
 public:
  Search(Session& session, const TrainedModel& trained, std::span<const HostValue> inputs)
      : session_(session), trained_(trained), inputs_(inputs) {}

  // Returns a text for the user; empty if every value of the model is finite.
  absl::StatusOr<std::string> First() {
    const std::vector<ValueId>& ids = session_.graph().inputs();
    for (size_t i = 0; i < ids.size(); ++i) {
      MGE_ASSIGN_OR_RETURN(const Tensor host, ToHost(inputs_[i].tensor));
      const Found found = Look(host);
      if (found.kind != Finite::kYes) return Text("input", session_.graph().value(ids[i]).name, found);
    }
    for (const std::string& name : trained_.parameters) {
      MGE_ASSIGN_OR_RETURN(const Tensor parameter, session_.ReadState(name));
      const Found found = Look(parameter);
      if (found.kind == Finite::kNan) return Text("parameter", name, found);
    }
    return FirstOfNodes();
  }

 private:
  absl::StatusOr<std::string> FirstOfNodes() {
    onnx::Model model = *trained_.model;
    MGE_RETURN_IF_ERROR(MakeEvaluation(model, trained_.options, false));
    MGE_ASSIGN_OR_RETURN(const std::vector<NodeId> order, model.graph.TopologicalOrder());
    std::vector<std::pair<ValueId, NodeId>> values;
    for (const NodeId id : order) {
      for (const ValueId v : model.graph.node(id).outputs) {
        const bool floats = v != kNone && model.graph.value(v).kind == ValueKind::kTensor &&
                            kFloating.Contains(model.graph.value(v).type.dtype);
        if (floats) values.emplace_back(v, id);
      }
    }
    for (size_t begin = 0; begin < values.size(); begin += kProbedAtOnce) {
      const auto some = std::span(values).subspan(begin, std::min(kProbedAtOnce, values.size() - begin));
      onnx::Model probe = model;
      probe.graph.outputs().clear();
      probe.info.outputs.clear();
      for (const auto& [value, node] : some) probe.graph.outputs().push_back(value);
      MGE_ASSIGN_OR_RETURN(const std::shared_ptr<Session> session, Session::Evaluating(session_, std::move(probe)));
      std::vector<HostValue> results(some.size());
      RunState control;
      MGE_RETURN_IF_ERROR(session->Run(inputs_.first(inputs_.size() - 1), results, control));  // without the rate
      for (size_t i = 0; i < some.size(); ++i) {
        MGE_ASSIGN_OR_RETURN(const Tensor host, ToHost(results[i].tensor));
        const Found found = Look(host);
        known_[some[i].first] = found.kind;
        if (found.kind > WorstInput(model.graph, some[i].second)) {
          const Node& node = model.graph.node(some[i].second);
          return Text(fmt::format("{} node '{}': its output", node.op, node.name), model.graph.value(some[i].first).name,
                      found);
        }
      }
    }
    return std::string();
  }
  Finite WorstInput(const Graph& graph, NodeId id) {
    Finite worst = Finite::kYes;
    for (const ValueId v : graph.node(id).inputs) {
      if (v == kNone) continue;
      const auto known = known_.find(v);
      Finite kind = known == known_.end() ? Finite::kYes : known->second;
      if (known == known_.end() && graph.value(v).role == Role::kConstant) {
        const absl::StatusOr<Tensor> held = graph.value(v).constant.Held();
        if (held.ok()) kind = Look(*held).kind;
        known_[v] = kind;
      }
      worst = std::max(worst, kind);
    }
    return worst;
  }

  Session& session_;
  const TrainedModel& trained_;
  const std::span<const HostValue> inputs_;
  std::unordered_map<ValueId, Finite> known_;
};

// Checks the steps of one session.
class Checks {
 public:
  Checks(Session& session, std::shared_ptr<const TrainedModel> trained) : session_(session), trained_(std::move(trained)) {}

  absl::Status Check(std::span<const HostValue> whole, std::span<const HostValue> outputs, std::span<const int> places) {
    const std::vector<HostValue> inputs = Own(whole);
    const auto at = std::ranges::find(places, 0);
    if (!places.empty() && at == places.end()) return absl::OkStatus();
    const Tensor& tensor = outputs[places.empty() ? 0 : static_cast<size_t>(at - places.begin())].tensor;
    if (!tensor.defined() || !DeviceMemory::OnHost(tensor)) return absl::OkStatus();
    const double loss = tensor.dtype() == DType::kF64 ? tensor.Data<double>()[0] : tensor.Data<float>()[0];
    if (loss == 0) WarnOfIgnoredLabels(inputs);
    if (std::isfinite(loss)) return absl::OkStatus();
    MGE_ASSIGN_OR_RETURN(const Tensor random, session_.ReadState(std::string(kRandomState)));
    const int64_t step = random.Data<int64_t>()[1];
    if (trained_->options.on_nan == "skip" && !warned_of_skip_.exchange(true)) {
      session_.runtime().logger().Warning(
          "step {}: the loss is not finite, so that the step changes nothing; later steps of this kind are not reported",
          step);
    }
    if (trained_->options.on_nan != "stop") return absl::OkStatus();
    const absl::StatusOr<std::string> first = Search(session_, *trained_, inputs).First();
    const std::string_view shown = std::isnan(loss) ? "NaN" : loss > 0 ? "infinity" : "-infinity";
    const std::string cause =
        first.ok() && !first->empty() ? "the first value: " + *first : "every value of the model is finite";
    return Fail(errors::kNotFinite, fmt::format("step {}: the loss is {}", step, shown),
                {.what = cause + "; the step has changed nothing", .where = "training"});
  }

 private:
  // Returns the rows of this process in a training on several: it has not read the others.
  std::vector<HostValue> Own(std::span<const HostValue> whole) const {
    std::vector<HostValue> out(whole.begin(), whole.end());
    const Shape& batch = out.front().tensor.shape();
    if (batch.empty() || batch[0] < 1) return out;
    const int64_t examples = batch[0];
    const auto [first, count] = session_.PartOf(examples);
    if (count == examples) return out;
    for (HostValue& value : out) {
      const Tensor& tensor = value.tensor;
      if (value.kind != ValueKind::kTensor || tensor.shape().empty() || tensor.shape()[0] != examples) continue;
      if (!DeviceMemory::OnHost(tensor)) continue;
      Shape shape = tensor.shape();
      shape[0] = count;
      const auto* const data = static_cast<const char*>(tensor.data()) + first * (tensor.bytes() / examples);
      value.tensor = tensor.Within(tensor.dtype(), std::move(shape), data);
    }
    return out;
  }
  void WarnOfIgnoredLabels(std::span<const HostValue> inputs) {
    const std::string& loss = trained_->options.loss;
    if (warned_of_labels_.load() || (loss != "cross_entropy" && loss != "token_cross_entropy")) return;
    const Tensor& labels = inputs[inputs.size() - 2].tensor;  // before the learning rate
    if (labels.dtype() != DType::kI64 || !DeviceMemory::OnHost(labels)) return;
    const int64_t classes = Classes(labels.rank());
    const auto all = labels.Data<int64_t>();
    if (std::ranges::any_of(all, [&](int64_t label) { return label >= 0 && (classes < 0 || label < classes); })) return;
    if (warned_of_labels_.exchange(true)) return;
    session_.runtime().logger().Warning(
        "a batch has no label that is the number of a class: its loss is 0, and it teaches nothing; later ones are not "
        "reported");
  }
  // Returns the number of classes, or kUnknownDim.
  int64_t Classes(int64_t labels_rank) const {
    const std::vector<ValueType>& types = session_.output_types();
    for (size_t i = 1; i < types.size(); ++i) {
      const std::string& name = session_.graph().value(session_.graph().outputs()[i]).name;
      if (!trained_->options.loss_output.empty() && name != trained_->options.loss_output) continue;
      const Shape& dims = types[i].type.dims;
      if (!types[i].type.has_rank || static_cast<int64_t>(dims.size()) != labels_rank + 1) return kUnknownDim;
      if (trained_->options.loss == "token_cross_entropy") return dims.back();
      return dims.size() == 2 ? dims[1] : kUnknownDim;
    }
    return kUnknownDim;
  }

  Session& session_;
  const std::shared_ptr<const TrainedModel> trained_;
  std::atomic<bool> warned_of_labels_{false}, warned_of_skip_{false};
};

}  // namespace

void CheckSteps(mge::Session& session, std::shared_ptr<const TrainedModel> trained) {
  auto checks = std::make_shared<Checks>(session, std::move(trained));
  session.CheckRuns([checks](std::span<const HostValue> inputs, std::span<const HostValue> outputs,
                             std::span<const int> places) { return checks->Check(inputs, outputs, places); });
}

}  // namespace mge::api
