// SPDX-License-Identifier: Apache-2.0
#include "rpc/process/journal_log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "core/log.h"
#include "core/log_text.h"
#include "spdlog/formatter.h"

namespace leat::rpc {
namespace {

int Priority(spdlog::level::level_enum level) {
  if (level >= spdlog::level::err) return 3;
  if (level == spdlog::level::warn) return 4;
  return level == spdlog::level::info ? 6 : 7;
}

class JournalFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg,
              spdlog::memory_buf_t& out) override {
    std::string line = fmt::format("<{}>", Priority(msg.level));
    AppendPrintable(Bounded(msg), &line);
    line += '\n';
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JournalFormatter>();
  }
};

}  // namespace

bool IsJournal(int fd, const char* journal_stream) {
  struct stat found {};
  return journal_stream != nullptr && fstat(fd, &found) == 0 &&
         fmt::format("{}:{}", found.st_dev, found.st_ino) == journal_stream;
}

void LogForJournal(const char* journal_stream) {
  if (IsJournal(STDERR_FILENO, journal_stream))
    Logger()->set_formatter(std::make_unique<JournalFormatter>());
}

}  // namespace leat::rpc
