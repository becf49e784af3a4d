/* Each stripe takes one block from each of the k domains that have most left. It puts its parity
 * into the m others that have least parity. So layers of equal length are used up together. */
#include "core/ranks/parity_plan.h"
#include "base/err.h"
#include "base/mem.h"
#include <inttypes.h>
#include <string.h>

enum {
	BLOCKS = 1024,        /* of the longest layer; an incomplete stripe at the end costs little */
	BLOCK_LEAST = 4096,
	BLOCK_MOST = 1 << 20,
};

struct domain {
	uint64_t left;   /* data blocks */
	uint64_t parity; /* blocks */
	bool used;       /* in the stripe that is being made */
};

struct maker {
	struct vv_parity_plan *p;
	const struct vv_parity_layer *member;
	struct domain *domain;
	size_t n_domains;
	uint32_t *of;    /* of each member: its domain's place in `domain` */
	uint32_t *taken; /* of each member: data blocks in stripes */
	size_t cap;
	size_t own;    /* only stripes with parity of this member are kept; n_members: all */
	uint64_t most; /* bytes of its parity */
};

static uint32_t choose_block_len(uint64_t longest)
{
	uint32_t len = BLOCK_LEAST;

	while (len < BLOCK_MOST && longest > (uint64_t)len * BLOCKS)
		len *= 2;
	return len;
}

size_t vv_parity_plan_sets(size_t n_domains, size_t width)
{
	return n_domains < 2 * width ? 1 : n_domains / width;
}

void vv_parity_plan_fini(struct vv_parity_plan *p)
{
	vv_mem_free(p->block);
	vv_mem_free(p->parity_len);
	vv_mem_free(p->n_parity);
	*p = (struct vv_parity_plan){ 0 };
}

unsigned vv_parity_plan_data(const struct vv_parity_plan *p, const struct vv_parity_block *stripe)
{
	unsigned n = 0;

	while (n < p->code.k && stripe[n].len)
		n++;
	return n;
}

static uint64_t left_of(const struct maker *m, size_t i)
{
	return vv_parity_plan_blocks(m->member[i].len, m->p->block_len) - m->taken[i];
}

static void find_domains(struct maker *m)
{
	for (size_t i = 0; i < m->p->n_members; i++) {
		uint32_t first = m->member[i].domain; /* a member before this one, or itself */

		m->of[i] = first < i ? m->of[first] : (uint32_t)m->n_domains++;
		m->domain[m->of[i]].left += left_of(m, i);
	}
}

/* The domain with most data left, or `n_domains`. */
static size_t fullest(const struct maker *m)
{
	size_t best = m->n_domains;

	for (size_t d = 0; d < m->n_domains; d++)
		if (!m->domain[d].used && m->domain[d].left && (best == m->n_domains || m->domain[d].left > m->domain[best].left))
			best = d;
	return best;
}

/* The domain with least parity. There are at least k + m, so one is left. */
static size_t emptiest(const struct maker *m)
{
	size_t best = m->n_domains;

	for (size_t d = 0; d < m->n_domains; d++)
		if (!m->domain[d].used && (best == m->n_domains || m->domain[d].parity < m->domain[best].parity))
			best = d;
	return best;
}

static struct vv_parity_block take_data(struct maker *m, size_t d)
{
	uint32_t len = m->p->block_len;
	size_t best = SIZE_MAX;
	uint64_t at;

	for (size_t i = 0; i < m->p->n_members; i++)
		if (m->of[i] == d && left_of(m, i) && (best == SIZE_MAX || left_of(m, i) > left_of(m, best)))
			best = i;
	at = (uint64_t)m->taken[best] * len;
	m->domain[d].used = true;
	m->domain[d].left--;
	return (struct vv_parity_block){ .member = (uint32_t)best,
					 .number = m->taken[best]++,
					 .at = at,
					 .len = m->member[best].len - at < len ? (uint32_t)(m->member[best].len - at) : len };
}

static struct vv_parity_block take_parity(struct maker *m, size_t d, uint32_t len)
{
	struct vv_parity_plan *p = m->p;
	size_t best = SIZE_MAX;

	for (size_t i = 0; i < p->n_members; i++)
		if (m->of[i] == d && (best == SIZE_MAX || p->n_parity[i] < p->n_parity[best]))
			best = i;
	m->domain[d].used = true;
	m->domain[d].parity++;
	p->parity_len[best] += len;
	return (struct vv_parity_block){ .member = (uint32_t)best, .number = (uint32_t)p->n_parity[best]++, .at = p->parity_len[best] - len,
					 .len = len };
}

static int keep(struct maker *m, const struct vv_parity_block *stripe)
{
	struct vv_parity_plan *p = m->p;
	size_t width = (size_t)p->code.k + p->code.m;
	bool wanted = m->own == p->n_members;

	for (size_t i = p->code.k; i < width; i++)
		wanted |= stripe[i].member == m->own;
	if (!wanted)
		return 0;
	if (m->own < p->n_members && p->parity_len[m->own] > m->most)
		return vv_err_set(VV_EINVAL, "more parity than the object of %" PRIu64 " bytes has", m->most);
	if ((p->n_stripes + 1) * width > VV_PARITY_CELLS)
		return vv_err_set(VV_EINVAL, "one layer is too long beside the others for stripes of %zu blocks", width);
	if (vv_mem_room(&p->block, p->n_stripes, &m->cap, width * sizeof(*p->block)) < 0)
		return VV_ENOMEM;
	memcpy(p->block + p->n_stripes++ * width, stripe, width * sizeof(*stripe));
	return 0;
}

static int add_stripe(struct maker *m)
{
	struct vv_parity_plan *p = m->p;
	struct vv_parity_block b[VV_ERASURE_BLOCKS] = { 0 };
	uint32_t longest = 0;

	for (unsigned i = 0; i < p->code.k; i++) {
		size_t d = fullest(m);

		if (d == m->n_domains)
			break;
		b[i] = take_data(m, d);
		longest = b[i].len > longest ? b[i].len : longest;
	}
	for (unsigned i = 0; i < p->code.m; i++)
		b[p->code.k + i] = take_parity(m, emptiest(m), longest);
	return keep(m, b);
}

/* Begins a stripe. Returns false if all data blocks are in stripes. */
static bool begin_stripe(struct maker *m)
{
	for (size_t d = 0; d < m->n_domains; d++)
		m->domain[d].used = false;
	return fullest(m) < m->n_domains;
}

static int fill(struct maker *m)
{
	const struct vv_erasure_code *c = &m->p->code;
	uint64_t blocks = 0;
	int rc = 0;

	find_domains(m);
	if (m->n_domains < (size_t)c->k + c->m)
		return vv_err_set(VV_EINVAL, "%zu failure domains cannot hold stripes of %u + %u blocks", m->n_domains, c->k, c->m);
	for (size_t d = 0; d < m->n_domains; d++)
		blocks += m->domain[d].left;
	if (blocks > VV_PARITY_BLOCKS || blocks * m->p->n_members > VV_PARITY_STEPS)
		return vv_err_set(VV_EINVAL, "layers of %" PRIu64 " blocks are too many for one set of failure domains", blocks);
	while (rc == 0 && begin_stripe(m))
		rc = add_stripe(m);
	return rc;
}

static int make(struct vv_parity_plan *p, const struct vv_parity_head *head, size_t own, uint64_t most)
{
	size_t n = head->n_layers;
	struct maker m = { .p = p, .member = head->layer, .own = own, .most = most };
	uint64_t longest = 0;
	int rc;

	for (size_t i = 0; i < n; i++)
		longest = m.member[i].len > longest ? m.member[i].len : longest;
	*p = (struct vv_parity_plan){ .code = { head->k, head->m }, .block_len = choose_block_len(longest), .n_members = n };
	p->parity_len = vv_mem_new(n, sizeof(*p->parity_len));
	p->n_parity = vv_mem_new(n, sizeof(*p->n_parity));
	m.domain = vv_mem_new(n, sizeof(*m.domain));
	m.of = vv_mem_new(n, sizeof(*m.of));
	m.taken = vv_mem_new(n, sizeof(*m.taken));
	rc = p->parity_len && p->n_parity && m.domain && m.of && m.taken ? fill(&m) : VV_ENOMEM;
	vv_mem_free(m.domain);
	vv_mem_free(m.of);
	vv_mem_free(m.taken);
	if (rc)
		vv_parity_plan_fini(p);
	return rc;
}

int vv_parity_plan_make(struct vv_parity_plan *p, const struct vv_parity_head *head)
{
	return make(p, head, head->n_layers, 0);
}

int vv_parity_plan_make_own(struct vv_parity_plan *p, const struct vv_parity_head *head, uint64_t most)
{
	return make(p, head, head->own, most);
}
