// SPDX-License-Identifier: Apache-2.0
// Eager mode in C++17, over mge.h: single operators at once, and their gradients. See mge.h for what each call does.
//
//   auto eager = mge::Eager::Create(runtime);
//   if (!eager.ok()) return Report(eager.status());
//   auto x = eager->Put(array, "gpu0");
//   if (!x.ok()) return Report(x.status());
//   auto y = eager->Apply(mge::EagerOp("LeakyRelu").Set("alpha", 0.1f), {&*x});
//   if (!y.ok()) return Report(y.status());
//   auto result = y->Get();
//   if (!result.ok()) return Report(result.status());
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/eager.h"
#include "mge/mge.hpp"
#include "mge/namespace.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

// The result of an operator, which may not be computed yet. Immutable.
class EagerTensor : public internal::Owner<mge_eager_tensor, mge_eager_tensor_release> {
 public:
  using Owner::Owner;
  struct ValueType {
    int kind;  // MGE_VALUE_...
    mge_dtype dtype;
    Tensor::Dims dims;  // valid as long as the tensor
  };
  // Waits, and returns the tensor where it lies. It shares the memory, which must not be written.
  Result<Tensor> Get() const {
    return internal::Take<Tensor>([&](mge_tensor** t) { return mge_eager_tensor_get(get(), t); });
  }
  Status Wait() const { return Status(mge_eager_tensor_wait(get())); }
  // Waits if the type is not known yet.
  Result<ValueType> Type() const {
    ValueType out = {};
    int32_t kind = 0;
    size_t rank = 0;
    const int64_t* dims = nullptr;
    if (Status s(mge_eager_tensor_type(get(), &kind, &out.dtype, &rank, &dims)); !s.ok()) return s;
    out.kind = kind;
    out.dims = {dims, rank};
    return out;
  }
  int state() const { return mge_eager_tensor_state(get()); }  // MGE_EAGER_...
  std::string_view device() const { return mge_eager_tensor_device(get()); }
  Status Drop() const { return Status(mge_eager_tensor_drop(get())); }
  Status SwapOut() const { return Status(mge_eager_tensor_swap_out(get())); }
  Status SwapIn() const { return Status(mge_eager_tensor_swap_in(get())); }
};

// The operator of a call, with its attributes.
class EagerOp {
 public:
  explicit EagerOp(std::string op, std::string domain = {}, int version = 0)
      : op_(std::move(op)), domain_(std::move(domain)), version_(version) {}

  EagerOp& Set(std::string name, int64_t value) {
    return Set(std::move(name), std::vector<int64_t>{value}, MGE_ATTRIBUTE_INT);
  }
  EagerOp& Set(std::string name, int value) { return Set(std::move(name), int64_t{value}); }
  EagerOp& Set(std::string name, float value) {
    return Set(std::move(name), std::vector<float>{value}, MGE_ATTRIBUTE_FLOAT);
  }
  EagerOp& Set(std::string name, std::string value) {
    Item& item = Add(std::move(name), MGE_ATTRIBUTE_TEXT);
    item.texts.push_back(std::move(value));
    return *this;
  }
  EagerOp& Set(std::string name, const char* value) { return Set(std::move(name), std::string(value)); }
  EagerOp& Set(std::string name, std::vector<int64_t> values) {
    return Set(std::move(name), std::move(values), MGE_ATTRIBUTE_INTS);
  }
  EagerOp& Set(std::string name, std::vector<float> values) {
    return Set(std::move(name), std::move(values), MGE_ATTRIBUTE_FLOATS);
  }
  EagerOp& Set(std::string name, std::vector<std::string> values) {
    Add(std::move(name), MGE_ATTRIBUTE_TEXTS).texts = std::move(values);
    return *this;
  }
  // `value` must outlive the call.
  EagerOp& Set(std::string name, const Tensor& value) {
    Add(std::move(name), MGE_ATTRIBUTE_TENSOR).tensor = value.get();
    return *this;
  }
  // Sets the device of a call whose inputs are all host operands.
  EagerOp& On(std::string device) {
    device_ = std::move(device);
    return *this;
  }

 private:
  friend class Eager;
  struct Item {
    std::string name;
    int32_t type;
    std::vector<int64_t> ints = {};
    std::vector<float> floats = {};
    std::vector<std::string> texts = {};
    mge_tensor* tensor = nullptr;
  };
  Item& Add(std::string name, int32_t type) { return items_.emplace_back(Item{std::move(name), type}); }
  EagerOp& Set(std::string name, std::vector<int64_t> values, int32_t type) {
    Add(std::move(name), type).ints = std::move(values);
    return *this;
  }
  EagerOp& Set(std::string name, std::vector<float> values, int32_t type) {
    Add(std::move(name), type).floats = std::move(values);
    return *this;
  }

  std::string op_, domain_;
  int version_;
  std::string device_;
  std::deque<Item> items_;
};

// Eager mode in a runtime. Its functions may be called from any thread.
class Eager : public internal::Owner<mge_eager, mge_eager_release> {
 public:
  using Owner::Owner;
  static Result<Eager> Create(const Runtime& runtime) {
    return internal::Take<Eager>([&](mge_eager** e) { return mge_eager_create(runtime.get(), e); });
  }
  // Creates a tensor with a copy of the elements on a device; "": the one of the thread's context.
  Result<EagerTensor> Put(const Tensor& value, const std::string& device = {}) const {
    return internal::Take<EagerTensor>(
        [&](mge_eager_tensor** t) { return mge_eager_put(get(), value.get(), internal::TextOrNull(device), t); });
  }
  // Creates a scalar, axes, a shape: an operator reads it on the device of its other inputs.
  Result<EagerTensor> HostOperand(const Tensor& value) const {
    return internal::Take<EagerTensor>([&](mge_eager_tensor** t) { return mge_eager_host_operand(get(), value.get(), t); });
  }
  // Calls an operator with one result. A null input is an optional one that is absent.
  Result<EagerTensor> Apply(const EagerOp& op, Span<const EagerTensor* const> inputs) const {
    auto all = ApplyAll(op, inputs, 1);
    if (!all.ok()) return all.status();
    return std::move(all->front());
  }
  // The same with this number of results.
  Result<std::vector<EagerTensor>> ApplyAll(const EagerOp& op, Span<const EagerTensor* const> inputs,
                                            size_t output_count) const {
    std::vector<mge_attribute> attributes;
    std::deque<std::vector<const char*>> texts;
    for (const EagerOp::Item& item : op.items_) {
      mge_attribute a = {};
      a.name = item.name.c_str();
      a.type = item.type;
      std::vector<const char*>& pointers = texts.emplace_back();
      for (const std::string& text : item.texts) pointers.push_back(text.c_str());
      a.ints = item.ints.data();
      a.floats = item.floats.data();
      a.texts = pointers.data();
      a.tensor = item.tensor;
      a.count = item.tensor ? 1 : item.ints.size() + item.floats.size() + item.texts.size();
      attributes.push_back(a);
    }
    mge_eager_operator o;
    mge_eager_operator_init(&o);
    o.op = op.op_.c_str();
    o.domain = op.domain_.c_str();
    o.version = op.version_;
    o.attributes = attributes.data();
    o.attribute_count = attributes.size();
    o.output_count = output_count;
    o.device = internal::TextOrNull(op.device_);
    std::vector<mge_eager_tensor*> in, made(output_count, nullptr);
    for (const EagerTensor* x : inputs) in.push_back(x ? x->get() : nullptr);
    size_t count = 0;
    if (Status s(mge_eager_apply(get(), &o, in.data(), in.size(), made.data(), made.size(), &count)); !s.ok()) return s;
    std::vector<EagerTensor> out;
    for (size_t i = 0; i < count; ++i) out.emplace_back(made[i]);
    return out;
  }
  // Waits for all commands that were given before. Fails with the first error since the last call of this function.
  Status Synchronize() const { return Status(mge_eager_synchronize(get())); }
  // Returns counters as JSON.
  Result<std::string> Report(const std::string& schema = "mge.eager/1") const {
    return internal::TakeText([&](mge_string** text) { return mge_eager_report(get(), schema.c_str(), text); });
  }
};

// A tape: records operators from Start() to Stop().
class GradientTape : public internal::Owner<mge_eager_tape, mge_eager_tape_release> {
 public:
  using Owner::Owner;
  static Result<GradientTape> Create(const Eager& eager) {
    return internal::Take<GradientTape>([&](mge_eager_tape** t) { return mge_eager_tape_create(eager.get(), t); });
  }
  Status Start() { return Status(mge_eager_tape_start(get())); }
  Status Stop() { return Status(mge_eager_tape_stop(get())); }
  Status Watch(const EagerTensor& tensor) { return Status(mge_eager_tape_watch(get(), tensor.get())); }
  // Returns the gradients of the target by the sources; an empty one where the target does not depend on a source. `weights`
  // may be nullptr.
  Result<std::vector<EagerTensor>> Gradient(const EagerTensor& target, Span<const EagerTensor* const> sources,
                                            const EagerTensor* weights = nullptr) const {
    std::vector<mge_eager_tensor*> by, made(sources.size(), nullptr);
    for (const EagerTensor* x : sources) by.push_back(x->get());
    if (Status s(mge_eager_tape_gradient(get(), target.get(), weights ? weights->get() : nullptr, by.data(), by.size(),
                                         made.data()));
        !s.ok()) {
      return s;
    }
    std::vector<EagerTensor> out;
    for (mge_eager_tensor* t : made) out.emplace_back(t);
    return out;
  }
};

}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge
