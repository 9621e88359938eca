// SPDX-License-Identifier: Apache-2.0
// Checks of a backend's kernels as a set: the order that its strategy gives them, preparing in several threads, and a tensor
// with more elements than a float can count.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>

#include "core/conform/kernel_run.h"
#include "core/plugin/strategy.h"
#include "fmt/ranges.h"

namespace mge::conform {
namespace {

// Calls f(case) for small cases of every operator: the first ones in its first two types.
template <typename F>
void ForSmallCases(F&& f) {
  constexpr size_t kSpecs = 3, kTypes = 2;
  for (const OpDef* def : CheckableOps()) {
    const std::vector<std::string> specs = SpecsFor(*def);
    const std::vector<DType> types = TypesOf(*def);
    for (DType dtype : std::span(types).first(std::min(kTypes, types.size()))) {
      for (const std::string& spec : std::span(specs).first(std::min(kSpecs, specs.size()))) {
        if (absl::StatusOr<Case> c = MakeCase(*def, dtype, spec); c.ok()) f(*std::move(c));
      }
    }
  }
}

// Returns the indices that the strategy writes, and one more, which it must not write.
std::vector<uint32_t> Ordered(BackendUnderTest& s, const mge_choice& choice) {
  std::vector<uint32_t> order(choice.candidate_count + 1, UINT32_MAX);
  Call("ordering candidates", OwnOrder(s.plugin())->order, s.device(), &choice, order.data());
  return order;
}

// Asks for the order of some candidates of a problem in every mode.
void CheckOrderOf(BackendUnderTest& s, const mge_problem& problem, std::span<const OwnedCandidate> candidates) {
  std::vector<OwnedCandidate::Abi> abis;
  std::vector<const mge_candidate*> pointers;
  std::vector<double> measured;
  for (const OwnedCandidate& c : candidates) {
    abis.push_back(c.ToAbi());
    measured.push_back(measured.size() % 3 == 1 ? -1 : 20.5 - static_cast<double>(measured.size() % 2));  // some not timed
  }
  for (const OwnedCandidate::Abi& a : abis) pointers.push_back(&a.candidate);
  for (int32_t mode : {MGE_SELECT_HEURISTIC, MGE_SELECT_PROFILE, MGE_SELECT_REPRODUCIBLE}) {
    const mge_choice choice = {sizeof(choice),  mode,
                               &problem,        pointers.data(),
                               pointers.size(), mode == MGE_SELECT_PROFILE ? measured.data() : nullptr};
    const std::vector<uint32_t> order = Ordered(s, choice);
    std::vector<uint32_t> sorted = order, want(pointers.size());
    std::ranges::sort(sorted);
    std::iota(want.begin(), want.end(), 0u);
    want.push_back(UINT32_MAX);
    if (sorted != want)
      Broken("for {} candidates the strategy writes [{}]; each index must be there once", candidates.size(),
             fmt::join(std::span(order).first(candidates.size()), ", "));
    if (mode == MGE_SELECT_REPRODUCIBLE && Ordered(s, choice) != order)
      Broken("in the mode REPRODUCIBLE a second request gets another order");
  }
}

void CheckStrategy(BackendUnderTest& s) {
  if (!OwnOrder(s.plugin())) NotOffered("the backend uses a strategy of the host's");
  size_t asked = 0;
  ForSmallCases([&](const Case& c) {
    AbiProblem problem(c);
    const Offers offers = TryEnumerate(s, c);
    const std::span<const Candidate> all(offers.offered);
    s.At("the strategy for {}", c.Name());
    for (size_t count = 2; count <= all.size(); ++count) {  // the host filters candidates, so any part may be asked for
      for (const auto& part : {all.first(count), all.last(count)}) CheckOrderOf(s, *problem.get(), part), ++asked;
    }
  });
  if (asked == 0) NotOffered("no problem has two candidates");
}

// Prepares and runs kernels in several threads, as sessions do that start at the same time. Two threads go through the cases
// side by side, and two others begin in the middle.
void CheckPrepareThreads(BackendUnderTest& s) {
  constexpr size_t kCases = 48;
  constexpr int kThreads = 4;
  constexpr auto kTime = std::chrono::milliseconds(700);
  std::vector<Case> cases;
  ForSmallCases([&](Case c) {
    if (cases.size() < kCases && !TryEnumerate(s, c).offered.empty()) cases.push_back(std::move(c));
  });
  if (cases.empty()) NotOffered("the backend has no kernel");
  s.At("preparing kernels in {} threads", kThreads);
  const auto end = std::chrono::steady_clock::now() + kTime;
  InThreads(kThreads, [&](int thread) {
    Bench bench(s, 1);
    const size_t begin = thread < kThreads / 2 ? 0 : cases.size() / 2;
    for (size_t i = 0; i < cases.size() && (i < 8 || std::chrono::steady_clock::now() < end); ++i) {
      const Case& c = cases[(begin + i) % cases.size()];
      const Offers offers = Enumerate(s, c);
      if (offers.offered.empty()) Broken("{} is offered in one thread only", c.Name());
      const absl::Status ran = StatusOf([&] { KernelRun(bench, c, offers.offered[0]).RunSet(0, 1, 0xff); });
      if (!ran.ok()) Broken("{} {}: {}", c.Name(), offers.offered[0].id, Std(ran.message()));
    }
  });
}

// Runs one cheap operator on more elements than a float counts exactly, which are also more than 65535 blocks of 256.
void CheckLongTensor(BackendUnderTest& s) {
  constexpr const char *kShort = "T[70001]", *kLong = "T[16777283]";  // 2^24 + 67
  constexpr uint64_t kBytes = 2 * 16777283 * sizeof(float) + (1 << 20);
  for (const char* op : {"Relu", "Neg", "Abs", "Identity", "Sub", "Add"}) {
    const OpDef& def = *FindOp("", op);
    auto of_size = [&](const char* operand) {
      return OrThrow(MakeCase(def, DType::kF32, fmt::format("{}({}{})", op, operand, def.inputs.size() == 2 ? ", =0" : "")));
    };
    if (TryEnumerate(s, of_size(kShort)).offered.empty()) continue;
    const Case c = of_size(kLong);
    const Offers offers = TryEnumerate(s, c);
    if (offers.offered.empty()) continue;
    s.At("{} {}", c.Name(), offers.offered[0].id);
    Bench bench(s, 1);
    if (!StatusOf([&] { bench.Reserve(kBytes); }).ok()) NotOffered(fmt::format("the device has no {} bytes", kBytes));
    return void(KernelRun(bench, c, offers.offered[0]).RunSet(0, 2, 0xff));
  }
  NotOffered("no cheap operator has a kernel");
}

constexpr Check kSetChecks[] = {
    {"strategy.order", "The strategy orders any candidates, each once, and REPRODUCIBLE the same way every time.",
     CheckStrategy},
    {"kernel.prepare_threads", "Kernels can be prepared and run in several threads at once.", CheckPrepareThreads},
    {"kernel.long_tensor", "A kernel computes more than 2^24 elements.", CheckLongTensor},
};

}  // namespace

std::span<const Check> SetChecks() { return kSetChecks; }

}  // namespace mge::conform
