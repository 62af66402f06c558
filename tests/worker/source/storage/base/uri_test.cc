// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/base/uri.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/status.h"
#include "worker/source/storage/base/identity.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

StorageUri Parsed(std::string_view uri) {
  const auto parsed = ParseUri(uri);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return parsed.ok() ? *parsed : StorageUri{};
}

TEST(Uri, PlainPathsAreTakenAsTheyStand) {
  EXPECT_EQ(Parsed("/a b/%20").path, "/a b/%20");
  EXPECT_EQ(Parsed("relative/x").path, "relative/x");
  EXPECT_EQ(Parsed("/odd://name").path, "/odd://name");
  EXPECT_EQ(Parsed("a?b#c").path, "a?b#c");
}

TEST(Uri, FileUrisAreUnescapedAndOfThisHost) {
  EXPECT_EQ(Parsed("file:///a%20b%2Fc").path, "/a b/c");
  EXPECT_EQ(Parsed("file://localhost/x").path, "/x");
  EXPECT_EQ(Parsed("FILE:///x").path, "/x");
  EXPECT_EQ(ParseUri("file://host/x").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ParseUri("file:///x%00y").status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Uri, KeysOfBucketsAreTakenAsTheyStand) {
  const StorageUri uri = Parsed("s3://bucket/a b?c%20#d//e");
  EXPECT_EQ(uri.scheme, UriScheme::kS3);
  EXPECT_EQ(uri.bucket, "bucket");
  EXPECT_EQ(uri.path, "a b?c%20#d//e");
  EXPECT_EQ(Parsed("s3://bucket").path, "");
  EXPECT_EQ(Parsed("gs://bucket/").scheme, UriScheme::kGs);
}

TEST(Uri, WhatIsNoUriIsRefused) {
  for (const char* uri :
       {"", "ftp://host/x", "s3://", "s3:///key", "s3://a/k", "s3://b*cket/k",
        "http://", "http:///x", "s3://user@bucket/k", "s3://~~~/x"}) {
    EXPECT_EQ(ParseUri(uri).status().code(), absl::StatusCode::kInvalidArgument)
        << uri;
  }
  EXPECT_FALSE(ParseUri(std::string("/a\0b", 4)).ok());
  EXPECT_FALSE(ParseUri(std::string(5000, 'a')).ok());
  EXPECT_FALSE(ParseUri(std::string(5000, '/') + "://").ok());
}

TEST(Uri, MessagesShowNoSecrets) {
  for (const char* uri :
       {"ftp://user:secret@host/x?key=secret", "s3://key:secret@host/x"}) {
    const auto refused = ParseUri(uri);
    EXPECT_THAT(std::string(Message(refused.status())),
                Not(HasSubstr("secret")));
  }
}

TEST(Uri, NamesAreJoinedAsTheirSchemeWants) {
  EXPECT_EQ(JoinUri("/a", "b c"), "/a/b c");
  EXPECT_EQ(JoinUri("/a/", "b"), "/a/b");
  EXPECT_EQ(JoinUri("s3://bucket", "a b"), "s3://bucket/a b");
  EXPECT_EQ(JoinUri("s3://bucket/p/", "a?b"), "s3://bucket/p/a?b");
  EXPECT_EQ(JoinUri("http://h/d?sig=1", "a b/c"), "http://h/d/a%20b/c?sig=1");
  EXPECT_EQ(JoinUri("file:///d", "a%b"), "file:///d/a%25b");
}

TEST(Uri, EscapesAreReversible) {
  std::string all;
  for (int c = 1; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(PercentDecode(PercentEncode(all)), all);
  EXPECT_EQ(PercentEncode("a/b c", "/"), "a/b%20c");
  EXPECT_EQ(PercentDecode("%4"), "%4");
  EXPECT_EQ(PercentDecode("%41"), "A");
  EXPECT_EQ(PercentDecode("%zz%41%"), "%zzA%");
  EXPECT_EQ(PercentDecode("a+b%2B", true), "a b+");
}

TEST(StoredIdentity, TextsReadBackAsTheyWere) {
  for (const Identity& identity :
       {HttpIdentity(10, "\"abc\"", "yesterday"), HttpIdentity(0, "abc", ""),
        HttpIdentity(7, "W/\"abc\"", "Tue, 15 Nov 1994 12:45:26 GMT"),
        HttpIdentity(~0ull, "", ""), LocalIdentity(3, 1'700'000'000, 17)}) {
    const auto back = ParseIdentity(identity.Text(), "uri");
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, identity);
  }
  EXPECT_EQ(HttpIdentity(10, "\"abc\"", "x").Text(), "size=10 etag=\"abc\"");
  EXPECT_EQ(LocalIdentity(3, 2, 17).Text(), "size=3 mtime_ns=2000000017");
  // A time beyond the year 2262 is valid, too.
  EXPECT_NE(LocalIdentity(3, 12'000'000'000, 0),
            LocalIdentity(3, 12'000'000'001, 0));
}

TEST(StoredIdentity, WhatIsNoneIsRefused) {
  for (const char* text : {"", "size=", "size=x", "size=99999999999999999999",
                           "size=1 ", "size=1 etag=\"\"", "size=1 etag=\"a",
                           "size=1 mtime_ns=", "size=1 etag=\"a\"b\"",
                           "size=1 other=\"a\"", "mtime_ns=1"}) {
    EXPECT_EQ(ParseIdentity(text, "uri").status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_EQ(HttpIdentity(1, "\"a\nb\"", "").kind, Identity::Kind::kSize);
  EXPECT_EQ(HttpIdentity(1, "\"caf\xe9\"", "caf\xe9").kind,
            Identity::Kind::kSize);
  EXPECT_EQ(HttpIdentity(1, "\"caf\xc3\xa9\"", "").kind, Identity::Kind::kEtag);
  EXPECT_EQ(HttpIdentity(1, std::string(2000, 'a'), "").kind,
            Identity::Kind::kSize);
}

}  // namespace
}  // namespace leat::worker
