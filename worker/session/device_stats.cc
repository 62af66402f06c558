// SPDX-License-Identifier: Apache-2.0
#include "worker/session/device_stats.h"

#include <algorithm>

namespace leat::worker {

Capacity::Devices AddDeviceStats(const std::vector<GpuStats>& before,
                                 const std::vector<GpuStats>& now,
                                 double seconds, v1::WorkerStats* stats) {
  Capacity::Devices devices;
  for (size_t i = 0; i < now.size(); ++i) {
    const GpuStats& gpu = now[i];
    const GpuStats last = i < before.size() ? before[i] : GpuStats();
    const double busy =
        static_cast<double>(gpu.busy_ns_total - last.busy_ns_total) / 1e9;
    devices.rows += static_cast<double>(gpu.rows_total() - last.rows_total());
    devices.busy_seconds += busy;
    devices.group_seconds +=
        static_cast<double>(gpu.group_ns_total - last.group_ns_total) / 1e9;
    ++devices.devices;
    v1::DeviceStats& proto = *stats->add_devices();
    proto.set_index(static_cast<uint32_t>(gpu.index));
    proto.set_slots(static_cast<uint32_t>(gpu.slots));
    proto.set_slots_in_use(static_cast<uint32_t>(gpu.slots_in_use));
    proto.set_memory_bytes(gpu.memory_bytes);
    proto.set_busy_fraction(std::clamp(busy / seconds, 0.0, 1.0));
    proto.set_groups_total(gpu.groups_total);
    proto.set_groups_failed_total(gpu.groups_failed_total);
    proto.set_rows_exact_total(gpu.rows_exact_total);
    proto.set_rows_coefficients_total(gpu.rows_coefficients_total);
    proto.set_rows_codes_total(gpu.rows_codes_total);
    proto.set_rows_hardware_total(gpu.rows_hardware_total);
    proto.set_rows_cuda_total(gpu.rows_kernels_total);
    proto.set_rows_host_total(gpu.rows_host_total);
    proto.set_splits_total(gpu.splits_total);
  }
  return devices;
}

}  // namespace leat::worker
