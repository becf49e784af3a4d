#include "engine/upkeep/affected_epochs.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/upkeep/reachable.h"
#include <string.h>

void vv_affected_epochs_fini(struct vv_affected_epochs *a)
{
	vv_mem_free(a->v);
	vv_mem_free(a->piece);
	*a = (struct vv_affected_epochs){ 0 };
}

static size_t position(const struct vv_affected_epochs *a, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, a->n, a->v[i] < epoch);
	return i;
}

static bool has(const struct vv_affected_epochs *a, uint64_t epoch)
{
	size_t i = position(a, epoch);

	return i < a->n && a->v[i] == epoch;
}

int vv_affected_epochs_add(struct vv_affected_epochs *a, uint64_t epoch)
{
	size_t i = position(a, epoch);

	if (has(a, epoch))
		return 0;
	if (vv_mem_room(&a->v, a->n, &a->cap, sizeof(*a->v)) < 0)
		return VV_ENOMEM;
	memmove(&a->v[i + 1], &a->v[i], (a->n - i) * sizeof(*a->v));
	a->v[i] = epoch;
	a->n++;
	return 0;
}

int vv_affected_epochs_damage(struct vv_affected_epochs *a, uint64_t layer, const struct vv_extent *at)
{
	if (vv_mem_room(&a->piece, a->n_pieces, &a->pieces_cap, sizeof(*a->piece)) < 0)
		return VV_ENOMEM;
	a->piece[a->n_pieces++] = (struct vv_affected_epochs_piece){ layer, at ? *at : (struct vv_extent){ 0, 0 } };
	return 0;
}

static bool needs_piece(const struct vv_reachable *r, const struct vv_affected_epochs_piece *p)
{
	const struct vv_reachable_layer *l;
	size_t i;

	VV_SEARCH(i, 0, r->n, r->v[i].layer < p->layer);
	if (i == r->n || r->v[i].layer != p->layer)
		return false;
	l = &r->v[i];
	if (!p->at.len)
		return l->chain || l->need.n;
	i = vv_payload_extent_find(&l->need, p->at.pos);
	return i < l->need.n && l->need.v[i].pos < p->at.pos + p->at.len;
}

/* Does any rank of the epoch need a damaged piece? A rank whose layer cannot be read is passed
 * over: the epoch is already known as affected, or the layer lies in another store. */
static int needs_any(const struct vv_affected_epochs *a, const struct vv_lineage *lin, uint64_t epoch, bool *out)
{
	const struct vv_listing alone = { .epoch = &epoch, .n_epochs = 1 };
	struct vv_reachable r = { 0 };
	struct vv_commit c = { 0 };
	int rc = vv_reachable_init(&r, lin, &alone);

	*out = false;
	r.tolerant = true;
	if (rc == 0)
		rc = vv_catalog_commit(lin, epoch, &c);
	for (uint32_t rank = 0; rc == 0 && rank < c.n_ranks; rank++) {
		rc = vv_reachable_add_rank(&r, &alone, epoch, rank);
		rc = rc == VV_ENOMEM ? rc : 0;
	}
	if (rc == 0)
		rc = vv_reachable_sort(&r);
	for (size_t i = 0; rc == 0 && !*out && i < a->n_pieces; i++)
		*out = needs_piece(&r, &a->piece[i]);
	vv_commit_fini(&c);
	vv_reachable_fini(&r);
	vv_err_clear();
	return rc == VV_ENOMEM ? rc : 0;
}

int vv_affected_epochs_find(struct vv_affected_epochs *a, const struct vv_lineage *lin, const struct vv_listing *live)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && a->n_pieces && i < live->n_epochs; i++) {
		bool needs = false;

		if (!has(a, live->epoch[i]))
			rc = needs_any(a, lin, live->epoch[i], &needs);
		if (needs)
			rc = vv_affected_epochs_add(a, live->epoch[i]);
	}
	for (size_t i = 0; i < live->n_epochs; i++)
		a->intact = has(a, live->epoch[i]) ? a->intact : live->epoch[i];
	return rc;
}
