// SPDX-License-Identifier: Apache-2.0
// C++ comfort over plugin.h for backend authors: header-only, standard library only, nothing crosses the boundary but C.
//
// A kernel is one row: the operator it starts from, `offer` (which judges a problem: offers candidates or says why not),
// and `make` (which builds the Kernel of an offered candidate).
//
//   struct Args { mge::Slot x, y; uint64_t n; };
//   mge_code Launch(const Args& a, const mge_run* run) {
//     auto* x = mge::At<const float>(run, a.x);  auto* y = mge::At<float>(run, a.y);
//     for (uint64_t i = 0; i < a.n; ++i) y[i] = x[i] > 0 ? x[i] : 0;
//     return MGE_OK;
//   }
//   void Offer(const mge::Problem& p, mge::Offers& offers) {
//     if (p.input(0).dtype() != MGE_DTYPE_F32) return offers.Refuse("only float32");
//     offers.Add({.id = "demo.relu", .attributes = MGE_KERNEL_DETERMINISTIC});
//   }
//   mge::KernelPtr Make(const mge::Problem& p, const mge::Candidate&) {
//     return mge::MakeSimple<Args, Launch>([n = p.input(0).elements()](const mge::Binding& b) {
//       return Args{b.input(0), b.output(0), n};
//     });
//   }
//   const mge::KernelRow kRelu = {"Relu", Offer, Make};
#pragma once

#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mge/plugin.h"

namespace mge {

inline constexpr mge_text Text(std::string_view s) { return {s.data(), s.size()}; }
inline constexpr std::string_view View(const mge_text& t) { return {t.data, static_cast<size_t>(t.size)}; }

// A table whose identity is set, for `fill` to complete: slots that later headers add stay empty.
//   constexpr auto kDevice = mge::Table<mge_device_api>([](auto& t) { t.enumerate = Enumerate; ... });
template <typename T, typename F>
constexpr T Table(F fill) {
  T table = {};
  table.struct_size = sizeof(T);
  if constexpr (requires { table.header_hash; }) {
    table.abi_major = MGE_ABI_MAJOR;
    table.abi_minor = MGE_ABI_MINOR;
    table.header_hash = MGE_ABI_HASH;
  } else {
    table.minor = MGE_ABI_MINOR;
  }
  fill(table);
  return table;
}

// ---------------------------------------------------------------- errors

// A code and, if it is not MGE_OK, a sentence.
class [[nodiscard]] Result {
 public:
  Result() = default;
  Result(mge_code code, std::string text) : code_(code), text_(std::move(text)) {}
  bool ok() const { return code_ == MGE_OK; }
  mge_code code() const { return code_; }
  const std::string& text() const { return text_; }

 private:
  mge_code code_ = MGE_OK;
  std::string text_;
};

// The host table; set by start(), valid until stop(). One per backend library.
inline const mge_host*& Host() {
  static const mge_host* host = nullptr;
  return host;
}

inline mge_code Report(mge_error* error, mge_code code, std::string_view text) {
  const mge_host* host = Host();
  return host ? host->fail(host->self, error, code, text.data(), text.size()) : code;
}
inline mge_code Report(mge_error* error, const Result& r) { return r.ok() ? MGE_OK : Report(error, r.code(), r.text()); }

// Runs f and turns whatever it throws into an error: no exception crosses the boundary.
template <typename F>
mge_code Guard(mge_error* error, F&& f) noexcept {
#if defined(__cpp_exceptions)
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return Report(error, MGE_RESOURCE_EXHAUSTED, "the backend has no host memory left");
  } catch (const std::exception& e) {
    return Report(error, MGE_INTERNAL, e.what());
  } catch (...) {
    return Report(error, MGE_INTERNAL, "the backend threw something unknown");
  }
#else
  (void)error;
  return f();
#endif
}

// ---------------------------------------------------------------- views of what the host passes

inline uint64_t ElementBytes(mge_dtype dtype) {
  switch (dtype) {
    case MGE_DTYPE_U8: case MGE_DTYPE_I8: case MGE_DTYPE_BOOL: return 1;
    case MGE_DTYPE_U16: case MGE_DTYPE_I16: case MGE_DTYPE_F16: case MGE_DTYPE_BF16: return 2;
    case MGE_DTYPE_F32: case MGE_DTYPE_I32: case MGE_DTYPE_U32: return 4;
    case MGE_DTYPE_F64: case MGE_DTYPE_I64: case MGE_DTYPE_U64: case MGE_DTYPE_C64: return 8;
    case MGE_DTYPE_C128: return 16;
    default: return 0;
  }
}

class Value {
 public:
  explicit Value(const mge_value* v) : v_(v) {}
  mge_dtype dtype() const { return v_->dtype; }
  int rank() const { return v_->rank; }
  std::span<const int64_t> dims() const { return {v_->dims, v_->rank > 0 ? static_cast<size_t>(v_->rank) : 0}; }
  int64_t dim(int i) const { return v_->dims[i < 0 ? i + v_->rank : i]; }
  bool is_static() const {
    if (v_->rank < 0) return false;
    for (int64_t d : dims()) {
      if (d < 0) return false;
    }
    return true;
  }
  uint64_t elements() const {
    uint64_t n = 1;
    for (int64_t d : dims()) n *= static_cast<uint64_t>(d);
    return n;
  }
  uint64_t bytes() const { return elements() * ElementBytes(dtype()); }
  bool is_constant() const { return v_->data != nullptr; }
  // Elements of a constant; T must fit dtype().
  template <typename T>
  std::span<const T> data() const {
    return {static_cast<const T*>(v_->data), v_->data ? static_cast<size_t>(elements()) : 0};
  }
  uint32_t uses() const { return v_->uses; }
  const mge_layout* layout() const { return v_->layout; }
  const mge_value* raw() const { return v_; }

 private:
  const mge_value* v_;
};

class Node {
 public:
  Node(const mge_graph* g, const mge_node* n) : g_(g), n_(n) {}
  std::string_view op() const { return View(n_->op); }
  std::string_view domain() const { return View(n_->domain); }
  bool Is(std::string_view op, std::string_view domain = "") const { return this->op() == op && this->domain() == domain; }
  int input_count() const { return static_cast<int>(n_->input_count); }
  int output_count() const { return static_cast<int>(n_->output_count); }
  bool has_input(int i) const { return i < input_count() && n_->inputs[i] >= 0; }
  bool has_output(int i) const { return i < output_count() && n_->outputs[i] >= 0; }
  int32_t input_id(int i) const { return i < input_count() ? n_->inputs[i] : -1; }
  int32_t output_id(int i) const { return i < output_count() ? n_->outputs[i] : -1; }
  Value input(int i) const { return Value(g_->values[n_->inputs[i]]); }
  Value output(int i) const { return Value(g_->values[n_->outputs[i]]); }
  const mge_attr* attr(std::string_view name) const {
    for (uint64_t i = 0; i < n_->attr_count; ++i) {
      if (View(n_->attrs[i]->name) == name) return n_->attrs[i];
    }
    return nullptr;
  }
  int64_t Int(std::string_view name, int64_t fallback) const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_INT ? a->i : fallback;
  }
  float Float(std::string_view name, float fallback) const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_FLOAT ? static_cast<float>(a->f) : fallback;
  }
  std::string_view Word(std::string_view name, std::string_view fallback = "") const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_TEXT ? View(a->text) : fallback;
  }
  std::span<const int64_t> Ints(std::string_view name) const {
    const mge_attr* a = attr(name);
    return a && a->type == MGE_ATTR_INTS ? std::span<const int64_t>(a->ints, a->count) : std::span<const int64_t>();
  }
  const mge_node* raw() const { return n_; }

 private:
  const mge_graph* g_;
  const mge_node* n_;
};

class Graph {
 public:
  explicit Graph(const mge_graph* g) : g_(g) {}
  int node_count() const { return static_cast<int>(g_->node_count); }
  Node node(int i) const { return Node(g_, g_->nodes[i]); }
  Value value(int32_t id) const { return Value(g_->values[id]); }
  // Index of the node that produces a value; -1 if it comes from outside.
  int producer(int32_t id) const {
    for (int i = 0; i < node_count(); ++i) {
      for (uint64_t k = 0; k < g_->nodes[i]->output_count; ++k) {
        if (g_->nodes[i]->outputs[k] == id) return i;
      }
    }
    return -1;
  }
  const mge_graph* raw() const { return g_; }

 private:
  const mge_graph* g_;
};

// A group of nodes to compute. Operands are numbered as in graph->inputs and graph->outputs.
class Problem {
 public:
  explicit Problem(const mge_problem* p) : p_(p), graph_(p->graph) {}
  Graph graph() const { return graph_; }
  int node_count() const { return graph_.node_count(); }
  Node node(int i = 0) const { return graph_.node(i); }
  Node last() const { return graph_.node(node_count() - 1); }
  int input_count() const { return static_cast<int>(p_->graph->input_count); }
  int output_count() const { return static_cast<int>(p_->graph->output_count); }
  Value input(int i) const { return graph_.value(p_->graph->inputs[i]); }
  Value output(int i) const { return graph_.value(p_->graph->outputs[i]); }
  // Operand number of a value of the group; -1 if it is internal or absent.
  int operand(int32_t value_id) const {
    for (int i = 0; i < input_count(); ++i) {
      if (p_->graph->inputs[i] == value_id) return i;
    }
    return -1;
  }
  // Operand number of input k of node i.
  int operand(int i, int k) const { return operand(node(i).input_id(k)); }
  uint32_t threads() const { return p_->threads; }
  bool adds(int output) const { return p_->write_modes && p_->write_modes[output] == MGE_WRITE_ADD; }
  bool is_static() const {
    for (int i = 0; i < input_count(); ++i) {
      if (!input(i).is_static()) return false;
    }
    for (int i = 0; i < output_count(); ++i) {
      if (!output(i).is_static()) return false;
    }
    return true;
  }
  const mge_problem* raw() const { return p_; }

 private:
  const mge_problem* p_;
  Graph graph_;
};

// ---------------------------------------------------------------- layouts

inline mge_layout PlainLayout() { return {sizeof(mge_layout), MGE_LAYOUT_PLAIN, 0, 0, {}, {}, {}, 0, 0}; }
inline mge_layout AnyLayout() { return {sizeof(mge_layout), MGE_LAYOUT_ANY, 0, 0, {}, {}, {}, 0, 0}; }
inline mge_layout Permuted(std::span<const int32_t> perm) {
  mge_layout l = {sizeof(mge_layout), MGE_LAYOUT_PERMUTED, static_cast<int32_t>(perm.size()), 0, {}, {}, {}, 0, 0};
  for (size_t i = 0; i < perm.size(); ++i) l.perm[i] = perm[i];
  return l;
}
// Channels innermost: dimension 1 moves to the end.
inline mge_layout ChannelsLast(int rank) {
  mge_layout l = {sizeof(mge_layout), MGE_LAYOUT_PERMUTED, rank, 0, {}, {}, {}, 0, 0};
  for (int i = 0, axis = 0; i < rank; ++i, ++axis) {
    if (i == 1) ++axis;
    l.perm[i] = i == rank - 1 ? 1 : axis;
  }
  return l;
}
inline bool IsPlain(const mge_layout* l) { return !l || l->kind == MGE_LAYOUT_PLAIN; }
inline bool SameLayout(const mge_layout* a, const mge_layout* b) {
  if (IsPlain(a) || IsPlain(b)) return IsPlain(a) && IsPlain(b);
  if (a->kind != b->kind) return false;
  if (a->kind == MGE_LAYOUT_OPAQUE) return a->opaque_id == b->opaque_id;
  if (a->rank != b->rank || a->block_count != b->block_count) return false;
  return !std::memcmp(a->perm, b->perm, sizeof(int32_t) * static_cast<size_t>(a->rank)) &&
         !std::memcmp(a->block_axis, b->block_axis, sizeof(int32_t) * static_cast<size_t>(a->block_count)) &&
         !std::memcmp(a->block_size, b->block_size, sizeof(int32_t) * static_cast<size_t>(a->block_count));
}

// ---------------------------------------------------------------- candidates

// What a kernel row offers. Lists may be shorter than the operands: what is missing is plain.
struct Candidate {
  std::string id;
  int32_t rank = 0;
  uint64_t attributes = MGE_KERNEL_DETERMINISTIC;
  uint64_t workspace = 0;  // bound
  double cost_us = -1;
  uint64_t variant = 0;    // the row's own
  std::vector<mge_layout> inputs = {};
  std::vector<mge_layout> outputs = {};
  std::vector<mge_in_place> in_place = {};
};

// Collects what a row says about a problem.
class Offers {
 public:
  Offers(const mge_candidate_sink* sink, const mge_constraints* constraints, std::string_view kernel, uint64_t row)
      : sink_(sink), constraints_(constraints), kernel_(kernel), row_(row) {}

  void Add(const Candidate& c) {
    uint64_t require = constraints_ ? constraints_->require : 0, forbid = constraints_ ? constraints_->forbid : 0;
    if ((c.attributes & require) != require || (c.attributes & forbid)) {
      return RefuseNamed(c.id, "its attributes are outside of the constraints");
    }
    if (constraints_ && c.workspace > constraints_->workspace_limit) {
      return RefuseNamed(c.id, "needs " + std::to_string(c.workspace) + " bytes of workspace, more than the limit");
    }
    std::vector<const mge_layout*> in, out;
    for (const mge_layout& l : c.inputs) in.push_back(&l);
    for (const mge_layout& l : c.outputs) out.push_back(&l);
    in.resize(64, nullptr);  // operands beyond the lists are plain
    out.resize(64, nullptr);
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
  }
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
};

// ---------------------------------------------------------------- kernels

using Slot = mge_slot;

// The address of an operand in a run.
template <typename T>
T* At(const mge_run* run, const Slot& slot) {
  return reinterpret_cast<T*>(static_cast<char*>(run->bases[slot.base]) + slot.offset);
}

class Binding {
 public:
  explicit Binding(const mge_binding* b) : b_(b) {}
  const Slot& input(int i) const { return b_->inputs[i]; }
  const Slot& output(int i) const { return b_->outputs[i]; }
  const Slot& workspace() const { return b_->workspace; }
  uint32_t state_index() const { return b_->state_index; }
  const mge_layout* input_layout(int i) const { return b_->input_layouts ? b_->input_layouts[i] : nullptr; }
  const mge_layout* output_layout(int i) const { return b_->output_layouts ? b_->output_layouts[i] : nullptr; }

 private:
  const mge_binding* b_;
};

// A prepared candidate. Immutable once made; bind() may be called several times.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual uint32_t args_bytes() const = 0;
  virtual uint64_t workspace_bytes() const { return 0; }
  // Size of the packed form of constant input i; 0: taken as it is.
  virtual uint64_t prepack_bytes(int) const { return 0; }
  virtual Result Prepack(int, const void*, void*) { return {MGE_UNIMPLEMENTED, "this kernel packs nothing"}; }
  virtual Result Bind(const Binding& binding, void* args, mge_step_fn* fn) = 0;
  // State of one plan instance (used by one run at a time).
  virtual bool has_state() const { return false; }
  virtual Result CreateState(void** out) { *out = nullptr; return {}; }
  virtual void DestroyState(void*) {}

  std::vector<uint64_t> prepack_list;  // filled by the glue
};
using KernelPtr = std::unique_ptr<Kernel>;

// Runs body(chunk) for chunk < chunks on the run's threads.
template <typename F>
void ParallelFor(const mge_run* run, uint64_t chunks, F&& body) {
  if (chunks <= 1 || run->width <= 1) {
    for (uint64_t i = 0; i < chunks; ++i) body(i);
    return;
  }
  using Body = std::remove_reference_t<F>;
  run->parallel_for(run->pool, chunks, [](void* context, uint64_t chunk) { (*static_cast<Body*>(context))(chunk); },
                    const_cast<void*>(static_cast<const void*>(&body)));
}

// A kernel whose arguments are a plain struct and whose launch is a function of it.
template <typename Args, mge_code (*Launch)(const Args&, const mge_run*), typename MakeArgs>
class SimpleKernel : public Kernel {
 public:
  SimpleKernel(MakeArgs make, uint64_t workspace) : make_(std::move(make)), workspace_(workspace) {}
  uint32_t args_bytes() const override { return sizeof(Args); }
  uint64_t workspace_bytes() const override { return workspace_; }
  Result Bind(const Binding& binding, void* args, mge_step_fn* fn) override {
    static_assert(std::is_trivially_destructible_v<Args>);
    new (args) Args(make_(binding));
    *fn = [](const void* a, const mge_run* run) { return Launch(*static_cast<const Args*>(a), run); };
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

struct KernelRow {
  const char* op;  // operator of the group's first node
  void (*offer)(const Problem&, Offers&);
  KernelPtr (*make)(const Problem&, const Candidate&);  // of an offered candidate: id and variant are filled
  const char* domain = "";
};

// The kernel table of a backend whose rows are `rows` and whose device handles the rows do not need.
// A problem goes to every row whose `op` is the operator of the problem's first node.
template <const KernelRow* const* (*Rows)(uint64_t*)>
struct KernelTable {
  static mge_code Enumerate(mge_device*, const mge_problem* problem, const mge_constraints* constraints,
                            const mge_candidate_sink* sink, mge_error* error) noexcept {
    return Guard(error, [&] {
      Problem p(problem);
      uint64_t count = 0;
      const KernelRow* const* rows = Rows(&count);
      for (uint64_t i = 0; i < count; ++i) {
        if (!p.node().Is(rows[i]->op, rows[i]->domain)) continue;
        Offers offers(sink, constraints, rows[i]->op, i);
        rows[i]->offer(p, offers);
      }
      return MGE_OK;
    });
  }
  static mge_code Prepare(mge_device*, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                          mge_error* error) noexcept {
    return Guard(error, [&]() -> mge_code {
      Problem p(problem);
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
      bool packs = false;
      for (int i = 0; i < p.input_count(); ++i) {
        kernel->prepack_list.push_back(kernel->prepack_bytes(i));
        packs |= kernel->prepack_list.back() != 0;
      }
      out->args_bytes = kernel->args_bytes();
      out->workspace_bytes = kernel->workspace_bytes();
      out->prepack_bytes = packs ? kernel->prepack_list.data() : nullptr;
      out->has_state = kernel->has_state();
      out->kernel = reinterpret_cast<mge_kernel*>(kernel.release());
      return MGE_OK;
    });
  }
  static Kernel* Of(mge_kernel* k) { return reinterpret_cast<Kernel*>(k); }
  static mge_code Prepack(mge_kernel* k, uint32_t input, const void* source, void* destination, mge_error* error) noexcept {
    return Guard(error, [&] { return Report(error, Of(k)->Prepack(static_cast<int>(input), source, destination)); });
  }
  static mge_code Bind(mge_kernel* k, const mge_binding* binding, void* args, mge_step_fn* fn, mge_error* error) noexcept {
    return Guard(error, [&] { return Report(error, Of(k)->Bind(Binding(binding), args, fn)); });
  }
  static mge_code StateCreate(mge_kernel* k, void** out, mge_error* error) noexcept {
    return Guard(error, [&] { return Report(error, Of(k)->CreateState(out)); });
  }
  static void StateDestroy(mge_kernel* k, void* state) noexcept { Of(k)->DestroyState(state); }
  static void Destroy(mge_kernel* k) noexcept { delete Of(k); }

  static constexpr mge_kernel_api Api(std::string_view set_version) {
    return {sizeof(mge_kernel_api), MGE_ABI_MINOR, Text(set_version), Enumerate, Prepare, Prepack, Bind,
            StateCreate, StateDestroy, Destroy};
  }
};

// ---------------------------------------------------------------- claims

// Offers a group to the host.
inline void OfferClaim(const mge_claim_sink* sink, std::string_view name, std::span<const int32_t> nodes, double benefit_us) {
  mge_claim claim = {sizeof(mge_claim), 0, Text(name), nodes.data(), nodes.size(), benefit_us};
  sink->offer(sink->self, &claim);
}

// The graph with its consumers indexed, for walking patterns forward from a node.
class Pattern {
 public:
  explicit Pattern(const mge_graph* g) : graph_(g), consumer_(g->value_count, -1), producer_(g->value_count, -1) {
    for (uint64_t i = 0; i < g->node_count; ++i) {
      for (uint64_t k = 0; k < g->nodes[i]->input_count; ++k) {
        if (int32_t v = g->nodes[i]->inputs[k]; v >= 0) consumer_[v] = static_cast<int32_t>(i);
      }
      for (uint64_t k = 0; k < g->nodes[i]->output_count; ++k) {
        if (int32_t v = g->nodes[i]->outputs[k]; v >= 0) producer_[v] = static_cast<int32_t>(i);
      }
    }
  }
  const Graph& graph() const { return graph_; }
  Node node(int i) const { return graph_.node(i); }
  // The one node that reads output 0 of node i, if nobody else does and it is no graph output; else -1.
  int Next(int i) const {
    Node n = graph_.node(i);
    if (!n.has_output(0) || n.output(0).uses() != 1) return -1;
    return consumer_[n.output_id(0)];
  }
  // The node that computes input k of node i; -1 if it comes from outside.
  int Producer(int i, int k) const {
    Node n = graph_.node(i);
    return n.has_input(k) ? producer_[n.input_id(k)] : -1;
  }

 private:
  Graph graph_;
  std::vector<int32_t> consumer_;
  std::vector<int32_t> producer_;
};

// ---------------------------------------------------------------- the entry

// Judges the host and hands over the table.
inline mge_code AnswerQuery(const mge_query_in* in, mge_query_out* out, const mge_plugin* plugin) {
  if (in->abi_major != MGE_ABI_MAJOR || (MGE_ABI_MAJOR == 0 && in->header_hash != MGE_ABI_HASH)) {
    out->reason = Text("built from other headers than this host; build it again with the host's SDK");
    return MGE_FAILED_PRECONDITION;
  }
  out->plugin = plugin;
  return MGE_OK;
}

}  // namespace mge

// Defines the only exported symbol.
#define MGE_PLUGIN_ENTRY(plugin_table)                                                                  \
  extern "C" MGE_EXPORT mge_code mge_plugin_query(const mge_query_in* in, mge_query_out* out) {         \
    return ::mge::AnswerQuery(in, out, &(plugin_table));                                                \
  }
