// SPDX-License-Identifier: Apache-2.0
#include "server/page/web_page.h"

#include <charconv>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/html.h"
#include "core/log.h"
#include "core/status.h"
#include "rpc/http/status_pages.h"
#include "server/page/assets.h"
#include "server/page/data_json.h"
#include "server/page/tables.h"
#include "server/views/messages.h"

namespace leat::server {
namespace {

using rpc::HttpRequest;
using rpc::HttpResponse;

constexpr std::string_view kAssets = "/assets/";
constexpr std::string_view kCookie = "leat_session";
constexpr size_t kMaxName = 1024;

// Only our own files run or are loaded, and no frame may show this page.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'";

HttpResponse With(std::string body, std::string_view type) {
  HttpResponse response;
  response.type = type;
  response.body = std::make_shared<const std::string>(std::move(body));
  response.fields = {{"Content-Security-Policy", kPolicy},
                     {"Referrer-Policy", "no-referrer"},
                     {"Cross-Origin-Opener-Policy", "same-origin"},
                     {"Cross-Origin-Resource-Policy", "same-origin"}};
  return response;
}

void Replace(std::string_view what, std::string_view by, std::string* text) {
  for (size_t at = text->find(what); at != std::string::npos;
       at = text->find(what, at + by.size()))
    text->replace(at, what.size(), by);
}

// Returns one of our HTML files, with the assets' folder filled in.
std::string Template(std::string_view name) {
  const PageAsset* const asset = FindPageAsset(name);
  std::string text(asset == nullptr ? "" : asset->bytes);
  Replace("{{assets}}", "assets/" + PageAssetsHash(), &text);
  return text;
}

HttpResponse SignInForm(std::string_view message) {
  std::string text = Template("sign_in.html");
  Replace("{{message}}", EscapeHtml(message), &text);
  HttpResponse response = With(std::move(text), "text/html; charset=utf-8");
  response.status = 401;
  return response;
}

HttpResponse Asset(std::string_view path) {
  path.remove_prefix(kAssets.size());
  const std::string hash = PageAssetsHash() + "/";
  const PageAsset* const asset = path.starts_with(hash)
                                     ? FindPageAsset(path.substr(hash.size()))
                                     : nullptr;
  if (asset == nullptr || asset->name.ends_with(".html"))
    return HttpResponse::Text(404, "no such file; load the page again\n");
  HttpResponse response = With(std::string(asset->bytes), asset->type);
  response.fields.emplace_back("Cache-Control",
                               "public, max-age=31536000, immutable");
  return response;
}

// Redirects to the page, whatever its prefix.
HttpResponse BackWith(std::string cookie) {
  HttpResponse response = With("", "text/plain; charset=utf-8");
  response.status = 303;
  response.fields.emplace_back("Location", "./");
  response.fields.emplace_back("Set-Cookie", std::move(cookie));
  return response;
}

std::string CookieOf(const HttpRequest& request, std::string_view value) {
  return fmt::format("{}={}; HttpOnly; SameSite=Strict{}{}", kCookie, value,
                     request.is_tls ? "; Secure" : "",
                     value.empty() ? "; Max-Age=0" : "");
}

// Returns the number of the request's session; empty: it has none, or a token
// of its own.
std::string_view SessionOf(const HttpRequest& request) {
  if (!request.token.empty()) return {};
  return rpc::CookieIn(request.cookie, kCookie);
}

std::optional<uint64_t> NumberIn(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || text.empty()) return std::nullopt;
  return number;
}

}  // namespace

HttpResponse WebPage::Answer(const HttpRequest& request) {
  const std::string_view path = request.path;
  if (request.is_post) {
    if (!request.is_own_origin)
      return HttpResponse::Text(403, "a page of another site sent this\n");
    if (path == "/sign-in") return SignIn(request);
    if (path == "/sign-out") return SignOut(request);
    return HttpResponse::Text(405, "want GET or HEAD\n");
  }
  if (path == "/") return Document(request);
  if (path.starts_with(kAssets)) return Asset(path);
  if (path == "/live" || path == "/api/state" || path == "/api/history" ||
      path == "/api/worker" || path == "/api/sheet")
    return Data(request);
  return HttpResponse::Text(
      404, "want /, /api/state, /live, /livez, /readyz or /metrics\n");
}

std::string WebPage::TokenOf(const HttpRequest& request) {
  if (!request.token.empty()) return std::string(request.token);
  return sessions_.TokenOf(SessionOf(request), clock_->Now());
}

absl::Status WebPage::Admit(std::string_view token) const {
  return access_->AdmitToken(rpc::kMetricsRule, token).status();
}

HttpResponse WebPage::Document(const HttpRequest& request) {
  const absl::Status admitted = Admit(TokenOf(request));
  if (absl::IsUnauthenticated(admitted)) return SignInForm("");
  if (!admitted.ok()) return rpc::Refusal(admitted);
  Refresh();
  std::string text = Template("index.html");
  // The tables are inserted last, so that nothing in them is replaced.
  Replace("{{signed_in}}",
          request.cookie.find(kCookie) == std::string::npos ? "no" : "yes",
          &text);
  const size_t at = text.find("{{tables}}");
  if (at != std::string::npos)
    text.replace(at, sizeof("{{tables}}") - 1, TablesOf(*model_, LastEvents()));
  return With(std::move(text), "text/html; charset=utf-8");
}

HttpResponse WebPage::SignIn(const HttpRequest& request) {
  const absl::StatusOr<std::string> token =
      TokenIn("token", rpc::FormValue(request.body, "token"), 1);
  if (!token.ok()) return SignInForm("This is no access token.");
  if (const absl::Status admitted = Admit(*token); !admitted.ok())
    return SignInForm(Message(admitted));
  const absl::StatusOr<std::string> session =
      sessions_.Open(*token, clock_->Now());
  if (!session.ok()) return rpc::Refusal(session.status());
  return BackWith(CookieOf(request, *session));
}

HttpResponse WebPage::SignOut(const HttpRequest& request) {
  sessions_.Close(rpc::CookieIn(request.cookie, kCookie));
  return BackWith(CookieOf(request, ""));
}

HttpResponse WebPage::Data(const HttpRequest& request) {
  if (!request.is_own_origin)
    return HttpResponse::Text(403, "a page of another site asks for this\n");
  std::string token = TokenOf(request);
  if (const absl::Status admitted = Admit(token); !admitted.ok())
    return rpc::Refusal(admitted);
  if (request.path == "/live") return Live(request, std::move(token));
  if (request.path == "/api/state") {
    Refresh();
    HttpResponse response = With("", "application/json");
    response.body = json_;
    return response;
  }
  const absl::StatusOr<std::string> json =
      request.path == "/api/history" ? History(request.query)
      : request.path == "/api/sheet" ? Sheet(request.query, token)
                                     : Worker(request.query);
  if (!json.ok()) return rpc::Refusal(json.status());
  return With(*json, "application/json");
}

// A caller that may pull a job's rows may see some of them here.
absl::StatusOr<std::string> WebPage::Sheet(std::string_view query,
                                           std::string_view token) const {
  RETURN_IF_ERROR(access_->AdmitToken("WorkerService/Rows", token).status());
  ASSIGN_OR_RETURN(const std::shared_ptr<const JobInfo> job,
                   coordinator_->GetJob(rpc::FormValue(query, "job")));
  const Digest& plan = job->plan_hash;
  const SheetRelay::Seen seen = sheets_->Look(BytesOf(plan), clock_->Now());
  return fmt::format("{{\"consumers\":{},\"sheet\":{}}}", seen.consumers,
                     seen.sheet == nullptr ? "null" : JsonOf(*seen.sheet));
}

absl::StatusOr<std::string> WebPage::History(std::string_view query) const {
  const std::string minutes = rpc::FormValue(query, "minutes");
  const std::optional<uint64_t> number = NumberIn(minutes);
  if (!number || *number < 1 || *number > 60)
    return InvalidArgument("minutes={}: want 1 to 60",
                           minutes.substr(0, kMaxName));
  ASSIGN_OR_RETURN(
      const JobHistory history,
      coordinator_->HistoryOf(rpc::FormValue(query, "job"),
                              std::chrono::minutes(*number), Now::Of(*clock_)));
  return JsonOf(history);
}

absl::StatusOr<std::string> WebPage::Worker(std::string_view query) const {
  const std::string name = rpc::FormValue(query, "name");
  if (name.empty() || name.size() > kMaxName)
    return InvalidArgument("name: want the name of a worker");
  // A page begins after a name, so the name just before this one is used.
  std::string before = name;
  before.pop_back();
  for (Page page{before, 1000};;) {
    const std::vector<WorkerView> views = coordinator_->Workers(page);
    for (const WorkerView& view : views) {
      if (view.registration->name == name) return JsonOf(ToProto(view));
      if (view.registration->name > name) break;
    }
    if (views.size() < page.limit || views.back().registration->name > name)
      return NotFound("no worker of this name");
    page.after = views.back().registration->name;
  }
}

HttpResponse WebPage::Live(const HttpRequest& request, std::string token) {
  // "INSTANCE-SEQUENCE": the numbers of another start are invalid. A browser
  // sends it in a header when it reconnects; a script that opens a new stream
  // puts it into the URL.
  const std::string told = request.last_event_id.empty()
                               ? rpc::FormValue(request.query, "after")
                               : std::string(request.last_event_id);
  const std::string_view id = told;
  const size_t dash = id.find('-');
  const std::optional<uint64_t> instance = NumberIn(id.substr(0, dash));
  std::optional<uint64_t> sequence;
  if (dash != std::string_view::npos) sequence = NumberIn(id.substr(dash + 1));
  const uint64_t last = LastEvents().sequence;
  uint64_t after = last - std::min(last, kFirstEvents);
  if (sequence && instance == coordinator_->events().instance())
    after = *sequence;
  HttpResponse response = With("", "text/event-stream");
  Refresh();
  response.body = std::make_shared<const std::string>(
      "retry: 2000\n\n" + NewEvents(&after) + *event_);
  response.every = kLiveEvery;
  response.more = [this, token = std::move(token),
                   session = std::string(SessionOf(request)), after,
                   ended =
                       false]() mutable -> std::shared_ptr<const std::string> {
    if (ended) return nullptr;
    if (!session.empty()) token = sessions_.TokenOf(session, clock_->Now());
    if (!Admit(token).ok()) {
      ended = true;
      return std::make_shared<const std::string>("event: denied\ndata: {}\n\n");
    }
    Refresh();
    std::string events = NewEvents(&after);
    if (events.empty()) return event_;
    return std::make_shared<const std::string>(std::move(events) + *event_);
  };
  return response;
}

std::string WebPage::NewEvents(uint64_t* after) const {
  absl::StatusOr<EventPage> page =
      coordinator_->events().Read({.after = *after}, /*watcher=*/0);
  if (!page.ok() || (page->events.empty() && page->missed == 0)) return "";
  *after = page->sequence;
  v1::WatchEventsResponse told = ToProto(*page);
  const uint64_t instance = coordinator_->events().instance();
  told.set_instance(instance);
  return fmt::format("event: happened\nid: {}-{}\ndata: {}\n\n", instance,
                     page->sequence, JsonOf(told));
}

EventPage WebPage::LastEvents() const {
  ClusterEvents& events = coordinator_->events();
  const absl::StatusOr<EventPage> end =
      events.Read({.after = std::numeric_limits<uint64_t>::max()}, 0);
  if (!end.ok()) return {};
  return events
      .Read({.after = end->sequence - std::min(end->sequence, kFirstEvents)}, 0)
      .value_or(EventPage{});
}

void WebPage::Refresh() {
  const MonotonicTime now = clock_->Now();
  if (model_ != nullptr && now < made_at_ + kStateAge) return;
  model_ = std::make_shared<const PageModel>(
      MakePageModel(*coordinator_, *view_, Now::Of(*clock_)));
  json_ = std::make_shared<const std::string>(JsonOf(*model_));
  event_ = std::make_shared<const std::string>(
      fmt::format("event: state\ndata: {}\n\n", *json_));
  made_at_ = now;
}

}  // namespace leat::server
