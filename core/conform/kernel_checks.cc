// SPDX-License-Identifier: Apache-2.0
#include "core/conform/kernel_checks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <optional>
#include <set>

#include "core/conform/allocations.h"
#include "core/conform/kernel_run.h"
#include "core/conform/leak_check.h"
#include "fmt/format.h"

namespace mge::conform {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kQuickSpecs = 4;  // number of specs per operator with --quick

constexpr Check kConstraints = {"kernel.constraints",
                                "No candidate is offered that the constraints exclude; unknown write modes are refused."};
constexpr Check kNumerics = {"kernel.numerics",
                             "Results equal those of the reference evaluators within the tolerance of the element type."};
constexpr Check kRepeatable = {"kernel.repeatable", "A second run with other data at other addresses is correct, too."};
constexpr Check kDeterministic = {
    "kernel.deterministic", "Deterministic candidates give the same bits for any threads, addresses and stale memory."};
constexpr Check kBatch = {"kernel.batch_invariant", "Batch-invariant kernels give a row the same bits without other rows."};
constexpr Check kInPlace = {"kernel.in_place", "An output can share memory with the input that the candidate names for it."};
constexpr Check kWriteAdd = {"kernel.write_add", "A kernel that offers to add to an output does so."};
constexpr Check kQueueOrder = {"kernel.queue_order", "Kernels run on their queue, after the work that was enqueued before."};
constexpr Check kAligned = {"kernel.alignment", "Without queues, plain operands are aligned only to their element size."};
constexpr Check kConcurrent = {"kernel.concurrent", "Concurrent runs of one kernel do not disturb each other."};
constexpr Check kCancel = {"kernel.cancel", "A cancelled run ends normally, and the next run is correct."};
constexpr Check kCapture = {"kernel.capture", "A captured step runs only in replays, which use the current memory."};
constexpr Check kModes = {"kernel.thread_modes", "A launch does not change the floating-point modes of the calling thread."};
constexpr Check kNoAllocation = {"kernel.launch_allocates",
                                 "A launch allocates no heap memory, nor do the libraries that it calls, unless the "
                                 "candidate has MGE_KERNEL_ALLOCATES."};
constexpr Check kLeaks = {"kernel.leaks", "Preparing, running and destroying a kernel leaks no memory of host or device."};
constexpr Check kRoundTrip = {"layout.round_trip",
                              "A tensor is unchanged after conversion to every layout that a candidate names, and back."};
constexpr Check kDescribe = {"layout.describe", "Own layouts have a name and the stated size; unknown ones are refused."};

constexpr Check kRows[] = {
    kOffers, kConstraints,  kPrepare,  kNumerics,          kBounds,     kInputs,  kWorkspace,  kRepeatable, kDeterministic,
    kBatch,  kInPlace,      kWriteAdd, kPrepack,           kQueueOrder, kAligned, kConcurrent, kCancel,     kCapture,
    kModes,  kNoAllocation, kLeaks,    kKernelAllocations, kRoundTrip,  kDescribe};

// Returns the layout with channels last if all non-constant operands with the layout ANY have the same rank, from 3 to 8.
// Else returns the plain layout.
mge_layout ChannelsLast(const mge_problem& problem, const Candidate& k) {
  std::set<int32_t> ranks;
  const mge_graph& g = *problem.graph;
  auto add = [&](const mge_layout& l, const mge_value& v) {
    if (l.kind == MGE_LAYOUT_ANY && !v.data) ranks.insert(v.rank);
  };
  for (uint64_t i = 0; i < g.input_count; ++i) add(k.inputs[i], *g.values[g.inputs[i]]);
  for (uint64_t i = 0; i < g.output_count; ++i) add(k.outputs[i], *g.values[g.outputs[i]]);
  mge_layout out = PlainLayout();
  if (ranks.size() != 1 || *ranks.begin() < 3 || *ranks.begin() > 8) return out;
  out.kind = MGE_LAYOUT_PERMUTED;
  out.rank = *ranks.begin();
  for (int32_t i = 1; i < out.rank; ++i) out.perm[i] = i == out.rank - 1 ? 1 : i + 1;
  return out;
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
    out.push_back(t.Within(t.dtype(), shape, t.data()));
  }
  return out;
}

// Numbers of runs that overlapped others.
constexpr int kEnough = 1000;
constexpr int kFew = 30;  // below this, the time limit is extended, because other processes may use the processors

// Several lanes run one kernel repeatedly, each with its own data. Each run must give the result that the lane gave alone.
void CheckConcurrentRuns(KernelRun& run) {
  Bytes alone[kLanes];  // the outputs of each lane when it runs alone
  for (int lane = 0; lane < kLanes; ++lane) {
    run.RunSet(lane % 2, 1, 0xff, lane);
    alone[lane] = run.Outputs(lane);
  }
  // The time limit is shorter for types other than float32, which usually share its source code.
  const auto limit = std::chrono::milliseconds(run.subject().dtype == DType::kF32 ? 100 : 30);
  const Clock::time_point begin = Clock::now();
  std::atomic<uint64_t> begun = 0;
  std::atomic<int> met = 0;
  auto over = [&] { return met >= kEnough || Clock::now() - begin >= limit * (met < kFew ? 5 : 1); };
  while (!over()) {
    std::atomic<bool> stop = false;
    InThreads(kLanes, [&](int lane) {
      for (uint32_t i = 0; !stop; ++i) {
        run.ResetOutputs(lane);
        const uint64_t mine = ++begun;
        const absl::Status ran = StatusOf([&] { run.Step(lane, 1 + i % 2, "beside other runs, the step"); });
        met += begun != mine;
        if (!ran.ok() || run.Outputs(lane) != alone[lane] || over()) stop = true;
        ThrowIfError(ran);
      }
    });
    // Compares with the reference, because other bytes than alone may be a different rounding.
    for (int lane = 0; lane < kLanes; ++lane) run.Expect(run.Collect(lane), lane % 2, "beside other runs, ");
  }
}

// Checks that not every launch allocates heap memory.
void CheckLaunchMemory(KernelRun& kernel_run) {
  if (!AllocationsAreSeen()) NotOffered("this program does not see allocations");
  kernel_run.Stage(0, kernel_run.subject().inputs[0], 0xff);
  uint64_t least = UINT64_MAX, own = 0;
  for (int i = 0; i < 100 && least > 0; ++i) {  // a queue that reuses entries allocates them first
    {
      AllocationFailure none;
      kernel_run.Launch(0, 1);
      own = none.seen();
      least = std::min(least, own + none.seen_in_libraries());
    }
    kernel_run.Drain(0);
  }
  if (least > 0)
    Broken("every launch allocates heap memory, at least {} times{}; allocate it in prepare, or set MGE_KERNEL_ALLOCATES",
           least, own ? "" : ", in the libraries that it calls");
}

// The checks of one operator. Findings go to the reporter of the backend.
class KernelChecker {
 public:
  KernelChecker(BackendUnderTest& tested, Bench& bench, const KernelScope& scope)
      : tested_(tested), w_(tested.reporter()), bench_(bench), scope_(scope) {}

  // Runs all checks on one case. Returns whether a candidate is offered. `support` is set to the candidates or to the reason
  // of the refusal.
  bool CheckCase(const Case& c, bool first, std::string* support) {
    At(c.Name());
    AbiProblem problem(c);
    Offers offers;
    Apply(kOffers, [&] {
      offers = Enumerate(tested_, *problem.get());
      if (!offers.malformed.empty()) Broken(offers.malformed);
      const bool silent = offers.offered.empty() && offers.refused.empty();
      if (silent && answered_)
        Broken("the problem is neither offered nor refused, unlike others of the operator; refuse it with a reason");
      answered_ |= !silent;
      if (Enumerate(tested_, *problem.get()).Ids() != offers.Ids()) Broken("a second enumeration offers other candidates");
    });
    if (offers.offered.empty()) {
      *support = offers.refused.empty() ? "no kernel" : offers.refused[0];
      return false;
    }
    if (first) Apply(kConstraints, [&] { CheckConstraints(c, problem, offers.offered[0].attributes); });
    *support = offers.Ids();
    if (c.once) return CheckOnce(c, offers), true;
    for (const Candidate& k : offers.offered) {
      CheckOne(c, k, first);
      if (!scope_.quick && c.dtype == DType::kF32) bench_.any = ChannelsLast(*problem.get(), k);
      if (!IsPlain(bench_.any)) CheckOne(c, k, false);
      bench_.any = PlainLayout();
    }
    where_ = c.Name();
    for (const Candidate& k : TryEnumerate(tested_, c, MGE_WRITE_ADD).offered)
      Apply(kWriteAdd, [&] { CheckWriteAdd(c, k); });
    w_.Write(RecordKind::kRan, c.def->name, c.Name(), {});
    return true;
  }

  // Runs every candidate of a large case once.
  void CheckOnce(const Case& c, const Offers& offers) {
    for (const Candidate& k : offers.offered) {
      At(fmt::format("{} {}", c.Name(), k.id));
      Apply(kNumerics, [&] { KernelRun(bench_, c, k).RunSet(0, 2, 0xff); });
    }
    w_.Write(RecordKind::kRan, c.def->name, c.Name(), {});
  }

  // Runs the checks that need long runs: for each candidate, on the case with the most work.
  void CheckLongest(const std::vector<Case>& cases) {
    w_.Begin(kOffers.name);
    std::map<std::string, std::pair<const Case*, Candidate>> longest;  // by id of the candidate
    for (const Case& c : cases) {
      At(c.Name());
      for (const Candidate& k : TryEnumerate(tested_, c).offered) {
        auto& kept = longest.try_emplace(k.id, &c, k).first->second;
        if (c.Work() > kept.first->Work()) kept = {&c, k};
      }
    }
    for (const auto& [id, kept] : longest) {
      At(fmt::format("{} {}", kept.first->Name(), id));
      std::optional<KernelRun> run;
      const bool right = Apply(kNumerics, [&, &kept = kept] {
        run.emplace(bench_, *kept.first, kept.second);
        for (int set : {0, 1}) run->RunSet(set, 1, 0xff);
      });
      if (!right) continue;
      Apply(kQueueOrder, [&] { CheckQueueOrder(*run); });
      Apply(kCancel, [&] { CheckCancel(*run); });  // a short run may end before it checks the flag
      Apply(kConcurrent, [&] { CheckConcurrentRuns(*run); });
    }
  }

 private:
  void At(std::string where) {
    where_ = std::move(where);
    w_.At(where_);
  }
  // Applies a check if it is requested or if others need it.
  bool Apply(const Check& check, const std::function<void()>& work) {
    const bool needed = check.name == kOffers.name || check.name == kPrepare.name || check.name == kNumerics.name;
    return (!needed && !scope_.has(check.name)) || conform::Apply(w_, check, where_, work);
  }

  void CheckConstraints(const Case& c, const AbiProblem& problem, uint64_t forbidden) {
    constexpr uint32_t kSize = sizeof(mge_constraints);
    const std::pair<mge_constraints, const char*> limits[] = {
        {{kSize, 0, MGE_KERNEL_DETERMINISTIC, 0, UINT64_MAX}, "only deterministic ones are asked for"},
        {{kSize, 0, 0, forbidden, UINT64_MAX}, "its attributes are forbidden"},
        {{kSize, 0, 0, 0, 0}, "no workspace is allowed"},
        {{kSize, 0, ~MGE_KERNEL_KNOWN_BITS, 0, UINT64_MAX}, "an attribute is required that this interface does not have"}};
    for (const auto& [limit, reason] : limits) {
      for (const Candidate& k : Enumerate(tested_, *problem.get(), limit).offered) {
        if ((limit.require & ~k.attributes) || (limit.forbid & k.attributes) || k.workspace > limit.workspace_limit)
          Broken("'{}' is offered, though {}", k.id, reason);
      }
    }
    if (const Offers some = TryEnumerate(tested_, c, 77); !some.offered.empty())
      Broken("'{}' is offered for the write mode 77, which does not exist", some.offered[0].id);
  }

  // Runs all checks on one candidate.
  void CheckOne(const Case& c, const Candidate& candidate, bool first) {
    At(fmt::format("{} {}{}", c.Name(), candidate.id, IsPlain(bench_.any) ? "" : " in " + LayoutText(bench_.any)));
    std::optional<KernelRun> run;
    if (!Apply(kPrepare, [&] { run.emplace(bench_, c, candidate); })) return;
    const bool packs = run->prepared().prepack_bytes;
    Apply(kWorkspace, [&] {
      if (uint64_t asked = run->prepared().workspace_bytes; asked > candidate.workspace)
        Broken("prepare asks for {} bytes of workspace; the candidate's bound is {}", asked, candidate.workspace);
    });
    std::vector<Tensor> one;
    if (!Apply(kNumerics, [&] { one = run->Run(0, c.inputs[0], 1, 0xff); })) return;
    for (const Check& check : {kBounds, kInputs, kModes}) w_.Applied(check.name);
    // Packing is at fault only if the kernel is right without it.
    const std::string plain = fmt::format("{} {} {}", c.spec, DTypeName(c.dtype), candidate.id);
    const bool packing = packs && right_.contains(plain);
    if (!Apply(packing ? kPrepack : kNumerics, [&] { run->Expect(one, 0); })) return;
    const bool repeatable = Apply(kRepeatable, [&] {
      const absl::Status second = StatusOf([&] { run->RunSet(1, 3, 0x5a, 1); });
      if (second.ok()) return;
      const absl::Status first_run = StatusOf([&] { KernelRun(bench_, c, candidate).RunSet(1, 1, 0xff); });
      if (!first_run.ok()) BrokenAs(packing ? kPrepack : kNumerics, "with other data, {}", Std(first_run.message()));
      Broken(Std(second.message()));
    });
    if (!repeatable) return;
    if (!packs) right_.insert(plain);
    const bool claims = candidate.attributes & MGE_KERNEL_DETERMINISTIC;
    const bool repeats = Apply(claims ? kDeterministic : kRepeatable, [&] {
      for (int i = 0; i < (scope_.quick || !first ? 2 : 6); ++i) {
        const std::vector<Tensor> again = run->RunSet(0, 1 + static_cast<uint32_t>(i % 3), i % 2 ? 0x00 : 0x5a, i % 2);
        if (claims && !SameBits(again, one)) Broken("equal inputs gave other bits in another run");
      }
    });
    if (!repeats) return;
    CheckBatch(*run, one);
    Apply(kAligned, [&] {
      if (bench_.transfers[0].has_queue())
        NotOffered(fmt::format("it has queues: every operand is aligned to {} bytes", bench_.alignment()));
      KernelRun(bench_, c, candidate, {.shifted = true}).RunSet(0, 2, 0xff);
    });
    CheckInPlace(c, candidate);
    CheckRoundTrips(c, candidate);
    if (!first) return;
    if (!(candidate.attributes & MGE_KERNEL_ALLOCATES)) Apply(kNoAllocation, [&] { CheckLaunchMemory(*run); });
    const mge_queue_api* queues = tested_.plugin().queue;
    if ((candidate.attributes & MGE_KERNEL_CAPTURE_SAFE) && queues && queues->capture_begin)
      Apply(kCapture, [&] { CheckCapture(*run); });
    run.reset();
    Apply(kLeaks, [&] { CheckLeaks(c, candidate); });
    if (scope_.has(kKernelAllocations.name) && (scope_.full || failed_.insert(candidate.id).second))
      CheckKernelAllocations(bench_, c, candidate, FailureSeconds(scope_.quick));
    w_.At(where_);
  }

  void CheckBatch(KernelRun& run, const std::vector<Tensor>& whole) {
    const Case& c = run.subject();
    if (!(run.candidate().attributes & MGE_KERNEL_BATCH_INVARIANT)) return;
    absl::StatusOr<Case> alone = FirstRowOf(c);
    if (!alone.ok()) return;
    const int64_t rows = c.inputs[0][0].shape()[0];
    if (rows < 2) return;
    const std::vector<Tensor> kept = FirstRows(whole, rows);
    // The reference results show whether the rows are independent.
    if (kept.empty() || !SameBits(FirstRows(alone->expected[0], 1), FirstRows(c.expected[0], rows))) return;
    Apply(kBatch, [&] {
      const Offers offers = TryEnumerate(tested_, *alone);
      const Candidate* same = offers.Find(run.candidate().id);
      if (same && !SameBits(FirstRows(KernelRun(bench_, *alone, *same).Run(0, alone->inputs[0], 1, 0xff), 1), kept))
        Broken("row 0 has other bits if it is one of {} rows", rows);
    });
  }

  void CheckInPlace(const Case& c, const Candidate& candidate) {
    const std::vector<Operand> inputs = InputsOf(*AbiProblem(c).get());
    for (const mge_in_place& pair : candidate.in_place) {
      if (inputs[pair.input].constant.defined()) continue;  // a constant must not be overwritten
      Apply(kInPlace, [&] { KernelRun(bench_, c, candidate, {.in_place = &pair}).RunSet(0, 2, 0xff); });
    }
  }

  void CheckWriteAdd(const Case& c, const Candidate& candidate) {
    KernelRun run(bench_, c, candidate, {.write_mode = MGE_WRITE_ADD});
    std::vector<Tensor> before, want;
    for (const Tensor& t : c.expected[0]) {
      before.push_back(RandomTensor(t.dtype(), t.shape(), 1, 3, 91 + before.size()));
      want.push_back(TensorOf(t.dtype(), t.shape(), t.data()));
      DispatchNumeric(t.dtype(), [&](auto tag) {
        using T = typename decltype(tag)::type;
        for (size_t i = 0; T & x : want.back().MutableData<T>()) x = static_cast<T>(x + before.back().Data<T>()[i++]);
      });
    }
    const std::vector<Tensor> outputs = run.Run(0, c.inputs[0], 1, 0xff, before);
    if (std::string wrong = run.Wrong(outputs, want); !wrong.empty()) Broken(wrong);
  }

  void CheckCancel(KernelRun& run) {
    for (uint32_t width : {1, 3}) {
      run.Stage(0, run.subject().inputs[0], 0xff);
      const mge_error end = run.Finish(0, width, 1);
      if (end.code != MGE_CANCELLED) Answer(end, "a cancelled run");
    }
    run.RunSet(1, 1, 0xff);
  }

  void CheckCapture(KernelRun& run) {
    const auto& inputs = run.subject().inputs;
    Record record(tested_);
    run.Stage(0, inputs[0], 0xff);
    const Bytes before = run.Outputs(0);
    record.Take(bench_.transfers[0].queue(), [&] { Answer(run.Launch(0, 1), "the step, while captured,"); });
    if (run.Outputs(0) != before) Broken("the step ran while it was captured");
    for (int set : {0, 1, 0}) {
      run.Stage(0, inputs[set], 0x5a);
      record.Replay(bench_.transfers[0].queue());
      run.Drain(0);
      run.Expect(run.Collect(0), set);
    }
  }

  void CheckLeaks(const Case& c, const Candidate& candidate) {
    auto round = [&] {
      KernelRun run(bench_, c, candidate);
      run.Stage(0, c.inputs[0], 0xff);
      run.Step(0, 1, "the step, run again,");
    };
    for (int i = 0; i < 12; ++i) round();  // fills caches
    const int64_t blocks = tested_.host().outstanding();
    const std::string lost =
        FindLeak("kernel that is prepared, run and destroyed",
                 {{"enumerate", [&] { Enumerate(tested_, c); }},
                  {"prepare, prepack, bind, state_create or what destroys", [&] { KernelRun(bench_, c, candidate); }},
                  {"its step", round}},
                 [&] { return tested_.device_memory_used(); });
    if (int64_t more = tested_.host().outstanding() - blocks; more > 0)
      Broken("{} blocks of the host's memory are not released when all kernels are destroyed", more);
    if (!lost.empty()) Broken(lost);
  }

  void CheckRoundTrips(const Case& c, const Candidate& candidate) {
    auto check = [&](const Tensor& t, const mge_layout& layout) {
      const bool opaque = layout.kind == MGE_LAYOUT_OPAQUE;
      if (layout.kind != MGE_LAYOUT_PERMUTED && !opaque) return;
      std::string name = fmt::format("{} {}{}", LayoutText(layout), DTypeName(t.dtype()), ShapeText(t.shape()));
      if (!layouts_seen_.insert(name).second) return;
      if (opaque) Apply(kDescribe, [&] { Described(tested_, layout, t.dtype(), t.shape()); });
      Apply(kRoundTrip, [&] {
        const Bytes plain = BytesOf(t);
        const Bytes there = Reorder(bench_, plain, t.dtype(), t.shape(), PlainLayout(), layout, true);
        if (!opaque) Same(there, ToLayout(bench_, t, layout), name);
        Same(Reorder(bench_, there, t.dtype(), t.shape(), layout, PlainLayout(), true), plain, name + ", there and back");
      });
    };
    size_t next = 0;
    const std::vector<Operand> inputs = InputsOf(*AbiProblem(c).get());
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].constant.defined()) check(c.inputs[0][next++], candidate.inputs[i]);
    }
    for (size_t o = 0; o < c.expected[0].size(); ++o) check(c.expected[0][o], candidate.outputs[o]);
  }

  BackendUnderTest& tested_;
  CheckReporter& w_;
  Bench& bench_;
  const KernelScope& scope_;
  std::set<std::string> right_;   // case, type and candidate of kernels that computed it right without packed constants
  std::set<std::string> failed_;  // ids of the candidates whose allocations were made to fail
  std::string where_;
  std::set<std::string> layouts_seen_;
  bool answered_ = false;  // whether any case of the operator was offered or refused
};

}  // namespace

std::span<const Check> KernelChecks() { return kRows; }

void CheckKernelAllocations(Bench& bench, const Case& c, const Candidate& candidate, double seconds) {
  BackendUnderTest& s = bench.tested;
  const std::string where = fmt::format("{} {}", c.Name(), candidate.id);
  Apply(s.reporter(), kKernelAllocations, where, [&] {
    auto make = [&] {
      Enumerate(s, c);
      KernelRun(bench, c, candidate);
    };
    SurvivesFailures(s, make, seconds);
  });
  Apply(s.reporter(), kKernelAllocations, where, [&] {
    KernelRun kernel_run(bench, c, candidate);
    kernel_run.Stage(0, c.inputs[0], 0xff);
    SurvivesFailures(
        s, [&] { kernel_run.Step(0, 1, "launching"); }, seconds);
    kernel_run.Expect(kernel_run.Collect(0), 0, "after launches that failed, ");
  });
}

void CheckQueueOrder(KernelRun& kernel_run) {
  CheckQueueOrder(kernel_run, kernel_run.subject().inputs, [&](const std::vector<Tensor>& outputs) {
    return kernel_run.Wrong(outputs, kernel_run.subject().expected[1]);
  });
}

void CheckQueueOrder(KernelRun& kernel_run, const std::vector<Tensor> (&inputs)[2],
                     const std::function<std::string(const std::vector<Tensor>&)>& what_is_wrong) {
  constexpr auto kLong = std::chrono::milliseconds(2);  // longer than a launch
  Bench& bench = kernel_run.bench();
  if (!bench.transfers[0].has_queue()) NotOffered(kNoQueues);
  kernel_run.Stage(1, inputs[1], 0x5a);
  kernel_run.Stage(0, inputs[0], 0xff);
  if (!bench.long_work) bench.long_work.emplace(bench.tested);
  bench.long_work->Enqueue(bench.transfers[0].queue(), kLong);
  kernel_run.EnqueueCopy(1, 0);  // overwrites the outputs too, so earlier results are lost
  Answer(kernel_run.Launch(0, 1), "behind other work, the step");
  bench.transfers[0].queue().Copy(bench.lane(2), bench.lane(0), bench.lane_bytes);
  kernel_run.Drain(0);
  if (std::string wrong = what_is_wrong(kernel_run.Collect(0)); !wrong.empty())
    Broken("{} does not read the input that a copy enqueued before it writes ({}); enqueue its work on run->queue",
           kernel_run.candidate().id, wrong);
  if (kernel_run.Outputs(2) != kernel_run.Outputs(0))
    Broken("a copy that was enqueued behind {} does not read its result", kernel_run.candidate().id);
}

void CheckOperator(BackendUnderTest& tested, const OpDef& def, const KernelScope& scope) {
  Bench bench(tested);
  KernelChecker checker(tested, bench, scope);
  const bool quick = scope.quick;
  const std::vector<std::string> specs = SpecsFor(def), variations = VariationsOf(def);
  const size_t checked = quick ? std::min<size_t>(specs.size(), kQuickSpecs) : specs.size();
  constexpr Constants kAll[] = {Constants::kNone, Constants::kOthers, Constants::kFirst};
  for (DType dtype : TypesOf(def)) {
    if (quick && dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kI32) continue;
    std::vector<Case> cases;
    bool supported = false;
    std::string support, reason;  // the first candidates, or the first reason of a refusal; "": no case was tried
    for (size_t i = 0; i < specs.size() + variations.size(); ++i) {
      const bool varied = i >= specs.size();
      const std::string& spec = varied ? variations[i - specs.size()] : specs[i];
      // The types of an operator usually share source code: variations with constants are tried with float32 only.
      for (Constants constants : std::span(kAll).first(varied && dtype != DType::kF32 ? 1 : std::size(kAll))) {
        tested.At("the reference of {} T={}", spec, DTypeName(dtype));
        absl::StatusOr<Case> c = MakeCase(def, dtype, spec, constants);
        if (!c.ok()) continue;
        if (varied || i < checked) {
          const bool offered = checker.CheckCase(*c, !supported, &reason);
          if (support.empty() || (offered && !supported)) support = reason;
          supported |= offered;
        }
        if (!varied && !c->once) cases.push_back(*std::move(c));
      }
    }
    checker.CheckLongest(cases);
    if (support.empty()) continue;
    tested.reporter().Write(supported ? RecordKind::kSupported : RecordKind::kRefused, def.name, DTypeName(dtype), support);
  }
}

}  // namespace mge::conform
