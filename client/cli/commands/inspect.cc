// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/inspect.h"

#include <sys/stat.h>

#include <filesystem>
#include <map>

#include "absl/strings/ascii.h"
#include "client/cli/base/file.h"
#include "client/cli/base/position_file.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/index.h"
#include "client/cli/convert/folder.h"
#include "client/cli/previews/jpeg.h"
#include "client/cli/previews/vocabulary.h"
#include "core/file_kind.h"
#include "core/status.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxFileBytes = 256ull << 20;
constexpr size_t kHeadBytes = 64;  // enough to recognise a file
constexpr uint64_t kLookedRecords = 20;
constexpr size_t kMaxJsonBytes = 1 << 20;
constexpr size_t kShownKeys = 6;

absl::StatusOr<std::string> ReadWholeImage(const std::string& path) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, kMaxFileBytes));
  if (bytes.size() <= kMaxFileBytes) return bytes;
  return InvalidArgument("{}: want at most {} bytes", path, kMaxFileBytes);
}

Inspection InspectImage(const std::string& path, std::string_view file) {
  const JpegReport report = InspectJpeg(file);
  Inspection out;
  out.healthy = report.problems.empty();
  out.view.names = {path};
  out.view.data = Json{{"kind", "jpeg"},
                       {"path", path},
                       {"bytes", file.size()},
                       {"width", report.width},
                       {"height", report.height},
                       {"components", report.components},
                       {"precision_bits", report.precision},
                       {"process", report.process},
                       {"arithmetic", report.arithmetic},
                       {"colors", report.colors},
                       {"subsampling", report.subsampling},
                       {"scans", report.scans},
                       {"restart_interval", report.restart_interval},
                       {"exif_orientation", report.orientation},
                       {"icc_profile", report.icc_profile},
                       {"metadata_bytes", report.metadata_bytes},
                       {"decodes", report.decodes},
                       {"problems", report.problems}};
  Section facts;
  facts.facts = {
      {"File", {path, Tone::kBold}},
      {"Kind", "JPEG"},
      {"Bytes", std::to_string(file.size())},
      {"Size (pixels)", fmt::format("{} x {}", report.width, report.height)},
      {"Components", fmt::format("{} ({})", report.components, report.colors)},
      {"Precision (bits)", std::to_string(report.precision)},
      {"Process", report.process + (report.arithmetic ? ", arithmetic" : "")},
      {"Subsampling", report.subsampling},
      {"Scans", std::to_string(report.scans)},
      {"Restart interval (MCUs)", std::to_string(report.restart_interval)},
      {"EXIF orientation",
       report.orientation == 0 ? "" : std::to_string(report.orientation)},
      {"ICC profile", report.icc_profile ? "yes" : "no"},
      {"Metadata", Size(report.metadata_bytes)},
      {"Decodes",
       report.decodes ? Cell("yes", Tone::kGood) : Cell("no", Tone::kBad)}};
  Section problems;
  problems.title = "Problems";
  for (const std::string& problem : report.problems) {
    problems.lines.push_back({problem, Tone::kBad, 2});
  }
  out.view.sections = {std::move(facts)};
  if (!out.healthy) out.view.sections.push_back(std::move(problems));
  return out;
}

absl::StatusOr<Inspection> InspectPosition(const std::string& path,
                                           std::string_view file) {
  const absl::StatusOr<PositionInfo> position = ParsePosition(file);
  if (!position.ok())
    return DataLoss("{}: {}", path, Message(position.status()));
  Inspection out;
  out.view.names = {position->job};
  out.view.data = Json{{"kind", "position"},
                       {"path", path},
                       {"format", position->format},
                       {"job", position->job},
                       {"plan_hash", position->plan_hash},
                       {"epoch", position->epoch},
                       {"step", position->step}};
  Section facts;
  facts.facts = {{"File", {path, Tone::kBold}},
                 {"Kind", fmt::format("position, format {}", position->format)},
                 {"Job", position->job},
                 {"Plan hash", position->plan_hash},
                 {"Next batch", fmt::format("epoch {}, step {}",
                                            position->epoch, position->step)}};
  out.view.sections = {std::move(facts)};
  return out;
}

struct ClassCount {
  uint64_t images = 0;
  uint64_t bytes = 0;
  uint64_t other = 0;  // files without an image's name
};

void CountFile(const fs::directory_entry& entry, ClassCount& count) {
  std::error_code error;
  if (!entry.is_regular_file(error)) return;
  if (!IsImageName(entry.path())) {
    ++count.other;
    return;
  }
  const uint64_t bytes = entry.file_size(error);
  ++count.images;
  count.bytes += error ? 0 : bytes;
}

absl::StatusOr<std::map<std::string, ClassCount>> CountClasses(
    const std::string& path, ClassCount& direct) {
  std::map<std::string, ClassCount> classes;
  ASSIGN_OR_RETURN(const FolderEntries top, ListFolder(path));
  for (const fs::directory_entry& file : top.files) CountFile(file, direct);
  bool any = false;
  for (const std::string& name : top.directories) {
    ClassCount& count = classes[name];
    RETURN_IF_ERROR(
        WalkClass(path, name, [&](const std::string&, const auto& file) {
          CountFile(file, count);
          return absl::OkStatus();
        }));
    any |= count.images > 0;
  }
  if (!any) classes.clear();
  return classes;
}

absl::StatusOr<Local> InspectFolder(const std::string& path) {
  ClassCount direct, total;
  ASSIGN_OR_RETURN(auto classes, CountClasses(path, direct));
  const uint64_t outside = classes.empty() ? 0 : direct.images;
  if (classes.empty() && direct.images > 0) classes[""] = direct;
  Inspection out;
  Section list;
  list.table.columns = {{"LABEL", 0, false, true},
                        {"CLASS"},
                        {"IMAGES", 0, false, true},
                        {"SIZE(MiB)", 0, false, true}};
  Json items = Json::array();
  for (const auto& [name, count] : classes) {
    total.images += count.images;
    total.bytes += count.bytes;
    total.other += count.other;
    out.view.names.push_back(name);
    list.table.rows.push_back({std::to_string(list.table.rows.size()), name,
                               std::to_string(count.images),
                               Mebibytes(count.bytes)});
    items.push_back(Json{{"label", items.size()},
                         {"class", name},
                         {"images", count.images},
                         {"bytes", count.bytes}});
  }
  Section facts;
  facts.facts = {{"Folder", {path, Tone::kBold}},
                 {"Classes", std::to_string(classes.size())},
                 {"Images", std::to_string(total.images)},
                 {"Size", Size(total.bytes)},
                 {"Other files", std::to_string(total.other)}};
  std::vector<std::string> problems;
  if (total.images == 0) {
    problems.push_back(
        fmt::format("no images: want files that end in {} here or in "
                    "sub-directories, one a class",
                    ImageNames()));
  }
  if (outside > 0) {
    problems.push_back(fmt::format(
        "{} images beside the class directories belong to no class", outside));
  }
  for (const std::string& problem : problems) {
    facts.lines.push_back({problem, Tone::kBad, 0});
  }
  out.healthy = problems.empty();
  out.view.data = Json{{"kind", "image_folder"}, {"path", path},
                       {"images", total.images}, {"bytes", total.bytes},
                       {"classes", items},       {"problems", problems}};
  out.view.sections = {std::move(facts), std::move(list)};
  return Local{std::move(out), total.images == 0 || direct.other > 0};
}

bool HasImages(const Inspection& folder) {
  return Whole(folder.view.data, "images") > 0;
}

bool IsJpegName(const fs::path& path) {
  std::string end = path.extension().string();
  for (char& c : end) c = absl::ascii_tolower(static_cast<unsigned char>(c));
  return end == ".jpg" || end == ".jpeg" || end == ".jpe";
}
// PNG, WebP and TIFF files sometimes have a JPEG's name; the worker decodes
// them.
bool IsOtherImage(std::string_view head) {
  for (const char* magic : {"\x89PNG", "RIFF", "II*", "MM"})
    if (head.starts_with(magic)) return true;
  return false;
}

// Returns the object in a file of JSON; null: it is not one, or a large one.
Json JsonObjectIn(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path, kMaxJsonBytes);
  if (!text.ok() || text->size() > kMaxJsonBytes || !text->starts_with('{'))
    return {};
  Json json = Json::parse(*text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() ? std::move(json) : Json();
}

// Returns whether a file has a pipeline or a job.
bool HasPipeline(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return false;
  const Json json = JsonObjectIn(path);
  return json.contains("nodes") || json.contains("pipeline") ||
         json.contains("sources") || At(json, "job.spec").is_object();
}

// Describes a JSON file that no reader knows, since trainers keep positions in
// such files; nullopt: it is not one.
std::optional<std::string> JsonText(const std::string& path) {
  const Json json = JsonObjectIn(path);
  if (json.is_null()) return std::nullopt;
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return fmt::format(
      "{}: a JSON file with the keys {}, and neither a dataset nor a position. "
      "leat inspect wants the bytes that position() returned as a file of "
      "their own; an epoch and a step are what start=(epoch, step) of "
      "job.batches "
      "takes, and leat describe job NAME shows where a job is",
      path, JoinFew(keys, kShownKeys));
}

// Adds the text that the example's tokens begin with. kInvalidArgument: there
// are no tokens. Others: as Vocabulary::Load.
absl::Status AddText(const Options& options, View* view) {
  const Json& first = Items(view->data, "example.first");
  if (first.empty())
    return InvalidArgument(
        "--vocabulary {}: {} has no sequences of whole numbers",
        options.vocabulary, options.path);
  ASSIGN_OR_RETURN(const Vocabulary vocabulary,
                   Vocabulary::Load(options.vocabulary));
  std::vector<int64_t> tokens;
  for (const Json& token : first)
    tokens.push_back(token.is_number() ? token.get<int64_t>() : -1);
  const std::string text = vocabulary.Decode(tokens);
  view->data["example"]["text"] = text;
  Section& section = view->sections.emplace_back();
  section.title =
      fmt::format("Text of sample {}, the first {} tokens",
                  Text(view->data, "example.sample"), tokens.size());
  section.lines.push_back({text});
  return absl::OkStatus();
}

// Returns whether a reader may know this, although it is not a path here.
bool IsUri(std::string_view path) {
  return path.find("://") != std::string_view::npos;
}
bool IsPattern(std::string_view path) {
  return path.find_first_of("*?[{") != std::string_view::npos;
}

}  // namespace

absl::StatusOr<Local> InspectLocal(const std::string& path) {
  if (IsUri(path)) return Local{std::nullopt, true};
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    if (IsPattern(path)) return Local{std::nullopt, true};
    if (status.type() == fs::file_type::none)
      return FailedPrecondition("{}: {}", path, error.message());
    return NotFound("{}: no such file or folder", path);
  }
  if (fs::is_directory(status)) return InspectFolder(path);
  struct stat info {};
  if (!fs::is_regular_file(status) && stat(path.c_str(), &info) == 0)
    return InvalidArgument("{}: {}, want a file or a folder", path,
                           FileKind(info.st_mode));
  ASSIGN_OR_RETURN(const std::string head, ReadFile(path, kHeadBytes));
  const bool position = LooksLikePosition(head);
  if (!position && !head.starts_with("\xFF\xD8") &&
      (!IsJpegName(path) || IsOtherImage(head)))
    return Local{std::nullopt, true};
  ASSIGN_OR_RETURN(const std::string file, ReadWholeImage(path));
  if (!position) return Local{InspectImage(path, file), false};
  ASSIGN_OR_RETURN(Inspection inspection, InspectPosition(path, file));
  return Local{std::move(inspection), false};
}

absl::StatusOr<Inspection> Inspect(const Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const absl::Duration within,
                   ParseTimeFlag("--within", options.look_within));
  Local local;
  const bool reader = !options.format.empty() || !options.reader_args.empty();
  const bool pipeline = !reader && HasPipeline(options.path);
  const bool told = reader || pipeline || !options.vocabulary.empty() ||
                    !options.row_lengths.empty();
  if (!options.source.empty() && !pipeline)
    return InvalidArgument("--source {}: {} is no file with a job",
                           options.source, options.path);
  if (!options.row_lengths.empty() && pipeline)
    return InvalidArgument(
        "--row-length {}: the pipeline in {} says how long its rows are",
        options.row_lengths[0], options.path);
  if (!told) {
    ASSIGN_OR_RETURN(local, InspectLocal(options.path));
    if (!local.maybe_dataset) return *std::move(local.found);
  }
  absl::StatusOr<Json> report =
      ListDatasetAloud(session, options.path,
                       {.read_records = kLookedRecords,
                        .within = within,
                        .look = true,
                        .pipeline = pipeline});
  // Images were counted here already.
  const bool is_images =
      report.ok() && local.found && Text(*report, "format") == "image_folder";
  if (is_images || (!report.ok() && local.found && HasImages(*local.found)))
    return *std::move(local.found);
  if (!report.ok() && !told)
    if (const std::optional<std::string> what = JsonText(options.path))
      return InvalidArgument("{}", *what);
  RETURN_IF_ERROR(report.status());
  Inspection out;
  out.healthy = Whole(*report, "bad_records") == 0;
  out.view = IndexView(*std::move(report));
  Json data = {{"kind", Text(out.view.data, "format")}, {"path", options.path}};
  data.update(out.view.data);
  out.view.data = std::move(data);
  out.view.names = {options.path};
  if (!options.vocabulary.empty()) RETURN_IF_ERROR(AddText(options, &out.view));
  return out;
}

}  // namespace leat::cli
