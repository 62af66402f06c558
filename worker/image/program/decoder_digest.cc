// SPDX-License-Identifier: Apache-2.0
#include "worker/image/program/decoder_digest.h"

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"

namespace leat::worker {
namespace {

constexpr int64_t kSeed = 1;

// A program's view of an image of any size.
struct DigestView {
  const char* op;
  int64_t height, width;
  bool encoded = false;  // as a JPEG, and decoded again
};
constexpr DigestView kViews[] = {
    {"crop", 9, 11},     // pixels as they are decoded, in a window
    {"resize", 60, 70},  // all pixels contribute
    {"resize", 12, 13},  // several pixels make one
    {"crop", 9, 11, true}};

absl::StatusOr<std::unique_ptr<RowProgram>> ProgramOf(const DigestView& view,
                                                      BatchSchema* schema) {
  Graph graph;
  graph.nodes = {
      {"readers.image_folder", {}, {{"path", Value(std::string("/"))}}},
      {"decode", {{0, 0}}, {}},
      {view.op,
       {{1, 0}},
       {{"size", Value(std::vector<int64_t>{view.height, view.width})}}}};
  if (view.encoded)
    graph.nodes.push_back(
        {"jpeg_compression_distortion", {{2, 0}}, {{"quality", Value(50.0)}}});
  graph.outputs = {
      {"image", {static_cast<uint32_t>(graph.nodes.size()) - 1, 0}}};
  ASSIGN_OR_RETURN(const CheckedGraph checked, Check(graph));
  *schema = checked.schema;
  return RowProgram::Compile(checked);
}

}  // namespace

absl::StatusOr<Digest> DecoderDigest(std::span<const std::string> images) {
  Scratch scratch{ImageLimits()};
  Sha256 hash;
  const int32_t label = 0;
  for (const DigestView& view : kViews) {
    BatchSchema schema;
    ASSIGN_OR_RETURN(const std::unique_ptr<RowProgram> program,
                     ProgramOf(view, &schema));
    std::vector<std::byte> pixels(schema.fields[0].row_bytes);
    const std::span<std::byte> output(pixels);
    for (const std::string& image : images) {
      const StoredField fields[] = {
          {std::as_bytes(std::span(image)), {}},
          {std::as_bytes(std::span(&label, size_t{1})), {}}};
      const absl::Status status = program->Run(
          {.seed = kSeed, .fields = fields}, scratch, std::span(&output, 1));
      hash.UpdateU64(static_cast<uint64_t>(status.code()));
      if (status.ok()) hash.Update(std::span<const std::byte>(pixels));
      scratch.EndRow();
    }
  }
  return hash.Finish();
}

}  // namespace leat::worker
