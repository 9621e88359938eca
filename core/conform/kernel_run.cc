// SPDX-License-Identifier: Apache-2.0
#include "core/conform/kernel_run.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>
#include <thread>

#include "core/conform/device_packing.h"
#include "core/kernel/candidate.h"
#include "core/kernel/kernel.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr uint64_t kRedZone = 192;  // bytes between operands
constexpr uint64_t kAlignment = 64;
constexpr unsigned char kCanary = 0xa5;

// The parallel_for of a run. With width 1 it runs the chunks from last to first, else several threads share them in any
// order.
void ParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
  uint32_t width = *static_cast<uint32_t*>(pool);
  if (width <= 1 || chunks <= 1) {
    for (uint64_t i = chunks; i-- > 0;) body(context, i);
    return;
  }
  std::atomic<uint64_t> next = 0;
  auto work = [&] {
    for (uint64_t i; (i = next.fetch_add(1)) < chunks;) body(context, i);
  };
  std::vector<std::thread> threads;
  for (uint32_t i = 1; i < std::min<uint64_t>(width, chunks); ++i) threads.emplace_back(work);
  work();
  for (std::thread& t : threads) t.join();
}

// Returns the offset in bytes of an operand behind a multiple of the alignment.
uint64_t ShiftOf(const KernelRun::Options& options, DType dtype, const mge_layout& layout) {
  return options.shifted && layout.kind == MGE_LAYOUT_PLAIN ? static_cast<uint64_t>(ElementBytes(dtype)) : 0;
}

std::vector<mge_layout> CopyLayouts(const mge_layout* const* list, uint64_t count) {
  std::vector<mge_layout> out(count, PlainLayout());
  for (uint64_t i = 0; list && i < count; ++i) {
    if (list[i]) out[i] = *list[i];
  }
  return out;
}

struct Collector {
  const mge_problem& problem;
  Offers offers;

  void Add(const mge_candidate* c) {
    auto bad = [&](std::string_view what) {
      if (offers.malformed.empty()) offers.malformed = what;
    };
    if (!c || c->struct_size < sizeof(mge_candidate)) return bad("a candidate is NULL or too short (struct_size)");
    Candidate k;
    k.raw = *c;
    k.id = CopyText(c->id);
    if (k.id.empty()) bad("a candidate has no id");
    if (offers.Find(k.id)) bad(fmt::format("two candidates have the id '{}'", k.id));
    if (c->attributes & ~MGE_KERNEL_KNOWN_BITS) bad(fmt::format("'{}' has unknown attributes", k.id));
    if (!std::isfinite(c->cost_us)) {
      bad(fmt::format("the cost_us of '{}' is {}; it must be finite, or negative if it is unknown", k.id, c->cost_us));
    }
    const mge_graph& g = *problem.graph;
    k.inputs = CopyLayouts(c->input_layouts, g.input_count);
    k.outputs = CopyLayouts(c->output_layouts, g.output_count);
    for (uint64_t i = 0; i < g.input_count; ++i) {
      if (CanBeGiven(*g.values[g.inputs[i]], k.inputs[i])) continue;
      bad(fmt::format("'{}' wants input {} in the layout {}, but that is a constant, which is always given plain", k.id, i,
                      LayoutText(k.inputs[i])));
    }
    if (c->in_place_count > 64 || (c->in_place_count && !c->in_place))
      return bad(fmt::format("'{}' has a wild list of pairs", k.id));
    for (uint64_t i = 0; i < c->in_place_count; ++i) {
      if (c->in_place[i].input >= g.input_count || c->in_place[i].output >= g.output_count) {
        return bad(fmt::format("'{}' names an operand in place that does not exist", k.id));
      }
      k.in_place.push_back(c->in_place[i]);
    }
    offers.offered.push_back(std::move(k));
  }
};

}  // namespace

AbiProblem::AbiProblem(const Case& c, int32_t write_mode) : graph_(c.graph) {
  std::vector<NodeId> order;
  std::vector<int32_t> uses(static_cast<size_t>(graph_.value_count()), 0);
  for (NodeId n = 0; n < graph_.node_count(); ++n) {
    order.push_back(n);
    for (ValueId v : graph_.node(n).inputs) {
      if (v != kNone) ++uses[static_cast<size_t>(v)];
    }
  }
  for (ValueId v : graph_.outputs()) ++uses[static_cast<size_t>(v)];
  for (ValueId v = 0; v < graph_.value_count(); ++v) {
    Value& value = graph_.value(v);
    if (value.role != Role::kConstant) continue;
    absl::StatusOr<Tensor> copy = Tensor::Create(value.constant.dtype(), value.constant.shape());
    MGE_CHECK(copy.ok());
    if (copy->bytes()) std::memcpy(copy->mutable_data(), value.constant.data(), static_cast<size_t>(copy->bytes()));
    value.constant = *std::move(copy);
  }
  abi_ = std::make_unique<AbiGraph>(graph_, order, uses);
  modes_.assign(abi_->outputs().size(), write_mode);
  problem_ = {sizeof(mge_problem), 2, abi_->graph(), write_mode == MGE_WRITE ? nullptr : modes_.data(), nullptr, 0};
}

void AbiProblem::SpoilConstants() {
  for (ValueId v = 0; v < graph_.value_count(); ++v) {
    Tensor& t = graph_.value(v).constant;
    if (t.defined() && t.bytes()) std::memset(t.mutable_data(), 0x7f, static_cast<size_t>(t.bytes()));
  }
}

AbiCandidate::AbiCandidate(const Candidate& candidate) : raw(candidate.raw) {
  for (const mge_layout& l : candidate.inputs) inputs.push_back(&l);
  for (const mge_layout& l : candidate.outputs) outputs.push_back(&l);
  raw.id = {candidate.id.data(), candidate.id.size()};
  raw.input_layouts = inputs.data();
  raw.output_layouts = outputs.data();
  raw.in_place = candidate.in_place.data();
}

const Candidate* Offers::Find(const std::string& id) const {
  for (const Candidate& c : offered) {
    if (c.id == id) return &c;
  }
  return nullptr;
}

absl::StatusOr<Offers> Enumerate(BackendUnderTest& tested, const mge_problem& problem, const mge_constraints& constraints) {
  Collector collector = {problem, {}};
  mge_candidate_sink sink = {
      sizeof(sink), 0, &collector,
      [](void* self, const mge_candidate* c) {
        Within within(Side::kKit);
        static_cast<Collector*>(self)->Add(c);
      },
      [](void* self, const mge_text* kernel, const mge_text* reason) {
        Within within(Side::kKit);
        static_cast<Collector*>(self)->offers.refused.push_back(CopyText(*kernel) + ": " + CopyText(*reason));
      }};
  MGE_RETURN_IF_ERROR(Call("enumerating candidates", [&](mge_error* e) {
    return tested.plugin().kernel->enumerate(tested.device(), &problem, &constraints, &sink, e);
  }));
  return std::move(collector.offers);
}

absl::StatusOr<std::unique_ptr<Bench>> Bench::Create(BackendUnderTest& tested) {
  std::unique_ptr<Bench> bench(new Bench{.tested = tested});
  for (Transfer& t : bench->transfers) {
    MGE_ASSIGN_OR_RETURN(t, Transfer::Create(tested));
  }
  return bench;
}

absl::Status Bench::Reserve(uint64_t bytes) {
  bytes = (bytes + 4095) / 4096 * 4096;
  if (bytes <= lane_bytes) return absl::OkStatus();
  slab.Reset();
  lane_bytes = 0;
  MGE_ASSIGN_OR_RETURN(slab, Slab::Acquire(tested, kLanes * bytes + alignment() - kAlignment));
  first_lane = slab.address() + (alignment() - reinterpret_cast<uintptr_t>(slab.address()) % alignment()) % alignment();
  lane_bytes = bytes;
  return absl::OkStatus();
}

absl::StatusOr<Bench*> Bench::Aside() {
  if (!aside) {
    MGE_ASSIGN_OR_RETURN(aside, Bench::Create(tested));
  }
  return aside.get();
}

absl::StatusOr<Offers> Enumerate(BackendUnderTest& tested, const Case& c, int32_t write_mode) {
  return Enumerate(tested, *AbiProblem(c, write_mode).get());
}

absl::StatusOr<Case> FirstSupportedCase(BackendUnderTest& tested, Offers* offers) {
  std::vector<const OpDef*> ops = QuickOps(), all = CheckableOps();
  ops.insert(ops.end(), all.begin(), all.end());
  for (const OpDef* def : ops) {
    for (DType dtype : TypesOf(*def)) {
      absl::StatusOr<Case> c = MakeCase(*def, dtype, SpecsFor(*def).front());
      if (!c.ok()) continue;
      AbiProblem problem(*c, MGE_WRITE);
      absl::StatusOr<Offers> some = Enumerate(tested, *problem.get());
      if (!some.ok() || some->offered.empty()) continue;
      *offers = *std::move(some);
      return c;
    }
  }
  return NotOffered("the backend has no kernel for any operator");
}

absl::Status UseLikeSession(BackendUnderTest& s, int64_t* used, Until until) {
  MGE_RETURN_IF_ERROR(s.Start());
  if (until == Until::kStart) return absl::OkStatus();
  MGE_RETURN_IF_ERROR(s.Open());
  if (used) *used = s.device_memory_used();
  if (until == Until::kOpen) return absl::OkStatus();
  Slab slabs[MGE_MEMORY_CLASS_COUNT];
  for (int32_t memory_class : {MGE_MEMORY_DEVICE, MGE_MEMORY_PINNED}) {
    if (!HasMemory(s, memory_class)) continue;
    MGE_ASSIGN_OR_RETURN(slabs[memory_class], Slab::Acquire(s, 4096, memory_class));
  }
  const mge_device_api& device = *s.plugin().device;
  if (device.status)
    MGE_RETURN_IF_ERROR(Call("asking for the status", [&](mge_error* e) { return device.status(s.device(), e); }));
  if (until == Until::kMemory) return absl::OkStatus();
  if (s.plugin().queue) {
    Bytes host(4096, 1);
    MGE_ASSIGN_OR_RETURN(Queue queue, Queue::Create(s));
    MGE_ASSIGN_OR_RETURN(Fence fence, Fence::Create(s));
    MGE_RETURN_IF_ERROR(queue.Copy(slabs[MGE_MEMORY_DEVICE].address(), host.data(), host.size()));
    MGE_RETURN_IF_ERROR(queue.Signal(fence, 1));
    if (auto release = s.plugin().memory->slab_release_after) {
      const mge_fence_point copied = {sizeof(copied), 0, fence, 1};
      Slab& slab = slabs[MGE_MEMORY_DEVICE];
      InBackend("releasing a slab in stream order", [&] { release(s.device(), &slab.raw(), &copied); });
      slab.Forget();
    }
    MGE_RETURN_IF_ERROR(fence.Await(1));
  }
  if (until == Until::kQueue) return absl::OkStatus();
  Offers offers;
  absl::StatusOr<Case> c = FirstSupportedCase(s, &offers);
  if (!c.ok()) return IsNotOffered(c.status()) ? absl::OkStatus() : c.status();
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Bench> bench, Bench::Create(s));
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<KernelRun> kernel_run, KernelRun::Create(*bench, *c, offers.offered[0], {}));
  MGE_ASSIGN_OR_RETURN(RunResult result, kernel_run->Run(0, c->inputs[0], 2, 0xff));
  return result.Answered();
}

std::vector<Operand> InputsOf(const mge_problem& problem) {
  std::vector<Operand> out;
  const mge_graph& g = *problem.graph;
  for (uint64_t i = 0; i < g.input_count; ++i) {
    const mge_value& v = *g.values[g.inputs[i]];
    Shape shape(v.dims, v.dims + v.rank);
    Operand o = {static_cast<DType>(v.dtype), shape, {}};
    if (v.data) o.constant = RandomTensor(o.dtype, shape, 0, 1, 1);
    if (v.data && o.constant.bytes())
      std::memcpy(o.constant.mutable_data(), v.data, static_cast<size_t>(o.constant.bytes()));
    out.push_back(std::move(o));
  }
  return out;
}

std::vector<Operand> OutputsOf(const Case& c) {
  std::vector<Operand> out;
  for (const Tensor& t : c.expected[0]) out.push_back({t.dtype(), t.shape(), {}});
  return out;
}

absl::Status RunResult::Sound(std::string_view step) const {
  MGE_RETURN_IF_ERROR(Answered(step));
  for (const std::string& fault : {outside, changed_input, beyond_workspace}) {
    if (!fault.empty()) return Broken(fmt::format("{}: {}", step, fault));
  }
  return absl::OkStatus();
}

std::string WhatIsWrong(const RunResult& r, const std::vector<Tensor>& want, const Candidate& candidate) {
  for (size_t o = 0; o < want.size(); ++o) {
    std::string wrong = CompareWithReference(r.outputs[o], want[o], candidate.Has(MGE_KERNEL_REDUCED_PRECISION));
    if (!wrong.empty()) return fmt::format("output {}: {}", o, wrong);
  }
  return {};
}

KernelRun::Region KernelRun::AddRegion(uint64_t bytes, uint64_t shift) {
  const uint64_t alignment = bench_.alignment();
  const uint64_t zone = alignment > kRedZone ? alignment : 3 * alignment;
  total_ = (total_ + alignment - 1) / alignment * alignment + zone + shift;
  Region region = {total_, bytes};
  total_ += bytes + kRedZone;
  return region;
}

absl::Status KernelRun::Pack(const Options& options) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    uint64_t packed = prepared_.prepack_bytes ? prepared_.prepack_bytes[i] : 0;
    const Tensor& constant = inputs_[i].constant;
    if (!constant.defined()) {
      if (packed) return Broken(fmt::format("input {} is no constant, but a packed form of it is asked for", i));
      continue;
    }
    auto* data = static_cast<const unsigned char*>(constant.data());
    Bytes source(data, data + constant.bytes());
    if (packed == 0) {
      const Region region = AddRegion(source.size(), ShiftOf(options, inputs_[i].dtype, PlainLayout()));
      constants_.emplace_back(region, std::move(source));
      input_regions_[i] = constants_.back().first;
      continue;
    }
    const mge_kernel_api& api = *bench_.tested.plugin().kernel;
    Bytes memory(packed + 2 * kRedZone + kAlignment, kCanary);
    size_t at = kRedZone + (kAlignment - reinterpret_cast<uintptr_t>(memory.data() + kRedZone) % kAlignment) % kAlignment;
    MGE_RETURN_IF_ERROR(Call(fmt::format("packing input {}", i), [&](mge_error* e) {
      return api.prepack(prepared_.kernel, static_cast<uint32_t>(i), source.data(), memory.data() + at, e);
    }));
    const std::string name = prepared_.prepack_forms ? CopyText(prepared_.prepack_forms[i]) : std::string();
    const std::string key = name + '\0' + std::string(source.begin(), source.end());
    Bytes form(memory.begin() + static_cast<ptrdiff_t>(at), memory.begin() + static_cast<ptrdiff_t>(at + packed));
    const auto input = static_cast<uint32_t>(i);
    MGE_ASSIGN_OR_RETURN(std::string fault, FaultOfDevicePacking(bench_, prepared_.kernel, input, source, form));
    if (!fault.empty()) packing_fault_ = std::move(fault);
    std::fill(source.begin(), source.end(), 0x7f);
    auto kept = [](unsigned char c) { return c == kCanary; };
    if (!std::all_of(memory.begin(), memory.begin() + static_cast<ptrdiff_t>(at), kept) ||
        !std::all_of(memory.begin() + static_cast<ptrdiff_t>(at + packed), memory.end(), kept)) {
      packing_fault_ = fmt::format("prepack wrote outside of the {} bytes that it asked for input {}", packed, i);
    }
    const size_t hash = std::hash<std::string_view>()({reinterpret_cast<const char*>(form.data()), form.size()});
    if (!name.empty() && bench_.forms.try_emplace(key, hash).first->second != hash) {
      packing_fault_ = fmt::format("two kernels name the form of equal constants '{}', but pack them to different bytes",
                                   EscapeControl(name));
    }
    constants_.emplace_back(AddRegion(packed), std::move(form));
    input_regions_[i] = constants_.back().first;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<KernelRun>> KernelRun::Create(Bench& bench, const mge_problem& problem,
                                                             const Candidate& candidate, std::vector<Operand> inputs,
                                                             std::vector<Operand> outputs, const Options& options,
                                                             const std::function<void()>& prepared) {
  std::unique_ptr<KernelRun> out(new KernelRun(bench));
  BackendUnderTest& tested = bench.tested;
  const mge_kernel_api& api = *tested.plugin().kernel;
  out->candidate_ = candidate;
  out->inputs_ = std::move(inputs);
  out->outputs_ = std::move(outputs);
  Candidate& c = out->candidate_;
  std::vector<const mge_layout*> in_layouts, out_layouts;
  const AbiCandidate asked(c);
  out->prepared_.struct_size = sizeof(mge_prepared);
  MGE_RETURN_IF_ERROR(Call(
      "preparing", [&](mge_error* e) { return api.prepare(tested.device(), &problem, &asked.raw, &out->prepared_, e); }));
  if (std::string why = WhyUnsound(api, out->prepared_, problem.graph->input_count); !why.empty()) return Broken(why);
  if (prepared) prepared();
  if (options.only_prepared) return out;

  // The plain layout is passed as NULL, as the host does.
  auto settle = [&](std::vector<mge_layout> list) {
    for (mge_layout& l : list) {
      if (l.kind == MGE_LAYOUT_ANY) l = options.any ? *options.any : PlainLayout();
    }
    return list;
  };
  out->settled_in_ = settle(c.inputs);
  for (size_t i = 0; i < out->inputs_.size(); ++i) {
    if (out->inputs_[i].constant.defined()) out->settled_in_[i] = PlainLayout();
  }
  out->settled_out_ = settle(c.outputs);
  for (mge_layout& l : out->settled_in_) in_layouts.push_back(l.kind == MGE_LAYOUT_PLAIN ? nullptr : &l);
  for (mge_layout& l : out->settled_out_) out_layouts.push_back(l.kind == MGE_LAYOUT_PLAIN ? nullptr : &l);
  out->laid_in_ = options.raw ? std::vector<mge_layout>(c.inputs.size(), PlainLayout()) : out->settled_in_;
  out->laid_out_ = options.raw ? std::vector<mge_layout>(c.outputs.size(), PlainLayout()) : out->settled_out_;
  auto bytes_of = [](const Operand& o, const mge_layout& l) { return LayoutBytes(l, ElementBytes(o.dtype), o.shape); };
  out->input_regions_.resize(out->inputs_.size());
  for (size_t i = 0; i < out->inputs_.size(); ++i) {
    if (out->inputs_[i].constant.defined()) continue;
    MGE_ASSIGN_OR_RETURN(int64_t bytes, bytes_of(out->inputs_[i], out->laid_in_[i]));
    out->input_regions_[i] =
        out->AddRegion(static_cast<uint64_t>(bytes), ShiftOf(options, out->inputs_[i].dtype, out->laid_in_[i]));
  }
  MGE_RETURN_IF_ERROR(out->Pack(options));
  for (size_t o = 0; o < out->outputs_.size(); ++o) {
    MGE_ASSIGN_OR_RETURN(int64_t bytes, bytes_of(out->outputs_[o], out->laid_out_[o]));
    if (options.in_place && options.in_place->output == o) {
      const Region& input = out->input_regions_[options.in_place->input];
      if (static_cast<uint64_t>(bytes) > input.bytes)
        return Broken(fmt::format("output {} is larger than input {}", o, options.in_place->input));
      out->output_regions_.push_back({input.offset, static_cast<uint64_t>(bytes)});
    } else {
      out->output_regions_.push_back(
          out->AddRegion(static_cast<uint64_t>(bytes), ShiftOf(options, out->outputs_[o].dtype, out->laid_out_[o])));
    }
  }
  out->workspace_ = out->AddRegion(out->prepared_.workspace_bytes);
  MGE_RETURN_IF_ERROR(bench.Reserve(out->total_));

  std::vector<mge_slot> in_slots, out_slots;
  for (const Region& r : out->input_regions_) in_slots.push_back({0, 0, r.offset});
  for (const Region& r : out->output_regions_) out_slots.push_back({0, 0, r.offset});
  in_slots.push_back({0, 0, 0});  // a kernel that reads one operand too many gets wrong data
  in_layouts.push_back(nullptr);
  mge_binding binding = {
      sizeof(binding),    0, in_slots.data(), out_slots.data(), {0, 0, out->workspace_.offset}, in_layouts.data(),
      out_layouts.data(), {}};
  size_t units = (out->prepared_.args_bytes + kRedZone) / sizeof(std::max_align_t) + 1;
  out->args_.resize(units);
  auto* args = reinterpret_cast<unsigned char*>(out->args_.data());
  std::memset(args, kCanary, units * sizeof(std::max_align_t));
  MGE_RETURN_IF_ERROR(
      Call("binding", [&](mge_error* e) { return api.bind(out->prepared_.kernel, &binding, args, &out->fn_, e); }));
  if (!out->fn_) return Broken("binding returned MGE_OK, but no function");
  for (size_t i = out->prepared_.args_bytes; i < units * sizeof(std::max_align_t); ++i) {
    if (args[i] != kCanary)
      out->args_fault_ =
          fmt::format("bind wrote behind the {} bytes of arguments that it asked for", out->prepared_.args_bytes);
  }
  for (Lane& lane : out->lanes_) {
    if (!out->prepared_.has_state) break;
    MGE_RETURN_IF_ERROR(Call("creating the kernel's state",
                             [&](mge_error* e) { return api.state_create(out->prepared_.kernel, &lane.state, e); }));
  }
  return out;
}

absl::StatusOr<std::unique_ptr<KernelRun>> KernelRun::Create(Bench& bench, const Case& c, const Candidate& candidate,
                                                             const Options& options, int32_t write_mode) {
  AbiProblem problem(c, write_mode);
  return Create(bench, *problem.get(), candidate, InputsOf(*problem.get()), OutputsOf(c), options,
                [&] { problem.SpoilConstants(); });
}

KernelRun::~KernelRun() {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  for (Lane& lane : lanes_) {
    if (lane.state) InBackend("destroying the kernel's state", [&] { api.state_destroy(prepared_.kernel, lane.state); });
  }
  if (prepared_.kernel) InBackend("destroying the kernel", [&] { api.destroy(prepared_.kernel); });
}

absl::Status KernelRun::Stage(int index, const std::vector<Tensor>& inputs, unsigned char fill,
                              const std::vector<Tensor>& before) {
  Lane& lane = lanes_[index];
  lane.image.assign(total_, fill);
  unsigned char zone = fill;  // differs per buffer: else a kernel that copies behind the end of both buffers is not seen
  for (const std::vector<Region>& regions : {input_regions_, output_regions_, {workspace_}}) {
    for (const Region& r : regions) {
      const auto begin = lane.image.begin() + static_cast<ptrdiff_t>(r.offset);
      std::fill(begin - kRedZone, begin, zone);
      std::fill_n(begin + static_cast<ptrdiff_t>(r.bytes), kRedZone, zone--);
    }
  }
  auto put = [&](const Region& region, const Bytes& bytes) {
    std::copy(bytes.begin(), bytes.end(), lane.image.begin() + static_cast<ptrdiff_t>(region.offset));
  };
  for (size_t o = 0; o < before.size(); ++o) {
    MGE_ASSIGN_OR_RETURN(Bytes bytes, ToLayout(bench_, before[o], laid_out_[o]));
    put(output_regions_[o], bytes);
  }
  size_t next = 0;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].constant.defined()) continue;
    MGE_ASSIGN_OR_RETURN(Bytes bytes, ToLayout(bench_, inputs[next++], laid_in_[i]));
    put(input_regions_[i], bytes);
  }
  for (const auto& [region, bytes] : constants_) put(region, bytes);
  return bench_.transfers[index].ToDevice(bench_.lane(index), lane.image.data(), total_);
}

mge_code KernelRun::EnqueueCopy(int from, int index, mge_error* error) {
  lanes_[index].image = lanes_[from].image;
  return bench_.tested.plugin().queue->copy(bench_.transfers[index].queue(), bench_.lane(index), bench_.lane(from), total_,
                                            error);
}

mge_code KernelRun::Launch(int index, uint32_t width, std::string* text, int32_t cancel) {
  Lane& lane = lanes_[index];
  lane.bases[0] = bench_.lane(index);
  lane.cancel = cancel;
  lane.error = {};
  lane.run = {};
  lane.run.struct_size = sizeof(mge_run);
  lane.run.width = width;
  lane.run.bases = lane.bases;
  lane.run.states = &lane.state;
  if (bench_.transfers[index].has_queue()) lane.run.queue = bench_.transfers[index].queue();
  lane.run.cancel = &lane.cancel;
  lane.run.host = bench_.tested.host().table();
  lane.run.error = &lane.error;
  lane.run.pool = &lane.run.width;
  lane.run.parallel_for = ParallelFor;
  const bool reads_first = candidate_.Has(MGE_KERNEL_READS_ARGS_FIRST);
  if (reads_first) lane.args = args_;
  const void* args = reads_first ? lane.args.data() : args_.data();
  mge_code code =
      CallBackend(lane.error, [&](mge_error*) { return InBackend("launching", [&] { return fn_(args, &lane.run); }); });
  if (reads_first) std::memset(lane.args.data(), kCanary, lane.args.size() * sizeof(std::max_align_t));
  if (text) *text = lane.error.text;
  return code;
}

absl::Status KernelRun::Drain(int index) {
  Transfer& transfer = bench_.transfers[index];
  return transfer.has_queue() ? transfer.Drain(transfer.queue()) : absl::OkStatus();
}

absl::StatusOr<bool> KernelRun::Untouched(int index) {
  Bytes now(total_);
  MGE_RETURN_IF_ERROR(bench_.transfers[index].ToHost(now.data(), bench_.lane(index), total_));
  return now == lanes_[index].image;
}

absl::StatusOr<Bytes> KernelRun::Outputs(int index) {
  Bytes out;
  for (const Region& r : output_regions_) {
    const size_t at = out.size();
    out.resize(at + r.bytes);
    MGE_RETURN_IF_ERROR(bench_.transfers[index].ToHost(out.data() + at, bench_.lane(index) + r.offset, r.bytes));
  }
  return out;
}

absl::Status KernelRun::ResetOutputs(int index) {
  for (const Region& r : output_regions_) {
    MGE_RETURN_IF_ERROR(
        bench_.transfers[index].ToDevice(bench_.lane(index) + r.offset, lanes_[index].image.data() + r.offset, r.bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<RunResult> KernelRun::Collect(int index) {
  RunResult result;
  const Bytes& image = lanes_[index].image;
  Bytes now(total_);
  MGE_RETURN_IF_ERROR(bench_.transfers[index].ToHost(now.data(), bench_.lane(index), total_));
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const Region& r = output_regions_[o];
    Bytes laid(now.begin() + static_cast<ptrdiff_t>(r.offset), now.begin() + static_cast<ptrdiff_t>(r.offset + r.bytes));
    MGE_ASSIGN_OR_RETURN(Tensor t, FromLayout(bench_, laid, outputs_[o].dtype, outputs_[o].shape, laid_out_[o]));
    result.outputs.push_back(std::move(t));
  }
  // Outputs and workspace may have changed, so they are made equal. All other bytes must be unchanged.
  std::vector<Region> own = output_regions_;
  own.push_back(workspace_);
  for (const Region& r : own)
    std::copy_n(image.begin() + static_cast<ptrdiff_t>(r.offset), r.bytes, now.begin() + static_cast<ptrdiff_t>(r.offset));
  if (now == image) return result;
  auto part = [&](const Region& r) {
    return Difference(std::span(now).subspan(r.offset, r.bytes), std::span(image).subspan(r.offset, r.bytes));
  };
  for (size_t i = 0; i < input_regions_.size(); ++i) {
    if (std::string d = part(input_regions_[i]); !d.empty())
      result.changed_input = fmt::format("input {} was changed: {}", i, d);
  }
  if (std::string d = part({workspace_.offset + workspace_.bytes, kRedZone}); !d.empty()) {
    result.beyond_workspace = fmt::format("bytes behind the {} of its workspace were changed: {}", workspace_.bytes, d);
  } else if (result.changed_input.empty()) {
    for (size_t i = 0; i < total_; ++i) {
      if (now[i] == image[i]) continue;
      result.outside = fmt::format("a byte outside of every operand was changed (offset {})", i);
      for (size_t o = 0; o < output_regions_.size(); ++o) {
        uint64_t end = output_regions_[o].offset + output_regions_[o].bytes;
        if (i >= end && i < end + kRedZone)
          result.outside = fmt::format("byte {} behind the end of output {} was changed", i - end, o);
        if (i < output_regions_[o].offset && i + kRedZone >= output_regions_[o].offset) {
          result.outside = fmt::format("byte {} before output {} was changed", output_regions_[o].offset - i, o);
        }
      }
      break;
    }
  }
  return result;
}

absl::StatusOr<RunResult> KernelRun::Run(int lane, const std::vector<Tensor>& inputs, uint32_t width, unsigned char fill,
                                         const std::vector<Tensor>& before, int32_t cancel) {
  MGE_RETURN_IF_ERROR(Stage(lane, inputs, fill, before));
  std::string text;
  mge_code code = Launch(lane, width, &text, cancel);
  if (Transfer& transfer = bench_.transfers[lane]; transfer.has_queue()) {
    std::string late;
    absl::StatusOr<mge_code> settled = transfer.Settle(transfer.queue(), &late);
    if (code == MGE_OK) {
      MGE_ASSIGN_OR_RETURN(code, settled);
      text = late;
    }
  }
  MGE_ASSIGN_OR_RETURN(RunResult result, Collect(lane));
  result.code = code;
  result.text = text;
  return result;
}

}  // namespace mge::conform
