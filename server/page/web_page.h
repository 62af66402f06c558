// SPDX-License-Identifier: Apache-2.0
//
// WebPage: the coordinator's pages for browsers.
//
//   /                  the page; without a session, the form to sign in
//   /assets/HASH/NAME  its scripts and styles, for everybody
//   /api/state         what it shows, as JSON
//   /api/history       what a job's consumers did: ?job=NAME&minutes=N
//   /api/worker        all that is known of one worker: ?name=NAME
//   /api/sheet         rows that a training of the job got last, as small
//                      pictures: ?job=NAME; for callers of WorkerService/Rows
//   /live              server-sent events: `happened` (v1.WatchEventsResponse,
//                      with an id to go on from) and `state` (as /api/state)
//   /sign-in, /sign-out  POST
//
// All its URLs are relative, so that it may be served under any prefix. The
// data is for callers that may call AdminService/GetStatus, by a token or a
// session. Whatever the number of viewers, the data is computed at most once a
// second.
//
// Thread-compatible: the handler of one server.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/clock.h"
#include "rpc/access/access.h"
#include "rpc/http/message.h"
#include "server/coordinator/coordinator.h"
#include "server/page/model.h"
#include "server/page/sessions.h"
#include "server/relays/sheet_relay.h"
#include "server/views/status_view.h"

namespace leat::server {

class WebPage {
 public:
  static constexpr Duration kStateAge = std::chrono::seconds(1);
  // Time between two states sent to a viewer.
  static constexpr Duration kLiveEvery = std::chrono::seconds(2);
  // A new viewer receives this many events.
  static constexpr uint64_t kFirstEvents = 200;

  // All pointers outlive it.
  WebPage(Coordinator* coordinator, const StatusView* view, SheetRelay* sheets,
          const rpc::Access* access, const Clock* clock)
      : coordinator_(coordinator),
        view_(view),
        sheets_(sheets),
        access_(access),
        clock_(clock) {}

  rpc::HttpResponse Answer(const rpc::HttpRequest& request);

 private:
  // Returns the request's token, or that of its session.
  std::string TokenOf(const rpc::HttpRequest& request);
  absl::Status Admit(std::string_view token) const;
  rpc::HttpResponse Document(const rpc::HttpRequest& request);
  rpc::HttpResponse SignIn(const rpc::HttpRequest& request);
  rpc::HttpResponse SignOut(const rpc::HttpRequest& request);
  rpc::HttpResponse Data(const rpc::HttpRequest& request);
  absl::StatusOr<std::string> History(std::string_view query) const;
  absl::StatusOr<std::string> Worker(std::string_view query) const;
  absl::StatusOr<std::string> Sheet(std::string_view query,
                                    std::string_view token) const;
  rpc::HttpResponse Live(const rpc::HttpRequest& request, std::string token);
  // Returns the next text of a live answer; `after` becomes the last event
  // sent.
  std::string NewEvents(uint64_t* after) const;
  // Returns the last events, where a new viewer begins.
  EventPage LastEvents() const;
  void Refresh();

  Coordinator* const coordinator_;
  const StatusView* const view_;
  SheetRelay* const sheets_;
  const rpc::Access* const access_;
  const Clock* const clock_;
  PageSessions sessions_;
  std::shared_ptr<const PageModel> model_;  // null: none was made
  // Encodings of the model: as JSON, and as an event of /live.
  std::shared_ptr<const std::string> json_, event_;
  MonotonicTime made_at_{};
};

}  // namespace leat::server
