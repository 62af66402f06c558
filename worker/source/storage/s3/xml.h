// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace leat::worker {

// Reads a document and calls `each` at the end of every element with its path
// ("ListBucketResult/Contents/Key") and the text directly in it. Nothing is
// declared or expanded: a document with a DOCTYPE is refused. kDataLoss: not
// well-formed (names the line), or over 16 elements deep.
absl::Status ForEachElement(
    std::string_view xml,
    const std::function<void(const std::string& path, const std::string& text)>&
        each);

}  // namespace leat::worker
