/* What the C and C++ clients share: checks that say where they failed, and tensors of f32. */
#ifndef CHECK_H
#define CHECK_H

#include <aoti_wgpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: %s\n  last error: %s\n", __FILE__, __LINE__, #condition, \
              aoti_wgpu_last_error_message());                                    \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

/* The call succeeds. */
#define OK(call) CHECK((call) == 0)

/* The call fails with this code, and the message has this text. */
#define REFUSED(call, code, text)                                    \
  do {                                                               \
    CHECK((call) == (code));                                         \
    CHECK(strstr(aoti_wgpu_last_error_message(), (text)) != NULL);   \
  } while (0)

#define INVALID AOTI_WGPU_INVALID_ARGUMENT

static inline aoti_wgpu_stats_t stats(void) {
  aoti_wgpu_stats_t now;
  memset(&now, 0, sizeof now);
  now.struct_size = sizeof now;
  OK(aoti_wgpu_stats(&now));
  return now;
}

static inline AtenTensorHandle empty(int64_t ndim, const int64_t* sizes, int32_t device) {
  AtenTensorHandle tensor = NULL;
  OK(aoti_torch_empty_strided(ndim, sizes, NULL, aoti_torch_dtype_float32(), device, 0, &tensor));
  CHECK(tensor != NULL);
  return tensor;
}

/* A tensor over `data` in host memory. */
static inline AtenTensorHandle over(void* data, int64_t ndim, const int64_t* sizes) {
  AtenTensorHandle tensor = NULL;
  OK(aoti_torch_create_tensor_from_blob(data, ndim, sizes, NULL, 0, aoti_torch_dtype_float32(),
                                        aoti_torch_device_type_cpu(), 0, &tensor));
  return tensor;
}

static inline AtenTensorHandle view(AtenTensorHandle of, int64_t ndim, const int64_t* sizes,
                                    const int64_t* strides, int64_t increment) {
  AtenTensorHandle tensor = NULL;
  OK(aoti_torch__reinterpret_tensor(of, ndim, sizes, strides, increment, &tensor));
  return tensor;
}

static inline void drop(AtenTensorHandle tensor) {
  OK(aoti_torch_delete_tensor_object(tensor));
}

/* Copies between `data` and a tensor of any layout and device, row-major. */
static inline void transfer(AtenTensorHandle tensor, float* data, bool to_tensor) {
  int64_t ndim = -1;
  int64_t* sizes = NULL;
  OK(aoti_torch_get_dim(tensor, &ndim));
  OK(aoti_torch_get_sizes(tensor, &sizes));
  AtenTensorHandle host = over(data, ndim, sizes);
  OK(to_tensor ? aoti_torch_copy_(tensor, host, 0) : aoti_torch_copy_(host, tensor, 0));
  drop(host);
}

static inline void put(AtenTensorHandle tensor, float* data) {
  transfer(tensor, data, true);
}

static inline void get(AtenTensorHandle tensor, float* data) {
  transfer(tensor, data, false);
}

/* The tensor's elements are these. */
#define HOLDS(tensor, ...)                                                \
  do {                                                                    \
    const float expected[] = {__VA_ARGS__};                               \
    float found[sizeof expected / sizeof *expected];                      \
    int64_t numel = -1;                                                   \
    OK(aoti_torch_get_numel(tensor, &numel));                             \
    CHECK((size_t)numel == sizeof expected / sizeof *expected);           \
    get(tensor, found);                                                   \
    CHECK(memcmp(expected, found, sizeof found) == 0);                    \
  } while (0)

/* Nothing is left. */
static inline void nothing_left(void) {
  OK(aoti_wgpu_synchronize());
  aoti_wgpu_stats_t now = stats();
  if (now.live_handles || now.live_storages || now.live_device_bytes || now.live_host_bytes) {
    fprintf(stderr, "left: %llu handles, %llu storages, %llu device bytes, %llu host bytes\n",
            (unsigned long long)now.live_handles, (unsigned long long)now.live_storages,
            (unsigned long long)now.live_device_bytes, (unsigned long long)now.live_host_bytes);
    exit(1);
  }
}

#endif
