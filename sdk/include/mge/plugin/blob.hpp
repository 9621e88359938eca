// SPDX-License-Identifier: Apache-2.0
// Blobs: compiled kernels and other data that take long to create, kept by the host for later processes of this user.
//
//   std::string blob;
//   if (!mge::LoadBlob(key, &blob)) {
//     blob = Compile(...);
//     mge::StoreBlob(key, blob);
//   }
//
// The key contains everything that the blob depends on: the source, the options, the device, the version of the driver. The
// host removes damaged blobs and limits the size of the cache, so a blob that was stored may be gone.
#pragma once

#include <string>
#include <string_view>

#include "mge/plugin/error.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Copies the blob of a key. Returns false if there is none, or no memory for it. [any]
inline bool LoadBlob(std::string_view key, std::string* out) {
  const mge_host* host = Host();
  if (!host || !Covers(host, &mge_host::blob_load) || !host->blob_load) return false;
  struct Copy {
    std::string* out;
    bool done = false;
  } copy{out};
  mge_code code = host->blob_load(host->self, key.data(), key.size(), &copy, [](void* to, const void* data, uint64_t bytes) {
    auto& c = *static_cast<Copy*>(to);
    c.done = WithoutExceptions(nullptr, [&]() -> mge_code {
               c.out->assign(static_cast<const char*>(data), static_cast<size_t>(bytes));
               return MGE_OK;
             }) == MGE_OK;
  });
  return code == MGE_OK && copy.done;
}

// Replaces the blob of a key. Returns whether it was stored; if not, the backend works without it. [any]
inline bool StoreBlob(std::string_view key, std::string_view blob) {
  const mge_host* host = Host();
  if (!host || !Covers(host, &mge_host::blob_store) || !host->blob_store) return false;
  return host->blob_store(host->self, key.data(), key.size(), blob.data(), blob.size()) == MGE_OK;
}

}  // namespace MGE_HIDDEN
