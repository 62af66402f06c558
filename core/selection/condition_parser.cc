// SPDX-License-Identifier: Apache-2.0
//
// A parser by recursive descent: each function takes what it is named after
// from the front of the text. A condition of one part is that part, and parts
// of one kind that stand within each other are one list:
//
//   (a < 1 and b < 2) and not not c < 3     and [a < 1, b < 2, c < 3]
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "core/selection/condition_node.h"
#include "core/status.h"
#include "core/utf8.h"

namespace leat::condition {
namespace {

constexpr std::array<std::string_view, 7> kWords = {
    "and", "or", "not", "in", "like", "true", "false"};

bool IsLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

enum class TokenKind : uint8_t { kEnd, kName, kNumber, kText, kSign };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  size_t begin = 0, end = 0;  // in the text
  std::string value{};        // of a name or text; else as it is written
  bool quoted = false;        // a name between backquotes
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  absl::StatusOr<Parsed> Parse() {
    RETURN_IF_ERROR(Next());
    ASSIGN_OR_RETURN(Node root, Any(0));
    if (token_.kind != TokenKind::kEnd)
      return Wrong("\"and\", \"or\" or the end");
    return Parsed{std::move(root), std::move(columns_)};
  }

 private:
  // A comparison has two operands. Each is a column or a literal.
  struct Operand {
    bool is_column = false;
    size_t column = 0;
    Literal literal;
  };

  absl::Status Wrong(std::string_view wanted) const {
    const std::string_view there =
        text_.substr(token_.begin, token_.end - token_.begin);
    constexpr size_t kShown = 40;
    const std::string_view meant = MeantAt(text_, token_.begin);
    return InvalidArgument(
        "where: {} at character {}: want {}{}",
        token_.kind == TokenKind::kEnd
            ? std::string("the end")
            : fmt::format("{}{}", ToUtf8(there.substr(0, kShown)),
                          there.size() > kShown ? "..." : ""),
        token_.begin + 1, wanted,
        meant.empty() ? "" : fmt::format("; did you mean \"{}\"?", meant));
  }

  absl::Status Next() {
    size_t at = token_.end;
    while (at < text_.size() && IsSpace(text_[at])) ++at;
    token_ = {.kind = TokenKind::kEnd, .begin = at, .end = at};
    if (at == text_.size()) return absl::OkStatus();
    const char c = text_[at];
    if (c == '"' || c == '\'' || c == '`') return NextQuoted(c);
    const auto while_true = [&](auto is) {
      while (token_.end < text_.size() && is(text_[token_.end])) ++token_.end;
    };
    if (IsLetter(c)) {
      token_.kind = TokenKind::kName;
      while_true([](char d) { return IsLetter(d) || IsDigit(d) || d == '.'; });
    } else if (IsDigit(c) || c == '-' || c == '+' || c == '.') {
      token_.kind = TokenKind::kNumber;
      ++token_.end;
      while_true([&](char d) {
        const char before = text_[token_.end - 1];
        return IsLetter(d) || IsDigit(d) || d == '.' ||
               ((d == '-' || d == '+') && (before == 'e' || before == 'E'));
      });
    } else {
      token_.kind = TokenKind::kSign;
      const bool two =
          text_.substr(at + 1).starts_with('=') &&
          std::string_view("=!<>").find(c) != std::string_view::npos;
      token_.end += two ? 2 : std::max<size_t>(1, Utf8Length(text_.substr(at)));
    }
    token_.value = text_.substr(at, token_.end - at);
    return absl::OkStatus();
  }

  absl::Status NextQuoted(char quote) {
    token_.kind = quote == '`' ? TokenKind::kName : TokenKind::kText;
    token_.quoted = true;
    size_t at = token_.begin + 1;
    for (; at < text_.size() && text_[at] != quote; ++at) {
      if (text_[at] == '\\') {
        ++at;
        token_.end = std::min(at + 1, text_.size());
        if (at == text_.size()) break;
        if (std::string_view("\\\"'`").find(text_[at]) ==
            std::string_view::npos) {
          token_.begin = at - 1;
          return Wrong("a quote or a backslash after the backslash");
        }
      }
      token_.value += text_[at];
    }
    if (at >= text_.size()) {
      token_.end = text_.size();
      return Wrong(fmt::format("a {} at its end", quote));
    }
    token_.end = at + 1;
    if (token_.kind == TokenKind::kName && token_.value.empty())
      return Wrong("the name of a column");
    return absl::OkStatus();
  }

  bool IsWord(std::string_view word) const {
    return token_.kind == TokenKind::kName && !token_.quoted &&
           token_.value == word;
  }
  bool IsSign(std::string_view sign) const {
    return token_.kind == TokenKind::kSign && token_.value == sign;
  }
  absl::Status TakeSign(std::string_view sign) {
    if (!IsSign(sign)) return Wrong(fmt::format("\"{}\"", sign));
    return Next();
  }

  static void AddPart(Node part, Node* list) {
    if (part.kind != list->kind) return list->parts.push_back(std::move(part));
    for (Node& each : part.parts) list->parts.push_back(std::move(each));
  }
  static Node Simplest(Node list) {
    if (list.parts.size() > 1) return list;
    Node only = std::move(list.parts[0]);
    return only;
  }

  absl::StatusOr<Node> Any(int depth) {
    Node any{.kind = Kind::kOr};
    while (true) {
      ASSIGN_OR_RETURN(Node part, All(depth));
      AddPart(std::move(part), &any);
      if (!IsWord("or")) return Simplest(std::move(any));
      RETURN_IF_ERROR(Next());
    }
  }

  absl::StatusOr<Node> All(int depth) {
    Node all{.kind = Kind::kAnd};
    while (true) {
      ASSIGN_OR_RETURN(Node part, Term(depth));
      AddPart(std::move(part), &all);
      if (!IsWord("and")) return Simplest(std::move(all));
      RETURN_IF_ERROR(Next());
    }
  }

  static Node Not(Node part) {
    if (part.kind == Kind::kNot) {
      Node inner = std::move(part.parts[0]);
      return inner;
    }
    Node negated{.kind = Kind::kNot};
    negated.parts.push_back(std::move(part));
    return negated;
  }

  absl::StatusOr<Node> Term(int depth) {
    if (depth >= kMaxConditionDepth)
      return Wrong(
          fmt::format("at most {} parentheses and \"not\" within each "
                      "other",
                      kMaxConditionDepth));
    if (IsWord("not")) {
      RETURN_IF_ERROR(Next());
      ASSIGN_OR_RETURN(Node part, Term(depth + 1));
      return Not(std::move(part));
    }
    if (IsSign("(")) {
      RETURN_IF_ERROR(Next());
      ASSIGN_OR_RETURN(Node any, Any(depth + 1));
      RETURN_IF_ERROR(TakeSign(")"));
      return any;
    }
    return Comparison();
  }

  absl::Status CountTerm() {
    if (++terms_ <= kMaxConditionTerms) return absl::OkStatus();
    return Wrong(fmt::format("at most {} comparisons and entries of lists",
                             kMaxConditionTerms));
  }

  absl::StatusOr<Node> Comparison() {
    RETURN_IF_ERROR(CountTerm());
    ASSIGN_OR_RETURN(Operand left, OneOperand());
    const bool negated = left.is_column && IsWord("not");
    if (negated) RETURN_IF_ERROR(Next());
    if (left.is_column && (IsWord("in") || IsWord("like"))) {
      const bool in = IsWord("in");
      RETURN_IF_ERROR(Next());
      ASSIGN_OR_RETURN(Node node, in ? In(left.column) : Like(left.column));
      return negated ? Not(std::move(node)) : std::move(node);
    }
    if (negated) return Wrong("\"in\" or \"like\"");
    return Ordered(std::move(left));
  }

  absl::StatusOr<Node> Ordered(Operand left) {
    static constexpr std::pair<std::string_view, Kind> kSigns[] = {
        {"==", Kind::kEqual},  {"!=", Kind::kUnequal},
        {"<", Kind::kLess},    {"<=", Kind::kLessEqual},
        {">", Kind::kGreater}, {">=", Kind::kGreaterEqual}};
    const auto* const sign = std::ranges::find_if(
        kSigns, [&](const auto& each) { return IsSign(each.first); });
    if (sign == std::end(kSigns))
      return Wrong(left.is_column ? "== != < <= > >= \"in\" or \"like\""
                                  : "== != < <= > or >=");
    RETURN_IF_ERROR(Next());
    const Token at = token_;
    ASSIGN_OR_RETURN(Operand right, OneOperand());
    if (!left.is_column && !right.is_column) {
      token_ = at;
      return Wrong("a column, since the left side is none");
    }
    Node node{.kind = sign->second};
    if (!left.is_column) {
      std::swap(left, right);
      node.kind = Mirrored(node.kind);
    }
    node.column = left.column;
    node.other_is_column = right.is_column;
    node.other = right.column;
    if (!right.is_column) node.literals.push_back(std::move(right.literal));
    return node;
  }

  static Kind Mirrored(Kind kind) {
    switch (kind) {
      case Kind::kLess:
        return Kind::kGreater;
      case Kind::kLessEqual:
        return Kind::kGreaterEqual;
      case Kind::kGreater:
        return Kind::kLess;
      case Kind::kGreaterEqual:
        return Kind::kLessEqual;
      default:
        return kind;
    }
  }

  absl::StatusOr<Node> In(size_t column) {
    Node node{.kind = Kind::kIn, .column = column};
    RETURN_IF_ERROR(TakeSign("["));
    while (true) {
      RETURN_IF_ERROR(CountTerm());
      ASSIGN_OR_RETURN(Literal literal, OneLiteral("a number or a text"));
      node.literals.push_back(std::move(literal));
      if (IsSign("]")) break;
      if (!IsSign(",")) return Wrong("\",\" or \"]\"");
      RETURN_IF_ERROR(Next());
    }
    RETURN_IF_ERROR(Next());
    std::ranges::sort(node.literals, IsBefore);
    const auto again = std::unique(node.literals.begin(), node.literals.end(),
                                   [](const Literal& a, const Literal& b) {
                                     return !IsBefore(a, b) && !IsBefore(b, a);
                                   });
    node.literals.erase(again, node.literals.end());
    return node;
  }

  absl::StatusOr<Node> Like(size_t column) {
    if (token_.kind != TokenKind::kText) return Wrong("a text");
    if (token_.value.size() > kMaxLikeBytes)
      return Wrong(fmt::format("a text of at most {} bytes", kMaxLikeBytes));
    Node node{.kind = Kind::kLike, .column = column};
    node.literals.emplace_back(token_.value);
    RETURN_IF_ERROR(Next());
    return node;
  }

  absl::StatusOr<Operand> OneOperand() {
    Operand operand;
    if (token_.kind == TokenKind::kName &&
        (token_.quoted ||
         std::ranges::find(kWords, token_.value) == std::end(kWords))) {
      operand.is_column = true;
      ASSIGN_OR_RETURN(operand.column, Column());
      return operand;
    }
    ASSIGN_OR_RETURN(operand.literal,
                     OneLiteral("a column, a number or a text"));
    return operand;
  }

  absl::StatusOr<size_t> Column() {
    ColumnName column{.name = token_.value, .length = false};
    const bool may_be_length = IsWord("length");
    RETURN_IF_ERROR(Next());
    if (may_be_length && IsSign("(")) {
      RETURN_IF_ERROR(Next());
      if (token_.kind != TokenKind::kName) return Wrong("the name of a column");
      column = {.name = token_.value, .length = true};
      RETURN_IF_ERROR(Next());
      RETURN_IF_ERROR(TakeSign(")"));
    }
    const auto known = std::ranges::find(columns_, column);
    const auto number = static_cast<size_t>(known - columns_.begin());
    if (known != columns_.end()) return number;
    if (columns_.size() >= kMaxConditionColumns)
      return Wrong(
          fmt::format("at most {} different columns", kMaxConditionColumns));
    columns_.push_back(std::move(column));
    return number;
  }

  absl::StatusOr<Literal> OneLiteral(std::string_view wanted) {
    Literal literal;
    if (token_.kind == TokenKind::kText) {
      literal = token_.value;
    } else if (IsWord("true") || IsWord("false")) {
      literal = int64_t{token_.value == "true"};
    } else if (token_.kind == TokenKind::kNumber) {
      ASSIGN_OR_RETURN(literal, Number());
    } else {
      return Wrong(wanted);
    }
    RETURN_IF_ERROR(Next());
    return literal;
  }

  // A number that is whole is kept as such, however it is written, if 63 bits
  // hold it.
  absl::StatusOr<Literal> Number() const {
    std::string_view digits = token_.value;
    if (digits.starts_with('+')) digits.remove_prefix(1);
    const char* const end = digits.data() + digits.size();
    int64_t whole = 0;
    const auto as_whole = std::from_chars(digits.data(), end, whole);
    if (as_whole.ec == std::errc() && as_whole.ptr == end) return whole;
    double number = 0;
    const auto as_number = std::from_chars(digits.data(), end, number);
    if (as_number.ec != std::errc() || as_number.ptr != end ||
        !std::isfinite(number))
      return Wrong("a number");
    if (std::trunc(number) == number && std::abs(number) < 0x1p63)
      return static_cast<int64_t>(number);
    return number;
  }

  const std::string_view text_;
  Token token_;
  std::vector<ColumnName> columns_;
  size_t terms_ = 0;
};

}  // namespace

bool IsPlainName(std::string_view name) {
  return !name.empty() && IsLetter(name[0]) &&
         std::ranges::all_of(
             name,
             [](char c) { return IsLetter(c) || IsDigit(c) || c == '.'; }) &&
         std::ranges::find(kWords, name) == std::end(kWords);
}

absl::StatusOr<Parsed> Parse(std::string_view text) {
  if (text.size() > kMaxConditionBytes)
    return InvalidArgument("where: a text of {} bytes: want at most {}",
                           text.size(), kMaxConditionBytes);
  if (!IsUtf8(text))
    return InvalidArgument("where: {}: want UTF-8",
                           ToUtf8(text.substr(0, 100)));
  return Parser(text).Parse();
}

}  // namespace leat::condition
