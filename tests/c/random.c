/* Ten thousand random operations against a model of what they mean: each storage an array of
 * floats, each tensor a storage with sizes, strides and an offset. */
#include "check.h"

enum { OPERATIONS = 10000, STORAGES = 4096, TENSORS = 48, ELEMENTS = 64, DIMS = 3 };

typedef struct {
  float values[ELEMENTS];
  float* blob; /* memory of the caller's, where the storage is a blob */
  int users;
} storage;

typedef struct {
  AtenTensorHandle handle;
  storage* of;
  int64_t sizes[DIMS], strides[DIMS], offset;
} tensor;

static storage storages[STORAGES];
static int storage_count;
static tensor tensors[TENSORS];
static int tensor_count;
static uint64_t state = 0x9e3779b97f4a7c15u;

static int64_t below(int64_t n) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (int64_t)(state % (uint64_t)n);
}

static int64_t numel(const tensor* t) {
  return t->sizes[0] * t->sizes[1] * t->sizes[2];
}

static int64_t place(const tensor* t, int64_t i) {
  int64_t c = i % t->sizes[2], b = i / t->sizes[2] % t->sizes[1],
          a = i / t->sizes[2] / t->sizes[1];
  return t->offset + a * t->strides[0] + b * t->strides[1] + c * t->strides[2];
}

static void random_sizes(int64_t* sizes) {
  for (int d = 0; d < DIMS; ++d) sizes[d] = 1 + below(4);
}

static void contiguous(tensor* t) {
  t->strides[2] = 1;
  t->strides[1] = t->sizes[2];
  t->strides[0] = t->sizes[2] * t->sizes[1];
}

/* Whether elements share a place. */
static bool overlaps(const tensor* t) {
  bool seen[ELEMENTS] = {false};
  for (int64_t i = 0; i < numel(t); ++i) {
    bool* at = &seen[place(t, i)];
    if (*at) return true;
    *at = true;
  }
  return false;
}

static storage* fresh(void) {
  CHECK(storage_count < STORAGES);
  storage* s = &storages[storage_count++];
  s->users = 1;
  return s;
}

static void check(const tensor* t) {
  float found[ELEMENTS];
  get(t->handle, found);
  for (int64_t i = 0; i < numel(t); ++i) CHECK(found[i] == t->of->values[place(t, i)]);
}

static void fill(tensor* t) {
  float data[ELEMENTS];
  for (int64_t i = 0; i < numel(t); ++i) data[i] = (float)below(1000);
  put(t->handle, data);
  for (int64_t i = 0; i < numel(t); ++i) t->of->values[place(t, i)] = data[i];
}

static void remove_at(int64_t i) {
  tensor* t = &tensors[i];
  drop(t->handle);
  if (--t->of->users == 0) {
    free(t->of->blob);
    t->of->blob = NULL;
    /* The model's last storage is used again, so that there are enough of them. */
    if (t->of == &storages[storage_count - 1]) --storage_count;
  }
  *t = tensors[--tensor_count];
}

static void make(void) {
  tensor t = {0};
  random_sizes(t.sizes);
  contiguous(&t);
  t.of = fresh();
  const int32_t device = below(4) ? aoti_torch_device_type_mps() : aoti_torch_device_type_cpu();
  if (below(3) == 0) {
    t.of->blob = (float*)calloc(ELEMENTS, sizeof(float));
    CHECK(t.of->blob != NULL);
    OK(aoti_torch_create_tensor_from_blob(t.of->blob, DIMS, t.sizes, NULL, 0,
                                          aoti_torch_dtype_float32(), device, 0, &t.handle));
  } else {
    t.handle = empty(DIMS, t.sizes, device);
  }
  fill(&t);
  tensors[tensor_count++] = t;
}

static void make_view(const tensor* from) {
  tensor t = *from;
  const int64_t end = below(ELEMENTS);
  random_sizes(t.sizes);
  for (int d = 0; d < DIMS; ++d) t.strides[d] = below(10);
  const int64_t increment = end % 7 - 3;
  t.offset = from->offset + increment;
  /* The whole storage: what the first tensor in it, which was contiguous, reached. */
  int64_t bytes = 0, reach = 1;
  for (int d = 0; d < DIMS; ++d) reach += (t.sizes[d] - 1) * t.strides[d];
  bool packed = false;
  int64_t* strides = NULL;
  OK(aoti_torch_get_strides(from->handle, &strides));
  for (int d = 0; d < DIMS; ++d) packed |= from->sizes[d] > 1 && strides[d] != from->strides[d];
  OK(aoti_torch_get_storage_size(from->handle, &bytes));
  if (packed) return; /* It reports its dense buffer; the base's size is not known here. */
  const bool fits = t.offset >= 0 && t.offset + reach <= bytes / 4;
  AtenTensorHandle out = NULL;
  const int32_t code = aoti_torch__reinterpret_tensor(from->handle, DIMS, t.sizes, t.strides,
                                                      increment, &out);
  CHECK(code == (fits ? 0 : INVALID));
  if (fits) {
    t.handle = out;
    t.of->users++;
    tensors[tensor_count++] = t;
  }
}

static void copy(tensor* to, tensor* from) {
  bool broadcasts = true;
  for (int d = 0; d < DIMS; ++d)
    broadcasts &= from->sizes[d] == to->sizes[d] || from->sizes[d] == 1;
  float values[ELEMENTS];
  const int32_t code = aoti_torch_copy_(to->handle, from->handle, (int32_t)below(2));
  if (!broadcasts || overlaps(to)) {
    /* Strides that only seem to overlap may be refused too, as by PyTorch. */
    CHECK(code == INVALID);
    return;
  }
  if (code == INVALID && strstr(aoti_wgpu_last_error_message(), "share") != NULL) return;
  OK(code);
  for (int64_t i = 0; i < numel(to); ++i) {
    int64_t c = i % to->sizes[2], b = i / to->sizes[2] % to->sizes[1],
            a = i / to->sizes[2] / to->sizes[1];
    values[i] = from->of->values[from->offset + (from->sizes[0] == 1 ? 0 : a) * from->strides[0] +
                                 (from->sizes[1] == 1 ? 0 : b) * from->strides[1] +
                                 (from->sizes[2] == 1 ? 0 : c) * from->strides[2]];
  }
  for (int64_t i = 0; i < numel(to); ++i) to->of->values[place(to, i)] = values[i];
}

static void duplicate(const tensor* from, bool clone) {
  tensor t = *from;
  if (!clone) {
    OK(aoti_torch_new_tensor_handle(from->handle, &t.handle));
    t.of->users++;
  } else {
    float data[ELEMENTS];
    get(from->handle, data);
    OK(aoti_torch_clone(from->handle, &t.handle));
    int64_t* strides = NULL;
    OK(aoti_torch_get_strides(t.handle, &strides));
    memcpy(t.strides, strides, sizeof t.strides);
    t.offset = 0;
    t.of = fresh();
    for (int64_t i = 0; i < numel(&t); ++i) t.of->values[place(&t, i)] = data[i];
  }
  tensors[tensor_count++] = t;
}

int main(void) {
  for (int step = 0; step < OPERATIONS; ++step) {
    if (tensor_count == 0 || (tensor_count < TENSORS / 2 && below(3) == 0)) {
      make();
      continue;
    }
    tensor* t = &tensors[below(tensor_count)];
    const bool room = tensor_count < TENSORS;
    void* at = NULL;
    switch (below(10)) {
      case 0:
      case 1:
        if (room) make_view(t);
        break;
      case 2:
        if (room) duplicate(t, false);
        break;
      case 3:
        if (room) duplicate(t, true);
        break;
      case 4:
        copy(t, &tensors[below(tensor_count)]);
        break;
      case 5:
        check(t);
        break;
      case 6:
        if (!overlaps(t)) {
          const int32_t code = aoti_torch_zero_(t->handle);
          if (code == 0)
            for (int64_t i = 0; i < numel(t); ++i) t->of->values[place(t, i)] = 0;
          else
            CHECK(code == INVALID);
        }
        break;
      case 7:
        OK(aoti_torch_get_data_ptr(t->handle, &at));
        CHECK(at != NULL);
        break;
      default:
        remove_at(t - tensors);
        if (step % 16 == 0) OK(aoti_wgpu_synchronize());
        break;
    }
    CHECK(stats().live_handles == (uint64_t)tensor_count);
  }
  for (int i = 0; i < tensor_count; ++i) check(&tensors[i]);
  while (tensor_count > 0) remove_at(below(tensor_count));
  nothing_left();
  printf("%d operations\n", OPERATIONS);
  return 0;
}
