// SPDX-License-Identifier: Apache-2.0
//
// Tests what a collector receives, and the cost of having none.
#include "rpc/tracing/otlp_exporter.h"

#include <cmath>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "opentelemetry/proto/collector/trace/v1/trace_service.grpc.pb.h"

namespace leat::rpc {
namespace {

namespace collector = opentelemetry::proto::collector::trace::v1;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

const std::string kPlan(32, 'p');

class Collector final : public collector::TraceService::Service {
 public:
  Collector() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                             &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  ~Collector() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::string endpoint() const {
    return fmt::format("http://127.0.0.1:{}", port_);
  }
  grpc::Status Export(
      grpc::ServerContext* context,
      const collector::ExportTraceServiceRequest* request,
      collector::ExportTraceServiceResponse* response) override {
    MutexLock lock(&mu_);
    while (held_ && !context->IsCancelled())
      changed_.WaitUntil(&mu_, Clock::Real().Now() + milliseconds(5));
    response->mutable_partial_success()->set_rejected_spans(rejected_);
    requests_.push_back(*request);
    changed_.NotifyAll();
    return grpc::Status::OK;
  }
  // Waits until so many spans have arrived.
  std::vector<opentelemetry::proto::trace::v1::Span> Await(size_t spans) {
    const MonotonicTime deadline =
        Clock::Real().Now() + std::chrono::seconds(20);
    MutexLock lock(&mu_);
    while (true) {
      std::vector<opentelemetry::proto::trace::v1::Span> all;
      for (const auto& request : requests_)
        for (const auto& each :
             request.resource_spans(0).scope_spans(0).spans())
          all.push_back(each);
      if (all.size() >= spans) return all;
      if (!changed_.WaitUntil(&mu_, deadline)) return all;
    }
  }
  collector::ExportTraceServiceRequest first() {
    MutexLock lock(&mu_);
    return requests_.at(0);
  }
  void Hold(bool held) {
    MutexLock lock(&mu_);
    held_ = held;
    changed_.NotifyAll();
  }
  void Reject(int64_t spans) {
    MutexLock lock(&mu_);
    rejected_ = spans;
  }

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
  Mutex mu_;
  CondVar changed_;
  bool held_ = false;
  int64_t rejected_ = 0;
  std::vector<collector::ExportTraceServiceRequest> requests_;
};

OtlpExporter::Config ConfigFor(const std::string& endpoint) {
  return {.settings = {.endpoint = endpoint,
                       .ca_file = "",
                       .ratio = 1,
                       .service_name = "leat-test"},
          .resource = {{"service.instance.id", "node7"}},
          .timeout = std::chrono::seconds(20),
          .linger = milliseconds(10),
          .first_pause = milliseconds(10),
          .max_pause = milliseconds(20),
          .last_timeout = milliseconds(200)};
}

void RecordSome(const Tracer& tracer, int count) {
  const auto step = tracer.Step(kPlan, "photos", "host/1/1", 2, 9);
  for (int i = 0; i < count; ++i)
    step->Record({.of = nullptr,
                  .kind = SpanKind::kRequest,
                  .failed = i == 1,
                  .thread = 4,
                  .parent = step->StepId(),
                  .begin_ns = 1000 + i,
                  .end_ns = 2000 + i,
                  .rows = 8,
                  .worker = "node3"});
}

std::map<std::string, std::string> AttributesOf(const auto& message) {
  std::map<std::string, std::string> all;
  for (const auto& each : message.attributes())
    all[each.key()] = each.value().string_value().empty()
                          ? std::to_string(each.value().int_value())
                          : each.value().string_value();
  return all;
}

TEST(OtlpExporter, ACollectorGetsSpansWithTheirIdsAndAttributes) {
  Collector collector;
  Tracer tracer(Clock::Real());
  auto exporter = OtlpExporter::Start(ConfigFor(collector.endpoint()), &tracer);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  RecordSome(tracer, 2);
  const auto spans = collector.Await(2);
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_EQ(spans[0].trace_id().size(), 16u);
  EXPECT_EQ(spans[0].span_id().size(), 8u);
  EXPECT_EQ(spans[0].parent_span_id().size(), 8u);
  EXPECT_NE(spans[0].span_id(), spans[1].span_id());
  EXPECT_EQ(spans[0].name(), "leat.request");
  EXPECT_EQ(spans[0].start_time_unix_nano(), 1000u);
  EXPECT_EQ(spans[0].end_time_unix_nano(), 2000u);
  EXPECT_EQ(spans[0].status().code(), 0);
  EXPECT_EQ(spans[1].status().code(), 2);
  const auto attributes = AttributesOf(spans[0]);
  EXPECT_EQ(attributes.at("leat.job"), "photos");
  EXPECT_EQ(attributes.at("leat.epoch"), "2");
  EXPECT_EQ(attributes.at("leat.step"), "9");
  EXPECT_EQ(attributes.at("leat.worker"), "node3");
  EXPECT_EQ(attributes.at("leat.rows"), "8");
  const auto resource =
      AttributesOf(collector.first().resource_spans(0).resource());
  EXPECT_EQ(resource.at("service.name"), "leat-test");
  EXPECT_EQ(resource.at("service.instance.id"), "node7");
}

TEST(OtlpExporter, WhatIsLeftGoesOutAtTheEnd) {
  Collector collector;
  Tracer tracer(Clock::Real());
  OtlpExporter::Config config = ConfigFor(collector.endpoint());
  config.linger = std::chrono::hours(1);
  config.last_timeout = std::chrono::seconds(20);
  auto exporter = OtlpExporter::Start(std::move(config), &tracer);
  ASSERT_TRUE(exporter.ok());
  RecordSome(tracer, 3);
  exporter->reset();
  EXPECT_EQ(collector.Await(3).size(), 3u);
}

TEST(OtlpExporter, WithoutACollectorSpansAreDroppedAndCounted) {
  Tracer tracer(Clock::Real());
  auto exporter = OtlpExporter::Start(ConfigFor("http://127.0.0.1:1"), &tracer);
  ASSERT_TRUE(exporter.ok()) << exporter.status();
  constexpr int kSpans = static_cast<int>(OtlpExporter::kMaxWaiting) + 2000;
  RecordSome(tracer, kSpans);
  EXPECT_GE((*exporter)->counters().dropped, 1u);
  EXPECT_EQ((*exporter)->counters().exported, 0u);
  const MonotonicTime start = Clock::Real().Now();
  exporter->reset();
  EXPECT_LT(Clock::Real().Now() - start, std::chrono::seconds(5));
}

TEST(OtlpExporter, ASlowCollectorIsGivenUpAndAskedAgain) {
  Collector collector;
  Tracer tracer(Clock::Real());
  OtlpExporter::Config config = ConfigFor(collector.endpoint());
  config.timeout = milliseconds(200);
  auto exporter = OtlpExporter::Start(std::move(config), &tracer);
  ASSERT_TRUE(exporter.ok());
  collector.Hold(true);
  RecordSome(tracer, 1);
  const MonotonicTime deadline = Clock::Real().Now() + std::chrono::seconds(20);
  while ((*exporter)->counters().dropped == 0 && Clock::Real().Now() < deadline)
    std::this_thread::yield();
  EXPECT_EQ((*exporter)->counters().dropped, 1u);
  collector.Hold(false);
  RecordSome(tracer, 2);
  EXPECT_GE(collector.Await(3).size(), 2u);
}

TEST(OtlpExporter, SpansThatACollectorRefusesCountAsDropped) {
  Collector collector;
  collector.Reject(1);
  Tracer tracer(Clock::Real());
  auto exporter = OtlpExporter::Start(ConfigFor(collector.endpoint()), &tracer);
  ASSERT_TRUE(exporter.ok());
  RecordSome(tracer, 2);
  collector.Await(2);
  const MonotonicTime deadline = Clock::Real().Now() + std::chrono::seconds(20);
  while ((*exporter)->counters().exported == 0 &&
         Clock::Real().Now() < deadline)
    std::this_thread::yield();
  EXPECT_GE((*exporter)->counters().exported, 1u);
  EXPECT_GE((*exporter)->counters().dropped, 1u);
}

TEST(OtlpSettings, EndpointsAndRatiosAreChecked) {
  const auto code = [](std::string endpoint, double ratio) {
    OtlpSettings settings;
    settings.endpoint = std::move(endpoint);
    settings.ratio = ratio;
    return settings.Validate().code();
  };
  EXPECT_EQ(code("", 0.01), absl::StatusCode::kOk);
  EXPECT_EQ(code("http://127.0.0.1:4317", 0), absl::StatusCode::kOk);
  EXPECT_EQ(code("https://otel.example:4317/", 1), absl::StatusCode::kOk);
  for (const char* endpoint :
       {"127.0.0.1:4317", "http://", "http://host", "http://u:p@host:4317",
        "http://host:4318/v1/traces", "unix:/tmp/x", "ftp://host:1"})
    EXPECT_EQ(code(endpoint, 1), absl::StatusCode::kInvalidArgument)
        << endpoint;
  EXPECT_EQ(code("", -0.1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("", 1.1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code("", std::nan("")), absl::StatusCode::kInvalidArgument);
}

absl::StatusOr<OtlpSettings> From(
    const std::map<std::string, std::string>& variables) {
  return OtlpFromEnvironment([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(OtlpSettings, TheStandardVariablesSayWhere) {
  EXPECT_EQ(From({})->endpoint, "");
  EXPECT_EQ(From({})->ratio, kDefaultTraceRatio);
  const std::string endpoint = "http://127.0.0.1:4317";
  const auto settings = From({{"OTEL_EXPORTER_OTLP_ENDPOINT", endpoint},
                              {"OTEL_TRACES_SAMPLER_ARG", "0.5"},
                              {"OTEL_SERVICE_NAME", "mine"}});
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->endpoint, endpoint);
  EXPECT_EQ(settings->ratio, 0.5);
  EXPECT_EQ(settings->service_name, "mine");
  EXPECT_EQ(From({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:1"},
                  {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b:2"}})
                ->endpoint,
            "http://b:2");
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"OTEL_SDK_DISABLED", "true"},
           {"OTEL_TRACES_EXPORTER", "none"},
           {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"}})
    EXPECT_EQ(From({{"OTEL_EXPORTER_OTLP_ENDPOINT", endpoint}, {name, value}})
                  ->endpoint,
              "")
        << name;
  EXPECT_THAT(
      From({{"OTEL_EXPORTER_OTLP_ENDPOINT", "host"}}).status().ToString(),
      HasSubstr("OTEL_EXPORTER_OTLP_ENDPOINT: "));
  EXPECT_FALSE(From({{"OTEL_TRACES_SAMPLER_ARG", "some"}}).ok());
}

}  // namespace
}  // namespace leat::rpc
