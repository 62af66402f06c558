// SPDX-License-Identifier: Apache-2.0
//
// Stored datasets that no version writes. state_test.cc and the stores' tests
// read back what is written.
#include "server/state/dataset_records.h"

#include "core/status.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace leat::server {
namespace {

// Its jobs would be given rows of a type that nothing here has.
TEST(DatasetRecords, ADatasetOfAnUnknownTypeIsRefused) {
  DatasetIndexed indexed;
  indexed.dataset.id = "d1";
  indexed.dataset.shards = *ShardTable::Uniform(1000, 10);
  indexed.dataset.types = {{ValueType::Kind::kTensor, kLastDType, {2}}};
  stored::v1::DatasetIndexed proto;
  ToStored(indexed, &proto);
  EXPECT_EQ(FromStored(proto)->dataset.types, indexed.dataset.types);
  for (const uint32_t dtype :
       {0u, static_cast<uint32_t>(kLastDType) + 1, 256u + 2u}) {
    proto.mutable_types(0)->set_dtype(dtype);
    const absl::Status refused = FromStored(proto).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kDataLoss) << dtype;
    EXPECT_EQ(Message(refused),
              fmt::format("a dataset's dtype {}: want 1 to 11", dtype));
  }
}

}  // namespace
}  // namespace leat::server
