// SPDX-License-Identifier: Apache-2.0
#include "worker/config/config.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "CLI/CLI.hpp"
#include "core/cluster/pool_policy.h"
#include "core/cluster/roles.h"
#include "core/status.h"
#include "rpc/connections/listener.h"
#include "rpc/http/status_server.h"
#include "rpc/process/cores.h"
#include "rpc/process/flag_file.h"
#include "worker/config/pod_address.h"
#include "worker/source/storage/base/allowed.h"

namespace leat::worker {
namespace {

// How connections are taken, and what becomes of a process that takes none.
void AddServerFlags(CLI::App& app, Config& config) {
  app.add_option("--max-connections", config.max_connections,
                 "connections at a time; 0: by the limit of descriptors");
  app.add_option("--max-connections-per-address",
                 config.max_connections_per_address,
                 "of them from one IP address; 0: half");
  app.add_option("--watchdog-interval-ms", config.watchdog_interval_ms,
                 "how often this process asks itself whether it answers; after "
                 "three misses in a row it ends; 0: never")
      ->check(CLI::Range(0, 86'400'000));
  app.add_option("--otlp-endpoint", config.otlp.endpoint,
                 "http(s)://HOST:PORT of a collector that takes spans by OTLP "
                 "over gRPC (or OTEL_EXPORTER_OTLP_ENDPOINT); nothing is "
                 "traced without it");
  app.add_option("--trace-ratio", config.otlp.ratio,
                 "the share of steps that are traced, the same at trainers (or "
                 "OTEL_TRACES_SAMPLER_ARG)");
  app.add_flag("--no-seccomp", config.no_seccomp,
               "this process may start programs, and whatever else its user "
               "may: no filter of system calls");
}

int Fail(const absl::Status& status) {
  fmt::print(stderr, "leat-worker: {}\n", Message(status));
  return 2;
}

// What a start would say of the addresses.
absl::Status CheckListeners(const Config& config) {
  RETURN_IF_ERROR(rpc::CheckListener(config.security, config.listen));
  if (config.http.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string http, rpc::HttpAddress(config.http));
  return rpc::CheckListener(config.security, http);
}

// How records are read, and what is kept of them.
void AddStorageFlags(CLI::App& app, Config& config) {
  static const std::map<std::string, ReadAheadOf> kDatasets = {
      {"remote", ReadAheadOf::kRemote}, {"all", ReadAheadOf::kAll}};
  static const std::map<std::string, DiskCacheOf> kDiskCacheOf = {
      {"remote", DiskCacheOf::kRemote}, {"all", DiskCacheOf::kAll}};
  StorageConfig& storage = config.storage;
  app.add_option("--read-threads", config.read_threads,
                 "threads that wait for remote storage; 0: decode threads do")
      ->check(CLI::Range(0, 1024));
  app.add_option("--read-ahead-of", config.read_ahead_of,
                 "remote: datasets on the network; all: on local disks too")
      ->transform(CLI::CheckedTransformer(kDatasets))
      ->default_str("remote");
  app.add_option("--ask-peers", config.ask_peers,
                 "true: records that this worker does not keep are taken from "
                 "another owner of their shard, where that is faster than "
                 "storage; false: they are read from storage")
      ->default_str("true");
  app.add_option("--forms", config.forms,
                 "what is kept of JPEG files beside them, in what they leave "
                 "of --cache and of --disk-cache-bytes: none, seek, "
                 "coefficients, pixels (in memory only), or all, whichever "
                 "saves most")
      ->check(CLI::IsMember({"none", "seek", "coefficients", "pixels", "all"}));
  app.add_option("--storage-connections", storage.connections,
                 "requests to remote storage at a time")
      ->check(CLI::Range(1, 10'000));
  app.add_option("--storage-tries", storage.max_tries,
                 "of one request to remote storage")
      ->check(CLI::Range(1, 1000));
  const auto milliseconds = [&](const char* flag, StorageMs* into,
                                const char* help) {
    app.add_option_function<int64_t>(
           flag, [into](int64_t value) { *into = StorageMs(value); }, help)
        ->check(CLI::Range(1, 86'400'000));
  };
  milliseconds("--storage-timeout-ms", &storage.request_timeout,
               "of one try of a request to remote storage");
  milliseconds("--storage-deadline-ms", &storage.deadline,
               "of a read from remote storage with all its tries");
  app.add_option("--disk-cache", storage.disk_cache,
                 "directory, of this worker alone, for what s3, gs and http "
                 "gave, and for forms of its JPEG files");
  app.add_option("--disk-cache-of", config.disk_cache_of,
                 "remote: --disk-cache is for s3, gs and http; all: for "
                 "records on file systems (NFS, local disks), too")
      ->transform(CLI::CheckedTransformer(kDiskCacheOf));
  app.add_option("--local-copy", config.local_copies,
                 "FROM=TO: this machine has a copy of its own of the folder "
                 "FROM, which jobs name, at TO; may be given several times");
  app.add_option("--allow", config.allow,
                 "what jobs may read: folders, s3://BUCKET[/PREFIX], gs://..., "
                 "http(s)://HOST[:PORT][/PREFIX]; the default is everything on "
                 "a loopback listener, and nothing on others");
}

// Sizes are text until parsed.
struct SizeFlag {
  const char* flag;
  const char* help;
  uint64_t* bytes;
  std::string text;
};

}  // namespace

absl::StatusOr<uint64_t> ParseSize(std::string_view text) {
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit =
      text.substr(static_cast<size_t>(end - text.data()));
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},         {"B", 1},        {"KiB", 1u << 10}, {"MiB", 1u << 20},
      {"K", 1u << 10}, {"M", 1u << 20}, {"G", 1u << 30},   {"GiB", 1u << 30},
      {"T", 0x1p40},   {"TiB", 0x1p40}, {"KB", 1e3},       {"MB", 1e6},
      {"GB", 1e9},     {"TB", 1e12}};
  for (const auto& [name, factor] : kUnits)
    if (error == std::errc() && unit == name && value >= 0 &&
        value * factor < 0x1p60)
      return static_cast<uint64_t>(value * factor);
  return InvalidArgument("\"{}\" is not a size: want 512MiB, 8GiB or the like",
                         text);
}

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
  // Half of it at most, with what is kept.
  image.kept_scratch_bytes =
      std::min<uint64_t>(ImageLimits().kept_scratch_bytes,
                         decode_bytes / 4 / static_cast<uint64_t>(threads));
  if (!has_cache_bytes)
    cache_bytes = memory_bytes - std::min(memory_bytes, others);
  has_cache_bytes = true;
}

uint64_t Config::shared_decode_bytes() const {
  // A thread may keep as much as its row may have: of another row.
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
  if (plane != "auto" && plane != "grpc" && plane != "shm" && plane != "cuda")
    return InvalidArgument("LEAT_PLANE \"{}\": want auto, grpc, shm or cuda",
                           plane);
  if (drain_timeout_ms < 0)
    return InvalidArgument("--drain-timeout-ms {}: want 0 or more",
                           drain_timeout_ms);
  if (max_connections < 0 || max_connections_per_address < 0)
    return InvalidArgument(
        "--max-connections {}, --max-connections-per-address {}: want 0 or "
        "more",
        max_connections, max_connections_per_address);
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

absl::Status Config::ReadSecurity(rpc::Security* into) const {
  rpc::Security read = *into;
  RETURN_IF_ERROR(rpc::ReadTls(tls, &read));
  if (!access_token_file.empty()) {
    ASSIGN_OR_RETURN(read.token, rpc::ReadAccessToken(access_token_file));
  }
  *into = std::move(read);
  return absl::OkStatus();
}

std::variant<Config, int> ParseFlags(int argc, char** argv,
                                     const Environment& environment) {
  Config config;
  config.coordinator = environment.coordinator;
  config.security.token = environment.access_token.value_or("");
  if (!environment.plane.empty()) config.plane = environment.plane;
  config.pool = environment.pool;
  config.otlp = environment.otlp;
  std::string devices = "all", log_format = "text";
  std::string formats = config.image.formats.ToString();
  SizeFlag sizes[] = {
      {"--memory",
       "all memory for caches and buffers; the default is 3/16 of the control "
       "group's",
       &config.memory_bytes, ""},
      {"--cache",
       "of --memory, for stored samples; the default is what others leave",
       &config.cache_bytes, ""},
      {"--index-cache", "of --memory, for blocks of datasets' indexes",
       &config.index_bytes, ""},
      {"--buffers", "of --memory, for batches being computed and sent",
       &config.buffer_bytes, ""},
      {"--decode-memory",
       "working memory of all decode threads, beside --memory; the default is "
       "a quarter of the control group's",
       &config.decode_bytes, ""},
      {"--unpacked-memory",
       "what readers keep of decompressed shards, chunks and files, beside "
       "both; the default is an eighth of the control group's",
       &config.unpacked_bytes, ""},
      {"--read-ahead",
       "of --memory, for records read ahead of the decode threads",
       &config.read_ahead_bytes, ""},
      {"--shared-rows",
       "of --memory, for finished rows that other trainers may ask for",
       &config.shared_rows_bytes, ""},
      {"--read-together",
       "records read ahead by one request span at most these bytes; 0: one by "
       "one",
       &config.nearby.total_bytes, ""},
      {"--disk-cache-bytes", "bound of --disk-cache",
       &config.storage.disk_cache_bytes, ""},
      {"--group-bytes", "bytes of rows sent together", &config.group_bytes, ""},
      {"--max-lent", "memory that consumers on this host may lend",
       &config.lending.limits.max_lent_bytes, ""},
      {"--gpu-slot-bytes",
       "a group's decoded pixels, and its values between operators",
       &config.gpu.slot_bytes, ""},
      {"--gpu-group-bytes", "bytes of rows that a GPU computes together",
       &config.gpu.group_bytes, ""},
      {"--gpu-decode-bytes", "a group's images that the GPU decodes",
       &config.gpu.decode_bytes, ""},
      {"--gpu-nvjpeg-bytes", "the most that nvJPEG takes for a group",
       &config.gpu.decoder_bytes, ""}};

  CLI::App app("leat-worker: reads, decodes and augments, and serves the rows.",
               "leat-worker");
  app.set_version_flag("--version",
                       fmt::format("leat-worker {}", rpc::kLeatVersion));
  app.add_option("--listen", config.listen,
                 "HOST:PORT, port 0: any; unix-abstract:NAME; fd:N: an "
                 "inherited Unix socket that listens, for callers of this "
                 "user");
  app.add_option("--http", config.http,
                 "where /livez, /readyz and /metrics are shown: HOST:PORT, or "
                 "a PORT of this machine alone; nowhere without it");
  app.add_option("--coordinator", config.coordinator,
                 "the coordinator's HOST:PORT (or LEAT_COORDINATOR)");
  app.add_option("--name", config.name, "unique; the default is host and port");
  app.add_option("--pool", config.pool,
                 "the pool that the worker belongs to (or LEAT_POOL); the "
                 "default is \"default\"");
  app.add_option("--advertise", config.advertise,
                 "the address that consumers use, if not the listener's");
  app.add_option("--pod-domain", config.pod_domain,
                 "of a pod in Kubernetes: consumers use, for --advertise "
                 "10.1.2.3:7412, the name 10-1-2-3.DOMAIN:7412 that a headless "
                 "Service gives it")
      ->type_name("DOMAIN");
  app.add_option(
         "--threads", config.threads,
         "decode threads; the default is the control group's cores, or what "
         "Slurm gave the task")
      ->check(CLI::Range(1, 1024));
  app.add_option("--formats", formats,
                 "image formats that are decoded: jpeg, and some of png, webp, "
                 "bmp, tiff, jpeg2000; the default is all of them");
  AddStorageFlags(app, config);
  app.add_option("--devices", devices, "all, none, or GPUs 0,1,...");
  app.add_option("--gpu-slots", config.gpu.slots,
                 "groups of rows on a GPU at the same time");
  for (SizeFlag& size : sizes) app.add_option(size.flag, size.text, size.help);
  app.add_option("--max-unsent-groups", config.max_unsent_groups_per_stream,
                 "groups that a consumer may leave unread");
  app.add_option("--max-rows-per-stream", config.max_rows_per_stream,
                 "rows that one consumer may have waiting");
  app.add_option("--max-rows", config.max_rows_total,
                 "rows that all consumers may have waiting");
  app.add_option("--max-streams", config.max_streams, "consumers at a time");
  app.add_option("--drain-timeout-ms", config.drain_timeout_ms,
                 "to finish what was asked, after SIGTERM");
  AddServerFlags(app, config);
  app.add_option("--access-token-file", config.access_token_file,
                 "file with the service's access token (or "
                 "LEAT_ACCESS_TOKEN); SIGHUP reads it again");
  app.add_option("--tls-cert", config.tls.cert,
                 "PEM file: turns TLS on; SIGHUP reads it again");
  app.add_option("--tls-key", config.tls.key, "PEM file");
  app.add_option("--tls-ca", config.tls.ca,
                 "PEM file of the roots to trust, which also asks callers for "
                 "a certificate; or system: what the machine trusts, and "
                 "callers are asked for none");
  std::vector<std::string> san_roles;
  app.add_option("--role-from-san", san_roles,
                 "PATTERN=ROLE: the role of callers whose certificate has such "
                 "a DNS name or URI; the first that fits counts");
  app.add_flag("--insecure", config.security.insecure,
               "plaintext and unknown callers beyond loopback are meant");
  app.add_option("--log-format", log_format,
                 "text or json; text has no time for systemd's journal, which "
                 "adds it")
      ->check(CLI::IsMember({"text", "json"}));
  app.add_option("--log-level", config.log_level,
                 "trace, debug, info, warn or error")
      ->check(CLI::IsMember({"trace", "debug", "info", "warn", "error"}));
  app.add_option("--ready-fd", config.ready_fd,
                 "inherited descriptor: gets the address once ready")
      ->configurable(false);
  app.add_option("--lifeline-fd", config.lifeline_fd,
                 "inherited pipe: exits when its other end closes")
      ->configurable(false);
  rpc::FlagFile file(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    return Fail(rpc::FlagError(app, error));
  }
  if (absl::Status status = file.Apply(); !status.ok()) return Fail(status);
  if (file.print()) {
    fmt::print("{}", file.Text());
    return 0;
  }
  for (const SizeFlag& size : sizes) {
    if (size.text.empty()) continue;
    const absl::StatusOr<uint64_t> bytes = ParseSize(size.text);
    if (!bytes.ok())
      return Fail(InvalidArgument("{}: {}{}", size.flag,
                                  Message(bytes.status()), file.Origin()));
    *size.bytes = *bytes;
  }
  config.has_memory_bytes = !sizes[0].text.empty();
  config.has_cache_bytes = !sizes[1].text.empty();
  if (log_format == "json") config.log_format = LogFormat::kJson;
  absl::Status status = config.ReadSecurity(&config.security);
  if (config.security.token.empty() && environment.access_token.has_value())
    status.Update(InvalidArgument(
        "LEAT_ACCESS_TOKEN is set and empty: want a token, or that it is not "
        "set"));
  for (const std::string& text : san_roles) {
    absl::StatusOr<rpc::SanRole> rule = rpc::ParseSanRole(text);
    status.Update(rule.status());
    if (rule.ok()) config.security.san_roles.push_back(*std::move(rule));
  }
  if (std::string& token = config.security.token; !token.empty()) {
    auto checked = TokenIn("LEAT_ACCESS_TOKEN", token, kMinOwnToken);
    status.Update(checked.status());
    token = std::move(checked).value_or("");
  }
  status.Update(rpc::RefuseOtherTokens(environment.leat_token.c_str()));
  if (const auto selection = ParseDevices(devices); !selection.ok())
    status.Update(selection.status());
  else
    config.gpu.devices = *selection;
  if (const auto decoded = ImageFormats::Parse(formats); !decoded.ok())
    status.Update(decoded.status());
  else
    config.image.formats = *decoded;
  const rpc::TaskLimits task =
      rpc::LimitsOfTask(environment.slurm_cpus, environment.slurm_memory,
                        environment.slurm_memory_per_cpu);
  config.SetDefaults(std::min(rpc::UsableCores(), task.cores),
                     std::min(rpc::UsableMemory(), task.memory_bytes));
  status.Update(config.SetLocalCopies());
  status.Update(config.SetPodAddress());
  config.SetAllowed();
  if (status.ok()) status = config.Validate();
  if (status.ok() && file.check()) status = CheckListeners(config);
  if (!status.ok())
    return Fail(InvalidArgument("{}{}", Message(status), file.Origin()));
  if (!file.check()) return config;
  fmt::print("the configuration is good{}\n", file.Origin());
  return 0;
}

}  // namespace leat::worker
