// SPDX-License-Identifier: Apache-2.0
#include "worker/source/content_hash.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace leat::worker {
namespace {

std::string FolderPart(std::string_view path) {
  const size_t slash = path.rfind('/');
  return std::string(
      path.substr(0, slash == std::string_view::npos ? 0 : slash + 1));
}

}  // namespace

ContentHash::ContentHash(std::string_view format,
                         const std::vector<std::string>& places) {
  hash_.UpdateField("leat.content.1").UpdateField(format);
  bool first = true;
  for (std::string_view place : places) {
    if (place.empty()) continue;
    if (const size_t wild = place.find_first_of("*?[{");
        wild != std::string_view::npos) {
      folders_.insert(FolderPart(place.substr(0, wild)));
    } else {
      while (place.ends_with('/')) place.remove_suffix(1);
      folders_.insert(std::string(place) + '/');
    }
    const std::string folder = FolderPart(place);
    const size_t most = std::min(folder.size(), common_.size());
    const auto end =
        std::mismatch(folder.begin(), folder.begin() + static_cast<long>(most),
                      common_.begin())
            .first;
    common_ = first ? folder : FolderPart({folder.begin(), end});
    first = false;
  }
}

std::string_view ContentHash::NameOf(std::string_view uri) const {
  for (size_t end = uri.size(); end > 0; --end)
    if (uri[end - 1] == '/' && end < uri.size() &&
        folders_.contains(absl::string_view(uri.data(), end)))
      return uri.substr(end);
  if (uri.starts_with(common_)) uri.remove_prefix(common_.size());
  return uri;
}

ContentHash& ContentHash::AddFile(std::string_view uri, uint64_t size) {
  hash_.UpdateField(NameOf(uri)).UpdateU64(size);
  return *this;
}

void ContentHash::Finish(BuiltIndex* index) {
  const ShardTable& shards = index->shards;
  AddNumber(shards.num_samples()).AddNumber(shards.num_shards());
  if (!shards.uniform())
    for (uint32_t i = 0; i < shards.num_shards(); ++i)
      AddNumber(shards.range(i).size());
  AddNumber(index->classes.size());
  for (const std::string& name : index->classes) AddText(name);
  AddNumber(index->types.size());
  for (const ValueType& type : index->types) {
    AddNumber(static_cast<uint64_t>(type.kind))
        .AddNumber(static_cast<uint64_t>(type.dtype))
        .AddNumbers(type.shape);
  }
  index->content = hash_.Finish();
}

}  // namespace leat::worker
