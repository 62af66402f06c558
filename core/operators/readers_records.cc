// SPDX-License-Identifier: Apache-2.0
//
// Readers of records in few large files: TFRecord, WebDataset, Parquet; and the
// reader of samples that consumers supply.
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/operator_table.h"
#include "core/pipeline/shape_inference.h"
#include "core/plan/job.h"
#include "core/shapes/field_type.h"
#include "core/status.h"

namespace leat {
namespace {

using Kind = ValueType::Kind;

constexpr size_t kMaxFields = 100;

absl::Status WantTexts(const Node& node, const char* name) {
  if (std::holds_alternative<LongList>(node.args.at(name)))
    return absl::OkStatus();
  const auto& texts = ArgOf<Texts>(node, name);
  if (texts.empty())
    return InvalidArgument("argument \"{}\" is empty, want at least one", name);
  for (const std::string& text : texts)
    if (text.empty() || text.find('\0') != std::string::npos)
      return InvalidArgument(
          "argument \"{}\" has a text that is empty or has "
          "a zero byte",
          name);
  return absl::OkStatus();
}

// Returns the argument `types`, with one entry for each of the list `fields`.
TypesOr TypesOf(const Node& node, const char* fields) {
  RETURN_IF_ERROR(WantTexts(node, "paths"));
  RETURN_IF_ERROR(WantTexts(node, fields));
  const size_t wanted = ArgOf<Texts>(node, fields).size();
  const auto& texts = ArgOf<Texts>(node, "types");
  if (texts.size() != wanted)
    return InvalidArgument(
        "argument \"types\" has {} entries, want {}: one for each of \"{}\"",
        texts.size(), wanted, fields);
  if (wanted > kMaxFields)
    return InvalidArgument("argument \"{}\" has {} entries, want at most {}",
                           fields, wanted, kMaxFields);
  std::vector<ValueType> types;
  for (const std::string& text : texts) {
    absl::StatusOr<ValueType> type = ParseFieldType(text);
    if (!type.ok()) return Annotate(type.status(), "argument \"types\"");
    types.push_back(*std::move(type));
  }
  return types;
}

TypesOr InferTfrecord(Node* node, Inputs) {
  ASSIGN_OR_RETURN(const std::vector<ValueType> types,
                   TypesOf(*node, "features"));
  const auto& features = ArgOf<Texts>(*node, "features");
  std::set<std::string_view> seen;
  for (size_t i = 0; i < types.size(); ++i) {
    if (!seen.insert(features[i]).second)
      return InvalidArgument("argument \"features\" has \"{}\" twice",
                             features[i]);
    const DType dtype = types[i].dtype;
    const bool fits = types[i].kind == Kind::kEncoded ||
                      dtype == DType::kInt64 || dtype == DType::kFloat32 ||
                      ((dtype == DType::kUint8 || IsCarried(dtype)) &&
                       !types[i].shape.empty());
    if (!fits)
      return InvalidArgument(
          "argument \"types\": feature \"{}\" is {}: a TFRecord has int64, "
          "float32, and bytes (\"encoded\", \"bytes\", \"uint8[28,28]\", "
          "\"uint16[?]\")",
          features[i], TypeText(types[i]));
  }
  return types;
}

TypesOr InferWebdataset(Node* node, Inputs) {
  ASSIGN_OR_RETURN(const std::vector<ValueType> types, TypesOf(*node, "ext"));
  const auto& ext = ArgOf<Texts>(*node, "ext");
  const bool empty = ArgOf<std::string>(*node, "missing") == "empty";
  for (size_t i = 0; i < types.size(); ++i) {
    const ValueType& type = types[i];
    if (type.kind == Kind::kEncoded) continue;
    if (type.shape.empty() && type.dtype != DType::kInt32 &&
        type.dtype != DType::kInt64)
      return InvalidArgument(
          "argument \"types\": \"{}\" is {}: as a single number, written in "
          "decimal digits, it may be int32 or int64",
          ext[i], TypeText(type));
    if (empty && !IsOpen(type))
      return InvalidArgument(
          "argument \"types\": \"{}\" is {}: what may be missing (missing = "
          "\"empty\") wants a type that may have no elements, as \"{}[?]\"",
          ext[i], TypeText(type), Name(type.dtype));
  }
  return types;
}

TypesOr InferParquet(Node* node, Inputs) {
  ASSIGN_OR_RETURN(std::vector<ValueType> types, TypesOf(*node, "columns"));
  std::set<std::string_view> seen;
  for (const std::string& column : ArgOf<Texts>(*node, "columns"))
    if (!seen.insert(column).second)
      return InvalidArgument("argument \"columns\" has \"{}\" twice", column);
  return types;
}

TypesOr InferExternal(Node* node, Inputs) {
  if (ArgOf<std::string>(*node, "name").empty())
    return InvalidArgument("argument \"name\" is empty, want a text");
  RETURN_IF_ERROR(WantTexts(*node, "types"));
  const auto& texts = ArgOf<Texts>(*node, "types");
  if (texts.size() > kMaxFields)
    return InvalidArgument("argument \"types\" has {} entries, want at most {}",
                           texts.size(), kMaxFields);
  std::vector<ValueType> types;
  for (const std::string& text : texts) {
    absl::StatusOr<ValueType> type = ParseFieldType(text, OpenSizes::kAny);
    if (!type.ok()) return Annotate(type.status(), "argument \"types\"");
    types.push_back(*std::move(type));
  }
  return types;
}

ArgInfo FilesArg(const char* what) {
  return OfData(
      Arg("paths", ArgType::kStrings, std::nullopt,
          std::string(what) +
              ": paths or URIs of files; of directories (with a slash at "
              "the end), or patterns with * ? [] in the last parts, which "
              "stand for the files in the byte order of their names; "
              "{000..123} and {a,b} stand for each in turn"));
}

void AddParquet(OperatorList* list) {
  OperatorInfo parquet = Operator(
      "readers.parquet", 0, 0,
      {FilesArg("Parquet files"),
       Arg("columns", ArgType::kStrings, std::nullopt,
           "those that are read, one for each output: names, of a structure's "
           "member with dots (\"image.bytes\")"),
       Arg("types", ArgType::kStrings, std::nullopt,
           "of each column: \"encoded\" (an image file), \"bytes\" or "
           "\"uint8[28,28]\" of binary and text columns; \"int64\", "
           "\"float32\" (one number); \"int64[?]\", \"float32[512]\" (a "
           "list's numbers)")},
      "Parquet files, every codec and encoding of Arrow -> an output for each "
      "column; what is stored narrower may be read wider (int8 as int32), "
      "float64 as float32; a null is a bad sample; lists of lists, decimals, "
      "dates and times are refused; row groups are read a page at a time, in "
      "the order of shards best; needs Arrow's libraries beside the worker");
  parquet.outputs_of = "columns";
  list->push_back({std::move(parquet), InferParquet});
}

void AddExternal(OperatorList* list) {
  OperatorInfo external = Operator(
      std::string(kExternalReader), 0, 0,
      {Ranged(Arg("num_samples", ArgType::kInt, std::nullopt,
                  "how many samples the source has"),
              1, static_cast<double>(kMaxSamples)),
       Arg("types", ArgType::kStrings, std::nullopt,
           "of each output: \"encoded\" (an image file), \"bytes\", "
           "\"int32\" (one number), \"uint8[28,28]\", \"uint8[?,?,3]\" "
           "(sizes that differ from sample to sample)"),
       Arg("name", ArgType::kString, Text("external"),
           "of the data: equal arguments promise equal samples")},
      "samples that consumers supply as they iterate (leat.external_source, "
      "leat::SampleSource) -> an output for each of types; on_bad_sample "
      "\"replace\" is refused");
  external.outputs_of = "types";
  list->push_back({std::move(external), InferExternal});
}

ArgInfo Index(const char* what) {
  return OfData(
      Arg("index", ArgType::kStrings, Value(Texts{}),
          std::string("index files of DALI's, one for each file (") + what +
              "); without them the files are walked once when the dataset "
              "is indexed"));
}

}  // namespace

void AddRecordReaders(OperatorList* list) {
  OperatorInfo tfrecord = Operator(
      "readers.tfrecord", 0, 0,
      {FilesArg("TFRecord files, uncompressed"),
       Arg("features", ArgType::kStrings, std::nullopt,
           "names in each tf.Example, one for each output"),
       Arg("types", ArgType::kStrings, std::nullopt,
           "of each feature: \"encoded\" (an image file), \"bytes\" or "
           "\"uint8[28,28]\" of a bytes feature, and of int8, int16, uint16, "
           "uint32 and bfloat16 (\"uint16[?]\": its bytes as elements, "
           "little-endian); \"int64\", \"float32\" (one number), "
           "\"float32[4]\" (that many), \"int64[?]\" (any number)"),
       Index("lines of offset and size, as tfrecord2idx writes them")},
      "tf.Example records -> an output for each feature; checksums are "
      "checked; a record without the feature is a bad sample (there are no "
      "defaults)");
  tfrecord.outputs_of = "features";
  list->push_back({std::move(tfrecord), InferTfrecord});

  OperatorInfo webdataset = Operator(
      "readers.webdataset", 0, 0,
      {FilesArg("tar archives, uncompressed"),
       Arg("ext", ArgType::kStrings, std::nullopt,
           "the extension of each output's component, what follows the first "
           "dot of the file's name; alternatives are separated by semicolons "
           "(\"jpg;jpeg;png\"): the first in the archive counts"),
       Arg("types", ArgType::kStrings, std::nullopt,
           "of each output: \"encoded\" (an image file), \"bytes\", "
           "\"float32[?]\", \"uint8[28,28]\" (the component's bytes as "
           "elements, little-endian); \"int32\", \"int64\" (one number, "
           "written in decimal digits)"),
       Index("v1.1 or v1.2, as wds2idx writes them"),
       Choice("missing", Text("error"), {"error", "skip", "empty"},
              "what a sample without one of the components is: an error of "
              "the whole dataset, passed over, or without elements in that "
              "output")},
      "samples of tar archives: neighbouring files that have the same path up "
      "to the first dot of the name -> an output for each extension");
  webdataset.outputs_of = "ext";
  list->push_back({std::move(webdataset), InferWebdataset});
  AddParquet(list);
  AddExternal(list);
}

}  // namespace leat
