/* What bench_gpu does on the device itself: content, and the plain reading and copying that dedup is measured against. */
#ifndef VV_BENCH_GPU_WORK_H
#define VV_BENCH_GPU_WORK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the program if there is none. */
void *gpu_work_new(size_t n);
void gpu_work_free(void *p);
/* Content as in cpu.dedup: blocks of 2 KiB, 30 % of them zero, 10 % one of 64 that come again and again, the others met once. With
 * permille, the state after that, of which so much is other: half of it new, 30 % moved from elsewhere, 20 % zero. */
void gpu_work_fill(void *p, size_t n, unsigned permille);
/* So much of it, in the same blocks, is new: other blocks and other content with every seed. */
void gpu_work_change(void *p, size_t n, unsigned permille, unsigned seed);

/* A training step: in so many of the pages of 4096 bytes each float32 (with bf16: bfloat16) changes a little. All of it is 0 at first. */
void gpu_work_train(void *p, size_t n, int bf16, unsigned permille, unsigned seed);
void gpu_work_zero(void *p, size_t n);
/* Over all bytes. */
uint64_t gpu_work_sum(const void *p, size_t n);

/* Each returns seconds. */
double gpu_work_read(const void *p, size_t n);
double gpu_work_copy(void *to, const void *from, size_t n);
double gpu_work_to_host(void *host, const void *p, size_t n);

#ifdef __cplusplus
}
#endif

#endif
