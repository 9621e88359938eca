// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/host_services.h"

#include <time.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "core/base/errors.h"
#include "core/base/lines.h"
#include "core/plugin/memory/budget.h"
#include "core/plugin/memory/ready_made.h"
#include "fmt/format.h"

namespace mge {
namespace {

constexpr uint64_t kMaxMessage = 4096;

mge_code FailSlot(void*, mge_error* error, mge_code code, const char* text, uint64_t size) {
  if (!error) return code;
  error->code = code;
  try {
    error->text.assign(text ? text : "", text ? std::min(size, kMaxMessage) : 0);
  } catch (const std::bad_alloc&) {
    error->text.clear();
  }
  return code;
}

uint64_t Clock(void*) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Bytes BytesAt(const void* data, uint64_t bytes) { return {static_cast<const std::byte*>(data), static_cast<size_t>(bytes)}; }

std::string_view View(const mge_text& text) { return {text.data ? text.data : "", text.data ? text.size : 0}; }

// Calls f() and returns its code, or MGE_RESOURCE_EXHAUSTED if it throws std::bad_alloc.
template <typename F>
mge_code WithoutBadAlloc(F&& f) {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    return MGE_RESOURCE_EXHAUSTED;
  }
}

// Returns the contract's code for a status of the host.
mge_code CodeOf(const absl::Status& status) {
  const int id = status.ok() ? 0 : ErrorId(status);
  if (IsOverBudget(status)) return MGE_OVER_BUDGET;
  if (id == errors::kGrowthRequired.id) return MGE_GROWTH_REQUIRED;
  return static_cast<mge_code>(status.code());
}

}  // namespace

HostServices::HostServices(std::string backend, ComputeFunctions compute)
    : backend_(std::move(backend)), compute_(std::move(compute)) {
  table_ = {};
  table_.struct_size = sizeof(table_);
  table_.abi_minor = MGE_ABI_MINOR;
  table_.self = this;
  table_.fail = FailSlot;
  table_.log = [](void* self, int32_t severity, const char* text, uint64_t size) {
    try {
      if (text) Of(self).Log(severity, {text, std::min(size, kMaxMessage)});
    } catch (const std::bad_alloc&) {  // the message is lost; an exception must not pass the backend's functions
    }
  };
  table_.parallel_for = [](void* self, uint64_t chunks, void (*body)(void*, uint64_t), void* context) {
    const ComputeFunctions& compute = Of(self).compute_;
    if (compute.parallel_for) return compute.parallel_for(compute.self, chunks, body, context);
    for (uint64_t i = 0; i < chunks; ++i) body(context, i);
  };
  table_.thread_count = [](void* self) -> uint32_t {
    const ComputeFunctions& compute = Of(self).compute_;
    return compute.thread_count ? compute.thread_count(compute.self) : 1;
  };
  table_.clock_ns = Clock;
  table_.setting = [](void* self, uint32_t index, mge_text* out) -> mge_code {
    const auto& values = Of(self).settings_;
    if (index >= values.size()) return MGE_OUT_OF_RANGE;
    const std::string& value = *values[index].load(std::memory_order_acquire);
    *out = {value.data(), value.size()};
    return MGE_OK;
  };
  table_.core_setting = [](void* self, const mge_text* key, mge_text* out) -> mge_code {
    if (!key || !out) return MGE_INVALID_ARGUMENT;
    return WithoutBadAlloc([&] { return static_cast<HostServices*>(self)->CoreSetting(View(*key), out); });
  };
  table_.blob_load = [](void* self, const void* key, uint64_t key_bytes, void* context,
                        void (*found)(void*, const void*, uint64_t)) -> mge_code {
    if (!key || key_bytes == 0 || !found) return MGE_INVALID_ARGUMENT;
    std::optional<std::string> data;
    const mge_code code = WithoutBadAlloc([&] {
      const auto& blobs = Of(self).blobs_;
      if (blobs) data = blobs->Load(BytesAt(key, key_bytes));
      return data ? MGE_OK : MGE_NOT_FOUND;
    });
    if (code == MGE_OK) found(context, data->data(), data->size());
    return code;
  };
  table_.blob_store = [](void* self, const void* key, uint64_t key_bytes, const void* data, uint64_t bytes) -> mge_code {
    if (!key || key_bytes == 0 || (!data && bytes > 0)) return MGE_INVALID_ARGUMENT;
    return WithoutBadAlloc(
        [&] { return static_cast<HostServices*>(self)->StoreBlob(BytesAt(key, key_bytes), BytesAt(data, bytes)); });
  };
  log_level_ = {sizeof(log_level_), 1, this, [](void* self) { return static_cast<int32_t>(Of(self).LeastLogged()); }};
  table_.extension = [](void* self, const char* name, uint32_t min_version) -> const void* {
    const bool known = name && name == std::string_view(MGE_LOG_LEVEL_EXTENSION) && min_version <= 1;
    return known ? &Of(self).log_level_ : nullptr;
  };
  table_.allocate = [](void* self, uint64_t bytes, uint64_t alignment) -> void* {
    uint64_t least = std::max<uint64_t>(alignment, alignof(std::max_align_t));
    if (!std::has_single_bit(least) || bytes > UINT64_MAX - least) return nullptr;
    void* memory = std::aligned_alloc(least, (std::max<uint64_t>(bytes, 1) + least - 1) / least * least);
    if (memory) {
      Of(self).allocations_.fetch_add(1, std::memory_order_relaxed);
      try {
        Of(self).LogAllocation(bytes, alignment, memory);
      } catch (const std::bad_alloc&) {  // the message is lost
      }
    }
    return memory;
  };
  table_.release = [](void* self, void* memory) {
    if (!memory) return;
    Of(self).allocations_.fetch_sub(1, std::memory_order_relaxed);
    std::free(memory);
  };
  table_.ready_made = ReadyMade();
}

HostServices::~HostServices() { Retire(); }

void HostServices::SetSettings(std::vector<std::string> values) {
  settings_ = std::vector<std::atomic<const std::string*>>(values.size());
  for (size_t i = 0; i < values.size(); ++i) SetSetting(i, std::move(values[i]));
}

void HostServices::SetSetting(size_t index, std::string value) {
  std::lock_guard lock(setting_mutex_);
  settings_[index].store(&*setting_texts_.insert(std::move(value)).first, std::memory_order_release);
}

std::vector<std::string> HostServices::settings() const {
  std::vector<std::string> values;
  for (const auto& value : settings_) values.push_back(*value.load(std::memory_order_acquire));
  return values;
}

mge_code HostServices::CoreSetting(std::string_view key, mge_text* out) {
  std::optional<std::string> value;
  {
    std::lock_guard lock(mutex_);  // Detach() waits, so the runtime still exists
    if (!users_.empty() && users_.front().core) value = users_.front().core(key);
  }
  if (!value) return MGE_NOT_FOUND;
  std::lock_guard lock(setting_mutex_);
  const std::string& kept = *setting_texts_.insert(*std::move(value)).first;
  *out = {kept.data(), kept.size()};
  return MGE_OK;
}

mge_code HostServices::StoreBlob(Bytes key, Bytes data) {
  if (!blobs_) return MGE_UNAVAILABLE;
  const absl::Status stored = blobs_->Store(key, data);
  if (stored.ok()) return MGE_OK;
  if (ErrorId(stored) == errors::kLimit.id) return MGE_RESOURCE_EXHAUSTED;
  if (!blobs_failed_.exchange(true)) {
    const ErrorParts parts = PartsOf(stored);
    std::lock_guard lock(mutex_);
    if (!users_.empty()) {
      users_.front().logger.Warning("backend {}: {}: {}. To keep its results for the next process: {}", backend_,
                                    ErrorTitle(stored), parts.what, parts.fix);
    }
  }
  return MGE_UNAVAILABLE;
}

void HostServices::Attach(const void* user, const Logger& logger, CoreSettings core) {
  std::lock_guard lock(mutex_);
  users_.push_back({user, logger, std::move(core)});
}

void HostServices::Detach(const void* user) {
  std::lock_guard lock(mutex_);
  std::erase_if(users_, [&](const User& entry) {
    if (entry.id != user) return false;
    last_logger_ = entry.logger;
    return true;
  });
}

void HostServices::Retire() {
  compute_ = {};
  std::lock_guard lock(mutex_);
  users_.clear();
  if (int64_t leaked = allocations(); leaked > 0 && last_logger_) {
    last_logger_->Warning("backend {}: it stopped without releasing {} block{} of host memory", backend_, leaked,
                          leaked == 1 ? "" : "s");
  }
  last_logger_.reset();
}

LogLevel HostServices::LeastLogged() const {
  std::lock_guard lock(mutex_);
  return users_.empty() ? LogLevel::kSilent : users_.front().logger.level();
}

void HostServices::LogAllocation(uint64_t bytes, uint64_t alignment, const void* address) const {
  std::lock_guard lock(mutex_);
  const auto user = std::find_if(users_.begin(), users_.end(),
                                 [](const User& u) { return u.core && u.core("debug.external_allocations") == "1"; });
  if (user == users_.end()) return;
  user->logger.Warning("backend {}: allocates {} bytes of host memory, alignment {}, at {}", backend_, bytes, alignment,
                       address);
}

void HostServices::Log(int32_t severity, std::string_view text) const {
  std::lock_guard lock(mutex_);
  if (users_.empty()) return;
  LogLevel level = static_cast<LogLevel>(std::clamp<int32_t>(severity, MGE_LOG_DEBUG, MGE_LOG_ERROR));
  for (std::string_view line : LinesOf(text)) users_.front().logger.Log(level, "backend {}: {}", backend_, line);
}

std::string CodeName(mge_code code) {
  switch (code) {
    case MGE_OK: return "MGE_OK";
    case MGE_CANCELLED: return "MGE_CANCELLED";
    case MGE_INVALID_ARGUMENT: return "MGE_INVALID_ARGUMENT";
    case MGE_DEADLINE_EXCEEDED: return "MGE_DEADLINE_EXCEEDED";
    case MGE_NOT_FOUND: return "MGE_NOT_FOUND";
    case MGE_RESOURCE_EXHAUSTED: return "MGE_RESOURCE_EXHAUSTED";
    case MGE_FAILED_PRECONDITION: return "MGE_FAILED_PRECONDITION";
    case MGE_ABORTED: return "MGE_ABORTED";
    case MGE_OUT_OF_RANGE: return "MGE_OUT_OF_RANGE";
    case MGE_UNIMPLEMENTED: return "MGE_UNIMPLEMENTED";
    case MGE_INTERNAL: return "MGE_INTERNAL";
    case MGE_UNAVAILABLE: return "MGE_UNAVAILABLE";
    case MGE_DATA_LOSS: return "MGE_DATA_LOSS";
    case MGE_DEVICE_LOST: return "MGE_DEVICE_LOST";
    case MGE_FORKED: return "MGE_FORKED";
    case MGE_OVER_BUDGET: return "MGE_OVER_BUDGET";
    case MGE_GROWTH_REQUIRED: return "MGE_GROWTH_REQUIRED";
    case MGE_NEEDS_WAIT: return "MGE_NEEDS_WAIT";
    default: return fmt::format("{}, which is not an MGE code", code);
  }
}

std::string TextOfBackend(mge_code code, const mge_error& error) {
  if (error.text.empty()) return fmt::format("the backend gave no reason ({})", CodeName(code));
  return OneLine(error.text);
}

mge_code CodeForBackend(const absl::Status& status, mge_error* error) noexcept {
  const mge_code code = CodeOf(status);
  if (!status.ok() && error) {
    error->origin = status;
    FailSlot(nullptr, error, code, status.message().data(), status.message().size());
  }
  return code;
}

absl::Status StatusOfBackend(mge_code code, const mge_error& error, std::string_view what) {
  if (code == MGE_OK) return absl::OkStatus();
  if (!error.origin.ok() && code == CodeOf(error.origin)) return error.origin;
  auto fail = [&](const ErrorRow& row, std::string fix = {}) {
    return Fail(row, fmt::format("{} failed", what), {.what = TextOfBackend(code, error), .fix = std::move(fix)});
  };
  switch (code) {
    case MGE_DEVICE_LOST:
      return fail(errors::kDeviceLost,
                  "create a new session: it opens the device again if the backend can do that; else restart the "
                  "process; other devices keep working");
    case MGE_FORKED: return fail(errors::kForked, "create the runtime in the child process");
    case MGE_RESOURCE_EXHAUSTED: return fail(errors::kOutOfMemory);
    case MGE_OVER_BUDGET: return fail(errors::kOverBudget);
    case MGE_GROWTH_REQUIRED: return fail(errors::kGrowthRequired);
    case MGE_UNAVAILABLE: return fail(errors::kDeviceUnusable);
    case MGE_UNIMPLEMENTED: return fail(errors::kUnsupportedFeature);
    case MGE_CANCELLED: return fail(errors::kCancelled);
    case MGE_DEADLINE_EXCEEDED: return fail(errors::kTimeout);
    default: return fail(errors::kKernelFailed);
  }
}

}  // namespace mge
