// SPDX-License-Identifier: Apache-2.0
//
// Guesses fields by a look into the first file that a reader would list:
//
//   webdataset   the extensions of the archive's first sample, and those that
//                its other samples have in place of an image
//   tfrecord     the features of the first record
//   parquet      the columns of the footer that some type fits
//   mds          the columns of index.json that some type fits
//   array_record whether the first record is an image
//   idx          the file of labels whose name matches that of the images
//
// A record whose bytes begin as image files do is an encoded image.
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/shapes/field_type.h"
#include "core/status.h"
#include "fmt/ranges.h"
#include "worker/source/array_record/array_record.h"
#include "worker/source/array_record/riegeli_chunk.h"
#include "worker/source/format_names.h"
#include "worker/source/guess/format.h"
#include "worker/source/guess/reader.h"
#include "worker/source/loader_args.h"
#include "worker/source/mds/mds.h"
#include "worker/source/packed/wire_reader.h"
#include "worker/source/parquet/parquet.h"
#include "worker/source/record_paths.h"
#include "worker/source/source_storage.h"
#include "worker/source/tfrecord/framing.h"
#include "worker/source/tfrecord/tf_example.h"
#include "worker/source/webdataset/samples.h"
#include "worker/source/webdataset/tar.h"

namespace leat::worker {
namespace {

using Texts = std::vector<std::string>;

constexpr int kMaxFieldsGuessed = 100;
constexpr uint64_t kMaxFirstRecord = 64 << 20;

constexpr std::string_view kImageEndings[] = {
    "jpg", "jpeg", "jpe", "png", "webp", "bmp", "tif", "tiff", "jp2", "j2k"};
constexpr std::string_view kNumberEndings[] = {"cls", "id", "idx", "index"};

struct Fields {
  Texts names, types;
  void Add(std::string name, std::string type) {
    if (names.size() >= kMaxFieldsGuessed) return;
    names.push_back(std::move(name));
    types.push_back(std::move(type));
  }
};

template <size_t N>
bool EndsWithOneOf(std::string_view extension,
                   const std::string_view (&endings)[N]) {
  const std::string_view last =
      extension.substr(extension.find_last_of('.') + 1);
  return std::find(std::begin(endings), std::end(endings), last) !=
         std::end(endings);
}

bool IsTar(std::string_view name) { return name.ends_with(".tar"); }
bool IsTfrecord(std::string_view name) {
  return name.find(".tfrecord") != std::string_view::npos &&
         !name.ends_with(".idx") && !name.ends_with(".index");
}
bool IsParquet(std::string_view name) {
  return name.ends_with(".parquet") || name.ends_with(".parq") ||
         name.ends_with(".pq");
}

bool IsArrayRecord(std::string_view name) {
  return FormatOfName(name) == "array_record";
}

// Returns the check for the readers of large files; nullptr for another `op`.
using OwnName = bool (*)(std::string_view);
OwnName OwnNameOf(std::string_view op) {
  return op == "readers.webdataset"     ? IsTar
         : op == "readers.tfrecord"     ? IsTfrecord
         : op == "readers.parquet"      ? IsParquet
         : op == "readers.array_record" ? IsArrayRecord
                                        : OwnName(nullptr);
}

absl::StatusOr<std::shared_ptr<const StorageFile>> OpenFirst(
    const Texts& paths, bool (*is_own)(std::string_view),
    const SourceLimits& limits) {
  ASSIGN_OR_RETURN(const ListedFile first,
                   FirstOfPath(paths.front(), is_own, limits));
  return StorageOf(limits).Open(first.uri, first.identity);
}

// Collects the extensions of a tar archive's first sample; and for its image,
// if each sample has only one, those that images of other samples have instead.
class TarFields {
 public:
  void Add(const ComponentName& name) {
    if (name.sample != sample_) {
      is_first_ = sample_.empty();
      sample_ = name.sample;
      images_ = 0;
    }
    const bool is_image = EndsWithOneOf(name.extension, kImageEndings);
    if (is_image) Note(std::string(name.extension));
    if (!is_first_ || !seen_.insert(std::string(name.extension)).second) return;
    fields_.Add(std::string(name.extension),
                is_image                                        ? "encoded"
                : EndsWithOneOf(name.extension, kNumberEndings) ? "int64"
                                                                : "bytes");
  }
  Fields Take() {
    if (!one_image_ || kinds_.size() < 2) return std::move(fields_);
    for (std::string& name : fields_.names)
      if (name == kinds_.front())
        name = fmt::format("{}", fmt::join(kinds_, ";"));
    return std::move(fields_);
  }

 private:
  void Note(std::string extension) {
    one_image_ = one_image_ && ++images_ == 1;
    if (std::find(kinds_.begin(), kinds_.end(), extension) != kinds_.end())
      return;
    // "left.png" and "right.png" are not two formats of one image.
    one_image_ = one_image_ && kinds_.size() < std::size(kImageEndings) &&
                 extension.find('.') == std::string::npos;
    if (one_image_) kinds_.push_back(std::move(extension));
  }

  Fields fields_;
  std::string sample_;
  std::set<std::string, std::less<>> seen_;
  Texts kinds_;  // extensions of images, in the order of the archive
  bool is_first_ = false, one_image_ = true;
  int images_ = 0;  // of the sample
};

absl::StatusOr<Fields> FieldsOfTar(const StorageFile& file,
                                   const SourceLimits& limits) {
  TarFields found;
  RETURN_IF_ERROR(WalkTar(file, limits.cancelled, [&](const TarMember& member) {
    const ComponentName name = ComponentNameOf(member.name);
    if (!name.extension.empty()) found.Add(name);
    return absl::OkStatus();
  }));
  Fields fields = found.Take();
  if (fields.names.empty())
    return NotFound("{}: no sample in it: want files such as 0001.jpg",
                    file.name());
  return fields;
}

// Returns the names of an Example's features, in their order, as many as may be
// fields: each is searched for in the whole record.
absl::StatusOr<Texts> NamesOfExample(std::span<const std::byte> example) {
  Texts names;
  WireReader message(example);
  WireReader::Field part, entry, value;
  while (message.Next(&part)) {
    if (part.number != 1 || part.type != WireReader::kBytes) continue;
    WireReader features(part.bytes);
    while (features.Next(&entry)) {
      if (entry.number != 1 || entry.type != WireReader::kBytes) continue;
      WireReader pair(entry.bytes);
      while (pair.Next(&value))
        if (value.number == 1 && value.type == WireReader::kBytes)
          names.emplace_back(reinterpret_cast<const char*>(value.bytes.data()),
                             value.bytes.size());
    }
    if (features.malformed()) return DataLoss("its features are malformed");
  }
  if (message.malformed()) return DataLoss("it is no tf.Example");
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::erase_if(names, [](const std::string& name) {
    return name.empty() || name.find('\0') != std::string::npos;
  });
  if (names.size() > kMaxFieldsGuessed) names.resize(kMaxFieldsGuessed);
  return names;
}

absl::StatusOr<Fields> FieldsOfExample(std::span<const std::byte> example) {
  ASSIGN_OR_RETURN(const Texts names, NamesOfExample(example));
  std::vector<FeatureBytes> found(names.size());
  RETURN_IF_ERROR(FindFeatures(example, names, found));
  Fields fields;
  for (size_t i = 0; i < names.size(); ++i) {
    ASSIGN_OR_RETURN(const FeatureValues values, ParseFeature(found[i]));
    const std::string many = values.count == 1 ? "" : "[?]";
    switch (values.kind) {
      case FeatureValues::Kind::kBytes:
        fields.Add(names[i],
                   LooksLikeImage(values.bytes) ? "encoded" : "bytes");
        break;
      case FeatureValues::Kind::kFloats:
        fields.Add(names[i], "float32" + many);
        break;
      case FeatureValues::Kind::kInts:
        fields.Add(names[i], "int64" + many);
        break;
      case FeatureValues::Kind::kNone:
        break;
    }
  }
  if (fields.names.empty()) return NotFound("its first record has no features");
  return fields;
}

absl::StatusOr<Fields> FieldsOfTfrecord(const StorageFile& file) {
  std::array<std::byte, kTfrecordHeader> header{};
  RETURN_IF_ERROR(file.ReadAt(0, header));
  absl::StatusOr<uint32_t> size = TfrecordSize(header, file.size());
  if (!size.ok()) return Annotate(size.status(), file.name());
  if (*size > kMaxFirstRecord)
    return ResourceExhausted("{}: its first record has {} bytes", file.name(),
                             *size);
  std::vector<std::byte> record(*size);
  RETURN_IF_ERROR(file.ReadAt(0, record));
  const auto data = TfrecordData(record);
  absl::StatusOr<Fields> fields = data.ok()
                                      ? FieldsOfExample(*data)
                                      : absl::StatusOr<Fields>(data.status());
  if (!fields.ok()) return Annotate(fields.status(), file.name());
  return fields;
}

// Returns a type that the column's values fit; empty if there is none.
std::string TypeOfColumn(const ParquetColumn& column) {
  if (column.element == ParquetElement::kBytes) {
    // A column that the file calls text is not an image: for Hugging Face's
    // images "image.bytes" is the file, and "image.path" its name.
    const bool is_plain = column.type.find('(') == std::string::npos;
    const bool is_image =
        is_plain && (column.name.find("image") != std::string::npos ||
                     column.name.find("img") != std::string::npos ||
                     EndsWithOneOf(column.name, kImageEndings));
    const std::string text = is_image ? "encoded" : "bytes";
    return CheckParquetType(column, *ParseFieldType(text)).ok() ? text : "";
  }
  for (const char* name :
       {"bool", "uint8", "int32", "int64", "float16", "float32"}) {
    const std::string text =
        std::string(name) + (column.lists == 1 ? "[?]" : "");
    const absl::StatusOr<ValueType> type = ParseFieldType(text);
    if (type.ok() && CheckParquetType(column, *type).ok()) return text;
  }
  return "";
}

absl::StatusOr<Fields> FieldsOfParquet(const StorageFile& file,
                                       const SourceLimits& limits,
                                       Texts* left_out) {
  ASSIGN_OR_RETURN(const ParquetLibrary* const library, LoadParquetLibrary());
  const StoredParquet input(file);
  ParquetError error;
  const auto footer = library->open(input, BoundsOf(limits), &error);
  if (footer == nullptr) return Annotate(input.StatusOf(error), file.name());
  Fields fields;
  for (const ParquetColumn& column : footer->columns) {
    const std::string type = TypeOfColumn(column);
    const std::string& name =
        column.list_name.empty() ? column.name : column.list_name;
    if (type.empty())
      left_out->push_back(
          fmt::format("column \"{}\": {} is not read", name, column.type));
    else
      fields.Add(name, type);
  }
  if (fields.names.empty())
    return NotFound("{}: no column that can be read", file.name());
  return fields;
}

absl::StatusOr<Texts> ColumnsOfMds(const std::string& folder,
                                   const SourceLimits& limits,
                                   Texts* left_out) {
  ASSIGN_OR_RETURN(const auto file,
                   StorageOf(limits).Open(JoinUri(folder, "index.json")));
  ASSIGN_OR_RETURN(const std::string text, ReadWhole(*file, kMaxMdsIndexBytes));
  absl::StatusOr<MdsIndexFile> index = ParseMdsIndex(text);
  if (!index.ok()) return Annotate(index.status(), file->name());
  Texts columns;
  for (const MdsIndexFile::Column& column : index->columns) {
    const absl::Status fits =
        ParseMdsColumn(column.encoding, column.size, nullptr).status();
    if (fits.ok())
      columns.push_back(column.name);
    else
      left_out->push_back(
          fmt::format("column \"{}\": {}", column.name, Message(fits)));
  }
  if (columns.empty())
    return NotFound("{}: no column that can be read", file->name());
  return columns;
}

// Returns "encoded" or "bytes".
absl::StatusOr<std::string> TypeOfArrayRecord(const StorageFile& file) {
  ASSIGN_OR_RETURN(const ArrayRecordFooter footer,
                   ReadArrayRecordFooter(file, kMaxFirstRecord));
  if (footer.records == 0) return "bytes";
  const absl::StatusOr<RiegeliRecords> first =
      ReadRiegeliChunk(file, footer.offsets.front(), kMaxFirstRecord);
  if (!first.ok()) return Annotate(first.status(), file.name());
  return first->ends.empty() || !LooksLikeImage((*first)[0]) ? "bytes"
                                                             : "encoded";
}

// Handles MNIST's names: "train-images-idx3-ubyte" and
// "train-labels-idx1-ubyte".
std::string LabelsOfIdx(const std::string& images, const Storage& storage) {
  std::string labels = images;
  for (const auto& [of_images, of_labels] :
       {std::pair{"images", "labels"}, std::pair{"idx3", "idx1"}}) {
    const size_t at = labels.rfind(of_images);
    if (at == std::string::npos) return "";
    labels.replace(at, std::string_view(of_images).size(), of_labels);
  }
  return storage.Stat(labels).ok() ? labels : "";
}

}  // namespace

absl::StatusOr<std::vector<ListedFile>> FilesOfReader(
    const Node& node, const SourceLimits& limits) {
  const OwnName is_own = OwnNameOf(node.op);
  if (is_own == nullptr) return std::vector<ListedFile>();
  ASSIGN_OR_RETURN(const Texts paths, TextsArg(node, "paths"));
  return ListPaths(paths, is_own, limits);
}

absl::Status GuessFields(const Texts& paths, const SourceLimits& limits,
                         GuessedReader* guess) {
  Node& node = guess->node;
  if (node.op == "readers.mds") {
    if (node.args.contains("columns")) return absl::OkStatus();
    ASSIGN_OR_RETURN(node.args["columns"],
                     ColumnsOfMds(paths.front(), limits, &guess->left_out));
    return absl::OkStatus();
  }
  if (node.op == "readers.idx") {
    if (!node.args.contains("labels"))
      node.args["labels"] = LabelsOfIdx(paths.front(), StorageOf(limits));
    return absl::OkStatus();
  }
  if (node.op == "readers.array_record") {
    if (node.args.contains("type")) return absl::OkStatus();
    ASSIGN_OR_RETURN(const auto file, OpenFirst(paths, IsArrayRecord, limits));
    ASSIGN_OR_RETURN(node.args["type"], TypeOfArrayRecord(*file));
    return absl::OkStatus();
  }
  const bool tar = node.op == "readers.webdataset";
  const bool tfrecord = node.op == "readers.tfrecord";
  const bool parquet = node.op == "readers.parquet";
  const char* const names = tar        ? "ext"
                            : tfrecord ? "features"
                            : parquet  ? "columns"
                                       : nullptr;
  if (names == nullptr || node.args.contains(names)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto file,
                   OpenFirst(paths, OwnNameOf(node.op), limits));
  absl::StatusOr<Fields> fields =
      tar        ? FieldsOfTar(*file, limits)
      : tfrecord ? FieldsOfTfrecord(*file)
                 : FieldsOfParquet(*file, limits, &guess->left_out);
  RETURN_IF_ERROR(fields.status());
  node.args[names] = std::move(fields->names);
  node.args["types"] = std::move(fields->types);
  return absl::OkStatus();
}

}  // namespace leat::worker
