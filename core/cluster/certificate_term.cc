// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/certificate_term.h"

#include <algorithm>

#include "core/counted.h"
#include "fmt/format.h"

namespace leat {
namespace {

constexpr int kWarnPart = 4, kErrorPart = 12;

WallTime Before(const CertificateTerm& term, int part, Duration most) {
  if (!term.begin || *term.begin >= term.end) return term.end - most;
  return term.end - std::min<Duration>((term.end - *term.begin) / part, most);
}

}  // namespace

WallTime CertificateTerm::warn_at() const {
  return Before(*this, kWarnPart, kMostWarning);
}

WallTime CertificateTerm::error_at() const {
  return Before(*this, kErrorPart, kMostError);
}

std::string TextOfExpiry(Duration left) {
  if (left <= Duration::zero()) return "has expired";
  const auto minutes =
      std::chrono::duration_cast<std::chrono::minutes>(left).count();
  const auto hours = minutes / 60;
  if (hours == 0) return "expires in " + Counted(minutes, "minute");
  if (hours < 24)
    return fmt::format("expires in {} and {}", Counted(hours, "hour"),
                       Counted(minutes % 60, "minute"));
  return fmt::format("expires in {} and {}", Counted(hours / 24, "day"),
                     Counted(hours % 24, "hour"));
}

}  // namespace leat
