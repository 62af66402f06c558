// SPDX-License-Identifier: Apache-2.0
//
// Readers: what each gives of a stored sample.
#include <algorithm>
#include <utility>

#include "core/image_size.h"
#include "core/operator_table.h"
#include "core/shape_inference.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

using Inputs = std::span<const ValueType>;

TypesOr InferImageFolder(Node* node, Inputs) {
  if (ArgOf<std::string>(*node, "path").empty())
    return InvalidArgument("argument \"path\" is empty, want a folder");
  return std::vector<ValueType>{{ValueType::Kind::kEncoded, DType::kUint8, {}},
                                {ValueType::Kind::kTensor, DType::kInt32, {}}};
}

}  // namespace

void AddReaders(OperatorList* list) {
  list->push_back(
      {Operator(
           "readers.image_folder", 0, 2,
           {Arg("path", ArgType::kString, std::nullopt,
                "the folder, a path or URI (file://, s3://bucket/prefix, "
                "gs://bucket/prefix); its sub-folders in byte order are the "
                "classes 0, 1, …"),
            Ranged(Arg("repeat", ArgType::kInt, Value(int64_t{1}),
                       "how often an epoch passes over the files"),
                   1, 1e9)},
           "image files of a folder of classes -> encoded image, label "
           "(int32)"),
       InferImageFolder});
}

}  // namespace leat
