// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/base/text.h"
#include "client/cli/diagnostics/credentials.h"
#include "core/cluster/certificate_term.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

constexpr uint32_t kOthersRead = 0044;

class CredentialDiagnoses {
 public:
  void Well(std::string code, std::string evidence) {
    all_.push_back({std::move(code), "ok", std::move(evidence), ""});
  }
  void Bad(std::string code, std::string severity, std::string evidence,
           std::string remedy) {
    all_.push_back({std::move(code), std::move(severity), std::move(evidence),
                    std::move(remedy)});
  }
  std::vector<Diagnosis> Take() { return std::move(all_); }

 private:
  std::vector<Diagnosis> all_;
};

// Returns false if the file is not given, or cannot be read, which was
// reported.
bool IsReadable(std::string_view code, const SecretFile& file,
                CredentialDiagnoses* to) {
  if (file.path.empty()) return false;
  if (file.trouble.empty()) return true;
  to->Bad(std::string(code), "error",
          fmt::format("{}: {}", file.path, file.trouble),
          "name a file that this user can read");
  return false;
}

void SayWhoReads(std::string_view code, const SecretFile& file,
                 CredentialDiagnoses* to) {
  if ((file.mode & kOthersRead) == 0)
    return to->Well(std::string(code),
                    fmt::format("{} has mode {:o}", file.path, file.mode));
  to->Bad(std::string(code), "warn",
          fmt::format("{} has mode {:o}: other users can read the secret",
                      file.path, file.mode),
          fmt::format("chmod 600 {}, and replace the secret if others use the "
                      "machine",
                      file.path));
}

void JudgeToken(const CredentialFacts& facts, CredentialDiagnoses* to) {
  if (IsReadable("ACCESS_TOKEN", facts.token_file, to))
    SayWhoReads("ACCESS_TOKEN_FILE", facts.token_file, to);
  if (!facts.has_token) return;
  const std::string where = facts.token_file.path.empty()
                                ? "LEAT_ACCESS_TOKEN"
                                : facts.token_file.path;
  if (facts.token_trouble.empty())
    return to->Well(
        "ACCESS_TOKEN",
        facts.token_id.empty()
            ? fmt::format("{} has a secret that \"leat access create\" did not "
                          "make: only a service that was started with it, or "
                          "asks for none, takes it",
                          where)
            : fmt::format("{} has access token {}", where, facts.token_id));
  to->Bad("ACCESS_TOKEN", "error", facts.token_trouble,
          "have an operator make one (leat access create), and keep its one "
          "line as it was printed");
}

std::string DateOf(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", time, absl::UTCTimeZone());
}

// Returns the certificate's term. Later times, such as an end in the year 9999,
// become 2200.
CertificateTerm TermOf(const CertificateFacts& of) {
  const auto bounded = [](absl::Time time) {
    constexpr time_t kLast = 7'258'118'400;  // 2200
    return absl::ToChronoTime(
        std::clamp(time, absl::UnixEpoch(), absl::FromTimeT(kLast)));
  };
  return {.end = bounded(of.end), .begin = bounded(of.begin)};
}

// Checks the dates of one certificate; returns false if they are good.
bool SayDates(std::string_view code, std::string_view path,
              const CertificateFacts& of, absl::Time now,
              CredentialDiagnoses* to) {
  const CertificateTerm term = TermOf(of);
  std::string_view severity = "error";
  std::string what;
  if (now < of.begin)
    what = fmt::format("is valid from {}", DateOf(of.begin));
  else if (of.end <= now)
    what = fmt::format("expired at {}", DateOf(of.end));
  else if (now > absl::FromChrono(term.warn_at()))
    what = fmt::format("expires at {}", DateOf(of.end));
  else
    return false;
  if (now >= of.begin && now <= absl::FromChrono(term.error_at()))
    severity = "warn";
  to->Bad(std::string(code), std::string(severity),
          fmt::format("{} in {} {}", of.subject, path, what),
          "make a new one; daemons read their files again when they change");
  return true;
}

void JudgeChain(const CredentialFacts& facts, absl::Time now,
                CredentialDiagnoses* to) {
  const std::string& path = facts.cert.path;
  if (facts.chain.empty())
    return to->Bad("CERTIFICATE", "error",
                   fmt::format("{} has no certificate in PEM", path),
                   "name the certificate, and after it in the same file those "
                   "that issued it");
  if (facts.misplaced)
    to->Bad("CERTIFICATE_CHAIN", "error",
            fmt::format("certificate {} of {} did not issue certificate {}",
                        *facts.misplaced + 1, path, *facts.misplaced),
            "order the file: one's own certificate first, then who issued it, "
            "and so on");
  bool dated = true;
  for (const CertificateFacts& each : facts.chain)
    if (SayDates("CERTIFICATE_DATES", path, each, now, to)) dated = false;
  if (dated)
    to->Well("CERTIFICATE_DATES",
             fmt::format("{} in {} expires at {}", facts.chain.front().subject,
                         path, DateOf(facts.chain.front().end)));
  const std::vector<std::string>& names = facts.chain.front().names;
  if (names.empty())
    to->Bad("CERTIFICATE_NAMES", "error",
            fmt::format("{} in {} has no subjectAltName",
                        facts.chain.front().subject, path),
            "make it with DNS:NAME or IP:ADDRESS of the daemon, or URI:NAME "
            "of the trainer, in subjectAltName; the subject counts for "
            "nothing");
  else
    to->Well("CERTIFICATE_NAMES",
             fmt::format("{} is for {}", path, fmt::join(names, ", ")));
}

void JudgeKey(const CredentialFacts& facts, CredentialDiagnoses* to) {
  const std::string& path = facts.key.path;
  SayWhoReads("KEY_FILE", facts.key, to);
  if (!facts.has_key)
    to->Bad("CERTIFICATE_KEY", "error",
            fmt::format("{} has no private key in PEM, or one with a "
                        "passphrase",
                        path),
            "name the certificate's key, stored without a passphrase: a daemon "
            "cannot ask for one");
  else if (!facts.owner && !facts.chain.empty())
    to->Bad("CERTIFICATE_KEY", "error",
            fmt::format("{} is not the key of {}", path, facts.cert.path),
            "name the key that the certificate was asked for with");
  else if (facts.owner.value_or(0) > 0)
    to->Bad("CERTIFICATE_KEY", "error",
            fmt::format("{} is the key of certificate {} in {}", path,
                        *facts.owner + 1, facts.cert.path),
            "put that certificate first, then who issued it, and so on");
  else if (facts.owner)
    to->Well("CERTIFICATE_KEY",
             fmt::format("{} is the key of {}", path, facts.cert.path));
}

void JudgeRoots(const CredentialFacts& facts, absl::Time now,
                CredentialDiagnoses* to) {
  const std::string& path = facts.ca.path;
  if (facts.roots.empty())
    return to->Bad("AUTHORITIES", "error",
                   fmt::format("{} has no certificate in PEM", path),
                   "name the certificates of the authorities to trust");
  bool dated = true;
  std::vector<std::string> subjects;
  for (const CertificateFacts& each : facts.roots) {
    if (SayDates("AUTHORITIES", path, each, now, to)) dated = false;
    subjects.push_back(each.subject);
  }
  if (!facts.chain.empty() && !facts.vouched)
    to->Bad(
        "AUTHORITIES", "warn",
        fmt::format("no authority in {} vouches for {}", path, facts.cert.path),
        "a daemon that asks for certificates may refuse this one: show one "
        "that an authority in this file has made");
  else if (dated)
    to->Well("AUTHORITIES",
             fmt::format("{} has {}", path, fmt::join(subjects, ", ")));
}

}  // namespace

std::vector<Diagnosis> DiagnoseCredentials(const CredentialFacts& facts,
                                           absl::Time now) {
  CredentialDiagnoses to;
  JudgeToken(facts, &to);
  if (IsReadable("CERTIFICATE", facts.cert, &to)) JudgeChain(facts, now, &to);
  if (IsReadable("CERTIFICATE_KEY", facts.key, &to)) JudgeKey(facts, &to);
  if (IsReadable("AUTHORITIES", facts.ca, &to)) JudgeRoots(facts, now, &to);
  return to.Take();
}

}  // namespace leat::cli
