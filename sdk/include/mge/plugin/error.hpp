// SPDX-License-Identifier: Apache-2.0
// Texts, tables and results. Reports errors to the host and converts exceptions to errors.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "mge/plugin.h"
#include "mge/plugin/structs.hpp"
#include "mge/plugin/visibility.hpp"

namespace mge MGE_HIDDEN {

inline constexpr mge_text Text(std::string_view s) { return {s.data(), s.size()}; }
inline constexpr std::string_view View(const mge_text& t) { return {t.data, static_cast<size_t>(t.size)}; }

// Creates a table with its identity set and calls `fill` to complete it. Slots added by later headers stay empty.
//   constexpr auto kDevice = mge::Table<mge_device_api>([](auto& t) { t.enumerate = Enumerate; ... });
template <typename T, typename F>
constexpr T Table(F fill) {
  T table = {};
  table.struct_size = sizeof(T);
  if constexpr (requires { table.header_hash; }) {
    table.abi_major = MGE_ABI_MAJOR;
    table.abi_minor = MGE_ABI_MINOR;
    table.header_hash = MGE_ABI_HASH;
  } else {
    table.minor = MGE_ABI_MINOR;
  }
  fill(table);
  return table;
}

// A code and, unless it is MGE_OK, a sentence. If the sentence is empty, the text is already in the call's mge_error.
class [[nodiscard]] Result {
 public:
  Result() = default;
  Result(mge_code code, std::string text) : code_(code), text_(std::move(text)) {}
  bool ok() const { return code_ == MGE_OK; }
  mge_code code() const { return code_; }
  // Returns whether memory ran out, on the device or in its budget. The caller then releases the memory that it keeps for
  // later.
  bool out_of_memory() const { return code_ == MGE_RESOURCE_EXHAUSTED || code_ == MGE_OVER_BUDGET; }
  const std::string& text() const { return text_; }

 private:
  mge_code code_ = MGE_OK;
  std::string text_;
};

// Returns the host table. Set by start(), valid until stop(). One per backend library.
inline const mge_host*& Host() {
  static const mge_host* host = nullptr;
  return host;
}

// Returns the host's ready-made parts, or nullptr if the host is too old to have them.
inline const mge_ready_made* ReadyMade() {
  const mge_host* host = Host();
  return host && Covers(host, &mge_host::ready_made) ? host->ready_made : nullptr;
}

inline mge_code Report(mge_error* error, mge_code code, std::string_view text) {
  const mge_host* host = Host();
  return host ? host->fail(host->self, error, code, text.data(), text.size()) : code;
}
inline mge_code Report(mge_error* error, const Result& r) {
  return r.text().empty() ? r.code() : Report(error, r.code(), r.text());
}

// Writes a line to the host's log.
inline void Log(int32_t severity, std::string_view text) {
  if (const mge_host* host = Host()) host->log(host->self, severity, text.data(), text.size());
}

// The exception that ParallelFor throws when the run should stop.
struct RunStopped : std::exception {
  const char* what() const noexcept override { return "the run was stopped"; }
};

namespace internal {

// Converts between the backend's objects and the opaque handles that the host uses.
template <typename Handle, typename T>
Handle* HandleOf(T* object) {
  return reinterpret_cast<Handle*>(object);
}
template <typename T, typename Handle>
T& As(Handle* handle) {
  return *reinterpret_cast<T*>(handle);
}

template <typename F>
mge_code Answer(mge_error* error, F& f) {
  if constexpr (std::is_same_v<decltype(f()), Result>) {
    return Report(error, f());
  } else {
    return f();
  }
}

}  // namespace internal

// Calls f, which returns a code or a Result, and converts any exception to an error. No exception crosses the boundary.
template <typename F>
mge_code WithoutExceptions(mge_error* error, F&& f) noexcept {
#if defined(__cpp_exceptions)
  try {
    return internal::Answer(error, f);
  } catch (const std::bad_alloc&) {
    return Report(error, MGE_RESOURCE_EXHAUSTED, "the backend has no host memory left");
  } catch (const RunStopped& e) {
    return Report(error, MGE_CANCELLED, e.what());
  } catch (const std::system_error& e) {  // for example, a thread could not be started
    const bool resource = e.code() == std::errc::resource_unavailable_try_again || e.code() == std::errc::not_enough_memory;
    return Report(error, resource ? MGE_RESOURCE_EXHAUSTED : MGE_INTERNAL, e.what());
  } catch (const std::exception& e) {
    return Report(error, MGE_INTERNAL, e.what());
  } catch (...) {
    return Report(error, MGE_INTERNAL, "the backend threw an exception of unknown type");
  }
#else
  return internal::Answer(error, f);
#endif
}

// Calls f for a function that cannot fail in the contract. Logs an exception and then returns an empty result.
template <typename F>
auto Quietly(F&& f) noexcept -> decltype(f()) {
#if defined(__cpp_exceptions)
  try {
    return f();
  } catch (const std::exception& e) {
    Log(MGE_LOG_ERROR, e.what());
  } catch (...) {
    Log(MGE_LOG_ERROR, "the backend threw an exception of unknown type");
  }
  if constexpr (!std::is_void_v<decltype(f())>) return {};
#else
  return f();
#endif
}

namespace internal {

// Calls f(T*), like WithoutExceptions, and copies the struct to `out` if f succeeds.
template <typename T, typename F>
mge_code FillOut(mge_error* error, T* out, F&& f) noexcept {
  return WithoutExceptions(error, [&]() -> Result {
    T whole = {};
    whole.struct_size = sizeof(T);
    Result r = f(&whole);
    if (r.ok()) Fill(out, whole);
    return r;
  });
}

// Creates a T as a handle for the host: calls its constructor, and Init() if it has one. If Init() fails, destroys the T.
template <typename T, typename Handle, typename... Args>
mge_code Make(Handle** out, mge_error* error, Args&&... args) noexcept {
  return WithoutExceptions(error, [&]() -> Result {
    auto made = std::make_unique<T>(std::forward<Args>(args)...);
    if constexpr (requires { &T::Init; }) {
      if (Result r = made->Init(); !r.ok()) return r;
    }
    *out = HandleOf<Handle>(made.release());
    return {};
  });
}

template <typename T, typename Handle>
void Unmake(Handle* handle) noexcept {
  delete &As<T>(handle);
}

}  // namespace internal

}  // namespace MGE_HIDDEN
