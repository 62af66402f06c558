// SPDX-License-Identifier: Apache-2.0
//
// storage_tool: Storage from the command line, for tests against real servers.
//
//   storage_tool list URI               name TAB size TAB identity, a line each
//   storage_tool stat URI               the same of one object
//   storage_tool range URI FIRST SIZE   the bytes, to stdout
//   storage_tool hash URI               SHA-256 TAB name of every object below,
//                                       each opened by its listed identity
//
// Status 1 and one line on stderr if it fails.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/hash.h"
#include "core/status.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxBytes = 1 << 30;

void PrintObject(const StoredObject& object) {
  std::printf("%s\t%llu\t%s\n", object.name.c_str(),
              static_cast<unsigned long long>(object.size),
              object.identity.c_str());
}

absl::Status Hash(const Storage& storage, const std::string& uri) {
  ASSIGN_OR_RETURN(const auto list, storage.List(uri));
  for (const StoredObject& each : list) {
    ASSIGN_OR_RETURN(const auto file,
                     storage.Open(JoinUri(uri, each.name), each.identity));
    ASSIGN_OR_RETURN(const std::string bytes, ReadWhole(*file, kMaxBytes));
    std::printf("%s\t%s\n", ToHex(HashOf(bytes)).c_str(), each.name.c_str());
    std::fflush(stdout);
  }
  return absl::OkStatus();
}

absl::Status Range(const Storage& storage, const std::string& uri,
                   uint64_t first, uint64_t size) {
  if (size > kMaxBytes) return InvalidArgument("{} bytes are too many", size);
  ASSIGN_OR_RETURN(const auto file, storage.Open(uri));
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(file->ReadAt(
      first, std::as_writable_bytes(std::span(bytes.data(), size))));
  std::fwrite(bytes.data(), 1, size, stdout);
  return absl::OkStatus();
}

absl::Status Run(int argc, char** argv) {
  const std::string_view verb = argc > 2 ? argv[1] : "";
  const std::string uri = argc > 2 ? argv[2] : "";
  // Parts small enough that a photo has several.
  ASSIGN_OR_RETURN(const auto storage,
                   Storage::Create({.range_bytes = 64 << 10}));
  if (verb == "list") {
    ASSIGN_OR_RETURN(const auto list, storage->List(uri));
    for (const StoredObject& each : list) PrintObject(each);
    return absl::OkStatus();
  }
  if (verb == "stat") {
    ASSIGN_OR_RETURN(const StoredObject object, storage->Stat(uri));
    PrintObject(object);
    return absl::OkStatus();
  }
  if (verb == "hash") return Hash(*storage, uri);
  if (verb == "range" && argc == 5) {
    return Range(*storage, uri, std::strtoull(argv[3], nullptr, 10),
                 std::strtoull(argv[4], nullptr, 10));
  }
  return InvalidArgument("want list|stat|hash URI, or range URI FIRST SIZE");
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  const absl::Status status = leat::worker::Run(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
