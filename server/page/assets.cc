// SPDX-License-Identifier: Apache-2.0
#include "server/page/assets.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/hash.h"

// The bytes of each file lie between two labels, which the assembler makes from
// the files (server/page/CMakeLists.txt). page_assets.inc has a line for each
// file: ASSET(app_js, "app.js", "text/javascript").
extern "C" {
#define ASSET(label, name, type)         \
  extern const char leat_page_##label[]; \
  extern const char leat_page_##label##_end[];
#include "page_assets.inc"
#undef ASSET
}

namespace leat::server {
namespace {

const auto& Assets() {
  static const std::array assets = {
#define ASSET(label, name, type)                                              \
  PageAsset{name,                                                             \
            {leat_page_##label, static_cast<size_t>(leat_page_##label##_end - \
                                                    leat_page_##label)},      \
            type},
#include "page_assets.inc"
#undef ASSET
  };
  return assets;
}

}  // namespace

const PageAsset* FindPageAsset(std::string_view name) {
  const auto& assets = Assets();
  const auto* const found = std::find_if(
      assets.begin(), assets.end(),
      [name](const PageAsset& asset) { return asset.name == name; });
  return found == assets.end() ? nullptr : found;
}

const std::string& PageAssetsHash() {
  static const std::string& hash = *new std::string([] {
    std::string all;
    for (const PageAsset& asset : Assets()) all += ToHex(HashOf(asset.bytes));
    return ToHex(HashOf(all)).substr(0, 16);
  }());
  return hash;
}

}  // namespace leat::server
