// SPDX-License-Identifier: Apache-2.0
//
//   uri ─► format (format.h) ─► arguments that were given ─► the argument
//   that takes the uri ─► fields, by the first file ─► defaults ─► types
#include "worker/source/guess/reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "core/pipeline/arguments.h"
#include "core/pipeline/shape_inference.h"
#include "core/plan/job.h"
#include "core/redaction.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/format_names.h"
#include "worker/source/guess/format.h"
#include "worker/source/record_paths.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

// Returns the beginning of a user's text, without terminal control characters.
std::string Excerpt(std::string_view text) {
  constexpr size_t kMost = 64;
  std::string excerpt(text.substr(0, kMost));
  for (char& c : excerpt)
    if (c < ' ' || c > '~') c = '?';
  return excerpt;
}

constexpr std::string_view kPrefix = "readers.";

// True if it is a folder. kNotFound: it does not exist. kFailedPrecondition: it
// is neither a file nor a folder.
absl::StatusOr<bool> IsFolder(const std::string& uri, const Storage& storage) {
  if (uri.ends_with('/')) return true;
  const absl::StatusOr<StoredObject> found = storage.Stat(uri);
  if (found.ok()) return false;
  // Stat of a folder: a local one is refused, a remote one has no such key.
  if (absl::IsFailedPrecondition(found.status())) {
    if (IsLocalUri(uri)) RETURN_IF_ERROR(storage.StatFolder(uri).status());
    return true;
  }
  if (IsPattern(uri)) return false;
  if (absl::IsNotFound(found.status()) && !IsLocalUri(uri) &&
      FormatOfName(uri).empty())
    return true;
  return found.status();
}

// Removes the last part of a URI, if it is a pattern of files, and returns it.
// A local file may be named like one, and on a web server "?" begins a query.
std::optional<std::string> TakePattern(std::string* uri,
                                       const SourceLimits& limits) {
  const std::string scheme = SchemeOf(*uri);
  const size_t name = uri->rfind('/') + 1;  // npos + 1 is 0
  if (scheme == "http" || scheme == "https" || !IsPattern(uri->substr(name)) ||
      (IsLocalUri(*uri) && StorageOf(limits).Stat(*uri).ok()))
    return std::nullopt;
  std::string pattern = uri->substr(name);
  uri->resize(name);
  if (uri->empty()) *uri = ".";
  if (uri->size() > 1 && uri->ends_with('/') && !uri->ends_with("//"))
    uri->pop_back();
  return pattern;
}

// Returns a file's format: by its first bytes, or else its name, or else its
// length. A pattern's first file stands for all.
absl::StatusOr<std::string> FormatOfFile(const std::string& uri,
                                         const SourceLimits& limits) {
  std::string name = FormatOfName(uri);
  std::string first = uri;
  if (IsPattern(uri)) {
    if (!name.empty()) return name;
    ASSIGN_OR_RETURN(ListedFile file,
                     FirstOfPath(
                         uri, [](std::string_view) { return true; }, limits));
    first = std::move(file.uri);
  }
  ASSIGN_OR_RETURN(const auto file, StorageOf(limits).Open(first));
  ASSIGN_OR_RETURN(std::string format, FormatOfBytes(*file));
  if (format == "caffe2") return FormatOfLmdb(first, limits);
  if (format.empty()) format = std::move(name);
  if (!format.empty()) return format;
  constexpr std::string_view kData = ".bin";
  if (first.ends_with(kData) &&
      StorageOf(limits)
          .Stat(first.substr(0, first.size() - kData.size()) + ".idx")
          .ok())
    return "tokens";
  ASSIGN_OR_RETURN(format, FormatOfLength(*file));
  if (!format.empty()) return format;
  return InvalidArgument(
      "{}: neither its name nor its first bytes say what it is; --format "
      "names a reader, as --format tokens --arg dtype=uint16 for tokens alone",
      RedactedUri(uri));
}

// Returns the reader's name, and the value for it.
absl::StatusOr<FolderFormat> FormatOf(const std::string& uri, bool is_folder,
                                      const std::string& known,
                                      const SourceLimits& limits) {
  if (!known.empty()) return FolderFormat{known, uri};
  if (is_folder) return FormatOfFolder(uri, limits);
  constexpr std::string_view kMdsIndex = "/index.json";
  if (uri.ends_with(kMdsIndex))
    return FolderFormat{"mds", uri.substr(0, uri.size() - kMdsIndex.size())};
  ASSIGN_OR_RETURN(std::string format, FormatOfFile(uri, limits));
  return FolderFormat{std::move(format), uri};
}

absl::StatusOr<double> NumberFrom(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end)
    return InvalidArgument("\"{}\" is no number", text);
  return number;
}

// Converts texts to a value of the argument's type.
absl::StatusOr<Value> ValueFrom(const ArgInfo& arg,
                                const std::vector<std::string>& texts) {
  if (arg.type == ArgType::kStrings) return Value(texts);
  const bool is_list =
      arg.type == ArgType::kInts || arg.type == ArgType::kFloats;
  if (!is_list && texts.size() != 1)
    return InvalidArgument("is given {} times, want once", texts.size());
  if (arg.type == ArgType::kString) return Value(texts.front());
  if (arg.type == ArgType::kBool) {
    if (texts.front() == "true") return Value(true);
    if (texts.front() == "false") return Value(false);
    return InvalidArgument("\"{}\": want true or false", texts.front());
  }
  std::vector<double> numbers;
  for (const std::string& text : texts) {
    ASSIGN_OR_RETURN(const double number, NumberFrom(text));
    numbers.push_back(number);
  }
  const bool whole = arg.type == ArgType::kInt || arg.type == ArgType::kInts;
  for (const double number : numbers)
    if (whole && !(std::fabs(number) <= 0x1p53 && std::floor(number) == number))
      return InvalidArgument("{}: want a whole number", number);
  if (arg.type == ArgType::kInt)
    return Value(static_cast<int64_t>(numbers.front()));
  if (arg.type == ArgType::kFloat) return Value(numbers.front());
  if (arg.type == ArgType::kFloats) return Value(numbers);
  return Value(std::vector<int64_t>(numbers.begin(), numbers.end()));
}

const ArgInfo* FindArg(const OperatorInfo& info, std::string_view name) {
  const auto it =
      std::find_if(info.args.begin(), info.args.end(),
                   [&](const ArgInfo& arg) { return arg.name == name; });
  return it == info.args.end() ? nullptr : &*it;
}

// Returns the argument that takes the URI: the reader's first without a
// default. readers.numpy has none, since it takes one of two. nullptr: there is
// none.
const ArgInfo* PathArgOf(const OperatorInfo& reader, bool is_folder) {
  if (reader.name == "readers.numpy")
    return FindArg(reader, is_folder ? "path" : "array");
  const auto first = std::ranges::find_if(reader.args, [](const ArgInfo& arg) {
    return !arg.default_value.has_value();
  });
  return first == reader.args.end() ? nullptr : &*first;
}

absl::Status AddGiven(const OperatorInfo& info, const KnownReader& known,
                      Node* node) {
  for (const auto& [name, texts] : known.args) {
    const ArgInfo* const arg = FindArg(info, name);
    if (arg == nullptr) {
      std::vector<std::string_view> names;
      for (const ArgInfo& each : info.args) names.push_back(each.name);
      return InvalidArgument("{} has no argument \"{}\": want one of {}",
                             info.name, Excerpt(name), fmt::join(names, ", "));
    }
    absl::StatusOr<Value> value = ValueFrom(*arg, texts);
    if (value.ok())
      if (absl::Status status = CompleteArgument(*arg, &*value); !status.ok())
        value = status;
    if (!value.ok())
      return Annotate(value.status(), fmt::format("argument \"{}\"", name));
    node->args[name] = *std::move(value);
  }
  return absl::OkStatus();
}

absl::Status AddDefaults(const OperatorInfo& info, Node* node) {
  for (const ArgInfo& arg : info.args) {
    if (node->args.contains(arg.name)) continue;
    if (!arg.default_value)
      return InvalidArgument("{} wants the argument \"{}\": {}", info.name,
                             arg.name, arg.doc);
    node->args[arg.name] = *arg.default_value;
  }
  return absl::OkStatus();
}

// Sets the outputs' types, if the arguments determine them.
absl::Status AddTypes(const OperatorInfo& info, GuessedReader* guess) {
  if (info.stored_types) return absl::OkStatus();
  absl::StatusOr<std::vector<ValueType>> types = InferTypes(&guess->node, {});
  if (!types.ok()) return Annotate(types.status(), info.name);
  guess->types = *std::move(types);
  return absl::OkStatus();
}

void AddFieldNames(const OperatorInfo& info, std::string_view format,
                   GuessedReader* guess) {
  if (!info.outputs_of.empty()) {
    const auto it = guess->node.args.find(info.outputs_of);
    if (const auto* names = std::get_if<std::vector<std::string>>(&it->second))
      guess->fields = *names;
    return;
  }
  if (format == "cifar100")
    guess->fields = {"image", "fine_label", "coarse_label"};
  else if (format == "array_record")
    guess->fields = {"record"};
  else if (format == "numpy")
    guess->fields = {"array"};
  else if (format == "tokens")
    guess->fields = {"tokens"};
  else
    guess->fields = {"image", "label"};
}

}  // namespace

absl::StatusOr<GuessedReader> GuessReader(const std::string& given_uri,
                                          const KnownReader& known,
                                          const SourceLimits& limits) {
  ASSIGN_OR_RETURN(bool is_folder, IsFolder(given_uri, StorageOf(limits)));
  ASSIGN_OR_RETURN(FolderFormat found,
                   FormatOf(given_uri, is_folder, known.format, limits));
  auto& [format, uri] = found;
  if (format.starts_with(kPrefix)) format.erase(0, kPrefix.size());
  GuessedReader guess;
  guess.node.op = std::string(kPrefix) + format;
  const OperatorInfo* const info = FindOperator(guess.node.op);
  if (info == nullptr || format == "external") {
    std::vector<std::string_view> formats;
    for (const OperatorInfo& each : AllOperators())
      if (each.name.starts_with(kPrefix) && each.name != kExternalReader)
        formats.push_back(std::string_view(each.name).substr(kPrefix.size()));
    return InvalidArgument("no format \"{}\": want one of {}", Excerpt(format),
                           fmt::join(formats, ", "));
  }
  RETURN_IF_ERROR(AddGiven(*info, known, &guess.node));
  if (format == "numpy" && !is_folder && !guess.node.args.contains("pattern"))
    if (std::optional<std::string> pattern = TakePattern(&uri, limits)) {
      guess.node.args["pattern"] = *std::move(pattern);
      is_folder = true;
    }
  const ArgInfo* const path = PathArgOf(*info, is_folder);
  if (path == nullptr)
    return Unimplemented("{} takes no path of its own", guess.node.op);
  if (!guess.node.args.contains(path->name)) {
    if (path->type == ArgType::kStrings)
      guess.node.args[path->name] = std::vector<std::string>{uri};
    else
      guess.node.args[path->name] = uri;
  }
  const auto* paths =
      std::get_if<std::vector<std::string>>(&guess.node.args[path->name]);
  RETURN_IF_ERROR(
      GuessFields(paths != nullptr ? *paths : std::vector<std::string>{uri},
                  limits, &guess));
  RETURN_IF_ERROR(AddDefaults(*info, &guess.node));
  RETURN_IF_ERROR(AddTypes(*info, &guess));
  AddFieldNames(*info, format, &guess);
  return guess;
}

}  // namespace leat::worker
