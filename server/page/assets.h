// SPDX-License-Identifier: Apache-2.0
//
// The files of server/page/, and dygraphs, embedded in the program. Their URLs
// contain a hash of all files, so that a browser may cache them, and requests
// new ones after an upgrade.
#pragma once

#include <string>
#include <string_view>

namespace leat::server {

struct PageAsset {
  std::string_view name;   // "app.js"
  std::string_view bytes;  // valid for the life of the process
  std::string_view type;   // as in Content-Type
};

// Returns nullptr if there is none of this name.
const PageAsset* FindPageAsset(std::string_view name);
// Returns a hash of all files: 16 hexadecimal digits.
const std::string& PageAssetsHash();

}  // namespace leat::server
