// SPDX-License-Identifier: Apache-2.0
#include "tests/support/backend_harness.h"

#include <dlfcn.h>
#include <gtest/gtest-spi.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "core/kernel/abi_graph.h"
#include "core/kernel/kernel.h"
#include "core/ops/op.h"
#include "gtest/gtest.h"
#include "mge/plugin/attributes.hpp"
#include "tests/support/guarded_buffer.h"

namespace mge::testing {
namespace {

std::string Words(const mge_text& t) { return {t.data, static_cast<size_t>(t.size)}; }

// Copies a plain tensor into a permuted layout, or back if `to_plain`.
void Relayout(unsigned char* plain, unsigned char* laid, const Shape& dims, int64_t element, const mge_layout& l,
              bool to_plain) {
  Shape plain_strides = Strides(dims);
  int rank = static_cast<int>(dims.size());
  // The position of an element: first its outer coordinates in the order of `perm`, then the blocks.
  Shape outer(dims.begin(), dims.end());
  for (int b = 0; b < l.block_count; ++b) {
    outer[l.block_axis[b]] = (dims[l.block_axis[b]] + l.block_size[b] - 1) / l.block_size[b];
  }
  Shape index(dims.size(), 0);
  int64_t n = Elements(dims);
  for (int64_t i = 0; i < n; ++i) {
    int64_t rest = i, position = 0;
    for (int d = rank - 1; d >= 0; --d) index[d] = rest % dims[d], rest /= dims[d];
    for (int k = 0; k < rank; ++k) {
      int axis = l.perm[k];
      int64_t at = index[axis];
      for (int b = 0; b < l.block_count; ++b) {
        if (l.block_axis[b] == axis) at /= l.block_size[b];
      }
      position = position * outer[axis] + at;
    }
    for (int b = 0; b < l.block_count; ++b) {
      position = position * l.block_size[b] + index[l.block_axis[b]] % l.block_size[b];
    }
    if (to_plain) {
      std::memcpy(plain + i * element, laid + position * element, static_cast<size_t>(element));
    } else {
      std::memcpy(laid + position * element, plain + i * element, static_cast<size_t>(element));
    }
  }
}

int64_t LaidBytes(const Shape& dims, int64_t element, const mge_layout* l) {
  int64_t n = 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t size = dims[d];
    for (int b = 0; l && b < l->block_count; ++b) {
      if (l->block_axis[b] == static_cast<int>(d))
        size = (size + l->block_size[b] - 1) / l->block_size[b] * l->block_size[b];
    }
    n *= size;
  }
  return n * element;
}

bool IsPlainLayout(const mge_layout* l) { return !l || l->kind == MGE_LAYOUT_PLAIN || l->kind == MGE_LAYOUT_ANY; }

struct Candidate {
  mge_candidate raw;
  std::string id;
  std::vector<mge_layout> inputs, outputs;
  std::vector<mge_in_place> in_place;
};

struct Collected {
  std::vector<Candidate> candidates;
  std::vector<std::string> refusals;
  const mge_graph* graph;
};

struct Pool {
  int width = 1;
};

void ParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
  int width = static_cast<Pool*>(pool)->width;
  if (width <= 1) {
    for (uint64_t i = chunks; i-- > 0;) body(context, i);  // reverse order, because any order must be correct
    return;
  }
  std::atomic<uint64_t> next = 0;
  auto work = [&] {
    for (uint64_t i; (i = next.fetch_add(1)) < chunks;) body(context, i);
  };
  std::vector<std::thread> threads;
  for (int i = 1; i < width; ++i) threads.emplace_back(work);
  work();
  for (auto& t : threads) t.join();
}

bool Near(double a, double b, Tolerance t) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (std::isinf(a) || std::isinf(b)) return a == b;
  return std::abs(a - b) <= t.absolute + t.relative * std::abs(b);
}

std::string Compare(const Tensor& got, const Tensor& want, Tolerance tolerance) {
  if (std::isinf(tolerance.absolute)) return "";
  bool floating = kFloating.Contains(want.dtype());
  int64_t wrong = 0, first = -1;
  for (int64_t i = 0; i < want.elements(); ++i) {
    bool same;
    if (floating) {
      same = Near(At(got, i), At(want, i), tolerance);
    } else {
      int64_t e = ElementBytes(want.dtype());
      same = !std::memcmp(static_cast<const char*>(got.data()) + i * e, static_cast<const char*>(want.data()) + i * e,
                          static_cast<size_t>(e));
    }
    if (same) continue;
    if (first < 0) first = i;
    ++wrong;
  }
  if (wrong == 0) return "";
  char text[256];
  std::snprintf(text, sizeof(text), "%lld of %lld elements differ, the first at %lld: %.9g, expected %.9g",
                static_cast<long long>(wrong), static_cast<long long>(want.elements()), static_cast<long long>(first),
                At(got, first), At(want, first));
  return text;
}

}  // namespace

struct Backend::Impl {
  Backend* owner;
  mge_host host = {};
  std::string error;
  Pool pool;

  struct Prepared {
    Graph graph;  // with inferred types
    std::vector<Tensor> values;
    std::unique_ptr<AbiGraph> abi;
    mge_problem problem = {};
  };

  // Computes every value with the reference evaluators, so that all types are known.
  bool Prepare(const Case& c, Prepared& p, const std::vector<Tensor>* expected) {
    p.graph = c.graph;
    p.values.resize(static_cast<size_t>(p.graph.value_count()));
    for (size_t i = 0; i < c.inputs.size(); ++i) p.values[p.graph.inputs()[i]] = c.inputs[i];
    for (ValueId v = 0; v < p.graph.value_count(); ++v) {
      if (p.graph.value(v).role == Role::kConstant) p.values[v] = p.graph.value(v).constant;
    }
    auto order = p.graph.TopologicalOrder();
    if (!order.ok()) return ADD_FAILURE() << order.status().message(), false;
    if (expected) {
      for (size_t i = 0; i < expected->size(); ++i) p.values[p.graph.outputs()[i]] = (*expected)[i];
    } else {
      for (NodeId id : *order) {
        if (auto status = BindNode(p.graph, id); !status.ok())
          return ADD_FAILURE() << c.name << ": " << status.message(), false;
        const Node& n = p.graph.node(id);
        std::vector<HostValue> in;
        for (ValueId v : n.inputs) {
          HostValue h;
          if (v != kNone) h.tensor = p.values[v];
          in.push_back(std::move(h));
        }
        auto out = Evaluate(n, in);
        if (!out.ok()) return ADD_FAILURE() << c.name << ": " << out.status().message(), false;
        for (size_t i = 0; i < n.outputs.size(); ++i) {
          if (n.outputs[i] != kNone) p.values[n.outputs[i]] = (*out)[i].tensor;
        }
      }
    }
    for (ValueId v = 0; v < p.graph.value_count(); ++v) {
      if (p.values[v].defined()) p.graph.value(v).type = {p.values[v].dtype(), true, p.values[v].shape(), {}};
    }
    // A problem with expected values may be one that the host would refuse.
    if (auto status = InferTypes(p.graph); !status.ok() && !expected) {
      return ADD_FAILURE() << c.name << ": " << status.message(), false;
    }
    std::vector<int32_t> uses(static_cast<size_t>(p.graph.value_count()), 0);
    for (NodeId id : *order) {
      for (ValueId v : p.graph.node(id).inputs) {
        if (v != kNone) ++uses[v];
      }
    }
    for (ValueId v : p.graph.outputs()) ++uses[v];
    p.abi = std::make_unique<AbiGraph>(p.graph, *order, uses);
    p.problem = {sizeof(mge_problem), owner->threads_, p.abi->graph(), nullptr, nullptr, 0};
    return true;
  }

  Collected Enumerate(const mge_problem& problem) {
    Collected r = {{}, {}, problem.graph};
    mge_candidate_sink sink = {sizeof(sink), 0, &r, nullptr, nullptr};
    sink.offer = [](void* self, const mge_candidate* c) {
      auto& r = *static_cast<Collected*>(self);
      Candidate k;
      k.raw = *c;
      k.id = Words(c->id);
      auto layouts = [](const mge_layout* const* list, size_t n) {
        std::vector<mge_layout> out(n, mge_layout{sizeof(mge_layout), MGE_LAYOUT_PLAIN, 0, 0, {}, {}, {}, 0, 0});
        for (size_t i = 0; list && i < n; ++i) {
          if (list[i]) out[i] = *list[i];
        }
        return out;
      };
      k.inputs = layouts(c->input_layouts, r.graph->input_count);
      k.outputs = layouts(c->output_layouts, r.graph->output_count);
      for (size_t i = 0; i < k.inputs.size(); ++i)
        EXPECT_TRUE(IsPlainLayout(&k.inputs[i]) || !r.graph->values[r.graph->inputs[i]]->data)
            << k.id << ": constants are plain";
      k.in_place.assign(c->in_place, c->in_place + c->in_place_count);
      r.candidates.push_back(std::move(k));
    };
    sink.refuse = [](void* self, const mge_text* kernel, const mge_text* reason) {
      static_cast<Collected*>(self)->refusals.push_back(Words(*kernel) + ": " + Words(*reason));
    };
    mge_constraints none = {sizeof(none), 0, 0, 0, UINT64_MAX};
    error.clear();
    mge_code code = owner->plugin_->kernel->enumerate(owner->device_, &problem, &none, &sink, nullptr);
    EXPECT_EQ(code, MGE_OK) << error;
    return r;
  }

  // A prepared and bound candidate, with its operands in memory.
  struct Bound {
    mge_prepared prepared = {};
    std::vector<std::unique_ptr<GuardedBuffer>> buffers;  // inputs, outputs, workspace, packed forms
    std::vector<void*> bases;
    std::vector<mge_slot> inputs, outputs;
    std::vector<const mge_layout*> input_layouts, output_layouts;
    std::vector<max_align_t> args;
    void* state = nullptr;
    mge_step_fn fn = nullptr;
  };

  static uint32_t AddBuffer(Bound& b, int64_t bytes) {
    b.buffers.push_back(std::make_unique<GuardedBuffer>(bytes));
    b.bases.push_back(b.buffers.back()->data());
    return static_cast<uint32_t>(b.bases.size()) - 1;
  }

  void WriteInput(Bound& b, size_t i, const Tensor& t, const mge_layout& l) {
    unsigned char* to = b.buffers[i]->data();
    auto* from = static_cast<unsigned char*>(const_cast<void*>(t.data()));
    if (IsPlainLayout(&l)) {
      if (t.bytes()) std::memcpy(to, from, static_cast<size_t>(t.bytes()));
    } else {
      std::memset(to, 0, static_cast<size_t>(b.buffers[i]->bytes()));
      Relayout(from, to, t.shape(), ElementBytes(t.dtype()), l, false);
    }
  }

  bool Bind(const mge_problem& problem, const Candidate& c, const std::vector<const Tensor*>& in,
            const std::vector<const Tensor*>& out, Bound& b) {
    const mge_kernel_api& api = *owner->plugin_->kernel;
    mge_candidate raw = c.raw;
    raw.id = {c.id.data(), c.id.size()};
    b.prepared.struct_size = sizeof(mge_prepared);
    if (mge_code code = api.prepare(owner->device_, &problem, &raw, &b.prepared, nullptr); code != MGE_OK) {
      return ADD_FAILURE() << c.id << ": prepare: " << code << " " << error, false;
    }
    EXPECT_LE(b.prepared.workspace_bytes, c.raw.workspace_bound) << c.id;
    EXPECT_LE(b.prepared.args_bytes, kMaxArgsBytes) << c.id;
    for (size_t i = 0; i < in.size(); ++i) {
      uint32_t base = AddBuffer(b, LaidBytes(in[i]->shape(), ElementBytes(in[i]->dtype()), &c.inputs[i]));
      b.inputs.push_back({base, 0, 0});
      WriteInput(b, i, *in[i], c.inputs[i]);
      b.input_layouts.push_back(IsPlainLayout(&c.inputs[i]) ? nullptr : &c.inputs[i]);
    }
    for (size_t o = 0; o < out.size(); ++o) {
      uint32_t base = AddBuffer(b, LaidBytes(out[o]->shape(), ElementBytes(out[o]->dtype()), &c.outputs[o]));
      b.outputs.push_back({base, 0, 0});
      b.output_layouts.push_back(IsPlainLayout(&c.outputs[o]) ? nullptr : &c.outputs[o]);
    }
    mge_slot workspace = {AddBuffer(b, static_cast<int64_t>(b.prepared.workspace_bytes)), 0, 0};
    for (size_t i = 0; b.prepared.prepack_bytes && i < in.size(); ++i) {
      if (uint64_t bytes = b.prepared.prepack_bytes[i]) {
        b.inputs[i].base = AddBuffer(b, static_cast<int64_t>(bytes));
        mge_code code =
            api.prepack(b.prepared.kernel, static_cast<uint32_t>(i), in[i]->data(), b.bases[b.inputs[i].base], nullptr);
        EXPECT_EQ(code, MGE_OK) << error;
      }
    }
    b.args.resize((b.prepared.args_bytes + sizeof(max_align_t) - 1) / sizeof(max_align_t) + 1);
    mge_binding binding = {sizeof(binding),         0, b.inputs.data(), b.outputs.data(), workspace, b.input_layouts.data(),
                           b.output_layouts.data(), {}};
    if (mge_code code = api.bind(b.prepared.kernel, &binding, b.args.data(), &b.fn, nullptr); code != MGE_OK) {
      return ADD_FAILURE() << c.id << ": bind: " << code << " " << error, false;
    }
    if (b.prepared.has_state) {
      EXPECT_EQ(api.state_create(b.prepared.kernel, &b.state, nullptr), MGE_OK) << error;
    }
    return true;
  }

  void Destroy(Bound& b) {
    const mge_kernel_api& api = *owner->plugin_->kernel;
    if (b.state) api.state_destroy(b.prepared.kernel, b.state);
    if (b.prepared.kernel) api.destroy(b.prepared.kernel);
  }

  mge_code Run(Bound& b, int width, void* const* bases = nullptr, int32_t cancel = 0) {
    pool.width = width;
    mge_run run = {sizeof(run),
                   static_cast<uint32_t>(width),
                   bases ? bases : b.bases.data(),
                   &b.state,
                   nullptr,
                   &cancel,
                   &host,
                   nullptr,
                   &pool,
                   ParallelFor};
    error.clear();
    return b.fn(b.args.data(), &run);
  }

  std::vector<const Tensor*> Operands(const Prepared& p, const std::vector<ValueId>& ids) {
    std::vector<const Tensor*> r;
    for (ValueId id : ids) r.push_back(&p.values[id]);
    return r;
  }

  static Tensor PlainOutput(const unsigned char* bytes, const Tensor& want, const mge_layout& l) {
    Tensor got = *Tensor::Create(want.dtype(), want.shape());
    auto* to = static_cast<unsigned char*>(got.mutable_data());
    if (IsPlainLayout(&l)) {
      if (want.bytes()) std::memcpy(to, bytes, static_cast<size_t>(want.bytes()));
    } else {
      Relayout(to, const_cast<unsigned char*>(bytes), want.shape(), ElementBytes(want.dtype()), l, true);
    }
    return got;
  }

  std::string CompareOutput(const unsigned char* bytes, const Tensor& want, const mge_layout& l, Tolerance t) {
    return Compare(PlainOutput(bytes, want, l), want, t);
  }

  // Rounds every float to the 8 significant bits of bfloat16. Returns an undefined tensor for types without more bits.
  static Tensor Rounded(const Tensor& t) {
    Tensor r;
    if (t.dtype() != DType::kF32 && t.dtype() != DType::kF64) return r;
    r = *Tensor::Create(t.dtype(), t.shape());
    DispatchFloating(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto from = t.Data<T>();
      auto to = r.MutableData<T>();
      for (size_t i = 0; i < from.size(); ++i) {
        to[i] = static_cast<T>(static_cast<float>(BFloat16(static_cast<float>(from[i]))));
      }
    });
    return r;
  }

  // Returns, per output, the allowed error of a kernel that computes in 8 bits. It is the sum of the changes that
  // rounding one input after another causes, doubled to allow for rounding both factors of a product.
  std::vector<double> ReducedErrors(const Case& c, const std::vector<ValueId>& outputs,
                                    const std::vector<const Tensor*>& want) {
    std::vector<double> errors(want.size());
    for (ValueId v = 0; v < c.graph.value_count(); ++v) {
      auto input = std::find(c.graph.inputs().begin(), c.graph.inputs().end(), v);
      Case changed = c;
      Tensor& place = input != c.graph.inputs().end() ? changed.inputs[static_cast<size_t>(input - c.graph.inputs().begin())]
                                                      : changed.graph.value(v).constant;
      Tensor rounded = Rounded(place);
      Prepared p;
      if (!rounded.defined()) continue;
      place = rounded;
      // The reference may refuse a case with expected values. Then there is nothing to compare with.
      ::testing::TestPartResultArray refusals;
      const ::testing::ScopedFakeTestPartResultReporter silent(
          ::testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &refusals);
      if (!Prepare(changed, p, nullptr)) continue;
      for (size_t o = 0; o < want.size(); ++o) {
        double largest = 0;
        for (int64_t i = 0; i < want[o]->elements(); ++i) {
          largest = std::max(largest, std::abs(At(p.values[outputs[o]], i) - At(*want[o], i)));
        }
        errors[o] += 2 * largest;
      }
    }
    return errors;
  }

  void CheckCandidate(const Case& c, const mge_problem& problem, const Candidate& k, const std::vector<const Tensor*>& in,
                      const std::vector<const Tensor*>& out, const std::vector<Tolerance>& tolerance, Outcome& r) {
    Bound b;
    int32_t code = MGE_OK;
    r.outputs.emplace_back();
    if (Bind(problem, k, in, out, b)) {
      for (int width : {1, 3}) {
        for (size_t o = 0; o < out.size(); ++o) b.buffers[in.size() + o]->Reset();
        code = Run(b, width);
        if (code != MGE_OK) break;
        for (size_t o = 0; o < out.size(); ++o) {
          const unsigned char* bytes = b.buffers[in.size() + o]->data();
          if (width == 1) r.outputs.back().push_back(PlainOutput(bytes, *out[o], k.outputs[o]));
          std::string wrong = CompareOutput(bytes, *out[o], k.outputs[o], tolerance[o]);
          EXPECT_EQ(wrong, "") << c.name << " " << k.id << " output " << o << " width " << width << " "
                               << DTypeName(out[o]->dtype()) << ShapeText(out[o]->shape());
        }
        for (size_t i = 0; i < b.buffers.size(); ++i) {
          EXPECT_TRUE(b.buffers[i]->Intact()) << c.name << " " << k.id << " wrote outside of buffer " << i;
        }
      }
      r.errors.push_back(error);
      for (const mge_in_place& pair : k.in_place) {
        if (code != MGE_OK) break;
        size_t o = in.size() + pair.output;
        int64_t bytes =
            LaidBytes(out[pair.output]->shape(), ElementBytes(out[pair.output]->dtype()), &k.outputs[pair.output]);
        if (bytes > b.buffers[pair.input]->bytes()) {
          ADD_FAILURE() << c.name << " " << k.id << ": in place, but the output is larger than the input";
          continue;
        }
        std::vector<void*> bases = b.bases;
        bases[o] = bases[pair.input];
        EXPECT_EQ(Run(b, 1, bases.data()), MGE_OK) << error;
        std::string wrong =
            CompareOutput(b.buffers[pair.input]->data(), *out[pair.output], k.outputs[pair.output], tolerance[pair.output]);
        EXPECT_EQ(wrong, "") << c.name << " " << k.id << " in place of input " << pair.input;
        WriteInput(b, pair.input, *in[pair.input], k.inputs[pair.input]);
      }
    }
    r.codes.push_back(code);
    Destroy(b);
  }
};

Backend::Backend(const std::string& path) : impl_(std::make_unique<Impl>()) {
  impl_->owner = this;
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library_) {
    ADD_FAILURE() << dlerror();
    std::abort();
  }
  auto query = reinterpret_cast<mge_plugin_query_fn>(dlsym(library_, MGE_PLUGIN_QUERY_SYMBOL));
  mge_query_in in = {sizeof(in), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, MGE_ABI_HASH};
  mge_query_out out = {sizeof(out), 0, nullptr, {}};
  EXPECT_EQ(query(&in, &out), MGE_OK) << Words(out.reason);
  plugin_ = out.plugin;
  mge_host& host = impl_->host;
  host.struct_size = sizeof(host);
  host.abi_minor = MGE_ABI_MINOR;
  host.self = this;
  host.fail = [](void* self, mge_error*, mge_code code, const char* text, uint64_t size) {
    static_cast<Backend*>(self)->impl_->error.assign(text, size);
    return code;
  };
  host.log = [](void* self, int32_t, const char* text, uint64_t size) {
    static_cast<Backend*>(self)->log_.append(text, size).append("\n");
  };
  host.parallel_for = [](void*, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
    for (uint64_t i = 0; i < chunks; ++i) body(context, i);
  };
  host.thread_count = [](void*) { return 2u; };
  host.clock_ns = [](void*) -> uint64_t { return 0; };
  host.setting = [](void* self, uint32_t index, mge_text* out) -> mge_code {
    auto* b = static_cast<Backend*>(self);
    const mge_setting& row = *b->plugin_->settings[index];
    auto it = b->settings_.find(Words(row.key));
    *out = it == b->settings_.end() ? row.default_value : mge_text{it->second.data(), it->second.size()};
    return MGE_OK;
  };
  host.core_setting = [](void* self, const mge_text* key, mge_text* out) -> mge_code {
    auto* b = static_cast<Backend*>(self);
    auto it = b->settings_.find(Words(*key));
    if (it != b->settings_.end()) *out = {it->second.data(), it->second.size()};
    return it == b->settings_.end() ? MGE_NOT_FOUND : MGE_OK;
  };
  host.blob_load = [](void*, const void*, uint64_t, void*, void (*)(void*, const void*, uint64_t)) -> mge_code {
    return MGE_NOT_FOUND;
  };
  host.blob_store = [](void*, const void*, uint64_t, const void*, uint64_t) -> mge_code { return MGE_UNAVAILABLE; };
  host.extension = [](void*, const char*, uint32_t) -> const void* { return nullptr; };
  EXPECT_EQ(plugin_->start(&host, nullptr), MGE_OK);
  EXPECT_EQ(plugin_->device->open(0, &device_, nullptr), MGE_OK) << impl_->error;
}

Backend::~Backend() {
  plugin_->device->close(device_);
  plugin_->stop();
}

Backend::Outcome Backend::Check(const Case& c, std::function<Tolerance(DType)> tolerance,
                                const std::vector<Tensor>* expected) {
  Outcome r;
  Impl::Prepared p;
  if (!impl_->Prepare(c, p, expected)) return r;
  Collected found = impl_->Enumerate(p.problem);
  r.refusals = found.refusals;
  auto in = impl_->Operands(p, p.abi->inputs()), out = impl_->Operands(p, p.abi->outputs());
  if (found.candidates.empty()) {
    std::string all;
    for (const auto& text : found.refusals) all += "\n  " + text;
    ADD_FAILURE() << c.name << ": no candidate" << all;
  }
  for (const Candidate& k : found.candidates) {
    r.candidates.push_back(k.id);
    EXPECT_GE(k.raw.cost_us, 0) << k.id << " estimates no cost";
    std::vector<Tolerance> allowed;
    for (const Tensor* t : out) allowed.push_back(tolerance(t->dtype()));
    if (k.raw.attributes & kLessPrecise) {
      std::vector<double> errors = impl_->ReducedErrors(c, p.abi->outputs(), out);
      for (size_t o = 0; o < out.size(); ++o) allowed[o].absolute += errors[o];
    }
    impl_->CheckCandidate(c, p.problem, k, in, out, allowed, r);
  }
  return r;
}

Backend::Outcome Backend::Offers(const Case& c, const std::vector<Tensor>* expected) {
  Outcome r;
  Impl::Prepared p;
  if (!impl_->Prepare(c, p, expected)) return r;
  Collected found = impl_->Enumerate(p.problem);
  r.refusals = found.refusals;
  for (const Candidate& k : found.candidates) {
    r.candidates.push_back(k.id);
    r.attributes.push_back(k.raw.attributes);
    r.us.push_back(k.raw.cost_us);
  }
  return r;
}

Backend::Outcome Backend::RunStopped(const Case& c) {
  Outcome r;
  Impl::Prepared p;
  if (!impl_->Prepare(c, p, nullptr)) return r;
  auto in = impl_->Operands(p, p.abi->inputs()), out = impl_->Operands(p, p.abi->outputs());
  for (const Candidate& k : impl_->Enumerate(p.problem).candidates) {
    Impl::Bound b;
    for (int width : {1, 3}) {
      if (!b.fn && !impl_->Bind(p.problem, k, in, out, b)) break;
      r.candidates.push_back(k.id);
      r.codes.push_back(impl_->Run(b, width, nullptr, 1));
    }
    impl_->Destroy(b);
  }
  return r;
}

std::vector<std::string> Backend::Claims(const Case& c) {
  Impl::Prepared p;
  std::vector<std::string> r;
  if (!impl_->Prepare(c, p, nullptr)) return r;
  struct Context {
    const mge_graph* graph;
    std::vector<std::string>* out;
  } context = {p.abi->graph(), &r};
  mge_claim_sink sink = {sizeof(sink), 0, &context, [](void* self, const mge_claim* claim) {
                           auto* context = static_cast<Context*>(self);
                           std::string text = Words(claim->name) + ":";
                           for (uint64_t i = 0; i < claim->node_count; ++i)
                             text += " " + Words(context->graph->nodes[claim->nodes[i]]->op);
                           context->out->push_back(text);
                         }};
  EXPECT_EQ(plugin_->graph->claim(device_, p.abi->graph(), &sink, nullptr), MGE_OK) << impl_->error;
  return r;
}

void Backend::CheckReorder(const Tensor& t, const mge_layout& from, const mge_layout& to) {
  ReorderProblem problem({t.dtype(), true, t.shape(), {}}, from, to, 2);
  Collected found = impl_->Enumerate(*problem.problem());
  EXPECT_FALSE(found.candidates.empty()) << (found.refusals.empty() ? "" : found.refusals[0]);
  Outcome r;
  Case c;
  c.name = "Reorder";
  for (Candidate& k : found.candidates) {
    k.inputs = {from};
    k.outputs = {to};
    impl_->CheckCandidate(c, *problem.problem(), k, {&t}, {&t}, {Tolerance{}}, r);
    for (int32_t code : r.codes) EXPECT_EQ(code, MGE_OK);
  }
}

}  // namespace mge::testing
