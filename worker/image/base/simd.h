// SPDX-License-Identifier: Apache-2.0
//
// One function body, compiled both for any processor and for AVX2:
//
//   struct Twice { LEAT_BODY static void Run(const float* in, float* out); };
//   Plain<Twice>::Run(in, out);  Avx2<Twice>::Run(in, out);
//
// Avx2<Body>::Run only if HasAvx2().
#pragma once

#define LEAT_BODY __attribute__((always_inline)) inline

namespace leat::worker {

inline bool HasAvx2() { return __builtin_cpu_supports("avx2") != 0; }

template <class Function>
struct ArgumentsOf;
template <class... Args>
struct ArgumentsOf<void (*)(Args...)> {
  template <class Body>
  struct Plain {
    static void Run(Args... args) { Body::Run(args...); }
  };
  template <class Body>
  struct Avx2 {
    __attribute__((target("avx2"))) static void Run(Args... args) {
      Body::Run(args...);
    }
  };
};

template <class Body>
using Plain = typename ArgumentsOf<decltype(&Body::Run)>::template Plain<Body>;
template <class Body>
using Avx2 = typename ArgumentsOf<decltype(&Body::Run)>::template Avx2<Body>;

}  // namespace leat::worker
