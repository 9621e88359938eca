// SPDX-License-Identifier: Apache-2.0
// A backend that compiles without macros. Each macro of sdk.cmake adds a mistake, and the compiler error must name the rule.
#include "mge/plugin.hpp"

namespace {

struct Device {
  static mge::Result List(mge::DeviceList&) { return {}; }
  explicit Device(uint32_t) {}
};

struct Relu {
  static constexpr const char* kOp = "Relu";
  static constexpr const char* kId = "mistakes.relu";
#if defined(OFFER_BY_VALUE)
  static void Offer(const mge::Problem&, mge::Offers offers) { offers.Add({.id = kId}); }
  Relu(const mge::Problem&, const mge::Candidate&) {}
#else
  static mge::Support Supports(const mge::Problem&) { return mge::Yes(); }
  explicit Relu(const mge::Problem&) {}
#endif
#if defined(DESCRIBE_BY_VALUE)
  static void Describe(const mge::Problem&, mge::Candidate candidate) { candidate.cost_us = 1; }
#endif
#if defined(MAKE_WITHOUT_CANDIDATE)
  static mge::KernelPtr Make(const mge::Problem&) { return nullptr; }
#endif
#if defined(WORKSPACE_AS_DOUBLE)
  double workspace_bytes() const { return 0.5; }
#endif
#if defined(SIZE_WITHOUT_PREPACK) || defined(PREPACK_OF_CONSTANTS)
  uint64_t prepack_bytes(int) const { return 8; }
#endif
#if defined(PREPACK_OF_CONSTANTS)
  void Prepack(int, const void*, const void*) const {}
#endif
  void Bind(const mge::Binding&) {}
  mge_code Launch(const mge_run*) const { return MGE_OK; }
};
constexpr mge::KernelRow kRelu = mge::Row<Relu>();

struct Fence {
  explicit Fence(Device&) {}
  mge::Result HostWait(uint64_t, uint64_t) { return {}; }
};
struct Queue {
  Queue(Device&, int32_t) {}
  mge::Result Copy(void*, const void*, uint64_t) { return {}; }
  mge::Result Signal(Fence&, uint64_t) { return {}; }
  mge::Result Wait(Fence&, uint64_t) { return {}; }
#if defined(CAPTURE_WITHOUT_RECORD)
  mge::Result CaptureBegin() { return {}; }
#endif
};
struct Stamp {
  explicit Stamp(Device&) {}
  mge::Result Take(Queue&) { return {}; }
  static mge::Result ElapsedUs(Stamp&, Stamp&, double*) { return {}; }
};

struct Backend : mge::BackendDefaults {
#if defined(NAME_IN_CAPITALS)
  static constexpr std::string_view kName = "Mistakes", kVersion = "1", kClasses = "mistakes";
#elif defined(CLASS_THAT_ENDS_IN_X)
  static constexpr std::string_view kName = "mistakes", kVersion = "1", kClasses = "box";
#else
  static constexpr std::string_view kName = "mistakes", kVersion = "1";
#endif
  using Device = ::Device;
  using Kernels = mge::Kernels<kRelu>;
#if defined(STAMP_WITHOUT_QUEUE)
  using Stamp = ::Stamp;
#elif defined(QUEUE_WITHOUT_FENCE)
  using Queue = ::Queue;
#else
  using Queue = ::Queue;
  using Fence = ::Fence;
  using Stamp = ::Stamp;
#endif
};

}  // namespace

MGE_BACKEND(Backend);
