// SPDX-License-Identifier: Apache-2.0
//
// Listing: threads read the files' footers.
#include <algorithm>
#include <map>
#include <utility>

#include "core/counted.h"
#include "core/redaction.h"
#include "core/status.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/array_record/array_record.h"
#include "worker/source/array_record/riegeli_chunk.h"
#include "worker/source/content_hash.h"
#include "worker/source/each_file.h"
#include "worker/source/format_names.h"
#include "worker/source/index_blob.h"
#include "worker/source/packed/output_args.h"
#include "worker/source/record_paths.h"
#include "worker/source/source_storage.h"

namespace leat::worker {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr uint64_t kMagic = 0x71930e704fdae05e;

// A small message: its numbers, and its texts, by field.
struct Fields {
  std::map<int, uint64_t> numbers;
  std::map<int, std::string> texts;
  uint64_t Number(int field) const {
    const auto it = numbers.find(field);
    return it == numbers.end() ? 0 : it->second;
  }
};

absl::StatusOr<Fields> ParseFields(std::span<const std::byte> bytes) {
  Fields fields;
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const auto type = WireFormatLite::GetTagWireType(tag);
    bool ok = true;
    if (type == WireFormatLite::WIRETYPE_VARINT)
      ok = in.ReadVarint64(&fields.numbers[field]);
    else if (type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED)
      ok = WireFormatLite::ReadBytes(&in, &fields.texts[field]);
    else
      ok = WireFormatLite::SkipField(&in, tag);
    if (!ok) break;
  }
  if (!in.ConsumedEntireMessage()) return DataLoss("a malformed footer");
  return fields;
}

absl::StatusOr<uint64_t> FooterOffset(const StorageFile& file) {
  if (file.size() < 2 * kRiegeliBlock || file.size() % kRiegeliBlock != 0)
    return DataLoss(
        "{} bytes, want some blocks of 65536: no ArrayRecord file, or not "
        "written to its end",
        file.size());
  ASSIGN_OR_RETURN(
      const RiegeliRecords records,
      ReadRiegeliChunk(file, file.size() - kRiegeliBlock, kRiegeliBlock));
  if (records.ends.empty()) return DataLoss("its last block has no record");
  ASSIGN_OR_RETURN(const Fields postscript, ParseFields(records[0]));
  const uint64_t offset = postscript.Number(1);
  if (postscript.Number(2) != kMagic || offset > file.size() - kRiegeliBlock)
    return DataLoss("its last block is no ArrayRecord's (footer at {})",
                    offset);
  return offset;
}

absl::StatusOr<ArrayRecordFooter> ParseFooter(const RiegeliRecords& chunks,
                                              uint64_t footer_offset) {
  if (chunks.ends.empty()) return DataLoss("its footer is empty");
  ASSIGN_OR_RETURN(const Fields head, ParseFields(chunks[0]));
  const auto text = head.texts.find(1);
  if (text == head.texts.end()) return DataLoss("its footer has no head");
  ASSIGN_OR_RETURN(const Fields about,
                   ParseFields(std::as_bytes(std::span(text->second))));
  if (about.Number(1) != 1)
    return Unimplemented("ArrayRecord version {}: want 1", about.Number(1));
  ArrayRecordFooter footer;
  footer.records = about.Number(3);
  const size_t count = chunks.ends.size() - 1;
  if (about.Number(2) != count)
    return DataLoss("its footer has {} chunks, its head says {}", count,
                    about.Number(2));
  uint64_t records = 0;
  for (size_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(const Fields chunk, ParseFields(chunks[i + 1]));
    const uint64_t offset = chunk.Number(1);
    const uint64_t size = chunk.Number(3);
    if (i == 0) footer.group = size;
    if (size == 0 || size > footer.group ||
        (size < footer.group && i + 1 < count))
      return Unimplemented(
          "chunk {} has {} records, want {} as the first: groups of one size",
          i, size, footer.group);
    if (offset >= footer_offset || (i > 0 && offset <= footer.offsets.back()))
      return DataLoss("chunk {} is at {}, want ascending below {}", i, offset,
                      footer_offset);
    footer.offsets.push_back(offset);
    if (size > footer.records - records)
      return DataLoss("its chunks have over {} records", footer.records);
    records += size;
  }
  if (records != footer.records)
    return DataLoss("its chunks have {} records, its head says {}", records,
                    footer.records);
  footer.offsets.push_back(footer_offset);
  return footer;
}

bool IsArrayRecordName(std::string_view name) {
  return FormatOfName(name) == "array_record";
}

// Returns a file unchanged, and expands folders and patterns as other readers'
// `paths`. Does not examine the files one by one: many threads open them later.
absl::StatusOr<std::vector<std::string>> FilesOf(
    const std::vector<std::string>& paths, const SourceLimits& limits) {
  std::vector<std::string> files;
  if (limits.files != nullptr) {
    for (const ListedFile& each : *limits.files) files.push_back(each.uri);
    return files;
  }
  const Storage& storage = StorageOf(limits);
  for (const std::string& path : paths) {
    if (!path.ends_with('/') && !IsPattern(path) &&
        !(IsLocalUri(path) && storage.StatFolder(path).ok())) {
      files.push_back(path);
      continue;
    }
    ASSIGN_OR_RETURN(std::vector<ListedFile> found,
                     ListPaths({path}, IsArrayRecordName, limits));
    for (ListedFile& each : found) files.push_back(std::move(each.uri));
  }
  return files;
}

struct Listed {
  uint64_t size = 0;
  std::string identity;
  ArrayRecordFooter footer;
};

}  // namespace

absl::StatusOr<ArrayRecordFooter> ReadArrayRecordFooter(const StorageFile& file,
                                                        uint64_t max_bytes) {
  const auto read = [&]() -> absl::StatusOr<ArrayRecordFooter> {
    ASSIGN_OR_RETURN(const uint64_t offset, FooterOffset(file));
    ASSIGN_OR_RETURN(const RiegeliRecords chunks,
                     ReadRiegeliChunk(file, offset, max_bytes));
    return ParseFooter(chunks, offset);
  };
  absl::StatusOr<ArrayRecordFooter> footer = read();
  if (!footer.ok()) return Annotate(footer.status(), file.name());
  return footer;
}

absl::StatusOr<BuiltIndex> BuildArrayRecordIndex(const Node& reader,
                                                 const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const std::vector<std::string> given, PathsArg(reader));
  ASSIGN_OR_RETURN(const std::vector<std::string> paths,
                   FilesOf(given, limits));
  const Storage& storage = StorageOf(limits);
  const uint64_t max_bytes =
      std::min(limits.max_index_bytes, limits.max_file_bytes);
  std::vector<Listed> files(paths.size());
  RETURN_IF_ERROR(ForEachIndex(
      paths.size(), limits.listing_threads, limits.cancelled, [&](size_t i) {
        ASSIGN_OR_RETURN(const auto file, storage.Open(paths[i]));
        files[i].size = file->size();
        files[i].identity = file->identity();
        ASSIGN_OR_RETURN(files[i].footer,
                         ReadArrayRecordFooter(*file, max_bytes));
        return absl::OkStatus();
      }));
  BuiltIndex index;
  ContentHash content("array_record", given);
  BlobWriter blob(limits);
  stored::v1::ArrayRecordHead head;
  head.set_reader(CanonicalText(reader));
  RETURN_IF_ERROR(blob.Add(head));
  uint64_t records = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    const Listed& from = files[i];
    if (from.footer.records == 0) continue;
    if (from.footer.records > limits.max_files - records)
      return ResourceExhausted("{}: more than {} records: the limit",
                               RedactedUri(paths[i]), limits.max_files);
    records += from.footer.records;
    stored::v1::ArrayRecordFile to;
    to.mutable_file()->set_name(paths[i]);
    to.mutable_file()->set_bytes(from.size);
    to.mutable_file()->set_identity(from.identity);
    to.set_records(from.footer.records);
    to.set_group(from.footer.group);
    uint64_t before = 0;
    for (const uint64_t offset : from.footer.offsets)
      to.add_offsets(offset - std::exchange(before, offset));
    RETURN_IF_ERROR(blob.Add(to));
    content.AddFile(paths[i], from.size)
        .AddNumber(to.group())
        .AddNumbers(to.offsets());
    index.bytes += from.size;
  }
  if (index.bytes == 0)
    return NotFound("{}: no records in {}", reader.op,
                    Counted(paths.size(), "file"));
  ASSIGN_OR_RETURN(index.blob, blob.Finish());
  ASSIGN_OR_RETURN(const auto source,
                   OpenArrayRecord(reader, index.blob, limits));
  index.fingerprint = source->fingerprint();
  const uint64_t samples = source->num_samples();
  ASSIGN_OR_RETURN(
      index.shards,
      ShardTable::Uniform(samples, ShardTable::DefaultShardSize(samples)));
  index.name = NameOfPath(given[0]);
  content.Finish(&index);
  return index;
}

}  // namespace leat::worker
