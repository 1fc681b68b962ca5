/* Who owns what, for how long, and what is refused. */
#include "check.h"

static int32_t mps;

static void a_blob_comes_back_to_its_address(void) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const int64_t sizes[] = {2, 3};
  for (int round = 0; round < 3; ++round) {
    AtenTensorHandle tensor = over(data, 2, sizes);
    void* at = NULL;
    OK(aoti_torch_get_data_ptr(tensor, &at));
    CHECK(at == data);
    drop(tensor);
    cleanup_memory();
  }
  nothing_left();
}

static void two_blobs_share_an_address(void) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const int64_t sizes[] = {6};
  for (int order = 0; order < 2; ++order) {
    AtenTensorHandle pair[2] = {over(data, 1, sizes), over(data, 1, sizes)};
    drop(pair[order]);
    HOLDS(pair[!order], 0, 1, 2, 3, 4, 5);
    drop(pair[!order]);
  }
  nothing_left();
}

static void a_handle_is_valid_until_its_own_delete(void) {
  const int64_t sizes[] = {8}, half[] = {4}, unit[] = {1};
  float data[] = {0, 1, 2, 3, 4, 5, 6, 7};
  AtenTensorHandle a = empty(1, sizes, mps);
  put(a, data);
  AtenTensorHandle v = view(a, 1, half, unit, 4);
  AtenTensorHandle h = NULL;
  OK(aoti_torch_new_tensor_handle(v, &h));
  drop(a);
  drop(v);
  HOLDS(h, 4, 5, 6, 7);
  CHECK(stats().live_handles == 1);
  CHECK(stats().live_device_bytes == 32);
  drop(h);
  nothing_left();

  a = empty(1, sizes, mps);
  v = view(a, 1, half, unit, 4);
  drop(v);
  drop(a);
  nothing_left();
}

static void an_upload_takes_its_source(void) {
  enum { N = 1 << 16 };
  const int64_t sizes[] = {N};
  AtenTensorHandle device = empty(1, sizes, mps);
  for (int round = 0; round < 4; ++round) {
    float* source = (float*)malloc(N * sizeof(float));
    CHECK(source != NULL);
    for (int i = 0; i < N; ++i) source[i] = (float)(i + round);
    AtenTensorHandle host = over(source, 1, sizes);
    OK(aoti_torch_copy_(device, host, 1));
    drop(host);
    memset(source, 0xff, N * sizeof(float));
    free(source);
    float* back = (float*)malloc(N * sizeof(float));
    CHECK(back != NULL);
    get(device, back);
    for (int i = 0; i < N; ++i) CHECK(back[i] == (float)(i + round));
    free(back);
  }
  drop(device);
  nothing_left();
}

static void copies_broadcast_or_refuse(void) {
  const int64_t six[] = {6}, two_three[] = {2, 3}, three_two[] = {3, 2}, three[] = {3},
                one_six[] = {1, 6}, one[] = {1};
  float data[] = {0, 1, 2, 3, 4, 5};
  const int32_t devices[] = {aoti_torch_device_type_cpu(), mps};
  for (int d = 0; d < 2; ++d) {
    AtenTensorHandle to = empty(2, two_three, devices[d]);
    AtenTensorHandle flat = empty(1, six, devices[d]);
    put(flat, data);
    AtenTensorHandle from = over(data, 1, three);
    OK(aoti_torch_copy_(to, from, 0));
    HOLDS(to, 0, 1, 2, 0, 1, 2);
    drop(from);
    from = over(data + 5, 1, one);
    OK(aoti_torch_tensor_copy_(from, to));
    HOLDS(to, 5, 5, 5, 5, 5, 5);
    drop(from);
    REFUSED(aoti_torch_copy_(to, flat, 0), INVALID, "src");
    from = over(data, 2, three_two);
    REFUSED(aoti_torch_copy_(to, from, 0), INVALID, "[3, 2]");
    drop(from);
    from = over(data, 2, one_six);
    REFUSED(aoti_torch_copy_(flat, from, 0), INVALID, "src");
    drop(from);
    HOLDS(to, 5, 5, 5, 5, 5, 5);
    HOLDS(flat, 0, 1, 2, 3, 4, 5);
    drop(to);
    drop(flat);
  }
  nothing_left();
}

static void deleted_and_wild_handles_are_refused(void) {
  const int64_t sizes[] = {4};
  AtenTensorHandle tensor = empty(1, sizes, mps);
  AtenTensorHandle inside = (AtenTensorHandle)((char*)tensor + 8);
  int64_t numel = -7;
  REFUSED(aoti_torch_get_numel(inside, &numel), INVALID, "into a tensor handle");
  REFUSED(aoti_torch_delete_tensor_object(inside), INVALID, "tensor is 0x");
  uint64_t other[8] = {0};
  REFUSED(aoti_torch_delete_tensor_object((AtenTensorHandle)other), INVALID, "did not make");
  REFUSED(aoti_torch_zero_((AtenTensorHandle)other), INVALID, "self");
  OK(aoti_torch_delete_tensor_object(NULL));
  drop(tensor);
  REFUSED(aoti_torch_delete_tensor_object(tensor), INVALID, "was deleted");
  REFUSED(aoti_torch_get_numel(tensor, &numel), INVALID, "was deleted");
  REFUSED(aoti_torch_get_numel(NULL, &numel), INVALID, "tensor is null");
  REFUSED(aoti_torch_copy_(tensor, tensor, 0), INVALID, "self");
  CHECK(numel == -7);
  nothing_left();
}

static void bad_arguments_are_named(void) {
  const int64_t sizes[] = {2, 3}, negative[] = {2, -3}, huge[] = {INT64_MAX, 2}, one[] = {1, 1},
                large[] = {(int64_t)1 << 31, 0};
  const int32_t f32 = aoti_torch_dtype_float32();
  AtenTensorHandle out = (AtenTensorHandle)sizes;
#define EMPTY(ndim, sizes, strides, dtype, device, index) \
  aoti_torch_empty_strided(ndim, sizes, strides, dtype, device, index, &out)
  REFUSED(EMPTY(2, NULL, NULL, f32, mps, 0), INVALID, "sizes is null");
  REFUSED(EMPTY(-1, sizes, NULL, f32, mps, 0), INVALID, "ndim is -1");
  REFUSED(EMPTY(17, sizes, NULL, f32, mps, 0), INVALID, "ndim is 17");
  REFUSED(EMPTY(2, negative, NULL, f32, mps, 0), INVALID, "[2, -3]");
  REFUSED(EMPTY(2, sizes, negative, f32, mps, 0), INVALID, "strides");
  REFUSED(EMPTY(2, huge, NULL, f32, mps, 0), INVALID, "overflow");
  REFUSED(EMPTY(2, huge, one, f32, mps, 0), INVALID, "overflow");
  REFUSED(EMPTY(2, large, NULL, f32, mps, 0), AOTI_WGPU_NOT_SUPPORTED, "2147483648");
  REFUSED(EMPTY(2, sizes, NULL, 99, mps, 0), INVALID, "dtype is 99");
  REFUSED(EMPTY(2, sizes, NULL, f32, aoti_torch_device_type_cuda(), 0), INVALID, "device_type is 1");
  REFUSED(EMPTY(2, sizes, NULL, f32, 2, 0), INVALID, "device_type is 2");
  REFUSED(EMPTY(2, sizes, NULL, f32, mps, 1), INVALID, "device_index is 1");
#undef EMPTY
  REFUSED(aoti_torch_empty_strided(2, sizes, NULL, f32, mps, 0, NULL), INVALID, "out is null");
  REFUSED(aoti_torch_empty_strided_pinned(2, sizes, NULL, f32, mps, 0, &out), INVALID,
          "device_type is 13");
  float data[6] = {0};
  REFUSED(aoti_torch_create_tensor_from_blob(NULL, 2, sizes, NULL, 0, f32, mps, 0, &out), INVALID,
          "data is null");
  REFUSED(aoti_torch_create_tensor_from_blob(data, 2, sizes, NULL, -1, f32, mps, 0, &out), INVALID,
          "storage_offset is -1");
  REFUSED(aoti_torch_create_tensor_from_blob_v2(data, 2, sizes, NULL, 0, f32, mps, 0, &out,
                                                aoti_torch_layout_sparse_csr(), NULL, 0),
          INVALID, "layout is 2");
  CHECK(out == (AtenTensorHandle)sizes);

  AtenTensorHandle tensor = empty(2, sizes, mps);
  const int64_t wide[] = {7}, unit[] = {1};
  REFUSED(aoti_torch__reinterpret_tensor(tensor, 1, wide, unit, 0, &out), INVALID, "7");
  REFUSED(aoti_torch__reinterpret_tensor(tensor, 2, sizes, NULL, 1, &out), INVALID, "offset");
  REFUSED(aoti_torch__reinterpret_tensor(tensor, 2, sizes, NULL, -1, &out), INVALID, "-1");
  REFUSED(aoti_torch__alloc_from_pool(tensor, -4, f32, 2, sizes, NULL, &out), INVALID, "-4");
  int64_t size = -7;
  REFUSED(aoti_torch_get_size(tensor, 2, &size), INVALID, "d is 2");
  REFUSED(aoti_torch_get_stride(tensor, -3, &size), INVALID, "d is -3");
  REFUSED(aoti_torch_get_size(tensor, 0, NULL), INVALID, "out is null");
  float item = 0;
  REFUSED(aoti_torch_item_float32(tensor, &item), INVALID, "[2, 3]");
  CHECK(size == -7 && out == (AtenTensorHandle)sizes);
  drop(tensor);

  aoti_wgpu_stats_t small = {0};
  small.struct_size = sizeof small - 1;
  REFUSED(aoti_wgpu_stats(&small), (uint32_t)INVALID, "struct_size");
  REFUSED(aoti_wgpu_stats(NULL), (uint32_t)INVALID, "out is null");
  nothing_left();
}

static void getters_answer(void) {
  const int64_t sizes[] = {2, 3, 4}, strides[] = {1, 8, 2};
  const int32_t f32 = aoti_torch_dtype_float32();
  float data[64] = {0};
  AtenTensorHandle tensor = NULL;
  OK(aoti_torch_create_tensor_from_blob_v2(data, 3, sizes, strides, 5, f32,
                                           aoti_torch_device_type_cpu(), -1, &tensor,
                                           aoti_torch_layout_strided(), NULL, 0));
  int64_t *found_sizes = NULL, *found_strides = NULL, n = -1;
  int32_t code = -1;
  bool yes = true;
  void* at = NULL;
  OK(aoti_torch_get_sizes(tensor, &found_sizes));
  OK(aoti_torch_get_strides(tensor, &found_strides));
  CHECK(memcmp(found_sizes, sizes, sizeof sizes) == 0);
  CHECK(memcmp(found_strides, strides, sizeof strides) == 0);
  OK(aoti_torch_get_data_ptr(tensor, &at));
  CHECK(at == data + 5);
  OK(aoti_torch_get_dim(tensor, &n));
  CHECK(n == 3);
  OK(aoti_torch_get_numel(tensor, &n));
  CHECK(n == 24);
  OK(aoti_torch_get_size(tensor, -1, &n));
  CHECK(n == 4);
  OK(aoti_torch_get_stride(tensor, 1, &n));
  CHECK(n == 8);
  OK(aoti_torch_get_storage_offset(tensor, &n));
  CHECK(n == 5);
  OK(aoti_torch_get_storage_size(tensor, &n));
  CHECK(n == 4 * (5 + 1 + 1 + 16 + 6));
  OK(aoti_torch_get_storage_numel(tensor, &n));
  CHECK(n == 29);
  OK(aoti_torch_get_dtype(tensor, &code));
  CHECK(code == f32);
  OK(aoti_torch_get_device_type(tensor, &code));
  CHECK(code == 0);
  OK(aoti_torch_get_device_index(tensor, &code));
  CHECK(code == 0);
  OK(aoti_torch_get_layout(tensor, &code));
  CHECK(code == aoti_torch_layout_strided());
  OK(aoti_torch_is_contiguous(tensor, &yes));
  CHECK(!yes);
  OK(aoti_torch_is_defined(tensor, &yes));
  CHECK(yes);
  drop(tensor);

  tensor = empty(0, NULL, mps);
  OK(aoti_torch_get_sizes(tensor, &found_sizes));
  OK(aoti_torch_get_strides(tensor, &found_strides));
  CHECK(found_sizes != NULL && found_strides != NULL);
  OK(aoti_torch_get_numel(tensor, &n));
  CHECK(n == 1);
  OK(aoti_torch_get_device_type(tensor, &code));
  CHECK(code == 13);
  drop(tensor);

  const int64_t none[] = {0, 4};
  tensor = empty(2, none, mps);
  CHECK(stats().live_device_bytes == 0);
  AtenTensorHandle copy = NULL;
  OK(aoti_torch_clone(tensor, &copy));
  OK(aoti_torch_copy_(copy, tensor, 0));
  OK(aoti_torch_get_data_ptr(copy, &at));
  drop(copy);
  drop(tensor);
  OK(aoti_torch_create_tensor_from_blob(NULL, 2, none, NULL, 0, f32, mps, 0, &tensor));
  drop(tensor);
  nothing_left();
}

static void handles_are_rebound(void) {
  const int64_t three[] = {3}, two[] = {2, 2};
  float a[] = {1, 2, 3}, b[] = {4, 5, 6, 7};
  AtenTensorHandle first = over(a, 1, three), second = over(b, 2, two), third = NULL;
  OK(aoti_torch_assign_tensors(second, first));
  HOLDS(first, 4, 5, 6, 7);
  int64_t* sizes = NULL;
  OK(aoti_torch_get_sizes(first, &sizes));
  CHECK(sizes[0] == 2 && sizes[1] == 2);
  OK(aoti_torch_assign_tensors(first, first));
  drop(second);
  HOLDS(first, 4, 5, 6, 7);
  OK(aoti_torch_assign_tensors_out(first, &third));
  drop(first);
  HOLDS(third, 4, 5, 6, 7);

  AtenTensorHandle none = NULL, also = NULL;
  bool defined = true;
  OK(aoti_torch_new_uninitialized_tensor(&none));
  OK(aoti_torch_is_defined(none, &defined));
  CHECK(!defined);
  int64_t n = -7;
  REFUSED(aoti_torch_get_dim(none, &n), INVALID, "not defined");
  REFUSED(aoti_torch_copy_(third, none, 0), INVALID, "src");
  OK(aoti_torch_new_tensor_handle(none, &also));
  OK(aoti_torch_is_defined(also, &defined));
  CHECK(!defined);
  OK(aoti_torch_assign_tensors(third, none));
  HOLDS(none, 4, 5, 6, 7);
  OK(aoti_torch_assign_tensors(also, none));
  OK(aoti_torch_is_defined(none, &defined));
  CHECK(!defined);
  drop(none);
  drop(also);
  drop(third);
  nothing_left();
}

static void packed_views_follow_their_base(void) {
  const int64_t sizes[] = {2, 6}, part[] = {2, 3}, strides[] = {6, 1};
  float data[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  AtenTensorHandle base = empty(2, sizes, mps);
  put(base, data);
  AtenTensorHandle v = view(base, 2, part, strides, 2);
  int64_t *reported = NULL, offset = -1, bytes = -1;
  OK(aoti_torch_get_strides(v, &reported));
  OK(aoti_torch_get_storage_offset(v, &offset));
  OK(aoti_torch_get_storage_size(v, &bytes));
  const char* views = getenv("AOTI_WGPU_VIEWS");
  const bool plain = views != NULL && strcmp(views, "strided") == 0;
  CHECK(plain || (reported[0] == 3 && reported[1] == 1 && offset == 0 && bytes == 24));
  void *at = NULL, *again = NULL;
  OK(aoti_torch_get_data_ptr(v, &at));
  HOLDS(v, 2, 3, 4, 8, 9, 10);
  /* Nothing was written since. */
  uint64_t packs = stats().packs;
  OK(aoti_torch_get_data_ptr(v, &again));
  CHECK(again == at && stats().packs == packs);
  float zeros[] = {0, 0, 0, 0, 0, 0};
  put(v, zeros);
  HOLDS(base, 0, 1, 0, 0, 0, 5, 6, 7, 0, 0, 0, 11);
  put(base, data);
  OK(aoti_torch_get_data_ptr(v, &again));
  CHECK(again == at);
  HOLDS(v, 2, 3, 4, 8, 9, 10);

  AtenTensorHandle second = NULL, copy = NULL, strided = NULL, deeper = NULL;
  OK(aoti_torch_new_tensor_handle(v, &second));
  OK(aoti_torch_get_data_ptr(second, &again));
  CHECK(again == at);
  OK(aoti_torch_clone(v, &copy));
  OK(aoti_torch_clone_preserve_strides(v, &strided));
  HOLDS(copy, 2, 3, 4, 8, 9, 10);
  HOLDS(strided, 2, 3, 4, 8, 9, 10);
  /* A view of the view is one of the base. */
  const int64_t column[] = {2}, step[] = {6};
  deeper = view(v, 1, column, step, 1);
  HOLDS(deeper, 3, 9);
  drop(base);
  drop(v);
  HOLDS(deeper, 3, 9);
  HOLDS(second, 2, 3, 4, 8, 9, 10);
  drop(second);
  drop(deeper);
  drop(copy);
  drop(strided);
  nothing_left();
}

static void other_views(void) {
  const int64_t sizes[] = {6}, half[] = {3}, two[] = {2}, reversed[] = {1};
  float data[] = {0, 1, 2, 3, 4, 5};
  AtenTensorHandle base = empty(1, sizes, mps);
  put(base, data);
  AtenTensorHandle tail = view(base, 1, half, NULL, 3), head = NULL, as = NULL, pool = NULL;
  head = view(tail, 1, half, NULL, -3);
  HOLDS(head, 0, 1, 2);
  OK(aoti_torch_as_strided(tail, two, reversed, &as));
  HOLDS(as, 3, 4);
  OK(aoti_torch__alloc_from_pool(base, 8, aoti_torch_dtype_int32(), 1, half, NULL, &pool));
  int32_t code = -1;
  OK(aoti_torch_get_dtype(pool, &code));
  CHECK(code == aoti_torch_dtype_int32());
  OK(aoti_torch_zero_(pool));
  HOLDS(base, 0, 1, 0, 0, 0, 5);
  drop(base);
  drop(tail);
  drop(head);
  drop(as);
  drop(pool);
  nothing_left();
}

static void scalars_convert(void) {
  AtenTensorHandle tensor = NULL;
  OK(aoti_torch_scalar_to_tensor_float64(-2.75, &tensor));
  float f = 0;
  double d = 0;
  int8_t i8 = 0;
  uint64_t u64 = 0;
  bool b = false;
  aoti_wgpu_half_t half = {0};
  aoti_wgpu_bfloat16_t brain = {0};
  aoti_wgpu_complex64_t complex = {0, 1};
  OK(aoti_torch_item_float32(tensor, &f));
  OK(aoti_torch_item_float64(tensor, &d));
  OK(aoti_torch_item_int8(tensor, &i8));
  OK(aoti_torch_item_bool(tensor, &b));
  OK(aoti_torch_item_float16(tensor, &half));
  OK(aoti_torch_item_bfloat16(tensor, &brain));
  OK(aoti_torch_item_complex64(tensor, &complex));
  CHECK(f == -2.75f && d == -2.75 && i8 == -2 && b);
  CHECK(half.x == 0xc180 && brain.x == 0xc030 && complex.re == -2.75f && complex.im == 0);
  REFUSED(aoti_torch_item_uint64(tensor, &u64), INVALID, "-2.75");
  drop(tensor);
  const aoti_wgpu_complex64_t one_two = {1, 2};
  OK(aoti_torch_scalar_to_tensor_complex64(one_two, &tensor));
  OK(aoti_torch_item_complex64(tensor, &complex));
  CHECK(complex.re == 1 && complex.im == 2);
  REFUSED(aoti_torch_item_float32(tensor, &f), INVALID, "1+2j");
  drop(tensor);
  const aoti_wgpu_complex128_t three = {3, 0};
  OK(aoti_torch_scalar_to_tensor_complex128(three, &tensor));
  OK(aoti_torch_item_uint64(tensor, &u64));
  CHECK(u64 == 3);
  drop(tensor);
  OK(aoti_torch_scalar_to_tensor_bool(true, &tensor));
  OK(aoti_torch_item_uint64(tensor, &u64));
  CHECK(u64 == 1);
  drop(tensor);
  const int64_t one[] = {1, 1};
  float value[] = {7};
  tensor = empty(2, one, mps);
  put(tensor, value);
  OK(aoti_torch_item_int8(tensor, &i8));
  CHECK(i8 == 7);
  OK(aoti_torch_check_inf_and_nan("seven", tensor));
  value[0] = 1e38f * 10;
  put(tensor, value);
  REFUSED(aoti_torch_check_inf_and_nan("infinite", tensor), INVALID, "infinite");
  aoti_torch_print_tensor_handle(tensor, "one element");
  drop(tensor);
  nothing_left();
}

static void constants_are_those_of_c10(void) {
  CHECK(aoti_torch_device_type_cpu() == 0 && aoti_torch_device_type_cuda() == 1);
  CHECK(aoti_torch_device_type_mps() == 13 && aoti_torch_layout_strided() == 0);
  CHECK(aoti_torch_dtype_float32() == 6 && aoti_torch_dtype_bfloat16() == 15);
  CHECK(aoti_torch_dtype_uint64() == 29 && aoti_torch_dtype_float8_e8m0fnu() == 44);
  CHECK(aoti_torch_dtype_element_size(aoti_torch_dtype_complex128()) == 16);
  CHECK(aoti_torch_dtype_element_size(-1) == 0);
  CHECK(aoti_torch_memory_format_preserve_format() == 1);
  CHECK(aoti_torch_abi_version() >> 48 == 0x020d);
  CHECK(!aoti_torch_grad_mode_is_enabled());
  aoti_torch_grad_mode_set_enabled(false);
  aoti_torch_warn("function", "file", 1, "a warning on purpose");
  aoti_torch_check(true, "function", "file", 1, "not thrown");
}

static void the_adapter_is_named(void) {
  aoti_wgpu_adapter_info_t info;
  memset(&info, 0, sizeof info);
  info.struct_size = sizeof info;
  OK(aoti_wgpu_adapter_info(&info));
  printf("%s, %s, %s, %s, %s memory, aoti-wgpu %s\n", info.name, info.backend, info.device_type,
         info.driver, info.memory_mode, aoti_wgpu_version());
  const char* asked = getenv("AOTI_WGPU_MEMORY");
  CHECK(asked == NULL || strcmp(info.backend, "host") == 0 || strcmp(info.memory_mode, asked) == 0);
}

int main(void) {
  mps = aoti_torch_device_type_mps();
  CHECK(aoti_wgpu_last_error_message() != NULL && *aoti_wgpu_last_error_message() == '\0');
  constants_are_those_of_c10();
  OK(aoti_wgpu_init_logging());
  OK(aoti_wgpu_init_logging());
  the_adapter_is_named();
  a_blob_comes_back_to_its_address();
  two_blobs_share_an_address();
  a_handle_is_valid_until_its_own_delete();
  an_upload_takes_its_source();
  copies_broadcast_or_refuse();
  deleted_and_wild_handles_are_refused();
  bad_arguments_are_named();
  getters_answer();
  handles_are_rebound();
  other_views();
  scalars_convert();
  packed_views_follow_their_base();
  OK(aoti_wgpu_trim());
  CHECK(stats().pooled_bytes == 0);
  return 0;
}
