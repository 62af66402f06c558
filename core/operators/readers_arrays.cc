// SPDX-License-Identifier: Apache-2.0
//
// Readers of arrays and of records in a database: the outputs of each for a
// stored sample.
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/operator_table.h"
#include "core/status.h"

namespace leat {
namespace {

ValueType ScalarLabel() {
  return {ValueType::Kind::kTensor, DType::kInt32, {}};
}

TypesOr InferCifar10(Node*, Inputs) {
  return std::vector<ValueType>{
      {ValueType::Kind::kTensor, DType::kUint8, {32, 32, 3}}, ScalarLabel()};
}

TypesOr InferCifar100(Node* node, Inputs inputs) {
  ASSIGN_OR_RETURN(std::vector<ValueType> types, InferCifar10(node, inputs));
  types.push_back(ScalarLabel());
  return types;
}

ArgInfo PathsArg(const char* doc) {
  return Arg("paths", ArgType::kStrings, std::nullopt, doc);
}

void AddCifar(OperatorList* list) {
  constexpr char kPaths[] =
      "files, or folders: of a folder the files whose names begin with "
      "\"prefix\" and end with \".bin\", in byte order";
  list->push_back(
      {Operator("readers.cifar10", 0, 2,
                {PathsArg(kPaths),
                 Arg("prefix", ArgType::kString, Text("data_batch_"),
                     "of files in folders; \"test_batch\" is "
                     "the test set")},
                "CIFAR-10 in binary -> image uint8 (32, 32, 3), label (int32)"),
       InferCifar10});
  list->push_back(
      {Operator(
           "readers.cifar100", 0, 3,
           {PathsArg(kPaths), Arg("prefix", ArgType::kString, Text("train"),
                                  "of files in folders; \"test\" is the "
                                  "test set")},
           "CIFAR-100 in binary -> image uint8 (32, 32, 3), fine label "
           "(int32), coarse label (int32)"),
       InferCifar100});
}

void AddIdx(OperatorList* list) {
  list->push_back(
      {StoredTypes(Operator(
           "readers.idx", 0, 2,
           {Arg("images", ArgType::kString, std::nullopt,
                "an idx file of uint8, int32 or float32, as it is or gzipped; "
                "its first axis counts the records"),
            Arg("labels", ArgType::kString, Text(""),
                "an idx file of as many uint8 or int32; empty: the labels are "
                "-1")},
           "idx files (MNIST) -> record (height and width become (h, w, 1)), "
           "label (int32)")),
       nullptr});
}

void AddLmdb(OperatorList* list) {
  const auto path = [] {
    return Arg("path", ArgType::kStrings, std::nullopt,
               "LMDB folders (with data.mdb) or files, one after the other; "
               "samples are in the order of their keys");
  };
  list->push_back(
      {StoredTypes(Operator(
           "readers.caffe", 0, 2, {path()},
           "LMDB of Caffe's Datum -> encoded image or uint8 (h, w, c), label "
           "(int32)")),
       nullptr});
  list->push_back(
      {StoredTypes(Operator(
           "readers.caffe2", 0, 2, {path()},
           "LMDB of Caffe2's TensorProtos -> encoded image or uint8 (h, w, "
           "c), label (int32 or float32)")),
       nullptr});
}

}  // namespace

void AddArrayReaders(OperatorList* list) {
  AddLmdb(list);
  AddIdx(list);
  AddCifar(list);
}

}  // namespace leat
