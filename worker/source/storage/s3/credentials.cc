// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/s3/credentials.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>

#include "core/status.h"
#include "worker/source/storage/local/local.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxFileBytes = 1 << 20;
using Section = std::map<std::string, std::string>;

std::string Env(const GetEnv& env, const char* name) {
  const char* const value = env(name);
  return value == nullptr ? "" : value;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

std::string Value(const Section& section, const std::string& key) {
  const auto found = section.find(key);
  return found == section.end() ? "" : found->second;
}

// Returns the section `wanted` of an ini file; sets `*found` to whether it
// exists. Indented lines belong to the setting above them, which is not used
// here.
absl::StatusOr<Section> ParseSection(std::string_view text,
                                     std::string_view wanted,
                                     std::string_view path, bool* found) {
  Section out;
  bool inside = false;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    const std::string_view trimmed = Trimmed(line);
    if (trimmed.empty() || trimmed.front() == '#' || trimmed.front() == ';') {
      continue;
    }
    if (trimmed.front() == '[') {
      if (trimmed.back() != ']') {
        return InvalidArgument("{} line {}: no ']' after '['", path, number);
      }
      inside = Trimmed(trimmed.substr(1, trimmed.size() - 2)) == wanted;
      *found = *found || inside;
      continue;
    }
    if (!inside || line.front() == ' ' || line.front() == '\t') continue;
    const size_t equals = trimmed.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("{} line {}: want name = value", path, number);
    }
    out[std::string(Trimmed(trimmed.substr(0, equals)))] =
        std::string(Trimmed(trimmed.substr(equals + 1)));
  }
  return out;
}

// Returns an empty text if there is no such file.
absl::StatusOr<std::string> ReadText(const std::string& path) {
  if (path.empty()) return "";
  const auto file =
      OpenLocal(nullptr, std::make_shared<OpenFileBudget>(1), path, path);
  if (file.status().code() == absl::StatusCode::kNotFound) return "";
  if (!file.ok()) return file.status();
  return ReadWhole(**file, kMaxFileBytes);
}

std::string FilePath(const GetEnv& env, const char* name,
                     std::string_view below_home) {
  const std::string path = Env(env, name);
  const std::string home = Env(env, "HOME");
  if (path.starts_with("~/")) return home + path.substr(1);
  if (!path.empty()) return path;
  return home.empty() ? "" : fmt::format("{}/.aws/{}", home, below_home);
}

// Returns the key pair of two settings, or none.
absl::StatusOr<Credentials> Pair(std::string key_id, std::string secret,
                                 std::string token, std::string source) {
  if (key_id.empty() && secret.empty()) return Credentials{};
  if (key_id.empty() || secret.empty()) {
    return InvalidArgument("{}: the {} is set, the {} is not", source,
                           key_id.empty() ? "secret key" : "key id",
                           key_id.empty() ? "key id" : "secret key");
  }
  return Credentials{std::move(key_id), std::move(secret), std::move(token),
                     std::move(source)};
}

absl::StatusOr<Credentials> PairOf(const Section& section, std::string source) {
  return Pair(Value(section, "aws_access_key_id"),
              Value(section, "aws_secret_access_key"),
              Value(section, "aws_session_token"), std::move(source));
}

std::string FirstOf(std::initializer_list<std::string> values) {
  for (const std::string& value : values) {
    if (!value.empty()) return value;
  }
  return "";
}

bool IsWordAt(const std::string& text, size_t at) {
  return at < text.size() &&
         std::isalnum(static_cast<unsigned char>(text[at])) != 0;
}

// A text shorter than the shortest secret that a service issues may be part of
// any word ("test"), so it is hidden only as a whole word. A text of less than
// four letters is not secret.
void Hide(const std::string& secret, std::string* text) {
  constexpr std::string_view kHidden = "***";
  constexpr size_t kLeast = 4, kLeastAnywhere = 8;
  if (secret.size() < kLeast) return;
  const bool anywhere = secret.size() >= kLeastAnywhere;
  for (size_t at = 0; (at = text->find(secret, at)) != std::string::npos;) {
    const bool part = (at > 0 && IsWordAt(*text, at - 1)) ||
                      IsWordAt(*text, at + secret.size());
    if (part && !anywhere) {
      ++at;
      continue;
    }
    text->replace(at, secret.size(), kHidden);
    at += kHidden.size();
  }
}

}  // namespace

std::string Credentials::Redact(std::string_view text) const {
  std::string out(text);
  std::array<std::string, 3> hidden = {secret, token, key_id};
  // One may be a part of another.
  std::sort(hidden.begin(), hidden.end(),
            [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const std::string& each : hidden) Hide(each, &out);
  return out;
}

absl::StatusOr<CloudSettings> LoadS3Settings(const GetEnv& env) {
  const std::string named = Env(env, "AWS_PROFILE");
  const std::string profile = named.empty() ? "default" : named;
  const std::string keys_path =
      FilePath(env, "AWS_SHARED_CREDENTIALS_FILE", "credentials");
  const std::string config_path = FilePath(env, "AWS_CONFIG_FILE", "config");
  ASSIGN_OR_RETURN(const std::string keys_text, ReadText(keys_path));
  ASSIGN_OR_RETURN(const std::string config_text, ReadText(config_path));
  bool found = false;
  ASSIGN_OR_RETURN(const Section keys,
                   ParseSection(keys_text, profile, keys_path, &found));
  ASSIGN_OR_RETURN(
      const Section config,
      ParseSection(config_text,
                   profile == "default" ? profile : "profile " + profile,
                   config_path, &found));
  if (!named.empty() && !found) {
    return InvalidArgument(
        "AWS_PROFILE is '{}', a profile in neither {} nor {}", named, keys_path,
        config_path);
  }
  CloudSettings out;
  out.looked_in = fmt::format(
      "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, profile '{}' of {} and {}",
      profile, keys_path, config_path);
  ASSIGN_OR_RETURN(
      out.credentials,
      Pair(Env(env, "AWS_ACCESS_KEY_ID"), Env(env, "AWS_SECRET_ACCESS_KEY"),
           Env(env, "AWS_SESSION_TOKEN"), "AWS_ACCESS_KEY_ID"));
  if (out.credentials.empty()) {
    ASSIGN_OR_RETURN(
        out.credentials,
        PairOf(keys, fmt::format("profile '{}' of {}", profile, keys_path)));
  }
  if (out.credentials.empty()) {
    ASSIGN_OR_RETURN(out.credentials,
                     PairOf(config, fmt::format("profile '{}' of {}", profile,
                                                config_path)));
  }
  out.region = FirstOf({Env(env, "AWS_REGION"), Env(env, "AWS_DEFAULT_REGION"),
                        Value(config, "region"), Value(keys, "region")});
  out.endpoint =
      FirstOf({Env(env, "AWS_ENDPOINT_URL_S3"), Env(env, "AWS_ENDPOINT_URL"),
               Value(config, "endpoint_url"), Value(keys, "endpoint_url")});
  return out;
}

absl::StatusOr<CloudSettings> LoadGsSettings(const GetEnv& env) {
  CloudSettings out;
  out.looked_in = "GCS_KEY and GCS_SECRET (an HMAC key)";
  ASSIGN_OR_RETURN(
      out.credentials,
      Pair(Env(env, "GCS_KEY"), Env(env, "GCS_SECRET"), "", "GCS_KEY"));
  out.region = "auto";
  return out;
}

}  // namespace leat::worker
