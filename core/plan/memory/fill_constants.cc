// SPDX-License-Identifier: Apache-2.0
#include "core/plan/memory/fill_constants.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/lazy_bytes.h"
#include "core/plan/memory/host_blocks.h"
#include "core/plan/memory/memory_capacity.h"
#include "core/plan/memory/source_buffers.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/sync_queue.h"
#include "fmt/format.h"

namespace mge {
namespace {

// The limit of the packed forms that are made at one time: of the host copies for devices, and of the memory that forms and
// their sources need together.
constexpr int64_t kBatchBytes = 8 << 20;

absl::Status AtUpload(const Device& device, absl::Status status) {
  return status.ok() ? status : AddWhere(std::move(status), fmt::format("device {}, uploading constants", device.name()));
}

class Filler {
 public:
  Filler(const Graph& graph, const Schedule& schedule, SharedConstants& table, const PlanContext& context,
         const StopControl* stop, const WhenOver& when_over, uint64_t bytes)
      : graph_(graph),
        schedule_(schedule),
        table_(table),
        context_(context),
        stop_(stop),
        when_over_(when_over),
        progress_(context.progress.get(), "weights", bytes) {}

  absl::Status Run(std::span<NewConstant> all) {
    for (const NewConstant& c : all) {
      if (!c.target) BlocksOf(HostOf(c)).Expect(c.key.bytes);
      if (!c.target || !c.unit) continue;
      uint64_t& scratch = packers_[&c.target->device()].scratch_bytes;
      scratch = std::max(scratch, static_cast<uint64_t>(c.value->constant.bytes()));
    }
    // The largest come first: the memory of a source adds to that of the forms that exist already.
    std::vector<NewConstant*> order;
    for (NewConstant& c : all) order.push_back(&c);
    std::stable_sort(order.begin(), order.end(),
                     [](const NewConstant* a, const NewConstant* b) { return a->key.bytes > b->key.bytes; });
    for (NewConstant* c : order) MGE_RETURN_IF_ERROR(Fill(*c));
    MGE_RETURN_IF_ERROR(Flush());
    for (auto& [device, queue] : copies_) MGE_RETURN_IF_ERROR(AtUpload(*device, queue->Finish(stop_)));
    for (auto& [device, packer] : packers_) {
      if (packer.queue) MGE_RETURN_IF_ERROR(AtUpload(*device, packer.queue->Finish(stop_)));
    }
    for (NewConstant& c : all) {
      if (c.target && c.shared) table_.Add(c.key, c.value->constant, {c.target->block(), c.offset});
    }
    return absl::OkStatus();
  }

 private:
  // The queue and the scratch block with which one device packs constants.
  struct Packer {
    uint64_t scratch_bytes = 0;  // the largest source; 0: packs on the host only
    std::unique_ptr<SyncQueue> queue;
    std::shared_ptr<ConstantBlock> scratch;
  };

  static char* AddressOf(const NewConstant& c) { return static_cast<char*>(c.target->address()) + c.offset; }

  absl::Status Fill(NewConstant& c) {
    MGE_RETURN_IF_ERROR(CheckStop(stop_));
    if (c.key.bytes == 0) return absl::OkStatus();
    if (c.target && !c.unit) {
      MGE_ASSIGN_OR_RETURN(const Tensor held, c.value->constant.Held());
      progress_.Advance(static_cast<uint64_t>(c.key.bytes));
      return Upload(c, held);
    }
    if (c.target) {
      MGE_ASSIGN_OR_RETURN(const bool packed, PackOnDevice(c));
      if (packed) progress_.Advance(static_cast<uint64_t>(c.key.bytes));
      if (packed) return absl::OkStatus();
    }
    if (batch_bytes_ > kBatchBytes - c.key.bytes) MGE_RETURN_IF_ERROR(Flush());
    batch_.push_back(&c);
    batch_bytes_ += c.key.bytes;
    return absl::OkStatus();
  }

  absl::Status Upload(const NewConstant& c, const Tensor& bytes) {
    Device& device = c.target->device();
    std::unique_ptr<SyncQueue>& queue = copies_[&device];
    if (!queue) {
      MGE_ASSIGN_OR_RETURN(queue, SyncQueue::Create(device, MGE_QUEUE_COPY_IN));
    }
    return UploadOn(*queue, c, AddressOf(c), bytes);
  }

  absl::Status UploadOn(SyncQueue& queue, const NewConstant& c, void* to, const Tensor& bytes) {
    Device& device = c.target->device();
    queue.Uses(c.target->block());
    return AtUpload(device, Insist(when_over_, device.budget(MGE_MEMORY_PINNED), [&] {
                      return queue.Upload(to, bytes.data(), static_cast<size_t>(bytes.bytes()), stop_);
                    }));
  }

  // Packs a constant on a queue of its device. Returns false if the backend cannot, or if there is no memory for the scratch
  // block. Planning does not count that block, so it must not displace anything.
  absl::StatusOr<bool> PackOnDevice(const NewConstant& c) {
    Device& device = c.target->device();
    const mge_kernel_api& api = device.kernel_api();
    Packer& packer = packers_[&device];
    const std::pair<const Device*, std::string> kernel(&device, c.unit->candidate.id);
    if (!api.prepack_on || packer.scratch_bytes == 0 || context_.caches->placing.packs_on_host.contains(kernel))
      return false;
    if (!packer.scratch) {
      absl::StatusOr<std::shared_ptr<ConstantBlock>> scratch = ScratchOf(device, packer.scratch_bytes);
      if (!scratch.ok()) {
        packer.scratch_bytes = 0;
        return false;
      }
      MGE_ASSIGN_OR_RETURN(packer.queue, SyncQueue::Create(device, MGE_QUEUE_COMPUTE));
      packer.scratch = *std::move(scratch);
      packer.queue->Uses(packer.scratch);
    }
    void* const from = packer.scratch->memory().address;
    MGE_ASSIGN_OR_RETURN(const Tensor held, c.value->constant.Held());
    MGE_RETURN_IF_ERROR(UploadOn(*packer.queue, c, from, held));
    mge_error error;
    const mge_code code = CallBackend(error, [&](mge_error* e) {
      return api.prepack_on(c.kernel, c.operand, packer.queue->handle(), from, AddressOf(c), e);
    });
    if (code == MGE_UNIMPLEMENTED) context_.caches->placing.packs_on_host.insert(kernel);
    if (code == MGE_OK || code == MGE_UNIMPLEMENTED) return code == MGE_OK;
    return PackingFailed(c, code, error);
  }

  static absl::StatusOr<std::shared_ptr<ConstantBlock>> ScratchOf(Device& device, uint64_t bytes) {
    MGE_ASSIGN_OR_RETURN(const MemoryCapacity capacity, CapacityOf(device));
    const uint64_t held = device.LiveBytes();
    if (held > capacity.bytes || bytes > capacity.bytes - held || static_cast<int64_t>(bytes) > LargestPiece(device)) {
      return absl::ResourceExhaustedError("no memory to pack in");
    }
    return ConstantBlock::Acquire(device, bytes, true);
  }

  // Packs the batch on the host, and uploads the forms that belong to devices.
  absl::Status Flush() {
    for (NewConstant* c : batch_) MGE_RETURN_IF_ERROR(Allocate(*c));
    MGE_RETURN_IF_ERROR(ForEachOnPool(context_, batch_.size(), [&](uint64_t i) {
      MGE_RETURN_IF_ERROR(CheckStop(stop_));
      MGE_RETURN_IF_ERROR(PackOnHost(*batch_[i]));
      progress_.Advance(static_cast<uint64_t>(batch_[i]->key.bytes));
      return absl::OkStatus();
    }));
    for (NewConstant* c : batch_) {
      const Tensor& source = c->value->constant;
      if (source.lazy()) source.lazy()->Unpin();
      if (c->target) {
        MGE_RETURN_IF_ERROR(Upload(*c, c->packed));
        c->packed = {};
      } else {
        ConstantKey key = c->key;
        if (!c->shared) key.form = c->unit->candidate.id;  // a plain constant is always shared
        c->packed = table_.AddPacked(key, source, std::move(c->packed));
      }
    }
    batch_.clear();
    batch_bytes_ = 0;
    return absl::OkStatus();
  }

  // The device in whose host memory a constant is written.
  Device& HostOf(const NewConstant& c) const { return c.unit ? *c.unit->device : HostStepDevice(context_); }

  HostBlocks& BlocksOf(Device& device) { return blocks_.try_emplace(&device, device).first->second; }

  // Memory of the host's constants comes from blocks. The forms for devices are freed one by one, once they are uploaded.
  absl::Status Allocate(NewConstant& c) {
    Device& device = HostOf(c);
    const Budget& budget = HostMemoryOf(context_, device).budget();
    absl::Status status = Insist(when_over_, budget, [&]() -> absl::Status {
      HostBlocks single(device);
      MGE_ASSIGN_OR_RETURN(c.packed, (c.target ? single : BlocksOf(device)).Allocate(c.key.bytes));
      return absl::OkStatus();
    });
    if (status.ok() || !c.unit) return status;
    return AddWhere(std::move(status),
                    fmt::format("{}, the form of '{}' that kernel {} of device {} asks for",
                                PlaceOf(graph_, schedule_, *c.unit), c.value->name, c.unit->candidate.id, device.name()));
  }

  // Writes the packed form, or the plain form if no kernel packs it.
  absl::Status PackOnHost(NewConstant& c) {
    if (!c.unit) {
      c.value->constant.lazy()->Unpin();  // before the second copy exists
      return c.value->constant.lazy()->ReadInto(
          {static_cast<std::byte*>(c.packed.mutable_data()), static_cast<size_t>(c.packed.bytes())});
    }
    return sources_.With(c.value->constant, [&](const void* source) {
      mge_error error;
      const mge_code code = CallBackend(error, [&](mge_error* e) {
        return c.unit->device->kernel_api().prepack(c.kernel, c.operand, source, c.packed.mutable_data(), e);
      });
      return code == MGE_OK ? absl::OkStatus() : PackingFailed(c, code, error);
    });
  }

  absl::Status PackingFailed(const NewConstant& c, mge_code code, const mge_error& error) const {
    return AddWhere(StatusOfBackend(code, error, fmt::format("packing '{}'", c.value->name)),
                    PlaceOf(graph_, schedule_, *c.unit));
  }

  const Graph& graph_;
  const Schedule& schedule_;
  SharedConstants& table_;
  const PlanContext& context_;
  const StopControl* stop_;
  const WhenOver& when_over_;
  ProgressOfStage progress_;  // in bytes
  std::vector<NewConstant*> batch_;
  int64_t batch_bytes_ = 0;
  std::map<Device*, HostBlocks> blocks_;
  SourceBuffers sources_;
  std::map<Device*, std::unique_ptr<SyncQueue>> copies_;
  std::map<Device*, Packer> packers_;
};

}  // namespace

absl::Status FillConstants(const Graph& graph, const Schedule& schedule, std::span<NewConstant> all, SharedConstants& table,
                           const PlanContext& context, const StopControl* stop, const WhenOver& when_over) {
  uint64_t bytes = 0;
  for (const NewConstant& c : all) bytes += static_cast<uint64_t>(c.key.bytes);
  return Filler(graph, schedule, table, context, stop, when_over, bytes).Run(all);
}

}  // namespace mge
