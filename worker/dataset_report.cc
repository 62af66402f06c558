// SPDX-License-Identifier: Apache-2.0
//
// Blocks that are kept: a block arrives with its samples; every 2^k-th one is
// kept, and k grows when there are too many, which drops every second one. So
// those that are left are spread evenly, whatever their number turns out to be:
//
//   0 1 2 3 4 5 6 7  ─► 0 . 2 . 4 . 6 . 8 . ─► 0 . . . 4 . . . 8 . . . 12
#include "worker/dataset_report.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "core/mutex.h"
#include "core/redaction.h"
#include "core/shape_inference.h"
#include "core/status.h"
#include "nlohmann/json.hpp"
#include "worker/image_check.h"
#include "worker/seek_indexer.h"
#include "worker/source/each_file.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxKeptBlocks = 8;
constexpr size_t kMaxBadShown = 100;
constexpr int kReadThreads = 8;

class ReportSink final : public IndexSink {
 public:
  ReportSink(uint64_t max_whole_bytes, ReportProgress* progress)
      : max_whole_bytes_(max_whole_bytes), progress_(progress) {}

  struct Block {
    uint64_t number = 0;
    uint64_t first = 0, samples = 0;
    std::string bytes;
  };

  absl::Status Add(std::string bytes, uint64_t samples) override {
    bytes_ += bytes.size();
    ++blocks_;
    progress_->index_bytes = bytes_;
    progress_->index_records = samples_ + samples;
    if (samples == 0) {
      if (bytes_ > max_whole_bytes_)
        return ResourceExhausted(
            "an index of more than {} bytes, which is read whole: the limit",
            max_whole_bytes_);
      whole_ += bytes;
      return absl::OkStatus();
    }
    const uint64_t number = with_samples_++;
    if (number % every_ == 0) {
      kept_.push_back({number, samples_, samples, std::move(bytes)});
      if (kept_.size() > kMaxKeptBlocks) {
        every_ *= 2;
        std::erase_if(kept_, [this](const Block& block) {
          return block.number % every_ != 0;
        });
      }
    }
    samples_ += samples;
    return absl::OkStatus();
  }

  // The head; of an index without blocks of samples all of it.
  const std::string& whole() const { return whole_; }
  const std::vector<Block>& kept() const { return kept_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t blocks() const { return blocks_; }

 private:
  const uint64_t max_whole_bytes_;
  ReportProgress* const progress_;
  std::string whole_;
  std::vector<Block> kept_;
  uint64_t every_ = 1;
  uint64_t with_samples_ = 0, blocks_ = 0, samples_ = 0, bytes_ = 0;
};

// What the records that were read have of one field.
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

// Reads records of one opened source: `count` of them, spread evenly.
class RecordReader {
 public:
  RecordReader(const SourceLimits& limits, ImageCheck images,
               ReportProgress* progress)
      : limits_(limits), images_(std::move(images)), progress_(progress) {}

  // `first`: in the dataset, of the source's `samples`.
  absl::Status Read(const Source& source, uint64_t first, uint64_t samples,
                    uint64_t count) {
    count = std::min(count, samples);
    return ForEachIndex(count, kReadThreads, limits_.cancelled, [&](size_t i) {
      const uint64_t sample = samples * i / count;
      Take(source, first, sample, source.Read(sample));
      return absl::OkStatus();
    });
  }

  // By sample.
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

 private:
  void Take(const Source& source, uint64_t first, uint64_t sample,
            const absl::StatusOr<StoredSample>& stored) {
    ++progress_->records_read;
    const absl::Status status =
        stored.ok() ? images_.Check(*stored) : stored.status();
    BadRecord bad;
    if (!status.ok())
      bad = {first + sample, source.Describe(sample),
             std::string(Message(status))};
    MutexLock lock(&mu_);
    if (!status.ok()) {
      ++num_bad_;
      if (bad_.size() < kMaxBadShown) bad_.push_back(std::move(bad));
      return;
    }
    sizes_.resize(std::max(sizes_.size(), stored->fields.size()));
    for (size_t i = 0; i < stored->fields.size(); ++i)
      sizes_[i].Add(stored->fields[i].bytes.size());
  }

  const SourceLimits& limits_;
  const ImageCheck images_;
  ReportProgress* const progress_;
  Mutex mu_;
  std::vector<FieldSizes> sizes_ ABSL_GUARDED_BY(mu_);
  std::vector<BadRecord> bad_ ABSL_GUARDED_BY(mu_);
  uint64_t num_bad_ ABSL_GUARDED_BY(mu_) = 0;
};

absl::Status ReadSome(const ReportOptions& options, const Node& node,
                      const ReportSink& sink, RecordReader* reader) {
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

// Arguments as the reader has them, without the secrets of their URIs.
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

}  // namespace

absl::StatusOr<std::string> ReportDataset(const ReportOptions& options,
                                          ReportProgress* progress) {
  ASSIGN_OR_RETURN(const GuessedReader guess,
                   GuessReader(options.uri, options.known, options.limits));
  ReportSink sink(options.limits.max_index_bytes, progress);
  ASSIGN_OR_RETURN(const BuiltIndex built,
                   BuildIndexInto(guess.node, options.limits, &sink));
  progress->index_records = built.shards.num_samples();
  const std::vector<ValueType>& types =
      guess.types.empty() ? built.types : guess.types;
  ASSIGN_OR_RETURN(ImageCheck images, ImageCheck::Create(guess.node, types));
  RecordReader reader(options.limits, std::move(images), progress);
  RETURN_IF_ERROR(ReadSome(options, guess.node, sink, &reader));
  Json bad = Json::array();
  for (const BadRecord& each : reader.TakeBad())
    bad.push_back({{"sample", each.sample},
                   {"record", each.record},
                   {"error", each.error}});
  Json report = {
      {"uri", RedactedUri(options.uri)},
      {"name", built.name},
      {"format", guess.node.op.substr(guess.node.op.find('.') + 1)},
      {"args", ArgsJson(guess.node)},
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
      {"bad", std::move(bad)}};
  if (options.seek) {
    ASSIGN_OR_RETURN(const WrittenSeekFile seek,
                     WriteSeekFile(guess.node, built, options.limits,
                                   &progress->records_read));
    report["seek"] = {
        {"path", seek.path}, {"bytes", seek.bytes}, {"indexes", seek.indexes}};
  }
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leat::worker
