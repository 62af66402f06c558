// SPDX-License-Identifier: Apache-2.0
#include "client/c/options.h"

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "core/status.h"
#include "nlohmann/json.hpp"

namespace leat::client {
namespace {

using nlohmann::json;
using Setter = std::function<absl::Status(const json&)>;
using Setters = std::map<std::string, Setter>;

Setter Text(std::string* value) {
  return [value](const json& given) -> absl::Status {
    if (!given.is_string()) return InvalidArgument("want a string");
    *value = given.get<std::string>();
    return absl::OkStatus();
  };
}

template <class T>
Setter Count(T* value) {
  return [value](const json& given) -> absl::Status {
    if (!given.is_number_integer() ||
        (!given.is_number_unsigned() && given.get<int64_t>() < 0) ||
        given.get<uint64_t>() > std::numeric_limits<T>::max())
      return InvalidArgument("want a whole number from 0 to {}",
                             std::numeric_limits<T>::max());
    *value = given.get<T>();
    return absl::OkStatus();
  };
}

// A CUDA device, or -1 for the host.
Setter Device(int* value) {
  return [value](const json& given) -> absl::Status {
    constexpr int64_t kMax = 1023;
    if (!given.is_number_integer() ||
        (given.is_number_unsigned() && given.get<uint64_t>() > kMax) ||
        given.get<int64_t>() < -1)
      return InvalidArgument("want -1 (host memory) or a device's number");
    *value = given.get<int>();
    return absl::OkStatus();
  };
}

Setter Flag(bool* value) {
  return [value](const json& given) -> absl::Status {
    if (!given.is_boolean()) return InvalidArgument("want true or false");
    *value = given.get<bool>();
    return absl::OkStatus();
  };
}

Setter EpilogueWord(EpilogueAt* value) {
  return [value](const json& given) -> absl::Status {
    if (given != "worker" && given != "device")
      return InvalidArgument("want \"worker\" or \"device\"");
    *value = given == "device" ? EpilogueAt::kDevice : EpilogueAt::kWorker;
    return absl::OkStatus();
  };
}

Setter Seconds(absl::Duration* value) {
  return [value](const json& given) -> absl::Status {
    if (!given.is_number() || !(given.get<double>() > 0))
      return InvalidArgument("want a number of seconds above 0");
    *value = absl::Seconds(given.get<double>());
    return absl::OkStatus();
  };
}

absl::Status Parse(std::string_view text, const Setters& setters) {
  if (text.empty()) return absl::OkStatus();
  const json options = json::parse(text, nullptr, false);
  if (!options.is_object())
    return InvalidArgument(
        "options: {}; want a JSON object",
        options.is_discarded() ? "not JSON" : options.type_name());
  for (const auto& [key, value] : options.items()) {
    const auto setter = setters.find(key);
    if (setter == setters.end()) {
      std::string known;
      for (const auto& [name, unused] : setters)
        known += (known.empty() ? "" : ", ") + name;
      return InvalidArgument("options: unknown key \"{}\"; known: {}", key,
                             known);
    }
    if (value.is_null()) continue;
    if (absl::Status status = setter->second(value); !status.ok())
      return InvalidArgument("options: {} is {}; {}", key, value.dump(),
                             Message(status));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConnectOptions> ConnectOptionsFromJson(std::string_view text) {
  ConnectOptions options;
  RETURN_IF_ERROR(Parse(
      text,
      {{"address", Text(&options.address)},
       {"access_token", Text(&options.access_token)},
       {"access_token_file", Text(&options.access_token_file)},
       {"ca_pem", Text(&options.ca_pem)},
       {"cert_pem", Text(&options.cert_pem)},
       {"key_pem", Text(&options.key_pem)},
       {"timeout_s", Seconds(&options.timeout)},
       {"daemon_dir", Text(&options.daemon_dir)},
       {"embedded_workers", Count(&options.embedded_workers)},
       {"embedded_threads", Count(&options.embedded_threads)},
       {"embedded_cache_bytes", Count(&options.embedded_cache_bytes)},
       {"embedded_disk_cache", Text(&options.embedded_disk_cache)},
       {"embedded_disk_cache_bytes", Count(&options.embedded_disk_cache_bytes)},
       {"embedded_devices", Text(&options.embedded_devices)}}));
  return options;
}

absl::StatusOr<BatchesOptions> BatchesOptionsFromJson(std::string_view text) {
  BatchesOptions options;
  RETURN_IF_ERROR(
      Parse(text, {{"epoch", Count(&options.epoch)},
                   {"step", Count(&options.step)},
                   {"epochs", Count(&options.epochs)},
                   {"window", Count(&options.window)},
                   {"max_window_bytes", Count(&options.max_window_bytes)},
                   {"row_timeout_s", Seconds(&options.row_timeout)},
                   {"device", Device(&options.device)},
                   {"epilogue", EpilogueWord(&options.epilogue)},
                   {"ahead", Flag(&options.ahead)}}));
  return options;
}

absl::StatusOr<BatchesOptions> BatchesOptionsFromC(const char* options_json,
                                                   const void* position,
                                                   size_t position_bytes,
                                                   const uint32_t* rows,
                                                   size_t num_rows) {
  if (position == nullptr && position_bytes > 0)
    return InvalidArgument("position is NULL, of {} bytes", position_bytes);
  if (rows == nullptr && num_rows > 0)
    return InvalidArgument("rows is NULL, {} of them", num_rows);
  ASSIGN_OR_RETURN(
      BatchesOptions options,
      BatchesOptionsFromJson(options_json == nullptr ? std::string_view()
                                                     : options_json));
  if (position_bytes > 0)
    options.position.assign(static_cast<const char*>(position), position_bytes);
  if (num_rows > 0) options.rows.assign(rows, rows + num_rows);
  return options;
}

}  // namespace leat::client
