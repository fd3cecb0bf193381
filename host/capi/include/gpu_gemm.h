/* Products of 8-bit numbers on NVIDIA GPUs from compute capability 8.0 on, or on the CPU; of e4m3 and e5m2 with scales
 * on Hopper or the CPU. Each function returns a status, and gpu_gemm_last_error has the words.
 * docs/guide/interchange.md is about it.
 * No cudaDeviceReset while the program uses this library. */
#ifndef GPU_GEMM_H
#define GPU_GEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gpu_gemm_status {
    GPU_GEMM_OK = 0,
    GPU_GEMM_PANIC = 1,       /* a fault of this library */
    GPU_GEMM_ARGUMENT = 2,    /* an argument, which the words name with its value and its limit */
    GPU_GEMM_ENVIRONMENT = 3, /* no driver, no such device, or one that is too old */
    GPU_GEMM_FAULT = 4        /* no memory, or an error of the driver */
};

/* As cudaDataType. */
enum gpu_gemm_type {
    GPU_GEMM_F32 = 0,
    GPU_GEMM_F16 = 2,
    GPU_GEMM_I8 = 3,
    GPU_GEMM_BF16 = 14,
    GPU_GEMM_E4M3 = 28,
    GPU_GEMM_E5M2 = 29
};

enum gpu_gemm_scales {
    GPU_GEMM_NO_SCALES = 0, /* alpha has those of whole matrices */
    GPU_GEMM_ROWS_COLS = 1, /* of A m x 1, of B 1 x n */
    GPU_GEMM_BLOCKS = 2     /* of A m x (k / 128), of B (k / 128) x (n / 128), rounded up; not of i8 */
};

/* What is done to each element of C at the end. */
enum gpu_gemm_activation {
    GPU_GEMM_IDENTITY = 0,
    GPU_GEMM_RELU = 1,
    GPU_GEMM_GELU = 2,
    GPU_GEMM_GELU_TANH = 3,
    GPU_GEMM_SILU = 4
};

/* A matrix in the memory of the queue's device: elements from a row to the next, and from a column to the next. */
typedef struct {
    const void *first;
    size_t between_rows;
    size_t between_cols;
} gpu_gemm_in;

/* One that is written. Elements must not share memory. */
typedef struct {
    void *first;
    size_t between_rows;
    size_t between_cols;
} gpu_gemm_out;

/* A stream, and what products on it keep: kernels and workspace. */
typedef struct gpu_gemm_queue gpu_gemm_queue;

/* device: a GPU's index in the driver's order, or -1 for the CPU. stream: a CUstream (a cudaStream_t is one) of the
 * device's primary context, or NULL for the default stream; NULL for the CPU. The stream exists until the queue is
 * closed. A queue of the default stream is for one thread. */
int gpu_gemm_open(int device, void *stream, gpu_gemm_queue **queue);

/* Closes a queue. Work launched before still ends, and its memories must exist until then. NULL is no error. */
void gpu_gemm_close(gpu_gemm_queue *queue);

/* C = activation(alpha (A * scales) (B * scales) + beta C + bias), where C is m x n and A m x k. A and B are of
 * type_ab: i8, e4m3 or e5m2, and contiguous along one side if there are scales. C is of type_c: f32, bf16 or f16. With
 * i8, k is at most 131,071.
 * Scales are f32: not read with GPU_GEMM_NO_SCALES; otherwise neither is NULL. With GPU_GEMM_BLOCKS the rows of C are
 * contiguous. bias is NULL or has n elements of type_c, one for each column of C. activation is a
 * gpu_gemm_activation. Both need no scales.
 *
 * Queues the work of a GPU and returns. Until it has ended, all memories exist, nobody else writes A, B, the scales and
 * the bias, and nobody reads or writes C. From its first element to its last, gaps too, each matrix is readable and initialised
 * memory. C overlaps neither A, B, the scales nor the
 * bias. */
int gpu_gemm_scaled(gpu_gemm_queue *queue, size_t m, size_t n, size_t k, int type_ab, int type_c, float alpha,
                    const gpu_gemm_in *a, const gpu_gemm_in *b, int scales, const gpu_gemm_in *scales_a,
                    const gpu_gemm_in *scales_b, float beta, const gpu_gemm_out *c, const void *bias, int activation);

/* C = alpha A B + beta C of int8_t with a C of int32_t, modulo 2^32. The queue and the memories are as above. */
int gpu_gemm_int8(gpu_gemm_queue *queue, size_t m, size_t n, size_t k, int32_t alpha, const gpu_gemm_in *a,
                  const gpu_gemm_in *b, int32_t beta, const gpu_gemm_out *c);

/* The words of this thread's last error, until its next call that fails. Empty before the first. */
const char *gpu_gemm_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
