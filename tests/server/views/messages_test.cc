// SPDX-License-Identifier: Apache-2.0
#include "server/views/messages.h"

#include <cmath>
#include <limits>
#include <set>

#include "core/observe/stages.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "server/membership/kept_shares.h"

namespace leat::server {
namespace {

using google::protobuf::FieldDescriptor;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using AnyMessage = google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::util::MessageDifferencer;

// Gives every field, also in nested messages, a different value.
void Fill(AnyMessage* message, int* next) {
  const Reflection& reflection = *message->GetReflection();
  const google::protobuf::Descriptor& type = *message->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    const int value = ++*next;
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_UINT32:
        reflection.SetUInt32(message, field, static_cast<uint32_t>(value));
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection.SetUInt64(message, field, static_cast<uint64_t>(value));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection.SetInt32(message, field, value);
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection.SetInt64(message, field, value);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection.SetDouble(message, field, value + 0.5);
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        if (field->is_repeated())
          reflection.AddString(message, field, "text " + std::to_string(value));
        else
          reflection.SetString(message, field, "text " + std::to_string(value));
        break;
      case FieldDescriptor::CPPTYPE_ENUM:  // each value except the first is
                                           // valid
        reflection.SetEnumValue(
            message, field,
            1 + value % (field->enum_type()->value_count() - 1));
        break;
      case FieldDescriptor::CPPTYPE_MESSAGE:
        if (field->is_repeated())
          for (int k = 0; k < 2; ++k)
            Fill(reflection.AddMessage(message, field), next);
        else
          Fill(reflection.MutableMessage(message, field), next);
        break;
      default:
        FAIL() << "a field of another type: " << field->full_name();
    }
  }
}

std::string Difference(const AnyMessage& a, const AnyMessage& b) {
  MessageDifferencer differencer;
  std::string text;
  differencer.ReportDifferencesToString(&text);
  return differencer.Compare(a, b) ? "" : text;
}

TEST(Convert, EveryFieldOfAWorkersStatisticsReachesPeople) {
  v1::WorkerStats stats;
  int next = 0;
  Fill(&stats, &next);
  ASSERT_EQ(stats.devices_size(), 2);
  WorkerView view;
  view.registration = std::make_shared<const WorkerRegistration>();
  view.report = ReportOf(stats);
  EXPECT_EQ(view.report.capacity_rows_per_s, stats.capacity_rows_per_s());
  EXPECT_EQ(Difference(stats, ToProto(view).stats()), "");
}

TEST(Convert, EveryFieldOfAConsumersStatisticsReachesPeople) {
  v1::ConsumerStats stats;
  int next = 0;
  Fill(&stats, &next);
  ConsumerView view;
  view.job = stats.job();
  view.report = ReportOf(stats);
  EXPECT_EQ(view.report.epoch, stats.epoch());
  EXPECT_EQ(view.report.step, stats.step());
  EXPECT_EQ(view.report.steps_per_epoch, stats.steps_per_epoch());
  EXPECT_EQ(view.report.rows_per_s, stats.rows_per_s());
  EXPECT_EQ(view.report.stall_fraction, stats.stall_fraction());
  EXPECT_EQ(Difference(stats, ToProto(view).stats()), "");
}

std::set<std::string> FieldsOf(const google::protobuf::Descriptor& type) {
  std::set<std::string> names;
  for (int i = 0; i < type.field_count(); ++i)
    names.insert(std::string(type.field(i)->name()));
  return names;
}

// Returns a field of one message as in the same-named field of another.
std::string FieldText(const AnyMessage& message, const std::string& name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  if (field == nullptr) return "there is no " + name;
  std::string text;
  if (!field->is_repeated()) {
    google::protobuf::TextFormat::PrintFieldValueToString(message, field, -1,
                                                          &text);
    return text;
  }
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    std::string one;
    google::protobuf::TextFormat::PrintFieldValueToString(message, field, i,
                                                          &one);
    text += one + "\n";
  }
  return text;
}

// The author of a new field states here where people see it.
TEST(Convert, EveryFieldOfARegistrationReachesPeople) {
  v1::RegisterWorker registration;
  registration.set_name("w0");
  registration.set_address("host:1");
  registration.set_version("1.2");
  registration.set_threads(3);
  registration.add_decoder_classes(v1::DECODER_CLASS_NVJPEG);
  registration.add_decoder_classes(v1::DECODER_CLASS_EXACT);
  registration.set_host("host");
  registration.set_pid(4);
  registration.set_highest_sequence_seen(5);
  int next = 0;
  Fill(registration.add_devices(), &next);
  v1::Decoders& decoders = *registration.add_decoders();
  decoders.set_decoder_class(v1::DECODER_CLASS_EXACT);
  decoders.set_digest(std::string(32, 'd'));
  decoders.set_libraries("libjpeg 1");
  registration.set_public_key(std::string(32, 'k'));
  registration.set_not_confined("--no-seccomp");
  registration.set_pool("cpu");
  registration.add_abilities("parquet");
  v1::LackedAbility& lacked = *registration.add_lacked();
  lacked.set_name("own:blur");
  lacked.set_why("no libblur.so");
  const auto stored = FromProto(registration);
  ASSERT_TRUE(stored.ok()) << stored.status();
  WorkerView view;
  view.registration = std::make_shared<const WorkerRegistration>(*stored);
  const v1::WorkerInfo info = ToProto(view);
  for (const std::string& name : FieldsOf(*v1::RegisterWorker::descriptor())) {
    // The finding STATE_REGRESSED uses it.
    if (name == "highest_sequence_seen") continue;
    EXPECT_NE(FieldText(registration, name), "") << name;
    EXPECT_EQ(FieldText(registration, name), FieldText(info, name)) << name;
  }
}

TEST(Convert, AbilitiesAreBoundedAndHaveNames) {
  v1::RegisterWorker registration;
  registration.set_name("w0");
  for (const char* name : {"b", "a", "b"}) registration.add_abilities(name);
  EXPECT_THAT(FromProto(registration)->abilities, ElementsAre("a", "b"));
  const auto refusal = [&](const std::string& name) {
    v1::RegisterWorker hostile = registration;
    hostile.add_abilities(name);
    v1::RegisterWorker lacking = registration;
    lacking.add_lacked()->set_name(name);
    EXPECT_EQ(FromProto(hostile).status(), FromProto(lacking).status());
    return std::string(Message(FromProto(hostile).status()));
  };
  EXPECT_THAT(refusal("a\nb"),
              HasSubstr("worker w0: ability has character 10"));
  EXPECT_THAT(refusal(""), HasSubstr("worker w0: ability of 0 characters"));
  EXPECT_THAT(refusal(std::string(5000, 'a')), HasSubstr("5000 characters"));
  v1::LackedAbility& lacked = *registration.add_lacked();
  lacked.set_name("c");
  lacked.set_why(std::string(1 << 20, 'x'));
  EXPECT_LE(FromProto(registration)->lacked.at("c").size(), kMaxText + 8);
  for (int i = 0; i < 70; ++i) registration.add_abilities("a");
  EXPECT_THAT(std::string(Message(FromProto(registration).status())),
              HasSubstr("73 abilities and 1 that it lacks: want at most 64"));
}

TEST(Convert, APublicKeyOfAnotherSizeIsNone) {
  v1::RegisterWorker registration;
  registration.set_name("w0");
  for (const size_t bytes : {1, 31, 33, 100'000}) {
    registration.set_public_key(std::string(bytes, 'k'));
    const absl::Status status = FromProto(registration).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bytes;
    EXPECT_LT(Message(status).size(), 100u);
  }
}

TEST(Convert, EveryFieldOfAHeartbeatReachesPeople) {
  // `stats` is tested above; jobs list the bad samples (JobSummary). `answers`
  // is for the coordinator alone, `not_reloaded` becomes a finding, and
  // `listings` are the progress of datasets (DatasetsTest).
  EXPECT_EQ(FieldsOf(*v1::Heartbeat::descriptor()),
            (std::set<std::string>{"stats", "bad_samples", "storage_failures",
                                   "counted_bad_samples", "answers",
                                   "not_reloaded", "listings"}));
  v1::Heartbeat heartbeat;
  heartbeat.set_answers(7);
  heartbeat.set_not_reloaded(std::string(2 * kMaxText, 'x'));
  EXPECT_EQ(ReportOf(heartbeat).not_reloaded.size(), kMaxText);
  for (int i = 1; i <= 2; ++i) {
    v1::StorageFailure& failure = *heartbeat.add_storage_failures();
    failure.set_root("/data" + std::to_string(i));
    failure.set_error("EIO");
    failure.mutable_lasting()->set_seconds(i);
    failure.mutable_lasting()->set_nanos(500);
    failure.add_fingerprints(std::string(32, static_cast<char>(i)));
    failure.add_fingerprints(std::string(32, 'f'));
  }
  int next = 0;
  Fill(heartbeat.add_bad_samples(), &next);
  WorkerView worker;
  worker.registration = std::make_shared<const WorkerRegistration>();
  worker.failures = FailuresOf(heartbeat);
  EXPECT_EQ(FieldText(heartbeat, "storage_failures"),
            FieldText(ToProto(worker), "storage_failures"));
  JobView job;
  job.info = std::make_shared<const JobInfo>(
      JobInfo{.datasets = std::vector<DatasetInfo>(1)});
  const BadSampleReport report = BadSamplesOf(heartbeat);
  EXPECT_EQ(report.answers, 7u);
  ASSERT_EQ(report.jobs.size(), 1u);
  job.bad_samples = report.jobs[0].samples;
  const v1::JobSummary summary = ToProto(job);
  ASSERT_EQ(summary.bad_samples_size(), 2);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(
        Difference(heartbeat.bad_samples(0).samples(i), summary.bad_samples(i)),
        "");
}

// Stages have the same names in code and on the wire.
TEST(Convert, StagesHaveTheWiresNumbers) {
  const google::protobuf::EnumDescriptor& wire = *v1::Stage_descriptor();
  ASSERT_EQ(static_cast<size_t>(wire.value_count()), kStages);
  for (int i = 1; i < wire.value_count(); ++i) {
    std::string name = "STAGE_";
    for (const char c : Name(static_cast<Stage>(wire.value(i)->number())))
      name += static_cast<char>(c - 'a' + 'A');
    EXPECT_EQ(wire.value(i)->name(), name);
  }
}

TEST(Convert, ADatasetThatWasNeverListedHasNoTimeOfItsListing) {
  DatasetView view;
  view.info = std::make_shared<const DatasetInfo>();
  EXPECT_FALSE(ToProto(view).has_indexed_at());
  view.indexed_at += std::chrono::seconds(1);
  EXPECT_TRUE(ToProto(view).has_indexed_at());
}

TEST(Convert, WhatANewerWorkerReportsIsPassedOn) {
  v1::WorkerStats stats;
  stats.GetReflection()->MutableUnknownFields(&stats)->AddVarint(1000, 7);
  WorkerView view;
  view.registration = std::make_shared<const WorkerRegistration>();
  view.report = ReportOf(stats);
  const v1::WorkerInfo info = ToProto(view);
  EXPECT_EQ(info.stats()
                .GetReflection()
                ->GetUnknownFields(info.stats())
                .field_count(),
            1);
}

// JSON cannot express the year 292,277,026,596, so a message with such a time
// would be invalid.
TEST(Convert, HostileTimesAreTimes) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  for (const int64_t seconds : {kMax, -kMax, int64_t{1}, int64_t{0}}) {
    v1::WorkerStats stats;
    stats.mutable_certificate_expires_at()->set_seconds(seconds);
    stats.mutable_certificate_expires_at()->set_nanos(-5);
    stats.mutable_certificate_begins_at()->set_seconds(-seconds);
    stats.mutable_certificate_begins_at()->set_nanos(2'000'000'000);
    const WorkerReport report = ReportOf(stats);
    ASSERT_TRUE(report.certificate.has_value());
    EXPECT_GE(report.certificate->end, WallTime());
    ASSERT_TRUE(report.certificate->begin.has_value());
    EXPECT_GE(*report.certificate->begin, WallTime());
    EXPECT_LE(report.certificate->error_at(), report.certificate->end);
    std::string json;
    EXPECT_TRUE(
        google::protobuf::util::MessageToJsonString(*report.stats, &json).ok())
        << seconds;
  }
}

TEST(Convert, ABeginWithoutAnEndIsNoTerm) {
  v1::WorkerStats stats;
  stats.mutable_certificate_begins_at()->set_seconds(1);
  EXPECT_FALSE(ReportOf(stats).certificate.has_value());
  stats.mutable_certificate_expires_at()->set_seconds(2);
  EXPECT_TRUE(ReportOf(stats).certificate->begin.has_value());
  stats.clear_certificate_begins_at();
  EXPECT_FALSE(ReportOf(stats).certificate->begin.has_value());
}

TEST(Convert, HostileStatisticsAreCut) {
  v1::WorkerStats stats;
  stats.set_rows_per_s(std::nan(""));
  stats.set_capacity_rows_per_s(-1);
  stats.mutable_row_latency()->set_p95_ms(
      std::numeric_limits<double>::infinity());
  for (int i = 0; i < 1000; ++i) stats.add_devices()->set_busy_fraction(-1);
  stats.GetReflection()->MutableUnknownFields(&stats)->AddLengthDelimited(
      1000, std::string(1 << 20, 'x'));
  const WorkerReport report = ReportOf(stats);
  EXPECT_EQ(report.capacity_rows_per_s, 0);
  EXPECT_EQ(report.stats->rows_per_s(), 0);
  EXPECT_EQ(report.stats->row_latency().p95_ms(), 0);
  EXPECT_EQ(report.stats->devices_size(), kMaxDevices);
  EXPECT_EQ(report.stats->devices(5).busy_fraction(), 0);
  EXPECT_LT(report.stats->ByteSizeLong(), 4096u);
  v1::ConsumerStats consumer;
  consumer.set_host(std::string(1 << 20, 'h'));
  consumer.set_stall_fraction(std::nan(""));
  const ConsumerReport other = ReportOf(consumer);
  EXPECT_EQ(other.stall_fraction, 0);
  EXPECT_LE(other.stats->host().size(), 1024u);
  v1::OpenConsumer open;
  open.set_plan_hash(std::string(32, 'p'));
  open.set_job(std::string(1 << 20, 'j'));
  EXPECT_EQ(FromProto(open)->job.size(), kMaxText);

  v1::Heartbeat heartbeat;
  for (int i = 0; i < 1000; ++i)
    heartbeat.add_storage_failures()->set_error(std::string(5000, 'e'));
  for (int i = 0; i < 1000; ++i)
    heartbeat.mutable_storage_failures(0)->add_fingerprints("no digest");
  const StorageFailures failures = FailuresOf(heartbeat);
  EXPECT_EQ(failures[0].fingerprints_size(), 64);
  ASSERT_EQ(failures.size(), size_t{kMaxFailures});
  EXPECT_LE(failures[0].error().size(), 1024u);
}

// There are two shards, the first owned by `a` and the second by `b`.
TEST(Convert, AWorkerIsToldWhatOtherOwnersKeepIfThatIsKnown) {
  auto table = std::make_shared<Assignment>();
  table->workers = {{"a", "a:1"}, {"b", "b:1"}, {"c", "c:1"}};
  table->owners_per_shard = 2;
  table->owners = std::string("\0\0\1\0\1\0\2\0", 8);
  table->starts = {0, 1, 2, 2};
  table->shards = {0, 1};
  table->place_starts = {0, 1, 3, 4};
  table->places = {0, 1, 2, 3};
  const auto kept = std::make_shared<KeptShares>();
  kept->Note("a", {{"d", 0.5}, {"e", 1}}, MonotonicTime());
  kept->Note("b", {{"d", 0}}, MonotonicTime());
  const auto told = [&](const std::string& worker) {
    return ToProto(OwnedShards{"d", worker, 2, {table}, kept}).owned_shards();
  };
  const v1::OwnedShards b = told("b");
  ASSERT_EQ(b.peers_size(), 2);
  EXPECT_EQ(b.peers(0).peer().name(), "a");
  EXPECT_EQ(b.peers(0).kept_share(), 0.5);
  EXPECT_EQ(b.peers(1).peer().name(), "c");
  EXPECT_FALSE(b.peers(1).has_kept_share());
  EXPECT_TRUE(told("c").peers(0).has_kept_share()) << "which is 0";
  EXPECT_EQ(told("c").peers(0).kept_share(), 0);
}

TEST(Convert, BadSamplesOfAHeartbeatAreBounded) {
  v1::Heartbeat heartbeat;
  heartbeat.add_counted_bad_samples()->set_plan_hash("no hash");
  heartbeat.mutable_counted_bad_samples(0)->add_samples(1);
  for (int plan = 0; plan < 2; ++plan) {
    v1::CountedBadSamples* counted = heartbeat.add_counted_bad_samples();
    counted->set_plan_hash(std::string(32, static_cast<char>('a' + plan)));
    for (uint64_t i = 0; i < 16'000; ++i) counted->add_samples(i);
  }
  const BadSampleReport report = BadSamplesOf(heartbeat);
  ASSERT_EQ(report.plans.size(), 2u);
  EXPECT_EQ(report.plans[0].samples.size(), 16'000u);
  EXPECT_EQ(report.plans[1].samples.size(), 384u);
  EXPECT_EQ(report.plans[1].plan_hash[0], 'b');
}

}  // namespace
}  // namespace leat::server
