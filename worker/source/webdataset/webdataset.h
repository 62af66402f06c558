// SPDX-License-Identifier: Apache-2.0
//
// readers.webdataset: samples of tar archives, an output for each wanted
// extension.
//
// Neighbouring files of an archive (tar.h) with the same path up to the first
// dot of the name are one sample; what follows the dot is the component's
// extension ("a.seg.png": "seg.png"), whose case counts. Samples are in the
// order of the archives (record_paths.h; of a directory: *.tar) and in them;
// one archive is one shard, archives without samples are none.
//
// As DALI does it (webdataset_loader.cc, wds2idx.py): an output takes the first
// of a sample's components that fits one of its alternatives; `missing` is its
// missing_component_behavior. Of neighbouring samples of one name DALI takes
// the first; here that is an error, unless samples that miss a component are
// none. Other than there: names without a dot, which are samples without
// components to DALI, are passed over, as the webdataset library does; so are
// names that begin with a dot in sub-directories; and a component that serves
// two outputs is not counted as a missing one.
//
// The index has block and size of each output's component: 8 bytes in memory.
// Made by walking the headers, or taken from DALI's index files (v1.1, v1.2),
// of which some entries are compared with the archives.
//
// A component's bytes by the output's type:
//   encoded             an image file
//   bytes               all of them
//   float32[?], uint8[28,28], ...  elements, little-endian, as DALI's dtypes
//   int32, int64        one number in decimal digits, as of "cls"
// A component of another length, or that is no number, is a bad sample. One
// that is missing (missing = "empty") has no bytes.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/hash.h"
#include "core/pipeline/operators.h"
#include "worker/source/source.h"
#include "worker/source/webdataset/samples.h"

namespace leat::worker {

struct WebdatasetOptions {
  std::vector<std::string> paths;
  std::string paths_key;  // LongListKey of paths, which stands for them
  std::vector<std::string> ext;
  std::vector<ValueType> types;  // one for each of ext
  std::vector<std::string> index;
  MissingComponent missing = MissingComponent::kError;
};

// The reader node's arguments. kInvalidArgument: names the argument.
absl::StatusOr<WebdatasetOptions> WebdatasetOptionsOf(const Node& reader);
// What the head of an index has as the reader's paths.
std::vector<std::string> PathsInHead(const WebdatasetOptions& options);

// The identity of a listing, begun with what decides on its samples: then name,
// size, identity and number of samples of each archive that has samples.
void BeginWebdatasetHash(const WebdatasetOptions& options, Sha256* hash);
std::string_view NameOf(MissingComponent missing);

// kNotFound: no such archives, or no samples in them. kDataLoss,
// kUnimplemented: as WalkTar. kFailedPrecondition: a sample without a
// component, or an index file that is not of its archive. kInvalidArgument: a
// malformed index file. kResourceExhausted: over max_files samples, or
// max_index_bytes. kCancelled.
absl::StatusOr<BuiltIndex> BuildWebdatasetIndex(const Node& reader,
                                                const SourceLimits& limits);

}  // namespace leat::worker
