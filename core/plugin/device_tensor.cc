// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/device_tensor.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/plugin/ask.h"
#include "core/plugin/sync_queue.h"
#include "fmt/format.h"
#include "mge/plugin/structs.hpp"

namespace mge {
namespace {

std::string TypeText(DType dtype, const Shape& shape) { return fmt::format("{}{}", DTypeName(dtype), ShapeText(shape)); }
std::string TypeText(const Tensor& t) { return TypeText(t.dtype(), t.shape()); }

// Fails if tensors of this type and class cannot be on the device. Opens the device.
absl::Status CheckKind(Device& device, int32_t memory_class, DType dtype) {
  if (dtype == DType::kString || dtype == DType::kUndefined) {
    return Fail(errors::kInvalidTensor,
                fmt::format("a tensor of {} cannot lie on device {}", DTypeName(dtype), device.name()),
                {.what = "its elements are not plain bytes", .fix = "create it in host memory"});
  }
  MGE_RETURN_IF_ERROR(device.Open());
  if (memory_class == MGE_MEMORY_PINNED && !device.queue_api()) {
    return Fail(errors::kDeviceUnusable, fmt::format("device {} has no page-locked memory", device.name()),
                {.what = "it has no queues and works in plain host memory", .fix = "create the tensor in host memory"});
  }
  return absl::OkStatus();
}

// Returns the functions by which the backend uses handles of its driver, or nullptr.
const mge_memory_handles_api* HandlesOf(const Backend& backend) {
  const void* table = nullptr;
  mge_error ignored;
  CallBackend(ignored, [&](mge_error*) {
    if (auto extension = backend.plugin().extension) table = extension(MGE_MEMORY_HANDLES_EXTENSION, 1);
    return MGE_OK;
  });
  const auto* api = static_cast<const mge_memory_handles_api*>(table);
  return api && Covers(api, &mge_memory_handles_api::unwrap) && api->wrap && api->unwrap ? api : nullptr;
}

// Copies within a device, or between it and memory that its queues can access.
absl::Status CopyOnQueue(Device& device, void* to, const void* from, size_t bytes) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<SyncQueue> queue, SyncQueue::Create(device));
  MGE_RETURN_IF_ERROR(QueryDevice(
      device, "copying", [&](mge_error* e) { return device.queue_api()->copy(queue->handle(), to, from, bytes, e); }));
  return queue->Finish();
}

// Copies between the memories of two devices in pieces, so that a large tensor takes little memory of the host.
absl::Status CopyThroughHost(Device& source, const char* from, Device& target, char* to, size_t bytes) {
  constexpr size_t kPiece = 4 << 20;
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<SyncQueue> out, SyncQueue::Create(source, MGE_QUEUE_COPY_OUT));
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<SyncQueue> in, SyncQueue::Create(target, MGE_QUEUE_COPY_IN));
  std::vector<std::byte> piece(std::min(bytes, kPiece));
  for (size_t done = 0, part; done < bytes; done += part) {
    part = std::min(bytes - done, piece.size());
    MGE_RETURN_IF_ERROR(out->Download(piece.data(), from + done, part));
    MGE_RETURN_IF_ERROR(in->Upload(to + done, piece.data(), part));
  }
  return in->Finish();
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  // A forked child must not use the parent's driver. The parent frees the memory.
  if (!device_->Orphaned()) {
    if (pool_) pool_->Release(reservation_);
    if (handles_) handles_->unwrap(device_->handle(), &slab_);
  }
  if (release_) release_();
}

Tensor DeviceMemory::View(std::unique_ptr<DeviceMemory> memory, DType dtype, Shape shape) {
  const std::shared_ptr<const DeviceMemory> owner = std::move(memory);
  return Tensor::View(dtype, std::move(shape), owner->address_, owner, owner.get());
}

absl::StatusOr<Tensor> DeviceMemory::Create(Device& device, int32_t memory_class, DType dtype, Shape shape,
                                            std::shared_ptr<const void> keep) {
  MGE_RETURN_IF_ERROR(CheckKind(device, memory_class, dtype));
  MGE_ASSIGN_OR_RETURN(const int64_t bytes, NumBytes(dtype, shape));
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(device, memory_class));
  memory->keep_ = std::move(keep);
  if (!device.queue_api()) {
    MGE_ASSIGN_OR_RETURN(memory->host_, device.host_allocator().Allocate(bytes));
    memory->address_ = memory->queue_address_ = memory->host_.get();
    return View(std::move(memory), dtype, std::move(shape));
  }
  MGE_ASSIGN_OR_RETURN(Pool * pool, device.PoolOf(memory_class));
  MGE_ASSIGN_OR_RETURN(memory->reservation_, pool->Acquire(static_cast<uint64_t>(bytes), device.BufferAlignment()));
  memory->pool_ = pool;
  memory->queue_address_ = memory->reservation_.address;
  memory->address_ = memory->reservation_.address;
  if (memory_class == MGE_MEMORY_PINNED && bytes) {
    MGE_RETURN_IF_ERROR(CheckHostReaches(device, memory->reservation_));
    memory->address_ = memory->reservation_.host_address;
  }
  return View(std::move(memory), dtype, std::move(shape));
}

absl::StatusOr<Tensor> DeviceMemory::Wrap(Device& device, int32_t memory_class, DType dtype, Shape shape, void* address,
                                          uint64_t bytes, std::function<void()> release, std::shared_ptr<const void> keep) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(device, memory_class));
  memory->release_ = std::move(release);
  memory->keep_ = std::move(keep);
  memory->address_ = memory->queue_address_ = address;
  MGE_RETURN_IF_ERROR(CheckKind(device, memory_class, dtype));
  return ViewOfCallers(std::move(memory), dtype, std::move(shape), bytes);
}

absl::StatusOr<Tensor> DeviceMemory::WrapHandle(Device& device, DType dtype, Shape shape, void* handle, uint64_t offset,
                                                uint64_t bytes, std::function<void()> release,
                                                std::shared_ptr<const void> keep) {
  std::unique_ptr<DeviceMemory> memory(new DeviceMemory(device, MGE_MEMORY_DEVICE));
  memory->release_ = std::move(release);
  memory->keep_ = std::move(keep);
  MGE_RETURN_IF_ERROR(CheckKind(device, MGE_MEMORY_DEVICE, dtype));
  const mge_memory_handles_api* handles = HandlesOf(device.backend());
  if (!handles) {
    return Fail(errors::kDeviceUnusable, fmt::format("device {} cannot use memory by its handle", device.name()),
                {.what = fmt::format("backend '{}' does not offer the extension " MGE_MEMORY_HANDLES_EXTENSION,
                                     device.backend().name()),
                 .fix = "wrap an address that is valid on the device, or copy the elements to a tensor"});
  }
  if (offset > UINT64_MAX - bytes) {
    return Fail(errors::kInvalidTensor, fmt::format("offset {} and {} bytes are larger than any memory", offset, bytes));
  }
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  MGE_RETURN_IF_ERROR(QueryDevice(device, "wrapping memory by its handle", [&](mge_error* e) {
    return handles->wrap(device.handle(), handle, offset + bytes, &slab, e);
  }));
  memory->handles_ = handles;
  memory->slab_ = slab;
  if (!slab.address || reinterpret_cast<uintptr_t>(slab.address) % std::max<uint64_t>(device.BufferAlignment(), 1)) {
    return Fail(errors::kKernelFailed,
                fmt::format("backend '{}' gave a wrong address for a handle", device.backend().name()),
                {.what = fmt::format("address {} is null or not a multiple of {}", slab.address, device.BufferAlignment()),
                 .fix = "report this to the author of the backend"});
  }
  memory->address_ = memory->queue_address_ = static_cast<char*>(slab.address) + offset;
  return ViewOfCallers(std::move(memory), dtype, std::move(shape), bytes);
}

absl::StatusOr<Tensor> DeviceMemory::ViewOfCallers(std::unique_ptr<DeviceMemory> memory, DType dtype, Shape shape,
                                                   uint64_t bytes) {
  const Device& device = *memory->device_;
  const void* const address = memory->queue_address_;
  MGE_ASSIGN_OR_RETURN(const int64_t expected, NumBytes(dtype, shape));
  if (static_cast<uint64_t>(expected) != bytes) {
    return Fail(errors::kInvalidTensor, "the size of the memory does not match the shape",
                {.what = fmt::format("{} needs {} bytes, got {}", TypeText(dtype, shape), expected, bytes)});
  }
  const uint64_t alignment = device.queue_api() ? device.BufferAlignment() : static_cast<uint64_t>(ElementBytes(dtype));
  if (alignment && reinterpret_cast<uintptr_t>(address) % alignment) {
    return Fail(errors::kInvalidTensor, fmt::format("the memory is not aligned for device {}", device.name()),
                {.what = fmt::format("address {} is not a multiple of {}", address, alignment),
                 .fix = fmt::format("give memory that is aligned to {} bytes, or copy it to a tensor", alignment)});
  }
  return View(std::move(memory), dtype, std::move(shape));
}

absl::Status CopyTensor(const Tensor& from, Tensor& to) {
  if (from.dtype() != to.dtype() || from.shape() != to.shape()) {
    return Fail(errors::kInvalidTensor, "a tensor cannot be copied to one of another type or shape",
                {.what = fmt::format("the source is {}, the destination {}", TypeText(from), TypeText(to))});
  }
  const auto bytes = static_cast<size_t>(from.bytes());
  if (from.dtype() == DType::kString) {
    std::copy(from.Data<std::string>().begin(), from.Data<std::string>().end(), to.MutableData<std::string>().begin());
    return absl::OkStatus();
  }
  const DeviceMemory *source = DeviceMemory::Of(from), *target = DeviceMemory::Of(to);
  // Memory of two devices may have equal addresses.
  const bool same = source && target ? &source->device() == &target->device() : source == target;
  if (bytes == 0 || (same && from.data() == to.data())) return absl::OkStatus();
  const bool from_host = DeviceMemory::OnHost(from), to_host = DeviceMemory::OnHost(to);
  if (from_host && to_host) {
    std::memmove(to.mutable_data(), from.data(), bytes);
    return absl::OkStatus();
  }
  if (from_host || to_host) {
    const DeviceMemory &here = from_host ? *target : *source, *other = from_host ? source : target;
    Device& device = here.device();
    if (other && other->pinned() && &other->device().backend() == &device.backend()) {
      void* destination = to_host ? target->QueueAddress(to.data()) : to.mutable_data();
      return CopyOnQueue(device, destination, from_host ? source->QueueAddress(from.data()) : from.data(), bytes);
    }
    MGE_ASSIGN_OR_RETURN(std::unique_ptr<SyncQueue> queue, SyncQueue::Create(device));
    if (to_host) return queue->Download(to.mutable_data(), from.data(), bytes);
    MGE_RETURN_IF_ERROR(queue->Upload(to.mutable_data(), from.data(), bytes));
    return queue->Finish();
  }
  if (&source->device() == &target->device()) return CopyOnQueue(source->device(), to.mutable_data(), from.data(), bytes);
  return CopyThroughHost(source->device(), static_cast<const char*>(from.data()), target->device(),
                         static_cast<char*>(to.mutable_data()), bytes);
}

absl::StatusOr<Tensor> ToHost(const Tensor& from) {
  if (!DeviceMemory::Of(from)) return from;
  MGE_ASSIGN_OR_RETURN(Tensor to, Tensor::Create(from.dtype(), from.shape()));
  MGE_RETURN_IF_ERROR(CopyTensor(from, to));
  return to;
}

}  // namespace mge
