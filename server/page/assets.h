// SPDX-License-Identifier: Apache-2.0
//
// The files of server/page/, and dygraphs, as they are in the program. Their
// addresses have a hash of all of them, so that a browser may keep them, and
// asks for others after an upgrade.
#pragma once

#include <string>
#include <string_view>

namespace leat::server {

struct PageAsset {
  std::string_view name;   // "app.js"
  std::string_view bytes;  // for the life of the process
  std::string_view type;   // as in Content-Type
};

// nullptr: there is none of this name.
const PageAsset* FindPageAsset(std::string_view name);
// A hash of all of them: 16 hexadecimal digits.
const std::string& PageAssetsHash();

}  // namespace leat::server
