// SPDX-License-Identifier: Apache-2.0
//
// Readers of the formats that other training loaders keep: NumPy's arrays,
// MosaicML's MDS, ArrayRecord.
#include <string>
#include <utility>
#include <vector>

#include "core/operator_table.h"
#include "core/status.h"

namespace leat {
namespace {

OperatorInfo StoredTypes(OperatorInfo info) {
  info.stored_types = true;
  return info;
}

OperatorInfo Numpy() {
  return StoredTypes(Operator(
      "readers.numpy", 0, 1,
      {Arg("files", ArgType::kStrings, Value(std::vector<std::string>()),
           ".npy files, one a sample, in this order"),
       Arg("path", ArgType::kString, Text(""),
           "a folder; the files below it, in byte order, are the samples"),
       Arg("pattern", ArgType::kString, Text("*.npy"),
           "which files below path: of the path below it; * also matches /"),
       Arg("array", ArgType::kString, Text(""),
           "one .npy file whose first axis is the samples; only rows that are "
           "wanted are read")},
      "NumPy's .npy files -> an array of bool, uint8, int32, int64, float16 or "
      "float32; exactly one of files, path and array"));
}

}  // namespace

void AddLoaderReaders(OperatorList* list) {
  list->push_back({Numpy(), nullptr});
}

}  // namespace leat
