// SPDX-License-Identifier: Apache-2.0
//
// For example, 1,000 files are each decoded once a second, in 1 ms plainly, in
// 0.7 ms by a seek index of 2 kB, or in 0.4 ms by coefficients of 202 kB, and
// there is room for 102 MB. The seek index saves 150 ns per byte: all records
// get it, which leaves 100 MB. Coefficients then save 0.3 ms for 200 kB more,
// which is 1.5 ns per byte: half of the records get them. With room for 502 MB
// all have them. Pixels of 602 kB, by which a decode takes 0.1 ms, then save
// 0.3 ms for 400 kB more: 0.75 of the records get those.
#include "worker/cache/form_plan.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace leat::worker {
namespace {

struct FormStep {
  size_t of = 0;  // index of the demand
  JpegFormKind kind = JpegFormKind::kSeekIndex;
  double bytes = 0;  // per file, more than before
  double worth = 0;  // per byte
};

// Returns the step from a form to a larger one that is worth most per byte.
std::optional<FormStep> BestStep(const FormDemand& demand, FormKinds kinds,
                                 const FormDemand::Form& from) {
  const double rate = demand.decodes / demand.files;
  std::optional<FormStep> best;
  for (const JpegFormKind kind : kJpegFormKinds) {
    const FormDemand::Form& to = demand.of(kind);
    const double bytes = to.bytes - from.bytes, saves = from.ns - to.ns;
    if (!kinds.Has(kind) || bytes <= 0 || saves <= 0) continue;
    const double worth = rate * saves / bytes;
    // Takes the larger of two equal ones: the smaller one first would gain
    // nothing.
    if (worth > 0 && (!best || worth >= best->worth))
      best = FormStep{.kind = kind, .bytes = bytes, .worth = worth};
  }
  return best;
}

// Each step is worth no more per byte than the one before.
void AddFormSteps(size_t of, const FormDemand& demand, FormKinds kinds,
                  std::vector<FormStep>* steps) {
  if (demand.files <= 0) return;
  FormDemand::Form from = {.bytes = 0, .ns = demand.plain_ns};
  while (std::optional<FormStep> step = BestStep(demand, kinds, from)) {
    step->of = of;
    from = demand.of(step->kind);
    steps->push_back(*step);
  }
}

}  // namespace

std::vector<FormShare> PlanForms(std::span<const FormDemand> demands,
                                 FormKinds kinds, double room_bytes) {
  std::vector<FormStep> steps;
  for (size_t i = 0; i < demands.size(); ++i)
    AddFormSteps(i, demands[i], kinds, &steps);
  std::stable_sort(
      steps.begin(), steps.end(),
      [](const FormStep& a, const FormStep& b) { return a.worth > b.worth; });
  std::vector<FormShare> shares(demands.size());
  for (const FormStep& step : steps) {
    if (room_bytes <= 0) break;
    const double all = step.bytes * demands[step.of].files;
    const double share = all <= room_bytes ? 1 : room_bytes / all;
    room_bytes -= share * all;
    for (size_t way = 1; way <= WayOf(step.kind); ++way)
      shares[step.of].from[way] = std::max(shares[step.of].from[way], share);
  }
  return shares;
}

}  // namespace leat::worker
