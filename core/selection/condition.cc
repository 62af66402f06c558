// SPDX-License-Identifier: Apache-2.0
#include "core/selection/condition.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "core/selection/condition_node.h"
#include "core/status.h"
#include "core/utf8.h"

namespace leat {
namespace condition {
namespace {

std::string Quoted(std::string_view text, char quote) {
  std::string quoted(1, quote);
  for (const char c : text) {
    if (c == quote || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + quote;
}

std::string TextOf(const Literal& literal) {
  if (const auto* whole = std::get_if<int64_t>(&literal))
    return fmt::format("{}", *whole);
  if (const auto* number = std::get_if<double>(&literal))
    return fmt::format("{}", *number);
  return Quoted(std::get<std::string>(literal), '"');
}

std::string_view OperatorOf(Kind kind) {
  switch (kind) {
    case Kind::kEqual:
      return "==";
    case Kind::kUnequal:
      return "!=";
    case Kind::kLess:
      return "<";
    case Kind::kLessEqual:
      return "<=";
    case Kind::kGreater:
      return ">";
    case Kind::kGreaterEqual:
      return ">=";
    case Kind::kIn:
      return "in";
    case Kind::kLike:
      return "like";
    default:
      return "";
  }
}

void AppendText(const Node& node, const std::vector<ColumnName>& columns,
                std::string* text) {
  const auto append_part = [&](const Node& part) {
    // The parser has put parts of the same kind into one list.
    const bool inside = part.kind < node.kind && node.kind <= Kind::kNot;
    if (inside) *text += '(';
    AppendText(part, columns, text);
    if (inside) *text += ')';
  };
  if (node.kind == Kind::kNot) {
    *text += "not ";
    return append_part(node.parts[0]);
  }
  if (node.kind == Kind::kOr || node.kind == Kind::kAnd) {
    for (size_t i = 0; i < node.parts.size(); ++i) {
      if (i > 0) *text += node.kind == Kind::kOr ? " or " : " and ";
      append_part(node.parts[i]);
    }
    return;
  }
  *text += leat::TextOf(columns[node.column]);
  *text += fmt::format(" {} ", OperatorOf(node.kind));
  if (node.other_is_column) {
    *text += leat::TextOf(columns[node.other]);
    return;
  }
  if (node.kind == Kind::kIn) *text += '[';
  for (size_t i = 0; i < node.literals.size(); ++i)
    *text += (i > 0 ? ", " : "") + TextOf(node.literals[i]);
  if (node.kind == Kind::kIn) *text += ']';
}

bool HoldsIn(const Node& node, const ColumnValue& value) {
  const auto at = FirstNotBefore(node.literals, value);
  return at != node.literals.end() &&
         Compare(ValueOf(*at), value) == Ordering::kEqual;
}

bool HoldsOrdered(Kind kind, Ordering ordering) {
  if (ordering == Ordering::kNone) return false;
  switch (kind) {
    case Kind::kEqual:
      return ordering == Ordering::kEqual;
    case Kind::kUnequal:
      return ordering != Ordering::kEqual;
    case Kind::kLess:
      return ordering == Ordering::kLess;
    case Kind::kLessEqual:
      return ordering != Ordering::kGreater;
    case Kind::kGreater:
      return ordering == Ordering::kGreater;
    default:
      return ordering != Ordering::kLess;
  }
}

// Recursion is as deep as the parser allows.
bool Holds(const Node& node, std::span<const ColumnValue> values) {
  const auto holds = [&](const Node& part) { return Holds(part, values); };
  switch (node.kind) {
    case Kind::kOr:
      return std::ranges::any_of(node.parts, holds);
    case Kind::kAnd:
      return std::ranges::all_of(node.parts, holds);
    case Kind::kNot:
      return !holds(node.parts[0]);
    case Kind::kIn:
      return HoldsIn(node, values[node.column]);
    case Kind::kLike: {
      const auto* text = std::get_if<std::string_view>(&values[node.column]);
      return text != nullptr &&
             IsLike(*text, std::get<std::string>(node.literals[0]));
    }
    default:
      return HoldsOrdered(
          node.kind, Compare(values[node.column],
                             node.other_is_column ? values[node.other]
                                                  : ValueOf(node.literals[0])));
  }
}

void AddUses(const Node& node, std::vector<Condition::Use>* uses) {
  for (const Node& part : node.parts) AddUses(part, uses);
  if (node.kind <= Kind::kNot) return;
  for (const Literal& literal : node.literals) {
    Condition::Use& use = (*uses)[node.column];
    const auto* text = std::get_if<std::string>(&literal);
    auto& first = text != nullptr ? use.text : use.number;
    if (!first) first = text != nullptr ? *text : TextOf(literal);
  }
}

}  // namespace

std::string_view MeantAt(std::string_view text, size_t at) {
  using Pair = std::pair<std::string_view, std::string_view>;
  // The longer of two signs that begin alike comes first.
  static constexpr Pair kOtherSigns[] = {
      {"=>", ">="}, {"=<", "<="}, {"=", "=="}, {"&", "and"},
      {"|", "or"},  {"!", "not"}, {"~", "not"}};
  static constexpr Pair kOtherWords[] = {
      {"and", "and"},   {"or", "or"},     {"not", "not"},     {"in", "in"},
      {"like", "like"}, {"true", "true"}, {"false", "false"}, {"is", "=="}};
  if (at > 0 && text.substr(at - 1).starts_with("<>")) return "!=";
  text.remove_prefix(std::min(at, text.size()));
  for (const auto& [sign, meant] : kOtherSigns)
    if (text.starts_with(sign)) return meant;
  const std::string word = absl::AsciiStrToLower(
      std::string(text.substr(0, text.find_first_of(" \t\n\r()[]'\"`"))));
  for (const auto& [written, meant] : kOtherWords)
    if (word == written) return meant;
  return "";
}

}  // namespace condition

std::string TextOf(const ColumnName& column) {
  const std::string name = condition::IsPlainName(column.name)
                               ? column.name
                               : condition::Quoted(column.name, '`');
  return column.length ? fmt::format("length({})", name) : name;
}

// A column is what makes a condition of this form.
absl::StatusOr<ColumnName> ParseColumn(std::string_view text,
                                       std::string_view field) {
  const absl::StatusOr<Condition> in =
      Condition::Parse(fmt::format("{} in [0]", text));
  if (in.ok() && in->columns().size() == 1 &&
      in->CanonicalText() == TextOf(in->columns()[0]) + " in [0]")
    return in->columns()[0];
  return InvalidArgument(
      "{}: {}: want the name of a column, as label, length(tokens) or `odd "
      "name`",
      field, ToUtf8(text.substr(0, 100)));
}

absl::StatusOr<Condition> Condition::Parse(std::string_view text) {
  ASSIGN_OR_RETURN(condition::Parsed parsed, condition::Parse(text));
  Condition made;
  made.columns_ = std::move(parsed.columns);
  made.uses_.resize(made.columns_.size());
  condition::AddUses(parsed.root, &made.uses_);
  condition::AppendText(parsed.root, made.columns_, &made.text_);
  made.root_ = std::make_shared<const condition::Node>(std::move(parsed.root));
  return made;
}

bool Condition::Holds(std::span<const ColumnValue> values) const {
  return condition::Holds(*root_, values);
}

}  // namespace leat
