// SPDX-License-Identifier: Apache-2.0
#include "core/plan/bind.h"

#include <algorithm>
#include <numeric>

#include "core/kernel/kernel.h"
#include "core/ops/op.h"
#include "core/plan/collective_step.h"
#include "core/plan/describe.h"
#include "core/plan/nested.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr size_t kArgsAlignment = 16;  // as the plugin interface promises

class Binder {
 public:
  Binder(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels, const MemoryPlan& memory,
         const PlanConstants& constants, const std::shared_ptr<const PlanContext>& context, const StopControl* stop)
      : graph_(graph),
        schedule_(schedule),
        kernels_(kernels),
        memory_(memory),
        constants_(constants),
        context_(context),
        stop_(stop) {}

  // Binds all units and describes them.
  absl::StatusOr<BoundSteps> BindAll() {
    std::vector<size_t> units(schedule_.units.size()), copies(memory_.output_copies.size());
    std::iota(units.begin(), units.end(), size_t{0});
    std::iota(copies.begin(), copies.end(), size_t{0});
    MGE_RETURN_IF_ERROR(Bind(units, copies));
    for (const size_t u : units) {
      out_.units.push_back(
          DescribeUnit(graph_, schedule_, schedule_.units[u], kernels_.units[u].prepared, memory_.in_place[u]));
      if (!memory_.packs[u].empty()) NotePacks(u);
    }
    for (const OutputCopy& copy : memory_.output_copies) DescribeOutputCopy(copy);
    return std::move(out_);
  }

  absl::StatusOr<BoundSteps> BindSome(std::span<const size_t> units, std::span<const size_t> copies) {
    MGE_RETURN_IF_ERROR(Bind(units, copies));
    return std::move(out_);
  }

 private:
  absl::Status Bind(std::span<const size_t> units, std::span<const size_t> copies) {
    args_bytes_ = ArgsBytes(units, copies.size());
    out_.args = std::make_unique<std::byte[]>(args_bytes_);
    for (const size_t u : units) {
      MGE_RETURN_IF_ERROR(CheckStop(stop_));
      unit_ = static_cast<int32_t>(u);
      const PlannedUnit& unit = schedule_.units[u];
      switch (unit.kind) {
        case Unit::Kind::kKernel:
        case Unit::Kind::kReorder: MGE_RETURN_IF_ERROR(BindUnit(u)); break;
        case Unit::Kind::kReference:
        case Unit::Kind::kHost: MGE_RETURN_IF_ERROR(BindHost(u)); break;
        case Unit::Kind::kAlias:
          if (unit.inputs[0] < 0) {
            BindCopy(constants_.plain.at({unit.group->inputs[0], kHostSpace}), SlotOf(unit, unit.outputs[0]),
                     BytesOf(unit.outputs[0]), unit.group->inputs[0]);
          }
          break;
        case Unit::Kind::kCopy: BindTransfer(u); break;
        case Unit::Kind::kCollective: MGE_RETURN_IF_ERROR(BindCollective(u)); break;
      }
    }
    for (const size_t c : copies) {
      unit_ = static_cast<int32_t>(schedule_.units.size() + c);
      BindOutputCopy(memory_.output_copies[c]);
    }
    return absl::OkStatus();
  }

  mge_slot SlotOf(const PlannedUnit& unit, int32_t item) const {
    return memory_.SlotOf(memory_.BufferOf(item), unit.OnQueue());
  }
  int64_t BytesOf(int32_t item) const { return ItemBytes(graph_, schedule_.items[item]); }

  static size_t Aligned(size_t bytes) { return (bytes + kArgsAlignment - 1) / kArgsAlignment * kArgsAlignment; }

  // Returns the bytes of the arguments of all steps. The steps of a plan read them in order, so they are in one block.
  size_t ArgsBytes(std::span<const size_t> units, size_t copies) const {
    size_t bytes = copies * Aligned(sizeof(CopyStepArgs));
    for (const size_t u : units) {
      const PlannedUnit& unit = schedule_.units[u];
      if (unit.HasKernel()) bytes += Aligned(kernels_.units[u].prepared.args_bytes);
      if (unit.kind == Unit::Kind::kCopy) bytes += Aligned(std::max(sizeof(CopyStepArgs), sizeof(QueueCopyArgs)));
      if (unit.kind == Unit::Kind::kAlias) bytes += Aligned(sizeof(CopyStepArgs));
      if (unit.kind == Unit::Kind::kCollective) {
        bytes += Aligned(CollectiveStepArgs::Bytes(unit.inputs.size() + unit.outputs.size()));
      }
      bytes += memory_.packs[u].size() * Aligned(sizeof(PackStepArgs));
    }
    return bytes;
  }

  template <typename T>
  T* NewArgs(size_t bytes = sizeof(T)) {
    static_assert(alignof(T) <= kArgsAlignment);
    std::byte* const args = out_.args.get() + args_used_;
    args_used_ += Aligned(bytes);
    MGE_CHECK(args_used_ <= args_bytes_);
    return reinterpret_cast<T*>(args);
  }

  // Adds a step of the unit `unit_`.
  void AddStep(mge_step_fn fn, const void* args) { out_.steps.push_back({fn, args, unit_}); }

  // Creates the step of a copy of value `v` in host memory.
  void BindCopy(mge_slot from, mge_slot to, int64_t bytes, ValueId v, bool staged = false) {
    uint64_t shared_from = kSharedCopyBytes;
    if (context_->settings->IsSet<kComputeParallelCopy>()) {
      const auto least = static_cast<uint64_t>(context_->settings->Get<kComputeParallelCopy>());
      const auto each = static_cast<uint64_t>(ElementBytes(graph_.value(v).type.dtype));
      shared_from = least > UINT64_MAX / each ? UINT64_MAX : least * each;
    }
    auto* args = NewArgs<CopyStepArgs>();
    *args = {from, to, static_cast<uint64_t>(bytes), staged, shared_from};
    AddStep(RunCopyStep, args);
  }

  // Returns the slot of operand k of a kernel.
  mge_slot InputSlot(size_t u, size_t k) const {
    const PlannedUnit& unit = schedule_.units[u];
    for (const MemoryPlan::Pack& pack : memory_.packs[u]) {
      if (pack.operand == k) return memory_.SlotOf(memory_.buffers[pack.buffer], unit.OnQueue());
    }
    if (unit.inputs[k] >= 0) return SlotOf(unit, unit.inputs[k]);
    if (auto packed = constants_.packed.find({u, k}); packed != constants_.packed.end()) return packed->second;
    return constants_.plain.at({unit.group->inputs[k], schedule_.SpaceOf(*unit.device)});
  }

  // Creates the step of a kernel or reorder.
  absl::Status BindUnit(size_t u) {
    const PlannedUnit& unit = schedule_.units[u];
    const PreparedKernel& kernel = kernels_.units[u];
    std::vector<mge_slot> inputs, outputs;
    std::vector<const mge_layout*> in_layouts, out_layouts;
    for (size_t k = 0; k < unit.inputs.size(); ++k) {
      inputs.push_back(InputSlot(u, k));
      in_layouts.push_back(&unit.InputLayout(k));
    }
    for (size_t k = 0; k < unit.outputs.size(); ++k) {
      outputs.push_back(SlotOf(unit, unit.outputs[k]));
      out_layouts.push_back(&unit.OutputLayout(k));
    }
    mge_slot workspace = {};
    if (int32_t b = memory_.workspaces[u]; b >= 0) workspace = memory_.SlotOf(memory_.buffers[b], unit.OnQueue());
    for (const MemoryPlan::Pack& pack : memory_.packs[u]) BindPack(u, pack);
    mge_binding binding = {sizeof(mge_binding), kernel.state_index, inputs.data(),      outputs.data(),
                           workspace,           in_layouts.data(),  out_layouts.data(), memory_.random_slots[u]};
    void* args = NewArgs<std::byte>(kernel.prepared.args_bytes);
    absl::StatusOr<mge_step_fn> fn = BindKernel(*unit.device, unit.candidate, kernel.prepared.kernel, binding, args);
    if (!fn.ok()) return AddWhere(fn.status(), PlaceOf(graph_, schedule_, unit));
    AddStep(*fn, args);
    return absl::OkStatus();
  }

  // Describes the packing of states. A record would pack with the addresses of its first run only if the backend's
  // prepack_on can be captured, which it does not say.
  void NotePacks(size_t u) {
    Unit& unit = out_.units.back();
    unit.attributes &= ~MGE_KERNEL_CAPTURE_SAFE;
    for (const MemoryPlan::Pack& pack : memory_.packs[u]) {
      const Buffer& packed = memory_.buffers[pack.buffer];
      unit.reason += fmt::format("; packs state '{}' into {} bytes first",
                                 graph_.value(schedule_.units[u].group->inputs[pack.operand]).name, packed.bytes);
    }
  }

  // Creates the step that packs a state before the step of the unit's kernel.
  void BindPack(size_t u, const MemoryPlan::Pack& pack) {
    const PlannedUnit& unit = schedule_.units[u];
    auto* args = NewArgs<PackStepArgs>();
    *args = {&unit.device->kernel_api(), kernels_.units[u].prepared.kernel, static_cast<uint32_t>(pack.operand),
             SlotOf(unit, unit.inputs[pack.operand]), memory_.SlotOf(memory_.buffers[pack.buffer], unit.OnQueue())};
    AddStep(RunPackStep, args);
  }

  // Creates the step of a collective.
  absl::Status BindCollective(size_t u) {
    const PlannedUnit& unit = schedule_.units[u];
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<Communicator> communicator, context_->communicators->On(*unit.device));
    const Node& node = graph_.node(unit.group->nodes[0]);
    // Operands are outputs, each with an input; an exchange has operands for the inputs first, the start of a sum has only those,
    // and its end has only outputs. The first input of a sum that is started or ended, and of a gather, is a token. The first
    // output of a gather is one too.
    const bool starts = node.def->Is(kStartsSum), ends = node.def->Is(kEndsSum), gathers = node.def->Is(kGathers);
    const bool exchanges = node.def->Is(kExchange);
    const size_t first = starts || gathers ? 1 : 0, first_output = gathers ? 1 : 0;
    const size_t from_inputs = starts || exchanges ? unit.inputs.size() - first : 0;
    const size_t count = from_inputs + (starts ? 0 : unit.outputs.size() - first_output);
    auto* args = NewArgs<CollectiveStepArgs>(CollectiveStepArgs::Bytes(count));
    *args = {communicator.get(), CollectiveKind::kAllReduce, 0, 0, 0, false, static_cast<uint32_t>(count)};
    auto elements = [&](ValueId v) { return static_cast<uint64_t>(Elements(graph_.value(v).type.dims)); };
    for (size_t k = 0; k < count; ++k) {
      CollectiveOperand& o = args->list()[k];
      o = {};
      const bool output = k >= from_inputs;
      const size_t input = first + (output ? k - from_inputs : k), place = first_output + k - from_inputs;
      const ValueId v = output ? unit.group->outputs[place] : unit.group->inputs[input];
      o.dtype = static_cast<mge_dtype>(graph_.value(v).type.dtype);
      o.count = o.whole = elements(v);
      if (gathers) o.count = elements(unit.group->inputs[input]);
      if (!output || !(exchanges || ends)) o.from = InputSlot(u, input);
      if (output) o.to = SlotOf(unit, unit.outputs[place]);
    }
    MGE_RETURN_IF_ERROR(ReadCollective(node, communicator->rank(), context_->communicators->ranks(), *args));
    AddStep(RunCollectiveStep, args);
    if (out_.communicators.empty()) out_.communicators.push_back(std::move(communicator));
    return absl::OkStatus();
  }

  // Creates the step of a copy that the schedule added, or of an update, on a queue or in the calling thread.
  void BindTransfer(size_t u) {
    const PlannedUnit& unit = schedule_.units[u];
    const mge_slot from = InputSlot(u, 0), to = SlotOf(unit, unit.outputs[0]);
    const int64_t bytes = BytesOf(unit.outputs[0]);
    if (!unit.OnQueue()) {
      return BindCopy(from, to, bytes, schedule_.items[unit.outputs[0]].value, /*staged=*/!unit.group);
    }
    auto* args = NewArgs<QueueCopyArgs>();
    *args = {from, to, static_cast<uint64_t>(bytes), unit.device->queue_api(), nullptr, nullptr};
    if (unit.peer) {
      args->to_device = unit.device->handle();
      args->from_device = schedule_.spaces[schedule_.items[unit.inputs[0]].space].device->handle();
    }
    AddStep(RunQueueCopyStep, args);
  }

  // Returns the operand by which a host step reads or writes the value.
  HostOperand OperandOf(ValueId v) const {
    HostOperand o;
    if (v == kNone) return o;
    const Value& value = graph_.value(v);
    o.present = true;
    o.kind = value.kind;
    o.type = value.type;
    if (!IsConstantValue(graph_, v)) {
      o.location = memory_.LocationOf(memory_.BufferOf(schedule_.HostItem(v)));
    } else if (HasSlot(value)) {
      o.location.slot = constants_.plain.at({v, kHostSpace});
    } else {
      o.location.kind = Location::Kind::kDynamic;
      o.location.index = memory_.dynamic_constants.at(v);
    }
    return o;
  }

  absl::Status BindHost(size_t u) {
    const PlannedUnit& unit = schedule_.units[u];
    auto args = std::make_unique<HostStepArgs>();
    args->node = graph_.node(unit.group->nodes[0]);
    for (ValueId v : args->node.inputs) {
      args->inputs.push_back(OperandOf(v));
      args->check_inputs |= args->inputs.back().location.kind == Location::Kind::kDynamic;
    }
    for (ValueId v : args->node.outputs) args->outputs.push_back(OperandOf(v));
    for (ValueId v : args->node.captures) args->captures.push_back(OperandOf(v));
    for (const auto& [name, attribute] : args->node.attrs) {
      const GraphPtr* body = std::get_if<GraphPtr>(&attribute);
      if (!body || !*body) continue;
      MGE_ASSIGN_OR_RETURN(BodyProgram program, MakeBody(graph_, **body, args->node, context_, stop_));
      program.name = name;
      out_.bodies.push_back({static_cast<int32_t>(u), name, program.program});
      args->bodies.push_back(std::move(program));
    }
    if (unit.kind == Unit::Kind::kReference) ++out_.reference_steps;
    AddStep(RunHostStep, args.get());
    out_.host_args.push_back(std::move(args));
    return absl::OkStatus();
  }

  // Adds one of the last steps: a copy into an output that no step could write itself.
  void BindOutputCopy(const OutputCopy& copy) {
    const Value& value = graph_.value(copy.value);
    const Buffer* source = copy.item < 0 ? nullptr : &memory_.BufferOf(copy.item);
    BindCopy(source ? memory_.SlotOf(*source, false) : constants_.plain.at({copy.value, kHostSpace}),
             memory_.outputs[copy.output].location.slot, PlainBytes(value), copy.value, source && source->shared);
  }

  void DescribeOutputCopy(const OutputCopy& copy) {
    const Value& value = graph_.value(copy.value);
    Unit unit;
    unit.kind = Unit::Kind::kCopy;
    unit.device = HostStepDevice(*context_).name();
    unit.kernel = "copy";
    unit.flops = 0;
    unit.bytes = 2 * static_cast<double>(PlainBytes(value));
    unit.reason = copy.item >= 0 && memory_.BufferOf(copy.item).shared
                      ? "an output, from page-locked memory to where the caller wants it"
                      : "an output that is an input, a constant, or given twice";
    unit.inputs = {value.name + " : " + value.type.ToString()};
    unit.outputs = {memory_.outputs[copy.output].name};
    out_.units.push_back(std::move(unit));
  }

  static int64_t PlainBytes(const Value& value) { return Elements(value.type.dims) * ElementBytes(value.type.dtype); }

  const Graph& graph_;
  const Schedule& schedule_;
  const PreparedKernels& kernels_;
  const MemoryPlan& memory_;
  const PlanConstants& constants_;
  const std::shared_ptr<const PlanContext>& context_;
  const StopControl* stop_;
  BoundSteps out_;
  int32_t unit_ = 0;  // the unit that is bound
  size_t args_bytes_ = 0, args_used_ = 0;
};

}  // namespace

absl::StatusOr<BoundSteps> BindSteps(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels,
                                     const MemoryPlan& memory, const PlanConstants& constants,
                                     const std::shared_ptr<const PlanContext>& context, const StopControl* stop) {
  return Binder(graph, schedule, kernels, memory, constants, context, stop).BindAll();
}

absl::StatusOr<BoundSteps> BindSomeSteps(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels,
                                         const MemoryPlan& memory, const PlanConstants& constants,
                                         const std::shared_ptr<const PlanContext>& context, const StopControl* stop,
                                         std::span<const size_t> units, std::span<const size_t> copies) {
  return Binder(graph, schedule, kernels, memory, constants, context, stop).BindSome(units, copies);
}

}  // namespace mge
