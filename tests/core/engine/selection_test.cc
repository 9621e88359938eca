// SPDX-License-Identifier: Apache-2.0
// The choice of kernels, tested on a backend whose kernels differ in speed, correctness and repeatability.
#include "tests/core/engine/tuner_test.h"

namespace mge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr char kRelu[] = "input x : float32[?]\ny = Relu(x)\noutput y\n";
constexpr char kNeg[] = "input x : float32[?]\ny = Neg(x)\noutput y\n";

const Assignment kProfile = Set("select.strategy", "profile");

std::string ReasonAgainst(const Plan& plan, const std::string& id) {
  for (const Alternative& a : plan.units[0].alternatives) {
    if (a.id == id) return a.reason;
  }
  return "no alternative";
}

// ---------------------------------------------------------------- the strategies

TEST(Selection, HeuristicChoosesTheBestEstimateAndRunsNothing) {
  Host host;
  host.record() = {};
  EXPECT_EQ(host.Chosen(kRelu), "slow");
  EXPECT_EQ(host.record().launches, 0);
}

TEST(Selection, ProfileChoosesTheFastestCorrectKernelAndReportsWrongOnes) {
  Host host({kProfile});
  auto plan = *host.PlanOf(kRelu);
  EXPECT_EQ(plan->units[0].kernel, "loose");
  EXPECT_GE(plan->units[0].measured_us, 10);
  EXPECT_THAT(ReasonAgainst(*plan, "wrong"), AllOf(HasSubstr("wrong results"), HasSubstr("output 0: element")));
  EXPECT_THAT(ReasonAgainst(*plan, "steady"), HasSubstr("measured"));
  EXPECT_THAT(PlanText(*plan, true), HasSubstr("measured"));
  EXPECT_THAT(host.warnings, Contains(AllOf(HasSubstr("kernel 'wrong'"), HasSubstr("Relu float32[64]"))));
}

TEST(Selection, EqualProblemsAreMeasuredOnce) {
  Host host({kProfile});
  host.record() = {};
  auto plan = *host.PlanOf("input x : float32[?]\na = Relu(x)\nb = Neg(a)\ny = Relu(b)\noutput y\n");
  EXPECT_EQ(plan->units[0].kernel, plan->units[2].kernel);
  EXPECT_LE(host.record().slow, 10);
}

TEST(Selection, ReproducibleMeasuresNothing) {
  Host host({Set("select.strategy", "reproducible")});
  host.record() = {};
  EXPECT_EQ(host.Chosen(kRelu), "slow");  // the kernel of the best rank among those that repeat their bits
  EXPECT_EQ(host.record().launches, 0);
}

TEST(Selection, ReproducibleUsesTheReferenceEvaluatorIfNoKernelIsReproducible) {
  Host host({Set("select.strategy", "reproducible")});
  auto plan = *host.PlanOf(kNeg);
  EXPECT_EQ(plan->report.reference_steps, 1);
  EXPECT_EQ(plan->units[0].kind, Unit::Kind::kReference);
  EXPECT_THAT(PlanText(*plan, true), HasSubstr("loose: its attributes are outside"));
}

TEST(Selection, OptimizedAndReproducibleFailIfAnOperatorHasNoSuchKernel) {
  Host host({Set("select.strategy", "reproducible_optimized")});
  EXPECT_THAT(host.Chosen(kNeg), AllOf(HasSubstr("operator Neg has no kernel that the settings allow"),
                                       HasSubstr("loose: its attributes are outside")));
}

TEST(Selection, HostOperatorsAreReproducible) {
  Host host({Set("select.strategy", "reproducible")});
  auto plan = host.PlanOf("input x : float32[?]\ns = Shape(x)\ny = Relu(x)\noutput y\noutput s\n");
  EXPECT_TRUE(plan.ok()) << FormatError(plan.status());
}

TEST(Selection, OptimizedRefusesTheSlowReference) {
  Host host({Set("select.strategy", "heuristic_optimized")});
  EXPECT_THAT(host.Chosen("input x : float32[?]\ny = Exp(x)\noutput y\n"), HasSubstr("operator Exp has no kernel"));
  EXPECT_EQ(host.Chosen(kRelu), "slow");
}

TEST(Selection, KernelsThatMayNotBeTimedAreChosenByEstimate) {
  Host host({kProfile, Set("select.measuring_bytes", "1")});
  host.record() = {};
  auto plan = *host.PlanOf(kRelu);
  EXPECT_EQ(plan->units[0].kernel, "slow");
  EXPECT_EQ(host.record().launches, 0);
  EXPECT_THAT(ReasonAgainst(*plan, "steady"), HasSubstr("not timed"));
}

TEST(Selection, TimingStopsAtItsTimeLimit) {
  Host host({kProfile, Set("select.measuring_seconds", "0")});
  host.record() = {};
  EXPECT_EQ(host.Chosen(kRelu), "loose");
  EXPECT_EQ(host.record().slow, 1);
  EXPECT_EQ(host.record().loose, 1);
}

TEST(Selection, TimingStaysWithinTheBudgetOfTheDevice) {
  Host host({kProfile, Set("memory.limit", "tuner0=1MiB")});
  host.record() = {};
  host.record().workspace = 2 << 20;
  EXPECT_THAT(host.Chosen(kRelu), HasSubstr("E0602"));  // no kernel could be timed, and the plan does not fit either
  EXPECT_EQ(host.record().launches, 0);
  host.record().workspace = 0;
  EXPECT_EQ(host.Chosen(kRelu), "loose");
}

TEST(Selection, AKernelWhoseWorkspaceBoundOverflowsIsNotTimed) {
  Host host({kProfile, Set("select.measuring_bytes", "1MiB")});
  host.record() = {};
  host.record().more_workspace = UINT64_MAX;
  auto plan = host.PlanOf(kRelu);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_THAT(PlanText(**plan, true), HasSubstr("not timed: it takes 18446744073709551615 bytes"));
  EXPECT_EQ(host.record().launches, 0);
}

TEST(Selection, ProfileReadsOpaqueLayoutsThroughTheBackendsReorders) {
  Host host({kProfile}, "sealed_by_cost0");
  auto plan = host.PlanOf("input x : float32[?]\ny = Abs(x)\noutput y\n");
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_THAT(Kernels(**plan), Contains("sealed"));
  for (const Unit& u : (*plan)->units) {
    if (u.kernel == "sealed") {
      EXPECT_GE(u.measured_us, 0);
    }
  }
  EXPECT_THAT(host.warnings, Contains(AllOf(HasSubstr("kernel 'sealed_wrong'"), HasSubstr("wrong results: output 0"))));
}

// ---------------------------------------------------------------- forbidden kernels

constexpr char kNotAllowed[] = "it has forbidden attributes: reduced-precision";
const Assignment kNoTensorCores = Set("MXNET_CUDA_ALLOW_TENSOR_CORE", "0");
const Assignment kConversion = Set("MXNET_CUDA_TENSOR_OP_MATH_ALLOW_CONVERSION", "1");

TEST(ReducedPrecision, IsNotAllowedUnlessASettingSaysSo) {
  Host host;
  auto plan = *host.PlanOf(kRelu);
  EXPECT_EQ(plan->units[0].kernel, "slow");
  EXPECT_EQ(ReasonAgainst(*plan, "rough"), kNotAllowed);
  EXPECT_THAT(PlanText(*plan, true), AllOf(HasSubstr("not rough: it has forbidden attributes: reduced-precision"),
                                           HasSubstr("not allowed of kernels: reduced-precision "
                                                     "(select.tensor_core_conversion: default)")));
  Host allows({kConversion});
  EXPECT_EQ(allows.Chosen(kRelu), "rough");
  EXPECT_THAT(PlanText(**allows.PlanOf(kRelu), true), Not(HasSubstr("not allowed")));
}

TEST(ReducedPrecision, IsNeverTimedWhereItIsNotAllowed) {
  Host host({kProfile});
  host.record() = {};
  EXPECT_EQ(host.Chosen(kRelu), "loose");
  EXPECT_EQ(host.record().rough, 0);
  EXPECT_EQ(Host({kProfile, kConversion}).Chosen(kRelu), "rough");  // correct within its declared precision
}

TEST(ReducedPrecision, IsForbiddenWithReproducibleToo) {
  const Assignment reproducible = Set("select.strategy", "reproducible");
  EXPECT_EQ(Host({reproducible}).Chosen(kNeg), "reference");
  EXPECT_EQ(Host({reproducible, kConversion}).Chosen(kNeg), "rough");
}

TEST(ReducedPrecision, IsNotTakenFromASelectionFile) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, kConversion, Set("select.record", file)}).Chosen(kRelu), "rough");
  EXPECT_EQ(Host({Set("select.replay", file), kConversion}).Chosen(kRelu), "rough");
  EXPECT_EQ(Host({Set("select.replay", file)}).Chosen(kRelu), "slow");
}

TEST(ReducedPrecision, IsNotOfferedToABackendsOwnStrategy) {
  Host host({}, "tuner_own0");
  auto plan = *host.PlanOf(kNeg);
  EXPECT_EQ(plan->units[0].kernel, "loose");
  EXPECT_EQ(ReasonAgainst(*plan, "rough"), kNotAllowed);
}

TEST(TensorCores, AreAllowedUnlessASettingForbidsThem) {
  EXPECT_EQ(Host().Chosen(kNeg), "matrix");
  EXPECT_EQ(Host({kConversion}).Chosen(kNeg), "rough");
  Host off({kNoTensorCores, kConversion});
  auto plan = *off.PlanOf(kNeg);
  EXPECT_EQ(plan->units[0].kernel, "wrong");
  EXPECT_THAT(ReasonAgainst(*plan, "matrix"), HasSubstr("tensor-core"));
  EXPECT_EQ(ReasonAgainst(*plan, "rough"), kNotAllowed);
  EXPECT_THAT(PlanText(*plan, true), HasSubstr("(select.tensor_core: call"));
}

// ---------------------------------------------------------------- the tuning cache

std::vector<Assignment> Caching(const Folder& folder) {
  return {kProfile, {"MGE_FASTRUN_CACHE_TYPE", "file"}, {"MGE_FASTRUN_CACHE_DIR", folder.At("cache")}};
}
std::vector<std::string> Entries(const Folder& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.At("cache"))) {
    if (entry.path().extension() == ".tuning") out.push_back(entry.path());
  }
  return out;
}

TEST(TuningCache, ASecondProcessMeasuresNothing) {
  Folder folder;
  {
    Host first(Caching(folder));
    first.record() = {};
    EXPECT_EQ(first.Chosen(kRelu), "loose");
    EXPECT_GT(first.record().launches, 0);
  }
  EXPECT_THAT(Entries(folder), SizeIs(1));
  Host second(Caching(folder));
  second.record() = {};
  auto plan = *second.PlanOf(kRelu);
  EXPECT_EQ(plan->units[0].kernel, "loose");
  EXPECT_GE(plan->units[0].measured_us, 10);
  EXPECT_THAT(ReasonAgainst(*plan, "wrong"), HasSubstr("wrong results"));  // the cache keeps refusals, too
  EXPECT_EQ(second.record().launches, 0);
  EXPECT_EQ(second.Chosen(kRelu, 65), "loose");  // another shape is another problem
  EXPECT_GT(second.record().launches, 0);
  EXPECT_THAT(Entries(folder), SizeIs(2));
}

TEST(TuningCache, AnotherBuildIsMeasuredAgainEvenWithoutABuildId) {
  Folder folder;
  std::string bytes = ReadText(MGE_BINARY_DIR "/tests/engine_fakes/tuner.so");
  const size_t id = bytes.find(std::string("\4\0\0\0\x14\0\0\0\3\0\0\0GNU\0", 16));
  ASSERT_NE(id, std::string::npos);
  bytes[id + 8] = 9;  // a note of another type
  for (const char* build : {"first", "second"}) {
    std::filesystem::create_directory(folder.At(build));
    WriteText(folder.At(build) + "/tuner.so", bytes);
    std::filesystem::permissions(folder.At(build), std::filesystem::perms(0755));
    std::filesystem::permissions(folder.At(build) + "/tuner.so", std::filesystem::perms(0755));
    for (bool again : {false, true}) {
      Host host(Caching(folder), "tuner0", folder.At(build));
      host.record() = {};
      EXPECT_EQ(host.Chosen(kRelu), "loose");
      EXPECT_EQ(host.record().launches > 0, !again) << build;
    }
    bytes += "built again";
  }
}

TEST(TuningCache, ASecondProcessUsesTheOnlyCorrectKernel) {
  Folder folder;
  std::vector<Assignment> settings = Caching(folder);
  settings.push_back(kNoTensorCores);
  EXPECT_EQ(Host(settings).Chosen(kNeg), "loose");
  settings[0] = Set("select.strategy", "heuristic_profile");
  Host second(settings);
  second.record() = {};
  EXPECT_EQ(second.Chosen(kNeg), "loose");
  EXPECT_EQ(second.record().launches, 0);
}

TEST(TuningCache, BothStrategiesUseRecordedTimesAndMeasureNothing) {
  Folder folder;
  std::vector<Assignment> both = Caching(folder);
  both[0] = Set("select.strategy", "heuristic_profile");
  Host fresh(both);
  fresh.record() = {};
  EXPECT_EQ(fresh.Chosen(kRelu), "slow");
  EXPECT_EQ(fresh.record().launches, 0);
  EXPECT_EQ(Host(Caching(folder)).Chosen(kRelu), "loose");
  EXPECT_EQ(Host(both).Chosen(kRelu), "loose");
}

TEST(TuningCache, ADamagedEntryIsReportedAndMeasuredAgain) {
  Folder folder;
  EXPECT_EQ(Host(Caching(folder)).Chosen(kRelu), "loose");
  std::string path = Entries(folder)[0], good = ReadText(path);
  const std::string damages[] = {"", good.substr(0, good.size() / 2), good + "x", std::string(good).replace(30, 1, "~"),
                                 std::string(good).replace(11, 1, "9")};
  for (const std::string& damage : damages) {
    WriteText(path, damage);
    Host host(Caching(folder));
    host.record() = {};
    EXPECT_EQ(host.Chosen(kRelu), "loose");
    EXPECT_GT(host.record().launches, 0);
    EXPECT_THAT(host.warnings, Contains(HasSubstr("are ignored and measured again")).Times(1));
    Host after(Caching(folder));
    after.record() = {};
    EXPECT_EQ(after.Chosen(kRelu), "loose");
    EXPECT_EQ(after.record().launches, 0);
  }
}

TEST(TuningCache, AnUnusableDirectoryGivesOneWarning) {
  Folder folder;
  WriteText(folder.At("cache"), "a file");
  Host host(Caching(folder));
  EXPECT_EQ(host.Chosen(kRelu), "loose");
  EXPECT_EQ(host.Chosen(kRelu, 65), "loose");
  int said = 0;
  for (const std::string& w : host.warnings) said += w.find("directory of measured times") != std::string::npos;
  EXPECT_EQ(said, 1);
}

// ---------------------------------------------------------------- selection files

TEST(SelectionFile, RepeatsTheChoicesOfAProfileWithoutMeasuring) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, Set("select.record", file)}).Chosen(kRelu), "loose");
  EXPECT_THAT(ReadText(file), AllOf(HasSubstr("mge.selection/1"), HasSubstr("Relu float32[64] with 1 thread: measured")));

  Host plain({Set("select.replay", file)});
  plain.record() = {};
  EXPECT_EQ(plain.Chosen(kRelu), "loose");
  EXPECT_EQ(plain.Chosen(kRelu, 65), "slow");  // not in the file, so the strategy (heuristic) chooses
  EXPECT_EQ(plain.record().launches, 0);

  Host strict({Set("select.strategy", "profile_reproducible"), Set("select.replay", file)});
  strict.record() = {};
  EXPECT_EQ(strict.Chosen(kRelu), "steady");  // the fastest kernel that repeats its bits
  EXPECT_EQ(strict.record().launches, 0);
  EXPECT_THAT(strict.Chosen(kRelu, 65),
              AllOf(HasSubstr("no kernel for operator Relu"), HasSubstr("Relu float32[65]"), HasSubstr("select.record")));
}

TEST(SelectionFile, KeepsOtherModelsOfTheSameFile) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  WriteText(file, "");  // an empty file, as mktemp creates it
  EXPECT_EQ(Host({kProfile, kNoTensorCores, Set("select.record", file)}).Chosen(kNeg), "loose");
  EXPECT_EQ(Host({kProfile, kNoTensorCores, Set("select.record", file)}).Chosen(kRelu), "loose");
  Host replay({kNoTensorCores, Set("select.replay", file)});
  EXPECT_EQ(replay.Chosen(kNeg), "loose");
  EXPECT_EQ(replay.Chosen(kRelu), "loose");
}

TEST(SelectionFile, IsNotWrittenOverAFileOfAnotherKind) {
  Folder folder;
  const std::string file = folder.At("notes.txt");
  WriteText(file, "what I wrote in three weeks\n");
  EXPECT_THAT(FormatError(Host({kProfile, Set("select.record", file)}).status),
              AllOf(HasSubstr("E0206"), HasSubstr("it is not overwritten"), HasSubstr("select.record")));
  EXPECT_EQ(ReadText(file), "what I wrote in three weeks\n");
}

TEST(SelectionFile, RecordsAChoiceEvenIfOnlyOneKernelIsCorrect) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, kNoTensorCores, Set("select.record", file)}).Chosen(kNeg), "loose");
  EXPECT_THAT(ReadText(file), HasSubstr("count = 1"));
  EXPECT_EQ(Host({kNoTensorCores}).Chosen(kNeg), "wrong");
  EXPECT_EQ(Host({kNoTensorCores, Set("select.replay", file)}).Chosen(kNeg), "loose");
}

TEST(SelectionFile, AppliesEvenIfTheStrategyAllowsOneKernelOnly) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, kNoTensorCores, Set("select.record", file)}).Chosen(kNeg), "loose");
  Host strict({Set("select.strategy", "profile_reproducible"), kConversion, Set("select.replay", file)});
  EXPECT_THAT(strict.Chosen(kNeg), AllOf(HasSubstr("E0202"), HasSubstr("names 'loose', which is not offered")));
}

TEST(SelectionFile, OfAnotherNumberOfThreadsGivesOneWarningPerPlan) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, Set("select.record", file)}).Chosen(kRelu), "loose");
  const Assignment threads = Set("threads", "2"), replay = Set("select.replay", file);
  Host plain({threads, replay});
  EXPECT_EQ(plain.Chosen("input x : float32[?]\na = Relu(x)\nb = Neg(a)\ny = Relu(b)\noutput y\n"), "slow");
  EXPECT_THAT(plain.warnings, ElementsAre(AllOf(HasSubstr(file), HasSubstr("Relu float32[64] with 2 threads"),
                                                HasSubstr("create it again with these shapes, threads"))));
  Host strict({Set("select.strategy", "profile_reproducible"), threads, replay});
  EXPECT_THAT(strict.Chosen(kRelu), AllOf(HasSubstr("has no entry for Relu float32[64] with 2 threads"),
                                          HasSubstr("create it again with these shapes, threads")));
}

TEST(SelectionFile, ThatFitsGivesNoWarning) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, Set("select.record", file)}).Chosen(kRelu), "loose");
  Host some({Set("select.replay", file)});
  EXPECT_EQ(some.Chosen("input x : float32[?]\na = Relu(x)\ny = Neg(a)\noutput y\n"), "loose");
  EXPECT_EQ(some.Chosen("input x : float32[?]\ny = Exp(x)\noutput y\n"), "reference");
  EXPECT_THAT(some.warnings, IsEmpty());
}

TEST(SelectionFile, ReproducibleAndProfileNeedOne) {
  EXPECT_THAT(Host({Set("select.strategy", "profile_reproducible")}).Chosen(kRelu),
              AllOf(HasSubstr("needs a selection file"), HasSubstr("select.replay")));
}

TEST(SelectionFile, ATruncatedFileIsRefused) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, Set("select.record", file)}).Chosen(kRelu), "loose");
  std::string whole = ReadText(file);
  size_t line = whole.rfind('\n', whole.rfind('\n', whole.size() - 2) - 1);
  const std::pair<std::string, const char*> damages[] = {{"", "does not name its format"},
                                                         {whole.substr(0, line + 1), "but its count is 2"},
                                                         {whole + "more = 1\n", "is not an entry of a selection"},
                                                         {"format = \"mge.selection/9\"\n", "is not \"mge.selection/1\""}};
  for (const auto& [text, what] : damages) {
    WriteText(file, text);
    EXPECT_THAT(FormatError(Host({Set("select.replay", file)}).status), AllOf(HasSubstr("E0206"), HasSubstr(what)));
  }
  EXPECT_THAT(FormatError(Host({Set("select.replay", folder.At("absent.toml"))}).status),
              AllOf(HasSubstr("E0206"), HasSubstr("select.record = FILE"), Not(HasSubstr("MGE_CONFIG"))));
}

TEST(SelectionFile, IsWrittenEvenIfThereWasNoChoice) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  Host host({kProfile, Set("select.record", file)});
  auto session = host.Make("input x : float32[8]\ny = Exp(x)\noutput y\n");
  ASSERT_TRUE(session.ok());
  const InputType type = {.dtype = DType::kF32, .shape = {8}};
  ASSERT_TRUE((*session)->PlanFor({&type, 1}).ok());
  EXPECT_THAT(ReadText(file), HasSubstr("count = 0"));
  EXPECT_TRUE(Host({Set("select.strategy", "profile_reproducible"), Set("select.replay", file)}).status.ok());
}

TEST(SelectionFile, AKernelThatIsNotOfferedIsReported) {
  Folder folder;
  const std::string file = folder.At("kernels.toml");
  EXPECT_EQ(Host({kProfile, Set("select.record", file)}).Chosen(kRelu), "loose");
  std::string text = ReadText(file);
  for (size_t at; (at = text.find("\"loose\"")) != std::string::npos;) text.replace(at, 7, "\"gone\"");
  WriteText(file, text);
  Host host({Set("select.replay", file)});
  EXPECT_EQ(host.Chosen(kRelu), "slow");
  EXPECT_THAT(host.warnings, Contains(AllOf(HasSubstr("kernel gone is replayed from '" + file + "', but not offered here"),
                                            HasSubstr("Relu"))));
}

TEST(SelectionFile, IsWrittenCompletelyOrNotAtAll) {
  Folder folder;
  Host host({kProfile, Set("select.record", folder.At("no/such/kernels.toml"))});
  EXPECT_THAT(host.Chosen(kRelu), HasSubstr("E0702"));
  EXPECT_THAT(folder.Files(".toml"), IsEmpty());
}

// ---------------------------------------------------------------- the backend's own parts

TEST(OwnParts, TheBackendsPoolReservePolicyAndStrategyDecide) {
  Host host({}, "tuner_own0");
  host.record() = {};
  host.record().workspace = 4096;
  auto session = host.Make(kRelu);
  ASSERT_TRUE(session.ok()) << FormatError(session.status());
  std::vector<InputType> types = {{ValueKind::kTensor, DType::kF32, {64}}};
  auto plan = *(*session)->PlanFor(types);
  EXPECT_EQ(plan->units[0].kernel, "loose");  // the largest estimate
  EXPECT_EQ(host.record().orders, 1);
  std::vector<HostValue> in(1), out(1);
  in[0].tensor = *Tensor::Create(DType::kF32, {64});
  std::memset(in[0].tensor.mutable_data(), 0, 256);
  RunState control;
  ASSERT_TRUE((*session)->Run(in, out, control).ok());
  EXPECT_EQ(host.record().pool_acquires, 1);
  EXPECT_GE(host.record().reserves, 1);
  EXPECT_EQ(host.record().arena_bytes, 4096u);
}

constexpr char kChain[] = "input x : float32[?]\na = Relu(x)\nb = Neg(a)\ny = Relu(b)\noutput y\n";

TEST(OwnParts, TheStrategyMayChooseACandidateThatNeedsMoreReorders) {
  Host host({}, "sealed0");
  auto plan = host.PlanOf(kChain);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  const std::string reorder = "sealed.reorder";
  EXPECT_THAT(Kernels(**plan), ElementsAre(reorder, "sealed", reorder, "plain", reorder, "sealed", reorder));
  EXPECT_EQ((*plan)->units[3].reason, "the strategy of backend sealed puts it first");
  EXPECT_THAT((*plan)->units[3].alternatives, Contains(testing::Field(&Alternative::id, "sealed")));
}

TEST(OwnParts, AKernelThatWantsAConstantInALayoutIsRefused) {
  Host host({}, "sealed0");
  auto plan = host.PlanOf("input x : float32[?]\nconst k = float32[4]<1,2,3,4>\ny = Mul(x, k)\noutput y\n", 4);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_THAT(Kernels(**plan), ElementsAre("plain"));
  EXPECT_EQ(ReasonAgainst(**plan, "sealed"),
            "it wants input 1, the constant 'k', in the layout opaque(7); constants are always given plain");
  plan = host.PlanOf("input x : float32[?]\nk = Relu(x)\ny = Mul(x, k)\noutput y\n", 4);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[2].kernel, "sealed");
}

TEST(OwnParts, AnOrderByCostIsWeighedAgainstReorders) {
  Host host({}, "sealed_by_cost0");
  auto plan = host.PlanOf(kChain);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  const std::string reorder = "sealed_by_cost.reorder";
  EXPECT_THAT(Kernels(**plan), ElementsAre("plain", reorder, "sealed", reorder, "plain"));
  // Two reorders of a tensor of 4 MB cost more than the 99 us that the sealed kernel saves.
  EXPECT_THAT(Kernels(**host.PlanOf(kChain, 1 << 20)), ElementsAre("plain", "plain", "plain"));
}

TEST(OwnParts, ABackendsModeProfileAppliesIfTheUserSetsNoMode) {
  Host host({}, "tuner_profile0");
  auto plan = *host.PlanOf(kRelu);
  EXPECT_EQ(plan->units[0].kernel, "loose");
  EXPECT_GE(plan->units[0].measured_us, 10);
  EXPECT_THAT(ReasonAgainst(*plan, "wrong"), HasSubstr("wrong results"));
  EXPECT_THAT(PlanText(*plan, true), HasSubstr("kernels of tuner_profile0 are chosen by profile: its backend's default, "
                                               "as select.strategy names no mode"));
  Host other({}, "tuner0");
  EXPECT_EQ(other.Chosen(kRelu), "slow");
}

TEST(OwnParts, ABackendsModeReproducibleAllowsRepeatableKernelsOnly) {
  Host host({}, "tuner_repeats0");
  auto plan = *host.PlanOf("input x : float32[?]\na = Relu(x)\ny = Neg(a)\noutput y\n");
  EXPECT_EQ(plan->units[0].kernel, "slow");
  EXPECT_THAT(ReasonAgainst(*plan, "loose"), HasSubstr("outside"));
  EXPECT_EQ(plan->units[1].kind, Unit::Kind::kReference);  // the user did not ask for optimized kernels
}

TEST(OwnParts, TheUsersModeOverridesTheBackends) {
  for (const char* device : {"tuner_profile0", "tuner_repeats0"}) {
    Host host({Set("select.strategy", "heuristic")}, device);
    auto plan = *host.PlanOf(kNeg);
    EXPECT_LT(plan->units[0].measured_us, 0) << device;
    EXPECT_THAT(PlanText(*plan, true), Not(HasSubstr("its backend's default"))) << device;
    Host timed({kProfile}, device);
    EXPECT_EQ(timed.Chosen(kRelu), "loose") << device;
    Host repeats({Set("select.strategy", "reproducible")}, device);
    EXPECT_EQ(repeats.Chosen(kNeg), "reference") << device;
  }
  // A user's strategy without a mode leaves the mode to the backend.
  Host host({Set("select.strategy", "optimized")}, "tuner_profile0");
  EXPECT_EQ(host.Chosen(kRelu), "loose");
}

TEST(OwnParts, MayWrapThoseOfTheHost) {
  Host host({kProfile}, "tuner_wraps0");
  host.record() = {};
  host.record().workspace = 4096;
  auto plan = host.PlanOf(kRelu);
  ASSERT_TRUE(plan.ok()) << FormatError(plan.status());
  EXPECT_EQ((*plan)->units[0].kernel, "loose");
  EXPECT_EQ(host.record().orders, 1);
  EXPECT_GT(host.record().pool_acquires, 0);
  EXPECT_GT(host.record().reserves, 0);
  EXPECT_GE(host.record().held, 64u << 10);  // reserved by the wrapped policy before the first run
}

TEST(OwnParts, TheUsersSettingsOverrideTheBackends) {
  Host host({Set("memory.pool", "unpooled"), Set("memory.reserve", "none")}, "tuner_own0");
  host.record() = {};
  host.record().workspace = 4096;
  auto session = *host.Make(kRelu);
  std::vector<HostValue> in(1), out(1);
  in[0].tensor = *Tensor::Create(DType::kF32, {64});
  std::memset(in[0].tensor.mutable_data(), 0, 256);
  RunState control;
  ASSERT_TRUE(session->Run(in, out, control).ok());
  EXPECT_EQ(host.record().pool_acquires, 0);
  EXPECT_EQ(host.record().reserves, 0);
  EXPECT_EQ((*session->device().PoolOf())->name(), "unpooled");
}

TEST(OwnParts, AnUnknownPoolIsABadSetting) {
  EXPECT_THAT(FormatError(Host({Set("memory.pool", "unpoled")}).status), AllOf(HasSubstr("E0202"), HasSubstr("unpooled")));
  EXPECT_THAT(FormatError(Host({Set("memory.reserve", "half")}).status), AllOf(HasSubstr("E0202"), HasSubstr("percent:N")));
}

}  // namespace
}  // namespace mge
