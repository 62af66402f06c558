// SPDX-License-Identifier: Apache-2.0
#include "worker/source/record_names.h"

#include <string_view>
#include <utility>
#include <variant>

#include "core/pipeline/operators.h"
#include "core/redaction.h"
#include "worker/source/formats.h"
#include "worker/source/storage/base/uri.h"

namespace leat::worker {
namespace {

std::string WithSlash(std::string folder) {
  if (!folder.ends_with('/')) folder += '/';
  return folder;
}

// Names in a list without a root are below the list's folder.
std::string FolderOfNames(const Node& reader) {
  const std::string folder = FolderOf(reader);
  const auto root = reader.args.find("root");
  const bool has_root =
      root != reader.args.end() && root->second != Value(std::string());
  if (reader.op != kFileListFormat.op || has_root) return WithSlash(folder);
  return folder.substr(0, folder.rfind('/') + 1);
}

}  // namespace

// Readers without names of their own give an encoded record and its label.
std::vector<std::string> OutputNames(const Node& reader, size_t count) {
  const OperatorInfo* const info = FindOperator(reader.op);
  if (info != nullptr && !info->outputs_of.empty())
    if (const auto it = reader.args.find(info->outputs_of);
        it != reader.args.end())
      if (const auto* names =
              std::get_if<std::vector<std::string>>(&it->second);
          names != nullptr && names->size() == count)
        return *names;
  if (count == 2) return {"encoded", "label"};
  return std::vector<std::string>(count);
}

RecordNames::RecordNames(const Node& reader)
    : folder_(FolderOfNames(reader)), root_(WithSlash(RootOf(reader))) {}

std::string RecordNames::NameOf(const RecordPlace& place) const {
  if (!place.key.empty()) return place.key;
  std::string name = place.file;
  if (SchemeOf(name) == "file")
    if (absl::StatusOr<StorageUri> uri = ParseUri(name); uri.ok())
      name = std::move(uri->path);
  for (const std::string& folder : {folder_, root_})
    if (name.starts_with(folder)) return name.substr(folder.size());
  return name;
}

}  // namespace leat::worker
