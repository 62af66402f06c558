// SPDX-License-Identifier: Apache-2.0
#include "server/state/decoders.h"

#include "fmt/format.h"

namespace leat::server {

bool DecodesAs(const WorkerRegistration& worker, DecoderClass decoder_class,
               const Digest& digest) {
  if (!worker.Has(decoder_class)) return false;
  const Decoders* const own = worker.DecodersOf(decoder_class);
  return own == nullptr || own->digest == digest;
}

std::string Text(const Decoders& decoders) {
  return fmt::format("{} ({})", ShortHex(decoders.digest), decoders.libraries);
}

std::string DecodersDiffer(const WorkerRegistration& worker,
                           std::span<const DecoderGroup> groups) {
  std::string text;
  for (const DecoderGroup& group : groups) {
    const DecoderClass decoder_class = group.decoders.decoder_class;
    const Decoders* const own = worker.DecodersOf(decoder_class);
    if (own == nullptr ||
        DecodesAs(worker, decoder_class, group.decoders.digest))
      continue;
    text += fmt::format("{}its {} decoders are {}, but {} plan{} began with {}",
                        text.empty() ? "" : "; ", Name(decoder_class),
                        Text(*own), group.plans, group.plans == 1 ? "" : "s",
                        Text(group.decoders));
  }
  return text;
}

}  // namespace leat::server
