// SPDX-License-Identifier: Apache-2.0
#include "core/plugin/abi_call.h"

#include <new>

namespace mge {
namespace {

void Describe(std::string& text) {
  try {
    throw;
  } catch (const std::exception& e) {
    text = std::string("the backend threw an exception across the boundary: ") + e.what();
  } catch (...) {
    text = "the backend threw an exception across the boundary that is not a std::exception";
  }
}

}  // namespace

mge_code CodeOfThrown(mge_error& error) noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return CodeForBackend(OutOfHostMemory(), &error);
  } catch (...) {
    try {
      Describe(error.text);
    } catch (const std::bad_alloc&) {  // the code is reported without a text
      error.text.clear();
    }
  }
  return error.code = MGE_INTERNAL;
}

}  // namespace mge
