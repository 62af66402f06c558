// SPDX-License-Identifier: Apache-2.0
//
// FusedChains: the chains of a pipeline, while it is compiled, and the views
// made from them. A chain begins at a decoded image or at the end of another
// chain, and one pass computes all operators from the image to a chain's end:
// it resamples once, and before it mirrors.
//
//   decode ─ crop ─ resize      chain 1, which has a view
//          └ flip               chain 2; its parent is chain 0, the image
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor/image_size.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// Geometric operators on the result of another chain; the first chain's input
// is the decoded image.
struct FusedChain {
  size_t parent = 0;  // an earlier chain; for an image's first chain: itself
  Whose whose = Whose::kRow;
  std::vector<ImageOp> ops;
};

// The result of a chain, if fields are made from it; or a value that a stage
// makes, if its size differs from row to row.
struct FusedImage {
  size_t chain = 0;
  ImageSize size;
  std::optional<size_t> stage;
  uint32_t value = 0;
};

class FusedChains {
 public:
  // Adds a chain of operators on an image; `node`: the node whose value is its
  // end. Returns its index.
  size_t AddImage(Whose whose, uint32_t node, std::vector<ImageOp> ops);
  // Returns how many of the first operators can extend the chain, if it is of
  // the same sample.
  size_t Extending(size_t chain, Whose whose,
                   const std::vector<ImageOp>& ops) const;
  // Adds a chain that extends it by these. REQUIRES: all can; there is one.
  size_t Extend(size_t chain, std::vector<ImageOp> ops);
  uint32_t node(size_t chain) const { return ends_[chain].node; }

  // Returns the view of the chain, of one size for all rows; nullopt: too many.
  std::optional<uint32_t> ViewOf(size_t chain, ImageSize size);
  // Adds a view whose size differs from row to row, made by a stage. False: too
  // many.
  bool AddSource(size_t chain, size_t stage, uint32_t value);
  ImageSize size_of(uint32_t view) const { return views_[view].size; }

  // True if there are views of the sample's image.
  bool decodes(Whose whose) const { return decodes_[whose]; }
  // True if rule "dali" is among the operators.
  bool dali() const { return dali_; }

  // In the order in which the CPU runs them.
  std::vector<FusedChain>& chains() { return chains_; }
  std::vector<FusedImage>& views() { return views_; }

 private:
  struct End {
    uint32_t node = 0;
    bool resampled = false, mirrored = false;
    std::optional<uint32_t> view;  // set if a field is made from it
  };
  static void Note(const ImageOp& op, End* end);
  size_t Add(size_t parent, Whose whose, End end, std::vector<ImageOp> ops);
  // Adds a view. Returns false if there are as many as allowed.
  bool AddView(FusedImage view);

  std::vector<FusedChain> chains_;
  std::vector<End> ends_;  // of the chains
  std::vector<FusedImage> views_;
  OfBoth<bool> decodes_;
  bool dali_ = false;
};

}  // namespace leat::worker
