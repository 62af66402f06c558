// SPDX-License-Identifier: Apache-2.0
//
// The C interface: Python capsules, and tensors as DLPack. It uses leat.h only.
// The structures are DLPack's (dmlc/dlpack, versions 0.x and 1.0), whose layout
// is fixed.
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <vector>

#include "client/leat/leat.h"

namespace {

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
constexpr int32_t kDLCPU = 1, kDLCUDA = 2;

struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
enum : uint8_t {
  kDLInt = 0,
  kDLUInt = 1,
  kDLFloat = 2,
  kDLBfloat = 4,
  kDLBool = 6
};

struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};

struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor* self);
};

struct DLManagedTensorVersioned {
  uint32_t major, minor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensorVersioned* self);
  uint64_t flags;
  DLTensor dl_tensor;
};

// A managed tensor and the data that it points to.
template <class Managed>
struct Export {
  Managed managed{};
  leat_batch* batch = nullptr;
  std::vector<int64_t> shape, strides;

  static void Delete(Managed* managed) {
    const std::unique_ptr<Export> self(
        static_cast<Export*>(managed->manager_ctx));
    leat_batch_free(self->batch);
  }
};

DLDataType TypeOf(const char* name) {
  constexpr struct {
    const char* name;
    DLDataType type;
  } kTypes[] = {
      {"bool", {kDLBool, 8, 1}},        {"uint8", {kDLUInt, 8, 1}},
      {"int32", {kDLInt, 32, 1}},       {"int64", {kDLInt, 64, 1}},
      {"float16", {kDLFloat, 16, 1}},   {"float32", {kDLFloat, 32, 1}},
      {"int8", {kDLInt, 8, 1}},         {"int16", {kDLInt, 16, 1}},
      {"uint16", {kDLUInt, 16, 1}},     {"uint32", {kDLUInt, 32, 1}},
      {"bfloat16", {kDLBfloat, 16, 1}},
  };
  for (const auto& known : kTypes)
    if (std::strcmp(known.name, name) == 0) return known.type;
  return {};
}

// Takes over the caller's reference to the batch.
template <class Managed>
Managed* Make(leat_batch* batch, const leat_tensor& tensor) {
  auto made = std::make_unique<Export<Managed>>();
  made->batch = batch;
  made->shape.assign(tensor.shape, tensor.shape + tensor.rank);
  made->strides.assign(tensor.rank, 1);
  for (size_t i = tensor.rank; i-- > 1;)
    made->strides[i - 1] = made->strides[i] * made->shape[i];
  made->managed.dl_tensor = {.data = tensor.data,
                             .device = tensor.device < 0
                                           ? DLDevice{kDLCPU, 0}
                                           : DLDevice{kDLCUDA, tensor.device},
                             .ndim = static_cast<int32_t>(tensor.rank),
                             .dtype = TypeOf(tensor.dtype),
                             .shape = made->shape.data(),
                             .strides = made->strides.data(),
                             .byte_offset = 0};
  made->managed.manager_ctx = made.get();
  made->managed.deleter = Export<Managed>::Delete;
  return &made.release()->managed;
}

// Returns a function of the process's Python interpreter; nullptr: there is
// none.
template <class Function>
Function* OfPython(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

constexpr char kSlotName[] = "leat_slot";

struct Slot {
  void* pointer = nullptr;  // first: the capsule's pointer points to it
  void (*release)(void*) = nullptr;
  bool waits = false;
  const pid_t process = getpid();
};

void FreeSlot(void* capsule) {
  const auto pointer_of =
      OfPython<void*(void*, const char*)>("PyCapsule_GetPointer");
  if (pointer_of == nullptr) return;
  const std::unique_ptr<Slot> slot(
      static_cast<Slot*>(pointer_of(capsule, kSlotName)));
  if (!slot || slot->pointer == nullptr || slot->process != getpid()) return;
  const auto give_gil = OfPython<void*()>("PyEval_SaveThread");
  const auto take_gil = OfPython<void(void*)>("PyEval_RestoreThread");
  if (!slot->waits || give_gil == nullptr || take_gil == nullptr) {
    slot->release(slot->pointer);
    return;
  }
  void* const thread = give_gil();
  slot->release(slot->pointer);
  take_gil(thread);
}

template <class Managed>
void Delete(void* managed) {
  auto* tensor = static_cast<Managed*>(managed);
  tensor->deleter(tensor);
}

}  // namespace

void* leat_batch_dlpack(leat_batch* batch, size_t index, int versioned,
                        void* stream) {
  if (batch == nullptr || index >= leat_batch_num_tensors(batch))
    return nullptr;
  if (stream != nullptr && !leat_batch_use_on_stream(batch, stream))
    return nullptr;
  leat_batch_retain(batch);
  const leat_tensor tensor = leat_batch_tensor(batch, index);
  if (versioned == 0) return Make<DLManagedTensor>(batch, tensor);
  auto* const managed = Make<DLManagedTensorVersioned>(batch, tensor);
  managed->major = 1;
  return managed;
}

void leat_dlpack_capsule_free(void* capsule) {
  // An error may be set in the interpreter; these two functions do not touch
  // it.
  const auto name_of = OfPython<const char*(void*)>("PyCapsule_GetName");
  const auto pointer_of =
      OfPython<void*(void*, const char*)>("PyCapsule_GetPointer");
  if (name_of == nullptr || pointer_of == nullptr) return;
  const char* const name = name_of(capsule);
  if (name == nullptr) return;
  if (std::strcmp(name, "dltensor") == 0)
    Delete<DLManagedTensor>(pointer_of(capsule, name));
  else if (std::strcmp(name, "dltensor_versioned") == 0)
    Delete<DLManagedTensorVersioned>(pointer_of(capsule, name));
}

void* leat_slot_capsule(void (*release)(void*), int waits) {
  const auto make =
      OfPython<void*(void*, const char*, void (*)(void*))>("PyCapsule_New");
  if (make == nullptr) return nullptr;
  auto slot = std::make_unique<Slot>();
  slot->release = release;
  slot->waits = waits != 0;
  void* const capsule = make(slot.get(), kSlotName, FreeSlot);
  if (capsule != nullptr) slot.release();
  return capsule;
}
