/* Compiles examples/causal.mlir for the CPU, or any file given, and runs it.
 *
 *   cc attention.c -lattnc && ./a.out ../causal.mlir */

#include "attn-c/attnc.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A tensor as DLPack has it; programs that have dlpack.h include that. */
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

enum { BATCH = 1, HEADS = 16, LENGTH = 4, DIM = 64 };
enum { SIZE = BATCH * HEADS * LENGTH * DIM };

static int fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, attnc_last_error());
  return EXIT_FAILURE;
}

int main(int argc, char **argv) {
  static char text[1 << 16];
  static uint16_t q[SIZE], k[SIZE], v[SIZE], o[SIZE];
  int64_t shape[] = {BATCH, HEADS, LENGTH, DIM};
  DLTensor tensors[4];
  const void *pointers[4];
  uint16_t *data[] = {q, k, v, o};

  FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file) {
    fprintf(stderr, "usage: %s FILE.mlir\n", argv[0]);
    return EXIT_FAILURE;
  }
  size_t length = fread(text, 1, sizeof text, file);
  fclose(file);

  attnc_options options = {sizeof options};
  options.target = "cpu";
  attnc_kernel *kernel = attnc_compile(text, length, &options);
  if (!kernel)
    return fail("compiling");
  printf("attnc %s on %s\n", attnc_version(), attnc_device_name(kernel));

  /* All scores are equal, so that o is the mean of the values that are seen:
   * 1, 2, 3, 4 in bfloat16, of which query i sees the first i + 1. */
  static const uint16_t ones[] = {0x3f80, 0x4000, 0x4040, 0x4080};
  for (int i = 0; i < SIZE; ++i)
    v[i] = ones[i / DIM % LENGTH];
  for (int i = 0; i < 4; ++i) {
    DLTensor tensor = {data[i], {1, 0}, 4, {4, 16, 1}, shape, NULL, 0};
    tensors[i] = tensor;
    pointers[i] = &tensors[i];
  }
  if (attnc_launch(kernel, NULL, pointers, 4))
    return fail("running");
  for (int i = 0; i < LENGTH; ++i) {
    uint32_t bits = (uint32_t)o[i * DIM] << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    printf("o[0, 0, %d, 0] = %g\n", i, value);
  }
  attnc_release(kernel);
  return EXIT_SUCCESS;
}
