// SPDX-License-Identifier: Apache-2.0
//
// The worker's flags: declared, read, and completed by values from the
// environment and the machine.
#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "core/status.h"
#include "rpc/daemon/daemon_life.h"
#include "rpc/process/flag_file.h"
#include "rpc/process/machine.h"
#include "worker/config/config.h"

namespace leat::worker {
namespace {

constexpr rpc::DaemonHelp kHelp = {
    .access_token_file =
        "file with the service's access token (or LEAT_ACCESS_TOKEN); SIGHUP "
        "reads it again",
    .tls_cert = "PEM file: turns TLS on; SIGHUP reads it again",
    .tls_key = "PEM file",
    .tls_ca =
        "PEM file of the roots to trust, which also asks callers for a "
        "certificate; or system: what the machine trusts, and callers are "
        "asked for none",
    .insecure = "plaintext and unknown callers beyond loopback are meant",
    .ready_fd = "inherited descriptor: gets the address once ready",
    .lifeline_fd = "inherited pipe: exits when its other end closes"};

// Sizes are text until parsed.
struct SizeFlag {
  const char* flag;
  const char* help;
  uint64_t* bytes;
  bool* given = nullptr;  // nullptr: not needed
  bool derived = false;   // in the configuration, 0 means that it is not given
  std::string text = {};
};

// Flags that remain text until the command line has been read.
struct TextFlags {
  std::string devices = "all";
  std::string formats;
  std::vector<SizeFlag> sizes;
};

// Returns all sizes in bytes of a configuration.
std::vector<SizeFlag> SizeFlagsOf(Config* config) {
  return {
      {"--memory",
       "all memory for caches and buffers; the default is 3/16 of the control "
       "group's",
       &config->memory_bytes, &config->has_memory_bytes},
      {"--cache",
       "part of --memory for stored samples; the default is what others leave",
       &config->cache_bytes, &config->has_cache_bytes},
      {"--index-cache", "part of --memory for blocks of datasets' indexes",
       &config->index_bytes, nullptr, /*derived=*/true},
      {"--buffers", "part of --memory for batches being computed and sent",
       &config->buffer_bytes, nullptr, /*derived=*/true},
      {"--decode-memory",
       "working memory of all decode threads, beside --memory; the default is "
       "a quarter of the control group's",
       &config->decode_bytes, nullptr, /*derived=*/true},
      {"--unpacked-memory",
       "decompressed shards, chunks and files that readers keep, beside "
       "both; the default is an eighth of the control group's",
       &config->unpacked_bytes, nullptr, /*derived=*/true},
      {"--read-ahead",
       "part of --memory for records read ahead of the decode threads",
       &config->read_ahead_bytes, nullptr, /*derived=*/true},
      {"--shared-rows",
       "part of --memory for finished rows that other trainers may ask for",
       &config->shared_rows_bytes, nullptr, /*derived=*/true},
      {"--read-together",
       "records read ahead by one request span at most these bytes; 0: one by "
       "one",
       &config->nearby.total_bytes},
      {"--disk-cache-bytes", "bound of --disk-cache",
       &config->storage.disk_cache_bytes},
      {"--group-bytes", "bytes of rows sent together", &config->group_bytes},
      {"--max-shared", "memory that consumers on this host may share",
       &config->sharing.limits.max_shared_bytes},
      {"--gpu-slot-bytes",
       "a group's decoded pixels, and its values between operators",
       &config->gpu.slot_bytes},
      {"--gpu-group-bytes",
       "bytes of rows that a GPU computes together; the default follows from "
       "its memory, as do the next two",
       &config->gpu.group_bytes},
      {"--gpu-decode-bytes", "a group's images that the GPU decodes",
       &config->gpu.decode_bytes},
      {"--gpu-nvjpeg-bytes", "the most that nvJPEG takes for a group",
       &config->gpu.decoder_bytes}};
}

// Adds the flags for the worker's identity and addresses.
void AddIdentityFlags(CLI::App* app, Config* config, TextFlags* flags) {
  app->add_option("--listen", config->listen,
                  "HOST:PORT, port 0: any; unix-abstract:NAME; fd:N: an "
                  "inherited Unix socket that listens, for callers of this "
                  "user");
  app->add_option("--http", config->http,
                  "where /livez, /readyz and /metrics are shown: HOST:PORT, or "
                  "a PORT of this machine alone; nowhere without it");
  app->add_option("--coordinator", config->coordinator,
                  "the coordinator's HOST:PORT (or LEAT_COORDINATOR)");
  app->add_option("--name", config->name,
                  "unique; the default is host and port");
  app->add_option("--pool", config->pool,
                  "the pool that the worker belongs to (or LEAT_POOL); the "
                  "default is \"default\"");
  app->add_option("--advertise", config->advertise,
                  "the address that consumers use, if not the listener's");
  app->add_option("--pod-domain", config->pod_domain,
                  "a headless Service's domain in Kubernetes: for --advertise "
                  "10.1.2.3:7412, consumers use the pod's name "
                  "10-1-2-3.DOMAIN:7412")
      ->type_name("DOMAIN");
  app->add_option(
         "--threads", config->threads,
         "decode threads; the default is the control group's cores, or what "
         "Slurm gave the task")
      ->check(CLI::Range(1, 1024));
  app->add_option(
      "--formats", flags->formats,
      "image formats that are decoded: jpeg, and some of png, webp, "
      "bmp, tiff, jpeg2000; the default is all of them");
}

// Adds the flags for reading records and for caches.
void AddStorageFlags(CLI::App* app, Config* config) {
  static const std::map<std::string, ReadAheadOf> kDatasets = {
      {"remote", ReadAheadOf::kRemote}, {"all", ReadAheadOf::kAll}};
  static const std::map<std::string, DiskCacheOf> kDiskCacheOf = {
      {"remote", DiskCacheOf::kRemote}, {"all", DiskCacheOf::kAll}};
  StorageConfig& storage = config->storage;
  app->add_option("--read-threads", config->read_threads,
                  "threads that wait for remote storage; 0: decode threads do")
      ->check(CLI::Range(0, 1024));
  app->add_option("--read-ahead-of", config->read_ahead_of,
                  "remote: datasets on the network; all: on local disks too")
      ->transform(CLI::CheckedTransformer(kDatasets))
      ->default_str("remote");
  app->add_option("--ask-peers", config->ask_peers,
                  "true: records that this worker does not keep are taken from "
                  "another owner of their shard, where that is faster than "
                  "storage; false: they are read from storage")
      ->default_str("true");
  app->add_option(
         "--forms", config->forms,
         "decoded forms of images that are kept, in what the files leave "
         "of --cache and of --disk-cache-bytes: none, seek, coefficients, "
         "pixels (in memory only), or all, whichever saves most; formats "
         "other than JPEG have pixels alone")
      ->check(CLI::IsMember({"none", "seek", "coefficients", "pixels", "all"}));
  app->add_option("--storage-connections", storage.connections,
                  "requests to remote storage at a time")
      ->check(CLI::Range(1, 10'000));
  app->add_option("--storage-tries", storage.max_tries,
                  "tries of one request to remote storage")
      ->check(CLI::Range(1, 1000));
  const auto milliseconds = [&](const char* flag, StorageMs* into,
                                const char* help) {
    app->add_option_function<int64_t>(
           flag, [into](int64_t value) { *into = StorageMs(value); }, help)
        ->check(CLI::Range(1, 86'400'000));
  };
  milliseconds("--storage-timeout-ms", &storage.request_timeout,
               "time of one try of a request to remote storage");
  milliseconds("--storage-deadline-ms", &storage.deadline,
               "time of a read from remote storage with all its tries");
  app->add_option("--disk-cache", storage.disk_cache,
                  "directory, of this worker alone, for what s3, gs and http "
                  "gave, and for forms of its JPEG files");
  app->add_option("--disk-cache-of", config->disk_cache_of,
                  "remote: --disk-cache is for s3, gs and http; all: for "
                  "records on file systems (NFS, local disks), too")
      ->transform(CLI::CheckedTransformer(kDiskCacheOf))
      ->default_str("remote");
  app->add_option("--local-copy", config->local_copies,
                  "FROM=TO: this machine has a copy of its own of the folder "
                  "FROM, which jobs name, at TO; may be given several times");
  app->add_option(
      "--allow", config->allow,
      "places that jobs may read: folders, s3://BUCKET[/PREFIX], gs://..., "
      "http(s)://HOST[:PORT][/PREFIX]; the default is everything on "
      "a loopback listener, and nothing on others");
}

// Adds the limits on what consumers may leave waiting.
void AddLimitFlags(CLI::App* app, Config* config) {
  app->add_option("--max-unsent-groups", config->max_unsent_groups_per_stream,
                  "groups that a consumer may leave unread");
  app->add_option("--max-rows-per-stream", config->max_rows_per_stream,
                  "rows that one consumer may have waiting");
  app->add_option("--max-rows", config->max_rows_total,
                  "rows that all consumers may have waiting");
  app->add_option("--max-streams", config->max_streams, "consumers at a time");
  app->add_option("--drain-timeout-ms", config->drain_timeout_ms,
                  "to finish what was asked, after SIGTERM");
}

void AddFlags(CLI::App* app, Config* config, TextFlags* flags) {
  app->set_version_flag("--version",
                        fmt::format("leat-worker {}", rpc::kLeatVersion));
  AddIdentityFlags(app, config, flags);
  AddStorageFlags(app, config);
  app->add_option("--devices", flags->devices, "all, none, or GPUs 0,1,...");
  app->add_option("--gpu-slots", config->gpu.slots,
                  "groups of rows on a GPU at the same time");
  app->add_flag("--gpu-one-nvjpeg-handle", config->gpu.decoders_share,
                "the groups on a GPU use one handle of nvJPEG, instead of one "
                "each");
  for (SizeFlag& size : flags->sizes)
    app->add_option(size.flag, size.text, size.help);
  AddLimitFlags(app, config);
  rpc::AddConnectionFlags(kHelp, app, &config->daemon);
  app->add_option("--otlp-endpoint", config->otlp.endpoint,
                  "http(s)://HOST:PORT of a collector that takes spans by OTLP "
                  "over gRPC (or OTEL_EXPORTER_OTLP_ENDPOINT); nothing is "
                  "traced without it");
  app->add_option("--trace-ratio", config->otlp.ratio,
                  "the share of steps that are traced, the same at trainers "
                  "(or OTEL_TRACES_SAMPLER_ARG)");
  rpc::AddConfinementFlag(app, &config->daemon);
  rpc::AddSecurityFlags(kHelp, app, &config->daemon);
  rpc::AddProcessFlags(kHelp, app, &config->daemon);
}

Config ConfigOf(const Environment& environment) {
  Config config;
  config.coordinator = environment.coordinator;
  if (!environment.transport.empty()) config.transport = environment.transport;
  config.pool = environment.pool;
  config.otlp = environment.otlp;
  return config;
}

absl::Status ReadSizes(const std::vector<SizeFlag>& sizes) {
  for (const SizeFlag& size : sizes) {
    if (size.text.empty()) continue;
    const absl::StatusOr<uint64_t> bytes = ParseSize(size.text);
    if (!bytes.ok()) return Annotate(bytes.status(), size.flag);
    if (*bytes == 0 && size.derived)
      return InvalidArgument(
          "{} {}: want more than 0; the default follows from the memory",
          size.flag, size.text);
    *size.bytes = *bytes;
    if (size.given != nullptr) *size.given = true;
  }
  return absl::OkStatus();
}

// Sets everything that follows from the flags and from the machine.
absl::Status Complete(const TextFlags& flags, const Environment& environment,
                      Config* config) {
  RETURN_IF_ERROR(ReadSizes(flags.sizes));
  RETURN_IF_ERROR(
      rpc::CompleteSecurity(config->daemon, environment.access_token,
                            environment.leat_token.c_str(), &config->security));
  ASSIGN_OR_RETURN(config->gpu.devices, ParseDevices(flags.devices));
  ASSIGN_OR_RETURN(config->image.formats, ImageFormats::Parse(flags.formats));
  const rpc::TaskLimits task =
      rpc::LimitsOfTask(environment.slurm_cpus, environment.slurm_memory,
                        environment.slurm_memory_per_cpu);
  config->SetDefaults(std::min(rpc::UsableCores(), task.cores),
                      std::min(rpc::UsableMemory(), task.memory_bytes));
  RETURN_IF_ERROR(config->SetLocalCopies());
  RETURN_IF_ERROR(config->SetPodAddress());
  config->SetAllowed();
  return config->Validate();
}

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

std::variant<Config, int> ParseFlags(int argc, char** argv,
                                     const Environment& environment) {
  Config config = ConfigOf(environment);
  TextFlags flags{.formats = config.image.formats.ToString(),
                  .sizes = SizeFlagsOf(&config)};
  CLI::App app("leat-worker: reads, decodes and augments, and serves the rows.",
               "leat-worker");
  AddFlags(&app, &config, &flags);
  rpc::FlagFile file(&app);
  if (const auto code = rpc::ParseCommandLine(&app, &file, argc, argv))
    return *code;
  absl::Status status = Complete(flags, environment, &config);
  if (status.ok())
    status = rpc::CheckListeners(config.security, config.listen, config.http);
  if (!status.ok())
    return rpc::Fail("leat-worker",
                     InvalidArgument("{}{}", Message(status), file.Origin()),
                     2);
  if (!file.check()) return config;
  fmt::print("the configuration is good{}\n", file.Origin());
  return 0;
}

}  // namespace leat::worker
