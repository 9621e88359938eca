// SPDX-License-Identifier: Apache-2.0
// A backend for plan tests. Its devices, kernels, claims and links are the lines of its setting `NAME.setup` (setup.h). Its
// kernels can be planned, but not run. Its queues are synchronous, so that constants can be uploaded.
//
// Several backends are built from this file. FAKE_NAME is the name and device class. FAKE_QUEUES gives the devices queues
// and memory of their own. FAKE_STRATEGY gives the backend a strategy of its own, which orders kernels by rank.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "mge/plugin.hpp"
#include "setup.h"

namespace {

constexpr mge_setting kSetup =
    mge::TextSetting(FAKE_NAME ".setup", "", "The set-up of the plan test, in the form of tests/plans/README.md.");

plans::Setup g_setup;

// The lines of this backend's devices, in the order of the set-up.
std::vector<plans::DeviceLine> DeviceLines() {
  std::vector<plans::DeviceLine> out;
  for (const plans::DeviceLine& d : g_setup.devices) {
    if (plans::IsOn(FAKE_NAME, d.name)) out.push_back(d);
  }
  return out;
}

class Device {
 public:
  static mge::Result List(mge::DeviceList& list) {
    for (const plans::DeviceLine& d : DeviceLines()) {
      list.Add({.name = "a device for plan tests",
                .flags = kFlags | MGE_DEVICE_ONLY_BY_NAME,
                .memory_total = d.memory,
                .max_allocation = d.largest,
                .buffer_alignment = d.alignment,
                .compute_queues = d.compute_queues});
    }
    return {};
  }
  explicit Device(uint32_t index) : line(DeviceLines()[index]) {}
  mge::Result Init() const {
    return line.cannot_open ? mge::Result(MGE_UNAVAILABLE, "the test does not let it open") : mge::Result();
  }
  mge::Result Link(Device& to, mge::LinkInfo* out) const {
    for (const plans::LinkLine& l : g_setup.links) {
      if (l.from == line.name && l.to == to.line.name) *out = {true, l.gb_s, l.latency_us, l.name};
    }
    return {};
  }
  const plans::DeviceLine line;

 private:
#ifdef FAKE_QUEUES
  static constexpr uint32_t kFlags = 0;
#else
  static constexpr uint32_t kFlags = MGE_DEVICE_HOST_ACCESSIBLE;
#endif
};

struct Memory {
  static mge::Result Acquire(Device& device, int32_t memory_class, uint64_t bytes, mge_slab* out) {
    const uint64_t alignment = std::max<uint64_t>(device.line.alignment, mge::HostMemory::kAlignment);
    const uint64_t rounded = (bytes + alignment - 1) / alignment * alignment;
    void* address = rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
    if (!address) return {MGE_RESOURCE_EXHAUSTED, "cannot allocate " + std::to_string(bytes) + " bytes"};
    *out = mge::MakeSlab(memory_class, bytes, address, address);
    return {};
  }
  static void Release(Device& device, const mge_slab& slab) { mge::HostMemory::Release(device, slab); }
  static mge::MemoryAmount Info(Device& device) { return {device.line.memory, device.line.memory}; }
};

#ifdef FAKE_QUEUES
class Fence {
 public:
  explicit Fence(Device&) {}
  mge::Result HostWait(uint64_t value, uint64_t) const {
    return value <= reached ? mge::Result() : mge::Result(MGE_DEADLINE_EXCEEDED, "nobody has signalled it");
  }
  uint64_t reached = 0;
};

class Queue {
 public:
  Queue(Device&, int32_t) {}
  mge::Result Copy(void* to, const void* from, uint64_t bytes) {
    std::memmove(to, from, bytes);
    return {};
  }
  mge::Result CopyPeer(Device&, void* to, Device&, const void* from, uint64_t bytes) { return Copy(to, from, bytes); }
  mge::Result Signal(Fence& fence, uint64_t value) {
    fence.reached = value;
    return {};
  }
  mge::Result Wait(Fence& fence, uint64_t value) { return fence.HostWait(value, 0); }
};
#endif

struct Layouts {
  static mge::Result Describe(Device&, const mge::LayoutQuestion& question, mge_layout_info* out) {
    static constexpr std::string_view kNames[] = {"sealed(0)", "sealed(1)", "sealed(2)", "sealed(3)"};
    if (question.layout.opaque_id >= std::size(kNames)) return {MGE_INVALID_ARGUMENT, "there are four layouts"};
    uint64_t bytes = question.dtype == MGE_DTYPE_F64 || question.dtype == MGE_DTYPE_I64 ? 8 : 4;
    for (int64_t d : question.dims) bytes *= static_cast<uint64_t>(d);
    out->bytes = bytes + 64;
    out->name = mge::Text(kNames[question.layout.opaque_id]);
    return {};
  }
};

#ifdef FAKE_STRATEGY
struct Strategy {
  static mge::Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
    std::stable_sort(order.begin(), order.end(),
                     [&](uint32_t a, uint32_t b) { return choice.candidate(a).rank < choice.candidate(b).rank; });
    return {};
  }
};
#else
using Strategy = mge::strategy::Heuristic;
#endif

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = FAKE_NAME, kVersion = "1.0";
  static constexpr const mge_setting* kSettings[] = {&kSetup};
  using Device = ::Device;
  using Memory = ::Memory;
  using Pool = mge::pool::Unpooled;  // takes the bytes that are requested, so that limits are exact
  using Layouts = ::Layouts;
  using Strategy = ::Strategy;
  using Kernels = mge::Kernels<>;
#ifdef FAKE_QUEUES
  using Queue = ::Queue;
  using Fence = ::Fence;
#endif
  static mge::Result Start() {
    g_setup = {};
    std::string fault = plans::ReadSetup(mge::SettingOf(kSetup), g_setup);
    return fault.empty() ? mge::Result() : mge::Result(MGE_INVALID_ARGUMENT, fault);
  }
};

// ---------------------------------------------------------------- kernels

// Returns the operators of the problem: "Conv+Relu".
std::string OpsOf(const mge_graph& graph) {
  std::string ops;
  for (uint64_t n = 0; n < graph.node_count; ++n) ops.append(n ? "+" : "").append(mge::View(graph.nodes[n]->op));
  return ops;
}

// Returns the name of the first value that the node writes.
std::string_view FirstOutput(const mge_graph& graph, const mge_node& node) {
  for (uint64_t i = 0; i < node.output_count; ++i) {
    if (node.outputs[i] >= 0) return mge::View(graph.values[node.outputs[i]]->name);
  }
  return {};
}

uint64_t PlainBytes(const mge_value& v) {
  uint64_t bytes = v.dtype == MGE_DTYPE_F64 || v.dtype == MGE_DTYPE_I64 ? 8 : v.dtype == MGE_DTYPE_BOOL ? 1 : 4;
  for (int32_t d = 0; d < v.rank; ++d) bytes *= static_cast<uint64_t>(v.dims[d]);
  return bytes;
}

mge_layout LayoutOf(const std::string& text, const mge_value& v) { return plans::LayoutOf(text, v.rank, PlainBytes(v)); }

bool SameLayout(const mge_layout* given, const mge_layout& wanted) {
  const mge_layout plain = mge::PlainLayout();
  const mge_layout& l = given ? *given : plain;
  return l.kind == wanted.kind && l.opaque_id == wanted.opaque_id && l.block_count == wanted.block_count &&
         std::equal(l.perm, l.perm + 8, wanted.perm) && std::equal(l.block_size, l.block_size + 2, wanted.block_size);
}

bool IsFor(const plans::KernelLine& line, const Device& device, const mge_graph& graph) {
  if (!plans::IsOn(line.on, device.line.name) || line.ops != OpsOf(graph)) return false;
  const mge_node& last = *graph.nodes[graph.node_count - 1];
  if (!line.writes.empty() && line.writes != FirstOutput(graph, last)) return false;
  auto is = [&](int32_t operand, const std::string& text) {
    const mge_value& v = *graph.values[operand];
    return SameLayout(v.layout, LayoutOf(text, v));
  };
  return (line.from.empty() || is(graph.inputs[0], line.from)) && (line.to.empty() || is(graph.outputs[0], line.to));
}

// Returns the layouts of a list of operands. `all` is the layout of every operand that is not a constant, or empty.
std::vector<mge_layout> LayoutsOf(const mge_graph& graph, const int32_t* operands, uint64_t count,
                                  const std::vector<std::string>& texts, const std::string& all) {
  std::vector<mge_layout> out;
  for (uint64_t i = 0; i < count; ++i) {
    const mge_value& v = *graph.values[operands[i]];
    const bool is_all = !all.empty() && !v.data;
    out.push_back(LayoutOf(is_all ? all : i < texts.size() ? texts[i] : "plain", v));
  }
  return out;
}

void Offer(const plans::KernelLine& line, uint64_t number, const mge_graph& graph, const mge_candidate_sink& sink) {
  if (!line.refusal.empty()) {
    mge_text id = mge::Text(line.id), reason = mge::Text(line.refusal);
    return sink.refuse(sink.self, &id, &reason);
  }
  std::vector<mge_layout> in = LayoutsOf(graph, graph.inputs, graph.input_count, line.inputs, line.all);
  std::vector<mge_layout> out = LayoutsOf(graph, graph.outputs, graph.output_count, line.outputs, line.all);
  std::vector<const mge_layout*> in_list, out_list;
  for (const mge_layout& l : in) in_list.push_back(&l);
  for (const mge_layout& l : out) out_list.push_back(&l);
  mge_candidate c = {};
  c.struct_size = sizeof(c);
  c.rank = line.rank;
  c.id = mge::Text(line.id);
  c.attributes = line.attributes;
  c.workspace_bound = line.workspace_bound;
  c.cost_us = line.cost_us;
  c.token = number;
  c.input_layouts = in_list.data();
  c.output_layouts = out_list.data();
  c.in_place = line.in_place.data();
  c.in_place_count = line.in_place.size();
  sink.offer(sink.self, &c);
}

mge_code Enumerate(mge_device* device, const mge_problem* problem, const mge_constraints*, const mge_candidate_sink* sink,
                   mge_error* error) {
  return mge::WithoutExceptions(error, [&]() -> mge::Result {
    for (size_t i = 0; i < g_setup.kernels.size(); ++i) {
      const plans::KernelLine& line = g_setup.kernels[i];
      if (!IsFor(line, mge::internal::As<Device>(device), *problem->graph)) continue;
      if (problem->write_modes && problem->write_modes[0] == MGE_WRITE_ADD && !line.adds) {
        mge_text id = mge::Text(line.id), reason = mge::Text("cannot add to its output");
        sink->refuse(sink->self, &id, &reason);
        continue;
      }
      Offer(line, i, *problem->graph, *sink);
    }
    return {};
  });
}

// A prepared kernel.
struct Kernel {
  uint32_t inputs, outputs;
  std::vector<uint64_t> packed_bytes;
  std::vector<mge_text> packed_forms;
};

mge_code Prepare(mge_device*, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                 mge_error* error) {
  return mge::WithoutExceptions(error, [&]() -> mge::Result {
    const plans::KernelLine& line = g_setup.kernels[candidate->token];
    if (line.unable) return {MGE_UNIMPLEMENTED, "the test made it unable"};
    if (line.broken) return {MGE_INTERNAL, "the test broke it"};
    const uint64_t inputs = problem->graph->input_count, outputs = problem->graph->output_count;
    if (inputs + outputs > plans::BoundOperands::kMax) return {MGE_INTERNAL, "more operands than a fake kernel can bind"};
    auto kernel = std::make_unique<Kernel>(Kernel{static_cast<uint32_t>(inputs), static_cast<uint32_t>(outputs),
                                                  std::vector<uint64_t>(inputs), std::vector<mge_text>(inputs)});
    for (const plans::PackedForm& form : line.packed) {
      if (form.input >= inputs) continue;
      const mge_value& value = *problem->graph->values[problem->graph->inputs[form.input]];
      if (!value.data && value.role != MGE_ROLE_STATE) continue;
      kernel->packed_bytes[form.input] = form.bytes;
      kernel->packed_forms[form.input] = mge::Text(form.name);
    }
    out->workspace_bytes = line.workspace;
    out->args_bytes = sizeof(plans::BoundOperands);
    out->prepack_bytes = kernel->packed_bytes.data();
    out->prepack_forms = kernel->packed_forms.data();
    out->kernel = mge::internal::HandleOf<mge_kernel>(kernel.release());
    return {};
  });
}

mge_code Prepack(mge_kernel* kernel, uint32_t input, const void*, void* destination, mge_error*) {
  std::memset(destination, 0, mge::internal::As<Kernel>(kernel).packed_bytes[input]);
  return MGE_OK;
}

mge_code Bind(mge_kernel* handle, const mge_binding* binding, void* args, mge_step_fn* out, mge_error*) {
  const auto& kernel = mge::internal::As<Kernel>(handle);
  plans::BoundOperands bound = {kernel.inputs, kernel.outputs, binding->workspace, {}};
  std::copy_n(binding->inputs, kernel.inputs, bound.slots);
  std::copy_n(binding->outputs, kernel.outputs, bound.slots + kernel.inputs);
  std::memcpy(args, &bound, sizeof(bound));
  *out = [](const void*, const mge_run* run) {
    return mge::Report(run->error, MGE_UNIMPLEMENTED, "kernels of plan tests cannot run");
  };
  return MGE_OK;
}

void Destroy(mge_kernel* kernel) { delete &mge::internal::As<Kernel>(kernel); }

// ---------------------------------------------------------------- claims

// Returns the index of the node that a claim names by its first output or as "#3", or -1 if there is none.
int32_t IndexOf(const mge_graph& graph, const std::string& name) {
  if (name.starts_with('#')) return std::stoi(name.substr(1));
  for (uint64_t n = 0; n < graph.node_count; ++n) {
    if (FirstOutput(graph, *graph.nodes[n]) == name) return static_cast<int32_t>(n);
  }
  return -1;
}

mge_code Claim(mge_device* device, const mge_graph* graph, const mge_claim_sink* sink, mge_error* error) {
  return mge::WithoutExceptions(error, [&]() -> mge::Result {
    for (const plans::ClaimLine& line : g_setup.claims) {
      if (!plans::IsOn(line.on, mge::internal::As<Device>(device).line.name)) continue;
      std::vector<int32_t> nodes;
      for (const std::string& value : line.values) nodes.push_back(IndexOf(*graph, value));
      if (std::count(nodes.begin(), nodes.end(), -1)) continue;  // a claim of this device's part of the graph only
      std::vector<int32_t> extra;
      for (uint64_t v = 0; v < graph->value_count; ++v) {
        const std::string name(mge::View(graph->values[v]->name));
        if (std::count(line.extra.begin(), line.extra.end(), name)) extra.push_back(static_cast<int32_t>(v));
      }
      mge_claim claim = {sizeof(claim), 0,           mge::Text(line.name), nodes.data(), nodes.size(), line.benefit_us,
                         extra.data(),  extra.size()};
      sink->offer(sink->self, &claim);
    }
    return {};
  });
}

constexpr auto kKernels = mge::Table<mge_kernel_api>([](auto& t) {
  t.set_version = mge::Text("1");
  t.enumerate = Enumerate;
  t.prepare = Prepare;
  t.prepack = Prepack;
  t.bind = Bind;
  t.destroy = Destroy;
});
constexpr auto kClaims = mge::Table<mge_graph_api>([](auto& t) { t.claim = Claim; });
constexpr mge_plugin kPlugin = [] {
  mge_plugin plugin = mge::internal::Tables<Backend>::kPlugin;
  plugin.kernel = &kKernels;
  plugin.graph = &kClaims;
  return plugin;
}();

}  // namespace

MGE_PLUGIN_ENTRY(kPlugin)
MGE_BACKEND_NOTE(Backend);
