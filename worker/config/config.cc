// SPDX-License-Identifier: Apache-2.0
#include "worker/config/config.h"

#include <algorithm>
#include <utility>

#include "core/cluster/pool_policy.h"
#include "core/status.h"
#include "rpc/connections/listener.h"
#include "rpc/http/status_server.h"
#include "rpc/process/machine.h"
#include "worker/config/pod_address.h"
#include "worker/source/storage/base/allowed.h"

namespace leat::worker {
void Config::SetDefaults() {
  SetDefaults(rpc::UsableCores(), rpc::UsableMemory());
}

void Config::SetDefaults(int machine_cores, uint64_t machine_bytes) {
  if (threads == 0) threads = machine_cores;
  if (!has_memory_bytes)
    memory_bytes = std::max<uint64_t>(machine_bytes / 16 * 3, 512ull << 20);
  const auto part = [this](uint64_t* bytes, uint64_t of, uint64_t least,
                           uint64_t most) {
    if (*bytes == 0) *bytes = std::clamp(memory_bytes / of, least, most);
    return *bytes;
  };
  const uint64_t others =
      part(&index_bytes, 8, 64ull << 20, 512ull << 20) +
      part(&buffer_bytes, 4, 160ull << 20, 1ull << 30) +
      part(&read_ahead_bytes, 8, 64ull << 20, 1ull << 30) +
      part(&shared_rows_bytes, 16, 32ull << 20, 512ull << 20);
  if (decode_bytes == 0)
    decode_bytes = std::max<uint64_t>(machine_bytes / 4, 512ull << 20);
  if (unpacked_bytes == 0)
    unpacked_bytes = std::max<uint64_t>(machine_bytes / 8, 256ull << 20);
  // Takes at most half of decode_bytes, including the memory that threads keep.
  image.kept_scratch_bytes =
      std::min<uint64_t>(ImageLimits().kept_scratch_bytes,
                         decode_bytes / 4 / static_cast<uint64_t>(threads));
  if (!has_cache_bytes)
    cache_bytes = memory_bytes - std::min(memory_bytes, others);
  has_cache_bytes = true;
}

uint64_t Config::shared_decode_bytes() const {
  // A thread may keep as much memory from an earlier row as its present row may
  // have.
  const uint64_t own =
      2 * static_cast<uint64_t>(threads) * image.kept_scratch_bytes;
  return decode_bytes - std::min(decode_bytes, own);
}

FormKinds Config::form_kinds() const {
  return {.seek_index = forms == "seek" || forms == "all",
          .coefficients = forms == "coefficients" || forms == "all",
          .pixels = forms == "pixels" || forms == "all"};
}

absl::Status Config::CheckMemory() const {
  const uint64_t parts = cache_bytes + index_bytes + buffer_bytes +
                         read_ahead_bytes + shared_rows_bytes;
  if (!has_memory_bytes || parts <= memory_bytes) return absl::OkStatus();
  return InvalidArgument(
      "--memory {}: want at least {}: --cache {} + --index-cache {} + "
      "--buffers {} + --read-ahead {} + --shared-rows {}",
      memory_bytes, parts, cache_bytes, index_bytes, buffer_bytes,
      read_ahead_bytes, shared_rows_bytes);
}

absl::Status Config::Validate() const {
  if (coordinator.empty())
    return InvalidArgument(
        "--coordinator: want HOST:PORT (or LEAT_COORDINATOR in the "
        "environment)");
  RETURN_IF_ERROR(rpc::CheckListenAddress(listen));
  if (!http.empty()) RETURN_IF_ERROR(rpc::HttpAddress(http).status());
  if (threads < 1 || threads > 1024)
    return InvalidArgument("--threads {}: want 1 to 1024", threads);
  RETURN_IF_ERROR(CheckMemory());
  if (buffer_bytes < 1 << 20)
    return InvalidArgument("--buffers {}: want at least 1MiB", buffer_bytes);
  if (decode_bytes < 64 << 20)
    return InvalidArgument("--decode-memory {}: want at least 64MiB",
                           decode_bytes);
  if (unpacked_bytes < 16 << 20)
    return InvalidArgument("--unpacked-memory {}: want at least 16MiB",
                           unpacked_bytes);
  if (read_threads < 0 || read_threads > 1024)
    return InvalidArgument("--read-threads {}: want 0 to 1024", read_threads);
  if (read_ahead_bytes < 1 << 20)
    return InvalidArgument("--read-ahead {}: want at least 1MiB",
                           read_ahead_bytes);
  if (nearby.total_bytes > storage.range_bytes)
    return InvalidArgument("--read-together {}: want at most {}",
                           nearby.total_bytes, storage.range_bytes);
  if (storage.disk_cache.empty() != (storage.disk_cache_bytes == 0))
    return InvalidArgument(
        "--disk-cache and --disk-cache-bytes: want both or none");
  if (storage.disk_cache.empty() && disk_cache_of == DiskCacheOf::kAll)
    return InvalidArgument(
        "--disk-cache-of all: want --disk-cache DIR beside it");
  if (!storage.disk_cache.empty() && storage.disk_cache_bytes < 64 << 20)
    return InvalidArgument("--disk-cache-bytes {}: want at least 64MiB",
                           storage.disk_cache_bytes);
  if (group_bytes < 1 << 10 || group_bytes > 64 << 20)
    return InvalidArgument("--group-bytes {}: want 1KiB to 64MiB", group_bytes);
  if (max_unsent_groups_per_stream < 1)
    return InvalidArgument("--max-unsent-groups: want at least 1");
  if (transport != "auto" && transport != "grpc" && transport != "shm" &&
      transport != "cuda")
    return InvalidArgument(
        "LEAT_TRANSPORT \"{}\": want auto, grpc, shm or cuda", transport);
  if (drain_timeout_ms < 0)
    return InvalidArgument("--drain-timeout-ms {}: want 0 or more",
                           drain_timeout_ms);
  RETURN_IF_ERROR(rpc::CheckConnectionFlags(
      daemon.max_connections, daemon.max_connections_per_address));
  if (!pool.empty()) RETURN_IF_ERROR(Annotate(CheckPoolName(pool), "--pool"));
  if (name.size() > 128)
    return InvalidArgument("--name of {} bytes: want up to 128", name.size());
  RETURN_IF_ERROR(gpu.Validate());
  RETURN_IF_ERROR(otlp.Validate());
  RETURN_IF_ERROR(AllowedReads::Create(storage.allow, [](const char*) {
                    return static_cast<const char*>(nullptr);
                  }).status());
  return security.Validate();
}

absl::Status Config::SetLocalCopies() {
  for (const std::string& text : local_copies) {
    const size_t equals = text.find('=');
    std::string from = text.substr(0, equals);
    std::string to = equals == std::string::npos ? "" : text.substr(equals + 1);
    for (std::string* path : {&from, &to})
      while (path->size() > 1 && path->ends_with('/')) path->pop_back();
    if (!from.starts_with('/') || !to.starts_with('/') || from == "/" ||
        to == "/")
      return InvalidArgument(
          "--local-copy \"{}\": want FROM=TO, two absolute paths of folders",
          text);
    if (!storage.local_copies.emplace(std::move(from), std::move(to)).second)
      return InvalidArgument("--local-copy \"{}\": its folder is given twice",
                             text);
  }
  return absl::OkStatus();
}

absl::Status Config::SetPodAddress() {
  if (pod_domain.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(advertise, PodAddress(advertise, pod_domain));
  return absl::OkStatus();
}

void Config::SetAllowed() {
  if (allow.empty() && rpc::IsLocal(listen)) return;
  storage.allow = allow;
  for (const auto& copy : storage.local_copies)
    storage.allow->push_back(copy.second);
}

}  // namespace leat::worker
