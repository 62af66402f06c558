// SPDX-License-Identifier: Apache-2.0
//
// kSanitized: true in a build for AddressSanitizer or ThreadSanitizer, where
// code runs at a tenth of its speed. Sanitizers notice a mistake at its first
// run, so tests of many random cases run fewer of them.
#pragma once

namespace leat::testing {

#if defined(LEAT_SANITIZED)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace leat::testing
