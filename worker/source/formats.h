// SPDX-License-Identifier: Apache-2.0
//
// The formats, each defined in the file of its name.
#pragma once

#include "worker/source/source.h"

namespace leat::worker {

extern const SourceFormat kImageFolderFormat;
extern const SourceFormat kFileListFormat;
extern const SourceFormat kFilesFormat;
extern const SourceFormat kCifar10Format;
extern const SourceFormat kCifar100Format;
extern const SourceFormat kCaffeFormat;
extern const SourceFormat kCaffe2Format;
extern const SourceFormat kCocoFormat;
extern const SourceFormat kIdxFormat;
extern const SourceFormat kNumpyFormat;
extern const SourceFormat kMdsFormat;
extern const SourceFormat kArrayRecordFormat;
extern const SourceFormat kParquetFormat;
extern const SourceFormat kTfrecordFormat;
extern const SourceFormat kTokensFormat;
extern const SourceFormat kWebdatasetFormat;
extern const SourceFormat kExternalFormat;

}  // namespace leat::worker
