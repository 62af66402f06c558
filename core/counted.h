// SPDX-License-Identifier: Apache-2.0
//
// Counted: a number of things, as people say it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leat {

// "1 thread", "0 threads", "2 threads". `many` is for words that take no s:
// Counted(2, "index", "indexes").
std::string Counted(uint64_t count, std::string_view one,
                    std::string_view many = "");

}  // namespace leat
