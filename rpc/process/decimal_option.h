// SPDX-License-Identifier: Apache-2.0
//
// WithoutZeros makes an option of whole numbers decimal. CLI11 reads "010" as an
// octal number, and step 00340 is step 340.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace leat::rpc {

// For CLI::Option::transform. 0x10 is still 16.
inline CLI::Validator WithoutZeros() {
  return {[](std::string& word) {
            const size_t first = word.find_first_not_of('0');
            if (first != std::string::npos && word[first] >= '1' &&
                word[first] <= '9')
              word.erase(0, first);
            return std::string();
          },
          ""};
}

}  // namespace leat::rpc
