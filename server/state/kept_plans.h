// SPDX-License-Identifier: Apache-2.0
//
// KeptPlans: which decoders the plans of a State began with.
//
//   Came(p)                          Unpinned has p
//   Apply({p} began with digest d)   Groups has d, with one plan
//   Went(p)                          neither has anything of p
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
  // The plan has a first job, of that class.
  void Came(const Digest& plan_hash, DecoderClass decoder_class);
  // Its last job has gone.
  void Went(const Digest& plan_hash, DecoderClass decoder_class);
  // `class_of`: of the plan's jobs; nullopt: it has none. `keep`: also plans
  // without jobs are kept.
  using ClassOf = std::function<std::optional<DecoderClass>(const Digest&)>;
  void Apply(WallTime at, const DecodersPinned& pinned, bool keep,
             const ClassOf& class_of);
  // Appends the shortest list of events that makes these.
  void AddEvents(std::vector<Event>* events) const;

  // nullopt: the plan has not begun.
  std::optional<Decoders> Of(const Digest& plan_hash,
                             DecoderClass decoder_class) const;
  // Plans of jobs of the class that have not begun.
  const std::set<Digest>& Unpinned(DecoderClass decoder_class) const;
  // What the plans of all jobs began with.
  std::vector<DecoderGroup> Groups() const;

 private:
  struct Pinned {
    Digest digest{};
    std::string libraries;
    WallTime at{};
  };
  // The key is the plan's hash; jobs that were set aside are here, too.
  std::map<Digest, Pinned> pinned_;
  // Plans that have jobs, and whose decoders are not pinned yet.
  std::map<DecoderClass, std::set<Digest>> unpinned_;
  std::map<std::pair<DecoderClass, Digest>, DecoderGroup> groups_;
};

}  // namespace leat::server
