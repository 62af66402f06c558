// SPDX-License-Identifier: Apache-2.0
//
//   uri ─► format, by names ─► arguments that were given ─► the argument that
//   takes the uri ─► fields, by the first file ─► defaults ─► types
#include "worker/source/guess_reader.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "core/arguments.h"
#include "core/job.h"
#include "core/redaction.h"
#include "core/shape_inference.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

// The beginning of what somebody typed, with nothing that a terminal obeys.
std::string Excerpt(std::string_view text) {
  constexpr size_t kMost = 64;
  std::string excerpt(text.substr(0, kMost));
  for (char& c : excerpt)
    if (c < ' ' || c > '~') c = '?';
  return excerpt;
}

constexpr std::string_view kPrefix = "readers.";
constexpr int kMaxLooked = 1000;  // entries of a folder

struct NameRule {
  std::string_view ending, format;
};
constexpr NameRule kEndings[] = {{".tar", "webdataset"},
                                 {".tfrecord", "tfrecord"},
                                 {".tfrecords", "tfrecord"},
                                 {".parquet", "parquet"},
                                 {".parq", "parquet"},
                                 {".pq", "parquet"},
                                 {".npy", "numpy"},
                                 {".array_record", "array_record"},
                                 {".arrayrecord", "array_record"},
                                 {"-idx3-ubyte", "idx"},
                                 {"-idx3-ubyte.gz", "idx"},
                                 {".idx3-ubyte", "idx"},
                                 {".idx3-ubyte.gz", "idx"},
                                 {".mdb", "caffe2"},
                                 {".json", "coco"},
                                 {".txt", "file_list"},
                                 {".lst", "file_list"}};

// The argument of a format that takes the URI.
std::string_view PathArgOf(std::string_view format, bool is_folder) {
  if (format == "coco") return "annotations";
  if (format == "idx") return "images";
  if (format == "files") return "files";
  if (format == "numpy") return is_folder ? "path" : "array";
  for (const char* of : {"image_folder", "file_list", "mds", "caffe", "caffe2"})
    if (format == of) return "path";
  return "paths";
}

bool Exists(const Storage& storage, std::string_view folder,
            std::string_view name) {
  return storage.Stat(JoinUri(folder, name)).ok();
}

// By a local folder's files: the format that most of them have.
std::string FormatOfFiles(const std::string& folder) {
  std::map<std::string, int> counts;
  std::error_code error;
  int looked = 0;
  for (auto it = std::filesystem::directory_iterator(folder, error);
       !error && it != std::filesystem::directory_iterator() &&
       looked < kMaxLooked;
       it.increment(error), ++looked) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("data_batch_") && name.ends_with(".bin"))
      ++counts["cifar10"];
    const std::string format = FormatOfName(name);
    if (!format.empty() && format != "file_list" && format != "coco")
      ++counts[format];
  }
  const auto most = std::max_element(
      counts.begin(), counts.end(),
      [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? "" : most->first;
}

std::string FormatOfFolder(const std::string& uri, const Storage& storage) {
  if (Exists(storage, uri, "index.json")) return "mds";
  if (Exists(storage, uri, "data.mdb")) return "caffe2";
  std::string format;
  if (IsLocalUri(uri)) {
    constexpr std::string_view kFile = "file://";
    format =
        FormatOfFiles(uri.starts_with(kFile) ? uri.substr(kFile.size()) : uri);
  }
  return format.empty() ? "image_folder" : format;
}

bool IsPattern(std::string_view uri) {
  return uri.find_first_of("*?[{") != std::string_view::npos;
}

// Whether it is a folder. kNotFound: it is nothing.
absl::StatusOr<bool> IsFolder(const std::string& uri, const Storage& storage) {
  if (uri.ends_with('/')) return true;
  const absl::StatusOr<StoredObject> found = storage.Stat(uri);
  if (found.ok()) return false;
  // Stat of a folder: a local one is refused, a remote one has no such key.
  if (absl::IsFailedPrecondition(found.status())) return true;
  if (IsPattern(uri)) return false;
  if (absl::IsNotFound(found.status()) && !IsLocalUri(uri) &&
      FormatOfName(uri).empty())
    return true;
  return found.status();
}

absl::StatusOr<double> NumberFrom(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || at != end)
    return InvalidArgument("\"{}\" is no number", text);
  return number;
}

// A value of the argument's type out of texts.
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
    if (whole && (number != static_cast<double>(static_cast<int64_t>(number)) ||
                  number > 0x1p53 || number < -0x1p53))
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

// The outputs' types, where the arguments say them.
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
  else
    guess->fields = {"image", "label"};
}

}  // namespace

std::string FormatOfName(std::string_view uri) {
  uri = uri.substr(0, uri.find('?') == std::string_view::npos ||
                              uri.find("://") == std::string_view::npos
                          ? uri.size()
                          : uri.find('?'));
  const std::string_view name = uri.substr(uri.find_last_of('/') + 1);
  for (const NameRule& rule : kEndings)
    if (name.ends_with(rule.ending)) return std::string(rule.format);
  // "train.tfrecord-00000-of-01024".
  if (name.find(".tfrecord") != std::string_view::npos) return "tfrecord";
  if (name.find(".array_record-") != std::string_view::npos)
    return "array_record";
  return "";
}

absl::StatusOr<GuessedReader> GuessReader(const std::string& uri,
                                          const KnownReader& known,
                                          const SourceLimits& limits) {
  const Storage& storage = StorageOf(limits);
  ASSIGN_OR_RETURN(const bool is_folder, IsFolder(uri, storage));
  std::string format = known.format;
  if (format.empty())
    format = is_folder ? FormatOfFolder(uri, storage) : FormatOfName(uri);
  if (format.empty())
    return InvalidArgument(
        "{}: its name does not say what it is; --format names a reader",
        RedactedUri(uri));
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
  const std::string path_arg(PathArgOf(format, is_folder));
  if (!guess.node.args.contains(path_arg)) {
    const ArgInfo* const arg = FindArg(*info, path_arg);
    if (arg->type == ArgType::kStrings)
      guess.node.args[path_arg] = std::vector<std::string>{uri};
    else
      guess.node.args[path_arg] = uri;
  }
  const auto* paths =
      std::get_if<std::vector<std::string>>(&guess.node.args[path_arg]);
  RETURN_IF_ERROR(
      GuessFields(paths != nullptr ? *paths : std::vector<std::string>{uri},
                  limits, &guess));
  RETURN_IF_ERROR(AddDefaults(*info, &guess.node));
  RETURN_IF_ERROR(AddTypes(*info, &guess));
  AddFieldNames(*info, format, &guess);
  return guess;
}

}  // namespace leat::worker
