// SPDX-License-Identifier: Apache-2.0
//
// FusedChains: the chains of a pipeline, while it is compiled, and the views
// that are made of them. A chain begins at a decoded image or where another one
// ends, and one pass computes all operators from the image to a chain's end: it
// resamples once, and before it mirrors.
//
//   decode ─ crop ─ resize      chain 1, of which there is a view
//          └ flip               chain 2, of chain 0: the image
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/tensor/image_size.h"
#include "worker/gpu/layout/whose.h"
#include "worker/image/program/program.h"

namespace leat::worker {

// Geometric operators on what another chain gives; the first one's input is
// the decoded image.
struct FusedChain {
  size_t parent = 0;  // an earlier one; of an image's first: itself
  Whose whose = Whose::kRow;
  std::vector<ImageOp> ops;
};

// What a chain gives, if fields are made of it; or, where the size is the
// row's own, a value that a stage makes.
struct FusedImage {
  size_t chain = 0;
  ImageSize size;
  std::optional<size_t> stage;
  uint32_t value = 0;
};

class FusedChains {
 public:
  // A chain of operators on an image; `node`: whose value its end is. Returns
  // its index.
  size_t AddImage(Whose whose, uint32_t node, std::vector<ImageOp> ops);
  // How many of the first operators can go on where the chain, of the same
  // sample, ends.
  size_t Extending(size_t chain, Whose whose,
                   const std::vector<ImageOp>& ops) const;
  // A chain that goes on with them. REQUIRES: all can; there is one.
  size_t Extend(size_t chain, std::vector<ImageOp> ops);
  uint32_t node(size_t chain) const { return ends_[chain].node; }

  // The view of the chain, of one size for all rows; nullopt: too many.
  std::optional<uint32_t> ViewOf(size_t chain, ImageSize size);
  // A view whose size is the row's own, which a stage makes. False: too many.
  bool AddSource(size_t chain, size_t stage, uint32_t value);
  ImageSize size_of(uint32_t view) const { return views_[view].size; }

  // There are views of the sample's image.
  bool decodes(Whose whose) const { return decodes_[whose]; }
  // Rule "dali" is among the operators.
  bool dali() const { return dali_; }

  // In the order in which the CPU runs them.
  std::vector<FusedChain>& chains() { return chains_; }
  std::vector<FusedImage>& views() { return views_; }

 private:
  struct End {
    uint32_t node = 0;
    bool resampled = false, mirrored = false;
    std::optional<uint32_t> view;  // some field is made of it
  };
  static void Note(const ImageOp& op, End* end);
  size_t Add(size_t parent, Whose whose, End end, std::vector<ImageOp> ops);
  // Another view. False: there are as many as there may be.
  bool AddView(FusedImage view);

  std::vector<FusedChain> chains_;
  std::vector<End> ends_;  // of the chains
  std::vector<FusedImage> views_;
  OfBoth<bool> decodes_;
  bool dali_ = false;
};

}  // namespace leat::worker
