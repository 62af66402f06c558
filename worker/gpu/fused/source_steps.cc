// SPDX-License-Identifier: Apache-2.0
#include "worker/gpu/fused/source_steps.h"

namespace leat::worker {

void SetSource(const SourceView& view, const FusedSource& source,
               FusedRow* row) {
  const Orientation& o = view.orientation;
  const StoredRect need = o.Stored(view.part, view.stored);
  // Steps in the stored image, then in the turned one, then in the view.
  const int64_t u = o.mirror_x ? -source.pixel_bytes : source.pixel_bytes;
  const int64_t v = o.mirror_y ? -source.pitch : source.pitch;
  int64_t step_x = o.transposed ? v : u;
  int64_t step_y = o.transposed ? u : v;
  const int64_t first_u = o.mirror_x ? need.x + need.width - 1 : need.x;
  const int64_t first_v = o.mirror_y ? need.y + need.height - 1 : need.y;
  int64_t offset = (first_v - source.held.y) * source.pitch +
                   (first_u - source.held.x) * source.pixel_bytes;
  if (view.back_x) {
    offset += (view.part.width - 1) * step_x;
    step_x = -step_x;
  }
  if (view.back_y) {
    offset += (view.part.height - 1) * step_y;
    step_y = -step_y;
  }
  row->step_x = static_cast<int32_t>(step_x);
  row->step_y = static_cast<int32_t>(step_y);
  row->step_c = static_cast<int32_t>(source.channel_bytes);
  if (view.backwards) {
    offset += 2 * source.channel_bytes;
    row->step_c = -row->step_c;
  }
  row->source = source.address.number() + static_cast<uint64_t>(offset);
}

}  // namespace leat::worker
