// SPDX-License-Identifier: Apache-2.0
//
// KeptPlans: the decoders that the plans of a State began with.
//
//   Came(p)                          Unpinned has p
//   Apply({p} began with digest d)   Groups has d, with one plan
//   Went(p)                          neither has an entry for p
//
// Thread-compatible.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/state/decoders.h"
#include "server/state/events.h"

namespace leat::server {

class KeptPlans {
 public:
  // Reports that the plan has a first job, of that class.
  void Came(const Digest& plan_hash, DecoderClass decoder_class);
  // Reports that the plan's last job has gone.
  void Went(const Digest& plan_hash, DecoderClass decoder_class);
  // `class_of`: returns the class of the plan's jobs; nullopt: it has none.
  // `keep`: plans without jobs are kept too.
  using ClassOf = std::function<std::optional<DecoderClass>(const Digest&)>;
  void Apply(WallTime at, const DecodersPinned& pinned, bool keep,
             const ClassOf& class_of);
  // Appends the shortest list of events that recreates these plans.
  void AddEvents(std::vector<Event>* events) const;

  // Returns nullopt if the plan has not begun.
  std::optional<Decoders> Of(const Digest& plan_hash,
                             DecoderClass decoder_class) const;
  // Returns the plans with jobs of the class that have not begun.
  const std::set<Digest>& Unpinned(DecoderClass decoder_class) const;
  // Returns the decoders that the plans of all jobs began with.
  std::vector<DecoderGroup> Groups() const;

 private:
  struct Pinned {
    Digest digest{};
    std::string libraries;
    WallTime at{};
  };
  // Keyed by plan hash; includes the plans of jobs that were set aside.
  std::map<Digest, Pinned> pinned_;
  // Plans that have jobs, and whose decoders are not pinned yet.
  std::map<DecoderClass, std::set<Digest>> unpinned_;
  std::map<std::pair<DecoderClass, Digest>, DecoderGroup> groups_;
};

}  // namespace leat::server
