// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/short_lists.h"

#include <vector>

#include "core/plan/short_lists.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace leat::cli {

std::string ShortList(const Json& items) {
  std::vector<std::string> texts;
  for (const Json& item : items)
    texts.push_back(item.is_string() ? item.get<std::string>() : item.dump());
  if (texts.size() <= kWholeList)
    return fmt::format("[{}]", fmt::join(texts, ", "));
  std::string whole;
  for (const std::string& text : texts) whole += text + '\0';
  const size_t count = texts.size();
  texts.resize(kShownOfList);
  return fmt::format("[{}, {}]", fmt::join(texts, ", "),
                     MoreOfList(count, whole));
}

}  // namespace leat::cli
