// SPDX-License-Identifier: Apache-2.0
//
// ListObjectsV2, page by page. An endless listing is ended by max_list_entries,
// by a token that the server repeats, or by empty pages.
#include <algorithm>
#include <charconv>
#include <set>

#include "core/status.h"
#include "worker/source/storage/remote/remote.h"
#include "worker/source/storage/s3/xml.h"

namespace leat::worker {
namespace {

using Kind = Verdict::Kind;
constexpr std::string_view kRoot = "ListBucketResult";
constexpr int kMaxEmptyPages = 100;  // in sequence

struct Page {
  std::vector<StoredObject> objects;  // names are keys
  bool truncated = false;
  std::string next;
};

class PageTask : public HttpTask {
 public:
  PageTask(const Remote& remote, const Target& target, std::string* body)
      : remote_(remote), target_(target), body_(body) {}

  std::string Describe() const override {
    return fmt::format("{}: listing it", target_.name);
  }
  HttpRequest Next(std::span<std::byte> /*other*/) override {
    HttpRequest request = target_.Request(false, remote_.WallNow());
    request.max_body = remote_.config().max_page_bytes;
    return request;
  }
  size_t hedge_bytes() const override { return 0; }
  Verdict Take(const HttpResponse& response,
               std::span<const std::byte> /*other*/) override {
    if (response.failure == HttpResponse::Failure::kTooLarge) {
      return {Kind::kFailed,
              ResourceExhausted("{}: a page of over {} bytes (max_page_bytes)",
                                Describe(), remote_.config().max_page_bytes)};
    }
    if (response.failure != HttpResponse::Failure::kNone ||
        response.status != 200) {
      return Explain(response, target_.AskedFor("cannot list it"),
                     remote_.WallNow());
    }
    *body_ = response.body;
    return {};
  }
  bool Refresh() override { return target_.account->Refresh(); }

 private:
  const Remote& remote_;
  const Target& target_;
  std::string* const body_;
};

absl::StatusOr<Page> ParsePage(std::string_view body, std::string_view uri) {
  Page page;
  bool is_listing = false, escaped = false, good = true;
  std::string key, etag;
  uint64_t size = 0;
  const auto each = [&](const std::string& path, const std::string& text) {
    if (!path.starts_with(kRoot)) return;
    const std::string_view below = std::string_view(path).substr(kRoot.size());
    if (below.empty()) is_listing = true;
    if (below == "/EncodingType") escaped = text == "url";
    if (below == "/IsTruncated") page.truncated = text == "true";
    if (below == "/NextContinuationToken") page.next = text;
    if (below == "/Contents/Key") key = text;
    if (below == "/Contents/ETag") etag = text;
    if (below == "/Contents/Size") {
      const auto [end, error] =
          std::from_chars(text.data(), text.data() + text.size(), size);
      good = good && error == std::errc() && end == text.data() + text.size();
    }
    if (below != "/Contents") return;
    good = good && !key.empty();
    page.objects.push_back(
        {std::exchange(key, ""), size, HttpIdentity(size, etag, "").Text()});
    etag.clear();
    size = 0;
  };
  const absl::Status status = ForEachElement(body, each);
  if (!status.ok()) {
    return Annotate(status, fmt::format("{}: its listing is malformed", uri));
  }
  if (!is_listing || !good || (page.truncated && page.next.empty())) {
    return DataLoss(
        "{}: its listing is malformed: want a {} with keys, sizes "
        "and, if there is more, a NextContinuationToken",
        uri, kRoot);
  }
  // EncodingType comes before or after the keys.
  if (escaped) {
    for (StoredObject& each_object : page.objects) {
      each_object.name = PercentDecode(each_object.name, true);
    }
  }
  return page;
}

// Takes the objects below `prefix`; keys that end with a slash stand for
// directories.
absl::Status Add(Page page, std::string_view prefix, std::string_view uri,
                 uint64_t max_entries, std::vector<StoredObject>* out) {
  for (StoredObject& object : page.objects) {
    if (!object.name.starts_with(prefix)) {
      return DataLoss("{}: its listing has the key '{}', want a prefix '{}'",
                      uri, object.name.substr(0, 200), prefix);
    }
    object.name.erase(0, prefix.size());
    if (object.name.empty() || object.name.ends_with('/')) continue;
    if (out->size() >= max_entries) {
      return ResourceExhausted("{}: over {} keys (max_list_entries)", uri,
                               max_entries);
    }
    out->push_back(std::move(object));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<StoredObject>> ListBucket(
    Remote& remote, const StorageUri& uri,
    const std::shared_ptr<S3Account>& account,
    const std::atomic<bool>* cancelled) {
  std::string prefix = uri.path;
  while (prefix.ends_with('/')) prefix.pop_back();
  if (!prefix.empty()) prefix += '/';
  Target target = {.name = uri.name,
                   .url = account->BucketUrl(uri.bucket),
                   .account = account};
  std::vector<StoredObject> out;
  std::set<std::string> tokens;
  int empty_pages = 0;
  for (std::string token;;) {
    if (cancelled != nullptr && *cancelled) {
      return Cancelled("listing of {}: cancelled", uri.name);
    }
    target.query = {{"list-type", "2"},
                    {"encoding-type", "url"},
                    {"max-keys", "1000"},
                    {"prefix", prefix}};
    if (!token.empty()) target.query.emplace_back("continuation-token", token);
    std::string body;
    const Verdict verdict =
        remote.Run(std::make_unique<PageTask>(remote, target, &body));
    if (verdict.kind != Kind::kDone) return verdict.status;
    ASSIGN_OR_RETURN(Page page, ParsePage(body, uri.name));
    empty_pages = page.objects.empty() ? empty_pages + 1 : 0;
    token = page.next;
    const bool more = page.truncated;
    RETURN_IF_ERROR(Add(std::move(page), prefix, uri.name,
                        remote.config().max_list_entries, &out));
    if (!more) break;
    if (!tokens.insert(token).second || empty_pages >= kMaxEmptyPages) {
      return DataLoss("{}: its listing does not go on: after {} keys {}",
                      uri.name, out.size(),
                      empty_pages >= kMaxEmptyPages ? "only empty pages came"
                                                    : "a token came again");
    }
  }
  if (out.empty()) {
    return NotFound("{}: no keys below '{}' in bucket {}", uri.name, prefix,
                    uri.bucket);
  }
  std::sort(out.begin(), out.end(),
            [](const StoredObject& a, const StoredObject& b) {
              return a.name < b.name;
            });
  return out;
}

}  // namespace leat::worker
