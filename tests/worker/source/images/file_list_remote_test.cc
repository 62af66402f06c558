// SPDX-License-Identifier: Apache-2.0
//
// Lists of files on a web server.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/source/remote_source.h"

namespace leat::worker {
namespace {

class RemoteFileList : public RemoteSource {
 protected:
  static Node List(const std::string& path) {
    return {.op = "readers.file_list",
            .inputs = {},
            .args = {{"path", path}, {"root", std::string()}}};
  }
};

TEST_F(RemoteFileList, NamesAreBelowTheListsFolderWhateverItsSignature) {
  server_.Put("/photos/list.txt", "a.jpg 3\n");
  server_.Put("/photos/a.jpg", "pixels");
  for (const char* signature : {"", "?sig=b", "?sig=a/b", "?sig=/", "#a/b"}) {
    const auto source = Open(List(Url("/photos/list.txt") + signature));
    ASSERT_NE(source, nullptr) << signature;
    EXPECT_EQ(TextOf(source->Read(0)->fields[0]), "pixels") << signature;
    EXPECT_EQ(source->Describe(0), Url("/photos/a.jpg")) << signature;
  }
}

// Identities are text in the index, which can be sent only as UTF-8.
TEST_F(RemoteFileList, AnEtagThatIsNotUtf8IsNoIdentity) {
  server_.Put("/photos/list.txt", "a.jpg 3\n");
  server_.Put("/photos/a.jpg", "pixels", "caf\xe9");
  const auto source = Open(List(Url("/photos/list.txt")));
  ASSERT_NE(source, nullptr);
  const auto sample = source->Read(0);
  ASSERT_TRUE(sample.ok()) << sample.status();
  EXPECT_EQ(TextOf(sample->fields[0]), "pixels");
}

}  // namespace
}  // namespace leat::worker
