// SPDX-License-Identifier: Apache-2.0
// The parts of the CPU backend. Pool, reserve policy and strategy are the host's; kernels run in the calling thread.
#include "device.h"
#include "kernel_table.h"
#include "memory.h"
#include "mge_kernel_set.h"
#include "settings.h"
#include "support/operator_tuning.h"
#include "support/widened_kernels.h"

namespace mge::cpu {
namespace {

struct Backend : BackendDefaults {
  static constexpr std::string_view kName = "cpu";
  static constexpr std::string_view kVersion = MGE_CPU_VERSION;
  static constexpr std::string_view kKernelSet = MGE_KERNEL_SET;

  static constexpr const mge_setting* kSettings[] = {
      &kIsaSetting,         &kJitSetting,          &kOnednnSetting,         &kOpenblasSetting,    &kOnednnCacheSetting,
      &kConvThreadsSetting, &kParallelCopySetting, &kOperatorTuningSetting, &kTuningCoresSetting, &kHugePagesSetting};
  using Device = cpu::Device;
  using Memory = cpu::Memory;
  using Kernels = JoinedKernels<cpu::Kernels, WidenedKernels>;
  using Claims = mge::Claims<FindClaims>;

  static Result Start() { return CheckOperatorTuning(); }
};

}  // namespace
}  // namespace mge::cpu

MGE_BACKEND(mge::cpu::Backend);
