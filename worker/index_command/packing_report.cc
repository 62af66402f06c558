// SPDX-License-Identifier: Apache-2.0
//
// Lengths come from the blocks of the packed index. Rows that are cut repeat a
// document where a block begins, so documents are counted by their numbers:
//
//   block 0   documents 0 ... 41
//   block 1   documents 41 ... 80    41 is passed over
#include "worker/index_command/packing_report.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/pipeline/shape_inference.h"
#include "core/plan/checked_job.h"
#include "core/redaction.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "leat/stored/v1/indexes.pb.h"
#include "nlohmann/json.hpp"
#include "rpc/wire/messages.h"
#include "worker/index_command/sequence_report.h"
#include "worker/serving/reader_call.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/arranged/arranged_source.h"
#include "worker/source/index_blob.h"
#include "worker/source/varint.h"

namespace leat::worker {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxShownElements = 512;  // of a row
constexpr uint64_t kMaxShownDocuments = 100;

// Takes the lengths of documents from the blocks of a packed index.
class Lengths final : public IndexSink {
 public:
  Lengths(const Packing& packing, ReportProgress* progress)
      : packing_(packing), progress_(progress), report_({}) {}

  absl::Status Add(std::string bytes, uint64_t samples) override {
    if (first_blocks_ < 2) {
      ++first_blocks_;
      first_ += bytes;
    }
    if (samples == 0) return absl::OkStatus();  // the head
    BlobReader reader(bytes);
    stored::v1::PackedBlock block;
    RETURN_IF_ERROR(reader.Next(&block));
    std::string_view rest = block.lengths();
    uint64_t document = block.first_document();
    for (uint64_t length = 0; TakeVarint(&rest, &length); ++document)
      if (document >= report_.documents()) RETURN_IF_ERROR(Take(length));
    return absl::OkStatus();
  }

  // Returns the head and the first block, which is an index of its rows.
  const std::string& first() const { return first_; }
  Json Finish(uint64_t rows) {
    Json sequences = report_.Finish();
    const double room =
        static_cast<double>(rows) * static_cast<double>(packing_.length);
    const bool cut = packing_.how == PackHow::kCut;
    Json packed = {{"how", cut ? "cut" : "fit"},
                   {"length", packing_.length},
                   {"rows", rows},
                   {"fill", cut ? 1 : static_cast<double>(fitted_) / room}};
    sequences["packed"] = Json::array({std::move(packed)});
    return sequences;
  }

 private:
  absl::Status Take(uint64_t length) {
    if (packing_.how == PackHow::kFit) {
      ASSIGN_OR_RETURN(const uint64_t pieces,
                       PiecesOf(packing_, report_.documents(), length));
      if (pieces > 0) fitted_ += length + (pieces - 1) * packing_.overlap;
    }
    report_.Add(length);
    ++progress_->index_records;
    return absl::OkStatus();
  }

  const Packing packing_;
  ReportProgress* const progress_;
  SequenceReport report_;
  std::string first_;
  int first_blocks_ = 0;
  uint64_t fitted_ = 0;  // elements of all pieces
};

Json DocumentsJson(const RowDocuments& documents) {
  Json list = Json::array();
  for (const RowDocument& each : documents.listed) {
    Json json = {{"path", each.place.file},
                 {"begin", each.begin},
                 {"elements", each.elements},
                 {"row_begin", each.row_begin}};
    if (each.place.index) json["index"] = *each.place.index;
    list.push_back(std::move(json));
  }
  return {{"count", documents.count}, {"listed", std::move(list)}};
}

// Reads the first row.
absl::StatusOr<Json> ExampleJson(const Source& rows, DType dtype) {
  ASSIGN_OR_RETURN(const StoredSample row, rows.Read(0));
  ASSIGN_OR_RETURN(const auto documents,
                   rows.DocumentsOf(0, 0, kMaxShownDocuments));
  Json bytes = Json::array();
  for (const auto& field : row.fields) bytes.push_back(field.bytes.size());
  const std::span<const std::byte> first = row.fields[0].bytes;
  Json example = {
      {"sample", 0},
      {"record", rows.Describe(0)},
      {"field_bytes", std::move(bytes)},
      {"first",
       WholeNumbers(first.first(std::min(first.size(),
                                         kMaxShownElements * SizeOf(dtype))),
                    dtype)}};
  if (documents) example["documents"] = DocumentsJson(*documents);
  return example;
}

// Returns the name, in the batch, of what the pack makes as `output`: its own
// if the pipeline puts it there or something that is computed from it first.
std::string NameOf(const CheckedGraph& checked, uint32_t output) {
  const NodeRef wanted{checked.stored, output};
  for (const auto& [name, value] : checked.graph.outputs) {
    NodeRef from = value;
    while (from.node > checked.stored &&
           !checked.graph.nodes[from.node].inputs.empty())
      from = checked.graph.nodes[from.node].inputs[0];
    if (from == wanted) return name;
  }
  // The node's last outputs.
  const size_t count = checked.types[checked.stored].size();
  if (output + 2 < count) return fmt::format("value {}", output);
  return output + 1 == count ? "positions" : "segment_ids";
}

// Returns the object that the text is. JSON that is nested without a bound
// would overflow the stack when it is copied or written.
absl::StatusOr<Json> ObjectIn(std::string_view text) {
  bool deep = false;
  const auto keep = [&](int depth, Json::parse_event_t, Json&) {
    deep = deep || depth > kMaxPipelineDepth;
    return !deep;
  };
  Json json = Json::parse(text, keep, /*allow_exceptions=*/false);
  if (deep)
    return InvalidArgument("it is nested over {} levels", kMaxPipelineDepth);
  if (!json.is_object())
    return InvalidArgument("want the JSON of a pipeline or of a job");
  return json;
}

// Returns the reader's first path, for people.
std::string UriOf(const Node& reader) {
  for (const char* name : {"files", "paths", "path"}) {
    const auto found = reader.args.find(name);
    if (found == reader.args.end()) continue;
    if (const auto* one = std::get_if<std::string>(&found->second))
      return RedactedUri(*one);
    if (const auto* many =
            std::get_if<std::vector<std::string>>(&found->second);
        many != nullptr && !many->empty())
      return RedactedUri(many->front());
  }
  return "";
}

}  // namespace

absl::StatusOr<JobSpec> ReadPipeline(std::string_view text,
                                     const std::string& source) {
  ASSIGN_OR_RETURN(const Json json, ObjectIn(text));
  std::string spec(text);
  if (json.contains("nodes"))
    spec = Json{{"name", "pipeline"}, {"batch", 1}, {"pipeline", json}}.dump();
  else if (json.contains("job") && json["job"].is_object() &&
           json["job"].contains("spec"))
    spec = json["job"]["spec"].dump();
  ASSIGN_OR_RETURN(JobSpec job, rpc::JobSpecFromJson(spec));
  if (!IsMixture(job) && source.empty()) return job;
  std::vector<std::string> names;
  for (MixedSource& each : job.sources) {
    if (each.name == source)
      return JobSpec{.name = job.name,
                     .pipeline = std::move(each.pipeline),
                     .selection = std::move(each.selection),
                     .batch = job.batch};
    names.push_back(each.name);
  }
  return InvalidArgument("source \"{}\": want {}", source,
                         names.empty() ? "none, since the job is no mixture"
                                       : fmt::format("one of the mixture's: {}",
                                                     fmt::join(names, ", ")));
}

absl::StatusOr<std::string> ReportPacking(const JobSpec& job,
                                          const SourceLimits& limits,
                                          ReportProgress* progress) {
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(job));
  const Node reader = checked.sources[0].graph.nodes[checked.sources[0].reader];
  ASSIGN_OR_RETURN(BuiltIndex listed, BuildIndex(reader, limits));
  DatasetInfo base;
  base.name = listed.name;
  base.reader = CanonicalText(reader);
  base.fingerprint = listed.fingerprint;
  base.content = listed.content;
  base.shards = listed.shards;
  base.bytes = listed.bytes;
  base.types = listed.types;
  ASSIGN_OR_RETURN(checked, CheckJob(job, {&base, 1}));
  const CheckedGraph& graph = checked.sources[0];
  if (graph.stored == graph.reader)
    return InvalidArgument(
        "pipeline of job \"{}\" packs no rows: want one with fn.pack; leat "
        "inspect {} shows its dataset",
        job.name, UriOf(reader));
  Arrangement arrangement = job.selection.arrangement;
  ASSIGN_OR_RETURN(arrangement.pack,
                   ReadPackNode(graph.graph.nodes[graph.stored]));
  ASSIGN_OR_RETURN(std::shared_ptr<const Source> documents,
                   OpenSource(reader, listed.blob, limits));
  Lengths lengths(arrangement.pack->packing, progress);
  SourceLimits own = limits;
  own.blocks = &lengths;
  own.max_blocks_bytes = limits.max_index_bytes;
  ASSIGN_OR_RETURN(
      const BuiltIndex rows,
      Arrange(arrangement,
              {.base = base, .reader = reader, .source = *documents}, own));
  ASSIGN_OR_RETURN(const std::unique_ptr<Source> source,
                   OpenArranged(lengths.first(), {documents, base.fingerprint},
                                rows.fingerprint));
  const std::vector<ValueType>& types = graph.types[graph.stored];
  Json fields = Json::array(), passed_over = Json::array();
  for (size_t i = 0; i < types.size(); ++i)
    fields.push_back({{"name", NameOf(graph, static_cast<uint32_t>(i))},
                      {"type", TypeText(types[i])}});
  for (const PassedOver& each : rows.passed_over)
    passed_over.push_back(
        {{"what", each.what}, {"count", each.count}, {"first", each.first}});
  ASSIGN_OR_RETURN(Json example, ExampleJson(*source, types[0].dtype));
  const Json report = {{"uri", UriOf(reader)},
                       {"format", reader.op.substr(reader.op.find('.') + 1)},
                       {"reader", ReaderCall(reader)},
                       {"name", rows.name},
                       {"records", base.shards.num_samples()},
                       {"bytes", base.bytes},
                       {"fields", std::move(fields)},
                       {"passed_over", std::move(passed_over)},
                       {"fingerprint", ToHex(rows.fingerprint)},
                       {"content", ToHex(rows.content)},
                       {"sequences", lengths.Finish(rows.shards.num_samples())},
                       {"example", std::move(example)}};
  return report.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace leat::worker
