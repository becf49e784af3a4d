#include "engine/ranks/exchange.h"
#include "base/mem.h"
#include "core/format/run.h"
#include <inttypes.h>
#include <string.h>

int vv_exchange_new(struct vv_exchange *m, uint32_t ranks, size_t out)
{
	m->out = vv_mem_new(out + 1, 1);
	m->out_len = vv_mem_new(ranks, sizeof(*m->out_len));
	m->in_len = vv_mem_new(ranks, sizeof(*m->in_len));
	return m->out && m->out_len && m->in_len ? 0 : VV_ENOMEM;
}

void vv_exchange_free(struct vv_exchange *m, const struct vv_group *g)
{
	vv_group_free(g, m->out);
	vv_group_free(g, m->in);
	vv_group_free(g, m->out_len);
	vv_group_free(g, m->in_len);
	*m = (struct vv_exchange){ 0 };
}

static int cannot_be(uint32_t rank, uint64_t len)
{
	return vv_err_set(VV_EPEER, "rank %u sends a message of %" PRIu64 " bytes, which cannot be", rank, len);
}

int vv_exchange_alloc_in(struct vv_exchange *m, uint32_t ranks, uint64_t unit)
{
	m->in_sum = 0;
	for (uint32_t r = 0; r < ranks; r++) {
		if (m->in_len[r] % unit || m->in_len[r] > VV_MAX_PAYLOAD || m->in_sum > VV_MAX_PAYLOAD)
			return cannot_be(r, m->in_len[r]);
		m->in_sum += m->in_len[r];
	}
	m->in = vv_mem_new((size_t)m->in_sum + 1, 1);
	return m->in ? 0 : VV_ENOMEM;
}

int vv_exchange_reply(struct vv_exchange *m, struct vv_group *g, int rc, uint64_t unit)
{
	if (rc == 0)
		rc = vv_exchange_alloc_in(m, g->size, unit);
	rc = vv_group_agree(g, g->comm, rc);
	return rc ? rc : vv_comm_alltoallv(g->comm, m->out, m->out_len, m->in, m->in_len);
}

int vv_exchange_send(struct vv_exchange *m, struct vv_group *g, int rc, uint64_t unit)
{
	rc = vv_group_agree(g, g->comm, rc);
	if (rc == 0)
		rc = vv_comm_alltoall(g->comm, m->out_len, m->in_len, sizeof(*m->out_len));
	return rc ? rc : vv_exchange_reply(m, g, rc, unit);
}

int vv_exchange_gather(struct vv_exchange *m, struct vv_group *g, int rc, const void *mine, size_t n, size_t most)
{
	uint64_t len = n, longest = 0;

	if (rc == 0)
		rc = vv_exchange_new(m, g->size, sizeof(len));
	rc = vv_group_agree(g, g->comm, rc);
	if (rc == 0) {
		memcpy(m->out, &len, sizeof(len));
		rc = vv_comm_allgather(g->comm, m->out, m->in_len, sizeof(len));
	}
	if (rc)
		return rc;
	for (uint32_t r = 0; rc == 0 && r < g->size; r++) {
		rc = m->in_len[r] > most ? cannot_be(r, m->in_len[r]) : 0;
		longest = m->in_len[r] > longest ? m->in_len[r] : longest;
	}
	if (rc || !longest)
		return rc; /* the same on all ranks */
	m->in_sum = longest * g->size;
	vv_mem_free(m->out);
	m->out = vv_mem_new((size_t)longest, 1);
	m->in = vv_mem_new((size_t)m->in_sum, 1);
	rc = vv_group_agree(g, g->comm, m->out && m->in ? 0 : VV_ENOMEM);
	if (rc)
		return rc;
	if (n)
		memcpy(m->out, mine, n);
	return vv_comm_allgather(g->comm, m->out, m->in, (size_t)longest);
}
