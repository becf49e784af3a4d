#include "engine/ranks/remote_serve.h"
#include "base/err.h"
#include "base/log.h"
#include "core/format/run.h"
#include "engine/lineage/provenance.h"
#include "engine/lineage/layer_file.h"
#include "engine/read/restore.h"
#include <inttypes.h>

int vv_remote_serve_check(const struct vv_exchange *ask, uint32_t size, uint64_t *len)
{
	const struct vv_request *q = (const struct vv_request *)ask->in;
	uint64_t sum = 0;

	for (uint32_t r = 0; r < size; r++) {
		len[r] = 0;
		for (uint64_t i = 0; i < ask->in_len[r] / sizeof(*q); i++, q++) {
			if (!q->layer || q->len < 1 || q->len > VV_REMOTE_SERVE_MOST || q->pos > VV_MAX_PAYLOAD - q->len)
				return vv_err_set(VV_EPEER, "rank %u asks for something that cannot be", r);
			len[r] += q->len;
		}
		sum += len[r];
	}
	return sum > VV_MAX_PAYLOAD ? vv_err_set(VV_EPEER, "the ranks ask for %" PRIu64 " bytes at once", sum) : 0;
}

/* Does the layer in this store belong to the same copy of the lineage as the table that refers to
 * it? The layer's own eras may be the only source here. */
static bool is_meant(const struct vv_lineage *lin, const struct vv_request *q)
{
	uint64_t epoch = vv_run_epoch(q->layer), token = vv_provenance_token(lin, epoch);

	if (q->token && !token) {
		if (vv_layer_file_read_eras(lin, q->layer) < 0)
			vv_err_clear(); /* reading the layer reports that error */
		token = vv_provenance_token(lin, epoch);
	}
	return !q->token || !token || q->token == token;
}

static struct vv_salvage_need need_for(const struct vv_request *q, uint8_t *to)
{
	return (struct vv_salvage_need){ .layer = q->layer, .pos = q->pos, .len = q->len, .to = to };
}

static int refuse(const struct vv_lineage *lin, const struct vv_request *q, uint8_t *to, struct vv_salvage_needs *bad, struct vv_warned *warned)
{
	struct vv_salvage_need need = need_for(q, to);

	if (vv_salvage_is_first_warning(warned, q->layer))
		vv_log_warn("the layer of rank %u in epoch %" PRIu64 " of '%s' in store '%s' belongs to another copy of the lineage than what refers to it; it is taken as lost",
			    vv_run_rank(q->layer), vv_run_epoch(q->layer), lin->name, lin->store->url);
	return vv_salvage_add(bad, &need);
}

/* After damage: everything is read again, piece by piece. Meanwhile more eras may be known, so
 * each request is checked again. */
static int doubt(const struct vv_lineage *lin, const struct vv_request *q, size_t n, uint8_t *to, struct vv_salvage_needs *bad, struct vv_warned *warned)
{
	struct vv_salvage_needs need = { 0 };
	int rc = 0;

	bad->n = 0;
	for (size_t i = 0; rc == 0 && i < n; to += q[i++].len) {
		struct vv_salvage_need one = need_for(&q[i], to);

		rc = is_meant(lin, &q[i]) ? vv_salvage_add(&need, &one) : refuse(lin, &q[i], to, bad, warned);
	}
	if (rc == 0)
		rc = vv_salvage_read(lin, &need, bad, warned);
	vv_salvage_fini(&need);
	return rc;
}

int vv_remote_serve_read(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_exchange *ask, uint8_t *to, struct vv_salvage_needs *bad,
		  struct vv_warned *warned)
{
	const struct vv_request *q = (const struct vv_request *)ask->in;
	size_t n = (size_t)(ask->in_sum / sizeof(*q));
	struct vv_runs runs = { 0 };
	uint64_t at = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < n; at += q[i++].len) {
		bool meant = is_meant(lin, &q[i]);

		rc = meant ? 0 : refuse(lin, &q[i], to + at, bad, warned);
		if (rc == 0)
			rc = vv_run_add(&runs, (struct vv_run){ at, q[i].len, meant ? q[i].layer : 0, meant ? q[i].pos : 0 });
	}
	if (rc == 0)
		rc = vv_restore_read(lin, pool, &(struct vv_want){ .runs = &runs, .len = at, .to = to }, 1);
	if (vv_salvage_is_damage(rc))
		rc = doubt(lin, q, n, to, bad, warned);
	vv_run_fini(&runs);
	return rc;
}
