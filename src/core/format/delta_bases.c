#include "core/format/delta_bases.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "core/format/payload.h"

enum { EPOCHS = 1 << 20 };

#define POSITIONS (1ull << 40)

void vv_delta_bases_fini(struct vv_delta_bases *b)
{
	vv_mem_free(b->v);
	vv_mem_free(b->block);
	*b = (struct vv_delta_bases){ 0 };
}

int vv_delta_bases_add(struct vv_delta_bases *b, size_t block, const struct vv_delta_base *v, size_t n)
{
	if (vv_mem_room(&b->block, b->n_blocks, &b->blocks_cap, sizeof(*b->block)) < 0)
		return VV_ENOMEM;
	b->block[b->n_blocks++] = (struct vv_delta_bases_block){ block, b->n, n };
	for (size_t i = 0; i < n; i++) {
		if (vv_mem_room(&b->v, b->n, &b->cap, sizeof(*b->v)) < 0)
			return VV_ENOMEM;
		b->v[b->n++] = v[i];
	}
	return 0;
}

const struct vv_delta_base *vv_delta_bases_of(const struct vv_delta_bases *b, size_t block, size_t *n)
{
	size_t i;

	VV_SEARCH(i, 0, b->n_blocks, b->block[i].block < block);
	if (i == b->n_blocks || b->block[i].block != block)
		return NULL;
	*n = b->block[i].n;
	return &b->v[b->block[i].first];
}

uint64_t vv_delta_bases_sum(const struct vv_delta_base *v, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i].len;
	return sum;
}

/* The layers of the bases, ascending, each with the end of its last base so far. */
struct epochs {
	struct epoch_end {
		uint64_t epoch, end;
	} *v;
	size_t n, cap;
};

static size_t number_of(const struct epochs *e, uint64_t epoch)
{
	size_t i;

	VV_SEARCH(i, 0, e->n, e->v[i].epoch < epoch);
	return i;
}

static int note_epoch(struct epochs *e, uint64_t epoch)
{
	size_t at = number_of(e, epoch);

	if (at < e->n && e->v[at].epoch == epoch)
		return 0;
	if (vv_mem_room(&e->v, e->n, &e->cap, sizeof(*e->v)) < 0)
		return VV_ENOMEM;
	for (size_t i = e->n++; i > at; i--)
		e->v[i] = e->v[i - 1];
	e->v[at] = (struct epoch_end){ epoch, 0 };
	return 0;
}

void vv_delta_bases_put(const struct vv_delta_bases *b, struct vv_buf *out)
{
	struct epochs e = { 0 };
	uint64_t last = 0;

	for (size_t i = 0; i < b->n; i++)
		if (b->v[i].epoch && note_epoch(&e, b->v[i].epoch) < 0)
			out->failed = true;
	vv_wire_put_var(out, e.n);
	for (size_t i = 0; i < e.n; last = e.v[i++].epoch)
		vv_wire_put_var(out, e.v[i].epoch - last);
	for (size_t k = 0; k < b->n_blocks && !out->failed; k++) {
		vv_wire_put_var(out, b->block[k].n);
		for (size_t i = b->block[k].first; i < b->block[k].first + b->block[k].n; i++) {
			const struct vv_delta_base *x = &b->v[i];
			size_t at = x->epoch ? number_of(&e, x->epoch) : 0;

			vv_wire_put_var(out, x->epoch ? at + 1 : 0);
			vv_wire_put_var(out, x->len);
			if (!x->epoch)
				continue;
			vv_wire_put_signed(out, (int64_t)(x->pos - e.v[at].end));
			e.v[at].end = x->pos + x->len;
		}
	}
	vv_mem_free(e.v);
}

static int damaged(const char *what)
{
	return vv_err_set(VV_EDAMAGED, "section BASES: %s", what);
}

static int get_epochs(struct vv_wire *w, uint64_t epoch, struct epochs *out)
{
	uint64_t n = vv_wire_var_max(w, EPOCHS), last = 0;

	if (w->bad || n > vv_wire_left(w))
		return damaged("impossible number of epochs");
	for (uint64_t i = 0; i < n; i++) {
		uint64_t gap = vv_wire_var_max(w, epoch);

		if (w->bad || gap == 0 || last + gap >= epoch)
			return damaged("a base is not of an older epoch");
		last += gap;
		if (note_epoch(out, last) < 0)
			return VV_ENOMEM;
	}
	return 0;
}

static int get_base(struct vv_wire *w, struct epochs *e, uint64_t left, struct vv_delta_base *out)
{
	uint64_t k = vv_wire_var_max(w, e->n), len = vv_wire_var_max(w, left);
	int64_t jump = k ? vv_wire_signed(w) : 0;
	uint64_t end = k && !w->bad ? e->v[k - 1].end : 0, pos = end + (uint64_t)jump;

	if (w->bad || len == 0 || (k && (jump < -(int64_t)end || jump > (int64_t)POSITIONS || pos + len > POSITIONS)))
		return damaged("malformed base");
	*out = (struct vv_delta_base){ k ? e->v[k - 1].epoch : 0, pos, len };
	if (k)
		e->v[k - 1].end = pos + len;
	return 0;
}

static int get_block(struct vv_delta_bases *b, struct vv_wire *w, struct epochs *e, size_t block, uint64_t raw_len)
{
	struct vv_delta_base v[VV_DELTA_BASES_EXTENTS];
	uint64_t n = vv_wire_var_max(w, VV_DELTA_BASES_EXTENTS), left = raw_len * VV_DELTA_BASES_TIMES + VV_DELTA_BASES_MORE;
	int rc = 0;

	if (w->bad || n == 0)
		return damaged("impossible number of bases");
	for (uint64_t i = 0; rc == 0 && i < n; left -= v[i++].len)
		rc = get_base(w, e, left, &v[i]);
	return rc ? rc : vv_delta_bases_add(b, block, v, (size_t)n);
}

int vv_delta_bases_get(struct vv_delta_bases *b, const void *p, size_t n, const struct vv_blocks *blocks, uint32_t codec, uint64_t epoch)
{
	struct vv_wire w = vv_wire_over(p, n);
	struct epochs e = { 0 };
	int rc = p ? get_epochs(&w, epoch, &e) : 0;

	for (size_t i = 0; rc == 0 && i < blocks->n; i++)
		if (blocks->v[i].codec == codec)
			rc = p ? get_block(b, &w, &e, i, blocks->v[i].raw_len) : damaged("it is missing, and blocks need it");
	if (rc == 0 && p && (w.bad || vv_wire_left(&w) || !b->n_blocks))
		rc = damaged("bytes left over");
	for (size_t i = 0; rc == 0 && i < e.n; i++)
		if (e.v[i].end == 0)
			rc = damaged("an epoch without bases");
	vv_mem_free(e.v);
	return rc;
}
