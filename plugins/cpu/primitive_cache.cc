// SPDX-License-Identifier: Apache-2.0
#include "primitive_cache.h"

#include <algorithm>
#include <climits>

#include "onednn_library.h"
#include "settings.h"

namespace mge::cpu::onednn {

Result PrimitiveCache::Find(const PrimitiveKey& key, const std::function<Result(PrimitivePtr*)>& create, PrimitivePtr* out) {
  const int64_t setting = ToInt(SettingOf(kOnednnCacheSetting));
  const uint64_t most = setting < 0 ? UINT64_MAX : static_cast<uint64_t>(setting);
  std::list<Entry> dropped;  // destroyed after the lock is released
  {
    std::lock_guard lock(mutex_);
    LimitLibrary(setting);
    Shrink(most, dropped);
    if (auto at = index_.find(key.text()); at != index_.end()) {
      entries_.splice(entries_.begin(), entries_, at->second);
      *out = entries_.front().second;
      return {};
    }
  }
  if (Result r = create(out); !r.ok()) return r;
  std::lock_guard lock(mutex_);
  if (most == 0 || index_.contains(key.text())) return {};
  entries_.emplace_front(key.text(), *out);
  index_.emplace(key.text(), entries_.begin());
  Shrink(most, dropped);
  return {};
}

void PrimitiveCache::Shrink(uint64_t most, std::list<Entry>& dropped) {
  while (entries_.size() > most) {
    index_.erase(entries_.back().first);
    dropped.splice(dropped.begin(), entries_, std::prev(entries_.end()));
  }
}

void PrimitiveCache::LimitLibrary(int64_t most) {
  if (most == library_most_) return;
  library_most_ = most;
  Lib().dnnl_set_primitive_cache_capacity(most < 0 ? INT_MAX : static_cast<int>(std::min<int64_t>(most, INT_MAX)));
}

}  // namespace mge::cpu::onednn
