// SPDX-License-Identifier: Apache-2.0
#include "core/ops/families/activation.h"

#include <algorithm>

#include "fmt/format.h"

namespace mge {
namespace {

struct Activation {
  std::string_view name;
  Few<std::string_view, 2> parameters;
};
constexpr Activation kActivations[] = {{"Clip", {"alpha", "beta"}},
                                       {"Elu", {"alpha"}},
                                       {"HardSigmoid", {"alpha", "beta"}},
                                       {"LeakyRelu", {"alpha"}},
                                       {"Relu", {}},
                                       {"Selu", {"alpha", "gamma"}},
                                       {"Sigmoid", {}},
                                       {"Softplus", {}},
                                       {"Softsign", {}},
                                       {"Tanh", {}},
                                       {"ThresholdedRelu", {"alpha"}}};

/*nullable*/ const Activation* FindActivation(std::string_view name) {
  const auto found = std::ranges::find(kActivations, name, &Activation::name);
  return found == std::end(kActivations) ? nullptr : found;
}

}  // namespace

Attributes ActivationParameters(const Attributes& attrs) {
  Attributes out;
  for (std::string_view name : {"alpha", "beta", "gamma"}) {
    const std::string key = fmt::format("activation_{}", name);
    if (attrs.Has(key)) out.Set(std::string(name), attrs.Float(key));
  }
  return out;
}

Attributes ActivationParameters(const std::string& name, const Floats& list) {
  Attributes out;
  const Activation* known = FindActivation(name);
  for (int i = 0; known && i < known->parameters.size() && static_cast<size_t>(i) < list.size(); ++i) {
    out.Set(std::string(known->parameters[i]), list[static_cast<size_t>(i)]);
  }
  return out;
}

absl::Status AddActivation(FunctionBody& f, ValueId x, DType type, const std::string& name, const Attributes& parameters) {
  if (name.empty()) {
    f.Result(0, "Identity", {x});
  } else if (!FindActivation(name)) {
    return f.Unsupported(fmt::format("the activation '{}'", name));
  } else if (name != "Clip") {
    f.Result(0, name, {x}, parameters);
  } else {
    if (!parameters.Has("alpha") || !parameters.Has("beta")) return f.Invalid("the activation Clip must have two limits");
    f.Result(0, "Clip", {x, f.Number(type, parameters.Float("alpha")), f.Number(type, parameters.Float("beta"))});
  }
  return absl::OkStatus();
}

}  // namespace mge
