// SPDX-License-Identifier: Apache-2.0
// A library with the interface of NVRTC or, with MGE_EMULATING_HIPRTC, of hiprtc. It compiles kernels for this machine, and
// adds them to the driver in software as emulated twins. Its images contain only a name.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))
#ifdef MGE_EMULATING_HIPRTC
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif

namespace {

constexpr char kDriver[] = MGE_BINARY_DIR "/lib/mge/test/" NAME("libcuda.so.1", "libamdhip64.so.5");
constexpr int kFailed = 6;  // compilation
constexpr char kImage[] = "\177ELF in software";

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

std::atomic<uint64_t> g_compilations{0};

// The counts of all compiled kernels. The driver keeps the first one of a name.
std::mutex g_mutex;
std::vector<const std::atomic<uint64_t>*> g_bytes, g_repeated_bytes;  // guarded by g_mutex

uint64_t SumOf(const std::vector<const std::atomic<uint64_t>*>& counts) {
  std::lock_guard lock(g_mutex);
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>* count : counts) sum += *count;
  return sum;
}

bool CompileTwin(const std::string& source) {
  char folder[] = "/tmp/mge-twin-XXXXXX";
  if (!mkdtemp(folder)) return false;
  const std::string text = std::string(folder) + "/twin.cc", library = std::string(folder) + "/twin.so";
  std::ofstream(text) << kBegin << source << kEnd;
  const std::string command = std::string(MGE_CXX) + " -std=c++20 -O1 -fPIC -shared -fno-math-errno -fno-trapping-math -I" +
                              MGE_SOURCE_DIR + " -I" + MGE_SOURCE_DIR + "/sdk/include -o " + library + " " + text + " " +
                              kDriver;
  const bool compiled = std::system(command.c_str()) == 0;
  void* twin = compiled ? dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* driver = dlopen(kDriver, RTLD_NOW | RTLD_NOLOAD);
  std::filesystem::remove_all(folder);
  if (!twin || !driver) return false;
  uint64_t count = 0;
  auto kernels = reinterpret_cast<const void* const* (*)(uint64_t*)>(dlsym(twin, "mge_twin_kernels"))(&count);
  reinterpret_cast<void (*)(const void* const*, uint64_t)>(dlsym(driver, "mge_driver_add_kernels"))(kernels, count);
  std::lock_guard lock(g_mutex);
  g_bytes.push_back(static_cast<const std::atomic<uint64_t>*>(dlsym(twin, "mge_twin_bytes")));
  g_repeated_bytes.push_back(static_cast<const std::atomic<uint64_t>*>(dlsym(twin, "mge_twin_repeated_bytes")));
  return true;
}

}  // namespace

// Return the number of compilations, the bytes that all compiled kernels have moved, except those of repeated operands, and
// those of the latter that they have read.
EXPORT uint64_t emulating_compilations() { return g_compilations; }
EXPORT uint64_t emulating_bytes() { return SumOf(g_bytes); }
EXPORT uint64_t emulating_repeated_bytes() { return SumOf(g_repeated_bytes); }

EXPORT int NAME(nvrtcVersion, hiprtcVersion)(int* major, int* minor) {
#ifdef MGE_OLD
  *major = 12;
#else
  *major = 13;
#endif
  *minor = 0;
  return 0;
}
EXPORT const char* NAME(nvrtcGetErrorString, hiprtcGetErrorString)(int) { return "ERROR_COMPILATION"; }
EXPORT int NAME(nvrtcCreateProgram, hiprtcCreateProgram)(void** program, const char* source, const char*, int,
                                                         const char* const*, const char* const*) {
  *program = new std::string(source);
  return 0;
}
EXPORT int NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(void** program) {
  delete static_cast<std::string*>(*program);
  return 0;
}
EXPORT int NAME(nvrtcCompileProgram, hiprtcCompileProgram)(void* program, int, const char* const*) {
  ++g_compilations;
  return CompileTwin(*static_cast<std::string*>(program)) ? 0 : kFailed;
}
EXPORT int NAME(nvrtcGetProgramLogSize, hiprtcGetProgramLogSize)(void*, size_t* bytes) { return *bytes = 0, 0; }
EXPORT int NAME(nvrtcGetProgramLog, hiprtcGetProgramLog)(void*, char*) { return 0; }
EXPORT int NAME(nvrtcGetCUBINSize, hiprtcGetCodeSize)(void*, size_t* bytes) { return *bytes = sizeof(kImage), 0; }
EXPORT int NAME(nvrtcGetCUBIN, hiprtcGetCode)(void*, char* image) {
  std::memcpy(image, kImage, sizeof(kImage));
  return 0;
}

#ifndef MGE_EMULATING_HIPRTC
EXPORT int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
EXPORT int nvrtcGetSupportedArchs(int* archs) { return archs[0] = 90, 0; }
EXPORT int nvrtcGetPTXSize(void*, size_t*) { return kFailed; }
EXPORT int nvrtcGetPTX(void*, char*) { return kFailed; }
#endif
