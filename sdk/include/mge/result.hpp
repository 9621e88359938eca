// SPDX-License-Identifier: Apache-2.0
// Errors of the C++ API. A function that can fail returns a Status, or a Result if it has a value:
//
//   mge::Result<mge::Session> session = mge::Session::Load(runtime, "model.onnx");
//   if (!session.ok()) return session.status();
//   session->Run(...);
#pragma once

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "mge/mge.h"
#include "mge/namespace.hpp"

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {

// The end of a call: OK, or an error. Copies are cheap.
class [[nodiscard]] Status {
 public:
  Status() = default;  // OK
  // Takes over a status of mge.h; NULL is OK.
  explicit Status(mge_status* status) {
    if (status) status_.reset(status, mge_status_release);
  }
  bool ok() const { return !status_; }
  mge_code code() const { return mge_status_code(status_.get()); }  // MGE_OK, MGE_INVALID_ARGUMENT, ...
  int exit_code() const { return mge_status_exit_code(status_.get()); }
  int id() const { return mge_status_id(status_.get()); }  // 502 for E0502
  std::string_view text() const { return mge_status_text(status_.get()); }
  std::string_view title() const { return mge_status_title(status_.get()); }
  std::string_view what() const { return mge_status_what(status_.get()); }
  std::string_view where() const { return mge_status_where(status_.get()); }
  std::string_view fix() const { return mge_status_fix(status_.get()); }

 private:
  std::shared_ptr<mge_status> status_;
};

namespace internal {
[[noreturn]] inline void EndProgram(const char* why, std::string_view error) {
  std::fprintf(stderr, "mge: %s\n%.*s\n", why, static_cast<int>(error.size()), error.data());
  std::abort();
}
}  // namespace internal

// A value, or the error in its place.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T&& value) : value_(std::move(value)) {}
  Result(const T& value) : value_(value) {}
  Result(Status error) : status_(std::move(error)) {
    if (status_.ok()) internal::EndProgram("a Result was made of an OK status, which is no value", "");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }  // OK if there is a value
  // The value. Ends the program with the error's text if there is none: check ok() first.
  T& value() & {
    Check();
    return *value_;
  }
  const T& value() const& {
    Check();
    return *value_;
  }
  T&& value() && {
    Check();
    return *std::move(value_);
  }
  // Moves the value to a variable, or returns the error.
  Status MoveTo(T& out) && {
    if (ok()) out = *std::move(value_);
    return status_;
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  void Check() const {
    if (!ok()) internal::EndProgram("a value is used that an error has taken the place of", status_.text());
  }
  std::optional<T> value_;
  Status status_;
};

namespace internal {

// An object of mge.h, which is released with its owner. Movable.
template <typename T, void (*Release)(T*)>
class Owner {
 public:
  using Raw = T;
  Owner() = default;
  explicit Owner(T* handle) : handle_(handle) {}  // takes it over
  explicit operator bool() const { return handle_ != nullptr; }
  T* get() const { return handle_.get(); }
  T* release() { return handle_.release(); }  // gives it to the caller

 private:
  struct Releaser {
    void operator()(T* handle) const { Release(handle); }
  };
  std::unique_ptr<T, Releaser> handle_;
};

// Returns the object that a call of mge.h creates.
template <typename Object, typename F>
Result<Object> Take(F make) {
  typename Object::Raw* handle = nullptr;
  if (Status s(make(&handle)); !s.ok()) return s;
  return Object(handle);
}

// Returns the text that a call of mge.h creates.
template <typename F>
Result<std::string> TakeText(F make) {
  const auto text = Take<Owner<mge_string, mge_string_release>>(make);
  if (!text.ok()) return text.status();
  return std::string(mge_string_data(text->get()), mge_string_size(text->get()));
}

}  // namespace internal
}  // MGE_APPLICATION_NAMESPACE(v0)
}  // namespace mge
