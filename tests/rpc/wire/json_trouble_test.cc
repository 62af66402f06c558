// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/json_trouble.h"

#include "core/status.h"
#include "gtest/gtest.h"
#include "leat/v1/types.pb.h"
#include "rpc/wire/messages.h"

namespace leat::rpc {
namespace {

std::string TroubleOf(std::string_view json) {
  return JsonTrouble(json, "the parser", *v1::JobSpec::descriptor());
}

TEST(JsonTrouble, NamesTheFieldItsWordAndTheWordsThatItHas) {
  EXPECT_EQ(TroubleOf(R"({"on_bad_sample": "BAD_SAMPLE_POLICY_SKIP"})"),
            "on_bad_sample \"BAD_SAMPLE_POLICY_SKIP\": want one of "
            "BAD_SAMPLE_POLICY_FAIL, BAD_SAMPLE_POLICY_REPLACE, "
            "BAD_SAMPLE_POLICY_ZERO");
  EXPECT_EQ(Message(JobSpecFromJson(R"({"order": "random"})").status()),
            "job spec: order \"random\": want one of ORDER_SEQUENTIAL, "
            "ORDER_GLOBAL_SHUFFLE, ORDER_SHARD_SHUFFLE");
}

TEST(JsonTrouble, IsTheParsersWhereTheWordsAreKnown) {
  for (const char* const json :
       {"", "{", "[]", "7", R"({"order": 9})", R"({"order": null})",
        R"({"order": "ORDER_SEQUENTIAL", "batch": -1})"})
    EXPECT_EQ(TroubleOf(json), "the parser") << json;
}

}  // namespace
}  // namespace leat::rpc
