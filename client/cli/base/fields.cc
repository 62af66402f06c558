// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/fields.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/status.h"

namespace leat::cli {

absl::StatusOr<Json> ParseObject(std::string_view text, std::string_view what) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    return Internal("{}: the answer of {} bytes is not a JSON object", what,
                    text.size());
  }
  return json;
}

absl::StatusOr<Json> ParseArray(std::string_view text, std::string_view what) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_array()) return json;
  return Internal("{}: the answer of {} bytes is not a JSON array", what,
                  text.size());
}

const Json& At(const Json& json, std::string_view path) {
  static const Json kNull;
  const Json* at = &json;
  while (true) {
    const size_t dot = path.find('.');
    if (!at->is_object()) return kNull;
    const auto field = at->find(std::string(path.substr(0, dot)));
    if (field == at->end()) return kNull;
    at = &*field;
    if (dot == std::string_view::npos) return *at;
    path.remove_prefix(dot + 1);
  }
}

std::string Text(const Json& json, std::string_view path) {
  const Json& value = At(json, path);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  return "";
}

uint64_t Whole(const Json& json, std::string_view path) {
  const Json& value = At(json, path);
  if (value.is_number_unsigned()) return value.get<uint64_t>();
  if (!value.is_string()) {
    const double number = Number(json, path);
    return number > 0 && number < 1e18 ? static_cast<uint64_t>(number) : 0;
  }
  const std::string& text = value.get_ref<const std::string&>();
  uint64_t whole = 0;
  std::from_chars(text.data(), text.data() + text.size(), whole);
  return whole;
}

double Number(const Json& json, std::string_view path) {
  const Json& value = At(json, path);
  double number = 0;
  if (value.is_number()) number = value.get<double>();
  if (value.is_string()) {
    number = std::strtod(value.get_ref<const std::string&>().c_str(), nullptr);
  }
  return std::isfinite(number) ? number : 0;
}

const Json& Items(const Json& json, std::string_view path) {
  static const Json kEmpty = Json::array();
  const Json& value = At(json, path);
  return value.is_array() ? value : kEmpty;
}

std::vector<std::string> Strings(const Json& json, std::string_view path) {
  std::vector<std::string> strings;
  for (const Json& item : Items(json, path)) {
    if (item.is_string()) strings.push_back(item.get<std::string>());
  }
  return strings;
}

}  // namespace leat::cli
