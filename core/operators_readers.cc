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

std::vector<ValueType> ImageAndLabel() {
  return {{ValueType::Kind::kEncoded, DType::kUint8, {}},
          {ValueType::Kind::kTensor, DType::kInt32, {}}};
}

TypesOr InferImageFolder(Node* node, Inputs) {
  if (ArgOf<std::string>(*node, "path").empty())
    return InvalidArgument("argument \"path\" is empty, want a folder");
  return ImageAndLabel();
}

TypesOr InferFileList(Node* node, Inputs) {
  if (ArgOf<std::string>(*node, "path").empty())
    return InvalidArgument("argument \"path\" is empty, want a list's file");
  return ImageAndLabel();
}

TypesOr InferFiles(Node* node, Inputs) {
  const auto& files = ArgOf<std::vector<std::string>>(*node, "files");
  const auto& labels = ArgOf<std::vector<int64_t>>(*node, "labels");
  if (files.empty())
    return InvalidArgument("argument \"files\" is empty, want files");
  if (!labels.empty() && labels.size() != files.size())
    return InvalidArgument("argument \"labels\": {} labels for {} files",
                           labels.size(), files.size());
  return ImageAndLabel();
}

ArgInfo RootArg(const char* otherwise) {
  return Arg("root", ArgType::kString, Value(std::string()),
             fmt::format("the folder or URI that relative names are below; "
                         "empty: {}",
                         otherwise));
}

OperatorEntry FileList() {
  return {
      Operator(
          "readers.file_list", 0, 2,
          {Arg("path", ArgType::kString, std::nullopt,
               "a text file, by path or URI; a line is a file's name, blanks "
               "and its label, a whole number; names may have blanks in them"),
           RootArg("the list's own folder")},
          "files that a list names, in its order -> encoded image, label "
          "(int32)"),
      InferFileList};
}

OperatorEntry Files() {
  return {Operator("readers.files", 0, 2,
                   {Arg("files", ArgType::kStrings, std::nullopt,
                        "paths or URIs, in this order"),
                    Ranged(Arg("labels", ArgType::kInts,
                               Value(std::vector<int64_t>()),
                               "as many labels; none: each file's position"),
                           0, 2147483647),
                    RootArg("the process's working folder")},
                   "files -> encoded image, label (int32)"),
          InferFiles};
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
  list->push_back(FileList());
  list->push_back(Files());
}

}  // namespace leat
