// SPDX-License-Identifier: Apache-2.0
// The namespace of the C++ classes for applications: mge::v0, which is a part of every symbol. So another library with classes of
// these names (another version of these headers, or the core itself) can be linked into the same program.
//
// It is an inline namespace: mge::Session is the name in source code. Only in a source file that has included plugin.hpp before,
// whose classes for backends share some of the names, it is not: mge::Result is the backend's, and mge::app::Result the
// application's.
#pragma once

#ifdef MGE_HIDDEN  // plugin.hpp has been included
#define MGE_APPLICATION_NAMESPACE(version) namespace version
#else
#define MGE_APPLICATION_NAMESPACE(version) inline namespace version
#endif

namespace mge {
MGE_APPLICATION_NAMESPACE(v0) {}
namespace app = v0;
}  // namespace mge
