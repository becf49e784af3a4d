#include "engine/ranks/parity_job.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include <string.h>

static void free_objects(struct vv_parity_object *o, size_t n)
{
	for (size_t i = 0; o && i < n; i++)
		vv_mem_free(o[i].bad);
	vv_mem_free(o);
}

void vv_parity_job_fini(struct vv_parity_job *j)
{
	free_objects(j->data, j->head.n_layers);
	free_objects(j->parity, j->head.n_layers);
	vv_mem_free(j->digest);
	vv_parity_plan_fini(&j->plan);
	vv_parity_head_fini(&j->head);
	*j = (struct vv_parity_job){ 0 };
}

static int measure_head(struct vv_parity_job *j)
{
	struct vv_buf b = { 0 };
	int rc;

	vv_parity_head_put(&j->head, &b);
	rc = vv_buf_check(&b);
	j->head_len = b.n;
	vv_buf_fini(&b);
	return rc;
}

static int init(struct vv_parity_job *j, struct vv_parity_head *head, const uint64_t *most)
{
	size_t n = head->n_layers;
	int rc;

	*j = (struct vv_parity_job){ .head = *head };
	*head = (struct vv_parity_head){ 0 };
	j->data = vv_mem_new(n, sizeof(*j->data));
	j->parity = vv_mem_new(n, sizeof(*j->parity));
	j->digest = vv_mem_new(n, sizeof(*j->digest));
	rc = j->data && j->parity && j->digest ? 0 : VV_ENOMEM;
	if (rc == 0)
		rc = most ? vv_parity_plan_make_own(&j->plan, &j->head, *most) : vv_parity_plan_make(&j->plan, &j->head);
	if (rc == 0 && j->head.block_len && j->head.block_len != j->plan.block_len)
		rc = vv_err_set(VV_EDAMAGED, "parity: blocks of %u bytes, where the layers make %u", j->head.block_len, j->plan.block_len);
	if (rc == 0) {
		j->head.block_len = j->plan.block_len;
		rc = measure_head(j);
	}
	for (size_t i = 0; rc == 0 && i < n; i++) {
		j->data[i].n_blocks = (size_t)vv_parity_plan_blocks(j->head.layer[i].len, j->plan.block_len);
		j->parity[i].n_blocks = (size_t)j->plan.n_parity[i];
	}
	if (rc)
		vv_parity_job_fini(j);
	return rc;
}

int vv_parity_job_init(struct vv_parity_job *j, struct vv_parity_head *head)
{
	return init(j, head, NULL);
}

int vv_parity_job_init_own(struct vv_parity_job *j, struct vv_parity_head *head, uint64_t most)
{
	return init(j, head, &most);
}

size_t vv_parity_job_find(const struct vv_parity_job *j, uint32_t rank)
{
	size_t i;

	VV_SEARCH(i, 0, j->head.n_layers, j->head.layer[i].rank < rank);
	return i < j->head.n_layers && j->head.layer[i].rank == rank ? i : j->head.n_layers;
}

struct vv_parity_object *vv_parity_job_object(const struct vv_parity_job *j, const struct vv_parity_block *stripe, unsigned block)
{
	return (block < j->plan.code.k ? j->data : j->parity) + stripe[block].member;
}

bool vv_parity_job_is_wanted(const struct vv_parity_job *j, const struct vv_parity_block *stripe, unsigned block)
{
	return stripe[block].len && vv_parity_job_object(j, stripe, block)->wanted;
}

static bool is_usable(const struct vv_parity_job *j, const struct vv_parity_block *stripe, unsigned block)
{
	const struct vv_parity_object *o = vv_parity_job_object(j, stripe, block);

	return stripe[block].len && o->there && !(o->bad && o->bad[stripe[block].number]);
}

unsigned vv_parity_job_sources(const struct vv_parity_job *j, const struct vv_parity_block *stripe, unsigned block,
			       uint8_t from[VV_ERASURE_BLOCKS])
{
	unsigned width = j->plan.code.k + j->plan.code.m, n = vv_parity_plan_data(&j->plan, stripe), found = 0;

	if (is_usable(j, stripe, block)) {
		from[0] = (uint8_t)block;
		return 1;
	}
	for (unsigned b = 0; b < width && found < n; b++)
		if (is_usable(j, stripe, b))
			from[found++] = (uint8_t)b;
	return found == n ? n : 0;
}

bool vv_parity_job_is_possible(const struct vv_parity_job *j)
{
	unsigned width = j->plan.code.k + j->plan.code.m;
	uint8_t from[VV_ERASURE_BLOCKS];

	for (size_t s = 0; s < j->plan.n_stripes; s++) {
		const struct vv_parity_block *stripe = vv_parity_plan_stripe(&j->plan, s);

		for (unsigned b = 0; b < width; b++)
			if (vv_parity_job_is_wanted(j, stripe, b) && !vv_parity_job_sources(j, stripe, b, from))
				return false;
	}
	return true;
}

int vv_parity_job_add_bad(struct vv_parity_object *o, uint64_t block)
{
	if (block >= o->n_blocks)
		return vv_err_set(VV_EDAMAGED, "parity: a damaged block that is not there");
	if (!o->bad)
		o->bad = vv_mem_new(o->n_blocks, 1);
	if (!o->bad)
		return VV_ENOMEM;
	o->bad[block] = 1;
	return 0;
}

/* The least number of domains whose loss takes more than m blocks of the stripe, minus 1. */
static int stripe_survives(const struct vv_parity_job *j, const struct vv_parity_block *stripe, const uint32_t *domain)
{
	unsigned width = j->plan.code.k + j->plan.code.m, count[VV_ERASURE_BLOCKS] = { 0 }, lost = 0;
	uint32_t which[VV_ERASURE_BLOCKS];
	size_t n = 0;

	for (unsigned b = 0; b < width; b++) {
		size_t d = 0;

		if (!stripe[b].len)
			continue;
		if (!is_usable(j, stripe, b)) {
			lost++;
			continue;
		}
		while (d < n && which[d] != domain[vv_parity_job_object(j, stripe, b)->place])
			d++;
		which[d] = domain[vv_parity_job_object(j, stripe, b)->place];
		n += d == n;
		count[d]++;
	}
	for (int losses = 0;; losses++) {
		size_t most = 0;

		if (lost > j->plan.code.m || losses > j->plan.code.m)
			return losses - 1;
		for (size_t d = 0; d < n; d++)
			most = count[d] > count[most] ? d : most;
		lost += count[most];
		count[most] = 0;
	}
}

int vv_parity_job_survives(const struct vv_parity_job *j, const uint32_t *domain)
{
	int least = j->plan.code.m;

	for (size_t s = 0; s < j->plan.n_stripes; s++) {
		int n = stripe_survives(j, vv_parity_plan_stripe(&j->plan, s), domain);

		least = n < least ? n : least;
	}
	return least;
}
