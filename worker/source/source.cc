// SPDX-License-Identifier: Apache-2.0
#include "worker/source/source.h"

#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/formats.h"

namespace leat::worker {
namespace {

const SourceFormat* const kFormats[] = {
    &kImageFolderFormat, &kFileListFormat,    &kFilesFormat,
    &kCifar10Format,     &kCifar100Format,    &kCaffeFormat,
    &kCaffe2Format,      &kIdxFormat,         &kNumpyFormat,
    &kMdsFormat,         &kArrayRecordFormat, &kTfrecordFormat,
    &kWebdatasetFormat,
};

absl::StatusOr<const SourceFormat*> FormatOf(const Node& reader) {
  std::vector<std::string_view> known;
  for (const SourceFormat* format : kFormats) {
    if (format->op == reader.op) return format;
    known.push_back(format->op);
  }
  return InvalidArgument(
      "reader \"{}\" is not known to this worker: want one of {}", reader.op,
      fmt::join(known, ", "));
}

}  // namespace

absl::StatusOr<BuiltIndex> BuildIndex(const Node& reader,
                                      const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const SourceFormat* const format, FormatOf(reader));
  return format->build(reader, limits);
}

absl::StatusOr<std::unique_ptr<Source>> OpenSource(const Node& reader,
                                                   std::string_view index_blob,
                                                   const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const SourceFormat* const format, FormatOf(reader));
  return format->open(reader, index_blob, limits);
}

}  // namespace leat::worker
