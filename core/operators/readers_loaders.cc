// SPDX-License-Identifier: Apache-2.0
//
// Readers of formats of other training loaders: NumPy's arrays, MosaicML's MDS,
// ArrayRecord.
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/operator_table.h"
#include "core/shapes/field_type.h"
#include "core/status.h"

namespace leat {
namespace {

OperatorInfo Numpy() {
  return StoredTypes(Operator(
      "readers.numpy", 0, 1,
      {OfData(Arg("files", ArgType::kStrings, Value(std::vector<std::string>()),
                  ".npy files, one a sample, in this order")),
       Arg("path", ArgType::kString, Text(""),
           "a folder; the files below it are the samples. Names that begin "
           "with a dot are passed over, but not with order=\"folders\""),
       Arg("pattern", ArgType::kString, Text("*.npy"),
           "which files below path: of the path below it, where * also matches "
           "/; with order=\"folders\" of the file's own name"),
       Arg("array", ArgType::kString, Text(""),
           "one .npy file whose first axis is the samples; only rows that are "
           "wanted are read"),
       AddedLater(Choice(
           "order", Text("path"), {"path", "folders"},
           "path: files at any depth, in the byte order of their paths; "
           "folders: path's own files by name, then those of its folders, one "
           "after the other, and none deeper (DALI's order)"))},
      "NumPy's .npy files -> an array of bool, int8, int16, int32, int64, "
      "uint8, "
      "uint16, uint32, float16, float32 or bfloat16; exactly one of files, "
      "path and array"));
}

OperatorInfo Mds() {
  OperatorInfo info = StoredTypes(Operator(
      "readers.mds", 0, 0,
      {Arg("path", ArgType::kString, std::nullopt,
           "the folder or URI that has index.json"),
       Arg("columns", ArgType::kStrings, std::nullopt,
           "the columns that are read, each an output"),
       Arg("images", ArgType::kStrings, Value(std::vector<std::string>()),
           "those of them stored as bytes that are encoded images"),
       FlagArg(
           "verify", false,
           "read every shard when listing and check its hash in index.json; "
           "compressed shards are checked when they are unpacked anyway"),
       AddedLater(Arg(
           "types", ArgType::kStrings, Value(std::vector<std::string>()),
           "of each column, instead of images; none: as index.json says. A "
           "column of bytes is \"encoded\" (an image), \"bytes\", or its bytes "
           "as elements, little-endian (\"uint16[?]\", \"float32[28,28]\"); "
           "any other has the type of its encoding (\"int64\")"))},
      "MosaicML Streaming's MDS shards, raw or compressed by zstd, gz or br -> "
      "an output a column: jpeg and png encoded images; bytes and str uint8; "
      "float64 as float32, other numbers and arrays of declared shape as they "
      "are"));
  info.outputs_of = "columns";
  return info;
}

OperatorInfo ArrayRecord() {
  return Operator(
      "readers.array_record", 0, 1,
      {OfData(Arg("paths", ArgType::kStrings, std::nullopt,
                  "ArrayRecord files, folders of such or patterns, in this "
                  "order")),
       Arg("type", ArgType::kString, Text("encoded"),
           "what a record is: encoded (an image), bytes (uint8), or raw "
           "elements, such as uint16[?] or float32[28,28]")},
      "ArrayRecord files, chunks uncompressed or compressed by zstd or brotli "
      "-> the record; chunks' hashes are checked; read groups (group_size over "
      "1) in the order of shards, since a record is read with its group");
}

TypesOr InferArrayRecord(Node* node, std::span<const ValueType>) {
  absl::StatusOr<ValueType> type =
      ParseFieldType(ArgOf<std::string>(*node, "type"));
  if (!type.ok()) return Annotate(type.status(), "argument \"type\"");
  return std::vector<ValueType>{*std::move(type)};
}

}  // namespace

void AddLoaderReaders(OperatorList* list) {
  list->push_back({Numpy(), nullptr});
  list->push_back({Mds(), nullptr});
  list->push_back({ArrayRecord(), InferArrayRecord});
}

}  // namespace leat
