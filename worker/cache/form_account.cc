// SPDX-License-Identifier: Apache-2.0
#include "worker/cache/form_account.h"

#include <algorithm>
#include <cmath>

namespace leat::worker {

bool FormAccount::Pay(Duration cost) {
  int64_t balance = balance_ns_;
  while (balance >= cost.count())
    if (balance_ns_.compare_exchange_weak(balance, balance - cost.count()))
      return true;
  return false;
}

void FormAccount::Lend(Duration took) {
  const auto lent =
      static_cast<int64_t>(kLent * static_cast<double>(took.count()));
  lent_ns_ += lent;
  balance_ns_ += lent;
}

void FormAccount::Save(Duration time) {
  saved_ns_ += time.count();
  balance_ns_ += time.count();
}

void FormAccount::Spend(Duration cost) {
  spent_ns_ += cost.count();
  balance_ns_ -= cost.count();
}

FormAccount::Totals FormAccount::totals() const {
  return {.saved = Duration(saved_ns_),
          .lent = Duration(lent_ns_),
          .spent = Duration(spent_ns_)};
}

// Updates the variance by Welford's method, with weights that become constant.
void TimeOfBytes::Add(size_t bytes, Duration took) {
  if (bytes == 0) return;
  const double each =
      static_cast<double>(took.count()) / static_cast<double>(bytes);
  MutexLock lock(&mu_);
  count_ = std::min(count_ + 1, kMost);
  const double weight = 1.0 / count_, off = each - mean_;
  mean_ += weight * off;
  variance_ = (1 - weight) * (variance_ + weight * off * off);
}

std::optional<Duration> TimeOfBytes::Of(size_t bytes, uint32_t least) const {
  MutexLock lock(&mu_);
  if (count_ < least) return std::nullopt;
  return Duration(static_cast<int64_t>(mean_ * static_cast<double>(bytes)));
}

std::optional<Duration> TimeOfBytes::AtLeast(size_t bytes) const {
  MutexLock lock(&mu_);
  if (count_ < kLeast) return std::nullopt;
  const double least = mean_ - 2 * std::sqrt(variance_ / count_);
  return Duration(
      static_cast<int64_t>(std::max(0.0, least) * static_cast<double>(bytes)));
}

}  // namespace leat::worker
