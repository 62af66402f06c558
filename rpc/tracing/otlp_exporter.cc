// SPDX-License-Identifier: Apache-2.0
#include "rpc/tracing/otlp_exporter.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "core/log.h"
#include "core/status.h"
#include "core/thread.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"
#include "rpc/call/auth.h"
#include "rpc/call/grpc_status.h"

namespace leat::rpc {
namespace {

namespace collector = opentelemetry::proto::collector::trace::v1;
namespace otlp = opentelemetry::proto::trace::v1;
using Attributes = google::protobuf::RepeatedPtrField<
    opentelemetry::proto::common::v1::KeyValue>;

constexpr std::string_view kPlain = "http://", kTls = "https://";
constexpr size_t kMaxCaBytes = 4 << 20;

void AddAttribute(std::string_view key, std::string value, Attributes* to) {
  auto* const attribute = to->Add();
  attribute->set_key(std::string(key));
  attribute->mutable_value()->set_string_value(std::move(value));
}

void AddAttribute(std::string_view key, uint64_t value, Attributes* to) {
  auto* const attribute = to->Add();
  attribute->set_key(std::string(key));
  attribute->mutable_value()->set_int_value(static_cast<int64_t>(value));
}

std::string BytesOf(uint64_t number) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8)
    bytes.push_back(static_cast<char>(number >> shift & 0xff));
  return bytes;
}

otlp::Span::SpanKind KindOf(SpanKind kind) {
  if (kind == SpanKind::kRequest) return otlp::Span::SPAN_KIND_CLIENT;
  if (kind == SpanKind::kRows) return otlp::Span::SPAN_KIND_SERVER;
  return otlp::Span::SPAN_KIND_INTERNAL;
}

void AddSpan(const Span& span, otlp::ScopeSpans* to) {
  const StepInfo& step = *span.of;
  otlp::Span& proto = *to->add_spans();
  proto.set_trace_id(BytesOf(step.trace.high) + BytesOf(step.trace.low));
  proto.set_span_id(BytesOf(span.id));
  if (span.parent != 0) proto.set_parent_span_id(BytesOf(span.parent));
  proto.set_name("leat." + std::string(Name(span.kind)));
  proto.set_kind(KindOf(span.kind));
  proto.set_start_time_unix_nano(static_cast<uint64_t>(span.begin_ns));
  proto.set_end_time_unix_nano(static_cast<uint64_t>(span.end_ns));
  Attributes* const attributes = proto.mutable_attributes();
  AddAttribute("leat.job", step.job, attributes);
  AddAttribute("leat.epoch", step.epoch, attributes);
  AddAttribute("leat.step", step.step, attributes);
  AddAttribute("leat.consumer", step.consumer, attributes);
  if (span.rows > 0) AddAttribute("leat.rows", span.rows, attributes);
  if (span.thread != 0) AddAttribute("thread.id", span.thread, attributes);
  if (!span.worker.empty())
    AddAttribute("leat.worker", span.worker, attributes);
  if (span.failed)
    proto.mutable_status()->set_code(otlp::Status::STATUS_CODE_ERROR);
}

collector::ExportTraceServiceRequest RequestOf(
    const OtlpExporter::Config& config, const std::vector<Span>& spans) {
  collector::ExportTraceServiceRequest request;
  otlp::ResourceSpans& all = *request.add_resource_spans();
  Attributes* const resource = all.mutable_resource()->mutable_attributes();
  AddAttribute("service.name", config.settings.service_name, resource);
  AddAttribute("service.version", std::string(kLeatVersion), resource);
  AddAttribute("process.pid", static_cast<uint64_t>(getpid()), resource);
  for (const auto& [key, value] : config.resource)
    AddAttribute(key, value, resource);
  otlp::ScopeSpans& scope = *all.add_scope_spans();
  scope.mutable_scope()->set_name("leat");
  scope.mutable_scope()->set_version(std::string(kLeatVersion));
  for (const Span& span : spans) AddSpan(span, &scope);
  return request;
}

absl::StatusOr<std::string> ReadRoots(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  if (in) bytes << in.rdbuf();
  std::string pem = std::move(bytes).str();
  if (!in || pem.empty() || pem.size() > kMaxCaBytes)
    return FailedPrecondition("{}: want a PEM file of roots", path);
  return pem;
}

}  // namespace

struct OtlpExporter::Channel {
  std::unique_ptr<collector::TraceService::Stub> stub;
};

absl::Status OtlpSettings::Validate() const {
  if (!(ratio >= 0 && ratio <= 1))
    return InvalidArgument("a trace ratio of {}: want 0 to 1", ratio);
  if (endpoint.empty()) return absl::OkStatus();
  const std::string_view text = endpoint;
  const bool known = text.starts_with(kPlain) || text.starts_with(kTls);
  const std::string_view host =
      known ? text.substr(text.find("//") + 2) : std::string_view();
  // A user and a password would appear in logs.
  if (host.empty() || host.find('@') != std::string_view::npos ||
      host.find('/') < host.size() - 1 ||
      host.find(':') == std::string_view::npos)
    return InvalidArgument(
        "an OTLP endpoint: want http://HOST:PORT or https://HOST:PORT, as "
        "http://127.0.0.1:4317");
  return absl::OkStatus();
}

absl::StatusOr<OtlpSettings> OtlpFromEnvironment(
    const std::function<const char*(const char*)>& variable) {
  const auto value = [&](const char* name) {
    const char* const text = variable(name);
    return std::string(text == nullptr ? "" : text);
  };
  OtlpSettings settings;
  settings.service_name = value("OTEL_SERVICE_NAME");
  settings.ca_file = value("OTEL_EXPORTER_OTLP_CERTIFICATE");
  const char* name = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
  settings.endpoint = value(name);
  if (settings.endpoint.empty())
    settings.endpoint = value(name = "OTEL_EXPORTER_OTLP_ENDPOINT");
  const std::string protocol = value("OTEL_EXPORTER_OTLP_PROTOCOL");
  const std::string exporter = value("OTEL_TRACES_EXPORTER");
  if (value("OTEL_SDK_DISABLED") == "true" ||
      (!exporter.empty() && exporter != "otlp") ||
      (!protocol.empty() && protocol != "grpc"))
    settings.endpoint.clear();
  if (const std::string text = value("OTEL_TRACES_SAMPLER_ARG");
      !text.empty()) {
    const char* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, settings.ratio);
    if (error != std::errc() || at != end)
      return InvalidArgument("OTEL_TRACES_SAMPLER_ARG: want a ratio, 0 to 1");
  }
  if (const absl::Status status = settings.Validate(); !status.ok())
    return Annotate(status, name);
  return settings;
}

OtlpExporter::OtlpExporter(Config config, Tracer* tracer)
    : config_(std::move(config)),
      tracer_(tracer),
      channel_(std::make_unique<Channel>()) {}

absl::StatusOr<std::unique_ptr<OtlpExporter>> OtlpExporter::Start(
    Config config, Tracer* tracer) {
  RETURN_IF_ERROR(config.settings.Validate());
  std::string target = config.settings.endpoint;
  while (target.ends_with('/')) target.pop_back();
  const bool tls = target.starts_with(kTls);
  target.erase(0, tls ? kTls.size() : kPlain.size());
  grpc::SslCredentialsOptions ssl;
  if (tls && !config.settings.ca_file.empty()) {
    ASSIGN_OR_RETURN(ssl.pem_root_certs, ReadRoots(config.settings.ca_file));
  }
  std::unique_ptr<OtlpExporter> exporter(
      new OtlpExporter(std::move(config), tracer));
  grpc::ChannelArguments args;
  args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  args.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  exporter->channel_->stub =
      collector::TraceService::NewStub(grpc::CreateCustomChannel(
          target,
          tls ? grpc::SslCredentials(ssl) : grpc::InsecureChannelCredentials(),
          args));
  exporter->buffer_ = tracer->Listen(
      {.plan_hash = "", .ratio = exporter->config_.settings.ratio},
      kMaxWaiting);
  if (exporter->buffer_ == nullptr)
    return ResourceExhausted("{} listen to spans: the limit",
                             Tracer::kMaxListeners);
  RETURN_IF_ERROR(StartThread(
      "otlp", [e = exporter.get()] { e->Run(); }, &exporter->thread_));
  return exporter;
}

OtlpExporter::~OtlpExporter() {
  if (buffer_ != nullptr) tracer_->Leave(buffer_);
  {
    MutexLock lock(&mu_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  if (buffer_ == nullptr) return;
  buffer_->Wake();
  if (thread_.joinable()) thread_.join();
  if (const uint64_t dropped = counters().dropped; dropped > 0)
    LOG_WARN("otlp.dropped spans={} exported={}", dropped, exported_.load());
}

OtlpCounters OtlpExporter::counters() const {
  return {.exported = exported_, .dropped = refused_ + buffer_->dropped()};
}

bool OtlpExporter::Pause(Duration duration) {
  const MonotonicTime until = Clock::Real().Now() + duration;
  MutexLock lock(&mu_);
  while (!stopping_ && changed_.WaitUntil(&mu_, until)) {
  }
  return !stopping_;
}

void OtlpExporter::NoteResult(const absl::Status& status) {
  if (failing_ == !status.ok()) return;
  failing_ = !status.ok();
  if (failing_)
    LOG_WARN("otlp.failing endpoint={} error=\"{}\"", config_.settings.endpoint,
             Message(status));
  else
    LOG_INFO("otlp.works_again endpoint={}", config_.settings.endpoint);
}

bool OtlpExporter::SendOne(Duration timeout, size_t least) {
  const std::vector<Span> spans = buffer_->Take(
      kMaxBatch, least,
      Clock::Real().Now() + (least > 0 ? config_.linger : Duration(0)));
  if (spans.empty()) return true;
  grpc::ClientContext context;
  context.set_deadline(
      std::chrono::system_clock::now() +
      std::chrono::duration_cast<std::chrono::microseconds>(timeout));
  collector::ExportTraceServiceResponse response;
  const absl::Status status = FromGrpc(
      channel_->stub->Export(&context, RequestOf(config_, spans), &response));
  NoteResult(status);
  if (!status.ok()) {
    refused_ += spans.size();
    return false;
  }
  const auto rejected = static_cast<uint64_t>(
      std::clamp<int64_t>(response.partial_success().rejected_spans(), 0,
                          static_cast<int64_t>(spans.size())));
  refused_ += rejected;
  exported_ += spans.size() - rejected;
  return true;
}

void OtlpExporter::Run() {
  Duration pause = config_.first_pause;
  while (Pause(Duration(0))) {
    if (SendOne(config_.timeout, kMaxBatch / 2)) {
      pause = config_.first_pause;
      continue;
    }
    if (!Pause(pause)) break;
    pause = std::min(pause * 2, config_.max_pause);
  }
  const MonotonicTime end = Clock::Real().Now() + config_.last_timeout;
  while (!failing_ && buffer_->size() > 0) {
    const Duration left = end - Clock::Real().Now();
    if (left <= Duration(0) || !SendOne(left, 0)) break;
  }
  refused_ += buffer_->size();
}

}  // namespace leat::rpc
