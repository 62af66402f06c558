// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/index_blob.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(NumpySource, AnErrorAboutAnIndexHasNoSecrets) {
  const SourceLimits limits;
  const std::string uri = "https://user:secret@host/a.npy?sig=secret";
  const Node reader = {.op = "readers.numpy",
                       .inputs = {},
                       .args = {{"files", std::vector{uri}}}};
  stored::v1::NumpyHead head;
  head.set_reader(CanonicalText(reader));
  head.mutable_type()->set_dtype(static_cast<uint32_t>(DType::kUint8));
  head.mutable_type()->add_shape(2);
  for (const uint64_t bytes : {1, 3}) {  // too few, of another shape
    stored::v1::NumpyFiles part;
    stored::v1::NumpyFile& file = *part.add_files();
    file.mutable_file()->set_name(uri);
    file.mutable_file()->set_bytes(bytes);
    file.mutable_file()->set_identity(fmt::format("size={}", bytes));
    file.add_shape(3);
    BlobWriter blob(limits);
    ASSERT_TRUE(blob.Add(head).ok() && blob.Add(part, 1).ok());
    const absl::Status status =
        OpenSource(reader, *blob.Finish(), limits).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr("https://host/a.npy: it"));
    EXPECT_THAT(Message(status), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace leat::worker
