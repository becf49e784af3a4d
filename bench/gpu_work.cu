#include <cuda_bf16.h>
#include "gpu_work.h"
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 2048, WORDS = BLOCK / 8, THREADS = 256, BLOCKS = 132 * 16 };

static void check(cudaError_t e, const char *what)
{
	if (e == cudaSuccess)
		return;
	fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(e));
	exit(2);
}

void *gpu_work_new(size_t n)
{
	void *p;

	check(cudaMalloc(&p, n), "device memory");
	return p;
}

void gpu_work_free(void *p)
{
	check(cudaFree(p), "device memory");
}

/* ---- content */

__device__ uint64_t mix(uint64_t x) /* splitmix64 */
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

__device__ uint64_t word_before(uint64_t block, uint32_t j)
{
	uint64_t r = mix(block ^ 0xa5a5);
	unsigned q = r % 100;

	return q < 30 ? 0 : q < 40 ? mix((r >> 32 & 63) * 1000003 + j + 7777777) : mix(block * 4096 + j);
}

__device__ uint64_t word_after(uint64_t block, uint32_t j, uint64_t blocks, unsigned permille)
{
	uint64_t group = block / 4, r = mix(group ^ 0xc0ffee), groups = blocks / 4;
	unsigned q = (r >> 20) % 100;

	if (r % 1000 >= permille)
		return word_before(block, j);
	return q < 50 ? mix(~(block * 4096 + j)) : q < 80 ? word_before(mix(group + 99) % groups * 4 + block % 4, j) : 0;
}

__global__ void change(uint64_t *p, uint64_t blocks, unsigned permille, uint64_t seed)
{
	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < blocks * WORDS; i += (uint64_t)BLOCKS * THREADS)
		if (mix(i / WORDS ^ seed << 40) % 1000 < permille)
			p[i] = mix(~i ^ seed << 40);
}

__global__ void fill(uint64_t *p, uint64_t blocks, unsigned permille)
{
	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < blocks * WORDS; i += (uint64_t)BLOCKS * THREADS)
		p[i] = word_after(i / WORDS, i % WORDS, blocks, permille);
}

void gpu_work_fill(void *p, size_t n, unsigned permille)
{
	fill<<<BLOCKS, THREADS>>>((uint64_t *)p, n / BLOCK, permille);
	check(cudaDeviceSynchronize(), "content");
}

void gpu_work_change(void *p, size_t n, unsigned permille, unsigned seed)
{
	change<<<BLOCKS, THREADS>>>((uint64_t *)p, n / BLOCK, permille, seed);
	check(cudaDeviceSynchronize(), "content");
}

/* ---- training */

__device__ float noise(uint64_t i, unsigned seed)
{
	return ((int)(mix(i ^ (uint64_t)seed << 40) & 0xffff) - 32768) / 32768.0f * 1e-3f;
}

__global__ void train(void *p, uint64_t n, int bf16, unsigned permille, unsigned seed)
{
	uint64_t per_page = 4096 / (bf16 ? 2 : 4);

	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (uint64_t)BLOCKS * THREADS) {
		if (mix(i / per_page * 1000003 + seed) % 1000 >= permille)
			continue;
		if (bf16) {
			__nv_bfloat16 *x = (__nv_bfloat16 *)p + i;
			*x = __float2bfloat16(__bfloat162float(*x) * 0.999f + noise(i, seed));
		} else {
			float *x = (float *)p + i;
			*x = *x * 0.999f + noise(i, seed);
		}
	}
}

void gpu_work_train(void *p, size_t n, int bf16, unsigned permille, unsigned seed)
{
	train<<<BLOCKS, THREADS>>>(p, n / (bf16 ? 2 : 4), bf16, permille, seed);
	check(cudaDeviceSynchronize(), "training");
}

void gpu_work_zero(void *p, size_t n)
{
	check(cudaMemset(p, 0, n), "content");
	check(cudaDeviceSynchronize(), "content");
}

__global__ void add(const uint64_t *p, uint64_t n, unsigned long long *sum)
{
	unsigned long long mine = 0;

	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += (uint64_t)BLOCKS * THREADS)
		mine += mix(p[i] ^ i * 0x9e3779b97f4a7c15ull);
	atomicAdd(sum, mine);
}

uint64_t gpu_work_sum(const void *p, size_t n)
{
	unsigned long long *there, sum = 0;

	check(cudaMalloc(&there, sizeof(sum)), "a sum");
	check(cudaMemset(there, 0, sizeof(sum)), "a sum");
	add<<<BLOCKS, THREADS>>>((const uint64_t *)p, n / 8, there);
	check(cudaMemcpy(&sum, there, sizeof(sum), cudaMemcpyDeviceToHost), "a sum");
	cudaFree(there);
	return sum;
}

/* ---- limits */

__global__ void read_all(const uint4 *p, uint64_t n, uint32_t *never)
{
	uint32_t any = 0;
	uint64_t step = (uint64_t)BLOCKS * THREADS;

#pragma unroll 8
	for (uint64_t i = (uint64_t)blockIdx.x * THREADS + threadIdx.x; i < n; i += step) {
		uint4 v = __ldcs(p + i);

		any ^= v.x ^ v.y ^ v.z ^ v.w;
	}
	if (any == 0x12345678)
		*never = any;
}

struct stopwatch {
	cudaEvent_t begin, end;
};

static stopwatch start()
{
	stopwatch w;

	check(cudaEventCreate(&w.begin), "a clock");
	check(cudaEventCreate(&w.end), "a clock");
	check(cudaEventRecord(w.begin), "a clock");
	return w;
}

static double stop(stopwatch w)
{
	float ms = 0;

	check(cudaEventRecord(w.end), "a clock");
	check(cudaEventSynchronize(w.end), "what is measured");
	check(cudaEventElapsedTime(&ms, w.begin, w.end), "a clock");
	cudaEventDestroy(w.begin);
	cudaEventDestroy(w.end);
	return ms / 1e3;
}

double gpu_work_read(const void *p, size_t n)
{
	stopwatch w = start();

	read_all<<<BLOCKS, THREADS>>>((const uint4 *)p, n / 16, (uint32_t *)(uintptr_t)p);
	return stop(w);
}

double gpu_work_copy(void *to, const void *from, size_t n)
{
	stopwatch w = start();

	check(cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToDevice), "copying");
	return stop(w);
}

double gpu_work_to_host(void *host, const void *p, size_t n)
{
	stopwatch w = start();

	check(cudaMemcpyAsync(host, p, n, cudaMemcpyDeviceToHost), "copying to the host");
	return stop(w);
}
