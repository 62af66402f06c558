// SPDX-License-Identifier: Apache-2.0
//
// CIFAR's files in buckets and on web servers.
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/remote_source.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RemoteCifar : public RemoteSource {
 protected:
  static Node Cifar(const std::string& path) {
    return {.op = "readers.cifar10",
            .inputs = {},
            .args = {{"paths", std::vector<std::string>{path}},
                     {"prefix", std::string("data_batch_")}}};
  }
  absl::Status ErrorOf(const std::string& path) {
    limits_.storage = storage_.get();
    return BuildIndex(Cifar(path), limits_).status();
  }
};

TEST_F(RemoteCifar, AFileOrAFolderIsRead) {
  server_.Put("/bucket/d/data_batch_1.bin", std::string(3073, '\1'));
  server_.Put("/bucket/d/data_batch_2.bin", std::string(2 * 3073, '\2'));
  server_.Put("/bucket/d/test_batch.bin", std::string(3073, '\3'));
  for (const std::string& folder : {"s3://bucket/d", "s3://bucket/d/"})
    EXPECT_EQ(Open(Cifar(folder))->num_samples(), 3u);
  EXPECT_EQ(Open(Cifar("s3://bucket/d/data_batch_2.bin"))->num_samples(), 2u);
  EXPECT_EQ(Open(Cifar(Url("/bucket/d/data_batch_2.bin")))->num_samples(), 2u);
}

TEST_F(RemoteCifar, AFileThatCannotBeExaminedIsNotTakenForAFolder) {
  const absl::Status gone = ErrorOf(Url("/gone.bin"));
  EXPECT_TRUE(absl::IsNotFound(gone)) << gone;
  EXPECT_THAT(Message(gone), Not(HasSubstr("listing")));
  server_.Put("/bucket/a.bin", std::string(3073, '\1'));
  server_.Always([](const ObjectServer::Request& request, auto* reply) {
    if (request.Query("list-type").empty()) *reply = {.status = 403};
  });
  const absl::Status closed = ErrorOf("s3://bucket/a.bin");
  EXPECT_TRUE(absl::IsPermissionDenied(closed)) << closed;
}

}  // namespace
}  // namespace leat::worker
