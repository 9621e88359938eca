// SPDX-License-Identifier: Apache-2.0
// The settings that the backends of all vendors have. `vendor` and the other parameters are literals.
#pragma once

#include "mge/plugin.hpp"

// The path of a vendor's library. `work`: "computes matrix products".
#define GPU_LIBRARY_SETTING(vendor, key, library, work, files, without)                                      \
  TextSetting(vendor "." key, "",                                                                            \
              "Absolute path of " library ", which " work "; empty: " files " of the system, unless " vendor \
              ".driver is "                                                                                  \
              "set; off: " without ".")

#define GPU_QUEUES_SETTING(vendor)                           \
  IntSetting(vendor ".compute_queues", "1", 1, 16, "queues", \
             "Number of streams of each device that plans use for parallel branches of a model.")

// A rate that was measured on the devices.
#define GPU_RATE_SETTING(vendor, key, unit, rate, otherwise) \
  DoubleSetting(vendor "." key, "0", 0, 1e6, unit,           \
                "Measured rate of " rate ", for the planner's estimates on all devices of this backend; 0: " otherwise ".")

#define GPU_MEMORY_RATE_SETTING(vendor)                                                      \
  GPU_RATE_SETTING(vendor, "memory_gb_s", "GB/s", "device memory (gpu-report.sh prints it)", \
                   "80% of the peak that the driver reports")
#define GPU_COMPUTE_RATE_SETTING(vendor, units)                                             \
  GPU_RATE_SETTING(vendor, "compute_tflop_s", "TFLOP/s", "float32 products without " units, \
                   "half of the peak that the driver's properties suggest")
