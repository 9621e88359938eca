// SPDX-License-Identifier: Apache-2.0
// Compares our declarations of a vendor's functions, which have no types of the vendor, with those of its headers.
#pragma once

#include <type_traits>

namespace mge::gpu {

// Returns whether two types are passed in the same way: of one size, and both or neither of floating type.
template <typename A, typename B>
constexpr bool kAlike = sizeof(A) == sizeof(B) && std::is_floating_point_v<A> == std::is_floating_point_v<B>;
template <typename A, typename B>
struct SameAbi : std::false_type {};
template <typename... A, typename R, typename... B>
requires(sizeof...(A) == sizeof...(B)) struct SameAbi<int(A...), R(B...)>
    : std::bool_constant<sizeof(R) == sizeof(int) && (kAlike<A, B> && ...)> {
};

}  // namespace mge::gpu
