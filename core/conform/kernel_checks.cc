// SPDX-License-Identifier: Apache-2.0
#include "core/conform/kernel_checks.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "core/conform/kernel_run.h"
#include "core/conform/leak_check.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

constexpr const char* kOffers = "kernel.offers";
constexpr const char* kConstraints = "kernel.constraints";
constexpr const char* kPrepare = "kernel.prepare";
constexpr const char* kNumerics = "kernel.numerics";
constexpr const char* kRepeatable = "kernel.repeatable";
constexpr const char* kDeterministic = "kernel.deterministic";
constexpr const char* kBatch = "kernel.batch_invariant";
constexpr const char* kInPlace = "kernel.in_place";
constexpr const char* kWriteAdd = "kernel.write_add";
constexpr const char* kPrepack = "kernel.prepack";
constexpr const char* kQueueOrder = "kernel.queue_order";
constexpr const char* kAlignment = "kernel.alignment";
constexpr const char* kConcurrent = "kernel.concurrent";
constexpr const char* kCancel = "kernel.cancel";
constexpr const char* kCapture = "kernel.capture";
constexpr const char* kModes = "kernel.thread_modes";
constexpr const char* kNoAllocation = "kernel.launch_allocates";
constexpr const char* kLeaks = "kernel.leaks";
constexpr const char* kRoundTrip = "layout.round_trip";
constexpr const char* kDescribe = "layout.describe";

constexpr size_t kQuickSpecs = 4;  // number of specs per operator with --quick

constexpr Check kRows[] = {
    {kOffers, "Candidates are well formed and the same every time; other problems are refused with a reason."},
    {kConstraints, "No candidate is offered that the constraints exclude; unknown write modes are refused."},
    {kPrepare, "Every offered candidate can be prepared and bound, and its arguments fit their size."},
    {kNumerics, "Results equal those of the reference evaluators within the tolerance of the element type."},
    {kBounds, "No byte outside of the operands is written."},
    {kInputs, "Inputs and constants are not changed."},
    {kWorkspace, "The workspace is not larger than its bound, and no byte behind it is written."},
    {kRepeatable, "A second run with other data at other addresses is correct, too."},
    {kDeterministic, "Deterministic candidates give the same bits for any threads, addresses and stale memory."},
    {kBatch, "Batch-invariant candidates give the same bits for a row, for any number and content of other rows."},
    {kInPlace, "An output can share memory with the input that the candidate names for it."},
    {kWriteAdd, "A kernel that offers to add to an output does so."},
    {kPrepack, "Packing keeps to its size, reads the source only during the call, and gives equal bytes for equal forms."},
    {kQueueOrder, "Kernels run on their queue, after the work that was enqueued before."},
    {kAlignment, "Without queues, plain operands and constants may be aligned only to the size of their elements."},
    {kConcurrent, "Concurrent runs of one kernel do not disturb each other."},
    {kCancel, "A cancelled run ends normally, and the next run is correct."},
    {kCapture, "A captured step does not run during the capture; a replay uses the current content of the memory."},
    {kModes, "A launch does not change the floating-point modes of the calling thread."},
    {kNoAllocation, "A launch allocates no heap memory, unless the candidate has the attribute MGE_KERNEL_ALLOCATES."},
    {kLeaks, "Repeatedly preparing, running and destroying a kernel leaks no memory of the host or the device."},
    {kKernelAllocations, "Offering, preparing, launching and destroying a kernel survive every failing allocation."},
    {kRoundTrip, "A tensor is unchanged after conversion to every layout that a candidate names, and back."},
    {kDescribe, "The backend's own layouts have a name and the size that candidates state; unknown ones are refused."},
};

// Returns whether all non-constant operands with the layout ANY have the same rank, from 3 to 8. Then `*out` is the layout
// with channels last.
bool TakesChannelsLast(const mge_problem& problem, const Candidate& k, mge_layout* out) {
  std::set<int32_t> ranks;
  const mge_graph& g = *problem.graph;
  auto add = [&](const mge_layout& l, const mge_value& v) {
    if (l.kind == MGE_LAYOUT_ANY && !v.data) ranks.insert(v.rank);
  };
  for (uint64_t i = 0; i < g.input_count; ++i) add(k.inputs[i], *g.values[g.inputs[i]]);
  for (uint64_t i = 0; i < g.output_count; ++i) add(k.outputs[i], *g.values[g.outputs[i]]);
  const int32_t rank = ranks.size() == 1 ? *ranks.begin() : 0;
  if (rank < 3 || rank > 8) return false;
  *out = PlainLayout();
  out->kind = MGE_LAYOUT_PERMUTED;
  out->rank = rank;
  for (int32_t i = 1; i < rank; ++i) out->perm[i] = i == rank - 1 ? 1 : i + 1;
  return true;
}

bool SameBits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::ranges::equal(a, b, [](const Tensor& x, const Tensor& y) { return BytesOf(x) == BytesOf(y); });
}

// Returns row 0 of each tensor whose dimension 0 is `rows`.
std::vector<Tensor> FirstRows(const std::vector<Tensor>& tensors, int64_t rows) {
  std::vector<Tensor> out;
  for (const Tensor& t : tensors) {
    if (t.rank() == 0 || t.shape()[0] != rows) continue;
    Shape shape = t.shape();
    shape[0] = 1;
    out.push_back(Tensor::View(t.dtype(), shape, t.data(), t.owner()));
  }
  return out;
}

// Returns a tensor with the first row of `t` and the other rows of `other`.
Tensor WithFirstRow(const Tensor& t, const Tensor& other) {
  Tensor out = RandomTensor(t.dtype(), t.shape(), 0, 1, 1);
  size_t row = static_cast<size_t>(t.bytes() / t.shape()[0]);
  auto* to = static_cast<char*>(out.mutable_data());
  std::memcpy(to, t.data(), row);
  std::memcpy(to + row, static_cast<const char*>(other.data()) + row, static_cast<size_t>(t.bytes()) - row);
  return out;
}

// The checks of one operator. Findings go to the reporter of the backend.
class KernelChecker {
 public:
  KernelChecker(BackendUnderTest& tested, Bench& bench, bool quick, bool full)
      : tested_(tested), w_(tested.reporter()), bench_(bench), quick_(quick), full_(full) {}

  // Runs all checks on one case. Returns whether a candidate is offered. `support` is set to the candidates or to the reason
  // of the refusal.
  bool CheckCase(const Case& c, bool first, std::string* support) {
    where_ = c.Name();
    w_.At(where_);
    w_.Begin(kOffers);
    AbiProblem problem(c, MGE_WRITE);
    absl::StatusOr<Offers> offers = Enumerate(tested_, *problem.get());
    if (!Fine(kOffers, offers.status())) return false;
    const bool silent = offers->offered.empty() && offers->refused.empty() && offers->malformed.empty();
    answered_ |= !silent;
    if (silent && silent_.empty()) silent_ = c.Name();
    if (offers->offered.empty()) {
      if (!offers->malformed.empty()) Found(kOffers, offers->malformed);
      *support = offers->refused.empty() ? "no kernel" : offers->refused[0];
      return false;
    }
    CheckOffers(*problem.get(), *offers);
    if (first) CheckConstraints(c, problem, *offers);
    *support = offers->Ids();
    for (const Candidate& k : offers->offered) {
      CheckOne(c, k, first, nullptr);
      mge_layout last = {};
      if (!quick_ && c.dtype == DType::kF32 && TakesChannelsLast(*problem.get(), k, &last)) CheckOne(c, k, false, &last);
    }
    any_ = nullptr;
    where_ = c.Name();
    CheckWriteAdd(c);
    w_.Ran(c.def->name, c.Name());
    return true;
  }

  // Keep() remembers, for each candidate, the case with the most work. CheckLongest() runs the checks that need long runs on
  // them.
  void Keep(const Case& c) {
    w_.Begin(kOffers);
    w_.At(c.Name());
    absl::StatusOr<Offers> offers = Enumerate(tested_, c);
    if (!offers.ok()) return;
    for (const Candidate& k : offers->offered) {
      auto [at, fresh] = longest_.try_emplace(k.id, c);
      if (!fresh && c.Work() > at->second.Work()) at->second = c;
    }
  }

  void CheckLongest() {
    for (const auto& [id, c] : longest_) {
      where_ = fmt::format("{} {}", c.Name(), id);
      w_.At(where_);
      Begin(kNumerics);
      absl::StatusOr<Offers> offers = Enumerate(tested_, c);
      if (!Fine(kNumerics, offers.status())) continue;
      const Candidate* candidate = offers->Find(id);
      std::unique_ptr<KernelRun> kernel_run = candidate ? Make(c, *candidate, {}) : nullptr;
      if (!kernel_run) continue;
      if (!RunRight(kNumerics, *kernel_run, 0, 1, 0xff)) continue;
      Applied(kQueueOrder, [&] { return CheckQueueOrder(*kernel_run); });
      CheckCancel(*kernel_run);  // a short run may end before it checks the flag
      Applied(kConcurrent, [&] { return CheckConcurrentRuns(*kernel_run); });
    }
    longest_.clear();
  }

  // Reports a case that was neither offered nor refused, if other cases of the operator were.
  void CheckSilence() {
    if (answered_ && !silent_.empty())
      w_.Found(kOffers, silent_, "the problem is neither offered nor refused; refuse it with a reason for the user");
  }

 private:
  void Found(const char* check, const std::string& what) { w_.Found(check, where_, what); }
  // Records the result of a function that performs `check`.
  void Applied(const char* check, const std::function<absl::Status()>& work) {
    w_.Begin(check);
    absl::Status status = work();
    if (IsNotOffered(status)) return w_.NotOffered(check, Std(status.message()));
    w_.Applied(check);
    Fine(check, status);
  }
  // Reports an error status as a finding of `check`. Returns whether the status is OK.
  bool Fine(const char* check, const absl::Status& status) {
    if (!status.ok()) Found(check, std::string(status.message()));
    return status.ok();
  }
  void Begin(const char* check) {
    w_.Begin(check);
    w_.Applied(check);
  }
  void CheckOffers(const mge_problem& problem, const Offers& offers) {
    Begin(kOffers);
    if (!offers.malformed.empty()) Found(kOffers, offers.malformed);
    absl::StatusOr<Offers> again = Enumerate(tested_, problem);
    if (!Fine(kOffers, again.status())) return;
    const bool same = std::ranges::equal(again->offered, offers.offered, [](const Candidate& x, const Candidate& y) {
      return x.id == y.id && x.attributes == y.attributes;
    });
    if (!same) Found(kOffers, "a second enumeration offers other candidates");
  }

  void CheckConstraints(const Case& c, const AbiProblem& problem, const Offers& offers) {
    Begin(kConstraints);
    constexpr uint32_t kSize = sizeof(mge_constraints);
    const uint64_t forbidden = offers.offered[0].attributes;
    const std::pair<mge_constraints, const char*> limits[] = {
        {{kSize, 0, MGE_KERNEL_DETERMINISTIC, 0, UINT64_MAX}, "only deterministic ones are asked for"},
        {{kSize, 0, 0, forbidden, UINT64_MAX}, "its attributes are forbidden"},
        {{kSize, 0, 0, 0, 0}, "no workspace is allowed"},
        {{kSize, 0, ~MGE_KERNEL_KNOWN_BITS, 0, UINT64_MAX}, "an attribute is required that this interface does not have"}};
    for (const auto& [limit, reason] : limits) {
      absl::StatusOr<Offers> some = Enumerate(tested_, *problem.get(), limit);
      if (!Fine(kConstraints, some.status())) continue;
      for (const Candidate& k : some->offered) {
        if ((limit.require & ~k.attributes) || k.Has(limit.forbid) || k.workspace > limit.workspace_limit)
          Found(kConstraints, fmt::format("'{}' is offered, though {}", k.id, reason));
      }
    }
    absl::StatusOr<Offers> some = Enumerate(tested_, c, 77);
    if (some.ok() && !some->offered.empty()) {
      Found(kConstraints, fmt::format("'{}' is offered for the write mode 77, which does not exist", some->offered[0].id));
    }
  }

  // Runs all checks on one candidate. `any` is the layout for operands with the layout ANY; nullptr: plain.
  void CheckOne(const Case& c, const Candidate& candidate, bool first, const mge_layout* any) {
    where_ = fmt::format("{} {}{}", c.Name(), candidate.id, any ? " in " + LayoutText(*any) : "");
    any_ = any;
    w_.At(where_);
    Begin(kPrepare);
    std::unique_ptr<KernelRun> kernel_run = Make(c, candidate, {});
    if (!kernel_run) return;
    if (!kernel_run->args_fault().empty()) Found(kPrepare, kernel_run->args_fault());
    w_.Applied(kWorkspace);
    if (uint64_t asked = kernel_run->prepared().workspace_bytes; asked > candidate.workspace) {
      Found(kWorkspace,
            fmt::format("prepare asks for {} bytes of workspace; the candidate's bound is {}", asked, candidate.workspace));
    }
    if (kernel_run->prepared().prepack_bytes) w_.Applied(kPrepack);

    Begin(kNumerics);
    std::optional<RunResult> one = RunChecked(kNumerics, *kernel_run, 0, c.inputs[0], 1, 0xff);
    w_.Applied(kBounds);
    w_.Applied(kInputs);
    w_.Applied(kModes);
    if (!one) return;
    if (!Right(kernel_run->prepared().prepack_bytes ? kPrepack : kNumerics, kernel_run->Wrong(*one, 0))) return;
    Begin(kRepeatable);
    if (!RunRight(kRepeatable, *kernel_run, 1, 3, 0x5a, 1)) return;
    for (int i = 0; i < (quick_ || !first ? 2 : 6); ++i) {
      bool claims = candidate.Has(MGE_KERNEL_DETERMINISTIC);
      const char* check = claims ? kDeterministic : kRepeatable;
      Begin(check);
      const auto width = 1 + static_cast<uint32_t>(i % 3);
      std::optional<RunResult> again = RunRight(check, *kernel_run, 0, width, i % 2 ? 0x00 : 0x5a, i % 2);
      if (!again) return;
      if (claims && !SameBits(again->outputs, one->outputs))
        return Found(kDeterministic, "equal inputs gave other bits in another run");
    }
    CheckBatch(*kernel_run, *one);
    CheckAlignment(c, candidate);
    CheckInPlace(c, candidate);
    CheckRoundTrips(c, candidate);
    if (!first) return;
    if (!candidate.Has(MGE_KERNEL_ALLOCATES)) Applied(kNoAllocation, [&] { return CheckLaunchMemory(*kernel_run); });
    CheckCancel(*kernel_run);
    CheckCapture(*kernel_run);
    kernel_run.reset();
    CheckLeaks(c, candidate);
    if (full_ || failed_.insert(candidate.id).second) CheckKernelAllocations(bench_, c, candidate, FailureSeconds(quick_));
    w_.At(where_);
  }

  std::unique_ptr<KernelRun> Make(const Case& c, const Candidate& candidate, KernelRun::Options options) {
    options.any = any_;
    absl::StatusOr<std::unique_ptr<KernelRun>> kernel_run = KernelRun::Create(bench_, c, candidate, options);
    if (!kernel_run.ok()) {
      Found(options.in_place ? kInPlace : kPrepare, std::string(kernel_run.status().message()));
      return nullptr;
    }
    if (!(*kernel_run)->packing_fault().empty()) Found(kPrepack, (*kernel_run)->packing_fault());
    return *std::move(kernel_run);
  }

  // Runs the kernel and reports writes outside of the outputs. Returns nullopt if the run failed.
  std::optional<RunResult> RunChecked(const char* check, KernelRun& kernel_run, int lane, const std::vector<Tensor>& inputs,
                                      uint32_t width, unsigned char fill, const std::vector<Tensor>& before = {}) {
    absl::StatusOr<RunResult> r = kernel_run.Run(lane, inputs, width, fill, before);
    if (std::string changed = TakeModeChange(); !changed.empty()) Found(kModes, changed);
    if (!Fine(check, r.status()) || !Fine(check, Answer(r->step, "the step"))) return std::nullopt;
    for (const auto& [broken, what] : r->faults) Found(broken, what);
    return *std::move(r);
  }

  bool Right(const char* check, const std::string& wrong) {
    if (!wrong.empty()) Found(check, wrong);
    return wrong.empty();
  }

  // Runs the kernel on a set of its case's data. Returns nullopt if the run failed or the results are wrong.
  std::optional<RunResult> RunRight(const char* check, KernelRun& kernel_run, int set, uint32_t width, unsigned char fill,
                                    int lane = 0) {
    std::optional<RunResult> r = RunChecked(check, kernel_run, lane, kernel_run.subject().inputs[set], width, fill);
    return r && Right(check, kernel_run.Wrong(*r, set)) ? r : std::nullopt;
  }

  void CheckBatch(KernelRun& kernel_run, const RunResult& whole) {
    const Case& c = kernel_run.subject();
    const Candidate& candidate = kernel_run.candidate();
    if (!candidate.Has(MGE_KERNEL_BATCH_INVARIANT) || c.inputs[0].empty()) return;
    const Tensor& input = c.inputs[0][0];
    if (input.rank() == 0 || input.shape()[0] < 2 || input.bytes() == 0) return;
    int64_t rows = input.shape()[0];
    std::vector<Tensor> kept = FirstRows(whole.outputs, rows), reference = FirstRows(c.expected[0], rows);
    if (kept.empty()) return;
    absl::StatusOr<Case> alone = FirstRowOf(c);  // its reference results show whether the rows are independent
    if (!alone.ok() || !SameBits(FirstRows(alone->expected[0], 1), reference)) return;
    Begin(kBatch);
    std::vector<Tensor> mixed = c.inputs[0];
    mixed[0] = WithFirstRow(input, c.inputs[1][0]);
    std::optional<RunResult> r = RunChecked(kBatch, kernel_run, 0, mixed, 1, 0xff);
    if (r && !SameBits(FirstRows(r->outputs, rows), kept)) Found(kBatch, "row 0 has other bits if the other rows differ");
    absl::StatusOr<Offers> offers = Enumerate(tested_, *alone);
    const Candidate* same = offers.ok() ? offers->Find(candidate.id) : nullptr;
    if (!same) return;
    std::unique_ptr<KernelRun> single = Make(*alone, *same, {});
    if (!single) return;
    r = RunChecked(kBatch, *single, 0, alone->inputs[0], 1, 0xff);
    if (r && !SameBits(FirstRows(r->outputs, 1), kept))
      Found(kBatch, fmt::format("row 0 has other bits if it is one of {} rows", rows));
  }

  void CheckInPlace(const Case& c, const Candidate& candidate) {
    AbiProblem problem(c, MGE_WRITE);
    const mge_graph& g = *problem.get()->graph;
    for (const mge_in_place& pair : candidate.in_place) {
      if (g.values[g.inputs[pair.input]]->data) continue;  // a constant must not be overwritten
      Begin(kInPlace);
      if (std::unique_ptr<KernelRun> kernel_run = Make(c, candidate, {.in_place = &pair}))
        RunRight(kInPlace, *kernel_run, 0, 2, 0xff);
    }
  }

  void CheckWriteAdd(const Case& c) {
    absl::StatusOr<Offers> offers = Enumerate(tested_, c, MGE_WRITE_ADD);
    if (!offers.ok()) return;  // the write mode is refused
    for (const Candidate& candidate : offers->offered) {
      Begin(kWriteAdd);
      std::unique_ptr<KernelRun> kernel_run = Make(c, candidate, {.write_mode = MGE_WRITE_ADD});
      if (!kernel_run) continue;
      std::vector<Tensor> before, want;
      for (const Tensor& t : c.expected[0]) {
        before.push_back(RandomTensor(t.dtype(), t.shape(), 1, 3, 91 + before.size()));
        want.push_back(RandomTensor(t.dtype(), t.shape(), 0, 0, 1));
        DispatchNumeric(t.dtype(), [&](auto tag) {
          using T = typename decltype(tag)::type;
          std::ranges::transform(t.Data<T>(), before.back().template Data<T>(), want.back().MutableData<T>().begin(),
                                 [](T x, T y) { return static_cast<T>(x + y); });
        });
      }
      std::optional<RunResult> r = RunChecked(kWriteAdd, *kernel_run, 0, c.inputs[0], 1, 0xff, before);
      if (r) Right(kWriteAdd, WhatIsWrong(*r, want, candidate));
    }
  }

  void CheckAlignment(const Case& c, const Candidate& candidate) {
    if (bench_.transfers[0].has_queue())
      return w_.NotOffered(kAlignment,
                           fmt::format("it has queues: every operand is aligned to {} bytes", bench_.alignment()));
    Begin(kAlignment);
    if (std::unique_ptr<KernelRun> kernel_run = Make(c, candidate, {.shifted = true}))
      RunRight(kAlignment, *kernel_run, 0, 2, 0xff);
  }

  void CheckCancel(KernelRun& kernel_run) {
    Begin(kCancel);
    for (uint32_t width : {1, 3}) {
      absl::StatusOr<RunResult> r = kernel_run.Run(0, kernel_run.subject().inputs[0], width, 0xff, {}, 1);
      if (!Fine(kCancel, r.status())) return;
      if (r->step.code != MGE_CANCELLED && !Fine(kCancel, Answer(r->step, "a cancelled run"))) return;
    }
    RunRight(kCancel, kernel_run, 1, 1, 0xff);
  }

  void CheckCapture(KernelRun& kernel_run) {
    const mge_queue_api* api = tested_.plugin().queue;
    if (!kernel_run.candidate().Has(MGE_KERNEL_CAPTURE_SAFE) || !api || !api->capture_begin) return;
    mge_queue* queue = bench_.transfers[0].queue();
    const auto& inputs = kernel_run.subject().inputs;
    void* record = nullptr;
    Applied(kCapture, [&]() -> absl::Status {
      MGE_RETURN_IF_ERROR(kernel_run.Stage(0, inputs[0], 0xff));
      MGE_RETURN_IF_ERROR(Call("beginning a capture", api->capture_begin, queue));
      const mge_error launched = kernel_run.Launch(0, 1);
      MGE_RETURN_IF_ERROR(Call("ending a capture", api->capture_end, queue, &record));
      MGE_RETURN_IF_ERROR(Answer(launched, "the step, while captured,"));
      MGE_ASSIGN_OR_RETURN(bool untouched, kernel_run.Untouched(0));
      if (!untouched) return Broken("the step ran while it was captured");
      for (int set : {0, 1, 0}) {
        MGE_RETURN_IF_ERROR(kernel_run.Stage(0, inputs[set], 0x5a));
        MGE_RETURN_IF_ERROR(Call("replaying", api->replay, queue, record));
        MGE_RETURN_IF_ERROR(kernel_run.Drain(0));
        MGE_ASSIGN_OR_RETURN(RunResult r, kernel_run.Collect(0));
        if (std::string wrong = kernel_run.Wrong(r, set); !wrong.empty()) return Broken(wrong);
      }
      return absl::OkStatus();
    });
    if (record) api->record_destroy(tested_.device(), record);
  }

  void CheckLeaks(const Case& c, const Candidate& candidate) {
    Begin(kLeaks);
    auto make = [&](KernelRun::Options options) { return KernelRun::Create(bench_, c, candidate, options); };
    auto round = [&]() -> absl::Status {
      MGE_ASSIGN_OR_RETURN(std::unique_ptr<KernelRun> kernel_run, make({.any = any_}));
      MGE_RETURN_IF_ERROR(kernel_run->Stage(0, c.inputs[0], 0xff));
      return kernel_run->Step(0, 1, "the step, run again,");
    };
    int64_t blocks = 0;
    LeakCheck plan = {.first = 12,
                      .rounds = 12,
                      .round = {},
                      .began = [&] { blocks = tested_.host().outstanding(); },
                      .device_used = [&] { return tested_.device_memory_used(); }};
    absl::StatusOr<std::string> lost =
        FindLeak(plan, "kernel that is prepared, run and destroyed",
                 {{"enumerate", [&] { return Enumerate(tested_, c).status(); }},
                  {"prepare or destroy", [&] { return make({.any = any_, .only_prepared = true}).status(); }},
                  {"prepack, bind, state_create or state_destroy", [&] { return make({.any = any_}).status(); }},
                  {"its step", round}});
    if (!Fine(kLeaks, lost.status())) return;
    if (int64_t more = tested_.host().outstanding() - blocks; more > 0) {
      Found(kLeaks, fmt::format("{} blocks of the host's memory are not released when all kernels are destroyed", more));
    }
    if (!lost->empty()) Found(kLeaks, *lost);
  }

  void CheckRoundTrips(const Case& c, const Candidate& candidate) {
    auto check = [&](const Tensor& t, const mge_layout& layout) {
      const bool opaque = layout.kind == MGE_LAYOUT_OPAQUE;
      if (layout.kind != MGE_LAYOUT_PERMUTED && !opaque) return;
      std::string name = fmt::format("{} {}{}", LayoutText(layout), DTypeName(t.dtype()), ShapeText(t.shape()));
      if (!layouts_seen_.insert(name).second) return;
      if (opaque) Applied(kDescribe, [&] { return Described(tested_, layout, t.dtype(), t.shape()); });
      Applied(kRoundTrip, [&]() -> absl::Status {
        const Bytes plain = BytesOf(t);
        MGE_ASSIGN_OR_RETURN(Bytes there, Reorder(bench_, plain, t.dtype(), t.shape(), PlainLayout(), layout, true));
        if (!opaque) {
          MGE_ASSIGN_OR_RETURN(Bytes ours, ToLayout(bench_, t, layout));
          MGE_RETURN_IF_ERROR(Same(there, ours, name));
        }
        MGE_ASSIGN_OR_RETURN(Bytes back, Reorder(bench_, there, t.dtype(), t.shape(), layout, PlainLayout(), true));
        return Same(back, plain, name + ", there and back");
      });
    };
    size_t next = 0;
    AbiProblem problem(c, MGE_WRITE);
    std::vector<Operand> inputs = InputsOf(*problem.get());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].constant.defined()) check(c.inputs[0][next++], candidate.inputs[i]);
    }
    for (size_t o = 0; o < c.expected[0].size(); ++o) check(c.expected[0][o], candidate.outputs[o]);
  }

  BackendUnderTest& tested_;
  CheckReporter& w_;
  Bench& bench_;
  bool quick_, full_;
  std::set<std::string> failed_;  // ids of the candidates whose allocations were made to fail
  std::string where_;
  const mge_layout* any_ = nullptr;
  std::set<std::string> layouts_seen_;
  std::map<std::string, Case> longest_;  // by id of the candidate
  bool answered_ = false;                // whether any case was offered or refused
  std::string silent_;                   // the first case that was neither offered nor refused
};

}  // namespace

std::span<const Check> KernelChecks() { return kRows; }

absl::Status CheckOperator(BackendUnderTest& tested, const OpDef& def, bool quick, bool full) {
  MGE_ASSIGN_OR_RETURN(std::unique_ptr<Bench> bench, Bench::Create(tested));
  KernelChecker checker(tested, *bench, quick, full);
  const std::vector<std::string> specs = SpecsFor(def), variations = VariationsOf(def);
  const size_t checked = quick ? std::min<size_t>(specs.size(), kQuickSpecs) : specs.size();
  constexpr Constants kAll[] = {Constants::kNone, Constants::kOthers, Constants::kFirst};
  for (DType dtype : TypesOf(def)) {
    if (quick && dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kI32) continue;
    bool supported = false, tried = false;
    std::string support = "no case", reason;
    for (size_t i = 0; i < specs.size() + variations.size(); ++i) {
      const bool varied = i >= specs.size();
      const std::string& spec = varied ? variations[i - specs.size()] : specs[i];
      // The types of an operator usually share source code: variations with constants are tried with float32 only.
      for (Constants constants : std::span(kAll).first(varied && dtype != DType::kF32 ? 1 : std::size(kAll))) {
        tested.At("the reference of {} T={}", spec, DTypeName(dtype));
        absl::StatusOr<Case> c = MakeCase(def, dtype, spec, constants);
        if (!c.ok()) continue;
        if (!varied) checker.Keep(*c);
        if (!varied && i >= checked) continue;
        tried = true;
        bool offered = checker.CheckCase(*c, !supported, &reason);
        if (offered != supported || support == "no case") support = offered || !supported ? reason : support;
        supported |= offered;
      }
    }
    checker.CheckLongest();
    if (tried) tested.reporter().Support(def.name, DTypeName(dtype), supported, support);
  }
  checker.CheckSilence();
  return absl::OkStatus();
}

}  // namespace mge::conform
