// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/run_time_compiler.h"

namespace mge::gpu {

Result RunTimeCompiler::ResultOf(int status, const char* function) const {
  if (status == 0) return {};
  return {MGE_UNAVAILABLE, std::string(function) + " failed with " + f_.status_name(status)};
}

Result RunTimeCompiler::Load() {
  if (Result r = library_.Open(); !r.ok()) return r;
#define GPU_COMPILER_FIND(member, cuda, hip, parameters) \
  if (Result r = Find(facts_.is_hip ? #hip : #cuda, &f_.member); !r.ok()) return r;
  GPU_COMPILER_FUNCTIONS(GPU_COMPILER_FIND)
#undef GPU_COMPILER_FIND
  if (Result r = library_.Find(facts_.is_hip ? "hiprtcGetErrorString" : "nvrtcGetErrorString", &f_.status_name); !r.ok()) {
    return r;
  }
  int major = 0, minor = 0;
  if (Result r = Call(f_.version, &major, &minor); !r.ok()) return r;
  version_ = std::to_string(major) + "." + std::to_string(minor);
  return Start(major);
}

void RunTimeCompiler::Restart() {
  std::lock_guard lock(mutex_);
  tried_ = false;
}

Result RunTimeCompiler::Open(const Architecture& architecture, std::string* identity) {
  std::lock_guard lock(mutex_);
  if (!tried_) {
    tried_ = true;
    result_ = Load();
  }
  if (!result_.ok()) return result_;
  Target target;
  if (Result r = TargetOf(architecture, &target); !r.ok()) return r;
  *identity = std::string(facts_.library.name) + " " + version_ + " " + target.option;
  for (const char* option : facts_.options) *identity += std::string(" ") + option;
  for (const SourceFile& file : facts_.files) *identity += std::string("\n") + file.name + "\n" + file.text;
  return {};
}

Result RunTimeCompiler::Compile(const std::string& source, const Architecture& architecture, std::string* image) {
  Target target;
  if (Result r = TargetOf(architecture, &target); !r.ok()) return r;
  std::vector<const char*> names, texts, options(facts_.options.begin(), facts_.options.end());
  for (const auto& files : {facts_.files, kKernelFiles}) {
    for (const SourceFile& file : files) {
      names.push_back(file.name);
      texts.push_back(file.text);
    }
  }
  if (!target.option.empty()) options.push_back(target.option.c_str());
  std::unique_lock lock(compiling_, std::defer_lock);
  if (facts_.one_at_a_time) lock.lock();
  void* program = nullptr;
  const int files = static_cast<int>(names.size());
  if (Result r = Call(f_.create, &program, source.c_str(), "chain.cu", files, texts.data(), names.data()); !r.ok()) return r;
  struct Destroy {
    ~Destroy() { functions.destroy.call(&program); }
    const Functions& functions;
    void*& program;
  } const destroy{f_, program};
  if (Result r = Call(f_.compile, program, static_cast<int>(options.size()), options.data()); !r.ok()) {
    std::string log;
    if (!Read(program, f_.log_size, f_.log, &log).ok()) log.clear();
    return {MGE_UNAVAILABLE, r.text() + (log.empty() ? "" : ": " + std::string(log.c_str()))};
  }
  return ImageOf(program, target, image);
}

Result RunTimeCompiler::ImageOf(void* program, const Target&, std::string* image) const {
  return Read(program, f_.code_size, f_.code, image);
}

Result RunTimeCompiler::Read(void* program, const DriverFunction<void*, size_t*>& size,
                             const DriverFunction<void*, char*>& data, std::string* out) const {
  size_t bytes = 0;
  if (Result r = Call(size, program, &bytes); !r.ok()) return r;
  out->assign(bytes, '\0');
  return bytes == 0 ? Result{} : Call(data, program, out->data());
}

}  // namespace mge::gpu
