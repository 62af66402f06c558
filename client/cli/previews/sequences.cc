// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/sequences.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "client/cli/base/text.h"
#include "client/cli/previews/origins.h"
#include "client/cli/previews/png.h"
#include "core/counted.h"
#include "core/observe/previews.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

using Numbers = std::vector<int64_t> (*)(std::span<const std::byte> bytes);

template <class T>
std::vector<int64_t> NumbersOf(std::span<const std::byte> bytes) {
  std::vector<int64_t> numbers(bytes.size() / sizeof(T));
  for (size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, &bytes[i * sizeof(T)], sizeof(T));
    numbers[i] = static_cast<int64_t>(value);
  }
  return numbers;
}

// Returns nullptr if the type's values are not whole numbers.
Numbers NumbersOfType(std::string_view dtype) {
  static const std::map<std::string_view, Numbers> kTypes = {
      {"uint8", NumbersOf<uint8_t>},   {"int8", NumbersOf<int8_t>},
      {"uint16", NumbersOf<uint16_t>}, {"int16", NumbersOf<int16_t>},
      {"uint32", NumbersOf<uint32_t>}, {"int32", NumbersOf<int32_t>},
      {"int64", NumbersOf<int64_t>}};
  const auto found = kTypes.find(dtype);
  return found == kTypes.end() ? nullptr : found->second;
}

bool IsSequence(const Field& field) {
  return field.shape.size() == 2 && field.shape[1] > 0 &&
         NumbersOfType(field.dtype) != nullptr;
}

const Field* FieldNamed(const Rows& rows, std::string_view name) {
  for (const Field& field : rows.fields)
    if (field.name == name) return &field;
  return nullptr;
}

std::vector<int64_t> RowOf(const Field& field, size_t row) {
  const size_t count = static_cast<size_t>(field.shape[0]);
  const size_t bytes = field.data.size() / count;
  return NumbersOfType(field.dtype)(
      std::span(field.data).subspan(row * bytes, bytes));
}

// The fields that fn.pack adds.
struct PackFields {
  std::string segments = "segment_ids", positions = "positions";
};

PackFields PackFieldsOf(const Json& job) {
  PackFields fields;
  const Json& sources = Items(job, "spec.sources");
  const Json& pipeline =
      sources.empty() ? At(job, "spec.pipeline") : At(sources[0], "pipeline");
  const Json& nodes = Items(pipeline, "nodes");
  for (const Json& output : Items(pipeline, "outputs")) {
    const uint64_t node = Whole(output, "ref.node");
    if (node >= nodes.size() || Text(nodes[node], "op") != "pack") continue;
    const uint64_t values = Items(nodes[node], "inputs").size();
    const uint64_t number = Whole(output, "ref.output");
    if (number == values) fields.segments = Text(output, "name");
    if (number == values + 1) fields.positions = Text(output, "name");
  }
  return fields;
}

const Field* TokensOf(const Rows& rows, std::string_view wanted,
                      const PackFields& pack) {
  if (!wanted.empty()) {
    const Field* const field = FieldNamed(rows, wanted);
    return field != nullptr && IsSequence(*field) ? field : nullptr;
  }
  for (const Field& field : rows.fields)
    if (IsSequence(field) && field.name != pack.segments &&
        field.name != pack.positions)
      return &field;
  return nullptr;
}

// Returns "web.bin: record 17, elements 5 to 9 of 30".
std::string DocumentText(const Json& document) {
  std::string text = Text(document, "file");
  if (const std::string key = Text(document, "key"); !key.empty())
    text += ": " + key;
  else if (document.contains("index"))
    text += ": record " + Text(document, "index");
  const uint64_t begin = Whole(document, "begin");
  const uint64_t elements = Whole(document, "elements");
  const uint64_t all = Whole(document, "document_elements");
  if (elements < all)
    text += fmt::format(", elements {} to {} of {}", begin,
                        begin + elements - 1, all);
  return text;
}

// Cuts a row where the segment's number changes.
std::vector<Segment> SegmentsOf(std::span<const int64_t> segments,
                                uint64_t length) {
  if (segments.empty()) return {{.begin = 0, .size = length}};
  std::vector<Segment> cut;
  for (uint64_t i = 0; i < segments.size(); ++i) {
    if (i == 0 || segments[i] != segments[i - 1])
      cut.push_back({.begin = i, .padding = segments[i] == 0});
    ++cut.back().size;
  }
  return cut;
}

std::string SegmentText(std::span<const int64_t> tokens,
                        const Vocabulary* vocabulary) {
  return vocabulary == nullptr ? fmt::format("{}", fmt::join(tokens, " "))
                               : vocabulary->Decode(tokens);
}

void AddTexts(std::span<const int64_t> tokens, const Vocabulary* vocabulary,
              std::vector<Segment>* segments) {
  uint64_t left = kMaxTextElements;
  for (Segment& segment : *segments) {
    if (segment.padding) continue;
    const uint64_t shown = std::min(segment.size, left);
    segment.text =
        SegmentText(tokens.subspan(segment.begin, shown), vocabulary);
    left -= shown;
    if (shown < segment.size)
      segment.text +=
          fmt::format(" [and {}]", Counted(segment.size - shown, "element"));
  }
}

uint64_t SampleOf(const Rows& rows, size_t row) {
  return row < rows.samples.size() ? rows.samples[row] : kNoSample;
}

// Begins the caption: which row and sample it is, and its source.
void AddOrigin(const Rows& rows, size_t i, const Origins& origins,
               SequenceRow* row) {
  row->caption = fmt::format("row {}", i);
  const uint64_t sample = SampleOf(rows, i);
  if (sample == kNoSample) return;
  row->caption += fmt::format("  sample {}", sample);
  if (const std::string_view source = origins.Of(sample).source;
      !source.empty())
    row->caption += fmt::format("  {}", source);
  const Field* const valid = FieldNamed(rows, "valid");
  row->bad = valid != nullptr && WholeAt(RowsOf(*valid), i) == 0;
  if (row->bad) row->caption += "  bad sample";
}

// Adds where the documents are stored. Segments and documents are in the row's
// order.
absl::Status AddDocuments(const std::string& record,
                          std::vector<Segment>* segments) {
  ASSIGN_OR_RETURN(const Json json, ParseObject(record, "record"));
  const Json& listed = Items(json, "documents.listed");
  for (size_t i = 0; i < std::min(listed.size(), segments->size()); ++i)
    if (Segment& segment = (*segments)[i];
        !segment.padding && segment.begin == Whole(listed[i], "row_begin"))
      segment.document = DocumentText(listed[i]);
  return absl::OkStatus();
}

// Ends the caption of a packed row: how many documents it has, and how full it
// is.
void AddFill(const Rows& rows, size_t i, uint64_t length, SequenceRow* row,
             std::string* note) {
  const uint64_t sample = SampleOf(rows, i);
  if (rows.record && sample != kNoSample && note->empty()) {
    const absl::StatusOr<std::string> record = rows.record(sample);
    const absl::Status status =
        record.ok() ? AddDocuments(*record, &row->segments) : record.status();
    if (!status.ok())
      *note = fmt::format("documents are not known: {}", Message(status));
  }
  row->documents = static_cast<uint64_t>(std::ranges::count_if(
      row->segments, [](const Segment& each) { return !each.padding; }));
  row->caption += fmt::format(
      "  {}  {} % full", Counted(row->documents, "document"),
      Percent(static_cast<double>(row->filled) / static_cast<double>(length)));
}

}  // namespace

bool ShowsSequences(const Rows& rows, std::string_view field) {
  std::vector<FieldRows> fields;
  for (const Field& each : rows.fields) fields.push_back(RowsOf(each));
  if (field.empty() && FindImage(fields, "").ok()) return false;
  const absl::StatusOr<Json> job = ParseObject(rows.job_json, "job");
  return job.ok() && TokensOf(rows, field, PackFieldsOf(*job)) != nullptr;
}

absl::StatusOr<Sequences> SequencesOf(const Rows& rows, std::string_view field,
                                      const Vocabulary* vocabulary) {
  ASSIGN_OR_RETURN(const Json job, ParseObject(rows.job_json, "job"));
  const PackFields pack = PackFieldsOf(job);
  const Field& tokens = *TokensOf(rows, field, pack);
  if (tokens.shape[0] == 0)
    return InvalidArgument("epoch {}, step {} has no row", rows.epoch,
                           rows.step);
  const Field* segments = FieldNamed(rows, pack.segments);
  if (segments != nullptr &&
      (!IsSequence(*segments) || segments->shape != tokens.shape))
    segments = nullptr;
  const Origins origins(job);
  Sequences made{.length = static_cast<uint64_t>(tokens.shape[1])};
  uint64_t filled = 0;
  for (size_t i = 0; i < static_cast<size_t>(tokens.shape[0]); ++i) {
    SequenceRow& row = made.rows.emplace_back();
    row.segments = SegmentsOf(
        segments == nullptr ? std::vector<int64_t>() : RowOf(*segments, i),
        made.length);
    AddTexts(RowOf(tokens, i), vocabulary, &row.segments);
    for (const Segment& segment : row.segments)
      row.filled += segment.padding ? 0 : segment.size;
    filled += row.filled;
    AddOrigin(rows, i, origins, &row);
    if (segments != nullptr) AddFill(rows, i, made.length, &row, &made.note);
  }
  made.title =
      fmt::format("{}  epoch {}  step {}", Text(job, "spec.name"), rows.epoch,
                  OfSteps(rows.step, " of ", rows.steps_per_epoch));
  made.detail = fmt::format(
      "{} of {} rows, field {} {} of {} elements, {}, plan {}",
      made.rows.size(), rows.batch, tokens.name, tokens.dtype, made.length,
      DatasetsText(job), HexOfBase64(Text(job, "plan_hash")).substr(0, 12));
  if (segments != nullptr)
    made.detail += fmt::format(
        ", {} % full",
        Percent(static_cast<double>(filled) /
                static_cast<double>(made.length * made.rows.size())));
  return made;
}

}  // namespace leat::cli
