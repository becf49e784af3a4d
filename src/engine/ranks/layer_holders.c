#include "engine/ranks/layer_holders.h"
#include "base/mem.h"
#include "base/search.h"
#include "base/wire.h"
#include "engine/ranks/exchange.h"
#include <stdlib.h>

enum { MOST = 1 << 30 }; /* limit of a storage node's list in bytes */

void vv_layer_holders_fini(struct vv_layer_holders *h)
{
	vv_mem_free(h->v);
	*h = (struct vv_layer_holders){ 0 };
}

static int by_layer(const void *a, const void *b)
{
	const struct vv_holder *x = a, *y = b;

	if (x->layer != y->layer)
		return x->layer < y->layer ? -1 : 1;
	return (x->storage_node > y->storage_node) - (x->storage_node < y->storage_node);
}

/* Writes the list of layers that the leader of a storage node sees. */
static int put_list(const struct vv_lineage *lin, uint64_t from, struct vv_buf *b)
{
	struct vv_listing l = { 0 };
	int rc = vv_catalog_list(lin, from, &l);
	uint64_t epoch = 0;

	for (size_t i = 0; i < l.n_layers; i++) {
		vv_wire_put_var(b, vv_run_epoch(l.layer[i].layer) - epoch);
		vv_wire_put_var(b, vv_run_rank(l.layer[i].layer));
		epoch = vv_run_epoch(l.layer[i].layer);
	}
	vv_catalog_listing_fini(&l);
	return rc ? rc : vv_buf_check(b);
}

static int get_list(const uint8_t *p, size_t n, uint32_t place, struct vv_layer_holders *out)
{
	struct vv_wire w = vv_wire_over(p, n);
	uint64_t epoch = 0;

	while (vv_wire_left(&w)) {
		uint32_t rank;

		epoch += vv_wire_var_max(&w, VV_MAX_EPOCH);
		rank = (uint32_t)vv_wire_var_max(&w, VV_MAX_RANKS - 1);
		if (w.bad || epoch < 1 || epoch > VV_MAX_EPOCH)
			return vv_err_set(VV_EPEER, "rank %u sends a list of layers that cannot be", place);
		if (vv_mem_room(&out->v, out->n, &out->cap, sizeof(*out->v)) < 0)
			return VV_ENOMEM;
		out->v[out->n++] = (struct vv_holder){ vv_run_layer(epoch, rank), place };
	}
	return 0;
}

int vv_layer_holders_exchange(struct vv_group *g, int rc, const struct vv_lineage *lin, uint64_t from, struct vv_layer_holders *out)
{
	struct vv_layer_holders h = { 0 };
	struct vv_exchange m = { 0 };
	struct vv_buf b = { 0 };

	rc = vv_group_agree(g, g->comm, rc);
	if (rc == 0)
		rc = vv_comm_allreduce(g->comm, &from, 1, VARVE_MIN);
	if (rc)
		return rc;
	if (vv_group_leads_storage_node(g))
		rc = put_list(lin, from, &b);
	rc = vv_exchange_gather(&m, g, rc, b.p, b.n, MOST);
	for (uint32_t r = 0; rc == 0 && r < g->size; r++)
		if (m.in_len[r])
			rc = get_list(vv_exchange_from(&m, g, r), (size_t)m.in_len[r], r, &h);
	if (rc == 0 && h.n)
		qsort(h.v, h.n, sizeof(*h.v), by_layer);
	vv_buf_fini(&b);
	vv_exchange_free(&m, g);
	rc = vv_group_agree(g, g->comm, rc);
	if (rc)
		vv_layer_holders_fini(&h);
	else
		*out = h;
	return rc;
}

size_t vv_layer_holders_find(const struct vv_layer_holders *h, uint64_t layer)
{
	size_t i;

	VV_SEARCH(i, 0, h->n, h->v[i].layer < layer);
	return i < h->n && h->v[i].layer == layer ? i : h->n;
}
