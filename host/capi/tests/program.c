/* What tests/c.rs compiles against the header and the library, and runs on the CPU. */
#include "gpu_gemm.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M = 5, N = 140, K = 300, OF_N = 2, OF_K = 3 };

static int8_t bytes_a[M * K], bytes_b[K * N];
static int32_t sums[M * N];
static float c[M * N], of_a[M * OF_K], of_b[OF_K * N], bias[N];

static void must(int is_right, const char *what) {
    if (!is_right) {
        printf("%s: %s\n", what, gpu_gemm_last_error());
        exit(1);
    }
}

static void fails(int status, int expected, const char *words) {
    must(status == expected, words);
    must(strstr(gpu_gemm_last_error(), words) != NULL, words);
}

/* 1, 2, -1 and 1/2 in e4m3. */
static const int8_t CODES[4] = {0x38, 0x40, (int8_t)0xb8, 0x30};

static float number(int8_t code) {
    return code == 0x38 ? 1.0f : code == 0x40 ? 2.0f : code == 0x30 ? 0.5f : -1.0f;
}

/* With ReLU and a bias, or without both. */
static void scaled(gpu_gemm_queue *queue, int type, int scales, const gpu_gemm_in *a, const gpu_gemm_in *b, int relu) {
    int are_blocks = scales == GPU_GEMM_BLOCKS;
    gpu_gemm_in scales_a = {of_a, are_blocks ? OF_K : 1, 1}, scales_b = {of_b, N, 1};
    gpu_gemm_out out = {c, N, 1};
    for (int i = 0; i < M * N; i++) c[i] = 1.0f;
    int status = gpu_gemm_scaled(queue, M, N, K, type, GPU_GEMM_F32, 0.5f, a, b, scales, &scales_a, &scales_b, 2.0f, &out,
                                 relu ? bias : NULL, relu ? GPU_GEMM_RELU : GPU_GEMM_IDENTITY);
    must(status == GPU_GEMM_OK, "scaled");
    for (int i = 0; i < M; i++) {
        for (int j = 0; j < N; j++) {
            double sum = 0;
            for (int p = 0; p < K; p++) {
                int8_t x = bytes_a[i * K + p], y = bytes_b[j * K + p];
                double product = type == GPU_GEMM_I8 ? (double)x * y : (double)number(x) * number(y);
                if (scales != GPU_GEMM_NO_SCALES) {
                    product *= are_blocks ? of_a[i * OF_K + p / 128] * of_b[p / 128 * N + j / 128] : of_a[i] * of_b[j];
                }
                sum += product;
            }
            double expected = 0.5 * sum + 2.0;
            if (relu) expected = fmax(expected + bias[j], 0);
            must(fabs(c[i * N + j] - expected) <= 1e-6 * fabs(sum), "an element of C");
        }
    }
}

int main(void) {
    gpu_gemm_queue *queue = NULL;
    must(gpu_gemm_last_error()[0] == 0, "no error yet");
    fails(gpu_gemm_open(-2, NULL, &queue), GPU_GEMM_ARGUMENT, "device = -2: must be the index of a GPU");
    fails(gpu_gemm_open(-1, &sums, &queue), GPU_GEMM_ARGUMENT, "must be NULL for the CPU");
    fails(gpu_gemm_open(-1, NULL, NULL), GPU_GEMM_ARGUMENT, "queue = NULL");
    must(gpu_gemm_open(-1, NULL, &queue) == GPU_GEMM_OK, "open");
    for (int i = 0; i < M * OF_K; i++) of_a[i] = 0.5f + (float)(i % 5) / 4;
    for (int i = 0; i < OF_K * N; i++) of_b[i] = 0.25f + (float)(i % 7) / 8;
    for (int j = 0; j < N; j++) bias[j] = (float)(j % 9) - 4;
    /* B is column-major. */
    gpu_gemm_in a = {bytes_a, K, 1}, b = {bytes_b, 1, K};
    gpu_gemm_out out = {sums, N, 1};
    for (int i = 0; i < M * K; i++) bytes_a[i] = (int8_t)(i * 7 % 251 - 125);
    for (int i = 0; i < K * N; i++) bytes_b[i] = (int8_t)(i * 5 % 241 - 120);
    for (int i = 0; i < M * N; i++) sums[i] = i;
    must(gpu_gemm_int8(queue, M, N, K, 3, &a, &b, -2, &out) == GPU_GEMM_OK, "int8");
    for (int i = 0; i < M * N; i++) {
        int32_t sum = 0;
        for (int p = 0; p < K; p++) sum += bytes_a[i / N * K + p] * bytes_b[i % N * K + p];
        must(sums[i] == 3 * sum - 2 * i, "an element of int8");
    }
    scaled(queue, GPU_GEMM_I8, GPU_GEMM_NO_SCALES, &a, &b, 0);
    scaled(queue, GPU_GEMM_I8, GPU_GEMM_ROWS_COLS, &a, &b, 0);
    scaled(queue, GPU_GEMM_I8, GPU_GEMM_ROWS_COLS, &a, &b, 1);
    for (int i = 0; i < M * K; i++) bytes_a[i] = CODES[i * 7 % 11 % 4];
    for (int i = 0; i < K * N; i++) bytes_b[i] = CODES[i * 5 % 13 % 4];
    scaled(queue, GPU_GEMM_E4M3, GPU_GEMM_NO_SCALES, &a, &b, 0);
    scaled(queue, GPU_GEMM_E4M3, GPU_GEMM_ROWS_COLS, &a, &b, 0);
    scaled(queue, GPU_GEMM_E4M3, GPU_GEMM_BLOCKS, &a, &b, 0);
    scaled(queue, GPU_GEMM_E4M3, GPU_GEMM_BLOCKS, &a, &b, 1);
    /* Each activation of 1. */
    const double activated[5] = {1, 1, 0.841345, 0.841192, 0.731059};
    const int8_t one = CODES[0];
    gpu_gemm_in single = {&one, 1, 1};
    gpu_gemm_out first = {c, 1, 1};
    for (int kind = GPU_GEMM_IDENTITY; kind <= GPU_GEMM_SILU; kind++) {
        int status = gpu_gemm_scaled(queue, 1, 1, 1, GPU_GEMM_E4M3, GPU_GEMM_F32, 1, &single, &single, GPU_GEMM_NO_SCALES,
                                     NULL, NULL, 0, &first, NULL, kind);
        must(status == GPU_GEMM_OK && fabs(c[0] - activated[kind]) < 1e-5, "an activation");
    }
    gpu_gemm_in none = {NULL, K, 1}, far = {bytes_a, SIZE_MAX, 1};
    gpu_gemm_out to = {c, N, 1}, same = {c, 0, 1};
#define SCALED(type_ab, type_c, a, kind, to) \
    gpu_gemm_scaled(queue, M, N, K, type_ab, type_c, 1, a, &b, kind, &a_scales, NULL, 0, to, NULL, 0)
    gpu_gemm_in a_scales = {of_a, 1, 1};
    fails(SCALED(GPU_GEMM_F16, GPU_GEMM_F32, &a, 0, &to), GPU_GEMM_ARGUMENT, "type_ab = 2: must be i8");
    fails(SCALED(GPU_GEMM_I8, GPU_GEMM_I8, &a, 0, &to), GPU_GEMM_ARGUMENT, "type_c = 3: must be f32");
    fails(SCALED(GPU_GEMM_I8, GPU_GEMM_F32, &a, 3, &to), GPU_GEMM_ARGUMENT, "scales = 3: must be 0");
    fails(SCALED(GPU_GEMM_I8, GPU_GEMM_F32, &a, 1, &to), GPU_GEMM_ARGUMENT, "scales of B = NULL");
    fails(SCALED(GPU_GEMM_I8, GPU_GEMM_F32, NULL, 0, &to), GPU_GEMM_ARGUMENT, "A = NULL");
    fails(SCALED(GPU_GEMM_I8, GPU_GEMM_F32, &none, 0, &to), GPU_GEMM_ARGUMENT, "A: address = null");
    fails(SCALED(GPU_GEMM_I8, GPU_GEMM_F32, &far, 0, &to), GPU_GEMM_ARGUMENT, "can be addressed");
    fails(SCALED(GPU_GEMM_I8, GPU_GEMM_F32, &a, 0, &same), GPU_GEMM_ARGUMENT, "share memory");
    int last = gpu_gemm_scaled(queue, M, N, K, GPU_GEMM_I8, GPU_GEMM_F32, 1, &a, &b, 0, NULL, NULL, 0, &to, NULL, 5);
    fails(last, GPU_GEMM_ARGUMENT, "activation = 5: must be 0 to 4");
    fails(gpu_gemm_int8(NULL, M, N, K, 1, &a, &b, 0, &out), GPU_GEMM_ARGUMENT, "queue = NULL");
    gpu_gemm_close(queue);
    gpu_gemm_close(NULL);
    puts("all right");
    return 0;
}
