// SPDX-License-Identifier: Apache-2.0
// A backend: one struct names its parts, one macro creates its note, its tables and its entry point.
//
//   struct Backend : mge::BackendDefaults {
//     static constexpr std::string_view kName = "demo", kVersion = "0.1.0";
//     using Device = DemoDevice;
//     using Kernels = mge::Kernels<kRelu>;
//   };
//   MGE_BACKEND(Backend);
//
// The struct may replace any member of BackendDefaults. If a part has an optional member function, the host receives it. A
// wrong signature does not compile.
#pragma once

#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "mge/plugin/blob.hpp"
#include "mge/plugin/claim.hpp"
#include "mge/plugin/collective.hpp"
#include "mge/plugin/device.hpp"
#include "mge/plugin/kernel.hpp"
#include "mge/plugin/memory.hpp"
#include "mge/plugin/names.hpp"
#include "mge/plugin/queue.hpp"
#include "mge/plugin/setting.hpp"
#include "mge/plugin/strategy.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// The defaults of every part. A backend derives from it.
struct BackendDefaults {
  static constexpr std::string_view kClasses = {};    // device classes, separated by ','; empty: the name
  static constexpr uint32_t kIsa = 0;                 // MGE_ISA_ bits that the library requires
  static constexpr std::string_view kKernelSet = {};  // changes when kernels change their meaning; empty: kVersion
  static constexpr std::span<const mge_setting* const> kSettings = {};
  using Memory = HostMemory;
  using Pool = pool::Growing;
  using Reserve = reserve::None;
  using Strategy = strategy::Heuristic;
  // void: not provided
  using Queue = void;
  using Fence = void;
  using Record = void;
  using Stamp = void;
  using Layouts = void;  // struct with static Result Describe(Device&, const LayoutQuestion&, mge_layout_info* out)
  using Claims = void;
  using Communicator = void;
  // Starts the backend, for example loads the driver's library. Must be fast. Returns MGE_UNAVAILABLE with what to do if it
  // cannot.
  static Result Start() { return {}; }
  // Joins every thread and releases every handle. Start() may be called again.
  static void Stop() {}
  // static const void* Extension(std::string_view name, uint32_t min_version)   optional: returns a table, or NULL
  // static bool AllowRewrite(Device& device, std::string_view name)             optional: false forbids a rewrite of the host
};

// A question about a tensor in an opaque layout.
struct LayoutQuestion {
  const mge_layout& layout;
  mge_dtype dtype;
  std::span<const int64_t> dims;
};

namespace internal {

template <typename B>
struct LayoutTable {
  static mge_code Describe(mge_device* device, const mge_layout* layout, mge_dtype dtype, int32_t rank, const int64_t* dims,
                           mge_layout_info* out, mge_error* error) noexcept {
    return FillOut(error, out, [&](mge_layout_info* info) -> Result {
      const mge_layout whole = Whole(*layout);
      LayoutQuestion question{whole, dtype, {dims, static_cast<size_t>(rank < 0 ? 0 : rank)}};
      return B::Layouts::Describe(As<typename B::Device>(device), question, info);
    });
  }
  static constexpr mge_layout_api Api() {
    return Table<mge_layout_api>([](auto& t) { t.describe = Describe; });
  }
};

// The tables of a backend, as constants.
template <typename B>
struct Tables {
  static_assert(std::is_void_v<typename B::Queue> == std::is_void_v<typename B::Fence>,
                "Queue and Fence: a backend names both or neither");
  static_assert(std::is_void_v<typename B::Stamp> || !std::is_void_v<typename B::Queue>,
                "Stamp: a backend that names it names Queue and Fence, too");
  static constexpr bool kHasQueue = !std::is_void_v<typename B::Queue> && !std::is_void_v<typename B::Fence>;
  static constexpr bool kHasStamp = kHasQueue && !std::is_void_v<typename B::Stamp>;
  static constexpr bool kHasCollectives = kHasQueue && !std::is_void_v<typename B::Communicator>;
  static_assert(kHasCollectives || std::is_void_v<typename B::Communicator>,
                "Communicator: a backend that names it names Queue and Fence, too");
  static constexpr bool kHasLayouts = !std::is_void_v<typename B::Layouts>;

  static mge_code Start(const mge_host* host, mge_error* error) noexcept {
    Host() = host;
    DeclaredSettings() = {std::data(B::kSettings), std::size(B::kSettings)};
    mge_code code = WithoutExceptions(error, [&]() -> Result {
      if (Result r = KernelTable<B::Kernels::Rows>::Check(); !r.ok()) return r;
      return B::Start();
    });
    if (code != MGE_OK) Host() = nullptr;
    return code;
  }
  static void Stop() noexcept {
    Quietly([] { B::Stop(); });
    Host() = nullptr;
  }
  static const void* Extension(const char* name, uint32_t min_version) noexcept {
    return name ? Quietly([&]() -> const void* { return B::Extension(name, min_version); }) : nullptr;
  }

  static constexpr mge_device_api kDevice = DeviceTable<B>::Api();
  static constexpr mge_memory_api kMemory = MemoryTable<B>::Api();
  static constexpr mge_kernel_api kKernel =
      KernelTable<B::Kernels::Rows>::Api(B::kKernelSet.empty() ? B::kVersion : B::kKernelSet);
  // Returns the table of an optional part, or nullptr.
  template <bool kOffered, template <typename> typename TableOf>
  static constexpr auto Optional() {
    if constexpr (kOffered) {
      return TableOf<B>::Api();
    } else {
      return nullptr;
    }
  }
  static constexpr auto kQueue = Optional<kHasQueue, QueueTable>();
  static constexpr auto kProfile = Optional<kHasStamp, ProfileTable>();
  static constexpr auto kLayout = Optional<kHasLayouts, LayoutTable>();
  static constexpr auto kCollective = Optional<kHasCollectives, CollectiveTable>();
  static int32_t AllowRewrite(mge_device* device, const mge_text* name) noexcept {
    return Quietly([&]() -> int32_t { return B::AllowRewrite(As<typename B::Device>(device), View(*name)) ? 1 : 0; });
  }
  static constexpr bool kHasVeto = requires { &B::AllowRewrite; };
  static constexpr bool kHasGraph = kHasVeto || !std::is_void_v<typename B::Claims>;
  static constexpr auto kGraph = [] {
    using Offers = std::conditional_t<std::is_void_v<typename B::Claims>, Claims<>, typename B::Claims>;
    if constexpr (kHasGraph) {
      mge_graph_api api = Offers::Api();
      if constexpr (kHasVeto) api.allow_rewrite = AllowRewrite;
      return api;
    } else {
      return nullptr;
    }
  }();

  static constexpr mge_plugin kPlugin = Table<mge_plugin>([](auto& t) {
    t.name = Text(B::kName);
    t.version = Text(B::kVersion);
    t.settings = std::data(B::kSettings);
    t.setting_count = std::size(B::kSettings);
    t.start = Start;
    t.stop = Stop;
    t.device = &kDevice;
    t.memory = &kMemory;
    t.kernel = &kKernel;
    if constexpr (kHasQueue) t.queue = &kQueue;
    if constexpr (kHasStamp) t.profile = &kProfile;
    if constexpr (kHasLayouts) t.layout = &kLayout;
    if constexpr (kHasCollectives) t.collective = &kCollective;
    if constexpr (kHasGraph) t.graph = &kGraph;
    t.strategy = &StrategyTable<typename B::Device, typename B::Strategy>::kApi;
    if constexpr (requires { &B::Extension; }) t.extension = Extension;
  });
};

template <size_t kSize>
constexpr void CopyTo(char (&field)[kSize], std::string_view text) {
  for (size_t i = 0; i < text.size() && i + 1 < kSize; ++i) field[i] = text[i];
}

template <typename B>
constexpr mge_note_section NoteOf() {
  constexpr std::string_view classes = B::kClasses.empty() ? B::kName : B::kClasses;
  static_assert(WhyNoBackendName(B::kName).empty(), "kName: 1 to 31 characters of a-z, 0-9 and _, the first of a-z");
  static_assert(WhyNoClassList(classes).empty(),
                "kClasses (without it kName): at most 63 characters; each class of two or more of a-z and _, the first of "
                "a-z, the last not x, none of host, xpu, cpu_pinned, cpu_shared or with multithread in front; gpu only "
                "beside another");
  static_assert(!B::kVersion.empty() && B::kVersion.size() < sizeof(mge_note::version), "kVersion: 1 to 31 characters");
  static_assert((B::kIsa & ~MGE_ISA_KNOWN_BITS) == 0, "kIsa: only MGE_ISA_ bits");
  mge_note_section s = {};
  s.owner_size = sizeof(MGE_NOTE_OWNER);
  s.note_size = sizeof(mge_note);
  s.type = MGE_NOTE_TYPE;
  CopyTo(s.owner, MGE_NOTE_OWNER);
  s.note.struct_size = sizeof(mge_note);
  s.note.abi_major = MGE_ABI_MAJOR;
  s.note.abi_minor = MGE_ABI_MINOR;
  s.note.hash_low = static_cast<uint32_t>(MGE_ABI_HASH & 0xffffffffu);
  s.note.hash_high = static_cast<uint32_t>(MGE_ABI_HASH >> 32);
  s.note.isa = B::kIsa;
  CopyTo(s.note.name, B::kName);
  CopyTo(s.note.version, B::kVersion);
  CopyTo(s.note.classes, classes);
  return s;
}

}  // namespace internal

// Checks the host's version and returns the table.
inline mge_code AnswerQuery(const mge_query_in* in, mge_query_out* out, const mge_plugin* plugin) {
  if (!Covers(in, &mge_query_in::header_hash) || !Covers(out, &mge_query_out::reason)) return MGE_INVALID_ARGUMENT;
  if (in->abi_major != MGE_ABI_MAJOR || (MGE_ABI_MAJOR == 0 && in->header_hash != MGE_ABI_HASH)) {
    out->reason = Text("built from other headers than this host; build it again with the host's SDK");
    return MGE_FAILED_PRECONDITION;
  }
  out->plugin = plugin;
  return MGE_OK;
}

}  // namespace MGE_HIDDEN

// Defines the only exported symbol.
#define MGE_PLUGIN_ENTRY(plugin_table)                                                          \
  extern "C" MGE_EXPORT mge_code mge_plugin_query(const mge_query_in* in, mge_query_out* out) { \
    return ::mge::AnswerQuery(in, out, &(plugin_table));                                        \
  }

// Defines the identity note.
#define MGE_BACKEND_NOTE(B)                                                                                  \
  __attribute__((section(MGE_NOTE_SECTION), used, aligned(4))) static constexpr mge_note_section mge_note_ = \
      ::mge::internal::NoteOf<B>()

// Defines a backend's identity note, tables and entry point. Use it once per library.
#define MGE_BACKEND(B)                                  \
  MGE_PLUGIN_ENTRY(::mge::internal::Tables<B>::kPlugin) \
  MGE_BACKEND_NOTE(B)
