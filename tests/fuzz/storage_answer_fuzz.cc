// SPDX-License-Identifier: Apache-2.0
//
// Answers of a server: to listings, to requests about an object, and for ranges
// of it. They arrive at once, and waits take no time. The first byte selects
// the request; then one answer follows another. XML is also parsed alone.
#include <chrono>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "core/status.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "worker/source/storage/base/clock.h"
#include "worker/source/storage/remote/range_task.h"
#include "worker/source/storage/remote/remote.h"
#include "worker/source/storage/s3/xml.h"

namespace leat::worker::storage_answer_fuzz {
namespace {

using fuzz::Input;
using fuzz::PutByte;
using fuzz::PutNumber;
using fuzz::PutText;

constexpr int kMaxAnswers = 50;
constexpr int kStatuses[] = {200, 206, 301, 304, 400, 403, 404,
                             412, 416, 429, 500, 503, 0};

struct Answer {
  HttpResponse response;
  std::string payload;  // for requests of a range
};

Answer NextAnswer(Input* input) {
  Answer answer;
  HttpResponse& response = answer.response;
  response.status = kStatuses[input->Byte() % std::size(kStatuses)];
  response.failure = static_cast<HttpResponse::Failure>(
      std::max(0, input->Byte() - 251));  // almost always none
  for (std::string* each :
       {&response.etag, &response.last_modified, &response.content_range,
        &response.retry_after, &response.bucket_region, &response.date})
    *each = input->Text();
  const auto length = input->Number<uint64_t>();
  if (length != UINT64_MAX) response.content_length = length;
  answer.payload = input->Text();
  response.body = answer.payload;
  return answer;
}

std::string AnswerText(int status, std::string_view etag,
                       std::string_view content_range, std::string_view body,
                       std::string_view retry_after = "") {
  const auto at = std::find(std::begin(kStatuses), std::end(kStatuses), status);
  return PutByte(static_cast<int>(at - std::begin(kStatuses))) + PutByte(0) +
         PutText(etag) + PutText("") + PutText(content_range) +
         PutText(retry_after) + PutText("eu-test-1") +
         PutText("Sat, 01 Jan 2000 00:00:00 GMT") +
         PutNumber(uint64_t{body.size()}) + PutText(body);
}

// The network and the clock.
class World : public HttpTransport, public StorageClock {
 public:
  explicit World(Input* input) : input_(input) {}

  Id Begin(HttpRequest request, Done done) override {
    fuzz::Require(!request.url.empty());
    Answer answer;
    if (!input_->empty() && begun_++ < kMaxAnswers)
      answer = NextAnswer(input_);
    else
      answer.response.status = 404;
    HttpResponse& response = answer.response;
    // As the real one: at most the bytes for which there is room.
    if (request.first && (response.status == 206 ||
                          (response.status == 200 && *request.first == 0))) {
      response.body.clear();
      if (answer.payload.size() > request.into.size())
        response.failure = HttpResponse::Failure::kTooLarge;
      response.received = std::min(answer.payload.size(), request.into.size());
      std::copy_n(reinterpret_cast<const std::byte*>(answer.payload.data()),
                  response.received, request.into.data());
    } else if (response.body.size() > request.max_body) {
      if (response.status == 200)
        response.failure = HttpResponse::Failure::kTooLarge;
      response.body.resize(request.max_body);
    }
    waiting_.push_back({++last_id_, std::move(response), std::move(done)});
    return last_id_;
  }
  void Cancel(Id id) override {
    std::erase_if(waiting_, [id](const Due& each) { return each.id == id; });
  }
  bool Saturated() const override { return false; }
  MonotonicTime Now() const override { return now_; }
  WallTime WallNow() const override { return WallTime(); }
  void WaitUntil(Mutex* mu, CondVar* /*changed*/, MonotonicTime deadline)
      override ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (waiting_.empty()) {
      now_ = std::max(now_, deadline);
      return;
    }
    Due due = std::move(waiting_.front());
    waiting_.pop_front();
    mu->Unlock();
    due.done(std::move(due.response));
    mu->Lock();
  }

 private:
  struct Due {
    Id id;
    HttpResponse response;
    Done done;
  };
  Input* const input_;
  MonotonicTime now_{std::chrono::hours(1)};
  std::deque<Due> waiting_;
  Id last_id_ = 0;
  int begun_ = 0;
};

// Forwards to a transport that outlives the owner of this one.
class Line : public HttpTransport {
 public:
  explicit Line(HttpTransport* to) : to_(to) {}
  Id Begin(HttpRequest request, Done done) override {
    return to_->Begin(std::move(request), std::move(done));
  }
  void Cancel(Id id) override { to_->Cancel(id); }
  bool Saturated() const override { return to_->Saturated(); }

 private:
  HttpTransport* const to_;
};

const StorageConfig kConfig = {.parallel_ranges = 2,
                               .range_bytes = 64,
                               .coalesce_gap_bytes = 8,
                               .max_tries = 4,
                               .max_list_entries = 100,
                               .max_page_bytes = 32 << 10,
                               .s3_endpoint = "http://127.0.0.1:1",
                               .anonymous = true};

std::shared_ptr<S3Account> Account() {
  static const auto& account = *new std::shared_ptr<S3Account>(
      S3Account::Create(UriScheme::kS3, kConfig,
                        [](const char*) -> const char* { return nullptr; })
          .value());
  return account;
}

void List(Remote& remote) {
  const auto objects =
      ListBucket(remote, ParseUri("s3://bucket/d").value(), Account(), nullptr);
  if (!objects.ok()) return fuzz::Require(!Message(objects.status()).empty());
  fuzz::Require(!objects->empty() &&
                objects->size() <= kConfig.max_list_entries);
  for (const StoredObject& object : *objects)
    fuzz::Require(!object.name.empty() &&
                  ParseIdentity(object.identity, object.name).ok());
}

void Read(const std::shared_ptr<Remote>& remote, std::string_view uri_text) {
  const StorageUri uri = ParseUri(uri_text).value();
  Target target =
      ObjectTarget(uri, uri.scheme == UriScheme::kS3 ? Account() : nullptr);
  const auto identity = ProbeObject(*remote, target);
  if (!identity.ok()) return;
  fuzz::Require(ParseIdentity(identity->Text(), "").ok());
  const auto file =
      OpenRemoteFile(remote, std::move(target), *identity, nullptr);
  std::vector<std::byte> memory(std::min<uint64_t>(file->size(), 200));
  const std::span<std::byte> bytes(memory);
  (void)file->ReadAt(0, bytes);
  (void)file->ReadAt(file->size() - bytes.size(), bytes);
  const size_t part = bytes.size() / 4;
  const ReadRange ranges[] = {{1, bytes.first(part)},
                              {part + 3, bytes.subspan(part, part)},
                              {0, bytes.last(part)}};
  (void)file->ReadRanges(ranges);
}

void Run(std::string_view bytes) {
  Input input(bytes);
  const int asked = input.Byte() % 4;
  if (asked == 3) {
    (void)ForEachElement(input.Rest(),
                         [](const std::string& path, const std::string&) {
                           fuzz::Require(!path.empty());
                         });
    return;
  }
  World world(&input);
  const auto remote = std::make_shared<Remote>(
      kConfig, std::make_unique<Line>(&world), &world, [] { return 7; });
  if (asked == 0) List(*remote);
  if (asked == 1) Read(remote, "s3://bucket/key");
  if (asked == 2) Read(remote, "http://127.0.0.1/x");
}

std::string PageOf(std::string_view key, bool more) {
  return fmt::format(
      "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url"
      "</EncodingType><IsTruncated>{}</IsTruncated><NextContinuationToken>t"
      "</NextContinuationToken><Contents><Key>d/{}</Key><Size>7</Size>"
      "<ETag>&quot;e&quot;</ETag></Contents></ListBucketResult>",
      more, key);
}

std::vector<std::string> Seeds() {
  const std::string body(100, 'b');
  const std::string head = AnswerText(200, "\"e\"", "", body);
  const std::string first =
      AnswerText(206, "\"e\"", "bytes 0-63/100", body.substr(0, 64));
  const std::string second =
      AnswerText(206, "\"e\"", "bytes 64-99/100", body.substr(0, 36));
  const std::string error =
      "<Error><Code>SlowDown</Code><Message>m</Message></Error>";
  return {
      PutByte(0) + AnswerText(200, "", "", PageOf("a%20b", true)) +
          AnswerText(200, "", "", PageOf("c", false)),
      PutByte(0) + AnswerText(503, "", "", error, "1") +
          AnswerText(403, "", "",
                     "<Error><Code>ExpiredToken</Code><Region>eu-test-1"
                     "</Region></Error>"),
      PutByte(1) + head + first + second + first + second + first + second,
      PutByte(1) + head + AnswerText(206, "\"other\"", "bytes 0-63/100", body),
      PutByte(2) + head +
          AnswerText(206, "\"e\"", "bytes 0-63/100", body.substr(0, 9)) +
          AnswerText(416, "", "bytes */10", ""),
      PutByte(2) + AnswerText(200, "W/\"weak\"", "", body) + head,
      PutByte(3) + PageOf("&#x41;<![CDATA[x]]>", false) + "<!-- -->"};
}

const fuzz::Target kTarget(
    {.name = "storage_answer", .run = Run, .seeds = Seeds, .runs = 2000});

}  // namespace
}  // namespace leat::worker::storage_answer_fuzz
