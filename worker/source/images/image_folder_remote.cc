// SPDX-License-Identifier: Apache-2.0
#include "worker/source/images/image_folder_remote.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/file_set.h"
#include "worker/source/images/folder_files.h"
#include "worker/source/images/image_folder_index.h"
#include "worker/source/images/labelled_files.h"
#include "worker/source/index_blob.h"
#include "worker/source/record_paths.h"
#include "worker/source/source_storage.h"
#include "worker/source/storage/base/identity.h"

namespace leat::worker {
namespace {

using stored::v1::ImageFile;
using stored::v1::ImageFolderClass;

// Longer than any identity of a storage.
constexpr size_t kMaxIdentityBytes = 2048;

struct Parts {
  bool hidden = false;  // one begins with a dot
  bool empty = false;   // one is empty
  bool moves = false;   // one is "." or "..", which no folder on disk is named
};

Parts PartsOf(std::string_view name) {
  Parts parts;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    parts.empty = parts.empty || end == begin;
    parts.hidden = parts.hidden || name.substr(begin).starts_with('.');
    const std::string_view part = name.substr(begin, end - begin);
    parts.moves = parts.moves || part == "." || part == "..";
    begin = end + 1;
  }
  return parts;
}

// Sorts a listing into classes, and the images that are in none.
class Sorter {
 public:
  Sorter(const std::string& root, bool hidden, const SourceLimits& limits)
      : root_(root), hidden_(hidden), limits_(limits) {}

  // Takes the objects below the root, in byte order.
  absl::Status Add(const StoredObject& object) {
    const std::string_view name = object.name;
    if (name.empty() || (!hidden_ && name.front() == '.'))
      return absl::OkStatus();
    // Such a name cannot be opened, nor be a class's.
    if (name.find('\0') != std::string_view::npos) {
      passed_over_.Add("files with a zero byte in their names", name);
      return absl::OkStatus();
    }
    const Parts parts = PartsOf(name);
    if (hidden_ && parts.moves) {
      passed_over_.Add("files with . or .. as a part of their names", name);
      return absl::OkStatus();
    }
    const size_t slash = name.find('/');
    FolderFiles* files = &unclassified_;
    if (slash != std::string_view::npos && slash != 0) {
      const std::string directory(name.substr(0, slash));
      RETURN_IF_ERROR(CheckImageName(root_, directory));
      files = &classes_[directory];
    }
    if (!hidden_ && parts.hidden) return absl::OkStatus();
    if (!IsImageName(name)) {
      // A name that ends with '/' stands for a directory.
      const std::string_view last = name.substr(name.rfind('/') + 1);
      if (!last.empty()) CountNoImage(last, name, &passed_over_);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(CheckImageName(root_, name));
    if (parts.empty) {
      passed_over_.Add("images with an empty part in their names", name);
      return absl::OkStatus();
    }
    if (++files_ > limits_.max_files)
      return ResourceExhausted("{}: more than {} images: the limit", root_,
                               limits_.max_files);
    files->Add({.name = name.substr(slash + 1),  // npos + 1 is 0
                .bytes = object.size,
                .identity = object.identity});
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<ListedClass>> Finish() {
    std::vector<ListedClass> classes;
    uint64_t classified = 0;
    for (auto& [directory, files] : classes_) {
      classified += files.size();
      classes.push_back({.directory = directory, .files = std::move(files)});
    }
    if (classified == 0) {
      if (unclassified_.empty()) return NoImages(root_, passed_over_);
      classes.clear();
      classes.push_back({.directory = "", .files = std::move(unclassified_)});
    } else {
      CountClasses(classes, unclassified_, &passed_over_);
    }
    return classes;
  }
  const PassedOverCounts& passed_over() const { return passed_over_; }

 private:
  const std::string& root_;
  const bool hidden_;
  const SourceLimits& limits_;
  std::map<std::string, FolderFiles> classes_;
  FolderFiles unclassified_;
  uint64_t files_ = 0;
  PassedOverCounts passed_over_;
};

struct RemoteClass {
  int32_t label = 0;
  uint64_t first_file = 0;
};

class RemoteImageFolder final : public LabelledFiles {
 public:
  RemoteImageFolder(const ImageFolderOptions& options,
                    const SourceLimits& limits)
      : LabelledFiles(FileSet(WithoutTrailingSlashes(options.path)), limits),
        repeat_(options.repeat),
        max_files_(limits.max_files) {}

  absl::Status Load(const ImageFolderOptions& options, std::string_view blob,
                    const SourceLimits& limits) {
    ASSIGN_OR_RETURN(fingerprint_,
                     ReadImageFolderIndex(options, blob, limits,
                                          [this](const ImageFolderClass& each) {
                                            return AddClass(each);
                                          }));
    files_.ShrinkToFit();
    return absl::OkStatus();
  }

  uint64_t num_samples() const override { return files_.count() * repeat_; }
  uint64_t RecordOf(uint64_t sample) const override {
    return sample % files_.count();
  }

 private:
  absl::Status AddClass(const ImageFolderClass& proto);
  absl::Status AddFile(const std::string& prefix, const ImageFile& file);
  int32_t LabelOf(uint64_t file) const override {
    const auto after =
        std::upper_bound(classes_.begin(), classes_.end(), file,
                         [](uint64_t f, const RemoteClass& each) {
                           return f < each.first_file;
                         });
    return (after - 1)->label;
  }

  const uint64_t repeat_;
  const uint64_t max_files_;
  std::vector<RemoteClass> classes_;  // ascending first_file; none is empty
};

absl::Status RemoteImageFolder::AddFile(const std::string& prefix,
                                        const ImageFile& file) {
  if (!StaysBelow(file.name()))
    return DataLoss("the index names a file outside its root");
  const std::string name = prefix + file.name();
  if (file.identity().empty() || file.identity().size() > kMaxIdentityBytes)
    return DataLoss("{}: an identity of {} bytes, want 1 to {}", name,
                    file.identity().size(), kMaxIdentityBytes);
  const auto identity = ParseIdentity(file.identity(), name);
  if (!identity.ok()) return DataLoss("{}", Message(identity.status()));
  if (identity->size != file.bytes())
    return DataLoss("{}: {} bytes, its identity says {}", name, file.bytes(),
                    identity->size);
  return files_.Add(name, file.bytes(), file.identity());
}

absl::Status RemoteImageFolder::AddClass(const ImageFolderClass& proto) {
  if (!proto.directory().empty() && !StaysBelow(proto.directory()))
    return DataLoss("the index names a directory outside its root");
  if (proto.files().empty()) return absl::OkStatus();
  if (files_.count() + static_cast<uint64_t>(proto.files_size()) > max_files_)
    return ResourceExhausted("the index lists more than {} files: the limit",
                             max_files_);
  classes_.push_back({.label = proto.label(), .first_file = files_.count()});
  const std::string prefix =
      proto.directory().empty() ? "" : proto.directory() + "/";
  for (const ImageFile& file : proto.files())
    RETURN_IF_ERROR(AddFile(prefix, file));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<BuiltIndex> BuildRemoteImageFolder(
    const ImageFolderOptions& options, const SourceLimits& limits) {
  const std::string root = WithoutTrailingSlashes(options.path);
  ASSIGN_OR_RETURN(std::vector<StoredObject> objects,
                   StorageOf(limits).List(root, limits.cancelled));
  Sorter sorter(root, options.hidden, limits);
  for (const StoredObject& object : objects)
    RETURN_IF_ERROR(sorter.Add(object));
  std::vector<StoredObject>().swap(objects);
  ASSIGN_OR_RETURN(std::vector<ListedClass> classes, sorter.Finish());
  ASSIGN_OR_RETURN(
      BuiltIndex index,
      AssembleImageFolder(options, root, std::move(classes), limits));
  index.name = NameOfPath(root);
  index.passed_over = sorter.passed_over().Take();
  return index;
}

absl::StatusOr<std::unique_ptr<Source>> OpenRemoteImageFolder(
    const ImageFolderOptions& options, std::string_view blob,
    const SourceLimits& limits) {
  return Loaded(std::make_unique<RemoteImageFolder>(options, limits),
                options.path, options, blob, limits);
}

}  // namespace leat::worker
