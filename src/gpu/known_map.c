#include "gpu/known_map.h"

enum { LEAST_SLOTS = 64 };

/* At most three quarters full. */
static uint64_t slots_for(uint64_t n)
{
	uint64_t slots = n + n / 3 + LEAST_SLOTS;

	return slots < UINT32_MAX ? slots : UINT32_MAX;
}

static void drop(struct vv_gpu_table *t)
{
	vv_cuda_free(t->key);
	vv_cuda_free(t->place);
	*t = (struct vv_gpu_table){ 0 };
}

static int make(struct vv_gpu_table *t, uint64_t slots, cudaStream_t stream)
{
	struct vv_gpu_table made = { .slots = (uint32_t)slots };
	int rc = vv_cuda_new(&made.key, slots, sizeof(*made.key), "the index of digests");

	if (rc == 0)
		rc = vv_cuda_new(&made.place, slots, sizeof(*made.place), "the index of digests");
	if (rc == 0)
		rc = vv_cuda_check(cudaMemsetAsync(made.place, 0xff, slots * sizeof(*made.place), stream), "clearing the index of digests");
	if (rc)
		drop(&made);
	else
		*t = made;
	return rc;
}

/* Moves the entries of *t, except those of dead ordinals, into a table of `slots` slots. */
static int move(struct vv_gpu_table *t, uint64_t slots, const struct vv_gpu_table *also, const uint32_t *dead, uint32_t n_dead,
		struct vv_gpu_moved *out, cudaStream_t stream)
{
	static const char purpose[] = "moving the index of digests";
	struct vv_gpu_table to = { 0 };
	struct vv_gpu_moved *moved = NULL;
	int rc = make(&to, slots, stream);

	if (rc == 0)
		rc = vv_cuda_new(&moved, 1, sizeof(*moved), purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaMemsetAsync(moved, 0, sizeof(*moved), stream), purpose);
	if (rc == 0)
		rc = vv_digest_table_move(t, &to, also, dead, n_dead, moved, stream);
	if (rc == 0)
		rc = vv_cuda_check(cudaMemcpyAsync(out, moved, sizeof(*out), cudaMemcpyDeviceToHost, stream), purpose);
	if (rc == 0)
		rc = vv_cuda_check(cudaStreamSynchronize(stream), purpose);
	vv_cuda_free(moved);
	if (rc) {
		drop(&to);
		return rc;
	}
	drop(t);
	*t = to;
	return 0;
}

static void drop_aged(struct vv_known_map *m)
{
	m->forgotten += m->n_aged - m->both;
	m->n_aged = m->both = 0;
	drop(&m->aged);
}

void vv_known_map_clear(struct vv_known_map *m)
{
	drop(&m->young);
	drop(&m->aged);
	m->n_young = m->n_aged = m->both = 0;
}

void vv_known_map_fini(struct vv_known_map *m)
{
	vv_known_map_clear(m);
	*m = (struct vv_known_map){ 0 };
}

/* A table made under a higher limit shrinks to the memory of this one. */
static int shrink(struct vv_gpu_table *t, uint64_t most, cudaStream_t stream)
{
	struct vv_gpu_table none = { 0 };
	struct vv_gpu_moved moved;

	return t->slots > most ? move(t, most, &none, NULL, 0, &moved, stream) : 0;
}

int vv_known_map_limit(struct vv_known_map *m, size_t limit, size_t usual, cudaStream_t stream)
{
	int rc;

	m->limit = limit;
	m->usual = usual < limit ? usual : limit;
	if (m->n_aged > limit)
		drop_aged(m);
	if (m->n_young > limit) {
		m->forgotten += m->n_young - m->both;
		m->n_young = m->both = 0;
		drop(&m->young);
	}
	rc = shrink(&m->aged, slots_for(limit), stream);
	return rc ? rc : shrink(&m->young, slots_for(limit), stream);
}

/* Makes room for n entries in young. If aged exists, young gets its full size at once. A growing
 * table has old and new slots at the same time, which must not exceed two full generations
 * together. */
static int reserve(struct vv_known_map *m, size_t n, cudaStream_t stream)
{
	uint64_t want = slots_for(n > m->usual ? n : m->usual), most = slots_for(m->limit), have = m->young.slots;
	struct vv_gpu_table none = { 0 };
	struct vv_gpu_moved moved;

	if (slots_for(n) <= have)
		return 0;
	if (m->aged.slots || want > most)
		want = most;
	else if (want < 2 * have)
		want = 2 * have < most ? 2 * have : most;
	return have ? move(&m->young, want, &none, NULL, 0, &moved, stream) : make(&m->young, want, stream);
}

int vv_known_map_begin(struct vv_known_map *m, size_t n, size_t *take, cudaStream_t stream)
{
	size_t may = n < m->limit ? n : m->limit;
	int rc;

	if (m->n_young && m->n_young + n > m->limit) {
		drop_aged(m);
		m->aged = m->young;
		m->n_aged = m->n_young;
		m->young = (struct vv_gpu_table){ 0 };
		m->n_young = 0;
	}
	rc = reserve(m, m->n_young + may, stream);
	if (rc)
		return rc;
	m->forgotten += n - may;
	*take = may;
	return 0;
}

void vv_known_map_end(struct vv_known_map *m, size_t entered, size_t promoted)
{
	m->n_young += entered;
	m->both += promoted;
}

/* Removes the dead entries of a generation and counts it again. Without memory to rebuild it, the
 * generation is emptied. */
static int cleanse(struct vv_gpu_table *t, size_t *n, const struct vv_gpu_table *also, const uint32_t *dead, size_t n_dead, size_t *both,
		   cudaStream_t stream)
{
	struct vv_gpu_moved moved = { 0 };
	int rc = t->slots ? move(t, t->slots, also, dead, (uint32_t)n_dead, &moved, stream) : 0;

	if (rc && rc != VV_ENOMEM)
		return rc;
	if (rc) {
		vv_err_clear();
		drop(t);
	}
	*n = moved.n;
	*both = moved.both;
	return 0;
}

int vv_known_map_kill(struct vv_known_map *m, const uint32_t *dead, size_t n, cudaStream_t stream)
{
	struct vv_gpu_table none = { 0 };
	uint32_t *there = NULL;
	size_t unused;
	int rc = vv_cuda_new(&there, n, sizeof(*there), "epochs that do not count");

	if (rc == 0)
		rc = vv_cuda_check(cudaMemcpyAsync(there, dead, n * sizeof(*dead), cudaMemcpyHostToDevice, stream), "epochs that do not count");
	if (rc == 0)
		rc = cleanse(&m->aged, &m->n_aged, &m->young, there, n, &m->both, stream);
	if (rc == 0)
		rc = cleanse(&m->young, &m->n_young, &none, there, n, &unused, stream);
	if (m->n_young == 0)
		m->both = 0;
	vv_cuda_free(there);
	return rc;
}
