/* Calls every function of attnc.h, as it is meant and with what it refuses. */

#include "attn-c/attnc.h"
#include <stdio.h>
#include <string.h>

/* As in DLPack. */
typedef struct {
  void *data;
  struct {
    int32_t type, id;
  } device;
  int32_t rank;
  struct {
    uint8_t code, bits;
    uint16_t lanes;
  } dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;

static int failures;

static void check(int is_right, int line, const char *text) {
  if (is_right)
    return;
  ++failures;
  printf("line %d: %s; last error: %s\n", line, text, attnc_last_error());
}

/* What fails also says why. */
static void check_fails(int is_failure, const char *reason, int line, const char *text) {
  check(is_failure && strstr(attnc_last_error(), reason) != NULL, line, text);
}

#define CHECK(condition) check(condition, __LINE__, #condition)
#define FAILS(call, reason) check_fails((call) == -1, reason, __LINE__, #call)
#define NULLS(call, reason) check_fails((call) == NULL, reason, __LINE__, #call)

enum { ROWS = 3, DIM = 8, SIZE = 2 * ROWS * DIM };

static const char module[] =
    "func.func @f(%q: tensor<?x2x?x8xf32> {attn.name = \"q\"}, %k: tensor<?x2x?x8xf32> {attn.name = \"k\"},\n"
    "             %v: tensor<?x2x?x8xf32> {attn.name = \"v\"}, %o: tensor<?x2x?x8xf32> {attn.name = \"o\"})\n"
    "    -> tensor<?x2x?x8xf32> {\n"
    "  %r = attn.attention ins(%q, %k, %v : tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>, tensor<?x2x?x8xf32>)\n"
    "    outs(%o : tensor<?x2x?x8xf32>) -> tensor<?x2x?x8xf32>\n"
    "  return %r : tensor<?x2x?x8xf32>\n"
    "}\n";
enum { LENGTH = sizeof module - 1 };

static float data[4][SIZE];
static int64_t shape[] = {1, 2, ROWS, DIM};
static DLTensor tensors[4];
static const void *pointers[4];
static void *places[4];
static attnc_options options;

static void make_tensors(void) {
  int i, j;
  for (i = 0; i < 4; ++i) {
    DLTensor tensor = {NULL, {1, 0}, 4, {2, 32, 1}, NULL, NULL, 0};
    tensor.data = places[i] = data[i];
    tensor.shape = shape;
    tensors[i] = tensor;
    pointers[i] = &tensors[i];
    for (j = 0; j < SIZE; ++j)
      data[i][j] = i == 2 ? (float)(j / DIM % ROWS) : 0;
  }
}

/* All scores are equal, so that o is the mean of v: 1. */
static int is_right(void) {
  int j, right = 1;
  for (j = 0; j < SIZE; ++j) {
    right = right && data[3][j] > 0.999f && data[3][j] < 1.001f;
    data[3][j] = 0;
  }
  return right;
}

static int num_remarks;

static void on_remark(void *context, const char *text) {
  CHECK(context == &num_remarks);
  CHECK(strstr(text, "isn't kept") != NULL);
  ++num_remarks;
}

static void test_options(void) {
  attnc_options bad = options;
  CHECK(strcmp(attnc_version(), "0.1.0") == 0);
  NULLS(attnc_compile(NULL, 5, &options), "'text' is missing");
  NULLS(attnc_compile("", 0, &options), "has no function to compile");
  NULLS(attnc_compile(module, LENGTH / 2, &options), "<module text>:");
  bad.variant = "quick";
  NULLS(attnc_compile(module, LENGTH, &bad), "unknown variant 'quick'");
  bad = options;
  bad.target = "sm_1";
  NULLS(attnc_compile(module, LENGTH, &bad), "unknown target 'sm_1'");
  bad = options;
  bad.entry = "g";
  NULLS(attnc_compile(module, LENGTH, &bad), "no function named 'g'");
  bad = options;
  bad.backend = "fast";
  NULLS(attnc_compile(module, LENGTH, &bad), "unknown backend 'fast'");
  /* Of a caller that knows of `size` only. */
  bad.size = sizeof bad.size;
  bad.target = "sm_1";
  attnc_release(attnc_compile(module, LENGTH, &bad));
  bad.size = 0;
  NULLS(attnc_compile(module, LENGTH, &bad), "set it to sizeof");
  bad = options;
  bad.variant = "math";
  bad.cache_dir = "/dev/null/none";
  bad.on_remark = on_remark;
  bad.remark_context = &num_remarks;
  attnc_release(attnc_compile(module, LENGTH, &bad));
  CHECK(num_remarks == 1);
  attnc_release(NULL);
}

static void test_launches(const attnc_kernel *kernel) {
  int64_t sizes[4];
  attnc_kernel *none = NULL;
  CHECK(strstr(attnc_manifest(kernel), "\"entry\"") != NULL);
  NULLS(attnc_manifest(none), "'kernel' is missing");
  CHECK(attnc_device_name(kernel)[0] != 0);
  NULLS(attnc_device_name(none), "'kernel' is missing");
  CHECK(attnc_prepare(kernel) == 0);
  FAILS(attnc_prepare(none), "'kernel' is missing");

  CHECK(attnc_output_shape(kernel, pointers, 3, 0, sizes, 4) == 4);
  CHECK(memcmp(sizes, shape, sizeof sizes) == 0);
  CHECK(attnc_output_shape(kernel, pointers, 3, 0, NULL, 0) == 4);
  FAILS(attnc_output_shape(none, pointers, 3, 0, sizes, 4), "'kernel' is missing");
  FAILS(attnc_output_shape(kernel, NULL, 3, 0, sizes, 4), "'inputs' is missing");
  FAILS(attnc_output_shape(kernel, pointers, 3, 0, NULL, 4), "'sizes' is missing");
  FAILS(attnc_output_shape(kernel, pointers, 2, 0, sizes, 4), "takes 3 inputs, 2 were given");
  FAILS(attnc_output_shape(kernel, pointers, 3, 1, sizes, 4), "has 1 outputs");

  CHECK(attnc_launch(kernel, NULL, pointers, 4) == 0 && is_right());
  CHECK(attnc_launch_at(kernel, NULL, pointers, places, 4) == 0 && is_right());
  CHECK(attnc_launch_with(kernel, NULL, pointers, NULL, 4, ATTNC_CAPTURES_UNCHANGED) == 0 && is_right());
  FAILS(attnc_launch(none, NULL, pointers, 4), "'kernel' is missing");
  FAILS(attnc_launch(kernel, NULL, NULL, 4), "'tensors' is missing");
  FAILS(attnc_launch(kernel, NULL, pointers, 3), "takes 4 arguments, 3 were given");
  FAILS(attnc_launch_with(kernel, NULL, pointers, NULL, 4, 64), "unknown flags of a launch: 64");
  places[1] = NULL;
  FAILS(attnc_launch_at(kernel, NULL, pointers, places, 4), "argument 'k' has no memory");
  pointers[1] = NULL;
  FAILS(attnc_launch(kernel, NULL, pointers, 4), "argument 'k' is missing");
  FAILS(attnc_output_shape(kernel, pointers, 3, 0, sizes, 4), "input 1 is missing");
  make_tensors();
  tensors[2].shape = NULL;
  FAILS(attnc_launch(kernel, NULL, pointers, 4), "argument 'v' has no shape");
  make_tensors();
  tensors[2].rank = -1;
  FAILS(attnc_launch(kernel, NULL, pointers, 4), "argument 'v' has a negative rank");
  make_tensors();
  tensors[2].device.type = 2;
  FAILS(attnc_launch(kernel, NULL, pointers, 4), "argument 'v' is on GPU 0, needed is the CPU");
  make_tensors();
  tensors[2].dtype.bits = 64;
  FAILS(attnc_launch(kernel, NULL, pointers, 4), "argument 'v': needs ?x2x?x8xf32");
  make_tensors();
  tensors[3].data = data[0];
  FAILS(attnc_launch(kernel, NULL, pointers, 4), "argument 'o' lies in the memory of 'q'");
  make_tensors();
}

static void test_backends(void) {
  const void *no_inputs[] = {NULL};
  FAILS(attnc_pop_backend(), "no backend to pop");
  FAILS(attnc_push_backend(NULL), "'backend' is missing");
  FAILS(attnc_push_backend("fast"), "unknown backend 'fast'");
  CHECK(attnc_push_backend("naive") == 0);
  CHECK(strstr(attnc_explain(module, LENGTH, &options, NULL, 0, 0), "naive   chosen") != NULL);
  CHECK(attnc_pop_backend() == 0);
  CHECK(strstr(attnc_explain(module, LENGTH, &options, pointers, 3, 1), "\"chosen\"") != NULL);
  NULLS(attnc_explain(NULL, 3, &options, NULL, 0, 0), "'text' is missing");
  NULLS(attnc_explain(module, LENGTH, &options, NULL, 3, 0), "'inputs' is missing");
  NULLS(attnc_explain(module, LENGTH, &options, no_inputs, 1, 0), "input 0 is missing");
}

/* Out of Python, it refuses. */
static void test_replays(const attnc_kernel *kernel) {
  NULLS(attnc_replay_create(NULL, NULL, pointers, NULL, 4), "'kernel' is missing");
  NULLS(attnc_replay_create(kernel, NULL, NULL, NULL, 4), "'tensors' is missing");
  NULLS(attnc_replay_create(kernel, NULL, pointers, NULL, 4), "exchange API of version 1 is needed");
  FAILS(attnc_replay_launch(NULL, NULL, 0), "'replay' is missing");
  attnc_replay_release(NULL);
}

static void test_profiles(const attnc_kernel *kernel) {
  static char saved[1 << 16];
  int all_right = -1;
  attnc_options bad = options;
  attnc_profiler *profiler;
  bad.target = "sm_1";
  NULLS(attnc_profiler_create(&bad), "unknown target 'sm_1'");
  profiler = attnc_profiler_create(&options);
  CHECK(profiler != NULL);
  FAILS(attnc_profiler_set_command(NULL, "functions"), "'profiler' is missing");
  FAILS(attnc_profiler_set_command(profiler, NULL), "'command' is missing");
  CHECK(attnc_profiler_set_command(profiler, "functions --all") == 0);
  FAILS(attnc_profiler_begin(NULL, "region"), "'profiler' is missing");
  FAILS(attnc_profiler_begin(profiler, NULL), "'name' is missing");
  FAILS(attnc_profiler_end(profiler), "no region has begun");
  FAILS(attnc_profiler_begin_phase(profiler, "steady"), "a phase begins in a region");
  CHECK(attnc_profiler_begin(profiler, "region") == 0);
  FAILS(attnc_profiler_begin(profiler, "region"), "a region has begun");
  FAILS(attnc_profiler_end_phase(profiler, 1), "no phase has begun");
  FAILS(attnc_profiler_begin_phase(NULL, "steady"), "'profiler' is missing");
  FAILS(attnc_profiler_begin_phase(profiler, NULL), "'name' is missing");
  CHECK(attnc_profiler_begin_phase(profiler, "steady") == 0);
  CHECK(attnc_launch(kernel, NULL, pointers, 4) == 0);
  FAILS(attnc_profiler_end_phase(profiler, 0), "one call or more");
  FAILS(attnc_profiler_end(profiler), "a phase has begun");
  FAILS(attnc_profiler_end_phase(NULL, 1), "'profiler' is missing");
  CHECK(attnc_profiler_end_phase(profiler, 1) == 0);
  FAILS(attnc_profiler_end(NULL), "'profiler' is missing");
  CHECK(attnc_profiler_end(profiler) == 0);
  NULLS(attnc_profiler_save(NULL), "'profiler' is missing");
  CHECK(strlen(attnc_profiler_save(profiler)) < sizeof saved);
  strcpy(saved, attnc_profiler_save(profiler));
  CHECK(strstr(saved, "functions --all") != NULL);
  attnc_profiler_release(profiler);
  attnc_profiler_release(NULL);

  CHECK(strstr(attnc_profile_show(saved, strlen(saved), "kernels=1", 0, &all_right), "right") != NULL);
  CHECK(all_right == 1);
  CHECK(attnc_profile_show(saved, strlen(saved), "kernels=2", 2, NULL) != NULL);
  NULLS(attnc_profile_show(saved, strlen(saved), "kernel=1", 0, NULL), "unknown key 'kernel'");
  NULLS(attnc_profile_show(saved, strlen(saved), NULL, -1, NULL), "layers is -1");
  NULLS(attnc_profile_show(NULL, 1, NULL, 0, NULL), "'profile' is missing");
  NULLS(attnc_profile_show("{", 1, NULL, 0, NULL), "");
  CHECK(attnc_profile_report(saved, strlen(saved), NULL, 0) || strstr(attnc_last_error(), "libjs-chart.js"));
  NULLS(attnc_profile_report(NULL, 1, NULL, 0), "'profile' is missing");
  CHECK(strstr(attnc_profile_trace(saved, strlen(saved)), "traceEvents") != NULL);
  NULLS(attnc_profile_trace(NULL, 1), "'profile' is missing");
  NULLS(attnc_profile_trace("", 0), "");
}

int main(void) {
  attnc_kernel *kernel;
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.target = "cpu";
  options.cache_dir = "off";
  make_tensors();
  kernel = attnc_compile(module, LENGTH, &options);
  CHECK(kernel != NULL);
  if (!kernel)
    return 1;
  test_options();
  test_launches(kernel);
  test_backends();
  test_replays(kernel);
  test_profiles(kernel);
  attnc_release(kernel);
  printf("%d failures\n", failures);
  return failures != 0;
}
