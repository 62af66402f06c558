// SPDX-License-Identifier: Apache-2.0
//
// Texts by which jobs and indexes name files: URIs, and identities, which are
// unchanged when they are written again.
#include "core/redaction.h"
#include "core/shapes/field_type.h"
#include "tests/fuzz/target.h"
#include "worker/source/storage/base/identity.h"
#include "worker/source/storage/base/uri.h"
#include "worker/source/storage/storage.h"

namespace leat::worker::uri_fuzz {
namespace {

void Run(std::string_view bytes) {
  const std::string text(bytes);
  const auto uri = ParseUri(text);
  if (uri.ok()) {
    (void)IsLocalUri(text);
    (void)ParseUri(JoinUri(text, "a b/c"));
    const size_t user = uri->name.find("//");
    if (uri->scheme == UriScheme::kHttp && user != std::string::npos)
      fuzz::Require(uri->name.find('?') == std::string::npos);
  }
  (void)RedactedUri(text);
  (void)PercentDecode(text, true);
  fuzz::Require(PercentDecode(PercentEncode(text)) == text);
  const auto identity = ParseIdentity(text, "u");
  if (identity.ok()) {
    const auto again = ParseIdentity(identity->Text(), "u");
    fuzz::Require(again.ok() && *again == *identity);
  }
  (void)HttpIdentity(text.size(), text, text);
  (void)ParseFieldType(text);
}

std::vector<std::string> Seeds() {
  return {"s3://bucket/a b?c%20",
          "gs://b/k/",
          "https://user:word@host:8443/a%20b?sign=ature#x",
          "http://[::1]:80/x",
          "file:///a%2Fb",
          "/a/b",
          "size=10 mtime_ns=1700000000123456789",
          "size=10 etag=\"d41d8\"",
          "size=10 modified=\"Tue, 15 Nov 1994 08:12:31 GMT\"",
          "W/\"weak\"",
          "int64[?,2]",
          "encoded"};
}

const fuzz::Target kTarget(
    {.name = "uri", .run = Run, .seeds = Seeds, .runs = 5000});

}  // namespace
}  // namespace leat::worker::uri_fuzz
