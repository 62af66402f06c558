// SPDX-License-Identifier: Apache-2.0
#include "core/status.h"
#include "worker/config/config.h"

namespace leat::worker {

std::string Config::ToString() const {
  return fmt::format(
      "listen={} http={} coordinator={} threads={} memory_bytes={} "
      "cache_bytes={} forms={} index_bytes={} "
      "buffer_bytes={} decode_bytes={} unpacked_bytes={} "
      "read_threads={} read_ahead_bytes={} disk_cache_bytes={} "
      "disk_cache_of={} ask_peers={} "
      "group_bytes={} max_unsent_groups_per_stream={} max_rows_per_stream={} "
      "max_rows_total={} max_streams={} formats={} gpu_slots={} "
      "gpu_slot_bytes={} "
      "gpu_group_bytes={} gpu_decode_bytes={} gpu_nvjpeg_bytes={} "
      "gpu_one_nvjpeg_handle={} "
      "drain_timeout_ms={} max_connections={} max_connections_per_address={} "
      "watchdog_interval_ms={} reads={} tls={} token={}",
      listen, http.empty() ? "none" : http, coordinator, threads, memory_bytes,
      cache_bytes, forms, index_bytes, buffer_bytes, decode_bytes,
      unpacked_bytes, read_threads, read_ahead_bytes, storage.disk_cache_bytes,
      disk_cache_of == DiskCacheOf::kAll ? "all" : "remote", ask_peers,
      group_bytes, max_unsent_groups_per_stream, max_rows_per_stream,
      max_rows_total, max_streams, image.formats.ToString(), gpu.slots,
      gpu.slot_bytes, gpu.group_bytes, gpu.decode_bytes, gpu.decoder_bytes,
      gpu.decoders_share, drain_timeout_ms, daemon.max_connections,
      daemon.max_connections_per_address, daemon.watchdog_interval_ms,
      !storage.allow           ? "everything"
      : storage.allow->empty() ? "nothing"
                               : "allowed",
      !security.cert_pem.empty(), !security.token.empty());
}

}  // namespace leat::worker
