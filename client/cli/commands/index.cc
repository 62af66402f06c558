// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/index.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "client/cli/commands/daemon.h"
#include "client/cli/views/listing.h"
#include "core/counted.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

constexpr size_t kMaxClassesNamed = 20;
// The worker ends by itself when the time is over, unless a hanging file system
// prevents it.
constexpr absl::Duration kGrace = absl::Seconds(10);

// A folder without class folders has one class without a name.
std::string ClassesText(const Json& classes) {
  if (classes.empty() || classes == Json::array({""})) return "";
  std::vector<std::string> names;
  for (const Json& each : classes) {
    if (names.size() == kMaxClassesNamed) break;
    names.push_back(each.is_string() ? each.get<std::string>() : "?");
  }
  return fmt::format("{}: {}{}", classes.size(), fmt::join(names, ", "),
                     classes.size() > names.size() ? ", ..." : "");
}

std::string ShardsText(const Json& shards) {
  if (!shards.is_object()) return "";
  const uint64_t least = Whole(shards, "least_records");
  const uint64_t most = Whole(shards, "most_records");
  if (least == most)
    return fmt::format("{} of {}", Whole(shards, "count"),
                       Counted(most, "record"));
  return fmt::format("{} of {} to {} records", Whole(shards, "count"), least,
                     most);
}

// Returns "about 1200 (150 in 8 of 64 files)" if some files were listed, and
// what is known if none was in time.
std::string RecordsText(const Json& report) {
  if (!At(report, "records").is_number())
    return fmt::format("not counted in time; {} or more; \"leat index\" counts",
                       Whole(report, "records_found"));
  if (!report.contains("sampled")) return Text(report, "records");
  return fmt::format("about {} ({} in {} of {} files; \"leat index\" counts)",
                     Text(report, "records"), Whole(report, "sampled.records"),
                     Whole(report, "sampled.files"),
                     Whole(report, "sampled.of_files"));
}

std::string FilesText(const Json& files) {
  if (!files.is_object()) return "";
  const uint64_t count = Whole(files, "count");
  const uint64_t least = Whole(files, "least_bytes");
  const uint64_t most = Whole(files, "most_bytes");
  return least == most
             ? fmt::format("{} of {}", count, Size(most))
             : fmt::format("{} of {} to {}", count, Size(least), Size(most));
}

std::string IndexText(const Json& index) {
  if (!index.is_object()) return "";
  return fmt::format("{} in {}", Size(Whole(index, "bytes")),
                     Counted(Whole(index, "blocks"), "block"));
}

std::string ReadText(const Json& report) {
  if (!report.contains("records_read")) return "";
  return fmt::format("{}, {} bad",
                     Counted(Whole(report, "records_read"), "record"),
                     Whole(report, "bad_records"));
}

// Returns "sample 0 (/data/a.tar: 0.jpg): jpg 110 KiB, cls 1 B".
std::string ExampleText(const Json& report) {
  if (!report.contains("example")) return "";
  std::vector<std::string> parts;
  const Json& fields = Items(report, "fields");
  const Json& bytes = Items(At(report, "example"), "field_bytes");
  for (size_t i = 0; i < std::min(fields.size(), bytes.size()); ++i)
    parts.push_back(
        fmt::format("{} {}", Text(fields[i], "name"),
                    Size(bytes[i].is_number() ? bytes[i].get<uint64_t>() : 0)));
  return fmt::format("sample {} ({}): {}", Text(report, "example.sample"),
                     Text(report, "example.record"), fmt::join(parts, ", "));
}

// Lists the first files, if there are several.
Section FilesSection(const Json& report) {
  Section section;
  const Json& first = Items(At(report, "files"), "first");
  if (first.size() < 2) return section;
  section.table.columns = {{"FILE"}, {"SIZE(MiB)", 0, false, true}};
  for (const Json& file : first)
    section.table.rows.push_back(
        {Text(file, "uri"), Mebibytes(Whole(file, "bytes"))});
  const uint64_t count = Whole(report, "files.count");
  if (count > first.size())
    section.title =
        fmt::format("The first {} of {} files", first.size(), count);
  return section;
}

Section FieldsSection(const Json& fields) {
  Section section;
  section.table.columns = {{"FIELD"},
                           {"TYPE"},
                           {"LEAST(bytes)", 2, false, true},
                           {"MEAN(bytes)", 1, false, true},
                           {"MOST(bytes)", 2, false, true}};
  for (const Json& field : fields) {
    const bool read = field.contains("mean_bytes");
    const auto size = [&](const char* name) {
      return read ? Text(field, name) : std::string("-");
    };
    section.table.rows.push_back({{Text(field, "name"), Tone::kBold},
                                  Text(field, "type"),
                                  size("least_bytes"),
                                  size("mean_bytes"),
                                  size("most_bytes")});
  }
  return section;
}

// Says how long a token file's documents are, and how full packed rows.
void AddSequences(const Json& report, Section* facts) {
  const Json& found = At(report, "sequences");
  if (!found.is_object()) return;
  facts->facts.push_back(
      {"Documents",
       fmt::format("{} of {} elements in all, {} empty",
                   Text(found, "documents"), Text(found, "elements"),
                   Text(found, "empty"))});
  facts->facts.push_back(
      {"Lengths", fmt::format("{} to {}, mean {:.1f}", Text(found, "least"),
                              Text(found, "most"), Number(found, "mean"))});
  std::string quantiles;
  for (const char* each : {"p1", "p10", "p50", "p90", "p99"})
    quantiles += fmt::format("{}{} % {}", quantiles.empty() ? "" : ", ",
                             each + 1, Text(found, each));
  facts->facts.push_back({"Up to", quantiles});
}

Section PackedSection(const Json& report) {
  Section section;
  const Json& packed = Items(At(report, "sequences"), "packed");
  if (packed.empty()) return section;
  section.title =
      fmt::format("Packed into rows with how=\"{}\"", Text(packed[0], "how"));
  section.table.columns = {{"LENGTH", 0, false, true},
                           {"ROWS", 0, false, true},
                           {"FULL(%)", 0, false, true}};
  for (const Json& each : packed) {
    const bool fits = !each.contains("error");
    section.table.rows.push_back(
        {Text(each, "length"), fits ? Text(each, "rows") : "-",
         fits ? fmt::format("{:.2f}", 100 * Number(each, "fill"))
              : Text(each, "error")});
  }
  return section;
}

Section BadSection(const Json& report) {
  Section section;
  section.title =
      fmt::format("Bad records ({} of {} that were read)",
                  Whole(report, "bad_records"), Whole(report, "records_read"));
  section.table.columns = {
      {"SAMPLE", 0, false, true}, {"RECORD", 1}, {"REASON"}};
  for (const Json& bad : Items(report, "bad"))
    section.table.rows.push_back({Text(bad, "sample"),
                                  Text(bad, "record"),
                                  {Text(bad, "error"), Tone::kBad}});
  return section;
}

// Makes the path absolute, as a training script's reader has it, so that both
// have the same fingerprint.
std::string AbsoluteUri(const std::string& uri) {
  if (uri.find("://") != std::string::npos) return uri;
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(uri, error);
  return error ? uri : path.lexically_normal().string();
}

std::vector<std::string> ArgsOf(const Options& options, const std::string& uri,
                                const Listing& listing, bool progress) {
  std::vector<std::string> argv = {
      "index", "--within-ms",
      std::to_string(absl::ToInt64Milliseconds(listing.within))};
  if (progress) argv.push_back("--progress");
  if (listing.pipeline) {
    argv.insert(argv.end(), {"--pipeline", uri});
    if (!options.source.empty())
      argv.insert(argv.end(), {"--source", options.source});
    return argv;
  }
  argv.insert(argv.end(), {"--read", std::to_string(listing.read_records)});
  if (!options.format.empty())
    argv.insert(argv.end(), {"--format", options.format});
  for (const std::string& arg : options.reader_args)
    argv.insert(argv.end(), {"--arg", arg});
  for (const uint64_t length : options.row_lengths)
    argv.insert(argv.end(), {"--row-length", std::to_string(length)});
  if (options.seek) argv.push_back("--seek");
  if (listing.look) argv.push_back("--look");
  argv.insert(argv.end(), {"--", AbsoluteUri(uri)});
  return argv;
}

// Returns the report, or the error that the worker printed.
absl::StatusOr<Json> ReportOf(const Ended& ended) {
  absl::StatusOr<Json> report = ParseObject(ended.out, "leat-worker index");
  if (!report.ok())
    return Internal("leat-worker index ended with {}: {}", ended.exit_code,
                    ended.err.empty() ? Message(report.status())
                                      : std::string_view(ended.err));
  if (report->contains("error")) {
    const auto code =
        static_cast<absl::StatusCode>(Whole(*report, "error.code"));
    return absl::Status(
        code == absl::StatusCode::kOk ? absl::StatusCode::kUnknown : code,
        Text(*report, "error.message"));
  }
  return report;
}

}  // namespace

View IndexView(Json report) {
  View view;
  view.names = {report.contains("fingerprint") ? Text(report, "fingerprint")
                                               : Text(report, "uri")};
  const uint64_t bad = Whole(report, "bad_records");
  Section facts;
  facts.facts = {
      {"Dataset", {Text(report, "name"), Tone::kBold}},
      {"URI", Text(report, "uri")},
      {"Format", Text(report, "format")},
      {"Reader", Text(report, "reader")},
      {"Records", RecordsText(report)},
      {"Size", report.contains("bytes") ? Size(Whole(report, "bytes")) : ""},
      {"Files", FilesText(At(report, "files"))},
      {"Shards", ShardsText(At(report, "shards"))},
      {"Classes", ClassesText(Items(report, "classes"))},
      {"Index", IndexText(At(report, "index"))},
      {"Fingerprint", Text(report, "fingerprint")},
      {"Content", Text(report, "content")},
      {"Read", ReadText(report)},
      {"Example", ExampleText(report)}};
  if (bad > 0)
    for (auto& [title, cell] : facts.facts)
      if (title == "Read") cell.tone = Tone::kBad;
  if (report.contains("seek"))
    facts.facts.push_back(
        {"Seek indexes",
         fmt::format("{} of {} records ({}): {}", Whole(report, "seek.indexes"),
                     Text(report, "records"), Size(Whole(report, "seek.bytes")),
                     Text(report, "seek.path"))});
  AddSequences(report, &facts);
  std::erase_if(facts.facts,
                [](const auto& fact) { return fact.second.text.empty(); });
  for (const std::string& text : Strings(report, "left_out"))
    facts.lines.push_back({"Left out: " + text, Tone::kWarn});
  for (const Json& each : Items(report, "passed_over"))
    facts.lines.push_back(
        {"Passed over: " + PassedOverLine(each), Tone::kWarn});
  view.sections = {std::move(facts), FieldsSection(Items(report, "fields")),
                   PackedSection(report), FilesSection(report)};
  if (bad > 0) view.sections.push_back(BadSection(report));
  view.data = std::move(report);
  return view;
}

absl::StatusOr<Json> ListDataset(
    const Session& session, const std::string& uri, const Listing& listing,
    const std::function<void(std::string_view)>& on_err) {
  ASSIGN_OR_RETURN(const Ended ended,
                   RunDaemon(session, "leat-worker",
                             ArgsOf(session.options(), uri, listing,
                                    /*progress=*/on_err != nullptr),
                             listing.within + kGrace, on_err));
  return ReportOf(ended);
}

absl::StatusOr<Json> ListDatasetAloud(const Session& session,
                                      const std::string& uri,
                                      const Listing& listing) {
  const Environment& environment = session.environment();
  if (!environment.err_is_terminal || session.IsDumb())
    return ListDataset(session, uri, listing, nullptr);
  absl::StatusOr<Json> report =
      ListDataset(session, uri, listing, [&environment](std::string_view text) {
        while (text.ends_with('\n')) text.remove_suffix(1);
        text.remove_prefix(text.find_last_of('\n') + 1);
        *environment.err << "\r" << Printable(text) << "\x1b[K" << std::flush;
      });
  *environment.err << "\r\x1b[K" << std::flush;
  return report;
}

absl::StatusOr<int> RunIndex(Session& session) {
  const Options& options = session.options();
  ASSIGN_OR_RETURN(const absl::Duration within,
                   ParseTimeFlag("--within", options.within));
  return session.Show([&]() -> absl::StatusOr<Session::Result> {
    ASSIGN_OR_RETURN(Json report,
                     ListDatasetAloud(session, options.path,
                                      {.read_records = options.read_records,
                                       .within = within}));
    const bool healthy = Whole(report, "bad_records") == 0;
    return Session::Result{IndexView(std::move(report)),
                           healthy ? kGood : kUnhealthy};
  });
}

}  // namespace leat::cli
