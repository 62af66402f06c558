// SPDX-License-Identifier: Apache-2.0
#include "worker/serving/reader_call.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/redaction.h"
#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

namespace leat::worker {
namespace {

constexpr size_t kMaxShown = 100;  // values of a list

// A JSON literal of text is also a Python literal.
std::string TextLiteral(const std::string& text) {
  return nlohmann::json(RedactedUri(text))
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Literal(const std::string& text) { return TextLiteral(text); }
std::string Literal(bool value) { return value ? "True" : "False"; }
template <class Number>
std::string Literal(Number number) {
  return nlohmann::json(number).dump();
}

template <class List>
std::string ListLiteral(const List& list, bool one_as_itself) {
  if (one_as_itself && list.size() == 1) return Literal(list.front());
  std::vector<std::string> texts;
  for (size_t i = 0; i < std::min(list.size(), kMaxShown); ++i)
    texts.push_back(Literal(list[i]));
  if (list.size() > kMaxShown) texts.push_back("...");
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::string ValueLiteral(const Value& value, bool one_as_itself) {
  return std::visit(
      [&](const auto& each) -> std::string {
        using T = std::decay_t<decltype(each)>;
        if constexpr (std::is_same_v<T, std::vector<std::string>> ||
                      std::is_same_v<T, std::vector<int64_t>> ||
                      std::is_same_v<T, std::vector<double>>)
          return ListLiteral(each, one_as_itself);
        else if constexpr (std::is_same_v<T, std::string> ||
                           std::is_same_v<T, bool> ||
                           std::is_same_v<T, int64_t> ||
                           std::is_same_v<T, double>)
          return Literal(each);
        else
          return "...";
      },
      value);
}

}  // namespace

std::string ReaderCall(const Node& node) {
  const OperatorInfo* const info = FindOperator(node.op);
  std::vector<std::string> args;
  if (info != nullptr)
    for (const ArgInfo& arg : info->args) {
      const auto found = node.args.find(arg.name);
      if (found == node.args.end() || found->second == arg.default_value)
        continue;
      // A reader takes one file or folder without a list around it.
      const bool is_path = arg.name == "paths" || arg.name == "path";
      args.push_back(
          fmt::format("{}={}", arg.name, ValueLiteral(found->second, is_path)));
    }
  return fmt::format("fn.{}({})", node.op, fmt::join(args, ", "));
}

}  // namespace leat::worker
