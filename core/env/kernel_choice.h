// SPDX-License-Identifier: Apache-2.0
// The effect of select.strategy, a backend's default mode and select.gpu_conv_autotune on the choice of kernels, for each
// combination. configs/SETTINGS.md shows these rows, and a test compares each combination with what planning does.
#pragma once

#include <string_view>

namespace mge {

// The choice of all kernels that AutotuneRow does not replace.
struct StrategyRow {
  std::string_view strategy;   // value of select.strategy; empty: not set
  std::string_view mode;       // default mode of the backend; empty: any
  std::string_view chosen_by;  // the source of the choice
};
inline constexpr StrategyRow kStrategyRows[] = {
    {"", "heuristic", "estimates"},
    {"", "profile", "times"},
    {"", "reproducible", "estimates, deterministic kernels only"},
    {"heuristic", "", "estimates"},
    {"profile", "", "times"},
    {"heuristic_profile", "", "stored times, else estimates"},
    {"reproducible", "", "estimates, deterministic kernels only"},
    {"profile_reproducible", "", "the file of select.replay, deterministic kernels only"},
};

// The choice of the kernels of convolutions on GPUs.
struct AutotuneRow {
  std::string_view autotune;      // value of select.gpu_conv_autotune; empty: not set
  std::string_view number;        // the same in the spelling of MXNET_CUDNN_AUTOTUNE_DEFAULT
  std::string_view chosen_by;     // the source of the choice
  std::string_view reproducible;  // the same if select.strategy contains `reproducible`
};
inline constexpr AutotuneRow kAutotuneRows[] = {
    {"", "", "as other kernels", "as other kernels"},
    {"off", "0", "estimates, within select.workspace_bytes", "as other kernels, within select.workspace_bytes"},
    {"limited", "1", "times, within select.workspace_bytes", "as other kernels, within select.workspace_bytes"},
    {"fastest", "2", "times", "as other kernels"},
};

}  // namespace mge
