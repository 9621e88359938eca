// SPDX-License-Identifier: Apache-2.0
// Emulated twins of generated kernels: libraries for a driver in software, compiled from the sources of the kernels.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace mge {

// Variables of the libraries in place of NVRTC and hiprtc (emulating.cc). With the first one, they write the source of each
// kernel to a file NAME.cu of this folder, and their images have no twin. With the second one, they take all twins from this
// library, and a source without one ends the process.
inline constexpr char kCollectVariable[] = "GPU_TEST_COLLECT_CHAINS", kUnitVariable[] = "GPU_TEST_CHAINS";

// Returns the name of the kernel of a generated source.
inline std::string KernelNameIn(const std::string& source) {
  constexpr char kBefore[] = "GPU_KERNEL(";
  const size_t at = source.find(kBefore) + sizeof(kBefore) - 1;
  return source.substr(at, source.find(',', at) - at);
}

// Compiles sources as one unit. `driver` is the driver in software with the emulator. Writes the library, and its text beside
// it. Returns false if the compiler fails, which has then printed why.
inline bool CompileTwins(const std::vector<std::string>& sources, const std::string& driver, const std::string& library) {
  // Lists the kernels of the library, and counts the bytes that they move, those of repeated operands apart.
  constexpr char kBegin[] = R"(#include <atomic>
#include <cstdint>
extern "C" { std::atomic<uint64_t> mge_twin_bytes{0}, mge_twin_repeated_bytes{0}; }
#define GPU_COUNT_READ(address, bytes) mge_twin_bytes += (bytes)
#define GPU_COUNT_REPEATED_READ(address, bytes) mge_twin_repeated_bytes += (bytes)
#define GPU_COUNT_WRITE(address, bytes) mge_twin_bytes += (bytes)
)";
  constexpr char kEnd[] = R"(
extern "C" {
__attribute__((visibility("hidden"))) extern const mge::gpu::emulation::Kernel* const __start_mge_gpu_kernels[];
__attribute__((visibility("hidden"))) extern const mge::gpu::emulation::Kernel* const __stop_mge_gpu_kernels[];
const void* const* mge_twin_kernels(uint64_t* count) {
  *count = static_cast<uint64_t>(__stop_mge_gpu_kernels - __start_mge_gpu_kernels);
  return reinterpret_cast<const void* const*>(__start_mge_gpu_kernels);
}
}
)";
  const std::string text = library + ".cc";
  {
    std::ofstream out(text);
    out << kBegin;
    for (const std::string& source : sources) out << source;
    out << kEnd;
  }
  const std::string command = std::string(MGE_CXX) + " -std=c++20 -O1 -fPIC -shared -fno-math-errno -fno-trapping-math -I" +
                              MGE_SOURCE_DIR + " -I" + MGE_SOURCE_DIR + "/sdk/include -o " + library + " " + text + " " +
                              driver;
  return std::system(command.c_str()) == 0;
}

// Returns the sources that were collected in a folder.
inline std::vector<std::string> CollectedSources(const std::string& folder) {
  std::vector<std::string> sources;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path());
    sources.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  std::sort(sources.begin(), sources.end());
  return sources;
}

}  // namespace mge
