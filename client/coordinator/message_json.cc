// SPDX-License-Identifier: Apache-2.0
#include "client/coordinator/message_json.h"

#include <cstdlib>

#include "core/status.h"
#include "google/protobuf/util/json_util.h"

namespace leat::client {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using nlohmann::json;

void FixMessage(const Descriptor& type, json& value);

void FixValue(const FieldDescriptor& field, json& value) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      if (value.is_string())
        value = std::strtoll(value.get_ref<const std::string&>().c_str(),
                             nullptr, 10);
      break;
    case FieldDescriptor::CPPTYPE_UINT64:
      if (value.is_string())
        value = std::strtoull(value.get_ref<const std::string&>().c_str(),
                              nullptr, 10);
      break;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (value.is_object()) FixMessage(*field.message_type(), value);
      break;
    default:
      break;
  }
}

void FixMessage(const Descriptor& type, json& value) {
  for (auto& [name, item] : value.items()) {
    const FieldDescriptor* field = type.FindFieldByName(name);
    if (field == nullptr) continue;
    if (field->is_map()) {
      const FieldDescriptor* mapped = field->message_type()->map_value();
      for (auto& [key, element] : item.items()) FixValue(*mapped, element);
    } else if (field->is_repeated()) {
      for (json& element : item) FixValue(*field, element);
    } else {
      FixValue(*field, item);
    }
  }
}

}  // namespace

std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? text : "{}";
}

nlohmann::json ToJsonNumbers(const google::protobuf::Message& message) {
  json value = json::parse(ToJson(message), nullptr, false);
  if (value.is_object()) FixMessage(*message.GetDescriptor(), value);
  return value;
}

absl::Status FromJson(std::string_view text, std::string_view what,
                      google::protobuf::Message* message) {
  const auto status = google::protobuf::util::JsonStringToMessage(
      google::protobuf::StringPiece(text.data(), text.size()), message);
  if (status.ok()) return absl::OkStatus();
  return InvalidArgument("{}: {}", what, status.ToString());
}

}  // namespace leat::client
