// SPDX-License-Identifier: Apache-2.0
#include "client/cli/base/http_call.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "core/freed.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr absl::Duration kConnectTime = absl::Seconds(5);
constexpr absl::Duration kMostRetryAfter = absl::Hours(1);

using HeaderList = std::unique_ptr<curl_slist, Freed<curl_slist_free_all>>;

// Stores the body while there is room.
struct Receiver {
  HttpReply reply;
  bool too_large = false;

  static size_t OnBody(char* data, size_t size, size_t count, void* self) {
    auto& to = *static_cast<Receiver*>(self);
    const size_t bytes = size * count;
    to.too_large |= bytes > kMaxHttpBody - to.reply.body.size();
    if (to.too_large) return 0;
    to.reply.body.append(data, bytes);
    return bytes;
  }
};

absl::Status StatusOf(CURLcode code, std::string_view text,
                      std::string_view url) {
  const auto with = [&](absl::StatusCode as) {
    return MakeStatus(as, "{}: {}", url, text);
  };
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return with(absl::StatusCode::kDeadlineExceeded);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return with(absl::StatusCode::kInvalidArgument);
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
      return with(absl::StatusCode::kFailedPrecondition);
    default:
      return with(absl::StatusCode::kUnavailable);
  }
}

HeaderList MakeList(const std::vector<std::string>& headers) {
  HeaderList list;
  for (const std::string& header : headers) {
    curl_slist* const longer = curl_slist_append(list.get(), header.c_str());
    if (longer == nullptr) return nullptr;
    (void)list.release();
    list.reset(longer);
  }
  return list;
}

long Milliseconds(absl::Duration time) {
  return static_cast<long>(
      std::max<int64_t>(1, absl::ToInt64Milliseconds(time)));
}

void SetTls(CURL* easy, const HttpCall& call) {
  // The bytes outlive the transfer, so they are not copied.
  const auto blob = [easy](CURLoption option, const std::string& pem) {
    if (pem.empty()) return;
    curl_blob bytes{const_cast<char*>(pem.data()), pem.size(),
                    CURL_BLOB_NOCOPY};
    curl_easy_setopt(easy, option, &bytes);
  };
  blob(CURLOPT_CAINFO_BLOB, call.ca);
  blob(CURLOPT_SSLCERT_BLOB, call.cert);
  blob(CURLOPT_SSLKEY_BLOB, call.key);
  curl_easy_setopt(easy, CURLOPT_SSLVERSION,
                   static_cast<long>(CURL_SSLVERSION_TLSv1_2));
}

}  // namespace

absl::StatusOr<HttpReply> CallHttp(const HttpCall& call) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  const std::unique_ptr<CURL, Freed<curl_easy_cleanup>> owner(
      started == CURLE_OK ? curl_easy_init() : nullptr);
  CURL* const easy = owner.get();
  std::vector<std::string> headers = call.headers;
  headers.emplace_back("Expect:");  // a body is sent at once
  const HeaderList list = MakeList(headers);
  if (easy == nullptr || list == nullptr)
    return ResourceExhausted("{}: no memory is left for a request", call.url);
  Receiver receiver;
  std::array<char, CURL_ERROR_SIZE> error = {};
  const auto set = [easy](CURLoption option, auto value) {
    curl_easy_setopt(easy, option, value);
  };
  set(CURLOPT_URL, call.url.c_str());
  set(CURLOPT_CUSTOMREQUEST, call.method.c_str());
  if (!call.body.empty()) {
    set(CURLOPT_POSTFIELDS, call.body.c_str());
    set(CURLOPT_POSTFIELDSIZE, static_cast<long>(call.body.size()));
  }
  set(CURLOPT_HTTPHEADER, list.get());
  set(CURLOPT_ERRORBUFFER, error.data());
  set(CURLOPT_WRITEFUNCTION, &Receiver::OnBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&receiver));
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_CONNECTTIMEOUT_MS,
      Milliseconds(std::min(kConnectTime, call.limit)));
  set(CURLOPT_TIMEOUT_MS, Milliseconds(call.limit));
  SetTls(easy, call);
  const CURLcode code = curl_easy_perform(easy);
  if (receiver.too_large)
    return ResourceExhausted("{}: the answer has more than {} bytes", call.url,
                             kMaxHttpBody);
  if (code != CURLE_OK)
    return StatusOf(code,
                    error[0] != '\0' ? error.data() : curl_easy_strerror(code),
                    call.url);
  long status = 0;
  curl_off_t wait = 0;
  curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_getinfo(easy, CURLINFO_RETRY_AFTER, &wait);
  receiver.reply.status = static_cast<int>(status);
  receiver.reply.retry_after =
      std::clamp(absl::Seconds(static_cast<int64_t>(wait)),
                 absl::ZeroDuration(), kMostRetryAfter);
  return std::move(receiver.reply);
}

}  // namespace leat::cli
