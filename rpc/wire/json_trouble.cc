// SPDX-License-Identifier: Apache-2.0
#include "rpc/wire/json_trouble.h"

#include "fmt/format.h"
#include "nlohmann/json.hpp"

namespace leat::rpc {

std::string JsonTrouble(std::string_view json, std::string_view parser_said,
                        const google::protobuf::Descriptor& message) {
  const auto object =
      nlohmann::json::parse(json, nullptr, /*allow_exceptions=*/false);
  for (int i = 0; object.is_object() && i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const google::protobuf::EnumDescriptor* const words = field.enum_type();
    const auto found = object.find(field.name());
    if (words == nullptr || found == object.end() || !found->is_string())
      continue;
    const auto word = found->get<std::string>();
    if (words->FindValueByName(word) != nullptr) continue;
    std::string known;
    for (int k = 1; k < words->value_count(); ++k)
      known += (k == 1 ? "" : ", ") + words->value(k)->name();
    return fmt::format("{} \"{}\": want one of {}", field.name(), word, known);
  }
  return std::string(parser_said);
}

}  // namespace leat::rpc
