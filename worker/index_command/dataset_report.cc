// SPDX-License-Identifier: Apache-2.0
#include "worker/index_command/dataset_report.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/pipeline/shape_inference.h"
#include "core/redaction.h"
#include "core/status.h"
#include "nlohmann/json.hpp"
#include "worker/index_command/image_check.h"
#include "worker/index_command/report_sink.h"
#include "worker/index_command/seek_indexer.h"
#include "worker/index_command/sequence_report.h"
#include "worker/serving/reader_call.h"
#include "worker/source/each_file.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxBadShown = 100;
constexpr int kReadThreads = 8;
constexpr size_t kMaxFilesShown = 10;
constexpr size_t kMaxShownBytes = 2048;  // of an example

bool IsOver(const SourceLimits& limits) {
  return limits.cancelled != nullptr && *limits.cancelled;
}

// The sizes of one field in the records that were read.
struct FieldSizes {
  uint64_t count = 0, sum = 0, least = UINT64_MAX, most = 0;
  void Add(uint64_t bytes) {
    ++count;
    sum += bytes;
    least = std::min(least, bytes);
    most = std::max(most, bytes);
  }
};

struct BadRecord {
  uint64_t sample = 0;
  std::string record, error;
};

// The first record that could be read.
struct ExampleRecord {
  uint64_t sample = UINT64_MAX;
  std::string record;
  std::vector<uint64_t> bytes;   // one per field
  std::vector<std::byte> first;  // of the first field, at most kMaxShownBytes
};

// Reads records of one opened source: `count` of them, spread evenly.
class RecordTrial {
 public:
  RecordTrial(const SourceLimits& limits, ImageCheck images,
              ReportProgress* progress)
      : limits_(limits), images_(std::move(images)), progress_(progress) {}

  // `first`: the index in the dataset of the first of the source's `samples`.
  absl::Status Read(const Source& source, uint64_t first, uint64_t samples,
                    uint64_t count) {
    count = std::min(count, samples);
    return ForEachIndex(count, kReadThreads, limits_.cancelled, [&](size_t i) {
      const uint64_t sample = samples * i / count;
      Take(source, first, sample, source.Read(sample));
      return absl::OkStatus();
    });
  }

  // Returns the bad records, ordered by sample.
  std::vector<BadRecord> TakeBad() {
    MutexLock lock(&mu_);
    std::sort(bad_.begin(), bad_.end(),
              [](const auto& a, const auto& b) { return a.sample < b.sample; });
    return std::move(bad_);
  }
  uint64_t num_bad() {
    MutexLock lock(&mu_);
    return num_bad_;
  }
  std::vector<FieldSizes> sizes() {
    MutexLock lock(&mu_);
    return sizes_;
  }
  ExampleRecord example() {
    MutexLock lock(&mu_);
    return example_;
  }

 private:
  void Take(const Source& source, uint64_t first, uint64_t sample,
            const absl::StatusOr<StoredSample>& stored) {
    ++progress_->records_read;
    const absl::Status status =
        stored.ok() ? images_.Check(*stored) : stored.status();
    if (!status.ok() && IsOver(limits_)) return;  // it ran out of time
    std::string record = source.Describe(sample);
    const std::string why(Message(status));
    MutexLock lock(&mu_);
    if (!status.ok()) {
      ++num_bad_;
      if (bad_.size() < kMaxBadShown)
        bad_.push_back({first + sample, std::move(record), why});
      return;
    }
    sizes_.resize(std::max(sizes_.size(), stored->fields.size()));
    for (size_t i = 0; i < stored->fields.size(); ++i)
      sizes_[i].Add(stored->fields[i].bytes.size());
    if (first + sample >= example_.sample) return;
    const std::span<const std::byte> head = stored->fields[0].bytes.first(
        std::min(stored->fields[0].bytes.size(), kMaxShownBytes));
    example_ = {
        first + sample, std::move(record), {}, {head.begin(), head.end()}};
    for (const auto& field : stored->fields)
      example_.bytes.push_back(field.bytes.size());
  }

  const SourceLimits& limits_;
  const ImageCheck images_;
  ReportProgress* const progress_;
  Mutex mu_;
  std::vector<FieldSizes> sizes_ ABSL_GUARDED_BY(mu_);
  std::vector<BadRecord> bad_ ABSL_GUARDED_BY(mu_);
  uint64_t num_bad_ ABSL_GUARDED_BY(mu_) = 0;
  ExampleRecord example_ ABSL_GUARDED_BY(mu_);
};

absl::Status ReadSome(const ReportOptions& options, const Node& node,
                      const ReportSink& sink, RecordTrial* reader) {
  if (options.read_records == 0) return absl::OkStatus();
  if (sink.kept().empty()) {
    ASSIGN_OR_RETURN(const auto source,
                     OpenSource(node, sink.whole(), options.limits));
    return reader->Read(*source, 0, source->num_samples(),
                        options.read_records);
  }
  SourceLimits limits = options.limits;
  limits.one_of_many = true;
  const uint64_t blocks = sink.kept().size();
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t count = options.read_records * (i + 1) / blocks -
                           options.read_records * i / blocks;
    const ReportSink::Block& block = sink.kept()[i];
    ASSIGN_OR_RETURN(const auto source,
                     OpenSource(node, sink.whole() + block.bytes, limits));
    RETURN_IF_ERROR(reader->Read(*source, block.first,
                                 std::min(block.samples, source->num_samples()),
                                 count));
  }
  return absl::OkStatus();
}

Json ShardsJson(const ShardTable& shards) {
  uint64_t least = UINT64_MAX, most = 0;
  for (uint32_t i = 0; i < shards.num_shards(); ++i) {
    least = std::min(least, shards.range(i).size());
    most = std::max(most, shards.range(i).size());
  }
  return {{"count", shards.num_shards()},
          {"least_records", shards.num_shards() == 0 ? 0 : least},
          {"most_records", most}};
}

// Returns the reader's arguments, without the secrets of their URIs.
Json ArgsJson(const Node& node) {
  Json args = Json::object();
  for (const auto& [name, value] : node.args)
    std::visit(
        [&, key = name](const auto& each) {
          using T = std::decay_t<decltype(each)>;
          if constexpr (std::is_same_v<T, std::string>) {
            args[key] = RedactedUri(each);
          } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
            Json list = Json::array();
            for (const std::string& text : each)
              list.push_back(RedactedUri(text));
            args[key] = std::move(list);
          } else if constexpr (std::is_same_v<T, LongList>) {
            Json first = Json::array();
            for (const std::string& text : each.first)
              first.push_back(RedactedUri(text));
            args[key] = {{"count", each.count}, {"first", std::move(first)}};
          } else if constexpr (!std::is_same_v<T, NodeRef>) {
            args[key] = each;
          }
        },
        value);
  return args;
}

Json PassedOverJson(const std::vector<PassedOver>& passed_over) {
  Json list = Json::array();
  for (const PassedOver& each : passed_over)
    list.push_back(
        {{"what", each.what}, {"count", each.count}, {"first", each.first}});
  return list;
}

Json FieldsJson(const GuessedReader& guess, const std::vector<ValueType>& types,
                const std::vector<FieldSizes>& sizes) {
  Json fields = Json::array();
  for (size_t i = 0; i < std::max(types.size(), sizes.size()); ++i) {
    Json field = {{"name", i < guess.fields.size() ? guess.fields[i]
                                                   : fmt::format("{}", i)},
                  {"type", i < types.size() ? TypeText(types[i]) : ""}};
    if (i < sizes.size() && sizes[i].count > 0) {
      field["least_bytes"] = sizes[i].least;
      field["mean_bytes"] = sizes[i].sum / sizes[i].count;
      field["most_bytes"] = sizes[i].most;
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

// Returns the files that a look lists: `most` of them, spread evenly.
std::vector<ListedFile> SomeOf(const std::vector<ListedFile>& files,
                               size_t most) {
  if (files.size() <= most) return files;
  std::vector<ListedFile> some;
  for (size_t i = 0; i < most; ++i)
    some.push_back(files[i * files.size() / most]);
  return some;
}

uint64_t BytesOf(const std::vector<ListedFile>& files) {
  uint64_t bytes = 0;
  for (const ListedFile& file : files) bytes += file.size;
  return bytes;
}

Json FilesJson(const std::vector<ListedFile>& files) {
  uint64_t least = UINT64_MAX, most = 0;
  Json first = Json::array();
  for (const ListedFile& file : files) {
    least = std::min(least, file.size);
    most = std::max(most, file.size);
    if (first.size() < kMaxFilesShown)
      first.push_back({{"uri", RedactedUri(file.uri)}, {"bytes", file.size}});
  }
  return {{"count", files.size()},
          {"bytes", BytesOf(files)},
          {"least_bytes", least},
          {"most_bytes", most},
          {"first", std::move(first)}};
}

Json ExampleJson(const ExampleRecord& example,
                 const std::vector<ValueType>& types) {
  Json json = {{"sample", example.sample},
               {"record", example.record},
               {"field_bytes", example.bytes}};
  if (!types.empty() && IsSequence(types[0]))
    json["first"] = WholeNumbers(example.first, types[0].dtype);
  return json;
}

// Passes the lengths of a block's documents to `report`.
absl::Status AddLengths(const Node& node, SourceLimits limits,
                        std::string_view head, std::string_view block,
                        SequenceReport* report) {
  limits.one_of_many = true;
  ASSIGN_OR_RETURN(const auto source,
                   OpenSource(node, std::string(head).append(block), limits));
  for (uint64_t i = 0; i < source->num_samples(); ++i) {
    ASSIGN_OR_RETURN(const int64_t length, source->IndexedColumn("length", i));
    report->Add(static_cast<uint64_t>(length));
  }
  return absl::OkStatus();
}

// The reader and the files that follow from the URI before anything is listed.
struct FirstLook {
  GuessedReader guess;
  std::vector<ListedFile> files;  // all; empty: the reader has no list of files
  std::vector<ListedFile> listed;  // those that are listed
  bool sampled() const { return listed.size() < files.size(); }
};

absl::StatusOr<FirstLook> FirstLookAt(const ReportOptions& options) {
  FirstLook looked;
  ASSIGN_OR_RETURN(looked.guess,
                   GuessReader(options.uri, options.known, options.limits));
  absl::StatusOr<std::vector<ListedFile>> files =
      FilesOfReader(looked.guess.node, options.limits);
  if (!files.ok() && !(options.look && IsOver(options.limits)))
    return files.status();
  if (files.ok()) looked.files = *std::move(files);
  looked.listed = SomeOf(looked.files,
                         options.look ? kMaxLookedFiles : looked.files.size());
  return looked;
}

// Returns the node with the listed files in place of all.
Node ListedNode(const FirstLook& looked) {
  Node node = looked.guess.node;
  if (!looked.sampled()) return node;
  std::vector<std::string> paths;
  for (const ListedFile& file : looked.listed) paths.push_back(file.uri);
  node.args["paths"] = std::move(paths);
  return node;
}

Json ReportHead(const ReportOptions& options, const FirstLook& looked) {
  const Node& node = looked.guess.node;
  Json report = {{"uri", RedactedUri(options.uri)},
                 {"format", node.op.substr(node.op.find('.') + 1)},
                 {"args", ArgsJson(node)},
                 {"reader", ReaderCall(node)}};
  if (!looked.files.empty()) report["files"] = FilesJson(looked.files);
  return report;
}

// Returns the report in place of the one after a complete listing.
std::string NotListed(const ReportOptions& options, const FirstLook& looked,
                      const ReportProgress& progress) {
  Json report = ReportHead(options, looked);
  report["records"] = nullptr;
  report["records_found"] = progress.index_records.load();
  report["fields"] = FieldsJson(looked.guess, looked.guess.types, {});
  report["left_out"] = looked.guess.left_out;
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// After a look at some of the files: adds how many records all of them have, if
// they are as dense.
void AddEstimate(const FirstLook& looked, uint64_t records, Json* report) {
  const auto all = static_cast<double>(BytesOf(looked.files));
  const auto some = static_cast<double>(BytesOf(looked.listed));
  const double about =
      some == 0 ? 0 : static_cast<double>(records) * (all / some);
  (*report)["sampled"] = {{"files", looked.listed.size()},
                          {"of_files", looked.files.size()},
                          {"records", records}};
  (*report)["records"] = static_cast<uint64_t>(about);
  (*report)["bytes"] = BytesOf(looked.files);
  (*report)["name"] = NameOfPath(RedactedUri(report->value("uri", "")));
  for (const char* of_all : {"shards", "fingerprint", "content", "index"})
    report->erase(of_all);
}

}  // namespace

absl::StatusOr<std::string> ReportDataset(const ReportOptions& options,
                                          ReportProgress* progress) {
  ASSIGN_OR_RETURN(const FirstLook looked, FirstLookAt(options));
  if (options.look && options.known.format.empty() &&
      options.known.args.empty() &&
      looked.guess.node.op == "readers.image_folder" && IsLocalUri(options.uri))
    return NotListed(options, looked, *progress);
  const Node node = ListedNode(looked);
  SourceLimits limits = options.limits;
  if (!looked.listed.empty()) limits.files = &looked.listed;
  SequenceReport sequences(options.rows);
  ReportSink::Use use;
  if (node.op == "readers.tokens")  // its index has the lengths
    use = [&](std::string_view head, std::string_view block) {
      return AddLengths(node, options.limits, head, block, &sequences);
    };
  ReportSink sink(limits.max_index_bytes, progress, std::move(use));
  const absl::StatusOr<BuiltIndex> listed = BuildIndexInto(node, limits, &sink);
  if (!listed.ok()) {
    if (options.look && IsOver(options.limits))
      return NotListed(options, looked, *progress);
    return listed.status();
  }
  const BuiltIndex& built = *listed;
  const GuessedReader& guess = looked.guess;
  progress->index_records = built.shards.num_samples();
  const std::vector<ValueType>& types =
      guess.types.empty() ? built.types : guess.types;
  ASSIGN_OR_RETURN(ImageCheck images, ImageCheck::Create(node, types));
  RecordTrial reader(options.limits, std::move(images), progress);
  const absl::Status read = ReadSome(options, node, sink, &reader);
  if (!read.ok() && !(options.look && IsOver(options.limits))) return read;
  Json bad = Json::array();
  for (const BadRecord& each : reader.TakeBad())
    bad.push_back({{"sample", each.sample},
                   {"record", each.record},
                   {"error", each.error}});
  Json report = ReportHead(options, looked);
  report.update(
      Json{{"name", built.name},
           {"records", built.shards.num_samples()},
           {"bytes", built.bytes},
           {"shards", ShardsJson(built.shards)},
           {"classes", built.classes},
           {"fields", FieldsJson(guess, types, reader.sizes())},
           {"left_out", guess.left_out},
           {"passed_over", PassedOverJson(built.passed_over)},
           {"fingerprint", ToHex(built.fingerprint)},
           {"content", ToHex(built.content)},
           {"index", {{"bytes", sink.bytes()}, {"blocks", sink.blocks()}}},
           {"records_read", progress->records_read.load()},
           {"bad_records", reader.num_bad()},
           {"bad", std::move(bad)}});
  if (const ExampleRecord example = reader.example();
      example.sample != UINT64_MAX)
    report["example"] = ExampleJson(example, types);
  if (sequences.documents() > 0) report["sequences"] = sequences.Finish();
  if (looked.sampled())
    AddEstimate(looked, built.shards.num_samples(), &report);
  if (options.seek) {
    ASSIGN_OR_RETURN(
        const WrittenSeekFile seek,
        WriteSeekFile(node, built, limits, &progress->records_read));
    report["seek"] = {
        {"path", seek.path}, {"bytes", seek.bytes}, {"indexes", seek.indexes}};
  }
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leat::worker
