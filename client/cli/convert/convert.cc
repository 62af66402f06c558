// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/convert.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "client/cli/base/file.h"
#include "client/cli/convert/folder_input.h"
#include "client/cli/convert/idx_input.h"
#include "client/cli/convert/new_folder.h"
#include "client/cli/convert/outputs.h"
#include "client/cli/convert/record.h"
#include "core/file_kind.h"
#include "core/status.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kShardBytes = 256ull << 20;
constexpr int kQuality = 95;
constexpr std::string_view kImagesName = "images-idx3-ubyte";
constexpr std::string_view kLabelsName = "labels-idx1-ubyte";

// A part of the output.
struct Part {
  std::string folder;          // below the output; "": the output itself
  std::string images, labels;  // idx files; empty: the input is a folder
};

// Returns `path` or `path`.gz, whichever exists; "": neither.
std::string PlainOrGzipped(const std::string& path) {
  std::error_code error;
  for (const char* const ending : {"", ".gz"}) {
    if (fs::is_regular_file(path + ending, error)) return path + ending;
  }
  return "";
}

// Returns the labels beside images with MNIST's names.
absl::StatusOr<std::string> LabelsOf(const std::string& images) {
  const fs::path path(images);
  std::string name = path.filename().string();
  const size_t at = name.find(kImagesName);
  if (at == std::string::npos) {
    return InvalidArgument("{}: --labels FILE: which are its labels?", images);
  }
  name.replace(at, std::string::npos, kLabelsName);
  const std::string wanted = (path.parent_path() / name).string();
  const std::string labels = PlainOrGzipped(wanted);
  if (!labels.empty()) return labels;
  return NotFound("{}: its labels are not beside it: no {} and no {}.gz",
                  images, wanted, wanted);
}

absl::StatusOr<std::vector<Part>> PartsOf(const ConvertOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(options.input, error);
  if (status.type() == fs::file_type::none)
    return FailedPrecondition("{}: {}", options.input, error.message());
  if (!fs::exists(status)) {
    return NotFound("{}: no such file or folder", options.input);
  }
  struct stat info {};
  if (!fs::is_directory(status) && !fs::is_regular_file(status) &&
      stat(options.input.c_str(), &info) == 0)
    return InvalidArgument("{}: {}, want a folder of images or an idx file",
                           options.input, FileKind(info.st_mode));
  std::vector<Part> parts;
  if (!fs::is_directory(status)) {
    std::string labels = options.labels;
    if (labels.empty()) {
      ASSIGN_OR_RETURN(labels, LabelsOf(options.input));
    }
    parts.push_back({"", options.input, std::move(labels)});
    return parts;
  }
  for (const auto& [prefix, folder] :
       {std::pair("train-", "training"), std::pair("t10k-", "testing")}) {
    const std::string images = PlainOrGzipped(
        fmt::format("{}/{}{}", options.input, prefix, kImagesName));
    if (images.empty()) continue;
    ASSIGN_OR_RETURN(std::string labels, LabelsOf(images));
    parts.push_back({folder, images, std::move(labels)});
  }
  if (!parts.empty() && !options.labels.empty()) {
    return InvalidArgument("--labels: {} is a folder with labels of its own",
                           options.input);
  }
  if (parts.empty()) parts.push_back({});
  return parts;
}

absl::Status CheckOptions(const ConvertOptions& options, bool idx) {
  const bool recoded = !options.labels.empty() || !options.encoding.empty() ||
                       options.quality != 0;
  if (!idx && recoded) {
    return InvalidArgument(
        "{}: an image folder: its files are taken as they are, with their "
        "classes; --labels, --encoding and --quality are for idx files",
        options.input);
  }
  if (options.quality != 0 && options.encoding != "jpeg") {
    return InvalidArgument("--quality: for --encoding jpeg; PNG loses nothing");
  }
  if (options.to == "caffe2" && options.shard_bytes != 0) {
    return InvalidArgument("--shard-size: an LMDB is one file");
  }
  return absl::OkStatus();
}

absl::Status WriteClasses(const std::string& folder,
                          const std::vector<std::string>& classes) {
  std::string lines;
  for (const std::string& name : classes) lines += name + '\n';
  return WriteFile(folder + "/classes.txt", lines);
}

absl::StatusOr<std::unique_ptr<RecordInput>> OpenInput(
    const ConvertOptions& options, const Part& part,
    const std::string& folder) {
  if (!part.images.empty()) {
    return OpenIdx(
        part.images, part.labels,
        {.jpeg = options.encoding == "jpeg",
         .quality = options.quality == 0 ? kQuality : options.quality});
  }
  ASSIGN_OR_RETURN(FolderInput input, OpenFolder(options.input));
  RETURN_IF_ERROR(WriteClasses(folder, input.classes));
  return std::move(input.records);
}

absl::StatusOr<std::unique_ptr<RecordOutput>> OpenOutput(
    const ConvertOptions& options, const std::string& folder) {
  const uint64_t shard_bytes =
      options.shard_bytes == 0 ? kShardBytes : options.shard_bytes;
  if (options.to == "caffe2") return NewCaffe2Output(folder);
  if (options.to == "tfrecord") return NewTfrecordOutput(folder, shard_bytes);
  if (options.to == "webdataset") {
    return NewWebdatasetOutput(folder, shard_bytes);
  }
  return InvalidArgument("--to \"{}\": want caffe2, tfrecord or webdataset",
                         options.to);
}

absl::StatusOr<uint64_t> ConvertPart(const ConvertOptions& options,
                                     const Part& part, std::string folder) {
  if (!part.folder.empty()) {
    folder += "/" + part.folder;
    std::error_code error;
    fs::create_directory(folder, error);
    if (error) return FailedPrecondition("{}: {}", folder, error.message());
  }
  ASSIGN_OR_RETURN(const auto input, OpenInput(options, part, folder));
  ASSIGN_OR_RETURN(const auto output, OpenOutput(options, folder));
  uint64_t records = 0;
  for (Record record;; ++records) {
    ASSIGN_OR_RETURN(const bool more, input->Next(&record));
    if (!more) break;
    RETURN_IF_ERROR(output->Add(record));
  }
  RETURN_IF_ERROR(output->Finish());
  return records;
}

void CountFiles(const std::string& folder, Converted* converted) {
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    ++converted->files;
    converted->bytes += entry.file_size(error);
  }
}

// An output in the image folder would become one of its classes.
absl::Status CheckOutput(const ConvertOptions& options, bool of_folder) {
  if (options.output.empty())
    return InvalidArgument("OUTPUT is empty: want a folder to make");
  std::error_code error, of_input;
  const fs::path output = fs::absolute(options.output, error);
  if (error)
    return FailedPrecondition("{}: {}", options.output, error.message());
  const fs::path below =
      fs::weakly_canonical(output, error)
          .lexically_relative(fs::canonical(options.input, of_input));
  if (!of_folder || error || of_input || below.empty() || below == "." ||
      *below.begin() == "..")
    return absl::OkStatus();
  return InvalidArgument(
      "{}: is inside the input folder {}, and would become a class of it; "
      "want a folder outside",
      options.output, options.input);
}

}  // namespace

absl::StatusOr<Converted> Convert(const ConvertOptions& options) {
  ASSIGN_OR_RETURN(const std::vector<Part> parts, PartsOf(options));
  RETURN_IF_ERROR(CheckOptions(options, !parts.front().images.empty()));
  RETURN_IF_ERROR(CheckOutput(options, parts.front().images.empty()));
  ASSIGN_OR_RETURN(NewFolder folder,
                   NewFolder::Make(options.output, options.force));
  Converted converted;
  for (const Part& part : parts) {
    ASSIGN_OR_RETURN(const uint64_t records,
                     ConvertPart(options, part, folder.path()));
    converted.records += records;
  }
  CountFiles(folder.path(), &converted);
  RETURN_IF_ERROR(folder.Commit());
  return converted;
}

}  // namespace leat::cli
