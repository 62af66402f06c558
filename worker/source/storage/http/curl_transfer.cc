// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/http/curl_transfer.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/status.h"

namespace leat::worker {
namespace {

constexpr size_t kMaxHeaderBytes = 4096;
constexpr long kMaxRedirects = 5;
constexpr long kReceiveBufferBytes = 256 << 10;

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() &&
         std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? x + 32 : x) == y;
         });
}

std::string_view WithoutSpace(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return "";
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

HttpResponse::Failure FailureOf(CURLcode code, int status) {
  switch (code) {
    case CURLE_OK:
      return HttpResponse::Failure::kNone;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpResponse::Failure::kTimeout;
    case CURLE_UNSUPPORTED_PROTOCOL:
      // Without a status the response was not HTTP; with one, it was a redirect
      // to another protocol.
      return status == 0 ? HttpResponse::Failure::kConnection
                         : HttpResponse::Failure::kFinal;
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_TOO_MANY_REDIRECTS:
    case CURLE_BAD_CONTENT_ENCODING:
      return HttpResponse::Failure::kFinal;
    default:
      return HttpResponse::Failure::kConnection;
  }
}

}  // namespace

CurlTransfer::CurlTransfer(HttpTransport::Id id, HttpRequest request,
                           HttpTransport::Done done)
    : id_(id), request_(std::move(request)), done_(std::move(done)) {}

CURL* CurlTransfer::Prepare(const StorageConfig& config,
                            const AllowedReads& allowed) {
  allowed_ = &allowed;
  easy_.reset(curl_easy_init());
  if (easy_ == nullptr) return nullptr;
  for (const std::string& header : request_.headers) {
    curl_slist* const longer =
        curl_slist_append(headers_.get(), header.c_str());
    if (longer == nullptr) return nullptr;
    (void)headers_.release();  // NOLINT(bugprone-unused-return-value): `longer`
                               // begins with it
    headers_.reset(longer);
  }
  SetOptions(config);
  Hear(1);
  return easy_.get();
}

void CurlTransfer::SetOptions(const StorageConfig& config) {
  CURL* const easy = easy_.get();
  const auto set = [easy](CURLoption option, auto value) {
    curl_easy_setopt(easy, option, value);
  };
  set(CURLOPT_URL, request_.url.c_str());
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_HTTPHEADER, headers_.get());
  set(CURLOPT_HEADERFUNCTION, &OnHeader);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy's, not the server's
  set(CURLOPT_WRITEFUNCTION, &OnBody);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  if (!request_.trusted_host) {
    set(CURLOPT_OPENSOCKETFUNCTION, &OnSocket);
    set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
    set(CURLOPT_PREREQFUNCTION, &OnRequest);
    set(CURLOPT_PREREQDATA, static_cast<void*>(this));
  }
  set(CURLOPT_NOBODY, request_.head ? 1L : 0L);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR,
      request_.url.starts_with("https") ? "https" : "http,https");
  set(CURLOPT_FOLLOWLOCATION, request_.follow_redirects ? 1L : 0L);
  set(CURLOPT_MAXREDIRS, kMaxRedirects);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_BUFFERSIZE, kReceiveBufferBytes);
  set(CURLOPT_USERAGENT, "leat");
  set(CURLOPT_CONNECTTIMEOUT_MS,
      static_cast<long>(config.connect_timeout.count()));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(config.request_timeout.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME,
      std::max(1L, static_cast<long>(config.stall_timeout.count() / 1000)));
  if (!config.ca_bundle.empty()) {
    set(CURLOPT_CAINFO, config.ca_bundle.c_str());
  }
  if (request_.first.has_value() && !request_.into.empty()) {
    set(CURLOPT_RANGE, fmt::format("{}-{}", *request_.first,
                                   *request_.first + request_.into.size() - 1)
                           .c_str());
  }
}

HttpResponse CurlTransfer::Finish(CURLcode code) {
  if (code != CURLE_OK && !refusal_.empty()) {
    response_.failure = HttpResponse::Failure::kRefused;
    response_.failure_text = refusal_;
  }
  if (response_.failure == HttpResponse::Failure::kNone) {
    response_.failure = FailureOf(code, response_.status);
    if (code != CURLE_OK) {
      response_.failure_text =
          error_[0] != '\0' ? error_.data() : curl_easy_strerror(code);
    }
  }
  // An incomplete head has no meaning.
  if (response_.failure != HttpResponse::Failure::kNone && !head_ended_)
    return {.failure = response_.failure,
            .failure_text = std::move(response_.failure_text)};
  return std::move(response_);
}

size_t CurlTransfer::OnHeader(char* data, size_t size, size_t count,
                              void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  transfer.TakeHeader({data, size * count});
  // A head that arrives in pieces is not an answer before it is complete.
  if (transfer.head_ended_) transfer.Hear(size * count);
  return size * count;
}

// Called when a connection is made. One of several addresses may be refused,
// and another one accepted.
curl_socket_t CurlTransfer::OnSocket(void* self, curlsocktype purpose,
                                     curl_sockaddr* address) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (purpose != CURLSOCKTYPE_IPCXN || !transfer.MayAsk())
    return CURL_SOCKET_BAD;
  sockaddr_storage name{};
  std::memcpy(&name, &address->addr,
              std::min<size_t>(address->addrlen, sizeof name));
  if (const absl::Status status =
          transfer.allowed_->CheckAddress(name, transfer.request_.url);
      !status.ok()) {
    transfer.Refuse(status);
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC,
                address->protocol);
}

// Called for a request on any connection, also on one that another transfer has
// made.
int CurlTransfer::OnRequest(void* self, char* ip, char*, int port, int) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  if (!transfer.MayAsk()) return CURL_PREREQFUNC_ABORT;
  const absl::Status status =
      transfer.allowed_->CheckAddress(ip, port, transfer.request_.url);
  if (status.ok()) return CURL_PREREQFUNC_OK;
  transfer.Refuse(status);
  return CURL_PREREQFUNC_ABORT;
}

bool CurlTransfer::MayAsk() {
  if (!request_.follow_redirects) return true;
  char* url = nullptr;
  curl_easy_getinfo(easy_.get(), CURLINFO_EFFECTIVE_URL, &url);
  const absl::Status status =
      allowed_->CheckUrl(url == nullptr ? "" : url, request_.url);
  if (!status.ok()) Refuse(status);
  return status.ok();
}

void CurlTransfer::Refuse(const absl::Status& why) {
  if (refusal_.empty()) refusal_ = std::string(Message(why));
}

size_t CurlTransfer::OnBody(char* data, size_t size, size_t count, void* self) {
  auto& transfer = *static_cast<CurlTransfer*>(self);
  transfer.Hear(size * count);
  return transfer.TakeBody({data, size * count}) ? size * count : 0;
}

void CurlTransfer::Hear(uint64_t bytes) {
  if (request_.heard != nullptr) *request_.heard += bytes;
}

void CurlTransfer::TakeHeader(std::string_view line) {
  if (line.size() > kMaxHeaderBytes) return;
  if (WithoutSpace(line).empty()) head_ended_ = true;
  if (line.starts_with("HTTP/")) {
    // The head of a redirect's target, or the answer after "100 Continue": the
    // previous head is forgotten.
    response_ = HttpResponse{};
    head_ended_ = false;
    const size_t space = std::min(line.find(' '), line.size() - 1);
    std::from_chars(line.data() + space + 1, line.data() + line.size(),
                    response_.status);
    return;
  }
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = WithoutSpace(line.substr(colon + 1));
  const auto take = [&](std::string_view wanted, std::string* out) {
    if (EqualsIgnoringCase(name, wanted)) *out = std::string(value);
  };
  take("etag", &response_.etag);
  take("last-modified", &response_.last_modified);
  take("content-range", &response_.content_range);
  take("retry-after", &response_.retry_after);
  take("x-amz-bucket-region", &response_.bucket_region);
  take("date", &response_.date);
  if (EqualsIgnoringCase(name, "content-length")) {
    uint64_t length = 0;
    const auto [end, error] =
        std::from_chars(value.data(), value.data() + value.size(), length);
    if (error == std::errc() && end == value.data() + value.size()) {
      response_.content_length = length;
    }
  }
}

bool CurlTransfer::TakeBody(std::string_view bytes) {
  const bool whole = response_.status == 200;
  const auto too_large = [this] {
    response_.failure = HttpResponse::Failure::kTooLarge;
    response_.failure_text = "more bytes than were asked for";
    return false;
  };
  if (request_.first.has_value() && (whole || response_.status == 206)) {
    if (whole && *request_.first != 0) return too_large();
    if (bytes.size() > request_.into.size() - response_.received) {
      return too_large();
    }
    std::memcpy(request_.into.data() + response_.received, bytes.data(),
                bytes.size());
    response_.received += bytes.size();
    return true;
  }
  const uint64_t room = request_.max_body - response_.body.size();
  if (bytes.size() > room && whole) return too_large();
  response_.body += bytes.substr(0, room);
  return true;
}

}  // namespace leat::worker
