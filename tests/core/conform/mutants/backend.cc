// SPDX-License-Identifier: Apache-2.0
// A small backend that keeps the contract. A mutant is the same code under another name (variant.c), with one fault each.
// mutants.txt lists the mutants.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "kernels.h"
#include "mge/faults.h"
#include "mge/plugin/memory_handles.hpp"
#include "operators.h"
#include "pool.h"

namespace mutant {
namespace {

struct Faults {
  static mge_code FailNext(mge_queue* queue, mge_code code, mge_text text, mge_error*) noexcept {
    mge::internal::As<Queue>(queue).FailNext(code, std::string(mge::View(text)));
    return MGE_OK;
  }
  static mge_code MarkLost(mge_device* device, mge_error*) noexcept {
    mge::internal::As<Device>(device).lost = true;
    return MGE_OK;
  }
  static constexpr mge_faults_api kApi = {sizeof(mge_faults_api), MGE_ABI_MINOR, FailNext, MarkLost};
};

[[noreturn]] void StayAlive() {
  alarm(20);
  for (;;) pause();
}

struct Library {
  Library() {
    if (Is("load_throws")) throw std::runtime_error("no driver");
  }
  ~Library() {
    if (Is("hangs_at_exit")) StayAlive();
  }
} library;

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "mutant", kVersion = "1.0.0";
  using Device = mutant::Device;
  using Memory = mutant::Memory;
  using Pool = mutant::Pool;
  using Reserve = mutant::Reserve;
  using Strategy = mutant::Strategy;
  using Queue = mutant::Queue;
  using Fence = mutant::Fence;
  using Record = mutant::Record;
  using Stamp = mutant::Stamp;
  using Layouts = mutant::Layouts;
  using Kernels = mge::Kernels<kRelu, kAdd, kMatMul, kReduceSum, kReorder, kSub, kSoftmax, kGemm, kConv, kMaxPool,
                               kGlobalAveragePool, kTranspose>;
  using Claims = mge::Claims<ClaimAddNeg, ClaimMatMulRelu, ClaimBias, ClaimAddRelu>;
  static Result Start() {
    static int starts = 0;
    if (Is("starts_once") && ++starts > 1) return {MGE_INTERNAL, "the driver is open already"};
    if (Is("absent_here")) return {MGE_UNAVAILABLE, "the driver is not installed"};
    if (Is("start_fails")) return {MGE_INTERNAL, "the driver answered nonsense"};
    if (Is("start_crashes")) std::abort();
    if (Is("handles_signals")) std::signal(SIGINT, SIG_IGN);
    if (Is("sets_locale")) std::setlocale(LC_ALL, "C.UTF-8");
    if (Is("changes_folder")) return chdir("/") == 0 ? Result() : Result(MGE_INTERNAL, "there is no root");
    if (Is("sets_variable")) setenv("LC_NUMERIC", "de_DE.UTF-8", 1);
    if (Is("lowers_limit")) {
      rlimit files = {64, 64};
      setrlimit(RLIMIT_NOFILE, &files);
    }
    if (Is("sets_umask")) umask(0);
    if (Is("starts_slowly")) std::this_thread::sleep_for(std::chrono::milliseconds(500));
    if (Is("thread_at_stop")) {
      std::thread([] {
        for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
      }).detach();
    }
    if (Is("aborts_at_exit")) std::atexit([] { std::abort(); });
    if (Is("leaves_at_exit")) std::atexit([] { _exit(0); });
    if (Is("process_at_stop") && fork() == 0) StayAlive();
    if (Is("daemon_at_stop")) {
      const pid_t between = fork();
      if (between == 0 && fork() != 0) _exit(0);
      if (between == 0) setsid(), StayAlive();
      waitpid(between, nullptr, 0);
    }
    return {};
  }
  static void Stop() {
    if (Is("hangs_at_stop")) StayAlive();
    mutant::Memory::Sweep();
  }
  static const void* Extension(std::string_view name, uint32_t min_version) {
    if (name == MGE_FAULTS_EXTENSION && min_version <= 1) return &Faults::kApi;
    if (Is("has_every_extension")) return &Faults::kApi;
    return mge::MemoryHandles<mutant::Device, mutant::Memory>(name, min_version);
  }
};

mge_code EnumerateAll(mge_device* device, const mge_problem* problem, const mge_constraints*, const mge_candidate_sink* sink,
                      mge_error* error) noexcept {
  mge_constraints none = {sizeof(none), 0, 0, 0, UINT64_MAX};
  return mge::internal::Tables<Backend>::kKernel.enumerate(device, problem, &none, sink, error);
}

mge_code ListWithoutEnd(const mge_device_sink* sink, mge_error* error) noexcept {
  mge_device_sink between = *sink;
  between.self = const_cast<mge_device_sink*>(sink);
  between.device = [](void* self, const mge_device_info* info) {
    mge_device_info wild = *info;
    wild.name.size = uint64_t{1} << 40;
    auto* to = static_cast<const mge_device_sink*>(self);
    to->device(to->self, &wild);
  };
  return mge::internal::Tables<Backend>::kDevice.enumerate(&between, error);
}

mge_code OpenOrAbort(uint32_t index, mge_device** out, mge_error* error) noexcept {
  if (index > 1) std::abort();
  return mge::internal::Tables<Backend>::kDevice.open(index, out, error);
}

// Calls the SDK's slab_acquire with an existing memory class. The SDK itself refuses unknown classes.
mge_code AcquireAnything(mge_device* device, int32_t, uint64_t bytes, mge_slab* out, mge_error* error) noexcept {
  return mge::internal::Tables<Backend>::kMemory.slab_acquire(device, MGE_MEMORY_DEVICE, bytes, out, error);
}

mge_code LinkWhole(mge_device* from, mge_device* to, mge_link* out, mge_error* error) noexcept {
  mge_link link = {};
  link.struct_size = sizeof(link);
  mge_code code = mge::internal::Tables<Backend>::kDevice.link(from, to, &link, error);
  if (code == MGE_OK) *out = link;
  return code;
}

// Replaces the SDK's function, which catches exceptions and checks for null.
mge_code CreateFence(mge_device* device, mge_fence** out, mge_error* error) {
  auto& d = mge::internal::As<Device>(device);
  auto answer = [&](Fence* fence) { return *out = mge::internal::HandleOf<mge_fence>(fence), MGE_OK; };
  if (Is("throws_without_memory")) return answer(new Fence(d));
  if (Is("null_without_memory")) {
    void* room = ::operator new(sizeof(Fence), std::nothrow);
    return mge::WithoutExceptions(error, [&] { return answer(room ? new (room) Fence(d) : nullptr); });
  }
  return mge::WithoutExceptions(error, [&] {  // loses_without_memory
    void* before = ::operator new(100);
    answer(new Fence(d));
    ::operator delete(before);
    return MGE_OK;
  });
}

mge_code CreateQueue(mge_device* device, int32_t kind, mge_queue** out, mge_error* error) noexcept {
  static bool failed = false;  // out_of_memory_for_good
  if (failed) return mge::Report(error, MGE_RESOURCE_EXHAUSTED, "there was no memory once");
  mge_code code = mge::internal::Tables<Backend>::kQueue.create(device, kind, out, error);
  failed = code == MGE_RESOURCE_EXHAUSTED;
  return code;
}

mge_code PrepareOrInternal(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                           mge_error* error) noexcept {
  mge_code code = mge::internal::Tables<Backend>::kKernel.prepare(device, problem, candidate, out, error);
  return code == MGE_RESOURCE_EXHAUSTED ? mge_code{MGE_INTERNAL} : code;
}

mge_code ClaimNoNodes(mge_device*, const mge_graph*, const mge_claim_sink* sink, mge_error*) noexcept {
  mge_claim claim = {};
  claim.struct_size = sizeof(claim);
  claim.name = mge::Text("nothing");
  claim.node_count = 2;
  sink->offer(sink->self, &claim);
  return MGE_OK;
}

// The arguments of a step that throws. It wraps the SDK's step, whose arguments follow in memory.
struct ThrowingArgs {
  alignas(16) mge_step_fn inner;
};
mge_code PrepareThrowing(mge_device* device, const mge_problem* problem, const mge_candidate* candidate, mge_prepared* out,
                         mge_error* error) noexcept {
  mge_code code = mge::internal::Tables<Backend>::kKernel.prepare(device, problem, candidate, out, error);
  if (code == MGE_OK) out->args_bytes += sizeof(ThrowingArgs);
  return code;
}
mge_code BindThrowing(mge_kernel* kernel, const mge_binding* binding, void* args, mge_step_fn* step,
                      mge_error* error) noexcept {
  auto* own = new (args) ThrowingArgs();
  *step = [](const void* a, const mge_run* run) {
    auto* throwing = static_cast<const ThrowingArgs*>(a);
    mge_code code = throwing->inner(throwing + 1, run);
    if (code == MGE_CANCELLED && run->width > 1) throw mge::RunStopped();
    return code;
  };
  return mge::internal::Tables<Backend>::kKernel.bind(kernel, binding, own + 1, &own->inner, error);
}

mge_code StartThrowing(const mge_host*, mge_error*) { throw std::runtime_error("no driver"); }

const mge_plugin& Plugin() {
  static mge_device_api device = mge::internal::Tables<Backend>::kDevice;
  static mge_kernel_api kernel = mge::internal::Tables<Backend>::kKernel;
  static mge_memory_api memory = mge::internal::Tables<Backend>::kMemory;
  static mge_graph_api graph = mge::internal::Tables<Backend>::kGraph;
  static mge_queue_api queue = mge::internal::Tables<Backend>::kQueue;
  static const mge_plugin plugin = [] {
    mge_plugin p = mge::internal::Tables<Backend>::kPlugin;
    if (Is("table_too_long")) kernel.struct_size += 8;
    if (Is("misspells"))
      kernel = mge::KernelTable<
          mge::Kernels<kRelu, kAdd, kMatMul, kReduceSum, kReorder, kSub, kSoftmax, kGemm, kConv, kMisspelt>::Rows>::Api("1");
    if (Is("constraints_ignored")) kernel.enumerate = EnumerateAll;
    if (Is("crashes_on_bad_index")) device.open = OpenOrAbort;
    if (Is("name_without_end")) device.enumerate = ListWithoutEnd;
    if (Is("accepts_unknown")) memory.slab_acquire = AcquireAnything;
    if (Is("assigns_whole")) device.link = LinkWhole;
    if (Is("throws_without_memory") || Is("null_without_memory") || Is("loses_without_memory"))
      queue.fence_create = CreateFence;
    if (Is("out_of_memory_for_good")) queue.create = CreateQueue;
    if (Is("throws_when_stopped")) kernel.prepare = PrepareThrowing, kernel.bind = BindThrowing;
    if (Is("claims_no_nodes")) graph.claim = ClaimNoNodes;
    if (Is("internal_without_memory")) kernel.prepare = PrepareOrInternal;
    if (Is("start_throws")) p.start = StartThrowing;
    p.device = &device;
    p.kernel = &kernel;
    p.memory = &memory;
    p.queue = &queue;
    p.graph = &graph;
    if (Is("needs_alignment") || Is("needs_aligned_constants")) p.queue = nullptr, p.profile = nullptr;
    return p;
  }();
  return plugin;
}

}  // namespace
}  // namespace mutant

extern "C" MGE_EXPORT mge_code mge_plugin_query(const mge_query_in* in, mge_query_out* out) {
  if (mutant::Is("query_has_effects") && open("/dev/null", O_RDONLY) < 0) return MGE_INTERNAL;
  return mge::AnswerQuery(in, out, &mutant::Plugin());
}

MGE_BACKEND_NOTE(mutant::Backend);