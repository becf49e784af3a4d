/* The table in the memory of a CUDA device. The threads of the host find the subgraphs; what they add is copied to the
 * device and added there. varve takes the device's pointer as it is. */
#include "table.h"
#include <pthread.h>
#include <stdlib.h>
#include "complain.h"

static const unsigned STAGE = 1 << 14, THREADS = 256;

/* One for all threads: a call has the device to itself. */
struct stage {
	pthread_mutex_t lock;
	struct tally *tallies; /* on the device, STAGE of them */
	unsigned *overflowed;  /* on the device: 1 + the place in the block of a tally that was too much, or 0 */
};

static bool check(cudaError_t rc, const char *what)
{
	if (rc == cudaSuccess)
		return true;
	cudaGetLastError(); /* it is told here, and not found again by the next */
	return complain("CUDA cannot %s: %s", what, cudaGetErrorString(rc));
}

static __global__ void add_tallies(uint32_t *counts, size_t by_vertex, size_t by_orbit, const struct tally *what,
				   unsigned n, unsigned *overflowed)
{
	unsigned i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i >= n)
		return;
	if (atomicAdd(&counts[what[i].vertex * by_vertex + what[i].orbit * by_orbit], what[i].count) > UINT32_MAX - what[i].count)
		*overflowed = i + 1;
}

static bool add_some(struct table *t, struct stage *s, const struct tally *what, unsigned n)
{
	size_t by_vertex = t->columns ? 1 : t->orbits, by_orbit = t->columns ? t->vertices : 1;
	unsigned overflowed = 0;

	if (!check(cudaMemcpy(s->tallies, what, n * sizeof(*what), cudaMemcpyHostToDevice), "copy counts to the device"))
		return false;
	add_tallies<<<(n + THREADS - 1) / THREADS, THREADS>>>(t->counts, by_vertex, by_orbit, s->tallies, n, s->overflowed);
	/* waits for the kernel: when the last thread has come back the table is whole */
	if (!check(cudaGetLastError(), "start a kernel") ||
	    !check(cudaMemcpy(&overflowed, s->overflowed, sizeof(overflowed), cudaMemcpyDeviceToHost), "add counts"))
		return false;
	if (overflowed)
		return complain("vertex %u touches orbit %u more than %u times: a counter overflowed", what[overflowed - 1].vertex,
				what[overflowed - 1].orbit, UINT32_MAX);
	return true;
}

static bool cuda_add(struct table *t, const struct tally *what, size_t n)
{
	struct stage *s = (struct stage *)t->more;
	bool fine = true;

	pthread_mutex_lock(&s->lock);
	for (size_t done = 0; fine && done < n; done += STAGE)
		fine = add_some(t, s, what + done, n - done < STAGE ? (unsigned)(n - done) : STAGE);
	pthread_mutex_unlock(&s->lock);
	return fine;
}

static bool cuda_read(struct table *t, uint32_t *out)
{
	return check(cudaMemcpy(out, t->counts, table_cells(t) * sizeof(*out), cudaMemcpyDeviceToHost), "read the table");
}

static void cuda_close(struct table *t)
{
	struct stage *s = (struct stage *)t->more;

	cudaFree(t->counts);
	cudaFree(s->tallies);
	cudaFree(s->overflowed);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static bool cuda_open(struct table *t)
{
	struct stage *s = (struct stage *)calloc(1, sizeof(*s));
	size_t bytes = table_cells(t) * sizeof(*t->counts);

	if (!s)
		return complain("no memory");
	t->more = s;
	pthread_mutex_init(&s->lock, NULL);
	if (check(cudaMalloc((void **)&t->counts, bytes), "allocate the table") &&
	    check(cudaMalloc((void **)&s->tallies, STAGE * sizeof(*s->tallies)), "allocate memory") &&
	    check(cudaMalloc((void **)&s->overflowed, sizeof(*s->overflowed)), "allocate memory") &&
	    check(cudaMemset(t->counts, 0, bytes), "clear the table") &&
	    check(cudaMemset(s->overflowed, 0, sizeof(*s->overflowed)), "clear memory") &&
	    check(cudaDeviceSynchronize(), "clear the table"))
		return true;
	cuda_close(t);
	return false;
}

const struct table_kind table_cuda = { cuda_open, cuda_add, cuda_read, cuda_close };
