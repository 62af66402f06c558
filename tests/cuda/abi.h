// SPDX-License-Identifier: Apache-2.0
//
// SAME checks that a table's function has the type of a header's symbol.
#pragma once

#include <type_traits>

template <class T, class = void>
struct IsComplete : std::false_type {};
template <class T>
struct IsComplete<T, std::void_t<decltype(sizeof(T))>> : std::true_type {};

// True if two types are the same for a caller in C: numbers, pointers and
// structures of the same size and kind.
template <class T>
struct Pointee {
  using type = T;
};
template <class T>
struct Pointee<T*> {
  using type = std::remove_cv_t<T>;
};

template <class A, class B>
constexpr bool SameValue() {
  if constexpr (std::is_pointer_v<A> != std::is_pointer_v<B>) {
    return false;
  } else if constexpr (std::is_pointer_v<A>) {
    using X = typename Pointee<A>::type;
    using Y = typename Pointee<B>::type;
    if constexpr (std::is_function_v<X> || std::is_void_v<X> ||
                  std::is_void_v<Y>)
      return std::is_function_v<X> == std::is_function_v<Y>;
    else if constexpr (IsComplete<X>::value && IsComplete<Y>::value)
      return SameValue<X, Y>();
    else
      return IsComplete<X>::value == IsComplete<Y>::value;
  } else {
    return sizeof(A) == sizeof(B) && std::is_class_v<A> == std::is_class_v<B>;
  }
}

template <class A, class B>
struct SameFunction : std::false_type {};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) ==
         sizeof...(B)) struct SameFunction<R (*)(A...), S (*)(B...)>
    : std::bool_constant<SameValue<R, S>() && (SameValue<A, B>() && ...)> {
};

#define SAME(table, member, symbol)                               \
  static_assert(SameFunction<decltype(leat::cuda::table::member), \
                             decltype(&symbol)>::value,           \
                #symbol)
