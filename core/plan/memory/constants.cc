// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/constants.h"

#include <algorithm>

#include "core/plan/memory/memory_capacity.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {
namespace {

class Packer {
 public:
  Packer(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels, const MemoryPlan& memory,
         const PlanContext& context, const StopControl* stop, const WhenOver& when_over)
      : graph_(graph),
        schedule_(schedule),
        kernels_(kernels),
        memory_(memory),
        context_(context),
        stop_(stop),
        when_over_(when_over) {
    out_.base_count = memory.base_count;
  }

  absl::StatusOr<PlanConstants> Run() {
    MGE_RETURN_IF_ERROR(AddPacked());
    AddPlain();
    return std::move(out_);
  }

 private:
  const Tensor& TensorOf(ValueId v) const { return graph_.value(v).constant; }

  absl::Status AddPacked() {
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      const PlannedUnit& unit = schedule_.units[u];
      const uint64_t* bytes = kernels_.units[u].prepared.prepack_bytes;
      if (!unit.group || !bytes) continue;
      MGE_RETURN_IF_ERROR(CheckStop(stop_));
      for (size_t k = 0; k < unit.group->inputs.size(); ++k) {
        if (!IsConstantValue(graph_, unit.group->inputs[k]) || bytes[k] == 0) continue;
        MGE_ASSIGN_OR_RETURN(mge_slot slot, PackedConstant(unit, kernels_.units[u].prepared, k));
        out_.packed[{u, k}] = slot;
      }
    }
    return absl::OkStatus();
  }

  // Adds the constants that steps and outputs read in their plain form.
  void AddPlain() {
    for (size_t u = 0; u < schedule_.units.size(); ++u) {
      const PlannedUnit& unit = schedule_.units[u];
      if (!unit.group) continue;
      const bool on_device = unit.kind == Unit::Kind::kKernel || unit.kind == Unit::Kind::kCollective || unit.group->target >= 0;
      const int32_t space = on_device ? schedule_.SpaceOf(*unit.device) : kHostSpace;
      for (size_t k = 0; k < unit.group->inputs.size(); ++k) {
        const ValueId v = unit.group->inputs[k];
        if (IsConstantValue(graph_, v) && HasSlot(graph_.value(v)) && !out_.packed.contains({u, k})) AddPlain(v, space);
      }
    }
    for (const OutputCopy& copy : memory_.output_copies) {
      if (copy.item < 0) AddPlain(copy.value, kHostSpace);
    }
  }

  void AddPlain(ValueId v, int32_t space) {
    auto [at, is_new] = out_.plain.try_emplace({v, space});
    if (!is_new) return;
    const Tensor& tensor = TensorOf(v);
    if (space != kHostSpace && DeviceConstants::IsShared(static_cast<uint64_t>(tensor.bytes()), false, false)) {
      Device& device = *schedule_.spaces[space].device;
      at->second = AddShared(device, {&device, tensor.data(), tensor.bytes()}, tensor, tensor, nullptr);
    } else {
      at->second = Add(tensor, space, false);
    }
  }

  // Adds a constant and returns its slot. `packed`: a kernel packed it from a constant of the model.
  mge_slot Add(Tensor tensor, int32_t space, bool packed) {
    if (space == kHostSpace) {
      (packed ? out_.packed_bytes : out_.plain_bytes) += tensor.bytes();
      out_.host.push_back({out_.base_count++, std::move(tensor), packed});
      return {out_.host.back().base, 0, 0};
    }
    Device* device = schedule_.spaces[space].device;
    auto& all = out_.device;
    const auto bytes = static_cast<int64_t>(DeviceConstants::Aligned(static_cast<uint64_t>(tensor.bytes())));
    auto at = std::find_if(all.begin(), all.end(), [&](const auto& c) {
      return &c->device() == device && !c->shared() && c->bytes() <= LargestPiece(*device) - bytes;
    });
    if (at == all.end()) at = all.insert(at, std::make_unique<DeviceConstants>(device, out_.base_count++));
    const uint64_t offset = (*at)->Add(std::move(tensor));
    return {(*at)->base(), 0, offset};
  }

  // Adds a constant that plans share and returns its slot. It has its own base. If `block` is not nullptr, the constant is on
  // the device already, else UploadConstants() uploads `tensor`.
  mge_slot AddShared(Device& device, ConstantKey key, const Tensor& source, Tensor tensor,
                     std::shared_ptr<ConstantBlock> block) {
    auto constants = std::make_unique<DeviceConstants>(&device, out_.base_count++);
    constants->AddShared(std::move(key), source, std::move(tensor), std::move(block));
    out_.device.push_back(std::move(constants));
    return {out_.device.back()->base(), 0, 0};
  }

  // Packs operand k with the kernel of a unit. If a budget refuses the memory, tries again as long as when_over_ allows it.
  absl::StatusOr<Tensor> Pack(const PlannedUnit& unit, const mge_prepared& prepared, size_t k) {
    const Value& value = graph_.value(unit.group->inputs[k]);
    const auto bytes = static_cast<int64_t>(prepared.prepack_bytes[k]);
    auto create = [&] { return Tensor::Create(DType::kU8, {bytes}, unit.device->host_allocator()); };
    absl::StatusOr<Tensor> packed = create();
    while (!packed.ok()) {
      absl::Status over = when_over_(packed.status(), HostMemoryOf(context_, *unit.device).budget());
      if (!over.ok()) {
        return AddWhere(std::move(over),
                        fmt::format("{}, the form of '{}' that kernel {} of device {} asks for",
                                    PlaceOf(graph_, schedule_, unit), value.name, unit.candidate.id, unit.device->name()));
      }
      packed = create();
    }
    mge_error error;
    mge_code code = unit.device->kernel_api().prepack(prepared.kernel, static_cast<uint32_t>(k), value.constant.data(),
                                                      packed->mutable_data(), &error);
    if (code != MGE_OK) {
      return AddWhere(StatusOfBackend(code, error, fmt::format("packing '{}'", value.name)),
                      PlaceOf(graph_, schedule_, unit));
    }
    return packed;
  }

  // Returns the slot of the packed form of operand k. Uses the form of this plan or of another plan of the session, if there
  // is one.
  absl::StatusOr<mge_slot> PackedConstant(const PlannedUnit& unit, const mge_prepared& prepared, size_t k) {
    const Tensor& source = TensorOf(unit.group->inputs[k]);
    ConstantKey key = PackedKey(graph_, unit, prepared, k);
    const bool named = !key.form.empty();
    if (auto known = forms_.find(key); named && known != forms_.end()) return known->second;
    SharedConstants* shared = context_.shared_constants.get();
    const int32_t space = schedule_.SpaceOf(*unit.device);
    mge_slot slot = {};
    if (space != kHostSpace) {
      const bool own = DeviceConstants::IsShared(static_cast<uint64_t>(key.bytes), true, named);
      std::shared_ptr<ConstantBlock> block = own && shared ? shared->Block(key, source) : nullptr;
      Tensor packed;
      if (!block) {
        MGE_ASSIGN_OR_RETURN(packed, Pack(unit, prepared, k));
      }
      slot = own ? AddShared(*unit.device, key, source, std::move(packed), std::move(block))
                 : Add(std::move(packed), space, true);
    } else {
      Tensor packed = shared && named ? shared->Packed(key, source) : Tensor();
      if (!packed.defined()) {
        MGE_ASSIGN_OR_RETURN(packed, Pack(unit, prepared, k));
        if (!named) key.form = unit.candidate.id;
        if (shared) packed = shared->Add(key, source, std::move(packed));
      }
      slot = Add(std::move(packed), space, true);
    }
    if (named) forms_[std::move(key)] = slot;
    return slot;
  }

  const Graph& graph_;
  const Schedule& schedule_;
  const PreparedKernels& kernels_;
  const MemoryPlan& memory_;
  const PlanContext& context_;
  const StopControl* stop_;
  const WhenOver& when_over_;
  std::map<ConstantKey, mge_slot> forms_;  // packed constants whose form has a name
  PlanConstants out_;
};

uint64_t LiveBytes(const PlanContext& context) {
  uint64_t bytes = 0;
  for (Device* device : context.devices) bytes += device->LiveBytes();
  return bytes;
}

}  // namespace

ConstantKey PackedKey(const Graph& graph, const PlannedUnit& unit, const mge_prepared& prepared, size_t k) {
  const mge_text* forms = prepared.prepack_forms;
  return {unit.device, graph.value(unit.group->inputs[k]).constant.data(), static_cast<int64_t>(prepared.prepack_bytes[k]),
          forms ? CopyText(forms[k]) : std::string()};
}

absl::StatusOr<PlanConstants> PackConstants(const Graph& graph, const Schedule& schedule, const PreparedKernels& kernels,
                                            const MemoryPlan& memory, const PlanContext& context, const StopControl* stop,
                                            const WhenOver& when_over) {
  const uint64_t before = LiveBytes(context);
  MGE_ASSIGN_OR_RETURN(PlanConstants out, Packer(graph, schedule, kernels, memory, context, stop, when_over).Run());
  out.measured_bytes = static_cast<int64_t>(LiveBytes(context) - before);
  return out;
}

absl::StatusOr<PlanConstants> UploadConstants(PlanConstants constants, const PlanContext& context, const StopControl* stop,
                                              const WhenOver& when_over) {
  const uint64_t before = LiveBytes(context);
  for (const auto& c : constants.device) constants.uploaded_bytes += c->bytes();
  MGE_RETURN_IF_ERROR(UploadAll(constants.device, context.shared_constants.get(), stop, when_over));
  constants.measured_bytes += static_cast<int64_t>(LiveBytes(context) - before);
  return constants;
}

}  // namespace mge
