// SPDX-License-Identifier: Apache-2.0
#include "server/coordinator/parts/announcer.h"

#include <utility>

#include "core/log.h"

namespace leat::server {
namespace {

// Turns "worker/w0" into "worker=w0".
std::string LineOf(const Announcement& what) {
  std::string line = what.type;
  for (const std::string& subject : what.subjects) {
    const size_t slash = subject.find('/');
    line += fmt::format(" {}={}", subject.substr(0, slash),
                        subject.substr(slash + 1));
  }
  line += ' ';
  line += what.fields.empty() ? what.message : what.fields;
  return line;
}

void Log(std::string_view severity, const std::string& line) {
  if (severity == "error")
    LOG_ERROR("{}", line);
  else if (severity == "warn")
    LOG_WARN("{}", line);
  else
    LOG_INFO("{}", line);
}

}  // namespace

void Announcer::Tell(const Announcement& what, DeferredActions* deferred) {
  events_->Note({.at = latest_,
                 .type = what.type,
                 .severity = what.severity,
                 .subjects = what.subjects,
                 .message = what.message});
  deferred->Add([this, severity = what.severity, line = LineOf(what)] {
    Log(severity, line);
    events_->WakeWatchers();
  });
}

}  // namespace leat::server
