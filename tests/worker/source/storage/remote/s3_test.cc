// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sanitized.h"
#include "tests/worker/source/storage/remote/fixture.h"
#include "worker/source/storage/remote/target.h"

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Request = ObjectServer::Request;
using Reply = ObjectServer::Reply;
using Code = absl::StatusCode;

class S3Storage : public RemoteStorage {
 protected:
  std::vector<std::string> Names(const std::string& uri) {
    const auto list = storage_->List(uri);
    EXPECT_TRUE(list.ok()) << list.status();
    std::vector<std::string> names;
    if (!list.ok()) return names;
    for (const StoredObject& each : *list) names.push_back(each.name);
    return names;
  }
  absl::Status Listed() { return storage_->List("s3://bucket/d").status(); }
  static ObjectServer::Fault Body(std::string body) {
    return [body = std::move(body)](const Request&, Reply* reply) {
      *reply = {.body = body};
    };
  }
};

TEST_F(S3Storage, RequestsAreSignedForTheirRegion) {
  env_["AWS_REGION"] = "eu-west-3";
  env_["AWS_SESSION_TOKEN"] = "the-token";
  Restart(Small());
  server_.Put("/bucket/a b/c+d", "0123456789");
  const auto file = Opened("s3://bucket/a b/c+d");
  EXPECT_EQ(file->name(), "s3://bucket/a b/c+d");
  EXPECT_EQ(ReadWhole(*file, 10).value(), "0123456789");
  const Request seen = server_.Seen().back();
  EXPECT_EQ(seen.target, "/bucket/a%20b/c%2Bd");
  EXPECT_THAT(seen.Header("authorization"),
              AllOf(StartsWith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"),
                    HasSubstr("/eu-west-3/s3/aws4_request"),
                    HasSubstr("SignedHeaders=host;x-amz-content-sha256;"
                              "x-amz-date;x-amz-security-token,")));
  EXPECT_EQ(seen.Header("x-amz-security-token"), "the-token");
}

// Returns the signature of a request to a bucket of the service at `endpoint`.
std::string SignatureFor(const std::string& endpoint) {
  StorageConfig config;
  config.s3_endpoint = endpoint;
  const auto account = S3Account::Create(
      UriScheme::kS3, config, [](const char* name) -> const char* {
        const std::string_view asked = name;
        if (asked == "AWS_ACCESS_KEY_ID") return "AKIDEXAMPLE";
        return asked == "AWS_SECRET_ACCESS_KEY" ? "very-secret" : nullptr;
      });
  EXPECT_TRUE(account.ok()) << account.status();
  if (!account.ok()) return "";
  const Target target = {.name = "s3://bucket/x",
                         .url = (*account)->BucketUrl("bucket") + "/x",
                         .account = *account};
  return target.Request(false, WallTime{}).headers.back();
}

TEST(S3Signature, IsOfTheHostThatIsSentWithoutTheSchemesOwnPort) {
  const std::string plain = SignatureFor("http://minio");
  EXPECT_THAT(plain, StartsWith("Authorization: AWS4"));
  EXPECT_EQ(SignatureFor("http://minio:80"), plain);
  EXPECT_EQ(SignatureFor("https://minio:443"), plain);
  EXPECT_NE(SignatureFor("http://minio:443"), plain);
  EXPECT_NE(SignatureFor("https://minio:80"), plain);
  EXPECT_NE(SignatureFor("http://minio:9080"), plain);
}

TEST_F(S3Storage, WithoutKeysItSaysWhereItLookedUnlessAnonymous) {
  env_.erase("AWS_ACCESS_KEY_ID");
  env_.erase("AWS_SECRET_ACCESS_KEY");
  server_.Put("/bucket/x", "0123456789");
  const auto file = storage_->Open("s3://bucket/x");
  EXPECT_EQ(file.status().code(), Code::kUnauthenticated);
  EXPECT_THAT(Text(file.status()), HasSubstr("AWS_ACCESS_KEY_ID"));
  StorageConfig config = Small();
  config.anonymous = true;
  Restart(config);
  EXPECT_TRUE(Read(*Opened("s3://bucket/x"), 0, 10).ok());
  EXPECT_EQ(server_.Seen().back().Header("authorization"), "");
}

TEST_F(S3Storage, AProxysAnswerToConnectIsNotTheServers) {
  env_["https_proxy"] = server_.url();
  setenv("https_proxy", server_.url().c_str(), 1);
  StorageConfig config = Small();
  config.max_tries = 2;
  Restart(config);
  server_.Always([](const Request&, Reply* reply) {
    *reply = {.raw =
                  "HTTP/1.1 200 Connection established\r\n"
                  "Content-Length: 0\r\n\r\n"};
  });
  const auto object = storage_->Stat("https://server.invalid/x");
  unsetenv("https_proxy");
  EXPECT_EQ(object.status().code(), Code::kUnavailable) << object.status();
  EXPECT_EQ(server_.Count("CONNECT"), 2);
}

TEST_F(S3Storage, AListingIsPagedDeepAndInByteOrder) {
  for (int i = 0; i < 25; ++i) {
    server_.Put(fmt::format("/bucket/d/{:02}", i), std::string(i, 'x'),
                fmt::format("tag{}", i));
  }
  server_.Put("/bucket/d/a b/ü&<+%", "1");
  server_.Put("/bucket/d/", "");
  server_.Put("/bucket/d/sub/", "");
  server_.Put("/bucket/d2/other", "1");
  server_.set_page_keys(10);
  const auto list = storage_->List("s3://bucket/d");
  ASSERT_TRUE(list.ok()) << list.status();
  ASSERT_EQ(list->size(), 26);
  EXPECT_EQ((*list)[7].name, "07");
  EXPECT_EQ((*list)[7].size, 7);
  EXPECT_EQ((*list)[7].identity, "size=7 etag=\"tag7\"");
  EXPECT_EQ(list->back().name, "a b/ü&<+%");
  EXPECT_EQ(server_.Count("GET"), 3);
  const auto file = storage_->Open(JoinUri("s3://bucket/d/", list->back().name),
                                   list->back().identity);
  EXPECT_EQ(ReadWhole(**file, 1).value(), "1");
  EXPECT_EQ(Names("s3://bucket/d/").size(), 26);
  EXPECT_THAT(Names("s3://bucket/d2"), ElementsAre("other"));
  EXPECT_EQ(Names("s3://bucket").size(), 27);
}

TEST_F(S3Storage, AListingOfNothingIsAnError) {
  EXPECT_EQ(Listed().code(), Code::kNotFound);
  server_.Next(ObjectServer::Status(404, "NoSuchBucket", "No such bucket."));
  EXPECT_EQ(Listed().code(), Code::kNotFound);
  server_.Put("/bucket/d", "a file");
  EXPECT_THAT(Text(Listed()), HasSubstr("no keys below 'd/'"));
}

TEST_F(S3Storage, AListingEndsAtItsBounds) {
  for (int i = 0; i < 7; ++i) server_.Put(fmt::format("/bucket/d/{}", i), "");
  server_.set_page_keys(2);
  StorageConfig config = Small();
  config.max_list_entries = 6;
  Restart(config);
  EXPECT_EQ(Listed().code(), Code::kResourceExhausted);
  EXPECT_THAT(Text(Listed()), HasSubstr("max_list_entries"));
  config.max_list_entries = 7;
  config.max_page_bytes = 1024;
  Restart(config);
  EXPECT_TRUE(Listed().ok());
  server_.Next(Body(std::string(2000, ' ')));
  EXPECT_EQ(Listed().code(), Code::kResourceExhausted);
}

TEST_F(S3Storage, AnEndlessListingEnds) {
  int page = 0;
  const auto endless = [&](bool same_token, bool with_key) {
    return [&page, same_token, with_key](const Request&, Reply* reply) {
      ++page;
      *reply = {.body = fmt::format(
                    "<ListBucketResult><IsTruncated>true</IsTruncated>{}"
                    "<NextContinuationToken>{}</NextContinuationToken>"
                    "</ListBucketResult>",
                    with_key ? fmt::format("<Contents><Key>d/{}</Key>"
                                           "<Size>1</Size></Contents>",
                                           page)
                             : "",
                    same_token ? 0 : page)};
    };
  };
  StorageConfig config = Small();
  config.max_list_entries = 50;
  Restart(config);
  server_.Always(endless(false, true));
  EXPECT_EQ(Listed().code(), Code::kResourceExhausted);
  server_.Always(endless(false, false));
  EXPECT_EQ(Listed().code(), Code::kDataLoss);
  server_.Always(endless(true, true));
  EXPECT_EQ(Listed().code(), Code::kDataLoss);
}

TEST_F(S3Storage, ABucketOfAMillionKeysIsListedPageByPage) {
  constexpr int kPages = testing::kSanitized ? 50 : 1000, kPageKeys = 1000;
  std::string keys;  // the same in every page
  for (int i = 0; i < kPageKeys; ++i)
    keys +=
        fmt::format("<Contents><Key>d/{:03}</Key><Size>1</Size></Contents>", i);
  int pages = 0;
  server_.Always([&](const Request& request, Reply* reply) {
    EXPECT_EQ(request.Query("max-keys"), "1000");
    ++pages;
    *reply = {
        .body = fmt::format("<ListBucketResult>{}<IsTruncated>{}</IsTruncated>"
                            "<NextContinuationToken>{}</NextContinuationToken>"
                            "</ListBucketResult>",
                            keys, pages < kPages, pages)};
  });
  const auto listed = storage_->List("s3://bucket/d");
  ASSERT_TRUE(listed.ok()) << listed.status();
  EXPECT_EQ(pages, kPages);
  ASSERT_EQ(listed->size(), kPages * kPageKeys);
  EXPECT_EQ(listed->front().name, "000");
  EXPECT_EQ(listed->back().name, "999");
}

TEST_F(S3Storage, AMalformedListingIsRefused) {
  for (const char* body :
       {"", "garbage", "<html><body>Sign in</body></html>",
        "<ListBucketResult><Contents>", "<ListBucketResult>&nbsp;",
        "<ListBucketResult><Contents><Key>d/x</Key><Size>-1</Size></Contents>"
        "</ListBucketResult>",
        "<ListBucketResult><Contents><Size>1</Size></Contents>"
        "</ListBucketResult>",
        "<ListBucketResult><Contents><Key>e/x</Key><Size>1</Size></Contents>"
        "</ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<!DOCTYPE x [<!ENTITY a \"aaaa\"><!ENTITY b \"&a;&a;\">]>"
        "<ListBucketResult>&b;</ListBucketResult>",
        "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>"}) {
    server_.Next(Body(body));
    const absl::Status status = Listed();
    EXPECT_EQ(status.code(), Code::kDataLoss) << body << status;
    EXPECT_THAT(Text(status), HasSubstr("s3://bucket/d"));
  }
}

TEST_F(S3Storage, AListingGoesOnAfterFailureThatPasses) {
  server_.Put("/bucket/d/x", "1");
  server_.Next(ObjectServer::Status(503, "SlowDown"), 3);
  server_.Next([](const Request&, Reply* reply) { reply->cut_after = 20; });
  EXPECT_THAT(Names("s3://bucket/d"), ElementsAre("x"));
}

TEST_F(S3Storage, AListingCanBeCancelled) {
  const std::atomic<bool> cancelled = true;
  EXPECT_EQ(storage_->List("s3://bucket", &cancelled).status().code(),
            Code::kCancelled);
  EXPECT_EQ(server_.Seen().size(), 0);
}

TEST_F(S3Storage, AWrongRegionIsNamed) {
  server_.Put("/bucket/x", "1");
  server_.Always([](const Request&, Reply* reply) {
    *reply = {.status = 301,
              .headers = {{"x-amz-bucket-region", "eu-north-1"}},
              .body = "<Error><Code>PermanentRedirect</Code></Error>"};
  });
  const absl::Status opened = storage_->Open("s3://bucket/x").status();
  EXPECT_EQ(opened.code(), Code::kFailedPrecondition);
  EXPECT_THAT(Text(opened),
              AllOf(HasSubstr("eu-north-1"), HasSubstr("us-east-1"),
                    HasSubstr("AWS_REGION")));
  server_.Always([](const Request&, Reply* reply) {
    *reply = {.status = 400,
              .body =
                  "<Error><Code>AuthorizationHeaderMalformed</Code>"
                  "<Region>eu-north-1</Region></Error>"};
  });
  EXPECT_THAT(Text(Listed()), HasSubstr("eu-north-1"));
}

TEST_F(S3Storage, ExpiredCredentialsAreNamedByTheirSource) {
  server_.Always(ObjectServer::Status(400, "ExpiredToken",
                                      "The provided token has expired."));
  for (const absl::Status& status :
       {storage_->Open("s3://bucket/x").status(), Listed()}) {
    EXPECT_EQ(status.code(), Code::kUnauthenticated) << status;
    EXPECT_THAT(Text(status),
                AllOf(HasSubstr("AWS_ACCESS_KEY_ID"), HasSubstr("renew them")));
  }
}

TEST_F(S3Storage, RenewedCredentialsAreTakenWhileReading) {
  env_.erase("AWS_ACCESS_KEY_ID");
  env_.erase("AWS_SECRET_ACCESS_KEY");
  const auto write_keys = [this](const std::string& id) {
    home_.Write(".aws/credentials",
                fmt::format("[default]\naws_access_key_id={}\n"
                            "aws_secret_access_key=s\n",
                            id));
  };
  write_keys("OLD");
  server_.Put("/bucket/x", "0123456789");
  const auto file = Opened("s3://bucket/x");
  server_.Always([](const Request& request, Reply* reply) {
    if (request.Header("authorization").find("NEW/") != std::string::npos) {
      return;
    }
    *reply = {.status = 403,
              .body = "<Error><Code>InvalidAccessKeyId</Code></Error>"};
  });
  EXPECT_EQ(Read(*file, 0, 10).code(), Code::kPermissionDenied);
  write_keys("NEW");
  EXPECT_TRUE(Read(*file, 0, 10).ok());
}

TEST_F(S3Storage, ARedirectOfASignedRequestSaysWhereToAsk) {
  ObjectServer elsewhere;
  server_.Always([&](const Request&, Reply* reply) {
    *reply = {.status = 307,
              .headers = {{"Location", elsewhere.url() + "/bucket/x"}},
              .body = "<Error><Code>TemporaryRedirect</Code></Error>"};
  });
  for (const absl::Status& status :
       {storage_->Open("s3://bucket/x").status(), Listed()}) {
    EXPECT_EQ(status.code(), Code::kFailedPrecondition) << status;
    EXPECT_THAT(Text(status), AllOf(HasSubstr("307 TemporaryRedirect"),
                                    HasSubstr("set AWS_REGION")));
  }
  EXPECT_TRUE(elsewhere.Seen().empty()) << "its keys went to another host";
}

TEST_F(S3Storage, ARefusalSaysAsWhomWithoutSecrets) {
  server_.Always(ObjectServer::Status(
      403, "AccessDenied", "AKIDEXAMPLE with very-secret may not\n read."));
  const absl::Status status = storage_->Open("s3://bucket/x").status();
  EXPECT_EQ(status.code(), Code::kPermissionDenied);
  EXPECT_THAT(Text(status), AllOf(HasSubstr("403 AccessDenied: *** with ***"),
                                  HasSubstr("AWS_ACCESS_KEY_ID"),
                                  Not(HasSubstr("very-secret")),
                                  Not(HasSubstr("AKIDEXAMPLE"))));
}

TEST_F(S3Storage, AWrongClockIsNamed) {
  server_.Always([](const Request&, Reply* reply) {
    *reply = {.status = 403,
              .headers = {{"Date", "Tue, 15 Nov 1994 12:45:26 GMT"}},
              .body = "<Error><Code>RequestTimeTooSkewed</Code></Error>"};
  });
  const absl::Status status = storage_->Open("s3://bucket/x").status();
  EXPECT_EQ(status.code(), Code::kFailedPrecondition);
  EXPECT_THAT(Text(status), HasSubstr("Tue, 15 Nov 1994 12:45:26 GMT"));
}

TEST_F(S3Storage, GooglesEndpointIsAskedWithItsOwnKeys) {
  StorageConfig config = Small();
  config.gs_endpoint = server_.url();
  Restart(config);
  server_.Put("/bucket/x", "0123456789");
  EXPECT_EQ(storage_->Open("gs://bucket/x").status().code(),
            Code::kUnauthenticated);
  env_["GCS_KEY"] = "GOOG1E";
  env_["GCS_SECRET"] = "s";
  EXPECT_TRUE(Read(*Opened("gs://bucket/x"), 0, 10).ok());
  EXPECT_THAT(server_.Seen().back().Header("authorization"),
              AllOf(HasSubstr("Credential=GOOG1E/"), HasSubstr("/auto/s3/")));
}

TEST_F(S3Storage, WhatIsNoEndpointIsRefused) {
  for (const char* endpoint :
       {"ftp://h", "127.0.0.1:80", "http://", "http://u:p@h", "http://h?x"}) {
    env_["AWS_ENDPOINT_URL"] = endpoint;
    Restart(Small());
    EXPECT_EQ(storage_->Open("s3://bucket/x").status().code(),
              Code::kInvalidArgument)
        << endpoint;
  }
  env_["AWS_ENDPOINT_URL"] = server_.url() + "/";
  Restart(Small());
  server_.Put("/bucket/x", "1");
  EXPECT_TRUE(storage_->Stat("s3://bucket/x").ok());
  EXPECT_EQ(storage_->Stat("s3://bucket").status().code(),
            Code::kInvalidArgument);
}

}  // namespace
}  // namespace leat::worker
