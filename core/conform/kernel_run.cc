// SPDX-License-Identifier: Apache-2.0
#include "core/conform/kernel_run.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <ranges>
#include <string_view>

#include "core/kernel/candidate.h"
#include "core/kernel/kernel.h"
#include "core/plugin/abi_call.h"
#include "fmt/format.h"
#include "fmt/ranges.h"
#include "mge/plugin/attributes.hpp"

namespace mge::conform {
namespace {

// The parallel_for of a run. With width 1 it runs the chunks from last to first, else several threads share them in any
// order.
void ParallelFor(void* pool, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
  uint32_t width = *static_cast<uint32_t*>(pool);
  if (width <= 1 || chunks <= 1) {
    for (uint64_t i = chunks; i-- > 0;) body(context, i);
    return;
  }
  std::atomic<uint64_t> next = 0;
  InThreads(static_cast<int>(std::min<uint64_t>(width, chunks)), [&](int) {
    for (uint64_t i; (i = next.fetch_add(1)) < chunks;) body(context, i);
  });
}

}  // namespace

std::vector<int32_t> UsesOf(const Graph& graph) {
  const std::vector<std::vector<NodeId>> consumers = graph.Consumers();
  std::vector<int32_t> uses;
  for (ValueId v = 0; v < graph.value_count(); ++v)
    uses.push_back(static_cast<int32_t>(consumers[v].size()) + graph.OutputUses(v));
  return uses;
}

AbiProblem::AbiProblem(const Case& c, int32_t write_mode) : graph_(c.graph) {
  std::vector<NodeId> order(static_cast<size_t>(graph_.node_count()));
  std::iota(order.begin(), order.end(), 0);
  for (ValueId v = 0; v < graph_.value_count(); ++v) {
    Tensor& constant = graph_.value(v).constant;
    if (graph_.value(v).role == Role::kConstant) constant = TensorOf(constant.dtype(), constant.shape(), constant.data());
  }
  abi_ = std::make_unique<AbiGraph>(graph_, order, UsesOf(graph_));
  modes_.assign(abi_->outputs().size(), write_mode);
  problem_ = {sizeof(mge_problem), 2, abi_->graph(), write_mode == MGE_WRITE ? nullptr : modes_.data(), nullptr, 0};
}

void AbiProblem::SpoilConstants() {
  for (ValueId v = 0; v < graph_.value_count(); ++v) {
    Tensor& t = graph_.value(v).constant;
    if (t.defined() && t.bytes()) std::memset(t.mutable_data(), 0x7f, static_cast<size_t>(t.bytes()));
  }
}

const Candidate* Offers::Find(const std::string& id) const {
  auto at = std::ranges::find(offered, id, &Candidate::id);
  return at == offered.end() ? nullptr : &*at;
}

std::string Offers::Ids() const {
  return fmt::format("{}", fmt::join(offered | std::views::transform(&Candidate::id), ", "));
}

Offers Enumerate(BackendUnderTest& tested, const mge_problem& problem, const mge_constraints& constraints) {
  std::pair<const mge_problem&, Offers> found = {problem, {}};
  using Found = decltype(found);
  auto add = [](void* self, const mge_candidate* c) {
    auto& [of, offers] = *static_cast<Found*>(self);
    Candidate k;
    std::string fault = ReadCandidate(c, of, &k);
    if (!fault.empty()) fault = fmt::format("'{}': {}", k.id, fault);
    if (fault.empty() && offers.Find(k.id)) fault = fmt::format("two candidates have the id '{}'", k.id);
    if (offers.malformed.empty()) offers.malformed = fault;
    if (!k.outputs.empty()) offers.offered.push_back(std::move(k));
  };
  auto refuse = [](void* self, const mge_text* kernel, const mge_text* reason) {
    static_cast<Found*>(self)->second.refused.push_back(CopyText(*kernel) + ": " + CopyText(*reason));
  };
  mge_candidate_sink sink = {sizeof(sink), 0, &found, add, refuse};
  Call("enumerating candidates", tested.plugin().kernel->enumerate, tested.device(), &problem, &constraints, &sink);
  return std::move(found.second);
}

Offers Enumerate(BackendUnderTest& tested, const Case& c, int32_t write_mode) {
  return Enumerate(tested, *AbiProblem(c, write_mode).get());
}

Offers TryEnumerate(BackendUnderTest& tested, const Case& c, int32_t write_mode) {
  Offers offers;
  (void)StatusOf([&] { offers = Enumerate(tested, c, write_mode); });
  return offers;
}

Bench::Bench(BackendUnderTest& backend, int count) : tested(backend), lane_count(count) {
  for (int i = 0; i < lane_count; ++i) transfers.emplace_back(tested);
}

void Bench::Reserve(uint64_t bytes) {
  bytes = (bytes + 4095) / 4096 * 4096;
  if (bytes <= lane_bytes) return;
  slab.Reset();
  lane_bytes = 0;
  slab = Slab(tested, static_cast<uint64_t>(lane_count) * bytes + alignment() - kAlignment);
  first_lane = slab.address() + (alignment() - reinterpret_cast<uintptr_t>(slab.address()) % alignment()) % alignment();
  lane_bytes = bytes;
}

std::optional<SupportedCase> FirstSupportedCase(BackendUnderTest& tested) {
  std::vector<const OpDef*> ops = QuickOps(), all = CheckableOps();
  ops.insert(ops.end(), all.begin(), all.end());
  for (const OpDef* def : ops) {
    for (DType dtype : TypesOf(*def)) {
      absl::StatusOr<Case> c = MakeCase(*def, dtype, SpecsFor(*def).front());
      if (!c.ok()) continue;
      const Offers offers = TryEnumerate(tested, *c);
      if (!offers.offered.empty()) return SupportedCase{*std::move(c), offers.offered[0]};
    }
  }
  return std::nullopt;
}

static void UseLikeSession(BackendUnderTest& s, int64_t* used, Until until) {
  s.Load();
  s.Start();
  if (until == Until::kStart) return;
  s.Open();
  if (used) *used = s.device_memory_used();
  if (until == Until::kOpen) return;
  (void)HasPinnedMemory(s);
  Slab slab(s, 4096);
  if (auto status = s.plugin().device->status) Call("asking for the status", status, s.device());
  if (until == Until::kMemory) return;
  if (s.plugin().queue) {
    Bytes host(4096, 1);
    Fence fence(s);
    Queue queue(s);
    queue.Copy(slab.address(), host.data(), host.size());
    queue.Signal(fence, 1);
    if (s.plugin().memory->slab_release_after) slab.ReleaseAfter(fence, 1);
    fence.Await(1);
  }
  if (until == Until::kQueue) return;
  const std::optional<SupportedCase> first = FirstSupportedCase(s);
  if (!first) return;
  Bench bench(s);
  KernelRun kernel_run(bench, first->c, first->candidate);
  kernel_run.Run(0, first->c.inputs[0], 2, 0xff);
}

void LiveOnce(BackendUnderTest& s, int64_t* used, Until until) {
  const absl::Status status = StatusOf([&] { UseLikeSession(s, used, until); });
  s.Close();
  s.Stop();
  ThrowIfError(status);
}

std::vector<Operand> InputsOf(const mge_problem& problem) {
  std::vector<Operand> out;
  const mge_graph& g = *problem.graph;
  for (uint64_t i = 0; i < g.input_count; ++i) {
    const mge_value& v = *g.values[g.inputs[i]];
    Shape shape(v.dims, v.dims + v.rank);
    const DType dtype = static_cast<DType>(v.dtype);
    out.push_back({dtype, shape, v.data ? TensorOf(dtype, shape, v.data) : Tensor()});
  }
  return out;
}

std::string KernelRun::Wrong(const std::vector<Tensor>& outputs, const std::vector<Tensor>& want) const {
  for (size_t o = 0; o < want.size(); ++o) {
    std::string wrong = CompareWithReference(outputs[o], want[o], candidate_.attributes & kLessPrecise);
    if (!wrong.empty()) return fmt::format("output {}: {}", o, wrong);
  }
  return {};
}

void KernelRun::Expect(const std::vector<Tensor>& outputs, int set, std::string_view begin) const {
  if (std::string wrong = Wrong(outputs, case_->expected[set]); !wrong.empty()) Broken("{}{}", begin, wrong);
}

Region KernelRun::AddRegion(uint64_t bytes, uint64_t shift) {
  const uint64_t alignment = bench_.alignment();
  const uint64_t zone = alignment > kRedZone ? alignment : 3 * alignment;
  total_ = (total_ + alignment - 1) / alignment * alignment + zone + shift;
  Region region = {total_, bytes};
  total_ += bytes + kRedZone;
  return region;
}

void KernelRun::PlaceOperand(Operand& operand, const mge_layout& layout, uint64_t packed, const RunOptions& options) {
  operand.layout = operand.constant.defined() ? PlainLayout() : layout.kind == MGE_LAYOUT_ANY ? bench_.any : layout;
  operand.laid = case_ ? operand.layout : PlainLayout();
  const int64_t element = ElementBytes(operand.dtype);
  const int64_t bytes = OrThrow(LayoutBytes(operand.laid, element, operand.shape));
  const bool shifted = options.shifted && IsPlain(operand.laid) && !packed;
  operand.region = AddRegion(packed ? packed : static_cast<uint64_t>(bytes), shifted ? static_cast<uint64_t>(element) : 0);
}

// The private constructor has completed the object: if the rest throws, the destructor runs.
KernelRun::KernelRun(Bench& bench, const Case& c, const Candidate& candidate, const RunOptions& options) : KernelRun(bench) {
  AbiProblem problem(c, options.write_mode);
  case_ = &c;
  inputs_ = InputsOf(*problem.get());
  for (const Tensor& t : c.expected[0]) outputs_.push_back({t.dtype(), t.shape()});
  Prepare(*problem.get(), candidate);
  problem.SpoilConstants();
  Place(options);
  Bind();
}

KernelRun::KernelRun(Bench& bench, const mge_problem& reorder, const Candidate& candidate, int64_t in_bytes,
                     int64_t out_bytes)
    : KernelRun(bench) {
  inputs_ = {{DType::kU8, {in_bytes}}};
  outputs_ = {{DType::kU8, {out_bytes}}};
  Prepare(reorder, candidate);
  Place({});
  Bind();
}

void KernelRun::Prepare(const mge_problem& problem, const Candidate& candidate) {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  candidate_ = candidate;
  const OwnedCandidate::Abi asked = candidate_.ToAbi();
  prepared_.struct_size = sizeof(mge_prepared);
  Call("preparing", api.prepare, bench_.tested.device(), &problem, &asked.candidate, &prepared_);
  if (std::string why = WhyUnsound(api, prepared_, problem.graph->input_count); !why.empty()) Broken(why);
}

void KernelRun::Place(const RunOptions& options) {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Operand& input = inputs_[i];
    const uint64_t packed = prepared_.prepack_bytes ? prepared_.prepack_bytes[i] : 0;
    if (packed && !input.constant.defined()) Broken("input {} is no constant, but a packed form of it is asked for", i);
    if (input.constant.defined()) input.content = packed ? Pack(static_cast<uint32_t>(i), packed) : BytesOf(input.constant);
    PlaceOperand(input, candidate_.inputs[i], packed, options);
  }
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const uint64_t before = total_;
    PlaceOperand(outputs_[o], candidate_.outputs[o], 0, options);
    if (!options.in_place || options.in_place->output != o) continue;
    const Region& input = inputs_[options.in_place->input].region;
    if (outputs_[o].region.bytes > input.bytes) Broken("output {} is larger than input {}", o, options.in_place->input);
    outputs_[o].region.offset = input.offset;
    total_ = before;
  }
  workspace_ = AddRegion(prepared_.workspace_bytes);
  bench_.Reserve(total_);
}

void KernelRun::Bind() {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  std::vector<mge_slot> slots[2];
  std::vector<const mge_layout*> layouts[2];
  auto add = [&](int list, const std::vector<Operand>& operands) {
    for (const Operand& operand : operands) {
      slots[list].push_back({0, 0, operand.region.offset});
      // The plain layout is passed as NULL, as the host does.
      layouts[list].push_back(IsPlain(operand.layout) ? nullptr : &operand.layout);
    }
  };
  add(0, inputs_);
  add(1, outputs_);
  slots[0].push_back({0, 0, 0});  // a kernel that reads one operand too many gets wrong data
  layouts[0].push_back(nullptr);
  const mge_slot workspace = {0, 0, workspace_.offset};
  mge_binding binding = {sizeof(binding),   0, slots[0].data(), slots[1].data(), workspace, layouts[0].data(),
                         layouts[1].data(), {}};
  args_.resize((prepared_.args_bytes + kRedZone) / sizeof(std::max_align_t) + 1);
  auto* args = reinterpret_cast<unsigned char*>(args_.data());
  const size_t room = args_.size() * sizeof(std::max_align_t);
  std::memset(args, kCanary, room);
  Call("binding", api.bind, prepared_.kernel, &binding, args, &fn_);
  if (!fn_) Broken("binding returned MGE_OK, but no function");
  if (!std::all_of(args + prepared_.args_bytes, args + room, [](unsigned char c) { return c == kCanary; }))
    BrokenAs(kPrepare, "bind wrote behind the {} bytes of arguments that it asked for", prepared_.args_bytes);
  for (Lane& lane : lanes_) {
    if (!prepared_.has_state) break;
    Call("creating the kernel's state", api.state_create, prepared_.kernel, &lane.state);
  }
}

KernelRun::~KernelRun() {
  const mge_kernel_api& api = *bench_.tested.plugin().kernel;
  for (Lane& lane : lanes_) {
    if (lane.state) InBackend("destroying the kernel's state", api.state_destroy, prepared_.kernel, lane.state);
  }
  if (prepared_.kernel) InBackend("destroying the kernel", api.destroy, prepared_.kernel);
}

void KernelRun::Stage(int index, const std::vector<Tensor>& inputs, unsigned char fill, const std::vector<Tensor>& before) {
  Lane& lane = lanes_[index];
  lane.image.assign(total_, fill);
  unsigned char zone = fill;  // differs per buffer: else a kernel that copies behind the end of both buffers is not seen
  auto put = [&](const Region& region, const Bytes& bytes) {
    const auto begin = lane.image.begin() + static_cast<ptrdiff_t>(region.offset);
    std::fill(begin - kRedZone, begin, zone);
    std::fill_n(begin + static_cast<ptrdiff_t>(region.bytes), kRedZone, zone--);
    std::ranges::copy(bytes, begin);
  };
  put(workspace_, {});
  for (size_t o = 0; o < outputs_.size(); ++o)
    put(outputs_[o].region, before.empty() ? Bytes() : ToLayout(bench_, before[o], outputs_[o].laid));
  size_t next = 0;
  for (const Operand& input : inputs_)
    put(input.region, input.constant.defined() ? input.content : ToLayout(bench_, inputs[next++], input.laid));
  bench_.transfers[index].Put(bench_.lane(index), lane.image);
}

void KernelRun::EnqueueCopy(int from, int index) {
  lanes_[index].image = lanes_[from].image;
  bench_.transfers[index].queue().Copy(bench_.lane(index), bench_.lane(from), total_);
}

mge_error KernelRun::Launch(int index, uint32_t width, int32_t cancel) {
  Lane& lane = lanes_[index];
  lane.bases[0] = bench_.lane(index);
  lane.cancel = cancel;
  lane.error = {};
  Transfer& transfer = bench_.transfers[index];
  lane.run = {.struct_size = sizeof(mge_run),
              .width = width,
              .bases = lane.bases,
              .states = &lane.state,
              .queue = transfer.has_queue() ? static_cast<mge_queue*>(transfer.queue()) : nullptr,
              .cancel = &lane.cancel,
              .host = bench_.tested.host().table(),
              .error = &lane.error,
              .pool = &lane.run.width,
              .parallel_for = ParallelFor};
  const bool reads_first = candidate_.attributes & MGE_KERNEL_READS_ARGS_FIRST;
  if (reads_first) lane.args = args_;
  const void* args = reads_first ? lane.args.data() : args_.data();
  CallBackend(lane.error, [&](mge_error*) { return InBackend("launching", fn_, args, &lane.run); });
  if (reads_first) std::memset(lane.args.data(), kCanary, lane.args.size() * sizeof(std::max_align_t));
  return lane.error;
}

void KernelRun::Drain(int index) {
  Transfer& transfer = bench_.transfers[index];
  if (transfer.has_queue()) transfer.Drain(transfer.queue());
}

mge_error KernelRun::Finish(int index, uint32_t width, int32_t cancel) {
  const mge_error launched = Launch(index, width, cancel);
  Transfer& transfer = bench_.transfers[index];
  if (!transfer.has_queue()) return launched;
  const mge_error settled = transfer.Settle(transfer.queue());  // also if the launch failed after enqueuing work
  return launched.code == MGE_OK ? settled : launched;
}

Bytes KernelRun::Outputs(int index) {
  Bytes out;
  for (const Operand& o : outputs_) {
    const Bytes part = bench_.transfers[index].Get(bench_.lane(index) + o.region.offset, o.region.bytes);
    out.insert(out.end(), part.begin(), part.end());
  }
  return out;
}

void KernelRun::ResetOutputs(int index) {
  for (const auto& [offset, bytes] : outputs_ | std::views::transform(&Operand::region))
    bench_.transfers[index].Put(bench_.lane(index) + offset, std::span(lanes_[index].image).subspan(offset, bytes));
}

std::vector<Tensor> KernelRun::Collect(int index) {
  std::vector<Tensor> outputs;
  const Bytes& image = lanes_[index].image;
  Bytes now = bench_.transfers[index].Get(bench_.lane(index), total_);
  auto at = [](auto& bytes, uint64_t offset) { return bytes.begin() + static_cast<ptrdiff_t>(offset); };
  for (const Operand& o : outputs_) {
    const Bytes laid(at(now, o.region.offset), at(now, o.region.offset + o.region.bytes));
    outputs.push_back(FromLayout(bench_, laid, o.dtype, o.shape, o.laid));
  }
  // Outputs and workspace may have changed, so they are made equal. All other bytes must be unchanged.
  for (const Operand& o : outputs_) std::copy_n(at(image, o.region.offset), o.region.bytes, at(now, o.region.offset));
  std::copy_n(at(image, workspace_.offset), workspace_.bytes, at(now, workspace_.offset));
  const uint64_t i = static_cast<uint64_t>(std::ranges::mismatch(now, image).in1 - now.begin());
  if (i == now.size()) return outputs;
  auto in = [i](uint64_t begin, uint64_t bytes) { return i >= begin && i - begin < bytes; };
  for (size_t k = 0; k < inputs_.size(); ++k) {
    const auto& [offset, bytes] = inputs_[k].region;
    const bool packed = prepared_.prepack_bytes && prepared_.prepack_bytes[k];
    if (in(offset, bytes))
      BrokenAs(packed ? kPrepack : kInputs, "byte {} of input {} was changed{}", i - offset, k,
               packed ? " after prepack" : "");
  }
  if (const uint64_t end = workspace_.offset + workspace_.bytes; in(end, kRedZone))
    BrokenAs(kWorkspace, "byte {} behind the {} of its workspace was changed", i - end, workspace_.bytes);
  for (size_t o = 0; o < outputs_.size(); ++o) {
    const uint64_t begin = outputs_[o].region.offset, end = begin + outputs_[o].region.bytes;
    if (in(end, kRedZone)) BrokenAs(kBounds, "byte {} behind the end of output {} was changed", i - end, o);
    if (in(begin - kRedZone, kRedZone)) BrokenAs(kBounds, "byte {} before output {} was changed", begin - i, o);
  }
  BrokenAs(kBounds, "a byte outside of every operand was changed (offset {})", i);
}

std::vector<Tensor> KernelRun::Run(int lane, const std::vector<Tensor>& inputs, uint32_t width, unsigned char fill,
                                   const std::vector<Tensor>& before) {
  Stage(lane, inputs, fill, before);
  Step(lane, width, "the step");
  return Collect(lane);
}

std::vector<Tensor> KernelRun::RunSet(int set, uint32_t width, unsigned char fill, int lane) {
  std::vector<Tensor> outputs = Run(lane, case_->inputs[set], width, fill);
  Expect(outputs, set);
  return outputs;
}

}  // namespace mge::conform
