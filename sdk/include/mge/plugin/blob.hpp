// SPDX-License-Identifier: Apache-2.0
// The host's cache of blobs, for results that take long to compute: compiled kernels, vendor plans.
//
//   std::string binary;
//   if (!mge::LoadBlob(key, &binary)) {
//     binary = Compile(source);
//     mge::StoreBlob(key, binary);   // the next process finds it
//   }
//
// The cache belongs to one user, one machine and one build of the backend, and is limited in size (cache.bytes). The
// host may drop any blob at any time, and may keep none. The key must contain everything else that the blob depends on: the
// source, the options, the device and its driver.
#pragma once

#include <string>
#include <string_view>

#include "mge/plugin/error.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

// Copies the blob with this key to `data`. Returns false if there is none, for example because its file is damaged.
inline bool LoadBlob(std::string_view key, std::string* data) {
  const mge_host* host = Host();
  if (!host || !Covers(host, &mge_host::blob_load)) return false;
  struct Copy {
    std::string* data;
    bool whole;
  } copy = {data, false};
  auto found = [](void* context, const void* bytes, uint64_t size) {
    auto& to = *static_cast<Copy*>(context);
    to.whole = WithoutExceptions(nullptr, [&]() -> mge_code {
                 to.data->assign(static_cast<const char*>(bytes), size);
                 return MGE_OK;
               }) == MGE_OK;
  };
  return host->blob_load(host->self, key.data(), key.size(), &copy, found) == MGE_OK && copy.whole;
}

// Stores a blob. Returns whether the host has stored it. A failure needs no reaction: the blob is computed again next time.
inline bool StoreBlob(std::string_view key, std::string_view data) {
  const mge_host* host = Host();
  return host && Covers(host, &mge_host::blob_store) &&
         host->blob_store(host->self, key.data(), key.size(), data.data(), data.size()) == MGE_OK;
}

}  // namespace MGE_HIDDEN
