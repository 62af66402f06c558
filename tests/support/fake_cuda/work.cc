// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_cuda/work.h"

#include <cstring>
#include <utility>

#include "fmt/format.h"
#include "tests/support/fake_cuda/state.h"

namespace leat::fake_cuda {
namespace {

bool Overlap(const std::vector<Span>& a, const std::vector<Span>& b) {
  for (const Span& x : a)
    for (const Span& y : b)
      if (x.at < y.at + y.bytes && y.at < x.at + x.bytes) return true;
  return false;
}

uint64_t HashOf(const Span& span) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15;
  const auto* const bytes = reinterpret_cast<const unsigned char*>(span.at);
  uint64_t hash = span.bytes, word = 0;
  size_t i = 0;
  for (; i + 8 <= span.bytes; i += 8) {
    std::memcpy(&word, bytes + i, 8);
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  }
  for (; i < span.bytes; ++i) hash = (hash ^ bytes[i]) * kPrime;
  return hash;
}

std::vector<uint64_t> HashesOf(const std::vector<Span>& spans) {
  std::vector<uint64_t> hashes;
  for (const Span& span : spans) hashes.push_back(HashOf(span));
  return hashes;
}

}  // namespace

Traffic& StreamTraffic() {
  static Traffic* const traffic = new Traffic;
  return *traffic;
}

bool Traffic::WillBeWritten(const Entry& entry) const {
  for (const auto& [number, other] : queued_)
    if ((other.stream == entry.stream && other.writes_mapped) ||
        Overlap(other.writes, entry.reads))
      return true;
  return false;
}

std::function<void()> Traffic::Queue(const char* symbol, const void* stream,
                                     Work work) {
  bool writes_mapped = false;
  {
    State& state = GetState();
    MutexLock lock(&state.mu);
    if (state.settings["trainer"] == 0) return std::move(work.run);
    for (const Span& span : work.writes)
      writes_mapped |= Holds(state.mapped, span.at, span.bytes);
  }
  Entry entry{.symbol = symbol,
              .stream = stream,
              .reads = std::move(work.reads),
              .writes = std::move(work.writes),
              .hashes = {},
              .writes_mapped = writes_mapped};
  uint64_t number = 0;
  {
    MutexLock lock(&mu_);
    number = next_++;
    if (!WillBeWritten(entry)) entry.hashes = HashesOf(entry.reads);
    queued_[number] = std::move(entry);
  }
  return [this, symbol, number, run = std::move(work.run)] {
    if (const std::string wrong = Begin(number); !wrong.empty()) {
      State& state = GetState();
      MutexLock lock(&state.mu);
      state.Violate(symbol, wrong);
    }
    run();
    End(number);
  };
}

std::string Traffic::Begin(uint64_t number) {
  MutexLock lock(&mu_);
  const Entry& entry = queued_[number];
  for (const auto& [other_number, other] : queued_) {
    if (other_number >= number) break;
    if (other.stream == entry.stream) continue;
    if (Overlap(other.reads, entry.writes))
      return fmt::format(
          "writes to memory that {} on another stream has still to read",
          other.symbol);
    if (Overlap(other.writes, entry.reads))
      return fmt::format(
          "reads memory that {} on another stream has still to write",
          other.symbol);
  }
  if (!entry.hashes.empty() && HashesOf(entry.reads) != entry.hashes)
    return "memory was written to while this work had still to read it";
  return "";
}

void Traffic::End(uint64_t number) {
  MutexLock lock(&mu_);
  queued_.erase(number);
}

bool Traffic::Touches(Span span) {
  MutexLock lock(&mu_);
  for (const auto& [number, entry] : queued_)
    if (Overlap(entry.reads, {span}) || Overlap(entry.writes, {span}))
      return true;
  return false;
}

}  // namespace leat::fake_cuda
