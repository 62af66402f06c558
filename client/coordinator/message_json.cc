// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/message_json.h"

#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>

#include "absl/strings/escaping.h"
#include "core/status.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/time_util.h"

namespace leat::client {
namespace {

using AnyMessage = google::protobuf::Message;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Reflection;
using google::protobuf::util::TimeUtil;
using nlohmann::json;

// The value of a field: the only one, or the one at `index` of a repeated
// field.
struct FieldValue {
  const AnyMessage& message;
  const FieldDescriptor& field;
  int index;  // -1: the field is not repeated

  // Calls the matching accessor of Reflection.
  template <class One, class Of>
  auto Get(One one, Of of) const {
    const Reflection& reflection = *message.GetReflection();
    return index < 0 ? (reflection.*one)(message, &field)
                     : (reflection.*of)(message, &field, index);
  }
};

// Returns the shortest JSON text that parses to the number: 3 and not 3.0. A
// trainer may have set a locale whose decimal point is a comma, which printf and
// strtod would follow.
json NumberOf(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  char text[32];
  const auto written = [&](int digits) {
    const char* const end =
        std::to_chars(std::begin(text), std::end(text), number,
                      std::chars_format::general, digits)
            .ptr;
    return std::string_view(text, static_cast<size_t>(end - text));
  };
  const std::string_view brief = written(15);
  double read = 0;
  std::from_chars(brief.begin(), brief.end(), read);
  return json::parse(read == number ? brief : written(17));
}

json EnumOf(const EnumDescriptor& type, int number) {
  const auto* value = type.FindValueByNumber(number);
  return value == nullptr ? json(number) : json(value->name());
}

std::string FieldTextOf(const FieldValue& value) {
  const Reflection& reflection = *value.message.GetReflection();
  return value.index < 0 ? reflection.GetString(value.message, &value.field)
                         : reflection.GetRepeatedString(
                               value.message, &value.field, value.index);
}

const AnyMessage& InnerMessageOf(const FieldValue& value) {
  const Reflection& reflection = *value.message.GetReflection();
  return value.index < 0 ? reflection.GetMessage(value.message, &value.field)
                         : reflection.GetRepeatedMessage(
                               value.message, &value.field, value.index);
}

json FieldJsonOf(const FieldValue& value) {
  switch (value.field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return value.Get(&Reflection::GetInt32, &Reflection::GetRepeatedInt32);
    case FieldDescriptor::CPPTYPE_INT64:
      return value.Get(&Reflection::GetInt64, &Reflection::GetRepeatedInt64);
    case FieldDescriptor::CPPTYPE_UINT32:
      return value.Get(&Reflection::GetUInt32, &Reflection::GetRepeatedUInt32);
    case FieldDescriptor::CPPTYPE_UINT64:
      return value.Get(&Reflection::GetUInt64, &Reflection::GetRepeatedUInt64);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return NumberOf(
          value.Get(&Reflection::GetDouble, &Reflection::GetRepeatedDouble));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return NumberOf(
          value.Get(&Reflection::GetFloat, &Reflection::GetRepeatedFloat));
    case FieldDescriptor::CPPTYPE_BOOL:
      return value.Get(&Reflection::GetBool, &Reflection::GetRepeatedBool);
    case FieldDescriptor::CPPTYPE_ENUM:
      return EnumOf(*value.field.enum_type(),
                    value.Get(&Reflection::GetEnumValue,
                              &Reflection::GetRepeatedEnumValue));
    case FieldDescriptor::CPPTYPE_STRING:
      return value.field.type() == FieldDescriptor::TYPE_BYTES
                 ? absl::Base64Escape(FieldTextOf(value))
                 : FieldTextOf(value);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJsonNumbers(InnerMessageOf(value));
  }
  return nullptr;
}

// Returns the key of a map's entry, as a name.
std::string MapKeyOf(const AnyMessage& entry) {
  const FieldDescriptor& field = *entry.GetDescriptor()->map_key();
  const json key = FieldJsonOf({entry, field, -1});
  return key.is_string() ? key.get<std::string>() : key.dump();
}

json RepeatedOf(const AnyMessage& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  const int size = reflection.FieldSize(message, &field);
  if (!field.is_map()) {
    json items = json::array();
    for (int i = 0; i < size; ++i)
      items.push_back(FieldJsonOf({message, field, i}));
    return items;
  }
  json items = json::object();
  for (int i = 0; i < size; ++i) {
    const AnyMessage& entry = reflection.GetRepeatedMessage(message, &field, i);
    const FieldDescriptor& value = *entry.GetDescriptor()->map_value();
    items[MapKeyOf(entry)] = FieldJsonOf({entry, value, -1});
  }
  return items;
}

}  // namespace

nlohmann::json ToJsonNumbers(const AnyMessage& message) {
  if (const auto* time =
          dynamic_cast<const google::protobuf::Timestamp*>(&message))
    return TimeUtil::ToString(*time);
  if (const auto* duration =
          dynamic_cast<const google::protobuf::Duration*>(&message))
    return TimeUtil::ToString(*duration);
  const Reflection& reflection = *message.GetReflection();
  json object = json::object();
  for (int i = 0; i < message.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *message.GetDescriptor()->field(i);
    if (field.is_repeated())
      object[field.name()] = RepeatedOf(message, field);
    else if (!field.has_presence() || reflection.HasField(message, &field))
      object[field.name()] = FieldJsonOf({message, field, -1});
  }
  return object;
}

absl::Status FromJson(std::string_view text, std::string_view what,
                      google::protobuf::Message* message) {
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), message);
  if (status.ok()) return absl::OkStatus();
  return InvalidArgument("{}: {}", what, status.ToString());
}

}  // namespace leat::client
