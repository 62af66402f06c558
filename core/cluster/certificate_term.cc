// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/certificate_term.h"

#include <algorithm>

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

}  // namespace leat
