// SPDX-License-Identifier: Apache-2.0
//
// Files that readers of images meet rarely, made by hand and by the formats'
// libraries.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace leat::testing {

// Of each file its name and its bytes.
using NamedFiles = std::vector<std::pair<std::string, std::string>>;

// Valid images, though of odd shapes, samplings, codings and markers. JPEG
// (each ends in ".jpg" and decodes without a warning), other formats, and
// "png.jpeg", whose name is not the truth.
NamedFiles OddImages();

// JPEG files that must be refused: cut, with bad markers, or no JPEG at all;
// and "lossless.jpg", which is whole, but of a process without a decoder.
NamedFiles DamagedImages();

}  // namespace leat::testing
