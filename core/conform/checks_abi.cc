// SPDX-License-Identifier: Apache-2.0
// Checks of the file, its identity note and its table, of structs that are too short or too long, and of unknown values.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/conform/backend_under_test.h"
#include "core/conform/kernel_run.h"
#include "core/conform/leak_check.h"
#include "core/plugin/abi_call.h"
#include "core/plugin/elf_symbols.h"
#include "core/plugin/isa.h"
#include "core/plugin/strategy.h"
#include "fmt/format.h"
#include "mge/faults.h"

namespace mge::conform {
namespace {

// A copy of the first `covered` bytes of a struct, with that struct_size. It ends at an unreadable page (or up to 7 bytes
// before, for alignment), so that reading beyond it crashes.
template <typename T>
class Truncated {
 public:
  Truncated(const T& whole, uint32_t covered) {
    size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    memory_ = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(static_cast<char*>(memory_) + page, page, PROT_NONE);
    at_ = reinterpret_cast<T*>(static_cast<char*>(memory_) + ((page - covered) & ~size_t{7}));
    std::memcpy(static_cast<void*>(at_), &whole, covered);
    std::memcpy(static_cast<void*>(at_), &covered, sizeof(covered));
  }
  ~Truncated() { munmap(memory_, 2 * static_cast<size_t>(sysconf(_SC_PAGESIZE))); }
  T* get() { return at_; }

 private:
  void* memory_;
  T* at_;
};

// A struct of a newer host: it is longer and has members that this interface does not know.
template <typename T>
struct Oversized {
  T value;
  unsigned char beyond[64];
  explicit Oversized(const T& whole) : value(whole) {
    value.struct_size = sizeof(Oversized);
    std::memset(beyond, 0xee, sizeof(beyond));
  }
  bool Intact() const {
    return std::all_of(std::begin(beyond), std::end(beyond), [](unsigned char c) { return c == 0xee; });
  }
};

absl::Status CheckNote(BackendUnderTest& s) {
  MGE_ASSIGN_OR_RETURN(NoteReading reading, NoteOf(s.path()));
  const PluginNote& note = reading.note;
  if (std::string why = WhyAbiDiffers(note); !why.empty()) return Broken(why);
  if (note.header_hash == MGE_ABI_HASH && note.abi_minor != MGE_ABI_MINOR) {
    return Broken(
        fmt::format("it says interface {}.{}; the headers that it was built from are those of {}.{} (MGE_ABI_MINOR)",
                    note.abi_major, note.abi_minor, MGE_ABI_MAJOR, MGE_ABI_MINOR));
  }
  if (std::string why = WhyIsaIsMissing(note, HostIsa()); !why.empty()) return Broken(why);
  if (reading.build_id.empty()) return Broken("it has no build id; link it with -Wl,--build-id");
  return absl::OkStatus();
}

absl::Status CheckExports(BackendUnderTest& s) {
  bool entry = false;
  MGE_RETURN_IF_ERROR(ReadElfSymbols(
      s.path(), [&](std::string_view name, bool exported) { entry |= exported && name == MGE_PLUGIN_QUERY_SYMBOL; }));
  if (!entry) return Broken("it does not export " MGE_PLUGIN_QUERY_SYMBOL);
  MGE_ASSIGN_OR_RETURN(std::string why, MoreThanOneExport(s.path()));
  return why.empty() ? absl::OkStatus() : Broken(why);
}

absl::Status CheckImports(BackendUnderTest& s) {
  std::string ours;
  MGE_RETURN_IF_ERROR(ReadElfSymbols(s.path(), [&](std::string_view name, bool exported) {
    const bool host = name.starts_with("mge_") || name.starts_with("_ZN3mge") || name.starts_with("_ZNK3mge");
    if (!exported && host && ours.empty()) ours = name;
  }));
  if (ours.empty()) return absl::OkStatus();
  return Broken(fmt::format("it imports the symbol {} of the host; use the services of the table mge_host", ours));
}

absl::Status CheckQueryPure(BackendUnderTest& s) {
  const mge_query_in in = {sizeof(in), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, MGE_ABI_HASH};
  std::string table(reinterpret_cast<const char*>(&s.plugin()), sizeof(mge_plugin));
  ProcessCounts before = ProcessCounts::Now();
  for (int i = 0; i < 100; ++i) {
    mge_query_in copy = in;
    mge_query_out out = {sizeof(out), 0, nullptr, {}};
    if (s.query()(&copy, &out) != MGE_OK)
      return Broken(fmt::format("call {} of {} is refused", i + 2, MGE_PLUGIN_QUERY_SYMBOL));
    if (out.plugin != &s.plugin())
      return Broken(fmt::format("call {} of {} returns another table", i + 2, MGE_PLUGIN_QUERY_SYMBOL));
    if (std::memcmp(&copy, &in, sizeof(in)) != 0) return Broken("it writes to what the host passes in");
  }
  if (table != std::string_view(reinterpret_cast<const char*>(&s.plugin()), sizeof(mge_plugin))) {
    return Broken("the table changes when it is asked for again");
  }
  std::string more = ProcessCounts::Now().MoreThan(before);
  return more.empty() ? absl::OkStatus() : Broken("asking for the table has side effects: " + more);
}

absl::Status CheckQueryRefuses(BackendUnderTest& s) {
  auto refuses = [&](mge_query_in in, std::string_view what) {
    mge_query_out out = {sizeof(out), 0, nullptr, {}};
    if (s.query()(&in, &out) == MGE_OK) return Broken(fmt::format("a host {} is accepted", what));
    if (CopyText(out.reason).empty()) return Broken(fmt::format("a host {} is refused without a reason", what));
    return absl::OkStatus();
  };
  MGE_RETURN_IF_ERROR(refuses({sizeof(mge_query_in), MGE_ABI_MAJOR + 1, 0, 0, MGE_ABI_HASH}, "of the next major version"));
  if (MGE_ABI_MAJOR > 0) return absl::OkStatus();
  return refuses({sizeof(mge_query_in), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, MGE_ABI_HASH ^ 1}, "with other headers");
}

absl::Status CheckTable(BackendUnderTest& s) {
  const mge_plugin& p = s.plugin();
  MGE_ASSIGN_OR_RETURN(NoteReading reading, NoteOf(s.path()));
  if (CopyText(p.name) != reading.note.name || CopyText(p.version) != reading.note.version) {
    return Broken(fmt::format("the identity note says '{}' {}, the table '{}' {}", reading.note.name, reading.note.version,
                              CopyText(p.name), CopyText(p.version)));
  }
  if (p.abi_major != MGE_ABI_MAJOR || p.header_hash != MGE_ABI_HASH || p.abi_minor != reading.note.abi_minor)
    return Broken("the table contradicts the identity note");
  auto size_fits = [&](std::string_view name, uint32_t said, size_t known) {
    return said == known || p.abi_minor > MGE_ABI_MINOR
               ? absl::OkStatus()
               : Broken(
                     fmt::format("table '{}' says {} bytes (struct_size); in these headers it has {}", name, said, known));
  };
  MGE_RETURN_IF_ERROR(size_fits("mge_plugin", p.struct_size, sizeof(mge_plugin)));
  MGE_RETURN_IF_ERROR(size_fits("device", p.device->struct_size, sizeof(mge_device_api)));
  MGE_RETURN_IF_ERROR(size_fits("memory", p.memory->struct_size, sizeof(mge_memory_api)));
  MGE_RETURN_IF_ERROR(size_fits("kernel", p.kernel->struct_size, sizeof(mge_kernel_api)));
  if (p.queue) MGE_RETURN_IF_ERROR(size_fits("queue", p.queue->struct_size, sizeof(mge_queue_api)));
  if (p.graph) MGE_RETURN_IF_ERROR(size_fits("graph", p.graph->struct_size, sizeof(mge_graph_api)));
  if (p.strategy) MGE_RETURN_IF_ERROR(size_fits("strategy", p.strategy->struct_size, sizeof(mge_strategy_api)));
  if (p.layout) MGE_RETURN_IF_ERROR(size_fits("layout", p.layout->struct_size, sizeof(mge_layout_api)));
  if (p.profile) MGE_RETURN_IF_ERROR(size_fits("profile", p.profile->struct_size, sizeof(mge_profile_api)));
  return absl::OkStatus();
}

absl::Status CheckExtensions(BackendUnderTest& s) {
  if (!s.plugin().extension) return NotOffered("the backend has no extensions");
  if (s.plugin().extension("mge.conform.no_such_extension", 1))
    return Broken("it returns a table for an extension that does not exist");
  if (s.plugin().extension("", 0)) return Broken("it returns a table for the empty name");
  if (s.plugin().extension(MGE_FAULTS_EXTENSION, UINT32_MAX))
    return Broken("it returns " MGE_FAULTS_EXTENSION " in a version that does not exist");
  return absl::OkStatus();
}

absl::Status CheckShortStructs(BackendUnderTest& s) {
  const mge_query_in in = {sizeof(in), MGE_ABI_MAJOR, MGE_ABI_MINOR, 0, MGE_ABI_HASH};
  const mge_query_out empty = {sizeof(empty), 0, nullptr, {}};
  s.At("mge_query_in of 4 bytes");
  Truncated<mge_query_in> short_in(in, 4);
  mge_query_out out = empty;
  if (s.query()(short_in.get(), &out) == MGE_OK) return Broken("a mge_query_in of 4 bytes is accepted");
  s.At("mge_query_out of 8 bytes");
  Truncated<mge_query_out> short_out(empty, 8);
  mge_query_in copy = in;
  if (s.query()(&copy, short_out.get()) == MGE_OK) return Broken("a mge_query_out of 8 bytes is accepted");

  MGE_RETURN_IF_ERROR(s.Prepare(Needs::kDevice));
  Offers offers;
  MGE_ASSIGN_OR_RETURN(Case c, FirstSupportedCase(s, &offers));
  AbiProblem problem(c, MGE_WRITE);
  mge_candidate_sink sink = {sizeof(sink), 0, nullptr, [](void*, const mge_candidate*) {},
                             [](void*, const mge_text*, const mge_text*) {}};
  const mge_kernel_api& api = *s.plugin().kernel;
  s.At("mge_problem of 8 bytes");
  Truncated<mge_problem> short_problem(*problem.get(), 8);
  MGE_RETURN_IF_ERROR(MustRefuse("a mge_problem of 8 bytes", [&](mge_error* e) {
    return api.enumerate(s.device(), short_problem.get(), &kNoConstraints, &sink, e);
  }));
  s.At("mge_candidate of 8 bytes");
  Truncated<mge_candidate> short_candidate(offers.offered[0].raw, 8);
  auto prepared = Sized<mge_prepared>();
  MGE_RETURN_IF_ERROR(MustRefuse("a mge_candidate of 8 bytes", [&](mge_error* e) {
    return api.prepare(s.device(), problem.get(), short_candidate.get(), &prepared, e);
  }));
  const mge_strategy_api* strategy = OwnOrder(s.plugin());
  if (!strategy) return absl::OkStatus();
  s.At("mge_choice of 8 bytes");
  Truncated<mge_choice> short_choice({sizeof(mge_choice), MGE_SELECT_HEURISTIC, problem.get(), nullptr, 0, nullptr}, 8);
  uint32_t order = 0;
  return MustRefuse("a mge_choice of 8 bytes",
                    [&](mge_error* e) { return strategy->order(s.device(), short_choice.get(), &order, e); });
}

absl::Status CheckLongStructs(BackendUnderTest& s) {
  Oversized<mge_query_in> in({0, MGE_ABI_MAJOR, MGE_ABI_MINOR + 5, 0, MGE_ABI_HASH});
  Oversized<mge_query_out> out({0, 0, nullptr, {}});
  if (s.query()(&in.value, &out.value) != MGE_OK)
    return Broken("the longer structs of a newer host are refused by " MGE_PLUGIN_QUERY_SYMBOL);
  if (!out.Intact()) return Broken(MGE_PLUGIN_QUERY_SYMBOL " writes beyond the members that it knows");
  MGE_RETURN_IF_ERROR(s.Prepare(Needs::kDevice));
  Offers offers;
  MGE_ASSIGN_OR_RETURN(Case c, FirstSupportedCase(s, &offers));
  AbiProblem problem(c, MGE_WRITE);
  Oversized<mge_problem> longer(*problem.get());
  Oversized<mge_constraints> limits(kNoConstraints);
  MGE_ASSIGN_OR_RETURN(Offers again, Enumerate(s, longer.value, limits.value));
  if (again.offered.size() != offers.offered.size())
    return Broken("for a mge_problem that is longer than known, other candidates are offered");
  return absl::OkStatus();
}

absl::Status CheckUnknownBits(BackendUnderTest& s) {
  auto slab = Sized<mge_slab>();
  MGE_RETURN_IF_ERROR(MustRefuse(
      "the memory class 99", [&](mge_error* e) { return s.plugin().memory->slab_acquire(s.device(), 99, 4096, &slab, e); }));
  if (const mge_queue_api* api = s.plugin().queue) {
    mge_queue* queue = nullptr;
    MGE_RETURN_IF_ERROR(
        MustRefuse("the queue kind 99", [&](mge_error* e) { return api->create(s.device(), 99, &queue, e); }));
  }
  if (const mge_strategy_api* api = OwnOrder(s.plugin())) {
    Offers offers;
    MGE_ASSIGN_OR_RETURN(Case c, FirstSupportedCase(s, &offers));
    AbiProblem problem(c, MGE_WRITE);
    mge_choice choice = {sizeof(choice), 99, problem.get(), nullptr, 0, nullptr};
    uint32_t order = 0;
    MGE_RETURN_IF_ERROR(
        MustRefuse("the selection mode 99", [&](mge_error* e) { return api->order(s.device(), &choice, &order, e); }));
  }
  return absl::OkStatus();
}

constexpr Check kRows[] = {
    {"abi.note", "The file has a valid identity note, which is readable without running its code.", Needs::kFile, CheckNote},
    {"abi.exports", "The file exports only its entry point.", Needs::kFile, CheckExports},
    {"abi.imports", "The file imports no symbol of the host.", Needs::kFile, CheckImports},
    {"abi.table", "The table is complete and agrees with the identity note.", Needs::kTable, CheckTable},
    {"abi.query_pure", "The table can be queried many times without side effects.", Needs::kTable, CheckQueryPure},
    {"abi.query_refuses", "An incompatible host is refused with a reason.", Needs::kTable, CheckQueryRefuses},
    {"abi.extensions", "For unknown extensions and versions NULL is returned.", Needs::kTable, CheckExtensions},
    {"abi.short_structs", "Structs that are too short are refused, and not read beyond their end.", Needs::kLives,
     CheckShortStructs},
    {"abi.long_structs", "Structs of a newer host are accepted, and not written beyond the known members.", Needs::kLives,
     CheckLongStructs},
    {"abi.unknown_values", "Kinds, classes and modes that do not exist are refused with a text.", Needs::kDevice,
     CheckUnknownBits},
};

}  // namespace

std::span<const Check> AbiChecks() { return kRows; }

}  // namespace mge::conform
