/* The C functions in use: splits a fused tensor by three views with holes, lets the GPU pack
 * one of them, and checks it against a walk on the host. Built by `make c_client`. */
#include <aoti_wgpu.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOKENS = 128, HEADS = 8, WIDTH = 64 };

static void check(int32_t code, const char* what) {
  if (code != AOTI_WGPU_OK) {
    fprintf(stderr, "%s: error %d: %s\n", what, code, aoti_wgpu_last_error_message());
    exit(1);
  }
}

int main(void) {
  const int32_t f32 = aoti_torch_dtype_float32();
  const int32_t cpu = aoti_torch_device_type_cpu(), mps = aoti_torch_device_type_mps();
  const int64_t fused[] = {TOKENS, 3, HEADS, WIDTH};
  const int64_t part[] = {TOKENS, HEADS, WIDTH};
  const int64_t strides[] = {3 * HEADS * WIDTH, WIDTH, 1};
  static float input[TOKENS * 3 * HEADS * WIDTH], output[TOKENS * HEADS * WIDTH];
  for (int i = 0; i < TOKENS * 3 * HEADS * WIDTH; ++i) input[i] = (float)i;

  check(aoti_wgpu_init_logging(), "init_logging");
  aoti_wgpu_adapter_info_t info = {.struct_size = sizeof info};
  check((int32_t)aoti_wgpu_adapter_info(&info), "adapter_info");
  printf("aoti-wgpu %s on %s (%s, %s memory)\n", aoti_wgpu_version(), info.name, info.backend,
         info.memory_mode);

  /* Upload: a tensor over the host's array, and a copy of it on the device. */
  AtenTensorHandle host, qkv, key, result;
  check(aoti_torch_create_tensor_from_blob(input, 4, fused, NULL, 0, f32, cpu, 0, &host), "blob");
  check(aoti_torch_empty_strided(4, fused, NULL, f32, mps, 0, &qkv), "empty_strided");
  check(aoti_torch_copy_(qkv, host, 0), "copy_ to the device");

  /* The keys: every third row of heads. Asking for their address packs them. */
  void* address = NULL;
  check(aoti_torch__reinterpret_tensor(qkv, 3, part, strides, HEADS * WIDTH, &key), "view");
  check(aoti_torch_get_data_ptr(key, &address), "get_data_ptr");

  check(aoti_torch_create_tensor_from_blob(output, 3, part, NULL, 0, f32, cpu, 0, &result), "blob");
  check(aoti_torch_copy_(result, key, 0), "copy_ to the host");
  for (int64_t t = 0; t < TOKENS; ++t) {
    for (int64_t i = 0; i < HEADS * WIDTH; ++i) {
      const float expected = input[(t * 3 + 1) * HEADS * WIDTH + i];
      if (output[t * HEADS * WIDTH + i] != expected) {
        fprintf(stderr, "token %d, element %d: %g, not %g\n", (int)t, (int)i,
                (double)output[t * HEADS * WIDTH + i], (double)expected);
        return 1;
      }
    }
  }

  const AtenTensorHandle all[] = {host, qkv, key, result};
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    check(aoti_torch_delete_tensor_object(all[i]), "delete");
  aoti_wgpu_stats_t stats = {.struct_size = sizeof stats};
  check((int32_t)aoti_wgpu_stats(&stats), "stats");
  printf("%d elements are right; %llu packs, %llu submissions; %llu handles left\n",
         TOKENS * HEADS * WIDTH, (unsigned long long)stats.packs,
         (unsigned long long)stats.submits, (unsigned long long)stats.live_handles);
  return 0;
}
