// SPDX-License-Identifier: Apache-2.0
// A backend that replaces every part of plugin.hpp, and one that uses each ready-made part. Compiled with and without
// exceptions, never run.
#include "mge/plugin.hpp"
#include "mge/plugin/blob.hpp"
#include "mge/plugin/memory_handles.hpp"
#include "mge/plugin/native_streams.hpp"
#include "mge/plugin/signals.hpp"
#include "mge/plugin/slab_numbers.hpp"

namespace {

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    list.Add({.name = "none"});
    return {};
  }
  explicit Device(uint32_t) {}
  mge::Result Init() { return {}; }
  mge::Result Health() { return {}; }
  mge::Result Link(Device&, mge::LinkInfo* out) {
    out->peer = true;
    return {};
  }
};

struct Memory {
  static mge::Result Acquire(Device&, int32_t, uint64_t, mge_slab*) { return {MGE_RESOURCE_EXHAUSTED, "none"}; }
  static void Release(Device&, const mge_slab&) {}
  static mge::MemoryAmount Info(Device&) { return {}; }
  static void ReleaseAfter(Device&, const mge_slab&, const mge_fence_point&) {}
  static uint64_t RangeGranularity(Device&) { return 4096; }
  static mge::Result RangeReserve(Device&, uint64_t, mge_slab*) { return {}; }
  static void RangeRelease(Device&, const mge_slab&) {}
  static mge::Result RangeCommit(Device&, const mge_slab&, uint64_t, uint64_t) { return {}; }
  static void RangeDecommit(Device&, const mge_slab&, uint64_t, uint64_t) {}
};

struct Pool : mge::ReadyPool {
  Pool(Device& device, int32_t memory_class, const mge::SlabSource& slabs)
      : ReadyPool("growing", device, memory_class, slabs) {}
};

struct Reserve {
  static mge::Result Decide(Device&, const mge_plan_summary& plan, mge_reserve_decision* out) {
    return mge::ReadyReserve("percent:5", plan, out);
  }
};

struct Strategy {
  static mge::Result Order(Device&, const mge::Choice& choice, std::span<uint32_t> order) {
    return mge::ReadyOrder(choice, order);
  }
};

struct Fence {
  explicit Fence(Device&) {}
  mge::Result HostWait(uint64_t, uint64_t) { return {}; }
};
struct Record {};
struct Queue {
  Queue(Device&, int32_t) {}
  mge::Result Copy(void*, const void*, uint64_t) { return {}; }
  mge::Result Signal(Fence&, uint64_t) { return {}; }
  mge::Result Wait(Fence&, uint64_t) { return {}; }
  mge::Result CaptureBegin() { return {}; }
  mge::Result CaptureEnd(Record** out) {
    *out = new Record;
    return {};
  }
  mge::Result Replay(Record&) { return {}; }
  mge::Result CopyPeer(Device&, void*, Device&, const void*, uint64_t) { return {}; }
};
struct Stamp {
  explicit Stamp(Device&) {}
  mge::Result Take(Queue&) { return {}; }
  static mge::Result ElapsedUs(Stamp&, Stamp&, double* out) {
    *out = 0;
    return {};
  }
};

struct Layouts {
  static mge::Result Describe(Device&, const mge::LayoutQuestion& question, mge_layout_info* out) {
    out->bytes = question.layout.opaque_bytes;
    return {};
  }
};

// A kernel with every optional member of a row.
struct Sum {
  static constexpr const char* kOp = "Add";
  static constexpr const char* kId = "comfort.sum";
  static constexpr const char* kDomain = "";
  static constexpr uint64_t kAttributes = MGE_KERNEL_DETERMINISTIC | MGE_KERNEL_CAPTURE_SAFE;
  struct State {
    int runs = 0;
  };
  static mge::Support Supports(const mge::Problem& p) { return p.adds(0) ? mge::Yes() : mge::No("it adds"); }
  static void Describe(const mge::Problem&, mge::Candidate& c) {
    c.workspace = 64;
    c.in_place = {{0, 0}};
  }
  explicit Sum(const mge::Problem& p) : device(&p.device<Device>()) {}
  uint64_t workspace_bytes() const { return 32; }
  uint64_t prepack_bytes(int input) const { return input == 1 ? 64 : 0; }
  mge::Result Prepack(int, const void*, void*) const { return {}; }
  void Bind(const mge::Binding& b) { state = b.state_index(); }
  mge_code Launch(const mge_run* run) const {
    mge::QueueOf<Queue>(run);
    mge::ParallelFor(run, 4, [](uint64_t) {});
    return ++mge::StateOf<State>(run, state).runs ? MGE_OK : MGE_INTERNAL;
  }
  Device* device;
  uint32_t state = 0;
};
constexpr mge::KernelRow kSum = mge::Row<Sum>();

// A row that offers several candidates.
struct Product {
  static constexpr const char* kOp = "MatMul";
  static void Offer(const mge::Problem&, mge::Offers& offers) {
    offers.Add({.id = "comfort.product.slow"});
    offers.Add({.id = "comfort.product.fast", .variant = 1});
  }
  Product(const mge::Problem&, const mge::Candidate& c) : variant(c.variant) {}
  void Bind(const mge::Binding&) {}
  mge_code Launch(const mge_run*) const { return MGE_OK; }
  uint64_t variant;
};
constexpr mge::KernelRow kProduct = mge::Row<Product>();

// A row that creates its kernels itself.
struct Args {
  mge::Slot x;
};
mge_code Launch(const Args&, const mge_run*) { return MGE_OK; }
struct Relu {
  static void Offer(const mge::Problem&, mge::Offers& offers) { offers.Add({.id = "comfort"}); }
  static mge::KernelPtr Make(const mge::Problem&, const mge::Candidate&) {
    return mge::MakeSimple<Args, Launch>([](const mge::Binding& b) { return Args{b.input(0)}; });
  }
};
constexpr mge::KernelRow kRelus[] = {mge::Row<Relu>("Relu"), mge::Row<Relu>("Relu", "comfort")};
MGE_KERNELS(relu) = kRelus;

void ClaimProducts(const mge::Pattern& graph, mge::ClaimList& claims) {
  for (const mge::Match& m : graph.FindAll(mge::Op("Add", {mge::Op("MatMul"), mge::Any()}).Commutes())) {
    claims.Offer("product", m.nodes, 1);
  }
}

constexpr mge_setting kDevices = mge::IntSetting("comfort.devices", "1", 1, 8, "devices", "Number of devices.");

struct UserMemory {
  static mge::Result Wrap(Device&, void* handle, uint64_t bytes, mge_slab* out) {
    *out = mge::MakeSlab(MGE_MEMORY_DEVICE, bytes, handle, nullptr, handle);
    return {};
  }
  static void Unwrap(Device&, const mge_slab&) {}
};

struct UserStreams {
  static mge::Result Signal(Device&, void*, Fence&, uint64_t) { return {}; }
  static mge::Result Wait(Device&, void*, Fence&, uint64_t) { return {}; }
};

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "comfort", kVersion = "1", kClasses = "comfort,gpu";
  static constexpr const mge_setting* kSettings[] = {&kDevices};
  using Device = ::Device;
  using Memory = ::Memory;
  using Pool = ::Pool;
  using Reserve = ::Reserve;
  using Strategy = ::Strategy;
  using Queue = ::Queue;
  using Fence = ::Fence;
  using Record = ::Record;
  using Stamp = ::Stamp;
  using Layouts = ::Layouts;
  using Kernels = mge::JoinedKernels<mge::Kernels<kSum, kProduct>, mge::KernelFamilies<mge_kernels_relu>>;
  using Claims = mge::Claims<ClaimProducts>;
  static mge::Result Start() {
    if (mge::ToInt(mge::SettingOf(kDevices)) == 0) return {MGE_UNAVAILABLE, "none"};
    return {};
  }
  static const void* Extension(std::string_view name, uint32_t min_version) {
    const void* handles = mge::MemoryHandles<Device, UserMemory>(name, min_version);
    return handles ? handles : mge::NativeStreams<Device, Fence, UserStreams>(name, min_version);
  }
};

// Checks whether a table has the slot. Optional slots must exist exactly for the classes that implement them.
constexpr bool Has(auto* slot) { return slot != nullptr; }
constexpr const mge_plugin& kWhole = mge::internal::Tables<Backend>::kPlugin;
static_assert(Has(kWhole.queue->capture_begin) && Has(kWhole.queue->copy_peer));
static_assert(Has(kWhole.device->link) && Has(kWhole.device->status));
static_assert(Has(kWhole.memory->own_pool) && Has(kWhole.memory->own_reserve) && Has(kWhole.memory->range_commit));
static_assert(Has(kWhole.strategy) && Has(kWhole.profile) && Has(kWhole.layout) && Has(kWhole.graph) &&
              Has(kWhole.extension));

template <typename P, typename R, typename S>
struct Ready : mge::BackendDefaults {
  static constexpr std::string_view kName = "ready", kVersion = "1";
  struct Device {
    static mge::Result List(mge::DeviceList&) { return {}; }
    explicit Device(uint32_t) {}
  };
  using Kernels = mge::Kernels<>;
  using Pool = P;
  using Reserve = R;
  using Strategy = S;
};
using Plain = mge::internal::Tables<Ready<mge::pool::Round, mge::reserve::Bytes<64 << 20>, mge::strategy::Heuristic>>;
static_assert(!Has(Plain::kPlugin.queue) && !Has(Plain::kPlugin.graph));
static_assert(!Has(Plain::kPlugin.extension) && !Has(Plain::kPlugin.profile) && !Has(Plain::kPlugin.layout));
static_assert(!Has(Plain::kDevice.link) && !Has(Plain::kDevice.status));
static_assert(!Has(Plain::kMemory.own_pool) && !Has(Plain::kMemory.own_reserve) && !Has(Plain::kMemory.range_commit));
static_assert(mge::View(Plain::kMemory.pool) == "round" && mge::View(Plain::kMemory.reserve) == "bytes:67108864");
using Fixed = mge::internal::Tables<Ready<mge::pool::Naive, mge::reserve::Percent<5>, mge::strategy::Reproducible>>;
static_assert(mge::View(Fixed::kMemory.pool) == "naive" && mge::View(Fixed::kMemory.reserve) == "percent:5");
constexpr const mge_strategy_api& StrategyOf(const mge_plugin& plugin) { return *plugin.strategy; }
static_assert(!Has(StrategyOf(Plain::kPlugin).order) && StrategyOf(Plain::kPlugin).mode == MGE_SELECT_HEURISTIC);
static_assert(!Has(StrategyOf(Fixed::kPlugin).order) && StrategyOf(Fixed::kPlugin).mode == MGE_SELECT_REPRODUCIBLE);

static_assert(mge::WhyNoBackendName("demo_2").empty() && mge::WhyNoClassList("demo,gpu").empty());
static_assert(!mge::WhyNoBackendName("2demo").empty() && !mge::WhyNoBackendName("").empty());
static_assert(!mge::WhyNoClassName("box").empty() && !mge::WhyNoClassName("xpu").empty());
static_assert(!mge::WhyNoClassName("a1").empty() && !mge::WhyNoClassName("").empty());
static_assert(!mge::WhyNoClassName("a").empty() && mge::WhyNoClassName("ab").empty());
static_assert(!mge::WhyNoClassName("multithreads").empty() && mge::WhyNoClassName("multi").empty());
static_assert(!mge::WhyNoClassList("gpu").empty() && !mge::WhyNoClassList("demo,").empty());

}  // namespace

MGE_BACKEND(Backend);
