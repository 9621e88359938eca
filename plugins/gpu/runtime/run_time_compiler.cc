// SPDX-License-Identifier: Apache-2.0
#include "plugins/gpu/runtime/run_time_compiler.h"

#include <string_view>

#include "plugins/gpu/runtime/driver.h"

namespace mge::gpu {

Result RunTimeCompiler::Missing(const std::string& why) const {
  return {MGE_UNAVAILABLE, std::string(facts_.name) + " cannot be used: " + why + "; " + facts_.install + ", or set " +
                               std::string(View(facts_.setting->key)) + " to its path"};
}

Result RunTimeCompiler::ResultOf(int status, const char* function) const {
  if (status == 0) return {};
  return {MGE_UNAVAILABLE, std::string(function) + " failed with " + f_.status_name(status)};
}

Result RunTimeCompiler::Load() {
  const std::string key(View(facts_.setting->key)), driver_key(View(TheVendor().driver_setting->key)), name = facts_.name;
  std::string_view path, driver;
  if (Result r = ReadSetting(*facts_.setting, &path); !r.ok()) return r;
  if (Result r = ReadSetting(*TheVendor().driver_setting, &driver); !r.ok()) return r;
  if (path == "off") return {MGE_UNAVAILABLE, name + " is switched off (" + key + "=off)"};
  if (path.empty() && !driver.empty()) {
    return {MGE_UNAVAILABLE, name + " is not used beside another driver (" + driver_key + ")"};
  }
  if (!path.empty() && path[0] != '/') {
    return {MGE_INVALID_ARGUMENT, key + " is '" + std::string(path) + "', which is not an absolute path"};
  }
  std::vector<std::string> names(facts_.libraries.begin(), facts_.libraries.end());
  if (!path.empty()) names.assign(1, std::string(path));
  std::string why, opened;
  void* library = nullptr;
  for (const std::string& candidate : names) {
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    opened = candidate;
    if (library) break;
    const char* error = dlerror();
    if (why.empty()) why = error ? error : candidate;
  }
  if (!library) return Missing(why);
  const char* missing = nullptr;
#define GPU_COMPILER_FIND(member, cuda, hip, parameters) \
  if (const char* symbol = facts_.is_hip ? #hip : #cuda; !Find(library, symbol, &f_.member) && !missing) missing = symbol;
  GPU_COMPILER_FUNCTIONS(GPU_COMPILER_FIND)
#undef GPU_COMPILER_FIND
  const char* const text = facts_.is_hip ? "hiprtcGetErrorString" : "nvrtcGetErrorString";
  f_.status_name = reinterpret_cast<decltype(f_.status_name)>(dlsym(library, text));
  if (!f_.status_name && !missing) missing = text;
  if (missing) return Missing(opened + " has no function " + missing);
  int major = 0, minor = 0;
  if (Result r = Call(f_.version, &major, &minor); !r.ok()) return r;
  version_ = std::to_string(major) + "." + std::to_string(minor);
  return Start(library, opened, major);
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
  *identity = std::string(facts_.name) + " " + version_ + " " + target.option;
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
