// SPDX-License-Identifier: Apache-2.0
//
// readers.tfrecord: tf.Example records, with one output per requested feature.
//
// Samples are in the order of the files (record_paths.h) and of the records in
// them; one file is one shard, and files without records are none. A
// directory's files are those with ".tfrecord" in their names, except ".idx"
// and ".index".
//
// The index has the sizes of all records: 4.5 bytes per record in memory. It is
// made by walking the headers (the checksum of each length is checked), or
// taken from DALI's index files, with some entries compared with the files;
// every read checks length and both checksums. Damage that DALI does not check,
// and reads unchanged, is an error here.
//
// A feature's type determines what a record must have (DALI: FixedLenFeature,
// VarLenFeature):
//   encoded             a bytes feature of one value, returned unchanged
//   bytes, uint8[...]   the same; as many bytes as the type has elements
//   uint16[...]         the same of all types that are only carried
//   int64, float32      a feature of one number
//   int64[4]            as many numbers as the type has elements
//   int64[?,2]          a multiple of the elements of a row; may be none
// A record without the feature, with another kind of values, or another number
// of them, is a bad sample. There are no defaults for missing features: a
// sample made of them would look like a good one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/pipeline/operators.h"
#include "worker/source/source.h"

namespace leat::worker {

struct TfrecordOptions {
  std::vector<std::string> paths;
  std::string paths_key;  // LongListKey of paths, which stands for them
  std::vector<std::string> features;
  std::vector<ValueType> types;  // one for each feature
  std::vector<std::string> index;
};

// Returns whether a bytes feature holds values of the type.
inline bool IsBytesFeature(const ValueType& type) {
  return type.kind == ValueType::Kind::kEncoded ||
         type.dtype == DType::kUint8 || IsCarried(type.dtype);
}

// Returns the reader node's arguments. kInvalidArgument: names the argument.
absl::StatusOr<TfrecordOptions> TfrecordOptionsOf(const Node& reader);
// Returns the reader's paths as the head of an index has them.
std::vector<std::string> PathsInHead(const TfrecordOptions& options);

// Begins the identity of a listing: then add name, size, identity and number of
// records of each file that has records.
void BeginTfrecordHash(Sha256* hash);

// kNotFound: no such files, or no records in them. kDataLoss: a file that is
// not TFRecord, or was cut off; names file, record and offset.
// kFailedPrecondition, kInvalidArgument: an index file that is not of its data
// file, or malformed. kResourceExhausted: over max_files records, or
// max_index_bytes. kCancelled.
absl::StatusOr<BuiltIndex> BuildTfrecordIndex(const Node& reader,
                                              const SourceLimits& limits);

}  // namespace leat::worker
