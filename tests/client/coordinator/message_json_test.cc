// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/message_json.h"

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "leat/v1/admin.pb.h"
#include "leat/v1/coordinator.pb.h"
#include "leat/v1/pool.pb.h"
#include "leat/v1/trace.pb.h"

namespace leat::client {
namespace {

using AnyMessage = google::protobuf::Message;
using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

// Gives every field a value, and two to repeated ones; `seed` varies them.
class Filler {
 public:
  explicit Filler(uint64_t seed) : random_(seed) {}

  void Fill(AnyMessage* message, int depth = 0) {
    const Descriptor& type = *message->GetDescriptor();
    if (type.full_name().starts_with("google.protobuf.")) {
      const auto* reflection = message->GetReflection();
      reflection->SetInt64(message, type.FindFieldByName("seconds"),
                           static_cast<int64_t>(Next() % 1'000'000'000));
      reflection->SetInt32(message, type.FindFieldByName("nanos"),
                           static_cast<int32_t>(Next() % 4) * 250'000'000);
      return;
    }
    for (int i = 0; i < type.field_count(); ++i)
      if (Next() % 4 != 0) Set(message, type.field(i), depth);
  }

 private:
  uint64_t Next() {
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    return random_ >> 20;
  }
  double NextDouble() {
    constexpr double kSome[] = {0,       3,    -1,    0.1,
                                1e-9,    1e15, 1e21,  1234567890123456.0,
                                1.0 / 3, -0.0, 1e300, 123456.789};
    return kSome[Next() % std::size(kSome)];
  }
  uint64_t NextWhole() {
    constexpr uint64_t kSome[] = {0, 1, 4096, uint64_t{1} << 53,
                                  std::numeric_limits<uint64_t>::max()};
    return kSome[Next() % std::size(kSome)];
  }
  void Set(AnyMessage* to, const FieldDescriptor* field, int depth) {
    const auto* r = to->GetReflection();
    const bool many = field->is_repeated();
    for (int i = 0; i < (many ? 2 : 1); ++i) {
      switch (field->cpp_type()) {
        case FieldDescriptor::CPPTYPE_INT32:
          many ? r->AddInt32(to, field, -7) : r->SetInt32(to, field, -7);
          break;
        case FieldDescriptor::CPPTYPE_INT64: {
          const auto value = static_cast<int64_t>(NextWhole());
          many ? r->AddInt64(to, field, value) : r->SetInt64(to, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_UINT32:
          many ? r->AddUInt32(to, field, 7) : r->SetUInt32(to, field, 7);
          break;
        case FieldDescriptor::CPPTYPE_UINT64: {
          const uint64_t value = NextWhole();
          many ? r->AddUInt64(to, field, value)
               : r->SetUInt64(to, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_DOUBLE: {
          const double value = NextDouble();
          many ? r->AddDouble(to, field, value)
               : r->SetDouble(to, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_FLOAT:
          many ? r->AddFloat(to, field, 0.5F) : r->SetFloat(to, field, 0.5F);
          break;
        case FieldDescriptor::CPPTYPE_BOOL:
          many ? r->AddBool(to, field, true) : r->SetBool(to, field, true);
          break;
        case FieldDescriptor::CPPTYPE_ENUM: {
          const int value = Next() % 3 == 0 ? 1000 : 1;  // 1000: of a newer
                                                         // release
          many ? r->AddEnumValue(to, field, value)
               : r->SetEnumValue(to, field, value);
          break;
        }
        case FieldDescriptor::CPPTYPE_STRING: {
          std::string text = "a\"\\\n\x01é<&/" + std::to_string(Next() % 9);
          many ? r->AddString(to, field, text) : r->SetString(to, field, text);
          break;
        }
        case FieldDescriptor::CPPTYPE_MESSAGE:
          if (depth < 4)
            Fill(many ? r->AddMessage(to, field) : r->MutableMessage(to, field),
                 depth + 1);
          break;
      }
    }
  }

  uint64_t random_;
};

// Returns protobuf's own JSON, where 64-bit numbers are texts.
json ProtobufsOwn(const AnyMessage& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  EXPECT_TRUE(
      google::protobuf::util::MessageToJsonString(message, &text, options)
          .ok());
  return json::parse(text);
}

void ExpectSame(const json& own, const json& ours, const std::string& where) {
  if (own.is_string() && ours.is_number()) {
    EXPECT_EQ(own.get<std::string>(), ours.dump()) << where;
    return;
  }
  ASSERT_STREQ(own.type_name(), ours.type_name()) << where << own << ours;
  if (!own.is_structured()) {
    EXPECT_EQ(own.dump(), ours.dump()) << where;
    return;
  }
  ASSERT_EQ(own.size(), ours.size()) << where << "\n" << own << "\n" << ours;
  if (own.is_array()) {
    for (size_t i = 0; i < own.size(); ++i)
      ExpectSame(own[i], ours[i], where + "/" + std::to_string(i));
    return;
  }
  for (const auto& [name, item] : own.items()) {
    ASSERT_TRUE(ours.contains(name)) << where << "/" << name;
    ExpectSame(item, ours[name], where + "/" + name);
  }
}

template <class M>
void Check() {
  const std::string name = M::descriptor()->full_name();
  ExpectSame(ProtobufsOwn(M()), ToJsonNumbers(M()), name);
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    M message;
    Filler(seed).Fill(&message);
    ExpectSame(ProtobufsOwn(message), ToJsonNumbers(message), name);
  }
}

TEST(MessageJson, IsProtobufsOwnWith64BitNumbersAsNumbers) {
  Check<v1::GetStatusResponse>();
  Check<v1::ListWorkersResponse>();
  Check<v1::ListJobsResponse>();
  Check<v1::ListDatasetsResponse>();
  Check<v1::ListShardsResponse>();
  Check<v1::ListConsumersResponse>();
  Check<v1::GetBottleneckResponse>();
  Check<v1::CreateAccessTokenResponse>();
  Check<v1::ListAccessTokensResponse>();
  Check<v1::WatchEventsResponse>();
  Check<v1::ListPoolsResponse>();
  Check<v1::CollectSpansResponse>();
  Check<v1::Job>();
}

TEST(MessageJson, WhatIsNoNumberIsText) {
  v1::ConsumerStats stats;
  stats.set_rows_per_s(std::numeric_limits<double>::quiet_NaN());
  stats.set_stall_fraction(-std::numeric_limits<double>::infinity());
  EXPECT_EQ(ToJsonNumbers(stats)["rows_per_s"], "NaN");
  EXPECT_EQ(ToJsonNumbers(stats)["stall_fraction"], "-Infinity");
}

// Sets a locale whose decimal point is a comma. A machine may have none, so it
// is written here, in glibc's format: a magic number, the number of values,
// their places, and the values.
class CommaLocale {
 public:
  CommaLocale() {
    const std::filesystem::path folder =
        std::filesystem::path(testing::TempDir()) / "comma";
    std::filesystem::create_directories(folder);
    const struct {
      uint32_t magic = 0x20031115 ^ LC_NUMERIC;
      uint32_t count = 6;
      uint32_t places[6] = {32, 34, 34, 36, 40, 44};
      char point[4] = ",";  // the separator and the grouping are empty
      uint32_t wide[2] = {',', 0};
      char charset[8] = "UTF-8";
    } file;
    std::ofstream(folder / "LC_NUMERIC", std::ios::binary)
        .write(reinterpret_cast<const char*>(&file), sizeof file);
    setenv("LOCPATH", testing::TempDir().c_str(), 1);
    set_ = std::setlocale(LC_NUMERIC, "comma") != nullptr;
    unsetenv("LOCPATH");
  }
  ~CommaLocale() { std::setlocale(LC_NUMERIC, "C"); }
  bool set() const {
    return set_ && std::string_view(std::localeconv()->decimal_point) == ",";
  }

 private:
  bool set_ = false;
};

TEST(MessageJson, NumbersHaveAPointInEveryLocale) {
  const CommaLocale comma;
  ASSERT_TRUE(comma.set());
  v1::ConsumerStats stats;
  stats.set_rows_per_s(1234.5);
  stats.set_stall_fraction(1.0 / 3);
  EXPECT_EQ(ToJsonNumbers(stats)["rows_per_s"].dump(), "1234.5");
  EXPECT_EQ(ToJsonNumbers(stats)["stall_fraction"].dump(),
            "0.3333333333333333");
}

}  // namespace
}  // namespace leat::client
