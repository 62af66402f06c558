// SPDX-License-Identifier: Apache-2.0
//
// Readers: the outputs of each for a stored sample.
#include <algorithm>
#include <map>
#include <utility>

#include "core/counted.h"
#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/status.h"
#include "core/tensor/image_size.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

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
  const uint64_t files = CountOf<std::string>(*node, "files");
  const uint64_t labels = CountOf<int64_t>(*node, "labels");
  if (files == 0)
    return InvalidArgument("argument \"files\" is empty, want files");
  if (labels != 0 && labels != files)
    return InvalidArgument("argument \"labels\": {} for {}",
                           Counted(labels, "label"), Counted(files, "file"));
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
  return {
      Operator("readers.files", 0, 2,
               {OfData(Arg("files", ArgType::kStrings, std::nullopt,
                           "paths or URIs, in this order")),
                OfData(IntsArg("labels", 0, 2147483647,
                               "as many labels; none: each file's position")),
                RootArg("the process's working folder")},
               "files -> encoded image, label (int32)"),
      InferFiles};
}

TypesOr InferCoco(Node* node, Inputs) {
  using Kind = ValueType::Kind;
  static const std::map<std::string_view, ValueType>& types =
      *new std::map<std::string_view, ValueType>{
          {"image", {Kind::kEncoded, DType::kUint8, {}}},
          {"boxes", {Kind::kTensor, DType::kFloat32, {-1, 4}}},
          {"labels", {Kind::kTensor, DType::kInt32, {-1}}},
          {"image_id", {Kind::kTensor, DType::kInt64, {}}},
          {"polygons", {Kind::kTensor, DType::kInt32, {-1, 3}}},
          {"vertices", {Kind::kTensor, DType::kFloat32, {-1, 2}}},
          {"mask", {Kind::kTensor, DType::kInt32, {-1, -1, 1}}}};
  if (ArgOf<std::string>(*node, "annotations").empty())
    return InvalidArgument("argument \"annotations\" is empty, want a file");
  const auto& outputs = ArgOf<std::vector<std::string>>(*node, "outputs");
  if (outputs.empty())
    return InvalidArgument("argument \"outputs\" is empty, want some");
  std::vector<ValueType> result;
  for (const std::string& output : outputs) {
    if (std::count(outputs.begin(), outputs.end(), output) > 1)
      return InvalidArgument("argument \"outputs\" has \"{}\" twice", output);
    result.push_back(types.at(output));
  }
  return result;
}

OperatorEntry Coco() {
  ArgInfo outputs = Arg(
      "outputs", ArgType::kStrings, Value(Texts{"image", "boxes", "labels"}),
      "what is read, in this order: boxes float32 (n, 4), x, y, width, "
      "height; labels int32 (n,); image_id int64; polygons int32 (p, 3), "
      "each its object's place among the boxes, its first vertex, and the "
      "one behind its last; vertices float32 (v, 2); mask int32 (height, "
      "width, 1), the label of each pixel, 0: none; where objects overlap, "
      "the greatest");
  outputs.choices = {"image",    "boxes",    "labels", "image_id",
                     "polygons", "vertices", "mask"};
  OperatorInfo info = Operator(
      "readers.coco", 0, 0,
      {Arg("annotations", ArgType::kString, std::nullopt,
           "the JSON file of instances, by path or URI"),
       RootArg("the annotations' own folder"), std::move(outputs),
       OfData(
           Arg("images", ArgType::kStrings, Value(Texts{}),
               "file names, as the annotations have them: these images in this "
               "order; none: all, in the order of their ids")),
       FlagArg("ltrb", false, "boxes are left, top, right, bottom"),
       FlagArg("ratio", false,
               "boxes and vertices are shares of the image's size"),
       FlagArg("skip_empty", false, "pass over images without objects"),
       FloatArg("size_threshold", 0.1, 0, 1e6,
                "objects of less width or height are passed over"),
       FlagArg("include_iscrowd", true, "also objects that are crowds"),
       FlagArg("avoid_class_remapping", false,
               "labels are the ids of the categories; otherwise 1, 2, … in the "
               "order of the file")},
      "COCO's instance annotations and their images -> an output for each of "
      "outputs; coordinates are of the image as it is stored: decode with "
      "orient=False");
  info.outputs_of = "outputs";
  return {std::move(info), InferCoco};
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
            IntArg("repeat", 1, 1, 1e9,
                   "how often an epoch passes over the files"),
            AddedLater(FlagArg("hidden", false,
                               "names that begin with a dot are taken, too: "
                               "folders of the root are classes"))},
           "image files of a folder of classes -> encoded image, label "
           "(int32)"),
       InferImageFolder});
  list->push_back(FileList());
  list->push_back(Files());
  list->push_back(Coco());
}

}  // namespace leat
