// SPDX-License-Identifier: Apache-2.0
// A kernel as one struct: what it supports, what it binds and what it runs.
//
//   struct Relu {
//     static constexpr const char* kOp = "Relu";           // operator of the group's first node
//     static constexpr const char* kId = "demo.relu";      // stable name in caches and in --why
//     static mge::Support Supports(const mge::Problem& p) {
//       return p.input(0).dtype() == MGE_DTYPE_F32 ? mge::Yes() : mge::No("only float32");
//     }
//     explicit Relu(const mge::Problem& p) : count(p.input(0).elements()) {}
//     void Bind(const mge::Binding& b) { x = b.input(0), y = b.output(0); }
//     mge_code Launch(const mge_run* run) const;
//     uint64_t count;
//     mge::Slot x, y;
//   };
//   inline constexpr mge::KernelRow kRelu = mge::Row<Relu>();
//
// The struct must be trivially copyable. One is created per candidate, bound to the offsets of each plan, and launched in
// each run. Optional members:
//   kDomain, kAttributes   constants; defaults "" and MGE_KERNEL_DETERMINISTIC
//   static void Describe(const Problem&, Candidate&)   cost, workspace, layouts, in-place pairs of the one candidate
//   static void Offer(const Problem&, Offers&)         several candidates, instead of kId, Supports and Describe;
//                                                      the constructor then takes (const Problem&, const Candidate&)
//   static KernelPtr Make(const Problem&, const Candidate&)   instead of the constructor, Bind and Launch: creates a kernel
//                                                      whose arguments have a size that depends on the problem. Returns
//                                                      nullptr if it cannot.
//   uint64_t workspace_bytes() const                   exact; default: the candidate's bound
//   uint64_t prepack_bytes(int input) const, Result Prepack(int input, const void* from, void* to) const
//   Result PrepackOn(int input, mge_queue* queue, const void* from, void* to) const   enqueues the same packing on a queue
//   std::string prepack_form(int input) const          name of the packed form; plans share constants with equal names
//   struct State                                       state of one plan instance; Bind stores state_index(), Launch calls
//                                                      StateOf<State>(run, index). Constructed from the kernel before Bind
//                                                      if it has a constructor State(const K&), else by default. With
//                                                      Result Init(), creating it can fail.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "mge/plugin/kernel.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Whether a kernel can compute a problem, and the reason if not. `mge plan --why` shows the reason.
class [[nodiscard]] Support {
 public:
  explicit Support(std::string why_not) : why_not_(std::move(why_not)) {}
  bool yes() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }

 private:
  std::string why_not_;
};
inline Support Yes() { return Support(std::string()); }
inline Support No(std::string reason) { return Support(reason.empty() ? "no reason given" : std::move(reason)); }

// Returns a kernel's state in a run. `index` is the result of Binding::state_index().
template <typename State>
State& StateOf(const mge_run* run, uint32_t index) {
  return *static_cast<State*>(run->states[index]);
}

namespace internal {

template <typename K>
constexpr uint64_t AttributesOf() {
  if constexpr (requires { K::kAttributes; }) return K::kAttributes;
  return MGE_KERNEL_DETERMINISTIC;
}

// Checks the signatures of optional members. A misspelt signature must not compile, or the member would be ignored.
template <typename K>
constexpr void CheckSignatures() {
  if constexpr (requires { &K::Describe; }) {
    static_assert(std::is_convertible_v<decltype(&K::Describe), void (*)(const Problem&, Candidate&)>,
                  "write: static void Describe(const mge::Problem&, mge::Candidate&)");
  }
  if constexpr (requires { &K::Offer; }) {
    static_assert(std::is_convertible_v<decltype(&K::Offer), void (*)(const Problem&, Offers&)>,
                  "write: static void Offer(const mge::Problem&, mge::Offers&)");
  }
  if constexpr (requires { &K::Make; }) {
    static_assert(std::is_convertible_v<decltype(&K::Make), KernelPtr (*)(const Problem&, const Candidate&)>,
                  "write: static mge::KernelPtr Make(const mge::Problem&, const mge::Candidate&)");
  }
  if constexpr (requires { &K::workspace_bytes; }) {
    static_assert(std::is_convertible_v<decltype(&K::workspace_bytes), uint64_t (K::*)() const>,
                  "write: uint64_t workspace_bytes() const");
  }
  static_assert(
      requires { &K::Prepack; } == requires { &K::prepack_bytes; }, "Prepack and prepack_bytes: both or neither");
  if constexpr (
      requires { &K::Prepack; } && requires { &K::prepack_bytes; }) {
    static_assert(std::is_convertible_v<decltype(&K::prepack_bytes), uint64_t (K::*)(int) const>,
                  "write: uint64_t prepack_bytes(int input) const");
    static_assert(std::is_convertible_v<decltype(&K::Prepack), Result (K::*)(int, const void*, void*) const>,
                  "write: mge::Result Prepack(int input, const void* from, void* to) const");
  }
  static_assert(
      !requires { &K::PrepackOn; } || requires { &K::Prepack; }, "PrepackOn packs as Prepack does; write both");
  if constexpr (requires { &K::PrepackOn; }) {
    static_assert(std::is_convertible_v<decltype(&K::PrepackOn), Result (K::*)(int, mge_queue*, const void*, void*) const>,
                  "write: mge::Result PrepackOn(int input, mge_queue* queue, const void* from, void* to) const");
  }
  static_assert(
      !requires { &K::prepack_form; } || requires { &K::Prepack; }, "prepack_form names what Prepack writes");
  if constexpr (requires { &K::prepack_form; }) {
    static_assert(std::is_convertible_v<decltype(&K::prepack_form), std::string (K::*)(int) const>,
                  "write: std::string prepack_form(int input) const");
  }
}

template <typename K>
class StructKernel : public Kernel {
 public:
  static_assert(std::is_trivially_copyable_v<K>, "a kernel's struct is copied as bytes");
  static_assert(alignof(K) <= 16, "arguments of a step are aligned to 16 bytes");

  StructKernel(const K& kernel, uint64_t bound) : kernel_(kernel), bound_(bound) {}
  uint32_t args_bytes() const override { return sizeof(K); }
  uint64_t workspace_bytes() const override {
    if constexpr (requires { &K::workspace_bytes; }) return kernel_.workspace_bytes();
    return bound_;
  }
  uint64_t prepack_bytes([[maybe_unused]] int input) const override {
    if constexpr (requires { &K::Prepack; }) return kernel_.prepack_bytes(input);
    return 0;
  }
  Result Prepack(int input, const void* source, void* destination) override {
    if constexpr (requires { &K::Prepack; }) return kernel_.Prepack(input, source, destination);
    return Kernel::Prepack(input, source, destination);
  }
  Result PrepackOn(int input, mge_queue* queue, const void* source, void* destination) override {
    if constexpr (requires { &K::PrepackOn; }) return kernel_.PrepackOn(input, queue, source, destination);
    return Kernel::PrepackOn(input, queue, source, destination);
  }
  std::string prepack_form([[maybe_unused]] int input) const override {
    if constexpr (requires { &K::prepack_form; }) return kernel_.prepack_form(input);
    return {};
  }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    (new (args) K(kernel_))->Bind(binding);
    *step = StepFn::Of<Launch>();
    return {};
  }
  bool has_state() const override {
    return requires { typename K::State; };
  }
  Result CreateState([[maybe_unused]] void** out) override {
    if constexpr (requires { typename K::State; }) {
      std::unique_ptr<typename K::State> state;
      if constexpr (std::is_constructible_v<typename K::State, const K&>) {
        state = std::make_unique<typename K::State>(kernel_);
      } else {
        state = std::make_unique<typename K::State>();
      }
      if constexpr (requires { &K::State::Init; }) {
        static_assert(std::is_same_v<decltype(state->Init()), Result>, "write: mge::Result Init()");
        if (Result r = state->Init(); !r.ok()) return r;
      }
      *out = state.release();
    }
    return {};
  }
  void DestroyState([[maybe_unused]] void* state) override {
    if constexpr (requires { typename K::State; }) delete static_cast<typename K::State*>(state);
  }

 private:
  static auto Launch(const K& kernel, const mge_run* run) { return kernel.Launch(run); }
  K kernel_;
  uint64_t bound_;
};

template <typename K>
void OfferOf(const Problem& problem, Offers& offers) {
  if constexpr (requires { &K::Offer; }) {
    K::Offer(problem, offers);
  } else {
    if (Support answer = K::Supports(problem); !answer.yes()) return offers.Refuse(answer.why_not());
    Candidate candidate;
    candidate.id = K::kId;
    candidate.attributes = AttributesOf<K>();
    if constexpr (requires { &K::Describe; }) K::Describe(problem, candidate);
    offers.Add(candidate);
  }
}

template <typename K>
KernelPtr MakeOf(const Problem& problem, const Candidate& candidate) {
  if constexpr (requires { &K::Make; }) {
    return K::Make(problem, candidate);
  } else if constexpr (requires { &K::Offer; }) {
    return std::make_unique<StructKernel<K>>(K(problem, candidate), candidate.workspace);
  } else {
    return std::make_unique<StructKernel<K>>(K(problem), candidate.workspace);
  }
}

template <typename K>
constexpr const char* DomainOf() {
  if constexpr (requires { K::kDomain; }) return K::kDomain;
  return "";
}

template <typename K>
constexpr const char* IdOf() {
  if constexpr (requires { &K::Offer; }) {
    return nullptr;
  } else {
    return K::kId;
  }
}

}  // namespace internal

// Returns the row of a kernel struct for an operator: one struct may have several rows with Offer, one per operator.
template <typename K>
constexpr KernelRow Row(const char* op, const char* domain = "") {
  internal::CheckSignatures<K>();
  return {op, internal::OfferOf<K>, internal::MakeOf<K>, domain, internal::IdOf<K>()};
}
// Returns the row of a kernel struct for its own operator.
template <typename K>
constexpr KernelRow Row() {
  return Row<K>(K::kOp, internal::DomainOf<K>());
}

// The rows of a backend: using Kernels = mge::Kernels<kRelu, kAdd>. A row may be defined in another file:
//   extern const mge::KernelRow kRelu;
template <const KernelRow&... kRows>
struct Kernels {
  static const KernelRow* const* Rows(uint64_t* count) {
    static constexpr const KernelRow* rows[] = {&kRows..., nullptr};
    *count = sizeof...(kRows);
    return rows;
  }
};

// The rows of one source file. MGE_KERNELS(pool) = kRows; defines mge_kernels_pool from an array of rows. Other files
// declare it: extern const mge::KernelFamily mge_kernels_pool;
using KernelFamily = std::span<const KernelRow>;
#define MGE_KERNELS(id) extern constexpr ::mge::KernelFamily mge_kernels_##id

// The rows of several families, for a backend with many kernels: using Kernels = mge::KernelFamilies<mge_kernels_pool>.
template <const KernelFamily&... kFamilies>
struct KernelFamilies {
  static const KernelRow* const* Rows(uint64_t* count) {
    static const std::vector<const KernelRow*> rows = [] {
      std::vector<const KernelRow*> all;
      for (const KernelFamily* family : {&kFamilies...}) {
        for (const KernelRow& row : *family) all.push_back(&row);
      }
      return all;
    }();
    *count = rows.size();
    return rows.data();
  }
};

// The rows of several lists: using Kernels = mge::JoinedKernels<shared::Kernels, mge::Kernels<kOwn>>. The rows of the
// first list offer first.
template <typename... Lists>
struct JoinedKernels {
  static const KernelRow* const* Rows(uint64_t* count) {
    static const std::vector<const KernelRow*> rows = [] {
      std::vector<const KernelRow*> all;
      for (auto list : {&Lists::Rows...}) {
        uint64_t size = 0;
        const KernelRow* const* first = list(&size);
        all.insert(all.end(), first, first + size);
      }
      return all;
    }();
    *count = rows.size();
    return rows.data();
  }
};

}  // namespace MGE_HIDDEN
