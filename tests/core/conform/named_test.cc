// SPDX-License-Identifier: Apache-2.0
// Short runs of the kit, restricted to one operator or one check: that check must find the fault.
#include <string>

#include "core/conform/conform.h"
#include "fmt/format.h"
#include "gtest/gtest.h"
#include "tests/core/conform/reports.h"

namespace mge::conform {
namespace {

// Some faults show only in a certain order of threads, which a busy machine may not give at once.
void IsNamed(const std::string& mutant, const std::string& only, const std::string& check, double seconds = 0,
             bool quick = true) {
  std::string findings;
  for (int i = 0; i < 10; ++i) {
    absl::StatusOr<Report> report = CheckBackend(fmt::format(MGE_BINARY_DIR "/tests/mutants/{}.so", mutant),
                                                 {.quick = quick, .seconds = seconds, .only = {only}});
    ASSERT_TRUE(report.ok()) << report.status();
    if (Named(*report, check).outcome == Outcome::kFailed) return;
    findings += Findings(*report);
  }
  ADD_FAILURE() << mutant << "\n" << findings;
}

TEST(Named, KernelsThatBypassTheirQueue) {
  IsNamed("runs_in_caller", "Relu", "kernel.queue_order");
  IsNamed("runs_beside", "Relu", "kernel.queue_order");
  IsNamed("reorders_in_caller", "Relu", "layout.round_trip");
}

TEST(Named, KernelsThatAreWrongOnlyForSomeData) {
  IsNamed("first_chunk_only", "Relu", "kernel.numerics");
  IsNamed("drops_nan", "Relu", "kernel.numerics");
  IsNamed("two_operands_always", "Add", "kernel.numerics");
}

TEST(Named, KernelsThatIgnoreOrConfuseAttributes) {
  for (const char* mutant : {"conv_no_dilation", "conv_exchanges_pads", "conv_exchanges_kernel"})
    IsNamed(mutant, "Conv", "kernel.numerics");
  IsNamed("softmax_last_axis", "Softmax", "kernel.numerics");
}

TEST(Named, KernelsThatBroadcastWrongly) {
  IsNamed("gemm_row_of_c", "Gemm", "kernel.numerics");
  IsNamed("sub_one_first", "Sub", "kernel.numerics");
}

TEST(Named, AKernelThatCopiesBeyondItsOperandsIsReported) { IsNamed("copies_too_far", "Relu", "kernel.bounds"); }

TEST(Named, AClaimThatTakesTheConstantToBeTheSecondOperand) { IsNamed("bias_comes_second", "graph.", "graph.groups"); }

TEST(Named, LaunchesThatChangeTheFloatingPointModes) {
  IsNamed("leaves_rounding", "Relu", "kernel.thread_modes");
  IsNamed("leaves_flushing", "Relu", "kernel.thread_modes");
}

TEST(Named, LaunchesThatAllocateWithoutDeclaringIt) { IsNamed("allocates_silently", "Relu", "kernel.launch_allocates"); }

TEST(Named, KernelsThatNeedMoreAlignmentThanTheContractGives) {
  IsNamed("needs_alignment", "Relu", "kernel.alignment");
  IsNamed("needs_aligned_constants", "Add", "kernel.alignment");
}

TEST(Named, KernelsThatWantAConstantInALayout) {
  IsNamed("lays_out_constants", "MatMul", "kernel.offers");
  IsNamed("lays_out_constants", "MatMul", "kernel.numerics");
}

TEST(Named, StampsInTheWrongUnit) {
  IsNamed("stamps_in_ns", "profile.stamps", "profile.stamps");
  IsNamed("stamps_in_ms", "profile.stamps", "profile.stamps");
}

// Expects that a backend passes whose behaviour is unusual but allowed by the contract.
void Passes(const std::string& mutant, const std::string& only, const std::string& check, Outcome outcome) {
  absl::StatusOr<Report> report =
      CheckBackend(fmt::format(MGE_BINARY_DIR "/tests/mutants/{}.so", mutant), {.quick = true, .only = {only}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->passed()) << mutant << "\n" << Findings(*report);
  EXPECT_EQ(Named(*report, check).outcome, outcome) << mutant;
}

TEST(Named, ReordersThatDoNotWriteThePaddingOfAnOpaqueLayoutPass) {
  Passes("leaves_padding", "Relu", "layout.round_trip", Outcome::kPassed);
}

TEST(Named, APoolWithoutStatisticsIsUnsupportedNotPassed) {
  Passes("tells_no_numbers", "pool.stats", "pool.stats", Outcome::kUnsupported);
}

TEST(Named, HostAddressesOfMemoryThatTheHostCannotReach) {
  IsNamed("host_address_lies", "memory.slabs", "memory.slabs");
  IsNamed("block_address_lies", "pool.blocks", "pool.blocks");
}

TEST(Named, MemoryThatIsNotThatOfItsHandle) { IsNamed("wraps_elsewhere", "memory.handles", "memory.handles"); }

TEST(Named, ClaimsThatCrashOrHaveNoNodes) {
  IsNamed("claims_no_nodes", "graph.", "graph.claims");
  IsNamed("claims_crashes", "graph.", "graph.claims");
}

TEST(Named, CandidateIdsThatDifferBetweenProcesses) {
  IsNamed("ids_of_a_process", "kernel.stable_ids", "kernel.stable_ids");
}

// Cases that --quick leaves out.
void IsNamedByAll(const std::string& mutant, const std::string& only, const std::string& check) {
  IsNamed(mutant, only, check, 0, false);
}

TEST(Named, QueuesOfEveryKindThatDoNotWait) {
  for (const char* mutant : {"copy_out_ignores_wait", "copy_in_ignores_wait", "second_ignores_wait"})
    IsNamed(mutant, "fence.wait", "fence.wait");
  IsNamed("copy_out_ignores_wait", "fence.host_copies", "fence.host_copies");
}

TEST(Named, StrategiesThatReturnAnIndexTwiceOrAnotherOrderEachTime) {
  IsNamed("orders_one_twice", "strategy.", "strategy.order");
  IsNamed("orders_by_calls", "strategy.", "strategy.order");
}

TEST(Named, KernelsThatLoseLargeIntegersAndElements) {
  IsNamed("adds_in_32_bits", "Add", "kernel.numerics", 0, false);
  IsNamed("adds_in_double", "Add", "kernel.numerics", 0, false);
  IsNamed("blocks_of_16_bits", "kernel.long_tensor", "kernel.long_tensor");
}

TEST(Named, KernelsThatLoseNanOrLeaveTheirOutputUnwritten) {
  IsNamedByAll("max_pool_drops_nan", "MaxPool", "kernel.numerics");
  IsNamedByAll("mean_drops_nan", "GlobalAveragePool", "kernel.numerics");
  IsNamedByAll("softmax_of_nothing", "Softmax", "kernel.numerics");
  IsNamedByAll("transposes_five", "Transpose", "kernel.numerics");
}

TEST(Named, PreparingInThreadsAndAllocatingInLibraries) {
  IsNamed("prepares_in_shared_memory", "kernel.prepare_threads", "kernel.prepare_threads");
  IsNamed("allocating_driver", "Relu", "kernel.launch_allocates");
}

TEST(Named, ACompiledKernelWhoseKeyLacksAnAttribute) { IsNamed("blob_without_axis", "Softmax", "kernel.numerics"); }

TEST(Named, TotalsOfMemoryThatContradictEachOther) {
  IsNamed("total_in_kib", "memory.", "memory.too_much");
  IsNamed("totals_in_kib", "memory.", "memory.too_much");
}

TEST(Named, ClaimsThatNoRowSupportsOrThatReadOneBias) {
  IsNamed("claims_any_type", "graph.", "graph.groups");
  IsNamed("bias_of_one_batch", "graph.", "graph.groups");
}

// A wrong convolution of packed weights is a numeric fault. It is one of packing only if it is right without packing.
TEST(Named, PackingOnlyIfTheKernelIsRightWithoutIt) {
  absl::StatusOr<Report> report =
      CheckBackend(MGE_BINARY_DIR "/tests/mutants/conv_exchanges_pads.so", {.quick = true, .only = {"Conv"}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Named(*report, "kernel.prepack").outcome, Outcome::kPassed) << Findings(*report);
  IsNamedByAll("packs_four_channels", "Conv", "kernel.prepack");
}

TEST(Named, StampsThatDoNotWaitForTheirQueue) { IsNamed("stamps_at_once", "profile.stamps", "profile.stamps"); }

TEST(Named, AQueueThatForgetsItsFailure) { IsNamed("failure_forgotten", "fence.failure", "fence.failure"); }

TEST(Named, APoolThatReleasesASlabInUse) { IsNamed("trims_used_slab", "pool.trim", "pool.trim"); }

TEST(Named, APoolThatReleasesSlabsTwice) {
  absl::StatusOr<Report> report =
      CheckBackend(MGE_BINARY_DIR "/tests/mutants/releases_twice.so", {.quick = true, .only = {"pool."}});
  ASSERT_TRUE(report.ok()) << report.status();
  for (const char* check : {"pool.trim", "pool.budget", "pool.policy"}) {
    const CheckResult& c = Named(*report, check);
    ASSERT_EQ(c.findings.size(), 1u) << check;
    EXPECT_EQ(c.findings[0].what, "the pool releases a slab that it does not own, or has already released") << check;
  }
}

TEST(Named, PinnedMemoryThatStaysMapped) {
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  IsNamed("pinned_leak", "life.leaks", "life.leaks");
#endif
}

TEST(Named, UnreadableDeviceNamesWhileOtherChecksStillRun) {
  absl::StatusOr<Report> report =
      CheckBackend(MGE_BINARY_DIR "/tests/mutants/name_without_end.so", {.quick = true, .only = {"device.", "life.start"}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(Findings(*report), "device.enumerate: : the name of its device 0 is missing or longer than 1048576 bytes\n");
}

TEST(Named, StepsThatFailWithoutAText) {
  absl::StatusOr<Report> report =
      CheckBackend(MGE_BINARY_DIR "/tests/mutants/fails_without_text.so", {.quick = true, .only = {"Relu"}});
  ASSERT_TRUE(report.ok()) << report.status();
  const CheckResult& c = Named(*report, "kernel.in_place");
  ASSERT_FALSE(c.findings.empty());
  EXPECT_EQ(c.findings[0].what, "the step failed: no text (MGE_INTERNAL)");
}

TEST(Named, StartsThatChangeStateOfTheHostProcess) {
  for (const char* mutant :
       {"handles_signals", "sets_locale", "changes_folder", "sets_variable", "lowers_limit", "sets_umask"})
    IsNamed(mutant, "life.host_kept", "life.host_kept");
}

TEST(Named, BackendsThatBreakTheExitOfTheProcess) {
  for (const char* mutant : {"aborts_at_exit", "hangs_at_exit", "leaves_at_exit"})
    IsNamed(mutant, "life.exit", "life.exit", 1);
}

TEST(Named, StopsThatLeaveAChildProcess) {
  for (const char* mutant : {"process_at_stop", "daemon_at_stop"}) IsNamed(mutant, "life.leaks", "life.leaks");
}

}  // namespace
}  // namespace mge::conform
