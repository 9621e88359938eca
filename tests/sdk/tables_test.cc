// SPDX-License-Identifier: Apache-2.0
// The tables that plugin.hpp creates from classes, called as a host calls them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "mge/plugin.hpp"
#include "tests/sdk/test_graph.h"

struct mge_error {
  mge_code code = MGE_OK;
  std::string text;
};

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// ---- a backend whose parts throw on request

std::string g_throw;  // name of the part that throws
void Say(const std::string& part) {
  if (g_throw == part) throw std::runtime_error(part + " exploded");
  if (g_throw == part + " memory") throw std::bad_alloc();
  if (g_throw == part + " thread") throw std::system_error(EAGAIN, std::generic_category());
}

struct Device {
  static mge::Result List(mge::DeviceList& list) {
    Say("list");
    list.Add({.name = "first",
              .max_allocation = 4096,
              .buffer_alignment = 256,
              .compute_queues = 2,
              .properties = {{"uuid", "a-1"}, {"multiprocessors", "8"}}});
    list.Add({.name = "second", .class_name = "other", .score = 0, .reason = "broken"});
    return {};
  }
  explicit Device(uint32_t i) : index(i) { Say("open"); }
  mge::Result Init() {
    if (index == 1) return {MGE_UNAVAILABLE, "it does not answer"};
    ++open;
    return {};
  }
  ~Device() { --open; }
  uint32_t index;
  bool busy = false;
  static inline int open = 1;  // incremented by Init, decremented by the destructor, also after a failed Init
};

struct Pool {
  Pool(Device&, int32_t, const mge::SlabSource& slabs) : source(slabs) {}
  mge::Result Acquire(const mge::PoolRequest& r, mge_reservation*) {
    Say("pool");
    mge_slab slab;
    return source.Acquire(r.bytes, &slab, r.error);
  }
  void Release(const mge_reservation&, const mge_fence_point*) { Say("release"); }
  void Trim(int32_t) { Say("trim"); }
  mge_pool_stats Stats() const {
    Say("stats");
    mge_pool_stats stats = {};
    stats.presence = 1;
    return stats;
  }
  mge::SlabSource source;
};
struct Reserve {
  static mge::Result Decide(Device&, const mge_plan_summary&, mge_reserve_decision*) {
    Say("reserve");
    return {};
  }
};
struct Strategy {
  static mge::Result Order(Device&, const mge::Choice&, std::span<uint32_t> order) {
    Say("strategy");
    std::swap(order[0], order[1]);
    return {};
  }
};

struct Counter {  // a kernel with state, a packed second input, and an output to which it adds
  static constexpr const char* kOp = "Count";
  static constexpr const char* kId = "test.count";
  struct State {
    explicit State(const Counter& counter) : device(counter.device) { Say("state"); }
    mge::Result Init() const { return device->busy ? mge::Result(MGE_UNAVAILABLE, "the device is busy") : mge::Result(); }
    Device* device;
    int runs = 0;
  };
  static mge::Support Supports(const mge::Problem& p) {
    Say("supports");
    if (!p.adds(0)) return mge::No("it only adds");
    return mge::Yes();
  }
  static void Describe(const mge::Problem&, mge::Candidate& c) { c.workspace = 100; }
  explicit Counter(const mge::Problem& p) : device(&p.device<Device>()) {}
  uint64_t workspace_bytes() const { return 60; }
  uint64_t prepack_bytes(int input) const { return input == 1 ? 8 : 0; }
  mge::Result Prepack(int, const void* from, void* to) const {
    *static_cast<float*>(to) = -*static_cast<const float*>(from);
    return {};
  }
  std::string prepack_form(int) const { return "negated"; }
  void Bind(const mge::Binding& b) {
    state = b.state_index();
    packed = b.input(1);
    y = b.output(0);
  }
  mge_code Launch(const mge_run* run) const {
    Say("launch");
    mge::ParallelFor(run, 8, [](uint64_t chunk) {
      if (chunk == 5) Say("chunk");
    });
    *mge::At<float>(run, y) += *mge::At<float>(run, packed) * static_cast<float>(++mge::StateOf<State>(run, state).runs);
    return MGE_OK;
  }
  Device* device;
  uint32_t state = 0;
  mge::Slot packed, y;
};
constexpr mge::KernelRow kCounter = mge::Row<Counter>();

void Claim(const mge::Pattern&, mge::ClaimList& claims) {
  Say("claim");
  if (!claims.device<Device>().busy) claims.Offer("pair", std::vector<int32_t>{0, 1}, 1);
}

struct Backend : mge::BackendDefaults {
  static constexpr std::string_view kName = "test", kVersion = "1", kClasses = "test,other";
  using Device = ::Device;
  using Pool = ::Pool;
  using Reserve = ::Reserve;
  using Strategy = ::Strategy;
  using Kernels = mge::Kernels<kCounter>;
  using Claims = mge::Claims<Claim>;
  static mge::Result Start() {
    Say("start");
    return {};
  }
  static void Stop() { Say("stop"); }
};
constexpr const mge_plugin& kPlugin = mge::internal::Tables<Backend>::kPlugin;

struct Answers {
  std::vector<std::string> offers, refusals;
  uint64_t token = 0;
  mge_candidate_sink sink = {sizeof(sink), 0, this,
                             [](void* self, const mge_candidate* c) {
                               auto& a = *static_cast<Answers*>(self);
                               a.offers.emplace_back(mge::View(c->id));
                               a.token = c->token;
                             },
                             [](void* self, const mge_text*, const mge_text* why) {
                               static_cast<Answers*>(self)->refusals.emplace_back(mge::View(*why));
                             }};
};

class Tables : public testing::Test {
 protected:
  void SetUp() override {
    g_throw.clear();
    Device::open = 1;
    host_ = {};
    host_.struct_size = sizeof(host_);
    host_.fail = [](void*, mge_error* error, mge_code code, const char* text, uint64_t size) {
      if (error) *error = {code, std::string(text, size)};
      return code;
    };
    host_.self = &log_;
    host_.log = [](void* self, int32_t, const char* text, uint64_t size) {
      static_cast<std::string*>(self)->assign(text, size);
    };
    ASSERT_EQ(kPlugin.start(&host_, &error_), MGE_OK);
  }
  void TearDown() override { kPlugin.stop(); }
  mge_device* Open() {
    mge_device* device = nullptr;
    EXPECT_EQ(kPlugin.device->open(0, &device, &error_), MGE_OK);
    return device;
  }
  // Lets `part` throw. Expects that `call` returns INTERNAL with the exception's text, or RESOURCE_EXHAUSTED for lack of
  // memory or threads.
  template <typename F>
  void ExpectCaught(const std::string& part, F&& call) {
    g_throw = part;
    EXPECT_EQ(call(), MGE_INTERNAL) << part;
    EXPECT_EQ(error_.text, part + " exploded");
    for (const char* what : {" memory", " thread"}) {
      g_throw = part + what;
      EXPECT_EQ(call(), MGE_RESOURCE_EXHAUSTED) << g_throw;
    }
    g_throw.clear();
  }
  mge_host host_;
  mge_error error_;
  std::string log_;  // the last logged line
};

TEST_F(Tables, NoExceptionLeavesAnyPart) {
  mge_device* device = Open();
  mge_device* other = nullptr;
  std::vector<int> devices;
  mge_device_sink sink = {sizeof(sink), 0, &devices, [](void*, const mge_device_info*) {}};
  ExpectCaught("start", [&] { return kPlugin.start(&host_, &error_); });
  ASSERT_EQ(kPlugin.start(&host_, &error_), MGE_OK);
  ExpectCaught("list", [&] { return kPlugin.device->enumerate(&sink, &error_); });
  ExpectCaught("open", [&] { return kPlugin.device->open(1, &other, &error_); });
  mge_plan_summary plan = {};
  plan.struct_size = sizeof(plan);
  mge_reserve_decision decision = {};
  decision.struct_size = sizeof(decision);
  ExpectCaught("reserve", [&] { return kPlugin.memory->own_reserve->decide(device, &plan, &decision, &error_); });
  mge_candidate candidates[2] = {};
  const mge_candidate* list[] = {&candidates[0], &candidates[1]};
  mge_choice choice = {sizeof(choice), MGE_SELECT_HEURISTIC, nullptr, list, 2, nullptr};
  uint32_t order[2];
  ExpectCaught("strategy", [&] { return kPlugin.strategy->order(device, &choice, order, &error_); });
  TestGraph graph({{"Count", {0, 1}, 2}}, 3, {2});
  mge_claim_sink claims = {};
  ExpectCaught("claim", [&] { return kPlugin.graph->claim(device, &graph.graph, &claims, &error_); });
  Answers answers;
  const mge_kernel_api& kernel = *kPlugin.kernel;
  ExpectCaught("supports", [&] { return kernel.enumerate(device, &graph.problem, nullptr, &answers.sink, &error_); });
  mge_pool* pool = nullptr;
  mge_slab_provider provider = {};
  ASSERT_EQ(kPlugin.memory->own_pool->create(device, 0, &provider, &pool, &error_), MGE_OK);
  mge_reservation reservation = {};
  reservation.struct_size = sizeof(reservation);
  ExpectCaught("pool", [&] { return kPlugin.memory->own_pool->acquire(pool, 1, 64, nullptr, 0, &reservation, &error_); });
  // Functions that return no code log the exception.
  const mge_pool_api& own = *kPlugin.memory->own_pool;
  mge_pool_stats stats = {};
  stats.struct_size = sizeof(stats);
  for (const char* part : {"release", "trim", "stats", "stop"}) {
    g_throw = part;
    if (g_throw == "release") own.release(pool, &reservation, nullptr);
    if (g_throw == "trim") own.trim(pool, MGE_TRIM_ALL);
    if (g_throw == "stats") own.stats(pool, &stats);
    if (g_throw == "stop") kPlugin.stop();
    EXPECT_EQ(log_, g_throw + " exploded");
    log_.clear();
  }
  EXPECT_EQ(stats.presence, 0u);
  EXPECT_EQ(stats.struct_size, sizeof(stats));
  g_throw.clear();
  ASSERT_EQ(kPlugin.start(&host_, &error_), MGE_OK);
  own.destroy(pool);
  kPlugin.device->close(device);
}

// A host's struct whose size differs from the backend's headers. The bytes behind it must not be written.
template <typename T>
class Elsewhere {
 public:
  explicit Elsewhere(size_t size) : size_(size) {
    std::memset(bytes_, 0, size);
    std::memset(bytes_ + size, kOther, sizeof(bytes_) - size);
    get()->struct_size = static_cast<uint32_t>(size);
  }
  T* get() { return reinterpret_cast<T*>(bytes_); }
  void Expect() {
    EXPECT_EQ(get()->struct_size, size_);
    for (size_t i = size_; i < sizeof(bytes_); ++i) ASSERT_EQ(bytes_[i], kOther) << "byte " << i << " of " << size_;
  }

 private:
  static constexpr unsigned char kOther = 0xab;
  const size_t size_;
  alignas(T) unsigned char bytes_[2 * sizeof(T) + 64];
};

TEST_F(Tables, WriteOnlyMembersThatTheHostsStructHas) {
  mge_device* device = Open();
  const mge_memory_api& memory = *kPlugin.memory;
  mge_pool* pool = nullptr;
  mge_slab_provider provider = {};
  provider.acquire = [](void*, uint64_t bytes, mge_slab* out, mge_error*) -> mge_code {
    EXPECT_EQ(out->struct_size, sizeof(mge_slab));
    out->bytes = bytes;
    return MGE_OK;
  };
  ASSERT_EQ(memory.own_pool->create(device, 0, &provider, &pool, &error_), MGE_OK);
  for (size_t off : {0, 8, 16}) {  // the struct of an older host
    Elsewhere<mge_slab> slab(sizeof(mge_slab) - off);
    ASSERT_EQ(memory.slab_acquire(device, 0, 100, slab.get(), &error_), MGE_OK);
    slab.Expect();
    EXPECT_NE(slab.get()->address, nullptr);
    memory.slab_release(device, slab.get());
    Elsewhere<mge_reservation> reservation(sizeof(mge_reservation) - off);
    ASSERT_EQ(memory.own_pool->acquire(pool, 1, 64, nullptr, 0, reservation.get(), &error_), MGE_OK);
    reservation.Expect();
    Elsewhere<mge_pool_stats> stats(sizeof(mge_pool_stats) - off);
    memory.own_pool->stats(pool, stats.get());
    stats.Expect();
    Elsewhere<mge_plan_summary> plan(sizeof(mge_plan_summary) - off);
    Elsewhere<mge_reserve_decision> decision(sizeof(mge_reserve_decision) - off);
    ASSERT_EQ(memory.own_reserve->decide(device, plan.get(), decision.get(), &error_), MGE_OK);
    decision.Expect();
  }
  Elsewhere<mge_slab> newer(sizeof(mge_slab) + 16);
  ASSERT_EQ(memory.slab_acquire(device, 0, 100, newer.get(), &error_), MGE_OK);
  newer.Expect();
  EXPECT_EQ(newer.get()->bytes, 100u);
  memory.slab_release(device, newer.get());
  memory.own_pool->destroy(pool);
  kPlugin.device->close(device);
}

struct Copied : Counter {  // inherits its kId
  using Counter::Counter;
  static constexpr const char* kOp = "Recount";
};
constexpr mge::KernelRow kCopied = mge::Row<Copied>();
struct TwoOfOneId : Backend {
  using Kernels = mge::Kernels<kCounter, kCopied>;
};

TEST_F(Tables, TwoRowsOfOneIdAreRefusedByTheirNames) {
  EXPECT_EQ(mge::internal::Tables<TwoOfOneId>::kPlugin.start(&host_, &error_), MGE_INTERNAL);
  EXPECT_EQ(error_.text, "the kernels of Count and Recount have one kId, 'test.count'; each needs its own");
  ASSERT_EQ(kPlugin.start(&host_, &error_), MGE_OK);
}

TEST_F(Tables, AWarningSaysThatAnUndeclaredSettingKeepsItsDefault) {
  static constexpr mge_setting kForgotten = mge::IntSetting("test.forgotten", "3", 0, 9, "", "Not in kSettings.");
  EXPECT_EQ(mge::SettingOf(kForgotten), "3");
  EXPECT_THAT(log_, HasSubstr("'test.forgotten'"));
  EXPECT_THAT(log_, HasSubstr("kSettings"));
  std::string_view value;
  EXPECT_EQ(mge::ReadSetting(kForgotten, &value).code(), MGE_INTERNAL);
  EXPECT_EQ(value, "3");
}

TEST_F(Tables, ASettingWithoutAValueOfTheHostIsReported) {
  static constexpr mge_setting kCount = mge::IntSetting("test.count", "3", 0, 9, "", "Declared.");
  static constexpr const mge_setting* kDeclared[] = {&kCount};
  mge::internal::DeclaredSettings() = kDeclared;
  host_.setting = [](void*, uint32_t, mge_text*) -> mge_code { return MGE_RESOURCE_EXHAUSTED; };
  std::string_view value;
  mge::Result read = mge::ReadSetting(kCount, &value);
  EXPECT_EQ(read.code(), MGE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(read.text(), "test.count has no value from the host");
  EXPECT_EQ(mge::SettingOf(kCount), "3");
  host_.setting = [](void*, uint32_t, mge_text* out) -> mge_code {
    *out = mge::Text("7");
    return MGE_OK;
  };
  EXPECT_TRUE(mge::ReadSetting(kCount, &value).ok());
  EXPECT_EQ(value, "7");
}

TEST_F(Tables, AFencePointOfTheHostRefersToTheBackendsFence) {
  struct Fence {
  } own;
  mge_fence* raw = mge::internal::HandleOf<mge_fence>(&own);
  const mge_fence_point point = {sizeof(point), 0, raw, 1}, reached = {sizeof(reached), 0, nullptr, 0}, *none = nullptr;
  EXPECT_EQ(mge::FenceOf<Fence>(&point), &own);
  EXPECT_EQ(mge::FenceOf<Fence>(raw), &own);
  EXPECT_EQ(mge::FenceOf<Fence>(&reached), nullptr);
  EXPECT_EQ(mge::FenceOf<Fence>(none), nullptr);
}

TEST_F(Tables, FindReadyMadePartsOnEveryHostThatHasThem) {
  kPlugin.stop();
  mge_ready_made parts = {};
  host_.ready_made = &parts;
  for (bool has : {true, false}) {
    host_.struct_size = has ? offsetof(mge_host, core_setting) : offsetof(mge_host, ready_made);
    ASSERT_EQ(kPlugin.start(&host_, &error_), MGE_OK);
    EXPECT_EQ(mge::ReadyMade(), has ? &parts : nullptr);
    kPlugin.stop();
  }
  ASSERT_EQ(kPlugin.start(&host_, &error_), MGE_OK);
}

TEST_F(Tables, DevicesGetDefaultsForMissingMembers) {
  std::vector<std::string> seen;
  mge_device_sink sink = {sizeof(sink), 0, &seen, [](void* self, const mge_device_info* d) {
                            static_cast<std::vector<std::string>*>(self)->push_back(
                                std::to_string(d->index) + " " + std::string(mge::View(d->class_name)) + " " +
                                std::string(mge::View(d->fingerprint)) + " " + std::to_string(d->score) +
                                std::string(mge::View(d->reason)) + " " + std::to_string(d->max_allocation));
                          }};
  ASSERT_EQ(kPlugin.device->enumerate(&sink, &error_), MGE_OK);
  EXPECT_THAT(seen, ElementsAre("0 test test-0 50 4096", "1 other other-1 0broken 0"));
}

TEST_F(Tables, DevicesListTheirProperties) {
  std::vector<std::string> seen;
  mge_device_sink sink = {sizeof(sink), 0, &seen, [](void* self, const mge_device_info* d) {
                            std::string text = std::to_string(d->buffer_alignment) + " " + std::to_string(d->compute_queues);
                            for (uint64_t i = 0; i < d->property_count; ++i) {
                              const mge_property& p = *d->properties[i];
                              text += " " + std::string(mge::View(p.key)) + "=" + std::string(mge::View(p.value));
                            }
                            static_cast<std::vector<std::string>*>(self)->push_back(text);
                          }};
  ASSERT_EQ(kPlugin.device->enumerate(&sink, &error_), MGE_OK);
  EXPECT_THAT(seen, ElementsAre("256 2 uuid=a-1 multiprocessors=8", "0 1"));
}

TEST_F(Tables, ClaimsDependOnTheDevice) {
  mge_device* device = Open();
  TestGraph graph({{"Count", {0, 1}, 2}, {"Count", {2, 1}, 3}}, 4, {3});
  int offers = 0;
  mge_claim_sink sink = {sizeof(sink), 0, &offers, [](void* self, const mge_claim*) { ++*static_cast<int*>(self); }};
  ASSERT_EQ(kPlugin.graph->claim(device, graph.problem.graph, &sink, &error_), MGE_OK);
  EXPECT_EQ(offers, 1);
  mge::DeviceOf<Device>(device).busy = true;
  ASSERT_EQ(kPlugin.graph->claim(device, graph.problem.graph, &sink, &error_), MGE_OK);
  EXPECT_EQ(offers, 1);
  kPlugin.device->close(device);
}

TEST_F(Tables, AFailedInitLeaksNothing) {
  mge_device* device = nullptr;
  EXPECT_EQ(kPlugin.device->open(1, &device, &error_), MGE_UNAVAILABLE);
  EXPECT_EQ(error_.text, "it does not answer");
  EXPECT_EQ(device, nullptr);
  EXPECT_EQ(Device::open, 0);  // the destructor ran
}

TEST_F(Tables, ADeviceThatIsNotListedIsNeverCreated) {
  mge_device* device = nullptr;
  EXPECT_EQ(kPlugin.device->open(2, &device, &error_), MGE_NOT_FOUND);
  EXPECT_EQ(error_.text, "there is no device test2");
  EXPECT_EQ(kPlugin.device->open(2, &device, nullptr), MGE_NOT_FOUND);
  EXPECT_EQ(Device::open, 1);  // no device was created or destroyed
}

TEST_F(Tables, AKernelMayHaveStatePackConstantsAndAddToItsOutput) {
  mge_device* device = Open();
  const mge_kernel_api& api = *kPlugin.kernel;
  TestGraph graph({{"Count", {0, 1}, 2}}, 3, {2});
  Answers answers;
  ASSERT_EQ(api.enumerate(device, &graph.problem, nullptr, &answers.sink, &error_), MGE_OK);
  ASSERT_THAT(answers.offers, ElementsAre("test.count"));
  mge_candidate candidate = {};
  candidate.struct_size = sizeof(candidate);
  candidate.id = mge::Text("test.count");
  candidate.token = answers.token;
  candidate.workspace_bound = 100;
  mge_prepared prepared = {};
  prepared.struct_size = sizeof(prepared);
  ASSERT_EQ(api.prepare(device, &graph.problem, &candidate, &prepared, &error_), MGE_OK);
  EXPECT_EQ(prepared.workspace_bytes, 60u);
  ASSERT_TRUE(prepared.prepack_bytes);
  EXPECT_EQ(prepared.prepack_bytes[0], 0u);
  EXPECT_EQ(prepared.prepack_bytes[1], 8u);
  ASSERT_TRUE(prepared.prepack_forms);
  EXPECT_EQ(mge::View(prepared.prepack_forms[0]), "");  // an input that is not packed has no form
  EXPECT_EQ(mge::View(prepared.prepack_forms[1]), "negated");
  ASSERT_EQ(prepared.has_state, 1u);
  float weight = 3, packed = 0, y = 10;
  ASSERT_EQ(api.prepack(prepared.kernel, 1, &weight, &packed, &error_), MGE_OK);
  mge_slot inputs[] = {{0, 0, 0}, {0, 0, 0}}, output = {1, 0, 0};
  mge_binding binding = {};
  binding.struct_size = sizeof(binding);
  binding.inputs = inputs;
  binding.outputs = &output;
  alignas(16) char args[256];
  ASSERT_LE(prepared.args_bytes, sizeof(args));
  mge_step_fn step = nullptr;
  ASSERT_EQ(api.bind(prepared.kernel, &binding, args, &step, &error_), MGE_OK);
  void* state = nullptr;
  ExpectCaught("state", [&] { return api.state_create(prepared.kernel, &state, &error_); });
  mge::DeviceOf<Device>(device).busy = true;
  EXPECT_EQ(api.state_create(prepared.kernel, &state, &error_), MGE_UNAVAILABLE);
  EXPECT_EQ(error_.text, "the device is busy");
  EXPECT_EQ(state, nullptr);
  mge::DeviceOf<Device>(device).busy = false;
  ASSERT_EQ(api.state_create(prepared.kernel, &state, &error_), MGE_OK);
  void* bases[] = {&packed, &y};
  mge_run run = {};
  run.struct_size = sizeof(run);
  run.width = 2;
  run.bases = bases;
  run.states = &state;
  run.error = &error_;
  run.parallel_for = [](void*, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
    for (uint64_t i = 0; i < chunks; ++i) body(context, i);
  };
  EXPECT_EQ(step(args, &run), MGE_OK);
  EXPECT_EQ(step(args, &run), MGE_OK);
  EXPECT_EQ(y, 10 - 3 * 1 - 3 * 2);
  ExpectCaught("launch", [&] { return step(args, &run); });
  ExpectCaught("chunk", [&] { return step(args, &run); });
  api.state_destroy(prepared.kernel, state);
  api.destroy(prepared.kernel);
  kPlugin.device->close(device);
}

TEST_F(Tables, RefusalsCarryTheirReason) {
  mge_device* device = Open();
  TestGraph graph({{"Count", {0, 1}, 2}}, 3, {2});
  Answers plain, narrow, strict;
  graph.mode = MGE_WRITE;
  kPlugin.kernel->enumerate(device, &graph.problem, nullptr, &plain.sink, &error_);
  EXPECT_THAT(plain.refusals, ElementsAre("it only adds"));
  graph.mode = MGE_WRITE_ADD;
  mge_constraints constraints = {sizeof(constraints), 0, 0, 0, 99};
  kPlugin.kernel->enumerate(device, &graph.problem, &constraints, &narrow.sink, &error_);
  EXPECT_THAT(narrow.refusals, ElementsAre(HasSubstr("100 bytes of workspace")));
  constraints = {sizeof(constraints), 0, MGE_KERNEL_CAPTURE_SAFE, 0, UINT64_MAX};
  kPlugin.kernel->enumerate(device, &graph.problem, &constraints, &strict.sink, &error_);
  EXPECT_THAT(strict.refusals, ElementsAre(HasSubstr("required attributes are missing: capture-safe")));
  EXPECT_THAT(strict.offers, IsEmpty());
  TestGraph empty({}, 1, {0});
  EXPECT_EQ(kPlugin.kernel->enumerate(device, &empty.problem, nullptr, &plain.sink, &error_), MGE_INVALID_ARGUMENT);
  kPlugin.device->close(device);
}

TEST_F(Tables, ThePoolPassesOnErrorsOfTheHost) {
  mge_device* device = Open();
  const mge_pool_api& api = *kPlugin.memory->own_pool;
  mge_slab_provider provider = {};
  provider.acquire = [](void*, uint64_t, mge_slab*, mge_error* error) -> mge_code {
    *error = {MGE_RESOURCE_EXHAUSTED, "the budget is spent"};
    return MGE_RESOURCE_EXHAUSTED;
  };
  mge_pool* pool = nullptr;
  ASSERT_EQ(api.create(device, 0, &provider, &pool, &error_), MGE_OK);
  mge_reservation reservation = {};
  EXPECT_EQ(api.acquire(pool, 1, 64, nullptr, 0, &reservation, &error_), MGE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(error_.text, "the budget is spent");
  EXPECT_EQ(api.acquire(pool, 1, 64, nullptr, 128, &reservation, &error_), MGE_UNIMPLEMENTED);  // an unknown flag
  api.destroy(pool);
  kPlugin.device->close(device);
}

TEST_F(Tables, UnknownClassesOfMemoryAreRefused) {
  mge_device* device = Open();
  mge_slab slab = {};
  slab.struct_size = sizeof(slab);
  mge_pool* pool = nullptr;
  mge_slab_provider provider = {};
  for (int32_t unknown : {-1, int32_t{MGE_MEMORY_CLASS_COUNT}}) {
    EXPECT_EQ(kPlugin.memory->slab_acquire(device, unknown, 64, &slab, &error_), MGE_UNIMPLEMENTED);
    EXPECT_EQ(kPlugin.memory->own_pool->create(device, unknown, &provider, &pool, &error_), MGE_UNIMPLEMENTED);
  }
  ASSERT_EQ(kPlugin.memory->slab_acquire(device, MGE_MEMORY_DEVICE, 64, &slab, &error_), MGE_OK);
  kPlugin.memory->slab_release(device, &slab);
  kPlugin.device->close(device);
}

TEST_F(Tables, AnUnknownModeOfSelectionIsRefused) {
  mge_device* device = Open();
  mge_candidate candidates[2] = {};
  const mge_candidate* list[] = {&candidates[0], &candidates[1]};
  mge_choice choice = {sizeof(choice), MGE_SELECT_PROFILE, nullptr, list, 2, nullptr};
  uint32_t order[2] = {9, 9};
  EXPECT_EQ(kPlugin.strategy->order(device, &choice, order, &error_), MGE_OK);
  EXPECT_THAT(order, ElementsAre(1, 0));  // the strategy swapped the candidates
  choice.mode = 17;
  EXPECT_EQ(kPlugin.strategy->order(device, &choice, order, &error_), MGE_UNIMPLEMENTED);
  kPlugin.device->close(device);
}

TEST_F(Tables, TheErrorNamesReadyMadePartsThatAnOlderHostLacks) {
  mge_plan_summary plan = {};
  mge_reserve_decision decision = {};
  EXPECT_EQ(mge::ReadyReserve("none", plan, &decision).code(), MGE_UNIMPLEMENTED);
  mge_choice choice = {};
  EXPECT_EQ(mge::ReadyOrder(mge::Choice(&choice), {}).code(), MGE_UNIMPLEMENTED);
  host_.struct_size = 16;  // the host's struct lacks that member
  host_.ready_made = reinterpret_cast<const mge_ready_made*>(1);
  EXPECT_EQ(mge::ReadyMade(), nullptr);
}

}  // namespace
