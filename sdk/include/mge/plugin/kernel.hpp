// SPDX-License-Identifier: Apache-2.0
// Kernels: the offers of a row, prepared kernels, and the table for the host. The short form of a row, one struct with
// Supports and Launch, is in row.hpp.
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "mge/plugin/attributes.hpp"
#include "mge/plugin/graph.hpp"
#include "mge/plugin/layout.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// A candidate that a kernel row offers. Lists may be shorter than the operands: the rest is plain.
struct Candidate {
  std::string id;
  int32_t rank = 0;  // lower first: the order among candidates without a cost, and between those and candidates with one
  uint64_t attributes = MGE_KERNEL_DETERMINISTIC;
  uint64_t workspace = 0;  // upper limit in bytes
  double cost_us = -1;     // estimated time of one run; negative: unknown
  uint64_t variant = 0;    // used by the row only
  std::vector<mge_layout> inputs = {};
  std::vector<mge_layout> outputs = {};
  std::vector<mge_in_place> in_place = {};
};

// Passes a row's offers and refusals to the host.
class Offers {
 public:
  Offers(const mge_candidate_sink* sink, const mge_constraints* constraints, std::string_view kernel, uint64_t row,
         size_t operands = 64, uint64_t count = 0, std::span<const mge_in_place> aliases = {})
      : sink_(sink),
        constraints_(constraints),
        kernel_(kernel),
        row_(row),
        operands_(operands),
        count_(count),
        aliases_(aliases) {}

  // Offers a candidate. A candidate outside the host's constraints, or without a pair in_place that the problem requires,
  // becomes a refusal with that reason.
  void Add(const Candidate& c) {
    uint64_t require = constraints_ ? constraints_->require : 0, forbid = constraints_ ? constraints_->forbid : 0;
    if (std::string why = WhyNotAllowed(c.attributes, require, forbid); !why.empty()) return RefuseNamed(c.id, why);
    if (constraints_ && c.workspace > constraints_->workspace_limit) {
      return RefuseNamed(c.id, "needs " + std::to_string(c.workspace) + " bytes of workspace, more than the limit");
    }
    for (const mge_in_place& alias : aliases_) {
      auto same = [&](const mge_in_place& pair) { return pair.output == alias.output && pair.input == alias.input; };
      if (std::any_of(c.in_place.begin(), c.in_place.end(), same)) continue;
      return RefuseNamed(c.id, "cannot write output " + std::to_string(alias.output) + " to the memory of input " +
                                   std::to_string(alias.input));
    }
    std::vector<const mge_layout*> in, out;
    for (const mge_layout& l : c.inputs) in.push_back(&l);
    for (const mge_layout& l : c.outputs) out.push_back(&l);
    in.resize(std::max(operands_, in.size()), nullptr);  // operands beyond the lists are plain
    out.resize(std::max(operands_, out.size()), nullptr);
    mge_candidate raw = {};
    raw.struct_size = sizeof(raw);
    raw.rank = c.rank;
    raw.id = Text(c.id);
    raw.attributes = c.attributes;
    raw.workspace_bound = c.workspace;
    raw.cost_us = c.cost_us;
    raw.token = row_ << 32 | (c.variant & 0xffffffffu);
    raw.input_layouts = c.inputs.empty() ? nullptr : in.data();
    raw.output_layouts = c.outputs.empty() ? nullptr : out.data();
    raw.in_place = c.in_place.data();
    raw.in_place_count = c.in_place.size();
    sink_->offer(sink_->self, &raw);
    ++count_;
  }
  // Returns whether the host's constraints allow kernels with these attributes. A row whose description of a kernel is costly asks
  // first.
  bool Allows(uint64_t attributes) const { return !constraints_ || !(constraints_->forbid & attributes); }
  // Returns the number of candidates that this row and the rows before it have offered for the problem.
  uint64_t count() const { return count_; }
  void Refuse(std::string_view reason) { RefuseNamed(kernel_, reason); }

 private:
  void RefuseNamed(std::string_view kernel, std::string_view reason) {
    mge_text k = Text(kernel), r = Text(reason);
    sink_->refuse(sink_->self, &k, &r);
  }
  const mge_candidate_sink* sink_;
  const mge_constraints* constraints_;
  std::string_view kernel_;
  uint64_t row_;
  size_t operands_;
  uint64_t count_;
  std::span<const mge_in_place> aliases_;
};

// ---------------------------------------------------------------- kernels

using Slot = mge_slot;

// Returns the address of an operand in a run.
template <typename T>
T* At(const mge_run* run, const Slot& slot) {
  return reinterpret_cast<T*>(static_cast<char*>(run->bases[slot.base]) + slot.offset);
}

// Returns a queue, or the queue of a run, as the backend's own class.
template <typename Q>
Q& QueueOf(mge_queue* queue) {
  return internal::As<Q>(queue);
}
template <typename Q>
Q& QueueOf(const mge_run* run) {
  return QueueOf<Q>(run->queue);
}

// The operands of a step, as offsets. Valid during Bind().
class Binding {
 public:
  Binding(const mge_binding* b, int inputs, int outputs) : b_(b), inputs_(inputs), outputs_(outputs) {}
  const Slot& input(int i) const { return assert(i >= 0 && i < inputs_), b_->inputs[i]; }
  const Slot& output(int i) const { return assert(i >= 0 && i < outputs_), b_->outputs[i]; }
  const Slot& workspace() const { return b_->workspace; }
  uint32_t state_index() const { return b_->state_index; }
  // Returns the slot of two uint64: the key and the first counter of a kernel that has random_blocks().
  const Slot& random() const { return b_->random; }
  const mge_layout* input_layout(int i) const { return b_->input_layouts ? b_->input_layouts[i] : nullptr; }
  const mge_layout* output_layout(int i) const { return b_->output_layouts ? b_->output_layouts[i] : nullptr; }

 private:
  const mge_binding* b_;
  [[maybe_unused]] int inputs_, outputs_;  // number of operands, for assert()
};

// The function of a step, created from a Launch(const Args&, const mge_run*) that returns a code or a Result:
//   *step = StepFn::Of<Launch>();
// An exception from Launch becomes an error. The type accepts no other function, so no exception crosses the boundary.
class StepFn {
 public:
  constexpr StepFn() = default;
  template <auto kLaunch>
  static constexpr StepFn Of() {
    using Args = decltype(ArgsOf(kLaunch));
    StepFn step;
    step.fn_ = [](const void* args, const mge_run* run) noexcept {
      return WithoutExceptions(run->error, [&] { return kLaunch(*static_cast<Args>(args), run); });
    };
    return step;
  }
  mge_step_fn get() const { return fn_; }

 private:
  template <typename R, typename Args>
  static const Args* ArgsOf(R (*)(const Args&, const mge_run*));
  mge_step_fn fn_ = nullptr;
};

// A prepared candidate. Immutable after construction. Bind() may be called several times.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual uint32_t args_bytes() const = 0;
  virtual uint64_t workspace_bytes() const { return 0; }
  // Returns the size of the packed form of input i, which is a constant or a state; 0: the input is used unpacked.
  virtual uint64_t prepack_bytes(int) const { return 0; }
  virtual Result Prepack(int, const void*, void*) { return {MGE_UNIMPLEMENTED, "this kernel packs nothing"}; }
  // Enqueues the same packing on a queue of the device. Both addresses are in its memory. Must give the same bytes as
  // Prepack(). MGE_UNIMPLEMENTED: the host calls Prepack() and uploads the result, which it cannot do for a state.
  virtual Result PrepackOn(int, mge_queue*, const void*, void*) { return {MGE_UNIMPLEMENTED, "packs on the host only"}; }
  // Returns the name of the packed form. Kernels with equal names pack equal sources to equal bytes. Empty: no promise.
  virtual std::string prepack_form(int) const { return {}; }
  // Writes the arguments of a launch into `args`, which has args_bytes(), and sets the step's function.
  virtual Result Bind(const Binding& binding, void* args, StepFn* step) = 0;
  // Returns the number of Philox 4x32-10 blocks that one run draws.
  virtual uint64_t random_blocks() const { return 0; }
  // Returns a kernel for a problem that differs from this kernel's in shapes only, without the costly parts of its creation.
  // Returns nullptr if that is not possible: the host then prepares a kernel.
  virtual std::unique_ptr<Kernel> Rebind(const Problem&) { return nullptr; }
  // Whether each plan instance has a state. One run at a time uses it.
  virtual bool has_state() const { return false; }
  virtual Result CreateState(void** out) {
    *out = nullptr;
    return {};
  }
  virtual void DestroyState(void*) {}

  // Filled by KernelTable.
  std::vector<uint64_t> prepack_list;
  std::vector<std::string> form_names;
  std::vector<mge_text> form_list;
  int inputs = 0, outputs = 0;
  mge_device* device = nullptr;
};
using KernelPtr = std::unique_ptr<Kernel>;

// Returns whether the run should stop: the user cancelled it, or its time limit has passed.
inline bool StopAsked(const mge_run* run) {
  return run->cancel && std::atomic_ref(const_cast<int32_t&>(*run->cancel)).load(std::memory_order_relaxed) != 0;
}

// Calls body(chunk) for each chunk < chunks on the run's threads. Choose the chunks from the size of the work alone, never
// from the number of threads, so that results do not depend on it. If a body throws, waits for the running bodies and
// rethrows. Throws RunStopped if the run should stop, which ends the kernel with MGE_CANCELLED.
template <typename F>
void ParallelFor(const mge_run* run, uint64_t chunks, F&& body) {
  if (chunks == 1) return body(uint64_t{0});
#if defined(__cpp_exceptions)
  auto one = [&](uint64_t chunk) {
    if (StopAsked(run)) throw RunStopped();
    body(chunk);
  };
  if (run->width <= 1) {
    for (uint64_t i = 0; i < chunks; ++i) one(i);
    return;
  }
  struct Context {
    decltype(one)& body;
    std::atomic<bool> failed = false;
    std::exception_ptr failure = nullptr;
  } context{one};
  run->parallel_for(
      run->pool, chunks,
      [](void* c, uint64_t chunk) noexcept {
        Context& at = *static_cast<Context*>(c);
        if (at.failed.load(std::memory_order_relaxed)) return;
        try {
          at.body(chunk);
        } catch (...) {
          if (!at.failed.exchange(true)) at.failure = std::current_exception();
        }
      },
      &context);
  if (context.failure) std::rethrow_exception(context.failure);
#else
  using Body = std::remove_reference_t<F>;
  run->parallel_for(
      run->pool, chunks, [](void* c, uint64_t chunk) { (*static_cast<Body*>(c))(chunk); },
      const_cast<void*>(static_cast<const void*>(&body)));
#endif
}

// A kernel whose arguments are a plain struct and whose launch is a function of that struct.
template <typename Args, mge_code (*Launch)(const Args&, const mge_run*), typename MakeArgs>
class SimpleKernel : public Kernel {
 public:
  SimpleKernel(MakeArgs make, uint64_t workspace) : make_(std::move(make)), workspace_(workspace) {}
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  Result Bind(const Binding& binding, void* args, StepFn* step) override {
    static_assert(std::is_trivially_destructible_v<Args>);
    new (args) Args(make_(binding));
    *step = StepFn::Of<Launch>();
    return {};
  }

 private:
  MakeArgs make_;
  uint64_t workspace_;
};

template <typename Args, mge_code (*Launch)(const Args&, const mge_run*), typename MakeArgs>
KernelPtr MakeSimple(MakeArgs make, uint64_t workspace = 0) {
  return std::make_unique<SimpleKernel<Args, Launch, MakeArgs>>(std::move(make), workspace);
}

// The operator of a row that receives every problem.
inline constexpr const char* kAnyOp = "*";

// A row of the kernel table: an operator, its offers, and the creation of its kernels.
struct KernelRow {
  const char* op;  // operator of the group's first node, or kAnyOp
  void (*offer)(const Problem&, Offers&);
  KernelPtr (*make)(const Problem&, const Candidate&);  // for an offered candidate; id and variant are set
  const char* domain = "";
  const char* id = nullptr;  // id of the only candidate; nullptr if there may be several
};

// The kernel table of a backend with these rows. A problem is passed in order to every row whose `op` is the operator of the
// problem's first node.
template <const KernelRow* const* (*Rows)(uint64_t*)>
struct KernelTable {
  // Fails if two rows have the same id, because `mge plan --why` could not distinguish them.
  static Result Check() {
    uint64_t count = 0;
    const KernelRow* const* rows = Rows(&count);
    for (uint64_t i = 0; i < count; ++i) {
      for (uint64_t k = 0; k < i; ++k) {
        if (!rows[i]->id || !rows[k]->id || std::string_view(rows[i]->id) != rows[k]->id) continue;
        return {MGE_INTERNAL, "the kernels of " + std::string(rows[k]->op) + " and " + rows[i]->op + " have one kId, '" +
                                  rows[i]->id + "'; each needs its own"};
      }
    }
    return {};
  }
  static mge_code Enumerate(mge_device* device, const mge_problem* problem, const mge_constraints* constraints,
                            const mge_candidate_sink* sink, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> mge_code {
      if (!Covers(problem, &mge_problem::graph))
        return Report(error, MGE_INVALID_ARGUMENT, "the problem's struct is too short");
      Problem p(problem, device);
      if (p.node_count() == 0) return Report(error, MGE_INVALID_ARGUMENT, "the problem has no node");
      for (int i = 0; i < p.output_count(); ++i) {
        if (p.write_mode(i) == MGE_WRITE || p.write_mode(i) == MGE_WRITE_ADD) continue;
        return Report(error, MGE_UNIMPLEMENTED, "unknown write mode of an output");
      }
      size_t operands = static_cast<size_t>(std::max(p.input_count(), p.output_count()));
      uint64_t count = 0;
      const KernelRow* const* rows = Rows(&count);
      uint64_t offered = 0;
      for (uint64_t i = 0; i < count; ++i) {
        if (rows[i]->op != std::string_view(kAnyOp) && !p.node().Is(rows[i]->op, rows[i]->domain)) continue;
        Offers offers(sink, constraints, p.node().op(), i, operands, offered, p.aliases());
        rows[i]->offer(p, offers);
        offered = offers.count();
      }
      return MGE_OK;
    });
  }
  static mge_code Prepare(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                          mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> mge_code {
      if (!Covers(problem, &mge_problem::graph) || !Covers(candidate, &mge_candidate::token)) {
        return Report(error, MGE_INVALID_ARGUMENT, "the struct of a problem or candidate is too short");
      }
      Problem p(problem, device);
      uint64_t count = 0;
      const KernelRow* const* rows = Rows(&count);
      uint64_t row = candidate->token >> 32;
      if (row >= count) return Report(error, MGE_INVALID_ARGUMENT, "the candidate is not one of this backend");
      Candidate c;
      c.id = View(candidate->id);
      c.rank = candidate->rank;
      c.attributes = candidate->attributes;
      c.workspace = candidate->workspace_bound;
      c.variant = candidate->token & 0xffffffffu;
      KernelPtr kernel = rows[row]->make(p, c);
      if (!kernel) return Report(error, MGE_UNIMPLEMENTED, "the kernel could not be made: " + c.id);
      Describe(std::move(kernel), p, out);
      return MGE_OK;
    });
  }
  // Writes the kernel and its needs to `out`, which then owns the kernel.
  static void Describe(KernelPtr kernel, const Problem& p, mge_prepared* out) {
    kernel->inputs = p.input_count();
    kernel->outputs = p.output_count();
    kernel->device = p.handle();
    bool packs = false;
    for (int i = 0; i < p.input_count(); ++i) {
      kernel->prepack_list.push_back(kernel->prepack_bytes(i));
      const bool packed = kernel->prepack_list.back() != 0;
      packs |= packed;
      kernel->form_names.push_back(packed ? kernel->prepack_form(i) : std::string());
    }
    for (const std::string& name : kernel->form_names) kernel->form_list.push_back(Text(name));
    mge_prepared made = {};
    made.args_bytes = kernel->args_bytes();
    made.workspace_bytes = kernel->workspace_bytes();
    made.prepack_bytes = packs ? kernel->prepack_list.data() : nullptr;
    made.prepack_forms = packs ? kernel->form_list.data() : nullptr;
    made.has_state = kernel->has_state();
    made.random_blocks = kernel->random_blocks();
    made.kernel = reinterpret_cast<mge_kernel*>(kernel.release());
    Fill(out, made);
  }
  static mge_code Rebind(mge_kernel* k, const mge_problem* problem, mge_prepared* out, mge_error* error) noexcept {
    return WithoutExceptions(error, [&]() -> mge_code {
      if (!Covers(problem, &mge_problem::graph)) {
        return Report(error, MGE_INVALID_ARGUMENT, "the problem's struct is too short");
      }
      Problem p(problem, Of(k)->device);
      KernelPtr kernel = Of(k)->Rebind(p);
      if (!kernel) return Report(error, MGE_UNIMPLEMENTED, "the kernel is prepared for each shape");
      Describe(std::move(kernel), p, out);
      return MGE_OK;
    });
  }
  static Kernel* Of(mge_kernel* k) { return reinterpret_cast<Kernel*>(k); }
  static mge_code Prepack(mge_kernel* k, uint32_t input, const void* source, void* destination, mge_error* error) noexcept {
    return WithoutExceptions(error, [&] { return Of(k)->Prepack(static_cast<int>(input), source, destination); });
  }
  static mge_code PrepackOn(mge_kernel* k, uint32_t input, mge_queue* queue, const void* source, void* destination,
                            mge_error* error) noexcept {
    return WithoutExceptions(error, [&] { return Of(k)->PrepackOn(static_cast<int>(input), queue, source, destination); });
  }
  static mge_code Bind(mge_kernel* k, const mge_binding* binding, void* args, mge_step_fn* fn, mge_error* error) noexcept {
    return WithoutExceptions(error, [&] {
      StepFn step;
      Result r = Of(k)->Bind(Binding(binding, Of(k)->inputs, Of(k)->outputs), args, &step);
      if (r.ok()) *fn = step.get();
      return r;
    });
  }
  static mge_code StateCreate(mge_kernel* k, void** out, mge_error* error) noexcept {
    return WithoutExceptions(error, [&] { return Of(k)->CreateState(out); });
  }
  static void StateDestroy(mge_kernel* k, void* state) noexcept {
    Quietly([&] { Of(k)->DestroyState(state); });
  }
  static void Destroy(mge_kernel* k) noexcept { delete Of(k); }

  static constexpr mge_kernel_api Api(std::string_view set_version) {
    return Table<mge_kernel_api>([&](auto& t) {
      t.set_version = Text(set_version);
      t.enumerate = Enumerate;
      t.prepare = Prepare;
      t.prepack = Prepack;
      t.bind = Bind;
      t.state_create = StateCreate;
      t.state_destroy = StateDestroy;
      t.destroy = Destroy;
      t.prepack_on = PrepackOn;
      t.rebind = Rebind;
    });
  }
};

}  // namespace MGE_HIDDEN
