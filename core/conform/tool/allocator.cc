// SPDX-License-Identifier: Apache-2.0
// Replaces malloc in the program that links this file, and in all libraries that the program opens; the library of C++
// implements operator new by it. Allocations fail if the kit says so (backend_call.h), and objects are counted. A sanitizer
// replaces malloc itself; then this file is empty, and no allocation is seen.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#include <cerrno>
#include <cstddef>

#include "core/conform/tool/entry.h"

#define MGE_CALLER __builtin_return_address(0)

namespace {

void* Counted(void* object) noexcept {
  if (object) mge_private_count_object(1);
  return object;
}

// Returns whether a malloc function must fail, and sets errno if so.
bool Refuses(const void* caller) noexcept {
  if (!mge_private_allocation_fails(caller)) return false;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

// The functions of glibc, under the names that it offers to replacements of malloc.
void* __libc_malloc(size_t) noexcept;
void* __libc_calloc(size_t, size_t) noexcept;
void* __libc_realloc(void*, size_t) noexcept;
void* __libc_memalign(size_t, size_t) noexcept;
void __libc_free(void*) noexcept;

void* malloc(size_t bytes) noexcept { return Refuses(MGE_CALLER) ? nullptr : Counted(__libc_malloc(bytes)); }
void* calloc(size_t n, size_t bytes) noexcept { return Refuses(MGE_CALLER) ? nullptr : Counted(__libc_calloc(n, bytes)); }
void* realloc(void* object, size_t bytes) noexcept {
  if (Refuses(MGE_CALLER)) return nullptr;
  void* moved = __libc_realloc(object, bytes);
  if (!object) return Counted(moved);
  if (!moved && bytes == 0) mge_private_count_object(-1);
  return moved;
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  return Refuses(MGE_CALLER) ? nullptr : Counted(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return Refuses(MGE_CALLER) ? nullptr : Counted(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** out, size_t alignment, size_t bytes) noexcept {
  if (alignment % sizeof(void*) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
  void* object = mge_private_allocation_fails(MGE_CALLER) ? nullptr : Counted(__libc_memalign(alignment, bytes));
  if (!object) return ENOMEM;
  *out = object;
  return 0;
}
void free(void* object) noexcept {
  if (object) mge_private_count_object(-1);
  __libc_free(object);
}

}  // extern "C"
#endif
