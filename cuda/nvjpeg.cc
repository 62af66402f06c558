// SPDX-License-Identifier: Apache-2.0
#include "cuda/nvjpeg.h"

#include "core/status.h"

namespace leat::cuda {
namespace {

std::vector<Binding> Bindings(Nvjpeg* n) {
  return {
      {"nvjpegGetProperty", At(&n->GetProperty)},
      {"nvjpegCreateExV2", At(&n->CreateExV2)},
      {"nvjpegDestroy", At(&n->Destroy)},
      {"nvjpegGetHardwareDecoderInfo", At(&n->GetHardwareDecoderInfo), false},
      {"nvjpegJpegStateCreate", At(&n->JpegStateCreate)},
      {"nvjpegJpegStateDestroy", At(&n->JpegStateDestroy)},
      {"nvjpegDecode", At(&n->Decode)},
      {"nvjpegDecodeBatchedInitialize", At(&n->DecodeBatchedInitialize)},
      {"nvjpegDecodeBatchedPreAllocate", At(&n->DecodeBatchedPreAllocate)},
      {"nvjpegDecodeBatchedSupported", At(&n->DecodeBatchedSupported)},
      {"nvjpegDecodeBatchedSupportedEx", At(&n->DecodeBatchedSupportedEx),
       false},
      {"nvjpegDecodeBatched", At(&n->DecodeBatched)},
      {"nvjpegDecodeBatchedEx", At(&n->DecodeBatchedEx), false},
      {"nvjpegJpegStreamCreate", At(&n->JpegStreamCreate)},
      {"nvjpegJpegStreamDestroy", At(&n->JpegStreamDestroy)},
      {"nvjpegJpegStreamParse", At(&n->JpegStreamParse)},
      {"nvjpegJpegStreamParseHeader", At(&n->JpegStreamParseHeader)},
      {"nvjpegJpegStreamGetChromaSubsampling",
       At(&n->JpegStreamGetChromaSubsampling)},
      {"nvjpegDecodeParamsCreate", At(&n->DecodeParamsCreate)},
      {"nvjpegDecodeParamsDestroy", At(&n->DecodeParamsDestroy)},
      {"nvjpegDecodeParamsSetOutputFormat",
       At(&n->DecodeParamsSetOutputFormat)},
      {"nvjpegDecodeParamsSetROI", At(&n->DecodeParamsSetROI)},
      {"nvjpegDecodeParamsSetScaleFactor", At(&n->DecodeParamsSetScaleFactor),
       false},
      {"nvjpegDecodeParamsSetExifOrientation",
       At(&n->DecodeParamsSetExifOrientation), false},
      {"nvjpegDecoderCreate", At(&n->DecoderCreate)},
      {"nvjpegDecoderDestroy", At(&n->DecoderDestroy)},
      {"nvjpegDecoderJpegSupported", At(&n->DecoderJpegSupported)},
      {"nvjpegDecoderStateCreate", At(&n->DecoderStateCreate)},
      {"nvjpegDecodeJpegHost", At(&n->DecodeJpegHost)},
      {"nvjpegDecodeJpegTransferToDevice", At(&n->DecodeJpegTransferToDevice)},
      {"nvjpegDecodeJpegDevice", At(&n->DecodeJpegDevice)},
      {"nvjpegBufferPinnedCreateV2", At(&n->BufferPinnedCreateV2)},
      {"nvjpegBufferPinnedDestroy", At(&n->BufferPinnedDestroy)},
      {"nvjpegBufferDeviceCreateV2", At(&n->BufferDeviceCreateV2)},
      {"nvjpegBufferDeviceDestroy", At(&n->BufferDeviceDestroy)},
      {"nvjpegStateAttachPinnedBuffer", At(&n->StateAttachPinnedBuffer)},
      {"nvjpegStateAttachDeviceBuffer", At(&n->StateAttachDeviceBuffer)},
  };
}

const char* Name(NvjpegResult result) {
  switch (result) {
    case NvjpegResult::kSuccess:
      return "NVJPEG_STATUS_SUCCESS";
    case NvjpegResult::kNotInitialized:
      return "NVJPEG_STATUS_NOT_INITIALIZED";
    case NvjpegResult::kInvalidParameter:
      return "NVJPEG_STATUS_INVALID_PARAMETER";
    case NvjpegResult::kBadJpeg:
      return "NVJPEG_STATUS_BAD_JPEG";
    case NvjpegResult::kJpegNotSupported:
      return "NVJPEG_STATUS_JPEG_NOT_SUPPORTED";
    case NvjpegResult::kAllocatorFailure:
      return "NVJPEG_STATUS_ALLOCATOR_FAILURE";
    case NvjpegResult::kExecutionFailed:
      return "NVJPEG_STATUS_EXECUTION_FAILED";
    case NvjpegResult::kArchMismatch:
      return "NVJPEG_STATUS_ARCH_MISMATCH";
    case NvjpegResult::kInternalError:
      return "NVJPEG_STATUS_INTERNAL_ERROR";
    case NvjpegResult::kImplementationNotSupported:
      return "NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED";
    case NvjpegResult::kIncompleteBitstream:
      return "NVJPEG_STATUS_INCOMPLETE_BITSTREAM";
  }
  return "unknown nvJPEG error";
}

absl::StatusCode CodeOf(NvjpegResult result) {
  switch (result) {
    case NvjpegResult::kAllocatorFailure:
      return absl::StatusCode::kResourceExhausted;
    case NvjpegResult::kBadJpeg:
    case NvjpegResult::kIncompleteBitstream:
      return absl::StatusCode::kDataLoss;
    case NvjpegResult::kJpegNotSupported:
    case NvjpegResult::kImplementationNotSupported:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Nvjpeg>> LoadNvjpeg(
    const LibrarySearch& search) {
  ASSIGN_OR_RETURN(
      const Library library,
      Library::Open("nvJPEG (libnvjpeg.so.13)", NvjpegCandidates(search)));
  auto nvjpeg = std::make_shared<Nvjpeg>();
  nvjpeg->path = library.path();
  RETURN_IF_ERROR(Bind(library, Bindings(nvjpeg.get())));
  int* const parts[] = {&nvjpeg->major, &nvjpeg->minor, &nvjpeg->patch};
  for (int i = 0; i < 3; ++i)
    RETURN_IF_ERROR(
        Check(nvjpeg->GetProperty(i, parts[i]),
              fmt::format("asking {} for its version", nvjpeg->path)));
  return std::shared_ptr<const Nvjpeg>(std::move(nvjpeg));
}

absl::Status LoadVideoLibrary(std::string_view driver_path) {
  const std::string name = "libnvcuvid.so.1";
  std::vector<std::string> candidates;
  if (const size_t slash = driver_path.rfind('/'); slash != driver_path.npos)
    candidates.push_back(
        fmt::format("{}/{}", driver_path.substr(0, slash), name));
  candidates.push_back(name);
  return Library::Open(name, candidates).status();
}

absl::Status Check(NvjpegResult result, std::string_view what) {
  if (result == NvjpegResult::kSuccess) return absl::OkStatus();
  return MakeStatus(CodeOf(result), "{}: {} ({})", what, Name(result),
                    static_cast<int>(result));
}

}  // namespace leat::cuda
