// SPDX-License-Identifier: Apache-2.0
#include "core/redaction.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/graph.h"

namespace leat {
namespace {

TEST(Redaction, UrisLoseWhatMayBeSecret) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", ""},
      {"/data/a?b@c#d", "/data/a?b@c#d"},
      {"file:///a?b", "file:///a?b"},
      {"https://user:pass@host:1/a@b?X-Amz-Signature=s#f",
       "https://host:1/a@b"},
      {"https://u:p@host", "https://host"},
      {"HTTPS://u:p@host/x", "HTTPS://host/x"},
      {"https://[::1]:80/x", "https://[::1]:80/x"},
      {"https://u:p@[::1]/x", "https://[::1]/x"},
      {"ftp://u:p@host/x?key=s", "ftp://host/x"},
      {"s3://b/k?x", "s3://b/k?x"},
      {"s3://b/a@b:c", "s3://b/a@b:c"},
      {"s3://key:secret@b/k", "s3://b/k"},
      // Characters of a password that should have been escaped.
      {"https://u:p/q@host/x", "https://u"},
      {"https://u:p?q@host/x", "https://u"},
      {"https://u:p#q@host/x", "https://u"},
      {"https://u:/q@host/x", "https://u"},
      {"https://u:123456/q@host/x", "https://u"},
      {"https://u:123/q@host/x", "https://u"},
      {"https://u:123?q@host/x", "https://u"},
      {"http://minio:9000/bucket/img@2x.png", "http://minio"},
      {"http://minio:9000/bucket/img.png", "http://minio:9000/bucket/img.png"},
      {"https://u:p@host:9000/img@2x.png", "https://host:9000/img@2x.png"},
      {"s3://key:/q@b/k", "s3://key"},
      {"s3://key:12/q@b/k", "s3://key"},
      {"gs://key:12/q@b/k", "gs://key"},
      {"https://u:p]w/q@host/x", "https://u"},
      {"https://[::1]:/q", "https://[::1]"},
  };
  for (const auto& [uri, shown] : table) EXPECT_EQ(RedactedUri(uri), shown);
}

TEST(Redaction, AddressesInTextsLoseWhatMayBeSecret) {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"", ""},
      {"plain text, a@b ?c", "plain text, a@b ?c"},
      {"https://host/a/b.tar", "https://host/a/b.tar"},
      {"of s3://key:secret@host/a, which", "of s3://host/a, which"},
      {"(path=\"https://u:p@h/x?token=t\", n=1)",
       "(path=\"https://h/x\", n=1)"},
      {"https://h/a@b", "https://h/a@b"},
      {"a://u:p@q@h/x b://v:w@i", "a://h/x b://i"},
      {"https://h#frag", "https://h"},
      {"://", "://"},
      {"(https://u:p@h) https://u:p@h", "(https://h) https://h"},
      {"'https://u:p@h/x?a b' c", "'https://h/x' c"},
      {"\"https://u:p@h", "\"https://h"},
  };
  for (const auto& [text, shown] : table) EXPECT_EQ(Redacted(text), shown);
}

TEST(Redaction, WholeValuesOfACanonicalTextAreAddresses) {
  const std::string place = "https://u:p \"'<>),q@h/x?sig=s \"),t";
  const Node node = {
      "readers.x",
      {},
      {{"paths", std::vector<std::string>{place, "/a b?c"}}, {"n", 1}}};
  EXPECT_EQ(Redacted(CanonicalText(node)),
            R"(readers.x n=1 paths=texts["https://h/x","/a b?c"])");
}

}  // namespace
}  // namespace leat
