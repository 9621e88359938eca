// SPDX-License-Identifier: Apache-2.0
// Interpreters of eager mode with settings, and short forms of their calls. A call that fails is a failure of the test.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/eager/eager_interpreter.h"
#include "core/eager/eager_tape.h"
#include "core/plugin/device_tensor.h"

namespace mge {

class Eager {
 public:
  explicit Eager(std::string device, std::vector<Assignment> settings = {}, Logger logger = Logger())
      : device_(std::move(device)) {
    RuntimeOptions options;
    options.built_in_plugins = false;
    options.plugin_directories = {MGE_BINARY_DIR "/lib/mge/plugins"};
    settings.emplace_back("virtual.devices", "1");
    options.sources.call = std::move(settings);
    options.logger = std::move(logger);
    auto runtime = Runtime::Create(std::move(options));
    EXPECT_TRUE(runtime.ok()) << FormatError(runtime.status());
    if (runtime.ok()) interpreter_ = *EagerInterpreter::Create(*runtime);
  }
  EagerInterpreter* operator->() const { return interpreter_.get(); }
  const std::shared_ptr<EagerInterpreter>& get() const { return interpreter_; }
  const std::string& device() const { return device_; }

  static HostValue Floats(Shape shape, std::vector<float> elements) {
    HostValue v;
    v.tensor = Tensor::Of<float>(std::move(shape), elements);
    return v;
  }
  // Numbers between -1 and 1, which depend on the seed.
  static HostValue Waves(Shape shape, int seed = 1) {
    HostValue v;
    v.tensor = *Tensor::Create(DType::kF32, std::move(shape));
    size_t i = 0;
    for (float& x : v.tensor.MutableData<float>()) x = static_cast<float>(std::sin(static_cast<double>(i++) * 1.7 + seed));
    return v;
  }

  EagerTensorPtr Put(const HostValue& value) const {
    auto out = interpreter_->Put(value, device_);
    EXPECT_TRUE(out.ok()) << FormatError(out.status());
    return out.ok() ? *out : nullptr;
  }
  EagerTensorPtr Put(Shape shape, std::vector<float> elements) const {
    return Put(Floats(std::move(shape), std::move(elements)));
  }
  EagerTensorPtr Ints(std::vector<int64_t> elements) const {
    HostValue v;
    v.tensor = Tensor::Vector<int64_t>(elements);
    return interpreter_->HostOperand(std::move(v));
  }
  absl::StatusOr<std::vector<EagerTensorPtr>> Try(OperatorRequest request, std::vector<EagerTensorPtr> inputs) const {
    return interpreter_->Apply(request, inputs, device_);
  }
  std::vector<EagerTensorPtr> ApplyAll(OperatorRequest request, std::vector<EagerTensorPtr> inputs) const {
    auto out = Try(std::move(request), std::move(inputs));
    EXPECT_TRUE(out.ok()) << FormatError(out.status());
    return out.ok() ? *out : std::vector<EagerTensorPtr>(8);
  }
  EagerTensorPtr Apply(const char* op, std::vector<EagerTensorPtr> inputs, Attributes attrs = {}) const {
    return ApplyAll({.op = op, .attrs = std::move(attrs)}, std::move(inputs))[0];
  }
  // Returns the elements, which must be float32.
  std::vector<float> Get(const EagerTensorPtr& x) const {
    if (!x) return {};
    auto out = interpreter_->Get(*x);
    EXPECT_TRUE(out.ok()) << FormatError(out.status());
    if (!out.ok()) return {};
    auto host = ToHost(out->tensor);
    EXPECT_TRUE(host.ok()) << FormatError(host.status());
    if (!host.ok()) return {};
    EXPECT_EQ(host->dtype(), DType::kF32);
    return {host->Data<float>().begin(), host->Data<float>().end()};
  }
  std::string ErrorOf(const EagerTensorPtr& x) const {
    auto out = interpreter_->Get(*x);
    return out.ok() ? "" : FormatError(out.status());
  }

 private:
  std::string device_;
  std::shared_ptr<EagerInterpreter> interpreter_;
};

inline Attributes With(std::string name, AttributeValue value, Attributes attrs = {}) {
  attrs.Set(std::move(name), std::move(value));
  return attrs;
}

}  // namespace mge
