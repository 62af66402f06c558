// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/arguments.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>

#include "core/edit_distance.h"
#include "core/redaction.h"
#include "core/status.h"
#include "core/utf8.h"

namespace leat {
namespace {

constexpr size_t kMaxTextLength = kMaxEntryBytes;  // of a string argument

std::string_view TypeName(ArgType type) {
  switch (type) {
    case ArgType::kBool:
      return "true or false";
    case ArgType::kInt:
      return "an integer";
    case ArgType::kFloat:
      return "a number";
    case ArgType::kString:
      return "text";
    case ArgType::kInts:
      return "integers";
    case ArgType::kFloats:
      return "numbers";
    case ArgType::kStrings:
      return "texts";
  }
  return "?";
}

std::string ValueText(const Value& value) {
  const std::string text = CanonicalText(Node{"v", {}, {{"v", value}}});
  if (const double* number = std::get_if<double>(&value))
    return fmt::format("{}", *number);
  if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    std::string list = "[";
    for (size_t i = 0; i < std::min<size_t>(numbers->size(), 8); ++i)
      list += fmt::format("{}{}", i ? ", " : "", (*numbers)[i]);
    return list + (numbers->size() > 8 ? ", …]" : "]");
  }
  return Shown(std::string_view(text).substr(4));  // after "v v="
}

// Converts an integer, or a number without a fraction.
std::optional<int64_t> AsInt(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value)) return *number;
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || !(std::fabs(*number) <= 0x1p53) ||
      *number != std::floor(*number))
    return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> AsFloat(const Value& value) {
  if (const auto* number = std::get_if<int64_t>(&value))
    return static_cast<double>(*number);
  const auto* number = std::get_if<double>(&value);
  if (number == nullptr || !std::isfinite(*number)) return std::nullopt;
  return *number == 0 ? 0.0 : *number;  // no negative zero
}

// Converts a list, or one number as a list of one.
template <class T, class Convert>
std::optional<Value> AsList(const Value& value, Convert convert) {
  std::vector<T> list;
  bool good = true;
  const auto add = [&](const Value& item) {
    const std::optional<T> number = convert(item);
    good = good && number.has_value();
    if (number) list.push_back(*number);
  };
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value))
    for (const int64_t number : *ints) add(Value(number));
  else if (const auto* floats = std::get_if<std::vector<double>>(&value))
    for (const double number : *floats) add(Value(number));
  else
    add(value);
  if (!good) return std::nullopt;
  return Value(std::move(list));
}

// Returns `value` in the argument's type; nullopt if it cannot be converted.
std::optional<Value> Convert(ArgType type, const Value& value) {
  switch (type) {
    case ArgType::kBool: {
      if (std::holds_alternative<bool>(value)) return value;
      const auto* number = std::get_if<int64_t>(&value);
      if (number == nullptr || *number < 0 || *number > 1) return std::nullopt;
      return Value(*number == 1);
    }
    case ArgType::kInt:
      if (const auto number = AsInt(value)) return Value(*number);
      return std::nullopt;
    case ArgType::kFloat:
      if (const auto number = AsFloat(value)) return Value(*number);
      return std::nullopt;
    case ArgType::kString:
      if (std::holds_alternative<std::string>(value)) return value;
      return std::nullopt;
    case ArgType::kInts:
      return AsList<int64_t>(value, AsInt);
    case ArgType::kFloats:
      return AsList<double>(value, AsFloat);
    case ArgType::kStrings:
      if (std::holds_alternative<std::vector<std::string>>(value)) return value;
      if (const auto* text = std::get_if<std::string>(&value))
        return Value(std::vector<std::string>{*text});
      return std::nullopt;
  }
  return std::nullopt;
}

bool InRange(const ArgInfo& arg, const Value& value) {
  if (arg.min > arg.max) return true;
  const auto inside = [&](double number) {
    return number >= arg.min && number <= arg.max;
  };
  const auto all = [&](const auto& list) {
    return std::all_of(list.begin(), list.end(), [&](auto number) {
      return inside(static_cast<double>(number));
    });
  };
  if (const auto* number = std::get_if<int64_t>(&value))
    return inside(static_cast<double>(*number));
  if (const auto* number = std::get_if<double>(&value)) return inside(*number);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value))
    return all(*ints);
  if (const auto* floats = std::get_if<std::vector<double>>(&value))
    return all(*floats);
  return true;
}

absl::Status CheckText(const ArgInfo& arg, const std::string& text) {
  if (text.size() > kMaxTextLength || text.find('\0') != text.npos)
    return InvalidArgument("{} bytes, want at most {} and none of them 0",
                           text.size(), kMaxTextLength);
  const auto& choices = arg.choices;
  if (choices.empty() ||
      std::find(choices.begin(), choices.end(), text) != choices.end())
    return absl::OkStatus();
  return InvalidArgument("\"{}\" is not a choice{}", Shown(text),
                         Suggestion(text, {choices.begin(), choices.end()}));
}

absl::Status CheckCount(size_t count, size_t least, size_t most) {
  if (count >= least && count <= most) return absl::OkStatus();
  return InvalidArgument("{} values, want {} to {}", count, least, most);
}

// Returns the minimum length of a list: 0 if that is its default.
template <class List>
size_t LeastLength(const ArgInfo& arg) {
  if (!arg.default_value) return 1;
  const auto* list = std::get_if<List>(&*arg.default_value);
  return list != nullptr && list->empty() ? 0 : 1;
}

// A list of texts may be empty if it has a default; a list of numbers, only if
// its default is empty.
absl::Status CheckLength(const ArgInfo& arg, const Value& value) {
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value))
    return CheckCount(ints->size(), LeastLength<std::vector<int64_t>>(arg),
                      kMaxShortNumbers);
  if (const auto* floats = std::get_if<std::vector<double>>(&value))
    return CheckCount(floats->size(), LeastLength<std::vector<double>>(arg),
                      kMaxShortNumbers);
  if (const auto* text = std::get_if<std::string>(&value))
    return CheckText(arg, *text);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    RETURN_IF_ERROR(
        CheckCount(texts->size(), arg.default_value ? 0 : 1, kMaxShortTexts));
    for (const std::string& text : *texts)
      RETURN_IF_ERROR(CheckText(arg, text));
  }
  return absl::OkStatus();
}

bool TakesLong(const ArgInfo& arg, const LongList& list) {
  return arg.of_data &&
         arg.type == (list.kind == LongList::Kind::kTexts ? ArgType::kStrings
                                                          : ArgType::kInts);
}

absl::Status CheckEntry(const ArgInfo& arg, size_t index,
                        const std::string& text) {
  absl::Status good = CheckText(arg, text);
  if (good.ok() && !IsUtf8(text)) good = InvalidArgument("is no UTF-8");
  return Annotate(good, fmt::format("entry {}", index));
}

absl::Status CheckEntry(const ArgInfo& arg, size_t index, int64_t number) {
  if (InRange(arg, Value(number))) return absl::OkStatus();
  return InvalidArgument("entry {}: {}, want {}", index, number,
                         ExpectedText(arg));
}

template <class T>
absl::Status CheckAll(const ArgInfo& arg, const std::vector<T>& entries) {
  for (size_t i = 0; i < entries.size(); ++i)
    RETURN_IF_ERROR(CheckEntry(arg, i, entries[i]));
  return absl::OkStatus();
}

size_t CountIn(const Value& value) {
  return std::visit(
      []<class T>(const T& each) -> size_t {
        if constexpr (std::is_same_v<T, std::vector<int64_t>> ||
                      std::is_same_v<T, std::vector<double>> ||
                      std::is_same_v<T, std::vector<std::string>>)
          return each.size();
        return 0;
      },
      value);
}

uint64_t TextBytes(const Value& value) {
  uint64_t bytes = 0;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value))
    for (const std::string& text : *texts) bytes += text.size() + 1;
  return bytes;
}

size_t MostIn(const Value& value) {
  return std::holds_alternative<std::vector<std::string>>(value)
             ? kMaxShortTexts
             : kMaxShortNumbers;
}

// Returns advice for a list that is too long, for the error message.
std::string_view WayOut(std::string_view op) {
  if (op == "readers.files")
    return "; readers.file_list reads a list of any length from a file";
  if (op == "readers.numpy") return "; path, a folder, has no such bound";
  if (op == "readers.coco") return "";
  return "; a folder or a pattern stands for any number of files";
}

absl::Status Shorten(const ArgInfo& arg, Value* value) {
  if (CountIn(*value) > kMaxListEntries)
    return InvalidArgument("{} values: at most {}", CountIn(*value),
                           kMaxListEntries);
  const std::optional<Value> converted = Convert(arg.type, *value);
  if (!converted)
    return InvalidArgument("{} values, want {}", CountIn(*value),
                           ExpectedText(arg));
  absl::StatusOr<LongList> list = InvalidArgument("want {}", ExpectedText(arg));
  if (const auto* texts = std::get_if<std::vector<std::string>>(&*converted)) {
    RETURN_IF_ERROR(CheckAll(arg, *texts));
    list = LongListOf(*texts);
  } else if (const auto* ints =
                 std::get_if<std::vector<int64_t>>(&*converted)) {
    RETURN_IF_ERROR(CheckAll(arg, *ints));
    list = LongListOf(*ints);
  }
  RETURN_IF_ERROR(list.status());
  *value = *std::move(list);
  return absl::OkStatus();
}

absl::Status ShortenListsOf(Node* node) {
  const OperatorInfo* const info = FindOperator(node->op);
  uint64_t bytes = 0;  // of all lists
  for (const auto& [name, value] : node->args) bytes += TextBytes(value);
  for (auto& [name, value] : node->args) {
    const size_t count = CountIn(value);
    // All of a node's texts must fit in one message.
    const bool large =
        bytes > kMaxShortBytes && TextBytes(value) > kListBlockBytes;
    if (count <= MostIn(value) && !large) continue;
    const ArgInfo* arg = nullptr;
    if (info != nullptr)
      for (const ArgInfo& each : info->args)
        if (each.name == name && each.of_data) arg = &each;
    if (arg == nullptr && count > MostIn(value))
      return InvalidArgument("{}: argument {}: {} values: at most {}",
                             Shown(node->op), Shown(name), count,
                             MostIn(value));
    if (arg == nullptr) continue;
    const absl::Status status = Shorten(*arg, &value);
    if (!status.ok())
      return Annotate(
          InvalidArgument("{}{}", Message(status),
                          count > kMaxListEntries || bytes > kMaxListBytes
                              ? WayOut(node->op)
                              : ""),
          fmt::format("{}: argument {}", node->op, name));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ShortenLists(Graph* graph) {
  for (Node& node : graph->nodes) RETURN_IF_ERROR(ShortenListsOf(&node));
  return CheckLists(*graph);
}

absl::Status CheckLists(const Graph& graph) {
  uint64_t bytes = 0;
  size_t lists = 0;
  for (const Node& node : graph.nodes)
    for (const auto& [name, value] : node.args)
      if (const auto* list = std::get_if<LongList>(&value)) {
        bytes += list->bytes;
        ++lists;
      }
  if (lists > kMaxLists)
    return InvalidArgument("a pipeline of {} long lists: at most {}", lists,
                           kMaxLists);
  if (bytes > kMaxListsBytes)
    return InvalidArgument("the lists of a pipeline have {} bytes: at most {}",
                           bytes, kMaxListsBytes);
  return absl::OkStatus();
}

absl::Status CheckEntries(const ArgInfo& arg, const LongList& list) {
  if (!TakesLong(arg, list))
    return InvalidArgument("a list of {} entries, want {}", list.count,
                           ExpectedText(arg));
  return list.kind == LongList::Kind::kTexts ? CheckAll(arg, TextsOf(list))
                                             : CheckAll(arg, IntsOf(list));
}

std::string Shown(std::string_view name) {
  constexpr size_t kLimit = 60;
  const std::string shown = Redacted(name);
  if (shown.size() <= kLimit) return shown;
  return fmt::format("{}…", ToUtf8(shown, kLimit));  // no half character
}

// Returns "; did you mean \"decode\"?", or all known names if none is near.
std::string Suggestion(std::string_view name,
                       const std::vector<std::string_view>& known) {
  if (known.empty()) return "; it takes none";
  const std::string shown = Shown(name);
  const std::string_view best = *NearestWord(known, shown);
  if (EditDistance(shown, best) * 2 <= std::max(best.size(), shown.size()))
    return fmt::format("; did you mean \"{}\"?", best);
  std::string text = "; known are";
  for (size_t i = 0; i < known.size(); ++i)
    text += fmt::format("{} {}", i ? "," : "", known[i]);
  return text;
}

std::string ExpectedText(const ArgInfo& arg) {
  std::string text(TypeName(arg.type));
  if (arg.min <= arg.max) text += fmt::format(" {} to {}", arg.min, arg.max);
  return text;
}

absl::Status CompleteArgument(const ArgInfo& arg, Value* value) {
  if (const auto* list = std::get_if<LongList>(value)) {
    if (TakesLong(arg, *list)) return absl::OkStatus();
    return InvalidArgument("a list of {} entries, want {}", list->count,
                           ExpectedText(arg));
  }
  const std::optional<Value> converted = Convert(arg.type, *value);
  if (!converted || !InRange(arg, *converted))
    return InvalidArgument("{}, want {}", ValueText(*value), ExpectedText(arg));
  *value = *converted;
  return CheckLength(arg, *value);
}

}  // namespace leat
