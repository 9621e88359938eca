// SPDX-License-Identifier: Apache-2.0
// The common part of NVRTC and hiprtc: the library, opened at the first call, and the sequence of its functions. Their names
// differ, not their parameters.
#pragma once

#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "plugins/gpu/runtime/compiler.h"
#include "plugins/gpu/runtime/driver.h"
#include "plugins/gpu/runtime/vendor_library.h"

namespace mge::gpu {

// F(member, NVRTC's function, hiprtc's function, parameters): handles of programs are pointers, codes are int.
#define GPU_COMPILER_FUNCTIONS(F)                                                                               \
  F(version, nvrtcVersion, hiprtcVersion, (int* major, int* minor))                                             \
  F(create, nvrtcCreateProgram, hiprtcCreateProgram,                                                            \
    (void** program, const char* source, const char* name, int headers, const char* const* texts,               \
     const char* const* names))                                                                                 \
  F(destroy, nvrtcDestroyProgram, hiprtcDestroyProgram, (void** program))                                       \
  F(compile, nvrtcCompileProgram, hiprtcCompileProgram, (void* program, int count, const char* const* options)) \
  F(log_size, nvrtcGetProgramLogSize, hiprtcGetProgramLogSize, (void* program, size_t* bytes))                  \
  F(log, nvrtcGetProgramLog, hiprtcGetProgramLog, (void* program, char* log))                                   \
  F(code_size, nvrtcGetCUBINSize, hiprtcGetCodeSize, (void* program, size_t* bytes))                            \
  F(code, nvrtcGetCUBIN, hiprtcGetCode, (void* program, char* code))

// The facts of one vendor's compiler.
struct CompilerFacts {
  const char* name;  // in settings
  LibraryFacts library;
  bool is_hip;                           // which functions the library has
  std::span<const char* const> options;  // of every compilation
  std::span<const SourceFile> files;     // replace the headers that kernels include and the compiler lacks
  bool one_at_a_time = false;            // whether the library compiles in one thread only
};

// Thread-safe. Functions are [any].
class RunTimeCompiler : public Compiler {
 public:
  explicit RunTimeCompiler(const CompilerFacts& facts) : facts_(facts), library_(facts.library) {}
  const char* Name() const final { return facts_.name; }
  void Restart() final;
  Result Open(const Architecture& architecture, std::string* identity) final;
  Result Compile(const std::string& source, const Architecture& architecture, std::string* image) final;

 protected:
  struct Functions {
#define GPU_COMPILER_MEMBER(member, cuda, hip, parameters) DriverFunctionOf<int parameters>::type member;
    GPU_COMPILER_FUNCTIONS(GPU_COMPILER_MEMBER)
#undef GPU_COMPILER_MEMBER
    const char* (*status_name)(int status) = nullptr;
  };
  // The code to generate.
  struct Target {
    std::string option;         // "-arch=sm_90"; "": that of the current device
    bool intermediate = false;  // PTX in place of machine code
  };
  // Checks the version and loads further functions. Called once.
  virtual Result Start(int major) = 0;
  // Fails with MGE_UNAVAILABLE if the compiler does not support the device.
  virtual Result TargetOf(const Architecture& architecture, Target* out) const = 0;
  // Writes the image of a compiled program.
  virtual Result ImageOf(void* program, const Target& target, std::string* image) const;

  // Calls a function of the library. Fails with its name and the library's name of the code.
  template <typename... Parameters, typename... Arguments>
  Result Call(const DriverFunction<Parameters...>& function, Arguments... arguments) const {
    return ResultOf(function.call(arguments...), function.name);
  }
  // Reads bytes whose number the library returns first.
  Result Read(void* program, const DriverFunction<void*, size_t*>& size, const DriverFunction<void*, char*>& data,
              std::string* out) const;
  // Finds a function. Fails with MGE_UNAVAILABLE if the library lacks it.
  template <typename... Parameters>
  Result Find(const char* name, DriverFunction<Parameters...>* out) const {
    out->name = name;
    return library_.Find(name, &out->call);
  }
  const VendorLibrary& library() const { return library_; }
  const std::string& version() const { return version_; }

 private:
  Result Load();
  Result ResultOf(int status, const char* function) const;

  const CompilerFacts& facts_;
  VendorLibrary library_;
  Functions f_;
  std::mutex mutex_;
  std::mutex compiling_;  // if one_at_a_time
  bool tried_ = false;
  Result result_;
  std::string version_;  // "13.0"
};

}  // namespace mge::gpu
