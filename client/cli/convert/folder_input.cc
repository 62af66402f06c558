// SPDX-License-Identifier: Apache-2.0
#include "client/cli/convert/folder_input.h"

#include <algorithm>
#include <utility>

#include "client/cli/base/file.h"
#include "client/cli/convert/folder.h"
#include "client/cli/convert/image_encoder.h"
#include "core/status.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxImageBytes = 256ull << 20;

using FileNames = std::vector<std::string>;

// Returns whether `entry` has an image's name.
bool IsImage(const fs::directory_entry& entry) {
  // A missing file, or a dangling link, counts too: it was promised to be an
  // image.
  std::error_code error;
  return IsImageName(entry.path()) && (entry.is_regular_file(error) || error);
}

absl::StatusOr<FileNames> ImagesOf(const std::string& root,
                                   const std::string& directory) {
  FileNames names;
  if (directory.empty()) {
    ASSIGN_OR_RETURN(const FolderEntries top, ListFolder(root));
    for (const fs::directory_entry& file : top.files) {
      if (IsImage(file)) names.push_back(file.path().filename().string());
    }
  } else {
    RETURN_IF_ERROR(WalkClass(root, directory,
                              [&](const std::string& name, const auto& file) {
                                if (IsImage(file)) names.push_back(name);
                                return absl::OkStatus();
                              }));
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::string> ReadImage(const std::string& path) {
  ASSIGN_OR_RETURN(std::string bytes, ReadFile(path, kMaxImageBytes));
  if (bytes.size() <= kMaxImageBytes) return bytes;
  return FailedPrecondition("{}: want at most {} bytes", path, kMaxImageBytes);
}

class FolderRecords : public RecordInput {
 public:
  FolderRecords(std::string root, FileNames classes)
      : root_(std::move(root)), classes_(std::move(classes)) {}

  absl::StatusOr<bool> Next(Record* record) override {
    while (next_ == names_.size()) {
      if (label_ + 1 == static_cast<int32_t>(classes_.size())) return false;
      ++label_;
      next_ = 0;
      ASSIGN_OR_RETURN(names_, ImagesOf(root_, directory()));
    }
    record->file_name =
        directory().empty() ? names_[next_] : directory() + "/" + names_[next_];
    const std::string path = root_ + "/" + record->file_name;
    ASSIGN_OR_RETURN(record->image, ReadImage(path));
    record->extension = ImageExtension(record->image);
    if (record->extension.empty()) {
      return FailedPrecondition(
          "{}: {} bytes that begin as no image does: want JPEG, PNG, WebP, "
          "BMP, "
          "TIFF or JPEG 2000",
          path, record->image.size());
    }
    record->label = label_;
    record->class_name = directory();
    ++next_;
    return true;
  }

 private:
  const std::string& directory() const {
    return classes_[static_cast<size_t>(label_)];
  }

  const std::string root_;
  const FileNames classes_;
  int32_t label_ = -1;
  FileNames names_;  // of the current class
  size_t next_ = 0;
};

}  // namespace

absl::StatusOr<FolderInput> OpenFolder(const std::string& path) {
  ASSIGN_OR_RETURN(FolderEntries top, ListFolder(path));
  FolderInput input{.classes = std::move(top.directories)};
  const auto has_images = [&](const std::string& name) -> absl::StatusOr<bool> {
    ASSIGN_OR_RETURN(const FileNames names, ImagesOf(path, name));
    return !names.empty();
  };
  bool found = false;
  for (size_t i = 0; i < input.classes.size() && !found; ++i) {
    ASSIGN_OR_RETURN(found, has_images(input.classes[i]));
  }
  if (!found) {
    input.classes = {""};
    ASSIGN_OR_RETURN(found, has_images(""));
  }
  if (!found) {
    return NotFound(
        "{}: no images: want files that end in {} here or in sub-directories, "
        "one a class",
        path, ImageNames());
  }
  input.records = std::make_unique<FolderRecords>(path, input.classes);
  return input;
}

}  // namespace leat::cli
