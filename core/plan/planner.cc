// SPDX-License-Identifier: Apache-2.0
// BuildPlan: cover, kernel choice and layouts, schedule with reorders, placement, binding. Long because one class carries the
// state of a planning through all of these; each stage is a function of its own.
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <unordered_map>

#include "core/base/errors.h"
#include "core/ops/op.h"
#include "core/plan/abi_graph.h"
#include "core/plan/cover.h"
#include "core/plan/host_step.h"
#include "core/plan/layout.h"
#include "core/plan/measure.h"
#include "core/plan/pass.h"
#include "core/plan/place.h"
#include "core/plan/program.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {
namespace {

int64_t RoundUp(int64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

constexpr double kUnknownUs = 1000;  // cost of a candidate without an estimate
constexpr double kNeverUs = 1e9;  // cost of a candidate that could not be run

constexpr int32_t kEnd = std::numeric_limits<int32_t>::max();  // read after the last unit

// A value in one layout: what a step writes and others read.
struct Item {
  ValueId value = kNone;
  mge_layout layout = PlainLayout();
  int32_t made_by = -1;   // unit
  int32_t last_use = -1;  // unit, or kEnd
  int32_t buffer = -1;
  std::vector<int32_t> uses = {};
};

// Memory that one or several items occupy, one after the other.
struct Buffer {
  enum class Where { kArena, kOutput, kBase, kLate } where = Where::kArena;
  uint32_t base = 0;        // kOutput, kBase
  uint32_t late = 0;        // kLate: index
  int64_t bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
  int64_t offset = 0;       // kArena, once placed
  std::string name = {};
};

// A unit while it is being scheduled.
struct Draft {
  Unit unit;
  Device* device = nullptr;
  const Group* group = nullptr;          // kKernel, kReference, kHost, kAlias
  const GroupChoice* choice = nullptr;   // kKernel
  std::vector<int32_t> inputs;           // items; -1: a constant operand
  std::vector<int32_t> outputs;
  mge_layout from = {}, to = {};         // kReorder
  OwnedCandidate candidate;              // kKernel, kReorder
  mge_prepared prepared = {};            // kKernel, kReorder
  std::vector<mge_in_place> in_place;
  int32_t workspace_buffer = -1;
  uint32_t state_index = 0;
};

class Planner {
 public:
  Planner(const Graph& graph, std::span<const InputType> inputs, const std::shared_ptr<const PlanContext>& context)
      : graph_(graph), inputs_(inputs), context_(context), plan_(std::make_shared<Plan>()) {}

  absl::StatusOr<std::shared_ptr<Plan>> Run() {
    plan_->device = context_->devices.front();
    MGE_RETURN_IF_ERROR(Specialise());
    uses_ = CountUses(graph_);
    MGE_ASSIGN_OR_RETURN(cover_, CoverGraph(graph_, *context_, uses_));
    plan_->dropped_claims = std::move(cover_.dropped_claims);
    MGE_RETURN_IF_ERROR(Choose());
    MGE_RETURN_IF_ERROR(Schedule());
    MGE_RETURN_IF_ERROR(Prepare());
    AssignBuffers();
    PlaceArena();
    MGE_RETURN_IF_ERROR(PackConstants());
    MGE_RETURN_IF_ERROR(Bind());
    MGE_RETURN_IF_ERROR(MakeContinuation());
    BindEnds();
    return std::move(plan_);
  }

 private:
  const Value& value(ValueId v) const { return graph_.value(v); }
  bool Constant(ValueId v) const { return value(v).role == Role::kConstant; }

  // The graph for exactly these inputs, simplified.
  absl::Status Specialise() {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      Value& v = graph_.value(graph_.inputs()[i]);
      v.kind = inputs_[i].kind;
      v.type.dtype = inputs_[i].dtype;
      v.type.has_rank = v.kind == ValueKind::kTensor;
      v.type.dims = inputs_[i].shape;
      v.type.symbols.clear();
    }
    PassContext passes = {.allocator = &plan_->device->host_allocator(), .skip = context_->skip};
    return RunPasses(graph_, passes, &plan_->pass_log);
  }

  absl::Status Choose() {
    std::vector<std::vector<int>> order(cover_.groups.size());
    std::vector<std::vector<double>> cost(cover_.groups.size());
    for (size_t g = 0; g < cover_.groups.size(); ++g) {
      Group& group = cover_.groups[g];
      if (group.kind != Unit::Kind::kKernel) continue;
      mge_problem problem = ProblemOf(group, context_->threads);
      const std::vector<OwnedCandidate>& offered = group.candidates.offered;
      for (const OwnedCandidate& c : offered) cost[g].push_back(c.cost_us < 0 ? kUnknownUs : c.cost_us);
      std::vector<double> measured;
      if (context_->select_mode == MGE_SELECT_PROFILE && offered.size() > 1) {
        MGE_ASSIGN_OR_RETURN(measured, MeasureCandidates(*group.device, problem, offered, *context_));
        for (size_t c = 0; c < measured.size(); ++c) {
          cost[g][c] = measured[c] >= 0 ? measured[c] : kNeverUs;
        }
      }
      MGE_ASSIGN_OR_RETURN(order[g], OrderCandidates(*group.device, problem, offered, context_->select_mode,
                                                     measured.empty() ? nullptr : &measured));
    }
    choices_ = ChooseLayouts(graph_, cover_.groups, order, cost);
    return absl::OkStatus();
  }

  // ---- schedule: units in order, with reorders where layouts differ

  int32_t NewItem(ValueId v, const mge_layout& layout, int32_t unit) {
    items_.push_back({.value = v, .layout = layout, .made_by = unit});
    int32_t id = static_cast<int32_t>(items_.size()) - 1;
    versions_[v].push_back(id);
    return id;
  }

  // The item that holds v in that layout; adds a reorder if there is none yet. -1 for a constant.
  absl::StatusOr<int32_t> Need(ValueId v, const mge_layout& layout, Device& device) {
    if (Constant(v)) return -1;
    for (int32_t id : versions_[v]) {
      if (SameLayout(items_[id].layout, layout)) return id;
    }
    MGE_CHECK(!versions_[v].empty());
    int32_t source = versions_[v].front();
    Draft draft;
    draft.unit.kind = Unit::Kind::kReorder;
    draft.device = &device;
    draft.from = items_[source].layout;
    draft.to = layout;
    ReorderProblem problem(value(v).type, draft.from, draft.to, context_->threads);
    mge_constraints constraints = {sizeof(mge_constraints), 0, context_->require, 0, UINT64_MAX};
    MGE_ASSIGN_OR_RETURN(CandidateList list, EnumerateCandidates(device, *problem.problem(), constraints));
    if (list.offered.empty()) {
      return Fail(errors::kKernelFailed,
                  fmt::format("device {} offers a layout but no reorder for it", device.name()),
                  {.what = fmt::format("{} to {} of {}", LayoutText(draft.from), LayoutText(draft.to),
                                       value(v).type.ToString())});
    }
    MGE_ASSIGN_OR_RETURN(std::vector<int> order, OrderCandidates(device, *problem.problem(), list.offered,
                                                                 MGE_SELECT_HEURISTIC, nullptr));
    draft.candidate = list.offered[order[0]];
    draft.unit.reason = fmt::format("'{}' is {} and wanted {}", value(v).name, LayoutText(draft.from),
                                    LayoutText(draft.to));
    int32_t unit = static_cast<int32_t>(drafts_.size());
    draft.inputs = {source};
    items_[source].uses.push_back(unit);
    draft.outputs = {NewItem(v, layout, unit)};
    int32_t made = draft.outputs[0];
    drafts_.push_back(std::move(draft));
    return made;
  }

  absl::Status Schedule() {
    for (ValueId v : graph_.inputs()) {
      if (!Constant(v)) NewItem(v, PlainLayout(), -1);
    }
    for (size_t g = 0; g < cover_.groups.size(); ++g) {
      const Group& group = cover_.groups[g];
      const GroupChoice& choice = choices_[g];
      Draft draft;
      draft.unit.kind = group.kind;
      draft.unit.fusion = group.claim;
      draft.device = group.device;
      draft.group = &group;
      draft.choice = &choice;
      for (size_t k = 0; k < group.inputs.size(); ++k) {
        MGE_ASSIGN_OR_RETURN(int32_t item, Need(group.inputs[k], choice.inputs[k], *group.device));
        draft.inputs.push_back(item);
      }
      int32_t unit = static_cast<int32_t>(drafts_.size());
      for (int32_t item : draft.inputs) {
        if (item >= 0) items_[item].uses.push_back(unit);
      }
      for (size_t k = 0; k < group.outputs.size(); ++k) {
        draft.outputs.push_back(NewItem(group.outputs[k], choice.outputs[k], unit));
      }
      if (group.kind == Unit::Kind::kKernel) {
        draft.candidate = group.candidates.offered[choice.candidate];
        draft.in_place = draft.candidate.in_place;
        draft.unit.reason = choice.reason;
        for (size_t c = 0; c < group.candidates.offered.size(); ++c) {
          const OwnedCandidate& other = group.candidates.offered[c];
          if (static_cast<int>(c) != choice.candidate) {
            draft.unit.alternatives.push_back({other.id, fmt::format("estimated {:.2f} us", other.cost_us)});
          }
        }
        for (const Refusal& r : group.candidates.refused) draft.unit.alternatives.push_back({r.id, r.reason});
      } else {
        for (const Refusal& r : group.refused) draft.unit.alternatives.push_back({r.id, r.reason});
        draft.unit.reason = group.kind == Unit::Kind::kAlias ? "the same bytes under another shape"
                            : group.kind == Unit::Kind::kReference ? "no backend offers a kernel"
                                                                   : "the core computes it on host values";
      }
      drafts_.push_back(std::move(draft));
    }
    // Outputs are plain, each in memory of its own.
    for (ValueId v : graph_.outputs()) {
      if (Constant(v) || Deferred(v)) continue;
      MGE_ASSIGN_OR_RETURN(int32_t item, Need(v, PlainLayout(), *plan_->device));
      items_[item].uses.push_back(kEnd);
    }
    for (NodeId id : cover_.deferred) {
      auto read = [&](ValueId v) -> absl::Status {
        if (v == kNone || Constant(v) || Deferred(v)) return absl::OkStatus();
        MGE_ASSIGN_OR_RETURN(int32_t item, Need(v, PlainLayout(), *plan_->device));
        items_[item].uses.push_back(kEnd);
        return absl::OkStatus();
      };
      for (ValueId v : graph_.node(id).inputs) MGE_RETURN_IF_ERROR(read(v));
      for (ValueId v : graph_.node(id).captures) MGE_RETURN_IF_ERROR(read(v));
    }
    for (Item& item : items_) {
      for (int32_t u : item.uses) item.last_use = std::max(item.last_use, u);
    }
    return absl::OkStatus();
  }

  bool Deferred(ValueId v) const {
    NodeId producer = value(v).producer;
    return producer != kNone && std::binary_search(deferred_sorted().begin(), deferred_sorted().end(), producer);
  }
  const std::vector<NodeId>& deferred_sorted() const {
    if (deferred_sorted_.size() != cover_.deferred.size()) {
      deferred_sorted_ = cover_.deferred;
      std::sort(deferred_sorted_.begin(), deferred_sorted_.end());
    }
    return deferred_sorted_;
  }

  // ---- kernels

  absl::Status Prepare() {
    for (Draft& d : drafts_) {
      if (d.unit.kind != Unit::Kind::kKernel && d.unit.kind != Unit::Kind::kReorder) continue;
      const mge_kernel_api& api = d.device->kernel_api();
      OwnedCandidate::Abi abi = d.candidate.ToAbi();
      std::unique_ptr<ReorderProblem> reorder;
      mge_problem problem;
      if (d.group) {
        problem = ProblemOf(*d.group, context_->threads);
      } else {
        reorder = std::make_unique<ReorderProblem>(value(items_[d.inputs[0]].value).type, d.from, d.to, context_->threads);
        problem = *reorder->problem();
      }
      d.prepared = {};
      d.prepared.struct_size = sizeof(mge_prepared);
      mge_error error;
      mge_code code = api.prepare(d.device->handle(), &problem, &abi.candidate, &d.prepared, &error);
      if (code != MGE_OK) {
        return AddWhere(StatusOfBackend(code, error, fmt::format("device {}: preparing {}", d.device->name(), d.candidate.id)),
                        Place(d));
      }
      plan_->kernels.push_back(KernelHandle(d.prepared.kernel, KernelDeleter{&api}));
      if (d.prepared.workspace_bytes > d.candidate.workspace) {
        return Fail(errors::kKernelFailed,
                    fmt::format("kernel {} asks for more workspace than it promised", d.candidate.id),
                    {.what = fmt::format("{} bytes, promised {}", d.prepared.workspace_bytes, d.candidate.workspace),
                     .where = Place(d)});
      }
      if (d.prepared.has_state) {
        d.state_index = static_cast<uint32_t>(plan_->states.size());
        plan_->states.push_back(d.prepared.kernel);
        plan_->state_apis.push_back(&api);
      }
    }
    return absl::OkStatus();
  }

  std::string Place(const Draft& d) const {
    if (d.group) return NodePlace(graph_.node(d.group->nodes.front()));
    return fmt::format("reorder of '{}'", value(items_[d.inputs[0]].value).name);
  }

  // ---- memory

  int64_t ItemBytes(const Item& item) const {
    const TensorType& type = value(item.value).type;
    auto bytes = LayoutBytes(item.layout, ElementBytes(type.dtype), type.dims);
    return bytes.ok() ? *bytes : 0;  // judged when the candidate was prepared
  }

  // A tensor of known size and plain memory; anything else that a host step makes is late.
  bool HasSlot(ValueId v) const {
    const Value& x = value(v);
    return x.kind == ValueKind::kTensor && x.type.IsStatic() && x.type.dtype != DType::kString;
  }

  int32_t NewBuffer(Buffer b) {
    buffers_.push_back(std::move(b));
    return static_cast<int32_t>(buffers_.size()) - 1;
  }

  int32_t NewLate(ValueId v) {
    Buffer b;
    b.where = Buffer::Where::kLate;
    b.late = plan_->late_count++;
    b.name = value(v).name;
    return NewBuffer(std::move(b));
  }

  mge_slot SlotOf(const Buffer& b) const {
    MGE_CHECK(b.where != Buffer::Where::kLate);
    if (b.where == Buffer::Where::kArena) return {kArenaBase, 0, static_cast<uint64_t>(b.offset)};
    return {b.base, 0, 0};
  }

  void AssignBuffers() {
    for (ValueId v : graph_.inputs()) {
      if (Constant(v)) continue;
      Item& item = items_[versions_[v].front()];
      if (!HasSlot(v)) {
        item.buffer = NewLate(v);
        continue;
      }
      Buffer b;
      b.where = Buffer::Where::kBase;
      b.base = plan_->base_count++;
      b.name = value(v).name;
      item.buffer = NewBuffer(std::move(b));
    }
    for (size_t u = 0; u < drafts_.size(); ++u) AssignOutputs(static_cast<int32_t>(u));
    GiveOutputsTheirMemory();
    for (size_t u = 0; u < drafts_.size(); ++u) {
      Draft& d = drafts_[u];
      if (d.prepared.workspace_bytes == 0) continue;
      Buffer b;
      b.bytes = static_cast<int64_t>(d.prepared.workspace_bytes);
      b.first = b.last = static_cast<int32_t>(u);
      b.name = "workspace of " + Place(d);
      d.workspace_buffer = NewBuffer(std::move(b));
    }
  }

  void AssignOutputs(int32_t u) {
    Draft& d = drafts_[u];
    if (d.unit.kind == Unit::Kind::kAlias && d.inputs[0] >= 0) {
      Item& out = items_[d.outputs[0]];
      out.buffer = items_[d.inputs[0]].buffer;
      buffers_[out.buffer].last = std::max(buffers_[out.buffer].last, out.last_use);
      return;
    }
    std::vector<int32_t> taken;  // buffers overwritten by this unit
    for (size_t k = 0; k < d.outputs.size(); ++k) {
      Item& out = items_[d.outputs[k]];
      if (!HasSlot(out.value)) {
        out.buffer = NewLate(out.value);
        continue;
      }
      out.buffer = context_->in_place ? TryInPlace(u, k, taken) : -1;
      if (out.buffer >= 0) {
        taken.push_back(out.buffer);
        buffers_[out.buffer].last = std::max(buffers_[out.buffer].last, out.last_use);
        continue;
      }
      Buffer b;
      b.bytes = ItemBytes(out);
      b.first = u;
      b.last = std::max(u, out.last_use);
      b.name = value(out.value).name;
      out.buffer = NewBuffer(std::move(b));
    }
  }

  int32_t TryInPlace(int32_t u, size_t k, const std::vector<int32_t>& taken) {
    Draft& d = drafts_[u];
    std::vector<mge_in_place> pairs = d.in_place;
    if (d.unit.kind == Unit::Kind::kReference) {
      // The evaluator's pairs name slots; operands here are the present ones, in order.
      const Node& node = graph_.node(d.group->nodes[0]);
      for (const InPlacePair& p : node.def->in_place) {
        if (p.output == static_cast<int>(k) && p.input < static_cast<int>(node.inputs.size()) &&
            node.inputs[p.input] != kNone) {
          auto at = std::find(d.group->inputs.begin(), d.group->inputs.end(), node.inputs[p.input]);
          pairs.push_back({static_cast<uint32_t>(k), static_cast<uint32_t>(at - d.group->inputs.begin())});
        }
      }
    }
    for (const mge_in_place& p : pairs) {
      if (p.output != k || p.input >= d.inputs.size() || d.inputs[p.input] < 0) continue;
      int32_t candidate = items_[d.inputs[p.input]].buffer;
      const Buffer& b = buffers_[candidate];
      bool free_after = b.where == Buffer::Where::kArena && b.last == u;
      bool read_once = std::count_if(d.inputs.begin(), d.inputs.end(), [&](int32_t i) {
                         return i >= 0 && items_[i].buffer == candidate;
                       }) == 1;
      bool fits = b.bytes == ItemBytes(items_[d.outputs[k]]);
      if (free_after && read_once && fits && std::find(taken.begin(), taken.end(), candidate) == taken.end()) {
        d.unit.in_place = fmt::format("{} over {}", value(items_[d.outputs[k]].value).name,
                                      value(items_[d.inputs[p.input]].value).name);
        return candidate;
      }
    }
    return -1;
  }

  // A computed output is written straight into the caller's memory; anything else is copied there at the end.
  void GiveOutputsTheirMemory() {
    for (ValueId v : graph_.outputs()) {
      BoundValue out;
      out.name = value(v).name;
      out.kind = value(v).kind;
      out.type = value(v).type;
      bool constant = Constant(v);
      if (constant ? HasSlot(v) : !Deferred(v) && HasSlot(v)) {
        uint32_t base = plan_->base_count++;
        out.location.slot = {base, 0, 0};
        int32_t item = constant ? -1 : PlainItem(v);
        Buffer* b = constant ? nullptr : &buffers_[items_[item].buffer];
        if (b && b->where == Buffer::Where::kArena) {
          b->where = Buffer::Where::kOutput;
          b->base = base;
        } else {
          copies_.push_back({static_cast<int32_t>(plan_->outputs.size()), item, v});
        }
      } else if (constant) {
        out.location = LateConstantOf(v);
      } else if (!Deferred(v)) {
        out.location.kind = Location::Kind::kLate;
        out.location.index = buffers_[items_[PlainItem(v)].buffer].late;
      } else {
        out.location.kind = Location::Kind::kContinuation;
      }
      plan_->outputs.push_back(std::move(out));
    }
  }

  int32_t PlainItem(ValueId v) const {
    for (int32_t id : versions_.at(v)) {
      if (IsPlain(items_[id].layout)) return id;
    }
    return -1;
  }

  void PlaceArena() {
    std::vector<Interval> intervals;
    std::vector<int32_t> placed;
    int32_t end = static_cast<int32_t>(drafts_.size());
    for (size_t i = 0; i < buffers_.size(); ++i) {
      const Buffer& b = buffers_[i];
      if (b.where != Buffer::Where::kArena) continue;
      intervals.push_back({RoundUp(b.bytes), b.first, std::min(std::max(b.last, b.first), end)});
      placed.push_back(static_cast<int32_t>(i));
    }
    Placement placement = PlaceIntervals(intervals);
    for (size_t i = 0; i < placed.size(); ++i) {
      Buffer& b = buffers_[placed[i]];
      b.offset = placement.offsets[i];
      bool workspace = b.name.starts_with("workspace of ");
      plan_->buffers.push_back({b.name, b.bytes, intervals[i].first, intervals[i].last, b.offset, workspace});
    }
    plan_->arena_bytes = placement.total;
    plan_->lower_bound_bytes = placement.lower_bound;
  }

  // ---- constants

  // The base of a constant as it is.
  mge_slot RawConstant(ValueId v) {
    auto [it, fresh] = raw_constants_.try_emplace(v, plan_->base_count);
    if (fresh) {
      plan_->constants.push_back({plan_->base_count++, value(v).constant, false});
      plan_->constant_bytes += value(v).constant.bytes();
    }
    return {it->second, 0, 0};
  }

  absl::Status PackConstants() {
    for (size_t u = 0; u < drafts_.size(); ++u) {
      Draft& d = drafts_[u];
      if (!d.prepared.prepack_bytes) continue;
      const mge_kernel_api& api = d.device->kernel_api();
      for (size_t k = 0; k < d.group->inputs.size(); ++k) {
        uint64_t bytes = d.prepared.prepack_bytes[k];
        ValueId v = d.group->inputs[k];
        if (bytes == 0 || !Constant(v)) continue;
        MGE_ASSIGN_OR_RETURN(Tensor packed, Tensor::Create(DType::kU8, {static_cast<int64_t>(bytes)},
                                                           d.device->host_allocator()));
        mge_error error;
        mge_code code = api.prepack(d.prepared.kernel, static_cast<uint32_t>(k), value(v).constant.data(),
                                    packed.mutable_data(), &error);
        if (code != MGE_OK) {
          return AddWhere(StatusOfBackend(code, error, fmt::format("packing '{}'", value(v).name)), Place(d));
        }
        packed_[{u, k}] = plan_->base_count;
        plan_->packed_bytes += packed.bytes();
        plan_->constants.push_back({plan_->base_count++, std::move(packed), true});
      }
    }
    return absl::OkStatus();
  }

  // ---- binding

  template <typename T>
  T* NewArgs(size_t bytes = sizeof(T)) {
    plan_->args.push_back(std::make_unique<std::byte[]>(bytes));
    return reinterpret_cast<T*>(plan_->args.back().get());
  }

  void AddStep(Device* device, mge_step_fn fn, const void* args, int32_t unit, bool capture_safe) {
    if (plan_->segments.empty() || plan_->segments.back().device != device) {
      plan_->segments.push_back({device, static_cast<int32_t>(plan_->steps.size()), 0, true});
    }
    Segment& s = plan_->segments.back();
    ++s.step_count;
    s.capture_safe &= capture_safe;
    plan_->steps.push_back({fn, args, unit});
  }

  absl::Status Bind() {
    for (size_t u = 0; u < drafts_.size(); ++u) {
      Draft& d = drafts_[u];
      int32_t unit = static_cast<int32_t>(plan_->units.size());
      FillUnit(d);
      switch (d.unit.kind) {
        case Unit::Kind::kKernel:
        case Unit::Kind::kReorder: MGE_RETURN_IF_ERROR(BindKernel(u, unit)); break;
        case Unit::Kind::kReference:
        case Unit::Kind::kHost: MGE_RETURN_IF_ERROR(BindHost(u, unit)); break;
        case Unit::Kind::kAlias:
          if (d.inputs[0] < 0) BindCopy(RawConstant(d.group->inputs[0]), OutputSlot(d, 0), d.outputs[0], d.device, unit);
          break;
        case Unit::Kind::kCopy: break;
      }
      plan_->units.push_back(std::move(d.unit));
    }
    for (const Copy& c : copies_) {
      mge_slot from = c.item < 0 ? RawConstant(c.value) : SlotOf(buffers_[items_[c.item].buffer]);
      Unit unit;
      unit.kind = Unit::Kind::kCopy;
      unit.device = plan_->device->name();
      unit.kernel = "copy";
      unit.reason = "an output that is an input, a constant, or given twice";
      unit.inputs = {value(c.value).name + " : " + value(c.value).type.ToString()};
      unit.outputs = {plan_->outputs[c.output].name};
      auto* args = NewArgs<CopyStepArgs>();
      *args = {from, plan_->outputs[c.output].location.slot,
               static_cast<uint64_t>(Elements(value(c.value).type.dims) * ElementBytes(value(c.value).type.dtype))};
      AddStep(plan_->device, RunCopyStep, args, static_cast<int32_t>(plan_->units.size()), false);
      plan_->units.push_back(std::move(unit));
    }
    return absl::OkStatus();
  }

  mge_slot OutputSlot(const Draft& d, size_t k) const { return SlotOf(buffers_[items_[d.outputs[k]].buffer]); }

  void BindCopy(mge_slot from, mge_slot to, int32_t item, Device* device, int32_t unit) {
    auto* args = NewArgs<CopyStepArgs>();
    *args = {from, to, static_cast<uint64_t>(ItemBytes(items_[item]))};
    AddStep(device, RunCopyStep, args, unit, false);
  }

  absl::Status BindKernel(size_t u, int32_t unit) {
    Draft& d = drafts_[u];
    std::vector<mge_slot> inputs, outputs;
    std::vector<const mge_layout*> in_layouts, out_layouts;
    for (size_t k = 0; k < d.inputs.size(); ++k) {
      if (d.inputs[k] >= 0) {
        inputs.push_back(SlotOf(buffers_[items_[d.inputs[k]].buffer]));
      } else if (auto it = packed_.find({u, k}); it != packed_.end()) {
        inputs.push_back({it->second, 0, 0});
      } else {
        inputs.push_back(RawConstant(d.group->inputs[k]));
      }
      in_layouts.push_back(d.group ? &d.choice->inputs[k] : &d.from);
    }
    for (size_t k = 0; k < d.outputs.size(); ++k) {
      outputs.push_back(OutputSlot(d, k));
      out_layouts.push_back(d.group ? &d.choice->outputs[k] : &d.to);
    }
    mge_slot workspace = {};
    if (d.workspace_buffer >= 0) workspace = SlotOf(buffers_[d.workspace_buffer]);
    mge_binding binding = {sizeof(mge_binding), d.state_index,     inputs.data(),      outputs.data(),
                           workspace,           in_layouts.data(), out_layouts.data()};
    void* args = NewArgs<std::byte>(std::max<size_t>(d.prepared.args_bytes, 1));
    mge_step_fn fn = nullptr;
    mge_error error;
    mge_code code = d.device->kernel_api().bind(d.prepared.kernel, &binding, args, &fn, &error);
    if (code == MGE_OK && !fn) code = MGE_INTERNAL;
    if (code != MGE_OK) {
      return AddWhere(StatusOfBackend(code, error, fmt::format("device {}: binding {}", d.device->name(), d.candidate.id)),
                      Place(d));
    }
    AddStep(d.device, fn, args, unit, (d.candidate.attributes & MGE_KERNEL_CAPTURE_SAFE) != 0);
    return absl::OkStatus();
  }

  Location LateConstantOf(ValueId v) {
    Location location;
    location.kind = Location::Kind::kLate;
    location.index = plan_->late_count++;
    plan_->late_constants.push_back({location.index, value(v).constant});
    return location;
  }

  HostOperand OperandOf(ValueId v) {
    HostOperand o;
    if (v == kNone) return o;
    o.present = true;
    o.kind = value(v).kind;
    o.type = value(v).type;
    if (Constant(v)) {
      if (HasSlot(v)) {
        o.location.slot = RawConstant(v);
      } else {
        o.location = LateConstantOf(v);
      }
      return o;
    }
    Buffer& b = buffers_[items_[PlainItem(v)].buffer];
    if (b.where == Buffer::Where::kLate) {
      o.location.kind = Location::Kind::kLate;
      o.location.index = b.late;
    } else {
      o.location.slot = SlotOf(b);
    }
    return o;
  }

  absl::Status BindHost(size_t u, int32_t unit) {
    Draft& d = drafts_[u];
    auto args = std::make_unique<HostStepArgs>();
    args->node = graph_.node(d.group->nodes[0]);
    for (ValueId v : args->node.inputs) args->inputs.push_back(OperandOf(v));
    for (ValueId v : args->node.outputs) args->outputs.push_back(OperandOf(v));
    for (ValueId v : args->node.captures) args->captures.push_back(OperandOf(v));
    for (const auto& [name, attribute] : args->node.attrs) {
      const GraphPtr* body = std::get_if<GraphPtr>(&attribute);
      if (!body || !*body) continue;
      MGE_ASSIGN_OR_RETURN(BodyProgram program, MakeBody(**body, args->node));
      args->bodies.push_back(std::move(program));
    }
    if (d.unit.kind == Unit::Kind::kReference) ++plan_->reference_steps;
    AddStep(d.device, RunHostStep, args.get(), unit, false);
    plan_->host_args.push_back(std::move(args));
    return absl::OkStatus();
  }

  // The body as a program, with captures that are constants here built in.
  absl::StatusOr<BodyProgram> MakeBody(const Graph& body, const Node& node) {
    BodyProgram out;
    out.body = &body;
    Graph copy = body;
    std::span<const ValueId> captures = CapturesOf(node, body);
    size_t formal = copy.inputs().size() - captures.size();
    std::vector<ValueId> inputs(copy.inputs().begin(), copy.inputs().begin() + static_cast<int64_t>(formal));
    for (size_t k = 0; k < captures.size(); ++k) {
      ValueId inner = copy.inputs()[formal + k];
      if (Constant(captures[k])) {
        Value& v = copy.value(inner);
        v.role = Role::kConstant;
        v.constant = value(captures[k]).constant;
        v.type = value(captures[k]).type;
      } else {
        inputs.push_back(inner);
        out.captures.push_back(static_cast<int>(&captures[k] - node.captures.data()));
      }
    }
    copy.inputs() = std::move(inputs);
    MGE_ASSIGN_OR_RETURN(out.program, Program::Create(std::move(copy), context_));
    return out;
  }

  absl::Status MakeContinuation() {
    if (cover_.deferred.empty()) return absl::OkStatus();
    auto next = std::make_unique<Continuation>();
    Graph rest;
    std::unordered_map<ValueId, ValueId> map;
    auto import = [&](ValueId v) {
      if (v == kNone) return kNone;
      if (auto it = map.find(v); it != map.end()) return it->second;
      const Value& source = value(v);
      ValueId id;
      if (Constant(v)) {
        id = rest.AddConstant(source.name, source.constant);
      } else if (Deferred(v)) {
        Value temporary = {.name = source.name, .kind = source.kind, .type = source.type};
        id = rest.AddValue(std::move(temporary));
      } else {
        id = rest.AddInput(source.name, {});
        rest.value(id).kind = source.kind;
        HostOperand o = OperandOf(v);
        next->inputs.push_back({source.name, source.kind, source.type, o.location});
      }
      map[v] = id;
      return id;
    };
    for (NodeId id : cover_.deferred) {
      Node node = graph_.node(id);
      for (ValueId& v : node.inputs) v = import(v);
      for (ValueId& v : node.captures) v = import(v);
      for (ValueId& v : node.outputs) v = import(v);
      rest.AddNode(std::move(node));
    }
    uint32_t outputs = 0;
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      if (!Deferred(graph_.outputs()[i])) continue;
      rest.outputs().push_back(map.at(graph_.outputs()[i]));
      plan_->outputs[i].location.index = outputs++;
    }
    MGE_ASSIGN_OR_RETURN(next->program, Program::Create(std::move(rest), context_));
    plan_->continuation = std::move(next);
    return absl::OkStatus();
  }

  void BindEnds() {
    for (ValueId v : graph_.inputs()) {
      BoundValue in;
      in.name = value(v).name;
      in.kind = value(v).kind;
      in.type = value(v).type;
      const Buffer& b = buffers_[items_[versions_.at(v).front()].buffer];
      if (b.where == Buffer::Where::kLate) {
        in.location.kind = Location::Kind::kLate;
        in.location.index = b.late;
      } else {
        in.location.slot = {b.base, 0, 0};
      }
      plan_->inputs.push_back(std::move(in));
    }
  }

  // The record for --why.
  void FillUnit(Draft& d) {
    Unit& unit = d.unit;
    unit.device = d.device->name();
    auto text = [&](ValueId v, const mge_layout& layout) {
      std::string out = fmt::format("{} : {}", value(v).name, value(v).type.ToString());
      if (!IsPlain(layout)) out += " " + LayoutText(layout);
      return out;
    };
    if (d.group) {
      for (NodeId id : d.group->nodes) {
        unit.nodes.push_back(graph_.node(id).name);
        unit.ops.push_back(graph_.node(id).op);
      }
      for (size_t k = 0; k < d.group->inputs.size(); ++k) {
        unit.inputs.push_back(text(d.group->inputs[k], d.choice->inputs[k]));
      }
    } else {
      unit.inputs.push_back(text(items_[d.inputs[0]].value, d.from));
    }
    for (int32_t item : d.outputs) unit.outputs.push_back(text(items_[item].value, items_[item].layout));
    if (d.unit.kind == Unit::Kind::kKernel || d.unit.kind == Unit::Kind::kReorder) {
      unit.kernel = d.candidate.id;
      unit.attributes = d.candidate.attributes;
      unit.cost_us = d.candidate.cost_us;
      unit.workspace_bytes = static_cast<int64_t>(d.prepared.workspace_bytes);
    } else {
      unit.kernel = d.unit.kind == Unit::Kind::kAlias ? "view" : "reference";
      if (d.unit.kind == Unit::Kind::kReference) unit.attributes = MGE_KERNEL_REFERENCE | MGE_KERNEL_DETERMINISTIC;
    }
  }

  struct Copy {
    int32_t output;
    int32_t item;  // -1: the constant `value`
    ValueId value;
  };

  Graph graph_;
  std::span<const InputType> inputs_;
  std::shared_ptr<const PlanContext> context_;
  std::shared_ptr<Plan> plan_;
  std::vector<int32_t> uses_;
  Cover cover_;
  mutable std::vector<NodeId> deferred_sorted_;
  std::vector<GroupChoice> choices_;
  std::vector<Draft> drafts_;
  std::vector<Item> items_;
  std::unordered_map<ValueId, std::vector<int32_t>> versions_;  // items of a value, the made one first
  std::vector<Buffer> buffers_;
  std::vector<Copy> copies_;
  std::unordered_map<ValueId, uint32_t> raw_constants_;
  std::map<std::pair<size_t, size_t>, uint32_t> packed_;  // (draft, operand) -> base
};

}  // namespace

absl::StatusOr<std::shared_ptr<Plan>> BuildPlan(const Graph& graph, std::span<const InputType> inputs,
                                                const std::shared_ptr<const PlanContext>& context) {
  return Planner(graph, inputs, context).Run();
}

}  // namespace mge
