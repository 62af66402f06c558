// SPDX-License-Identifier: Apache-2.0
#include "server/convert.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/status.h"
#include "rpc/auth.h"
#include "rpc/convert.h"

namespace leat::server {
namespace {

constexpr size_t kMaxText = 1024;
constexpr int kMaxBadSamples = 100;  // of one job in one heartbeat
constexpr int kMaxJobs = 1000;       // in one heartbeat
constexpr int kMaxClasses = 1'000'000;

// Valid UTF-8 is kept so by cutting before a lead byte.
std::string Cut(const std::string& text) {
  if (text.size() <= kMaxText) return text;
  size_t end = kMaxText;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end);
}

double Finite(double value) {
  return std::isfinite(value) && value > 0 ? value : 0;
}

LatencySummary LatencyOf(const v1::LatencySummary& proto) {
  return {proto.count(), Finite(proto.mean_ms()), Finite(proto.p50_ms()),
          Finite(proto.p95_ms()), Finite(proto.max_ms())};
}

v1::LatencySummary LatencyProto(const LatencySummary& summary) {
  v1::LatencySummary proto;
  proto.set_count(summary.count);
  proto.set_mean_ms(summary.mean_ms);
  proto.set_p50_ms(summary.p50_ms);
  proto.set_p95_ms(summary.p95_ms);
  proto.set_max_ms(summary.max_ms);
  return proto;
}

v1::DeviceStats ToProto(const DeviceStats& stats) {
  v1::DeviceStats proto;
  proto.set_index(stats.index);
  proto.set_slots(stats.slots);
  proto.set_slots_in_use(stats.slots_in_use);
  proto.set_memory_bytes(stats.memory_bytes);
  proto.set_busy_fraction(stats.busy_fraction);
  proto.set_groups_total(stats.groups_total);
  proto.set_groups_failed_total(stats.groups_failed_total);
  proto.set_rows_exact_total(stats.rows_exact_total);
  proto.set_rows_hardware_total(stats.rows_hardware_total);
  proto.set_rows_cuda_total(stats.rows_cuda_total);
  proto.set_rows_host_total(stats.rows_host_total);
  proto.set_splits_total(stats.splits_total);
  return proto;
}

v1::Device ToProto(const Device& device) {
  v1::Device proto;
  proto.set_index(device.index);
  proto.set_uuid(device.uuid);
  proto.set_name(device.name);
  proto.set_memory_bytes(device.memory_bytes);
  proto.set_compute(device.compute);
  proto.set_jpeg_engines(device.jpeg_engines);
  proto.set_jpeg_cores(device.jpeg_cores);
  proto.set_nvjpeg_version(device.nvjpeg_version);
  return proto;
}

v1::WorkerStats ToProto(const WorkerStats& stats) {
  v1::WorkerStats proto;
  proto.set_rows_per_s(stats.rows_per_s);
  proto.set_capacity_rows_per_s(stats.capacity_rows_per_s);
  proto.set_rows_total(stats.rows_total);
  proto.set_bytes_sent_total(stats.bytes_sent_total);
  proto.set_payload_copies_total(stats.payload_copies_total);
  proto.set_rows_queued(stats.rows_queued);
  proto.set_streams(stats.streams);
  proto.set_cache_bytes(stats.cache_bytes);
  proto.set_cache_limit_bytes(stats.cache_limit_bytes);
  proto.set_cache_hits_total(stats.cache_hits_total);
  proto.set_cache_misses_total(stats.cache_misses_total);
  proto.set_buffers_in_use(stats.buffers_in_use);
  proto.set_buffers_total(stats.buffers_total);
  proto.set_busy_fraction(stats.busy_fraction);
  proto.set_bad_samples_total(stats.bad_samples_total);
  *proto.mutable_row_latency() = LatencyProto(stats.row_latency);
  proto.set_rss_bytes(stats.rss_bytes);
  proto.set_storage_requests_total(stats.storage_requests_total);
  proto.set_storage_retries_total(stats.storage_retries_total);
  proto.set_storage_hedges_total(stats.storage_hedges_total);
  proto.set_disk_cache_hits_total(stats.disk_cache_hits_total);
  proto.set_disk_cache_misses_total(stats.disk_cache_misses_total);
  proto.set_disk_cache_bytes(stats.disk_cache_bytes);
  proto.set_rows_ahead(stats.rows_ahead);
  proto.set_bytes_ahead(stats.bytes_ahead);
  for (const DeviceStats& device : stats.devices)
    *proto.add_devices() = ToProto(device);
  return proto;
}

v1::ConsumerStats ToProto(const ConsumerStats& stats) {
  v1::ConsumerStats proto;
  proto.set_job(stats.job);
  proto.set_host(stats.host);
  proto.set_pid(stats.pid);
  proto.set_epoch(stats.epoch);
  proto.set_step(stats.step);
  proto.set_steps_per_epoch(stats.steps_per_epoch);
  proto.set_rows_total(stats.rows_total);
  proto.set_rows_per_s(stats.rows_per_s);
  proto.set_stall_fraction(stats.stall_fraction);
  *proto.mutable_wait() = LatencyProto(stats.wait);
  proto.set_plane(stats.plane);
  proto.set_memory(stats.memory);
  proto.set_hedged_rows_total(stats.hedged_rows_total);
  proto.set_failed_over_rows_total(stats.failed_over_rows_total);
  proto.set_bytes_received_total(stats.bytes_received_total);
  proto.set_payload_copies_total(stats.payload_copies_total);
  return proto;
}

v1::BadSample ToProto(const BadSample& sample) {
  v1::BadSample proto;
  proto.set_sample(sample.sample);
  proto.set_record(sample.record);
  proto.set_reason(sample.reason);
  proto.set_count(sample.count);
  return proto;
}

struct MessageToProto {
  v1::WorkerSessionResponse* out;
  void operator()(const Welcome& welcome) const {
    v1::Welcome* proto = out->mutable_welcome();
    proto->set_coordinator_version(std::string(rpc::kLeatVersion));
    proto->mutable_heartbeat_interval()->set_seconds(
        welcome.heartbeat_interval / std::chrono::seconds(1));
    proto->mutable_heartbeat_interval()->set_nanos(static_cast<int32_t>(
        (welcome.heartbeat_interval % std::chrono::seconds(1)).count()));
    proto->set_sequence(welcome.sequence);
  }
  void operator()(const IndexDirective& directive) const {
    v1::IndexDataset* proto = out->mutable_index_dataset();
    proto->set_dataset_id(directive.dataset_id);
    proto->set_request_id(directive.request_id);
    *proto->mutable_reader() = rpc::ToProto(directive.reader);
  }
  void operator()(const LogLevelDirective& directive) const {
    out->set_log_level(directive.level);
  }
  void operator()(const std::shared_ptr<const Assignment>& assignment) const {
    *out->mutable_assignment() = ToProto(*assignment);
  }
};

}  // namespace

absl::StatusOr<Digest> DigestOf(std::string_view what, const std::string& raw) {
  Digest digest;
  if (raw.size() != digest.size())
    return InvalidArgument("{} has {} bytes: want {}", what, raw.size(),
                           digest.size());
  std::copy(raw.begin(), raw.end(), digest.begin());
  return digest;
}

DeviceStats FromProto(const v1::DeviceStats& proto) {
  DeviceStats stats;
  stats.index = proto.index();
  stats.slots = proto.slots();
  stats.slots_in_use = proto.slots_in_use();
  stats.memory_bytes = proto.memory_bytes();
  stats.busy_fraction = Finite(proto.busy_fraction());
  stats.groups_total = proto.groups_total();
  stats.groups_failed_total = proto.groups_failed_total();
  stats.rows_exact_total = proto.rows_exact_total();
  stats.rows_hardware_total = proto.rows_hardware_total();
  stats.rows_cuda_total = proto.rows_cuda_total();
  stats.rows_host_total = proto.rows_host_total();
  stats.splits_total = proto.splits_total();
  return stats;
}

Device FromProto(const v1::Device& proto) {
  Device device;
  device.index = proto.index();
  device.uuid = Cut(proto.uuid());
  device.name = Cut(proto.name());
  device.memory_bytes = proto.memory_bytes();
  device.compute = Cut(proto.compute());
  device.jpeg_engines = proto.jpeg_engines();
  device.jpeg_cores = proto.jpeg_cores();
  device.nvjpeg_version = Cut(proto.nvjpeg_version());
  return device;
}

absl::StatusOr<WorkerRegistration> FromProto(const v1::RegisterWorker& proto) {
  WorkerRegistration registration;
  registration.name = proto.name();
  registration.address = proto.address();
  registration.version = Cut(proto.version());
  registration.threads = proto.threads();
  for (int value : proto.decoder_classes()) {
    // Classes that this version does not know are of no use to it.
    if (value != v1::DECODER_CLASS_EXACT && value != v1::DECODER_CLASS_NVJPEG)
      continue;
    const auto known = static_cast<DecoderClass>(value);
    auto& classes = registration.decoder_classes;
    if (std::find(classes.begin(), classes.end(), known) == classes.end())
      classes.push_back(known);
  }
  registration.host = Cut(proto.host());
  registration.pid = proto.pid();
  registration.highest_sequence_seen = proto.highest_sequence_seen();
  for (int i = 0; i < std::min(proto.devices_size(), kMaxDevices); ++i)
    registration.devices.push_back(FromProto(proto.devices(i)));
  return registration;
}

WorkerStats FromProto(const v1::WorkerStats& proto) {
  WorkerStats stats;
  stats.rows_per_s = Finite(proto.rows_per_s());
  stats.capacity_rows_per_s = Finite(proto.capacity_rows_per_s());
  stats.rows_total = proto.rows_total();
  stats.bytes_sent_total = proto.bytes_sent_total();
  stats.payload_copies_total = proto.payload_copies_total();
  stats.rows_queued = proto.rows_queued();
  stats.streams = proto.streams();
  stats.cache_bytes = proto.cache_bytes();
  stats.cache_limit_bytes = proto.cache_limit_bytes();
  stats.cache_hits_total = proto.cache_hits_total();
  stats.cache_misses_total = proto.cache_misses_total();
  stats.buffers_in_use = proto.buffers_in_use();
  stats.buffers_total = proto.buffers_total();
  stats.busy_fraction = Finite(proto.busy_fraction());
  stats.bad_samples_total = proto.bad_samples_total();
  stats.row_latency = LatencyOf(proto.row_latency());
  stats.rss_bytes = proto.rss_bytes();
  stats.storage_requests_total = proto.storage_requests_total();
  stats.storage_retries_total = proto.storage_retries_total();
  stats.storage_hedges_total = proto.storage_hedges_total();
  stats.disk_cache_hits_total = proto.disk_cache_hits_total();
  stats.disk_cache_misses_total = proto.disk_cache_misses_total();
  stats.disk_cache_bytes = proto.disk_cache_bytes();
  stats.rows_ahead = proto.rows_ahead();
  stats.bytes_ahead = proto.bytes_ahead();
  for (int i = 0; i < std::min(proto.devices_size(), kMaxDevices); ++i)
    stats.devices.push_back(FromProto(proto.devices(i)));
  return stats;
}

ConsumerStats FromProto(const v1::ConsumerStats& proto) {
  ConsumerStats stats;
  stats.job = Cut(proto.job());
  stats.host = Cut(proto.host());
  stats.pid = proto.pid();
  stats.epoch = proto.epoch();
  stats.step = proto.step();
  stats.steps_per_epoch = proto.steps_per_epoch();
  stats.rows_total = proto.rows_total();
  stats.rows_per_s = Finite(proto.rows_per_s());
  stats.stall_fraction = Finite(proto.stall_fraction());
  stats.wait = LatencyOf(proto.wait());
  stats.plane = Cut(proto.plane());
  stats.memory = Cut(proto.memory());
  stats.hedged_rows_total = proto.hedged_rows_total();
  stats.failed_over_rows_total = proto.failed_over_rows_total();
  stats.bytes_received_total = proto.bytes_received_total();
  stats.payload_copies_total = proto.payload_copies_total();
  return stats;
}

std::vector<JobBadSamples> BadSamplesOf(const v1::Heartbeat& proto) {
  std::vector<JobBadSamples> jobs;
  for (int i = 0; i < std::min(proto.bad_samples_size(), kMaxJobs); ++i) {
    const v1::JobBadSamples& from = proto.bad_samples(i);
    JobBadSamples& job = jobs.emplace_back();
    job.job = from.job();
    for (int k = 0; k < std::min(from.samples_size(), kMaxBadSamples); ++k) {
      const v1::BadSample& sample = from.samples(k);
      job.samples.push_back({sample.sample(), Cut(sample.record()),
                             Cut(sample.reason()),
                             std::max<uint64_t>(1, sample.count())});
    }
  }
  return jobs;
}

absl::StatusOr<ConsumerOpening> FromProto(const v1::OpenConsumer& proto) {
  ConsumerOpening opening;
  ASSIGN_OR_RETURN(opening.plan_hash, DigestOf("plan_hash", proto.plan_hash()));
  opening.host = Cut(proto.host());
  opening.pid = proto.pid();
  opening.consumer = proto.consumer();
  return opening;
}

absl::StatusOr<IndexHeader> FromProto(const v1::IndexHeader& proto) {
  IndexHeader header;
  header.dataset_id = proto.dataset_id();
  header.request_id = proto.request_id();
  ASSIGN_OR_RETURN(header.fingerprint,
                   DigestOf("fingerprint", proto.fingerprint()));
  ASSIGN_OR_RETURN(header.shards, rpc::FromProto(proto.shards()));
  header.bytes = proto.bytes();
  if (proto.classes_size() > kMaxClasses)
    return InvalidArgument("{} classes: want at most {}", proto.classes_size(),
                           kMaxClasses);
  header.classes.assign(proto.classes().begin(), proto.classes().end());
  ASSIGN_OR_RETURN(header.types, rpc::FromProto(proto.types()));
  header.index_bytes = proto.index_bytes();
  ASSIGN_OR_RETURN(header.index_sha256,
                   DigestOf("index_sha256", proto.index_sha256()));
  header.name = Cut(proto.name());
  return header;
}

v1::Assignment ToProto(const Assignment& assignment) {
  v1::Assignment proto;
  proto.set_dataset_id(assignment.dataset_id);
  proto.set_instance(assignment.instance);
  proto.set_version(assignment.version);
  for (const WorkerRef& worker : assignment.workers) {
    v1::WorkerRef* ref = proto.add_workers();
    ref->set_name(worker.name);
    ref->set_address(worker.address);
  }
  proto.set_owners_per_shard(assignment.owners_per_shard);
  proto.set_owners(assignment.owners);
  return proto;
}

v1::WorkerSessionResponse ToProto(const WorkerMessage& message) {
  v1::WorkerSessionResponse proto;
  std::visit(MessageToProto{&proto}, message);
  return proto;
}

google::protobuf::Timestamp ToProto(WallTime time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                      time.time_since_epoch())
                      .count();
  google::protobuf::Timestamp proto;
  proto.set_seconds(ns / 1'000'000'000);
  proto.set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  return proto;
}

v1::WorkerInfo ToProto(const WorkerView& view) {
  const WorkerRegistration& from = view.registration;
  v1::WorkerInfo proto;
  proto.set_name(from.name);
  proto.set_address(from.address);
  proto.set_state(static_cast<v1::WorkerState>(view.state));
  proto.set_version(from.version);
  proto.set_threads(from.threads);
  for (DecoderClass has : from.decoder_classes)
    proto.add_decoder_classes(static_cast<v1::DecoderClass>(has));
  proto.set_weight(view.weight);
  proto.set_shards_owned(view.shards_owned);
  *proto.mutable_stats() = ToProto(view.stats);
  *proto.mutable_joined_at() = ToProto(view.joined_at);
  *proto.mutable_last_heartbeat_at() = ToProto(view.last_heartbeat_at);
  proto.set_host(from.host);
  proto.set_pid(from.pid);
  for (const Device& device : from.devices)
    *proto.add_devices() = ToProto(device);
  return proto;
}

v1::JobSummary ToProto(const JobView& view) {
  v1::JobSummary proto;
  *proto.mutable_job() = rpc::ToProto(*view.info);
  *proto.mutable_created_at() = ToProto(view.created_at);
  proto.set_consumers(view.consumers);
  proto.set_epoch(view.epoch);
  proto.set_step(view.step);
  proto.set_steps_per_epoch(view.steps_per_epoch);
  proto.set_rows_per_s(view.rows_per_s);
  proto.set_stall_fraction(view.stall_fraction);
  proto.set_bad_samples_total(view.bad_samples_total);
  for (const BadSample& sample : view.bad_samples)
    *proto.add_bad_samples() = ToProto(sample);
  proto.set_gpu_use(view.not_on_gpu.empty() ? v1::GPU_USE_YES : v1::GPU_USE_NO);
  proto.set_gpu_reason(view.not_on_gpu);
  return proto;
}

v1::DatasetSummary ToProto(const DatasetView& view) {
  v1::DatasetSummary proto;
  *proto.mutable_dataset() = rpc::ToProto(view.info);
  *proto.mutable_indexed_at() = ToProto(view.indexed_at);
  proto.set_state(view.state);
  proto.set_failure(view.failure);
  proto.mutable_jobs()->Assign(view.jobs.begin(), view.jobs.end());
  proto.set_index_bytes(view.index_bytes);
  return proto;
}

v1::ConsumerInfo ToProto(const ConsumerView& view) {
  v1::ConsumerInfo proto;
  proto.set_consumer(view.consumer);
  *proto.mutable_stats() = ToProto(view.stats);
  *proto.mutable_opened_at() = ToProto(view.opened_at);
  *proto.mutable_last_report_at() = ToProto(view.last_report_at);
  return proto;
}

v1::Finding ToProto(const Finding& finding) {
  v1::Finding proto;
  proto.set_code(finding.code);
  proto.set_severity(finding.severity);
  proto.set_summary(finding.summary);
  proto.set_remedy(finding.remedy);
  return proto;
}

}  // namespace leat::server
