// SPDX-License-Identifier: Apache-2.0
//
// Controls for tests of the fake CUDA driver (libcuda.so.1) and the fake nvJPEG
// (libnvjpeg.so.13): C functions beside those of the real libraries, found with
// dlsym, and environment variables, for programs that tests start.
//
// By default they are as unkind as the real ones may be.
//
// The fakes really compute, on the host: device memory is host memory, each
// stream is a thread, a kernel is its body run as loops, JPEGs are decoded by
// libjpeg-turbo. Errors that a driver need not notice are refused and recorded
// as violations: unknown and destroyed handles, copies beyond an allocation, a
// context that is not current, bytes that change while they are decoded, calls
// that spoil the capture of a graph, writes to memory that a trainer's work has
// still to read. An allocation takes whole pages of the device.
//
//   LEAT_FAKE_CUDA_FAIL     "SYMBOL:NTH:CODE;..." as fake_cuda_fail. NTH "3":
//                           the third call; "3+": it and all that follow.
//                           SYMBOL "*": calls of any symbol, counted together.
//                           CODE -1: the call never returns; -2: it aborts
//   LEAT_FAKE_CUDA_MEMORY   bytes of each device (16 GiB)
//   LEAT_FAKE_CUDA_DEVICES  devices (1)
//   LEAT_FAKE_CUDA_NAME     their name ("Fake GPU")
//   LEAT_FAKE_CUDA_COMPUTE  compute capability × 10 (90)
//   LEAT_FAKE_CUDA_VERSION  version of the driver (13000)
//   LEAT_FAKE_CUDA_REPORT   a file to which a line is appended at exit: the
//                           live objects, and the violations
//   LEAT_FAKE_NVJPEG_ENGINES, LEAT_FAKE_NVJPEG_CORES   (7, 1); 0: none
//   LEAT_FAKE_NVJPEG_ROI    0: the engine cannot decode regions (1)
//   LEAT_FAKE_NVJPEG_SCALE  0: the engine cannot decode at 1/2, 1/4, 1/8 (1)
//   LEAT_FAKE_CUDA_PINNED   bytes that may be page-locked (64 GiB)
//   LEAT_FAKE_CUDA_REFUSE_PINNED  N: every Nth request for page-locked memory
//                           is refused with OUT_OF_MEMORY; 0: none (2)
//   LEAT_FAKE_CUDA_REGISTER_MS  time to page-lock a consumer's memory (5)
//   LEAT_FAKE_CUDA_TRAINER  1: the process is a trainer's (0): another thread
//                           captures a graph at all times, so that calls which
//                           would spoil that fail unless their thread is
//                           RELAXED; and memory is watched that queued copies
//                           and fake_cuda_reads have still to read
//   LEAT_FAKE_CUDA_GRANULARITY  of virtual memory, in this process (2 MiB);
//                           sizes that are not its multiples are refused
//   LEAT_FAKE_NVJPEG_ORDERED  1: the engines follow their stream (0)
//   LEAT_FAKE_NVJPEG_PREALLOCATE  the code with which PreAllocate fails, which
//                           leaves its state half made; 0: it succeeds (5:
//                           ALLOCATOR_FAILURE)
//   LEAT_FAKE_NVJPEG_BATCH_DAMAGED  the code for a batch with a damaged image
//                           (6: EXECUTION_FAILED)
//   LEAT_FAKE_NVJPEG_GRAY   0: truncated images are damaged, instead of gray
//                           below their end (1)
//   LEAT_FAKE_NVJPEG_DAMAGED  the code for a damaged image that is decoded by
//                           itself (3: BAD_JPEG)
//   LEAT_FAKE_CUDA_STOP     N: the Nth piece of work of all streams and engines
//                           never ends; 0: each does (0)
//   LEAT_FAKE_NVJPEG_PARSE_SPOILS  1: a parse that fails leaves a handle that
//                           parses nothing any more (1)
//   LEAT_FAKE_NVJPEG_PARSE_TOGETHER  N: a parse ends when N of them run at the
//                           same time; 0: at once (0)
//   LEAT_FAKE_NVJPEG_TURN   1: images are turned as EXIF says if the
//                           parameters' orientation was never set (1)
//   LEAT_FAKE_NVJPEG_VIDEO  1: engines need libnvcuvid, which the loader finds
//                           only if it is loaded already (1)
//   LEAT_FAKE_NVJPEG_WHOLE_MCUS  1: engines write all of an image's last MCUs,
//                           also the part outside the image; 2: and as much
//                           again beside it (0)
//   LEAT_FAKE_NVJPEG_WRONG  which engine results are wrong: 1 whole images in
//                           colours, 2 luma, 3 regions, 4, 5, 6 images at 1/2,
//                           1/4, 1/8; 7 and 8: by CUDA's backends (0)
//   LEAT_FAKE_NVJPEG_EDGES  1: unreliable pixels are spoilt: at a region's
//                           edge inside an image whose chroma is interpolated,
//                           and the last pixels of a reduced image whose source
//                           has only a part of them (1)
//
// The unkind settings, whether they are on by default, and a test that fails if
// Leat does not bear them:
//
//   REFUSE_PINNED   on   GpuScarce.ABlockThatIsRefusedIsAskedForOnceMore,
//                        GpuScarce.ASlotThatMayNotBePageLockedIsSlowerAndRight;
//                        off under tests/gpu/run, which measures such memory
//   REGISTER_MS     on   PinnedSharedTest.OthersDoNotWaitForIt
//   TRAINER         on   where a test is a trainer (client_device_test, the
//                        consumers of e2e.device and of python_e2e): 16 of its
//                        tests; in workers it is off
//   GRANULARITY     on   e2e.device, a worker that maps in other units
//   ORDERED = 0     on   GpuScarce.TheEnginesAreCalledWhenThePassBeforeHasEnded
//   PREALLOCATE     on   NvjpegShapes.APreAllocationThatSucceedsChangesNoByte
//   BATCH_DAMAGED,  on   NvjpegShapes.ADamagedImageIsFoundOutByTheHost, which
//   DAMAGED              sets each to every code
//   GRAY            on   NvjpegShapes.ATruncatedFileIsDamagedThoughTheEngines…
//   EDGES           on   NvjpegShapes.RegionsOfRandomPipelinesHaveTheWhole…
//   STOP            off  GpuScarce.AGpuThatDoesNotComeBackEndsTheWorker
//   WRONG           off  NvjpegTrial.WrongPixelsAreFoundOutAtTheStart
//   PARSE_SPOILS    on   NvjpegBehind.ADamagedFileDoesNotChooseWhoDecodes…
//   PARSE_TOGETHER  off  NvjpegQuestionsTest.NoImageWaitsForTheQuestionsOf…: most
//                        tests prepare rows on one thread
//   TURN            on   NvjpegBehind.NvjpegTurnsNoImage
//   VIDEO           on   all tests with engines, and GpuWithoutVideo
//   WHOLE_MCUS      off  NvjpegShapes.WhatEnginesWriteBesideAnImageHarmsNone:
//                        raw batches of tests have no room for it
//   ROI, SCALE = 0  off  NvjpegShapes.WhatTheEnginesCannotDoIsNotAskedOfThem:
//                        with them off no region or scale is decoded
//   ENGINES = 0     off  GpuTest.WithoutEnginesCudaDecodes
//   FAIL            off  GpuFaultsTest, GpuScarce.AGpuThatGoesIsSaidOnce…: a
//                        driver that fails leaves no ordinary test
//   MEMORY, PINNED  off  GpuFaultsTest.AGpuThatCannotBeHadSaysWhatToDo,
//                        GpuScarce.BlocksThatAreKeptGoBackWhereMemoryIsShort:
//                        how much is short depends on the test
//   COMPUTE,        off  GpuFaultsTest.AGpuThatCannotBeHadSaysWhatToDo
//   VERSION
//   DEVICES = 0     off  GpuScarce.AProcessThatIsShownNoGpuSaysWhy
#pragma once

#include <stddef.h>
#include <stdint.h>

extern "C" {

// Goes back to the environment's settings, no faults, no counts. Nothing may be
// in flight; live objects are forgotten.
void fake_cuda_reset(void);
// Resets totals, except refusals and spinning waits.
void fake_cuda_forget(void);
// The nth call from now on of `symbol` returns `code`; `onwards`: and so do all
// that follow. Codes that poison a real context poison this one, as do those
// that mean a GPU that has gone (46, 100, 101, 802, 999: reset, off the bus,
// its MIG instance destroyed): all later calls return them.
void fake_cuda_fail(const char* symbol, uint64_t nth, int onwards, int code);
// "memory", "devices", "compute", "version", "engines", "cores", "roi",
// "scale", "edges", "damaged", "batch_damaged", "gray", "preallocate",
// "ordered", "stop", "parse_spoils", "parse_together", "trainer", "turn",
// "video", "whole_mcus", "wrong", "pinned", "refuse_pinned", "register_ms",
// "granularity". 0: there is no such setting.
int fake_cuda_set(const char* setting, uint64_t value);
uint64_t fake_cuda_get(const char* setting);

// Counts the calls of a symbol; "*": of all.
uint64_t fake_cuda_calls(const char* symbol);
// Counts live objects: "allocations", "host_allocations", "registrations",
// "streams", "events", "modules", "contexts", "handles", "reservations",
// "mappings", "graphs", "nvjpeg_handles", "nvjpeg_states", ...; "*": all
// together. And totals: "pageable_copies", "pageable_files", "launches",
// "hardware_images", and among these "region_images", "scaled_images", and
// "mixed_images", which were in a batch of several chroma samplings;
// "hybrid_images" and "gpu_hybrid_images", by CUDA's backend;
// "pinned_refusals"; "spinning_waits", of a host, for a stream or an event.
int64_t fake_cuda_count(const char* what);
uint64_t fake_cuda_violations(void);
// Returns the text of the first violations; nullptr beyond them.
const char* fake_cuda_violation(uint64_t index);
void fake_cuda_forget_violations(void);

// While held, streams begin nothing new.
void fake_cuda_hold(void);
void fake_cuda_release(void);
// The same for one stream.
void fake_cuda_hold_stream(void* stream);
void fake_cuda_release_stream(void* stream);
// Queues a kernel that reads the memory. 0: there is no such stream.
int fake_cuda_reads(void* stream, const void* memory, size_t bytes);

// Adds a kernel to modules besides Leat's: `params` 8-byte parameters.
void fake_cuda_kernel(const char* name, int params,
                      void (*run)(const uint64_t* params, unsigned threads));

// For the fake nvJPEG.
int fake_cuda_enter(const char* symbol, int* code);  // 0: returns *code
void fake_cuda_add(const char* what, int64_t delta);
void fake_cuda_violate(const char* text);
int fake_cuda_has_context(void);  // on this thread
int fake_cuda_is_device(const void* memory, size_t bytes);
int fake_cuda_is_pinned(const void* memory, size_t bytes);
// 0: no such stream, or not of the current context.
int fake_cuda_enqueue(void* stream, void (*run)(void*), void* argument);
// A GPU's JPEG engines: a thread that does not wait for streams.
void* fake_cuda_engines(void);
void fake_cuda_engines_free(void* engines);  // after their work is done
// Runs on the engines, in this order; the stream waits for all. 0: as above.
int fake_cuda_engines_run(void* engines, void* stream, void (*run)(void*),
                          void* const* arguments, size_t count);

}  // extern "C"
