/* Packing half of the last dimension of (1, 32, 128, 128) float32 through the C functions,
 * against a loop that copies one element at a time with memcpy and one that copies rows.
 * Prints microseconds of each, medians of one run, and the ratios. */

#define _POSIX_C_SOURCE 200809L
#include <aoti_wgpu.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 32 * 128, FULL = 128, HALF = 64, ROUNDS = 201 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values) {
  qsort(values, ROUNDS, sizeof *values, by_value);
  return values[ROUNDS / 2];
}

static void check(uint32_t code) {
  if (code == 0) return;
  fprintf(stderr, "%s\n", aoti_wgpu_last_error_message());
  exit(1);
}

/* The index walk of code that packs on the host: every element finds its own place. */
static void by_elements(float* to, const float* from, const int64_t* sizes, const int64_t* strides) {
  for (int64_t i = 0; i < ROWS * HALF; ++i) {
    int64_t rest = i, place = 0;
    for (int d = 3; d >= 0; --d) {
      place += rest % sizes[d] * strides[d];
      rest /= sizes[d];
    }
    memcpy(to + i, from + place, sizeof(float));
  }
}

static void by_rows(float* to, const float* from) {
  for (int64_t r = 0; r < ROWS; ++r) memcpy(to + r * HALF, from + r * FULL, HALF * sizeof(float));
}

int main(void) {
  const int64_t full[4] = {1, 32, 128, FULL}, half[4] = {1, 32, 128, HALF};
  const int64_t strides[4] = {32 * 128 * FULL, 128 * FULL, FULL, 1};
  AtenTensorHandle base = NULL, view = NULL, host = NULL;
  float* from = malloc(ROWS * FULL * sizeof *from);
  float* to = malloc(ROWS * HALF * sizeof *to);
  if (!from || !to) return 1;
  for (int64_t i = 0; i < ROWS * FULL; ++i) from[i] = (float)i;
  check((uint32_t)aoti_torch_empty_strided(4, full, NULL, aoti_torch_dtype_float32(),
                                           aoti_torch_device_type_mps(), 0, &base));
  check((uint32_t)aoti_torch_create_tensor_from_blob(from, 4, full, NULL, 0,
                                                     aoti_torch_dtype_float32(),
                                                     aoti_torch_device_type_cpu(), 0, &host));
  check((uint32_t)aoti_torch_copy_(base, host, 0));
  check((uint32_t)aoti_torch__reinterpret_tensor(base, 4, half, strides, 0, &view));

  static double packs[ROUNDS], elements[ROUNDS], rows[ROUNDS];
  void* pointer = NULL;
  check((uint32_t)aoti_torch_get_data_ptr(view, &pointer));
  for (int round = 0; round < ROUNDS; ++round) {
    /* The base changed, so that the view is packed anew. */
    check(aoti_wgpu_mark_written(base));
    double start = now();
    check((uint32_t)aoti_torch_get_data_ptr(view, &pointer));
    packs[round] = now() - start;
    start = now();
    by_rows(to, from);
    rows[round] = now() - start;
  }
  /* Apart, so that it leaves its memory in the caches for neither of the two. */
  for (int round = 0; round < ROUNDS; ++round) {
    const double start = now();
    by_elements(to, from, half, strides);
    elements[round] = now() - start;
  }
  aoti_wgpu_adapter_info_t adapter = {.struct_size = sizeof adapter};
  check(aoti_wgpu_adapter_info(&adapter));
  if (strcmp(adapter.memory_mode, "device") != 0 &&
      memcmp(pointer, to, ROWS * HALF * sizeof *to) != 0) {
    fprintf(stderr, "the packed view is wrong\n");
    return 1;
  }
  const double p = median(packs), e = median(elements), r = median(rows);
  printf("%s, %s memory: pack %.1f us, element loop %.1f us (%.3f of it), rows %.1f us (%.2f times)\n",
         adapter.name, adapter.memory_mode, p, e, p / e, r, p / r);
  check((uint32_t)aoti_torch_delete_tensor_object(view));
  check((uint32_t)aoti_torch_delete_tensor_object(base));
  check((uint32_t)aoti_torch_delete_tensor_object(host));
  free(from);
  free(to);
  return 0;
}
