// SPDX-License-Identifier: Apache-2.0
//
// Files that readers of images rarely meet, made by hand and by the formats'
// libraries.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

// Each file's name and bytes.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;

// Makes valid images of odd shapes, samplings, codings and markers. JPEG (each
// ends in ".jpg" and decodes without a warning), other formats, and "png.jpeg",
// whose name is wrong.
NamedFiles OddImages();

// Makes JPEG files that must be refused: cut, with bad markers, or no JPEG at
// all; and "lossless.jpg", which is valid, but of a process without a decoder.
NamedFiles DamagedImages();

}  // namespace leat::testing
