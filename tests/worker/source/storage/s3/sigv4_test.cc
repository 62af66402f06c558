// SPDX-License-Identifier: Apache-2.0
//
// The vectors are Amazon's: the S3 documentation's examples ("Authenticating
// Requests: Using the Authorization Header") and the signature version 4 test
// suite.
#include "worker/source/storage/s3/sigv4.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace leat::worker {
namespace {

using ::testing::EndsWith;
using Pairs = std::vector<std::pair<std::string, std::string>>;

std::string S3Signature(std::string path, Pairs query, Pairs more) {
  constexpr std::string_view kDate = "20130524T000000Z";
  Pairs headers = {{"host", "examplebucket.s3.amazonaws.com"},
                   {"x-amz-content-sha256", std::string(kEmptyPayload)},
                   {"x-amz-date", std::string(kDate)}};
  headers.insert(headers.end(), more.begin(), more.end());
  return Authorization(
      {.path = std::move(path), .query = std::move(query), .headers = headers},
      {.region = "us-east-1"}, kDate, "AKIAIOSFODNN7EXAMPLE",
      "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
}

std::string SuiteSignature(SignedRequest request) {
  constexpr std::string_view kDate = "20150830T123600Z";
  request.headers.push_back({"host", "example.amazonaws.com"});
  request.headers.push_back({"x-amz-date", std::string(kDate)});
  return Authorization(request, {.region = "us-east-1", .service = "service"},
                       kDate, "AKIDEXAMPLE",
                       "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
}

TEST(SigV4, AmazonsRangeReadIsSignedAsPublished) {
  EXPECT_EQ(
      S3Signature("/test.txt", {}, {{"range", "bytes=0-9"}}),
      "AWS4-HMAC-SHA256 "
      "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
      "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, "
      "Signature="
      "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

TEST(SigV4, AmazonsQueriesAreSignedAsPublished) {
  EXPECT_THAT(
      S3Signature("/", {{"lifecycle", ""}}, {}),
      EndsWith(
          "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"));
  EXPECT_THAT(
      S3Signature("/", {{"prefix", "J"}, {"max-keys", "2"}}, {}),
      EndsWith(
          "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"));
}

TEST(SigV4, TheTestSuitesRequestsAreSignedAsPublished) {
  EXPECT_THAT(
      SuiteSignature({}),
      EndsWith(
          "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"));
  EXPECT_THAT(
      SuiteSignature({.query = {{"Param2", "value2"}, {"Param1", "value1"}}}),
      EndsWith(
          "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"));
  // The cases get-header-key-duplicate and get-header-value-trim.
  EXPECT_THAT(
      SuiteSignature({.headers = {{"my-header1", "value2"},
                                  {"my-header1", "value2"},
                                  {"my-header1", "value1"}}}),
      EndsWith(
          "c9d5ea9f3f72853aea855b47ea873832890dbdd183b4468f858259531a5138ea"));
  EXPECT_THAT(
      SuiteSignature({.headers = {{"my-header1", " value1"},
                                  {"my-header2", " \"a   b   c\""}}}),
      EndsWith(
          "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"));
}

TEST(SigV4, QueriesAreSortedAfterTheyAreEscaped) {
  EXPECT_EQ(CanonicalQuery({{"b", "a b/c"}, {"a", ""}, {"B", "\xc3\xa4"}}),
            "B=%C3%A4&a=&b=a%20b%2Fc");
  EXPECT_EQ(CanonicalQuery({}), "");
}

TEST(SigV4, TimesAreWrittenAsSigningWants) {
  EXPECT_EQ(SigningTime(WallTime(std::chrono::seconds(1440938160))),
            "20150830T123600Z");
}

}  // namespace
}  // namespace leat::worker
