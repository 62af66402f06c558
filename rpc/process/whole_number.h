// SPDX-License-Identifier: Apache-2.0
//
// WholeNumber makes an option of whole numbers decimal, and refuses what its 64
// bits do not hold. CLI11 alone reads "010" as an octal number, although step
// 00340 is step 340, and takes 2^64 and more as 2^64 - 1.
#pragma once

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <string>

#include "core/printable.h"
#include "fmt/core.h"

namespace leat::rpc {

// For CLI::Option::transform. 0x10 is still 16.
inline CLI::Validator WholeNumber(bool is_signed) {
  return {[is_signed](std::string& word) {
            const size_t first = word.find_first_not_of('0');
            if (first != std::string::npos && word[first] >= '1' &&
                word[first] <= '9')
              word.erase(0, first);
            errno = 0;
            if (is_signed)
              (void)std::strtoll(word.c_str(), nullptr, 0);
            else
              (void)std::strtoull(word.c_str(), nullptr, 0);
            return errno == ERANGE
                       ? fmt::format("\"{}\": want a number of 64 bits",
                                     Printable(word))
                       : std::string();
          },
          ""};
}

}  // namespace leat::rpc
