// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/chains.h"

#include <utility>

namespace leat::worker {
namespace {

constexpr size_t kMaxViews = 64;

}  // namespace

void FusedChains::Note(const ImageOp& op, End* end) {
  end->resampled |= op.Resamples();
  end->mirrored |= op.kind == ImageOp::Kind::kFlip;
}

size_t FusedChains::Add(size_t parent, Whose whose, End end,
                        std::vector<ImageOp> ops) {
  for (const ImageOp& op : ops) {
    dali_ |= op.Resamples() && op.filters.dali;
    Note(op, &end);
  }
  ends_.push_back(end);
  chains_.push_back({parent, whose, std::move(ops)});
  return chains_.size() - 1;
}

size_t FusedChains::AddImage(Whose whose, uint32_t node,
                             std::vector<ImageOp> ops) {
  return Add(chains_.size(), whose, {.node = node}, std::move(ops));
}

size_t FusedChains::Extending(size_t chain, Whose whose,
                              const std::vector<ImageOp>& ops) const {
  if (chains_[chain].whose != whose) return 0;
  End end = ends_[chain];
  size_t count = 0;
  for (const ImageOp& op : ops) {
    if (!op.Extends(end.resampled, end.mirrored)) break;
    Note(op, &end);
    ++count;
  }
  return count;
}

size_t FusedChains::Extend(size_t chain, std::vector<ImageOp> ops) {
  End end = ends_[chain];
  end.node = ops.back().node;
  end.view.reset();
  return Add(chain, chains_[chain].whose, end, std::move(ops));
}

bool FusedChains::AddView(FusedImage view) {
  if (views_.size() == kMaxViews) return false;
  decodes_[chains_[view.chain].whose] = true;
  views_.push_back(view);
  return true;
}

std::optional<uint32_t> FusedChains::ViewOf(size_t chain, ImageSize size) {
  End& end = ends_[chain];
  if (end.view) return end.view;
  const auto view = static_cast<uint32_t>(views_.size());
  if (!AddView({.chain = chain, .size = size})) return std::nullopt;
  end.view = view;
  return end.view;
}

bool FusedChains::AddSource(size_t chain, size_t stage, uint32_t value) {
  return AddView({.chain = chain, .size = {}, .stage = stage, .value = value});
}

}  // namespace leat::worker
