// SPDX-License-Identifier: Apache-2.0
//
// CertificateTerm: from when until when a certificate is valid, and when its
// end is near enough for people to hear of it.
//
// Tools renew a certificate when a third of its term is left, whether the term
// is an hour, a day or a year. So a certificate that they renew is never spoken
// of:
//
//   term        a warning with less left than   an error with less left than
//   1 hour      15 minutes                      5 minutes
//   24 hours    6 hours                         2 hours
//   90 days     22.5 days                       7 days
//   1 year      30 days                         7 days
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "core/clock.h"

namespace leat {

struct CertificateTerm {
  WallTime end;
  std::optional<WallTime> begin = std::nullopt;  // nullopt: it is not known

  // From when on its end is a warning, and an error: when less than a quarter,
  // and a twelfth, of the term is left, and never earlier than kMostWarning and
  // kMostError before it. A term that is not known, or ends before it begins,
  // is taken for a long one. REQUIRES: neither time is before 1970.
  WallTime warn_at() const;
  WallTime error_at() const;

  bool operator==(const CertificateTerm&) const = default;
};

inline constexpr Duration kMostWarning = std::chrono::hours(30 * 24);
inline constexpr Duration kMostError = std::chrono::hours(7 * 24);

// Returns "expires in 3 days and 4 hours", "expires in 5 minutes", or "has
// expired".
std::string TextOfExpiry(Duration left);

}  // namespace leat
