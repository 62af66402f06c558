// SPDX-License-Identifier: Apache-2.0
#include "core/plan/job.h"
#include "core/tensor/tensor.h"
#include "gtest/gtest.h"
#include "rpc/wire/messages.h"

namespace leat::rpc {
namespace {

JobInfo JobOf(DType dtype) {
  JobInfo job;
  job.spec.name = "tokens";
  job.spec.batch = 1;
  job.spec.pipeline.nodes = {{"readers.numpy", {}, {}}};
  job.datasets.resize(1);
  job.datasets[0] = {.id = "abc",
                     .name = "tokens",
                     .reader = "r",
                     .shards = ShardTable::Uniform(100, 10).value()};
  job.datasets[0].types = {{ValueType::Kind::kTensor, dtype, {-1}}};
  job.schema.fields = {{"x", dtype, {4}, 4 * SizeOf(dtype)}};
  job.plan_hash = PlanHash(job.spec, job.datasets);
  return job;
}

TEST(ConvertTypes, AllElevenSurviveTheWire) {
  for (int i = static_cast<int>(kFirstDType); i <= static_cast<int>(kLastDType);
       ++i) {
    const JobInfo job = JobOf(static_cast<DType>(i));
    const v1::Job proto = ToProto(job);
    const auto dtype = proto.schema(0).dtype();
    EXPECT_TRUE(v1::DType_IsValid(dtype)) << i;
    std::string name = v1::DType_Name(dtype).substr(7);
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    EXPECT_EQ(name, Name(static_cast<DType>(i)));
    const auto back = FromProto(proto);
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(back->schema, job.schema);
    EXPECT_EQ(back->datasets[0].types, job.datasets[0].types);
  }
}

TEST(ConvertTypes, ATypeBehindTheLastIsRefused) {
  v1::Job proto = ToProto(JobOf(DType::kBfloat16));
  proto.mutable_schema(0)->set_dtype(
      static_cast<v1::DType>(static_cast<int>(kLastDType) + 1));
  EXPECT_TRUE(absl::IsInvalidArgument(FromProto(proto).status()));
  EXPECT_EQ(v1::DType_MAX, static_cast<v1::DType>(kLastDType));
}

}  // namespace
}  // namespace leat::rpc
