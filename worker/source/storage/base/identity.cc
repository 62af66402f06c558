// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/base/identity.h"

#include <algorithm>
#include <charconv>

#include "core/status.h"
#include "core/utf8.h"
#include "worker/source/faults/modified_time.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxVersionBytes = 1024;
constexpr std::string_view kSize = "size=";
constexpr std::string_view kMtime = " mtime_ns=";
constexpr std::string_view kEtag = " etag=\"";
constexpr std::string_view kModified = " modified=\"";

bool IsVersion(std::string_view text) {
  return !text.empty() && text.size() <= kMaxVersionBytes && IsUtf8(text) &&
         std::none_of(text.begin(), text.end(), [](char c) {
           return static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '"';
         });
}

std::string_view WithoutQuotes(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
    return text.substr(1, text.size() - 2);
  }
  return text;
}

// Parses `rest` as "`prefix`version[`end`]" into `out`.
bool TakeVersion(std::string_view rest, std::string_view prefix,
                 std::string_view end, Identity::Kind kind, Identity* out) {
  if (!rest.starts_with(prefix)) return false;
  rest.remove_prefix(prefix.size());
  if (!rest.ends_with(end)) return false;
  rest.remove_suffix(end.size());
  if (!IsVersion(rest)) return false;
  out->kind = kind;
  out->version = std::string(rest);
  return true;
}

}  // namespace

std::string Identity::Text() const {
  switch (kind) {
    case Kind::kMtimeNs:
      return fmt::format("{}{}{}{}", kSize, size, kMtime, version);
    case Kind::kEtag:
      return fmt::format("{}{}{}{}\"", kSize, size, kEtag, version);
    case Kind::kModified:
      return fmt::format("{}{}{}{}\"", kSize, size, kModified, version);
    case Kind::kSize:
      break;
  }
  return fmt::format("{}{}", kSize, size);
}

Identity HttpIdentity(uint64_t size, std::string_view etag,
                      std::string_view last_modified) {
  if (!etag.starts_with("W/") && IsVersion(WithoutQuotes(etag))) {
    return {size, Identity::Kind::kEtag, std::string(WithoutQuotes(etag))};
  }
  if (IsVersion(last_modified)) {
    return {size, Identity::Kind::kModified, std::string(last_modified)};
  }
  return {.size = size};
}

Identity LocalIdentity(uint64_t size, int64_t mtime_seconds,
                       int64_t mtime_nanoseconds) {
  return {size, Identity::Kind::kMtimeNs,
          fmt::format("{}", NsOfTime(mtime_seconds, mtime_nanoseconds))};
}

std::string WithoutTime(std::string_view text) {
  const auto identity = ParseIdentity(text, "");
  if (!identity.ok() || identity->kind != Identity::Kind::kMtimeNs)
    return std::string(text);
  return Identity{.size = identity->size}.Text();
}

absl::StatusOr<Identity> ParseIdentity(std::string_view text,
                                       std::string_view uri) {
  Identity out;
  const auto malformed = [&] {
    return InvalidArgument("{}: '{}' is no identity of a stored object", uri,
                           text.substr(0, 100));
  };
  if (!text.starts_with(kSize)) return malformed();
  const char* const end = text.data() + text.size();
  const auto [rest, error] =
      std::from_chars(text.data() + kSize.size(), end, out.size);
  if (error != std::errc()) return malformed();
  if (rest == end) return out;
  const std::string_view version(rest, end - rest);
  using Kind = Identity::Kind;
  if (TakeVersion(version, kMtime, "", Kind::kMtimeNs, &out) ||
      TakeVersion(version, kEtag, "\"", Kind::kEtag, &out) ||
      TakeVersion(version, kModified, "\"", Kind::kModified, &out)) {
    return out;
  }
  return malformed();
}

}  // namespace leat::worker
