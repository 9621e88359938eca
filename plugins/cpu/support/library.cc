// SPDX-License-Identifier: Apache-2.0
#include "support/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstddef>
#include <new>
#include <string_view>
#include <vector>

namespace mge::cpu {

bool IsInstalled(const std::string& name) {
#if defined(__GLIBC__)
  void* self = dlopen(nullptr, RTLD_LAZY);
  if (!self) return false;
  bool found = false;
  Dl_serinfo size = {};
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, &size) == 0) {
    std::vector<std::max_align_t> memory(size.dls_size / sizeof(std::max_align_t) + 1);
    auto* info = new (memory.data()) Dl_serinfo(size);
    if (dlinfo(self, RTLD_DI_SERINFO, info) == 0) {
      const Dl_serpath* paths = info->dls_serpath;
      for (unsigned i = 0; i < info->dls_cnt && !found; ++i) {
        found = access((std::string(paths[i].dls_name) + "/" + name).c_str(), R_OK) == 0;
      }
    }
  }
  dlclose(self);
  return found;
#else
  (void)name;
  return true;  // not known; only the loader can tell
#endif
}

void* OpenLibrary(const std::string& name, std::string* reason) {
  if (void* handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL)) return handle;
  const char* text = dlerror();
  std::string_view why = text ? text : "";
  // The loader reports a lack of memory only in its text.
  for (std::string_view words : {"failed to map segment", "annot allocate memory", "cannot create shared object"}) {
    if (why.find(words) != why.npos) throw std::bad_alloc();
  }
  *reason = why.empty() ? name + " cannot be opened" : std::string(why);
  return nullptr;
}

}  // namespace mge::cpu
