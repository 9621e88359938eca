// SPDX-License-Identifier: Apache-2.0
// A library with the interface of NVRTC or, with MGE_EMULATING_HIPRTC, of hiprtc. It compiles kernels for this machine, and
// adds them to the driver in software as emulated twins. Its images contain only a name. If the true library is installed,
// each source is also compiled by it, with the headers and options of the backend. A source that it refuses ends the process.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/plugins/gpu/run_time_compiler/twins.h"

#define EXPORT extern "C" __attribute__((visibility("default")))
#ifdef MGE_EMULATING_HIPRTC
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif

namespace {

constexpr char kDriver[] = MGE_BINARY_DIR "/lib/mge/test/" NAME("libcuda.so.1", "libamdhip64.so.5");
constexpr char kTrueCompiler[] = NAME("/usr/local/cuda/lib64/libnvrtc.so.13", "/usr/lib/x86_64-linux-gnu/libamdhip64.so.5");
constexpr int kFailed = 6;  // compilation
constexpr char kImage[] = "\177ELF in software";

struct Program {
  std::string source;
  std::vector<std::string> texts, names;  // of its headers
};

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

[[noreturn]] void Refuse(const Program& program, const std::string& why) {
  std::fprintf(stderr, "%s: %s\n%s", mge::KernelNameIn(program.source).c_str(), why.c_str(), program.source.c_str());
  std::abort();
}

// Opens a library with twins, and adds them to the driver. Returns their number; 0 if that fails.
uint64_t AddTwins(const std::string& file) {
  void* twins = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  void* driver = dlopen(kDriver, RTLD_NOW | RTLD_NOLOAD);
  if (!twins || !driver) return 0;
  uint64_t count = 0;
  auto kernels = reinterpret_cast<const void* const* (*)(uint64_t*)>(dlsym(twins, "mge_twin_kernels"))(&count);
  reinterpret_cast<void (*)(const void* const*, uint64_t)>(dlsym(driver, "mge_driver_add_kernels"))(kernels, count);
  std::lock_guard lock(g_mutex);
  g_bytes.push_back(static_cast<const std::atomic<uint64_t>*>(dlsym(twins, "mge_twin_bytes")));
  g_repeated_bytes.push_back(static_cast<const std::atomic<uint64_t>*>(dlsym(twins, "mge_twin_repeated_bytes")));
  return count;
}

bool CompileTwin(const Program& program) {
  char folder[] = "/tmp/mge-twin-XXXXXX";
  if (!mkdtemp(folder)) return false;
  const std::string library = std::string(folder) + "/twin.so";
  const bool added = mge::CompileTwins({program.source}, kDriver, library) && AddTwins(library) > 0;
  std::filesystem::remove_all(folder);
  return added;
}

// Takes the twin of a kernel from a library with many, which is opened once.
void TakeTwin(const Program& program, const std::string& library) {
  static std::set<std::string> opened;  // guarded by the mutex
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  if (opened.insert(library).second && AddTwins(library) == 0) Refuse(program, library + " cannot be opened");
  std::ifstream text(library + ".cc");
  const std::string all(std::istreambuf_iterator<char>(text), {});
  if (all.find(program.source) == std::string::npos) Refuse(program, "it has no twin in " + library);
}

void Collect(const Program& program, const std::string& folder) {
  const std::string file = folder + "/" + mge::KernelNameIn(program.source);
  std::ofstream(file + std::to_string(getpid())) << program.source;  // processes may have the same kernel
  std::filesystem::rename(file + std::to_string(getpid()), file + ".cu");
}

// The true library, which needs no GPU. Empty if it is not installed.
class TrueCompiler {
 public:
  static TrueCompiler& Get() {
    static TrueCompiler compiler;
    return compiler;
  }
  // Compiles a source that this process has not compiled yet.
  void Check(const Program& p, int option_count, const char* const* options) {
    std::lock_guard lock(mutex_);
    if (!library_ || !compiled_.insert(p.source).second) return;
    std::vector<const char*> texts, names;
    for (const std::string& text : p.texts) texts.push_back(text.c_str());
    for (const std::string& name : p.names) names.push_back(name.c_str());
    void* program = nullptr;
    if (create_(&program, p.source.c_str(), "chain.cu", static_cast<int>(names.size()), texts.data(), names.data()) != 0) {
      Refuse(p, std::string(kTrueCompiler) + " creates no program");
    }
    if (compile_(program, option_count, options) != 0) {
      size_t bytes = 0;
      log_size_(program, &bytes);
      std::string log(bytes, ' ');
      log_(program, log.data());
      Refuse(p, std::string(kTrueCompiler) + " refuses it:\n" + log);
    }
    destroy_(&program);
  }
  uint64_t compiled() {
    std::lock_guard lock(mutex_);
    return compiled_.size();
  }

 private:
  TrueCompiler() : library_(dlopen(kTrueCompiler, RTLD_NOW | RTLD_LOCAL)) {
    if (!library_) return;
    Find(NAME("nvrtcCreateProgram", "hiprtcCreateProgram"), &create_);
    Find(NAME("nvrtcCompileProgram", "hiprtcCompileProgram"), &compile_);
    Find(NAME("nvrtcGetProgramLogSize", "hiprtcGetProgramLogSize"), &log_size_);
    Find(NAME("nvrtcGetProgramLog", "hiprtcGetProgramLog"), &log_);
    Find(NAME("nvrtcDestroyProgram", "hiprtcDestroyProgram"), &destroy_);
  }
  template <typename F>
  void Find(const char* name, F** function) {
    *function = reinterpret_cast<F*>(dlsym(library_, name));
  }

  void* library_;
  int (*create_)(void**, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile_)(void*, int, const char* const*) = nullptr;
  int (*log_size_)(void*, size_t*) = nullptr;
  int (*log_)(void*, char*) = nullptr;
  int (*destroy_)(void**) = nullptr;
  std::mutex mutex_;
  std::set<std::string> compiled_;
};

}  // namespace

// Return the number of compilations, of the sources that the true library has compiled, the bytes that all compiled kernels have moved, except those of repeated operands, and
// those of the latter that they have read.
EXPORT uint64_t emulating_compilations() { return g_compilations; }
EXPORT uint64_t emulating_true_compilations() { return TrueCompiler::Get().compiled(); }
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
EXPORT int NAME(nvrtcCreateProgram, hiprtcCreateProgram)(void** program, const char* source, const char*, int headers,
                                                         const char* const* texts, const char* const* names) {
  *program = new Program{source, {texts, texts + headers}, {names, names + headers}};
  return 0;
}
EXPORT int NAME(nvrtcDestroyProgram, hiprtcDestroyProgram)(void** program) {
  delete static_cast<Program*>(*program);
  return 0;
}
EXPORT int NAME(nvrtcCompileProgram, hiprtcCompileProgram)(void* program, int count, const char* const* options) {
  ++g_compilations;
  const Program& p = *static_cast<Program*>(program);
  TrueCompiler::Get().Check(p, count, options);
  if (const char* library = std::getenv(mge::kUnitVariable)) return TakeTwin(p, library), 0;
  if (const char* folder = std::getenv(mge::kCollectVariable)) return Collect(p, folder), 0;
  return CompileTwin(p) ? 0 : kFailed;
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
