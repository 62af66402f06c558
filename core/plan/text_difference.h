// SPDX-License-Identifier: Apache-2.0
//
// Describes where the canonical texts of two pipelines differ. Pure;
// thread-safe.
#pragma once

#include <string>

namespace leat {

// Shows the first line that differs, of both: `pipeline "2 resize (1:0)
// size=ints[8,8]" != "2 resize (1:0) size=ints[8,9]"`. Of a long line, as a
// reader has with a list of files, it shows the head and what surrounds the
// first byte that differs. Secrets in addresses are not shown.
// REQUIRES: the texts differ.
std::string TextDifference(const std::string& whole_a,
                           const std::string& whole_b);

}  // namespace leat
