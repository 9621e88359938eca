// SPDX-License-Identifier: Apache-2.0
// Eager mode in C++20, over mge.h: single operators at once, and their gradients. See mge.h for what each call does.
//
//   mge::Eager eager;  mge::EagerTensor x, y;
//   if (auto s = mge::Eager::Create(runtime, &eager); !s.ok()) return Report(s);
//   if (auto s = eager.Put(array, "gpu0", &x); !s.ok()) return Report(s);
//   if (auto s = eager.Apply(mge::EagerOp("LeakyRelu").Set("alpha", 0.1f), {&x}, &y); !s.ok()) return Report(s);
//   mge::Tensor result;
//   if (auto s = y.Get(&result); !s.ok()) return Report(s);
#pragma once

#include <deque>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/mge.hpp"

namespace mge {
inline namespace v0 {

// The result of an operator, which may not be computed yet. Immutable.
class EagerTensor {
 public:
  EagerTensor() = default;
  explicit EagerTensor(mge_eager_tensor* tensor) : tensor_(tensor) {}

  explicit operator bool() const { return tensor_ != nullptr; }
  // Waits, and returns the tensor where it lies. It shares the memory, which must not be written.
  Status Get(Tensor* out) const {
    mge_tensor* t = nullptr;
    Status s(mge_eager_tensor_get(get(), &t));
    *out = Tensor(t);
    return s;
  }
  Status Wait() const { return Status(mge_eager_tensor_wait(get())); }
  // Returns element type and dimensions. Waits if they are not known yet. *dims is valid as long as the tensor.
  Status Type(mge_dtype* dtype, std::span<const int64_t>* dims) const {
    int32_t kind = 0;
    size_t rank = 0;
    const int64_t* data = nullptr;
    Status s(mge_eager_tensor_type(get(), &kind, dtype, &rank, &data));
    *dims = {data, rank};
    return s;
  }
  int state() const { return mge_eager_tensor_state(get()); }  // MGE_EAGER_...
  std::string_view device() const { return mge_eager_tensor_device(get()); }
  Status Drop() const { return Status(mge_eager_tensor_drop(get())); }
  Status SwapOut() const { return Status(mge_eager_tensor_swap_out(get())); }
  Status SwapIn() const { return Status(mge_eager_tensor_swap_in(get())); }
  mge_eager_tensor* get() const { return tensor_.get(); }

 private:
  internal::Handle<mge_eager_tensor, mge_eager_tensor_release> tensor_;
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
class Eager {
 public:
  static Status Create(const Runtime& runtime, Eager* out) {
    mge_eager* e = nullptr;
    Status s(mge_eager_create(runtime.get(), &e));
    out->eager_.reset(e);
    return s;
  }
  // Creates a tensor with a copy of the elements on a device; "": the one of the thread's context.
  Status Put(const Tensor& value, const std::string& device, EagerTensor* out) {
    return Take(out, [&](mge_eager_tensor** t) {
      return mge_eager_put(get(), value.get(), device.empty() ? nullptr : device.c_str(), t);
    });
  }
  Status HostOperand(const Tensor& value, EagerTensor* out) {
    return Take(out, [&](mge_eager_tensor** t) { return mge_eager_host_operand(get(), value.get(), t); });
  }
  // Calls an operator. A null input is an optional one that is absent. The number of `outputs` is that of the results.
  Status ApplyAll(const EagerOp& op, std::span<const EagerTensor* const> inputs, std::span<EagerTensor> outputs) {
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
    o.output_count = outputs.size();
    o.device = op.device_.empty() ? nullptr : op.device_.c_str();
    std::vector<mge_eager_tensor*> in, out(outputs.size(), nullptr);
    for (const EagerTensor* x : inputs) in.push_back(x ? x->get() : nullptr);
    size_t count = 0;
    Status s(mge_eager_apply(get(), &o, in.data(), in.size(), out.data(), out.size(), &count));
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = EagerTensor(out[i]);
    return s;
  }
  Status ApplyAll(const EagerOp& op, std::initializer_list<const EagerTensor*> inputs, std::span<EagerTensor> outputs) {
    return ApplyAll(op, std::span<const EagerTensor* const>(inputs.begin(), inputs.size()), outputs);
  }
  // Calls an operator with one result.
  Status Apply(const EagerOp& op, std::initializer_list<const EagerTensor*> inputs, EagerTensor* out) {
    return ApplyAll(op, inputs, std::span<EagerTensor>(out, 1));
  }
  Status Synchronize() { return Status(mge_eager_synchronize(get())); }
  Status Report(std::string* out) const {
    return internal::TakeText(out, [&](mge_string** text) { return mge_eager_report(get(), "mge.eager/1", text); });
  }
  mge_eager* get() const { return eager_.get(); }

 private:
  template <typename F>
  static Status Take(EagerTensor* out, F make) {
    mge_eager_tensor* t = nullptr;
    Status s(make(&t));
    *out = EagerTensor(t);
    return s;
  }
  internal::Handle<mge_eager, mge_eager_release> eager_;
};

// A tape: records operators from Start() to Stop().
class GradientTape {
 public:
  static Status Create(const Eager& eager, GradientTape* out) {
    mge_eager_tape* t = nullptr;
    Status s(mge_eager_tape_create(eager.get(), &t));
    out->tape_.reset(t);
    return s;
  }
  Status Start() { return Status(mge_eager_tape_start(get())); }
  Status Stop() { return Status(mge_eager_tape_stop(get())); }
  Status Watch(const EagerTensor& tensor) { return Status(mge_eager_tape_watch(get(), tensor.get())); }
  // Returns the gradients of the target by the sources; an empty one where the target does not depend on a source. `weights`
  // may be nullptr.
  Status Gradient(const EagerTensor& target, std::span<const EagerTensor* const> sources, std::vector<EagerTensor>* out,
                  const EagerTensor* weights = nullptr) {
    std::vector<mge_eager_tensor*> by, made(sources.size(), nullptr);
    for (const EagerTensor* x : sources) by.push_back(x->get());
    Status s(
        mge_eager_tape_gradient(get(), target.get(), weights ? weights->get() : nullptr, by.data(), by.size(), made.data()));
    out->clear();
    for (mge_eager_tensor* t : made) out->emplace_back(t);
    return s;
  }
  Status Gradient(const EagerTensor& target, std::initializer_list<const EagerTensor*> sources,
                  std::vector<EagerTensor>* out, const EagerTensor* weights = nullptr) {
    return Gradient(target, std::span<const EagerTensor* const>(sources.begin(), sources.size()), out, weights);
  }
  mge_eager_tape* get() const { return tape_.get(); }

 private:
  internal::Handle<mge_eager_tape, mge_eager_tape_release> tape_;
};

}  // namespace v0
}  // namespace mge
