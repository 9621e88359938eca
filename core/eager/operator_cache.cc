// SPDX-License-Identifier: Apache-2.0
#include "core/eager/operator_cache.h"

#include <string_view>
#include <type_traits>
#include <utility>

namespace mge {
namespace {

// Appends values to a key so that different lists give different keys.
class Key {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void Add(T x) { text.append(reinterpret_cast<const char*>(&x), sizeof(x)); }
  void Add(std::string_view bytes) {
    Add(bytes.size());
    text.append(bytes);
  }
  void Add(const std::string& s) { Add(std::string_view(s)); }
  void Add(const Tensor& t) {
    Add(t.dtype());
    Add(t.shape().size());
    for (const int64_t d : t.shape()) Add(d);
    if (t.dtype() == DType::kString) {
      for (const std::string& s : t.Data<std::string>()) Add(std::string_view(s));
    } else {
      Add(std::string_view(static_cast<const char*>(t.data()), static_cast<size_t>(t.bytes())));
    }
  }
  void Add(const GraphPtr& body) { Add(reinterpret_cast<uintptr_t>(body.get())); }
  template <typename T>
  void Add(const std::vector<T>& list) {
    Add(list.size());
    for (const T& x : list) Add(x);
  }

  std::string text;
};

}  // namespace

absl::StatusOr<std::shared_ptr<EagerOperator>> OperatorCache::Find(const OperatorRequest& request, std::string_view devices,
                                                                   std::span<const Operand> operands,
                                                                   const Snapshot& settings) {
  Key key;
  key.text.reserve(256);
  key.Add(request.op);
  key.Add(request.domain);
  key.Add(request.version);
  key.Add(request.outputs);
  key.Add(devices);
  key.Add(settings.DynamicKey());
  key.Add(request.attrs.size());
  for (const auto& [name, value] : request.attrs) {
    key.Add(name);
    key.Add(value.index());
    std::visit([&](const auto& x) { key.Add(x); }, value);
  }
  key.Add(operands.size());
  for (const Operand& operand : operands) {
    key.Add(operand.given);
    if (!operand.given) continue;
    key.Add(operand.host != nullptr);
    key.Add(operand.type.kind);
    key.Add(operand.type.type.dtype);
    key.Add(operand.type.type.has_rank ? static_cast<int64_t>(operand.type.type.dims.size()) : -1);
  }

  std::lock_guard lock(mutex_);
  auto family = families_.find(key.text);
  if (family == families_.end()) {
    if (families_.size() >= kMaxOperators) families_.clear();
    Family made;
    MGE_ASSIGN_OR_RETURN(made.constant, ConstantOperands(request, operands));
    for (const bool c : made.constant) made.any_constant = made.any_constant || c;
    family = families_.emplace(key.text, std::move(made)).first;
  }
  std::shared_ptr<EagerOperator>* at = &family->second.plain;
  std::vector<Operand> given;
  if (family->second.any_constant) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (family->second.constant[i]) key.Add(*operands[i].host);
    }
    if (with_constants_.size() >= kMaxOperators && !with_constants_.contains(key.text)) with_constants_.clear();
    at = &with_constants_[key.text];
  }
  if (!*at) {
    given.assign(operands.begin(), operands.end());
    for (size_t i = 0; i < given.size(); ++i) {
      if (!family->second.constant[i]) given[i].host = nullptr;
    }
    ++misses_;
    absl::StatusOr<std::shared_ptr<EagerOperator>> made = EagerOperator::Create(request, given);
    if (!made.ok()) {
      if (family->second.any_constant) with_constants_.erase(key.text);
      return made.status();
    }
    *at = *std::move(made);
  }
  return *at;
}

size_t OperatorCache::size() const {
  std::lock_guard lock(mutex_);
  size_t count = with_constants_.size();
  for (const auto& [key, family] : families_) count += family.plain != nullptr;
  return count;
}

int64_t OperatorCache::misses() const {
  std::lock_guard lock(mutex_);
  return misses_;
}

}  // namespace mge
