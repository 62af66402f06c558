// SPDX-License-Identifier: Apache-2.0
//
// jpeg_compression_distortion: libjpeg's encoder (colours halved both ways, the
// accurate DCT, its standard tables) and its decoder with default settings, as
// DALI uses them on the CPU through OpenCV.
//
// libjpeg reports errors by a function that must not return; ours jumps back
// into Encode or Decode. These have no object with a destructor.
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>

extern "C" {
#include <jpeglib.h>
}

#include "core/status.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/operators/args.h"
#include "worker/image/operators/image_sides.h"

namespace leat::worker {
namespace {

struct ErrorState {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  jmp_buf jump;
  char text[JMSG_LENGTH_MAX] = {};
};

[[noreturn]] void OnError(j_common_ptr cinfo) {
  auto* error = reinterpret_cast<ErrorState*>(cinfo->err);
  cinfo->err->format_message(cinfo, error->text);
  std::longjmp(error->jump, 1);
}
void OnMessage(j_common_ptr, int) {}

jpeg_error_mgr* Prepared(ErrorState* error) {
  jpeg_std_error(&error->manager);
  error->manager.error_exit = OnError;
  error->manager.emit_message = OnMessage;
  return &error->manager;
}

struct Pixels {
  uint8_t* first;
  int height, width, channels;

  size_t pitch() const { return static_cast<size_t>(width) * channels; }
};

struct Encoded {
  unsigned char* data = nullptr;
  size_t size = 0;

  ~Encoded() { free(data); }
};

// Where libjpeg writes. Its own manager of memory would leave the caller with
// memory that it has freed, if there is no more of it.
struct Destination {
  jpeg_destination_mgr manager;  // first: libjpeg hands out a pointer to it
  Encoded* out;
};

boolean Enlarge(j_compress_ptr cinfo) {
  auto* to = reinterpret_cast<Destination*>(cinfo->dest);
  const size_t used = to->out->size;  // all of it
  const size_t size = used == 0 ? 4096 : 2 * used;
  void* const memory = realloc(to->out->data, size);
  if (memory == nullptr) {
    auto* error = reinterpret_cast<ErrorState*>(cinfo->err);
    std::snprintf(error->text, sizeof error->text, "no memory for %zu bytes",
                  size);
    std::longjmp(error->jump, 1);
  }
  to->out->data = static_cast<unsigned char*>(memory);
  to->out->size = size;
  to->manager.next_output_byte = to->out->data + used;
  to->manager.free_in_buffer = size - used;
  return TRUE;
}
void BeginFile(j_compress_ptr cinfo) { Enlarge(cinfo); }
void EndFile(j_compress_ptr cinfo) {
  auto* to = reinterpret_cast<Destination*>(cinfo->dest);
  to->out->size -= to->manager.free_in_buffer;
}

// Returns false on an error; `error` then says why.
bool Encode(const Pixels& in, int quality, ErrorState* error, Encoded* out) {
  jpeg_compress_struct cinfo = {};
  cinfo.err = Prepared(error);
  Destination to = {};
  to.out = out;
  to.manager.init_destination = BeginFile;
  to.manager.empty_output_buffer = Enlarge;
  to.manager.term_destination = EndFile;
  if (setjmp(error->jump) != 0) {
    jpeg_destroy_compress(&cinfo);
    return false;
  }
  jpeg_create_compress(&cinfo);
  cinfo.dest = &to.manager;
  cinfo.image_height = static_cast<JDIMENSION>(in.height);
  cinfo.image_width = static_cast<JDIMENSION>(in.width);
  cinfo.input_components = in.channels;
  cinfo.in_color_space = in.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&cinfo);
  cinfo.dct_method = JDCT_ISLOW;
  jpeg_set_quality(&cinfo, quality, TRUE);
  jpeg_start_compress(&cinfo, TRUE);
  while (cinfo.next_scanline < cinfo.image_height) {
    JSAMPROW row = in.first + cinfo.next_scanline * in.pitch();
    jpeg_write_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  return true;
}

bool Decode(const Encoded& in, ErrorState* error, const Pixels& out) {
  jpeg_decompress_struct cinfo = {};
  cinfo.err = Prepared(error);
  if (setjmp(error->jump) != 0) {
    jpeg_destroy_decompress(&cinfo);
    return false;
  }
  jpeg_create_decompress(&cinfo);
  jpeg_mem_src(&cinfo, in.data, static_cast<unsigned long>(in.size));
  jpeg_read_header(&cinfo, TRUE);
  cinfo.out_color_space = out.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  cinfo.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&cinfo);
  while (cinfo.output_scanline < cinfo.output_height) {
    JSAMPROW row = out.first + cinfo.output_scanline * out.pitch();
    jpeg_read_scanlines(&cinfo, &row, 1);
  }
  jpeg_finish_decompress(&cinfo);
  jpeg_destroy_decompress(&cinfo);
  return true;
}

class JpegDistortion final : public OperatorKernel {
 public:
  JpegDistortion(const CheckedGraph& graph, uint32_t node)
      : quality_(FloatArg::Of(graph, node, "quality")) {}

  absl::Status Shape(const OperatorCall& call, Tensor* result) const override {
    RETURN_IF_ERROR(OperatorKernel::Shape(call, result));
    return CheckSides(*result, JPEG_MAX_DIMENSION);
  }

  // The file is seldom larger than the pixels.
  uint64_t WorkBytes(const OperatorCall& call) const override {
    return call.inputs[0]->bytes();
  }

  absl::Status Run(const OperatorCall& call,
                   const Tensor& result) const override {
    ASSIGN_OR_RETURN(const double quality, quality_.In(call));
    const auto pixels = [](const Tensor& image) {
      return Pixels{reinterpret_cast<uint8_t*>(image.data),
                    static_cast<int>(image.dims[0]),
                    static_cast<int>(image.dims[1]),
                    static_cast<int>(image.dims[2])};
    };
    const MallocWatch memory;
    ErrorState error;
    Encoded encoded;
    if (!Encode(pixels(*call.inputs[0]),
                static_cast<int>(std::nearbyint(quality)), &error, &encoded) ||
        !Decode(encoded, &error, pixels(result)))
      return memory.Verdict(ResourceExhausted("JPEG of an image of {} × {}: {}",
                                              result.dims[1], result.dims[0],
                                              error.text));
    return absl::OkStatus();
  }

 private:
  const FloatArg quality_;
};

constexpr KernelMaker kJpegDistortionMakers[] = {
    {"jpeg_compression_distortion", Make<JpegDistortion>},
};

}  // namespace

constinit const KernelTable kJpegDistortionKernels = kJpegDistortionMakers;

}  // namespace leat::worker
