// SPDX-License-Identifier: Apache-2.0
//
// readers.webdataset: samples of tar archives, with one output per requested
// extension.
//
// Neighbouring files of an archive (tar.h) with the same path up to the first
// dot of the name are one sample; the part after the dot is the component's
// extension ("a.seg.png": "seg.png"), whose case matters. Samples are in the
// order of the archives (record_paths.h; of a directory: *.tar) and in them;
// one archive is one shard, and archives without samples are none.
//
// As in DALI (webdataset_loader.cc, wds2idx.py), an output takes the first of a
// sample's components that fits one of its alternatives; `missing` is its
// missing_component_behavior. Among neighbouring samples of one name DALI takes
// the first; here that is an error, unless samples that lack a component are
// skipped. Other differences: names without a dot, which DALI takes for samples
// without components, are skipped, as in the webdataset library; so are names
// that begin with a dot in sub-directories; and a component that serves two
// outputs is not counted as missing.
//
// The index has block and size of each output's component: 8 bytes in memory.
// It is made by walking the headers, or taken from DALI's index files (v1.1,
// v1.2), with some entries compared with the archives.
//
// A component's bytes by the output's type:
//   encoded             an image file
//   bytes               all of them
//   float32[?], uint8[28,28], ...  elements, little-endian, as DALI's dtypes
//   int32, int64        one number in decimal digits, as in "cls"
// A component of another length, or that should be a number and is not, is a
// bad sample, as is a bool other than 0 and 1. A missing component (missing =
// "empty") has no bytes.
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

// Returns the reader node's arguments. kInvalidArgument: names the argument.
absl::StatusOr<WebdatasetOptions> WebdatasetOptionsOf(const Node& reader);
// Returns the reader's paths as the head of an index has them.
std::vector<std::string> PathsInHead(const WebdatasetOptions& options);

// Begins the identity of a listing with everything that determines its samples:
// then add name, size, identity and number of samples of each archive that has
// samples.
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
