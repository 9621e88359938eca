// SPDX-License-Identifier: Apache-2.0
#include "core/plan/kernels/trial.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/kernel/layout_copy.h"
#include "core/plan/layout/reorder.h"
#include "core/plugin/ask.h"
#include "core/plugin/host_services.h"
#include "fmt/format.h"

namespace mge {
namespace {

TensorType TypeOf(const mge_value& v) {
  return {static_cast<DType>(v.dtype), true, Shape(v.dims, v.dims + std::max(v.rank, 0)), {}};
}

absl::StatusOr<uint64_t> BytesOf(const TensorType& type, const mge_layout& layout) {
  MGE_ASSIGN_OR_RETURN(int64_t bytes, LayoutBytes(layout, ElementBytes(type.dtype), type.dims));
  return static_cast<uint64_t>(bytes);
}

// Returns a tensor's bytes in another layout. Uses the backend's reorder, since only the backend knows its opaque layouts.
absl::StatusOr<std::shared_ptr<const std::byte>> Reordered(TrialBench& bench, const TensorType& type, const mge_layout& from,
                                                           const mge_layout& to, std::span<const std::byte> bytes) {
  constexpr uint32_t kThreads = 1;
  const mge_constraints all = {sizeof(mge_constraints), 0, 0, 0, UINT64_MAX};
  MGE_ASSIGN_OR_RETURN(OwnedCandidate candidate,
                       ChooseReorder(bench.device(), type, from, to, kThreads, all, MGE_SELECT_HEURISTIC));
  candidate.inputs = {from};
  candidate.outputs = {to};
  ReorderProblem problem(type, from, to, kThreads);
  TrialInput input = {.laid = bytes};
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<Trial> trial, Trial::Create(bench, *problem.problem(), candidate, {&input, 1}));
  MGE_RETURN_IF_ERROR(trial->Run().status());
  return trial->Laid(0);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TrialBench>> TrialBench::Create(Device& device, const StopControl* stop) {
  std::unique_ptr<TrialBench> bench(new TrialBench(device, stop));
  MGE_RETURN_IF_ERROR(device.Open());
  if (!device.queue_api()) return bench;
  MGE_ASSIGN_OR_RETURN(bench->queue_, SyncQueue::Create(device));
  if (const mge_profile_api* profile = device.profile_api()) {
    bench->stamps_ = std::make_shared<Stamps>(*profile);
    for (mge_stamp** stamp : {&bench->stamps_->begin, &bench->stamps_->end}) {
      MGE_RETURN_IF_ERROR(QueryDevice(device, "making a stamp",
                                      [&](mge_error* e) { return profile->stamp_create(device.handle(), stamp, e); }));
    }
  }
  return bench;
}

TrialBench::Stamps::~Stamps() {
  for (mge_stamp* stamp : {begin, end}) {
    if (stamp) api.stamp_destroy(stamp);
  }
}

const int32_t* TrialBench::cancel() const { return queue_ ? queue_->cancel() : (stop_ ? *stop_ : never_).flag(); }

absl::Status TrialBench::Take(mge_stamp* stamp) {
  return QueryDevice(device_, "taking a stamp", [&](mge_error* e) { return stamps_->api.stamp(queue(), stamp, e); });
}

absl::Status TrialBench::Begin() {
  if (stamps_) {
    queue_->Uses(stamps_);
    return Take(stamps_->begin);
  }
  began_ns_ = device_.host()->clock_ns(device_.host()->self);
  return absl::OkStatus();
}

absl::StatusOr<double> TrialBench::End() {
  if (stamps_) MGE_RETURN_IF_ERROR(Take(stamps_->end));
  if (queue_) MGE_RETURN_IF_ERROR(queue_->Finish(stop_));
  if (!stamps_) {
    return static_cast<double>(device_.host()->clock_ns(device_.host()->self) - began_ns_) / 1000;
  }
  double us = 0;
  MGE_RETURN_IF_ERROR(QueryDevice(device_, "reading stamps", [&](mge_error* e) {
    return stamps_->api.elapsed_us(stamps_->begin, stamps_->end, &us, e);
  }));
  return us;
}

std::byte* TrialBench::HostAddressOf(const mge_reservation& memory) const {
  return static_cast<std::byte*>(memory.host_address || queue_ ? memory.host_address : memory.address);
}

absl::Status TrialBench::ToDevice(std::shared_ptr<void> owner, const mge_reservation& to, const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (std::byte* reached = HostAddressOf(to)) {
    if (reached != from) std::memcpy(reached, from, bytes);
    return absl::OkStatus();
  }
  queue_->Uses(std::move(owner));
  MGE_RETURN_IF_ERROR(queue_->Upload(to.address, from, bytes, stop_));
  return queue_->Finish(stop_);
}

absl::Status TrialBench::ToHost(std::shared_ptr<void> owner, void* to, const mge_reservation& from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (const std::byte* reached = HostAddressOf(from)) {
    if (to != reached) std::memcpy(to, reached, bytes);
    return absl::OkStatus();
  }
  queue_->Uses(std::move(owner));
  return queue_->Download(to, from.address, bytes, stop_);
}

absl::StatusOr<uint64_t> Trial::Bytes(const mge_problem& problem, const OwnedCandidate& candidate) {
  const mge_graph& g = *problem.graph;
  auto sum = [](uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; };
  uint64_t total = candidate.workspace, reorder = 0;
  for (uint64_t i = 0; i < g.input_count + g.output_count; ++i) {
    const bool input = i < g.input_count;
    const TensorType type = TypeOf(*g.values[input ? g.inputs[i] : g.outputs[i - g.input_count]]);
    const mge_layout& layout = input ? candidate.inputs[i] : candidate.outputs[i - g.input_count];
    MGE_ASSIGN_OR_RETURN(uint64_t bytes, BytesOf(type, layout));
    total = sum(total, bytes);
    if (layout.kind != MGE_LAYOUT_OPAQUE) continue;
    MGE_ASSIGN_OR_RETURN(uint64_t plain, BytesOf(type, PlainLayout()));
    reorder = std::max(reorder, plain + bytes);  // reorders run one after the other
  }
  return sum(total, reorder);
}

absl::StatusOr<std::shared_ptr<Trial>> Trial::Create(TrialBench& bench, const mge_problem& problem,
                                                     const OwnedCandidate& candidate, std::span<const TrialInput> inputs) {
  std::shared_ptr<Trial> trial(new Trial(bench, candidate));
  MGE_RETURN_IF_ERROR(trial->SetUp(problem, inputs));
  return trial;
}

Trial::~Trial() {
  const mge_kernel_api& api = device_.kernel_api();
  if (record_) device_.queue_api()->record_destroy(device_.handle(), record_);
  if (state_) api.state_destroy(kernel_.get(), state_);
  kernel_.reset();
  for (const mge_reservation& r : memory_) pool_->Release(r);
}

absl::StatusOr<mge_slot> Trial::Take(uint64_t bytes) {
  MGE_ASSIGN_OR_RETURN(mge_reservation taken, pool_->Acquire(bytes, device_.BufferAlignment()));
  memory_.push_back(taken);
  bases_.push_back(taken.address);
  return mge_slot{static_cast<uint32_t>(bases_.size() - 1), 0, 0};
}

absl::StatusOr<std::shared_ptr<std::byte>> Trial::Stage(const mge_slot& slot, uint64_t bytes) {
  if (std::byte* own = bench_.HostAddressOf(memory_[slot.base])) return std::shared_ptr<std::byte>(shared_from_this(), own);
  return device_.host_allocator().Allocate(static_cast<int64_t>(bytes));
}

absl::Status Trial::Fill(const mge_slot& slot, std::span<const std::byte> bytes) {
  return bench_.ToDevice(shared_from_this(), memory_[slot.base], bytes.data(), bytes.size());
}

absl::Status Trial::SetUp(const mge_problem& problem, std::span<const TrialInput> given) {
  const mge_graph& g = *problem.graph;
  const mge_kernel_api& api = device_.kernel_api();
  MGE_ASSIGN_OR_RETURN(pool_, device_.PoolOf());
  MGE_ASSIGN_OR_RETURN(kernel_, PrepareKernel(device_, problem, candidate_, prepared_));
  std::vector<mge_slot> inputs, outputs;
  std::vector<const mge_layout*> in_layouts, out_layouts;
  for (uint64_t i = 0; i < g.input_count; ++i) {
    const Tensor& tensor = given[i].tensor;
    const TensorType type = TypeOf(*g.values[g.inputs[i]]);
    uint64_t packed = given[i].constant && prepared_.prepack_bytes ? prepared_.prepack_bytes[i] : 0;
    const mge_layout& layout = candidate_.inputs[i];
    const mge_layout arrives = given[i].constant ? PlainLayout() : layout;
    uint64_t bytes = packed;
    if (!packed) {
      MGE_ASSIGN_OR_RETURN(bytes, BytesOf(type, arrives));
    }
    MGE_ASSIGN_OR_RETURN(mge_slot slot, Take(bytes));
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> staged, Stage(slot, bytes));
    if (packed) {
      MGE_RETURN_IF_ERROR(QueryDevice(device_, "packing for " + candidate_.id, [&](mge_error* e) {
        return api.prepack(kernel_.get(), static_cast<uint32_t>(i), tensor.data(), staged.get(), e);
      }));
    } else if (given[i].laid) {
      MGE_CHECK(given[i].laid->size() == bytes);
      std::memcpy(staged.get(), given[i].laid->data(), bytes);
    } else if (arrives.kind == MGE_LAYOUT_OPAQUE) {
      std::span<const std::byte> plain(static_cast<const std::byte*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
      MGE_ASSIGN_OR_RETURN(std::shared_ptr<const std::byte> laid, Reordered(bench_, type, PlainLayout(), layout, plain));
      std::memcpy(staged.get(), laid.get(), bytes);
    } else {
      CopyToLayout(tensor, arrives, {staged.get(), bytes});
    }
    MGE_RETURN_IF_ERROR(Fill(slot, {staged.get(), bytes}));
    inputs.push_back(slot);
    in_layouts.push_back(&layout);
  }
  for (uint64_t i = 0; i < g.output_count; ++i) {
    TensorType type = TypeOf(*g.values[g.outputs[i]]);
    MGE_ASSIGN_OR_RETURN(uint64_t bytes, BytesOf(type, candidate_.outputs[i]));
    MGE_ASSIGN_OR_RETURN(mge_slot slot, Take(bytes));
    // Fills the output, so that bytes that the kernel leaves unwritten do not look like a result.
    MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> poison, Stage(slot, bytes));
    std::fill_n(poison.get(), bytes, std::byte{0xa5});
    MGE_RETURN_IF_ERROR(Fill(slot, {poison.get(), bytes}));
    outputs.push_back(slot);
    out_layouts.push_back(&candidate_.outputs[i]);
    outputs_.push_back({std::move(type), slot, bytes});
  }
  MGE_ASSIGN_OR_RETURN(mge_slot workspace, Take(prepared_.workspace_bytes));
  mge_slot random = {};
  if (prepared_.random_blocks) {
    MGE_ASSIGN_OR_RETURN(random, Take(kRandomStateBytes));
    const std::byte zeros[kRandomStateBytes] = {};
    MGE_RETURN_IF_ERROR(Fill(random, zeros));
  }
  mge_binding binding = {sizeof(binding),    0,     inputs.data(), outputs.data(), workspace, in_layouts.data(),
                         out_layouts.data(), random};
  args_ = std::make_unique<std::byte[]>(std::max<uint32_t>(prepared_.args_bytes, 1));
  MGE_ASSIGN_OR_RETURN(fn_, BindKernel(device_, candidate_, kernel_.get(), binding, args_.get()));
  if (prepared_.has_state) {
    MGE_RETURN_IF_ERROR(QueryDevice(device_, "state of " + candidate_.id,
                                    [&](mge_error* e) { return api.state_create(kernel_.get(), &state_, e); }));
  }
  run_.struct_size = sizeof(run_);
  run_.width = problem.threads;
  run_.bases = bases_.data();
  run_.states = &state_;
  run_.queue = bench_.queue();
  run_.cancel = bench_.cancel();
  run_.host = device_.host();
  run_.error = &error_;
  run_.pool = run_.host->self;
  run_.parallel_for = run_.host->parallel_for;
  return absl::OkStatus();
}

mge_code Trial::Launch() {
  return CallBackend(error_, [&](mge_error*) { return fn_(args_.get(), &run_); });
}

void Trial::Capture() {
  const mge_queue_api* api = device_.queue_api();
  if (record_ || !api || !api->capture_begin || !(candidate_.attributes & MGE_KERNEL_CAPTURE_SAFE)) return;
  mge_error ignored;
  if (CallBackend(ignored, [&](mge_error* e) { return api->capture_begin(run_.queue, e); }) != MGE_OK) return;
  bool launched = Launch() == MGE_OK;
  bool ended = CallBackend(ignored, [&](mge_error* e) { return api->capture_end(run_.queue, &record_, e); }) == MGE_OK;
  if (launched && ended) return;
  if (record_) api->record_destroy(device_.handle(), std::exchange(record_, nullptr));
}

absl::StatusOr<double> Trial::Run() {
  return bench_.Time(shared_from_this(), [&]() -> absl::Status {
    mge_code code =
        record_ ? CallBackend(error_, [&](mge_error* e) { return device_.queue_api()->replay(run_.queue, record_, e); })
                : Launch();
    return code == MGE_OK ? absl::OkStatus() : StatusOfBackend(code, error_, "running " + candidate_.id);
  });
}

absl::StatusOr<std::shared_ptr<const std::byte>> Trial::Laid(size_t i) {
  const Operand& out = outputs_[i];
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<std::byte> laid, Stage(out.slot, out.bytes));
  MGE_RETURN_IF_ERROR(bench_.ToHost(shared_from_this(), laid.get(), memory_[out.slot.base], out.bytes));
  return laid;
}

absl::StatusOr<Tensor> Trial::Output(size_t i) {
  const TensorType& type = outputs_[i].type;
  const uint64_t bytes = outputs_[i].bytes;
  const mge_layout& layout = candidate_.outputs[i];
  MGE_ASSIGN_OR_RETURN(Tensor plain, Tensor::Create(type.dtype, type.dims, device_.host_allocator()));
  MGE_ASSIGN_OR_RETURN(std::shared_ptr<const std::byte> laid, Laid(i));
  if (layout.kind == MGE_LAYOUT_OPAQUE) {
    MGE_ASSIGN_OR_RETURN(laid, Reordered(bench_, type, layout, PlainLayout(), {laid.get(), bytes}));
    CopyFromLayout({laid.get(), static_cast<size_t>(plain.bytes())}, PlainLayout(), plain);
  } else {
    CopyFromLayout({laid.get(), bytes}, layout, plain);
  }
  return plain;
}

}  // namespace mge
