/* A layer file consists of a header, blocks, sections, a directory and a trailer. Each of these
 * parts has a check. The copy is published only if all checks of the bytes that were written
 * match. */
#include "engine/upkeep/copy_layer.h"
#include "base/err.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/lineage/layer_file.h"
#include <inttypes.h>
#include <string.h>

enum {
	PIECE = 2 << 20,
	PIECE_LEAST = 64 << 10,
	PIECE_REMOTE = 8 << 20, /* of a store that answers late */
};

struct layer_copier {
	const struct vv_layer_copy *c;
	struct vv_layer_file *from;
	struct vv_put *put;
	uint8_t *piece;
	size_t cap;
	/* the part of the file that is being checked */
	size_t part;
	uint64_t part_end;
	struct vv_digest_stream check;
};

/* ---- comparison with a layer at the destination ---------------------------------------------- */

static bool same_eras(const struct vv_era_table *a, const struct vv_era_table *b)
{
	bool same = a->n == b->n;

	for (size_t i = 0; same && i < a->n; i++)
		same = a->v[i].first == b->v[i].first && a->v[i].last == b->v[i].last && a->v[i].token == b->v[i].token;
	return same;
}

/* Were both written by the same call? gc keeps all of these. */
static bool same_origin(const struct vv_layer_file *a, const struct vv_layer_file *b)
{
	return a->head.time_ns == b->head.time_ns && a->head.payload == b->head.payload &&
	       a->head.ranks == b->head.ranks && same_eras(&a->eras, &b->eras);
}

/* The checks of the sections stand for their bytes. */
static bool same_head(const struct vv_layer_file *a, const struct vv_layer_file *b)
{
	bool same = true;

	for (uint32_t k = VV_SECTION_IDENT; same && k <= VV_SECTION_STATS; k++) {
		const struct vv_section *x = vv_layer_section(&a->frame, k), *y = vv_layer_section(&b->frame, k);

		same = x->len == y->len && x->check == y->check;
	}
	return same;
}

bool vv_copy_layer_covers(const struct vv_layer_file *f, const struct vv_extents *need)
{
	bool all = true;

	for (size_t i = 0; all && i < need->n; i++)
		all = vv_payload_extent_has(&f->blocks.extent, need->v[i].pos, need->v[i].len);
	return all;
}

/* Returns 1 if the destination's layer is to be kept, 0 if it is to be replaced. */
static int compare(const struct layer_copier *w, const struct vv_layer_file *to)
{
	const struct vv_layer_file *from = w->from;

	if (!same_origin(from, to))
		return vv_err_set(VV_EMISMATCH,
				  "'%s/%s' is not the layer of '%s': both copies of the lineage have continued (copy "
				  "to another store, or drop one of the two)",
				  to->url, to->object, from->url);
	if (vv_copy_layer_covers(to, &w->c->layer->need) && (!w->c->layer->chain || same_head(from, to)))
		return 1;
	if (vv_copy_layer_covers(from, &to->blocks.extent) && (w->c->layer->chain || same_head(from, to)))
		return 0;
	return vv_err_set(VV_EMISMATCH,
			  "'%s/%s' lacks bytes that the copied epochs need, and '%s' no longer has all bytes of it: gc "
			  "has run in both stores (copy to another store)",
			  to->url, to->object, from->url);
}

/* The same result for a layer that may be there. A damaged one is replaced. */
static int look(const struct layer_copier *w)
{
	struct vv_layer_file *to = NULL;
	int rc = w->c->exists ? vv_layer_file_open(w->c->to, w->from->layer, VV_LAYER_FILE_BLOCKS, &to) : 0;

	if (rc == VV_EDAMAGED) {
		vv_log_warn("%s; it is replaced", vv_err_last());
		rc = 0;
	}
	if (to)
		rc = compare(w, to);
	vv_layer_file_close(to);
	return rc;
}

/* ---- copying --------------------------------------------------------------------------------- */

/* The parts of the file between header and trailer, in order: blocks, sections, the directory. */
static uint64_t end_of(const struct vv_layer_file *f, size_t part, uint64_t *check)
{
	const struct vv_section *s;

	if (part < f->blocks.n) {
		*check = f->blocks.v[part].check;
		return f->blocks.v[part].off + f->blocks.v[part].stored_len;
	}
	part -= f->blocks.n;
	if (part == f->frame.n) {
		*check = f->frame.dir_check;
		return f->frame.file_len - VV_LAYER_TRAILER;
	}
	s = &f->frame.section[part];
	*check = s->check;
	return s->off + s->len;
}

static size_t n_parts(const struct vv_layer_file *f)
{
	return f->blocks.n + f->frame.n + 1;
}

static int differs(const struct layer_copier *w)
{
	size_t section = w->part - w->from->blocks.n;

	if (w->part < w->from->blocks.n)
		vv_err_set(VV_EDAMAGED, "block %zu at offset %" PRIu64 ": checksum mismatch", w->part,
			   w->from->blocks.v[w->part].off);
	else if (section < w->from->frame.n)
		vv_err_set(VV_EDAMAGED, "section %s: checksum mismatch",
			   vv_layer_section_name(w->from->frame.section[section].kind));
	else
		vv_err_set(VV_EDAMAGED, "directory: checksum mismatch");
	return vv_layer_file_name_in_error(w->from, VV_EDAMAGED);
}

/* Checks the next n bytes of the file, at offset `at`. */
static int check_piece(struct layer_copier *w, const uint8_t *p, uint64_t at, size_t n)
{
	uint64_t end = at + n;

	while (w->part < n_parts(w->from) && at < end) {
		uint64_t want, stop;

		w->part_end = end_of(w->from, w->part, &want);
		stop = w->part_end < end ? w->part_end : end;
		vv_digest_stream_add(&w->check, p, (size_t)(stop - at));
		p += stop - at;
		at = stop;
		if (at < w->part_end)
			break;
		if (vv_digest_stream_check(&w->check) != want)
			return differs(w);
		w->part++;
		vv_digest_stream_init(&w->check);
	}
	return 0;
}

/* Reads, checks and writes the bytes from..to. */
static int copy_range(struct layer_copier *w, uint64_t from, uint64_t to)
{
	int rc = 0;

	for (uint64_t at = from; rc == 0 && at < to;) {
		size_t n = to - at < w->cap ? (size_t)(to - at) : w->cap;
		struct iovec iov = {w->piece, n};

		rc = vv_store_get_read(w->from->get, at, w->piece, n);
		if (rc == 0)
			rc = check_piece(w, w->piece, at, n);
		if (rc == 0)
			rc = vv_store_put_write(w->put, &iov, 1);
		if (rc == 0 && w->c->step)
			rc = w->c->step(w->c->arg, n);
		at += n;
	}
	return rc;
}

/* The header and the trailer are short: they are written from the bytes that were checked. */
static int copy_end(struct layer_copier *w, uint64_t off, size_t n)
{
	uint8_t bytes[VV_LAYER_TRAILER];
	struct iovec iov = {bytes, n};
	struct vv_frame frame = {0};
	int rc = vv_store_get_read(w->from->get, off, bytes, n);

	if (rc == 0)
		rc = off == 0 ? vv_layer_check_header(bytes) : vv_layer_get_trailer(&frame, bytes, w->from->get->size);
	if (rc)
		return vv_layer_file_name_in_error(w->from, rc);
	return vv_store_put_write(w->put, &iov, 1);
}

/* Where the rate is limited, a piece takes a fraction of a second: the writes are spread, and the
 * copy can be stopped. */
static size_t piece_of(const struct layer_copier *w)
{
	size_t piece = w->from->get->store->read_step ? PIECE : PIECE_REMOTE;
	uint64_t paced = w->c->to->store->bandwidth / 8;

	if (!paced || paced >= piece)
		return piece;
	return paced > PIECE_LEAST ? (size_t)paced : PIECE_LEAST;
}

static int copy_all(struct layer_copier *w)
{
	uint64_t trailer = w->from->frame.file_len - VV_LAYER_TRAILER;
	int rc;

	w->cap = piece_of(w);
	w->piece = vv_mem_grow(NULL, w->cap, 1);
	rc = w->piece ? vv_store_put_open(w->c->to->store, w->from->object, w->from->get->size, &w->put) : VV_ENOMEM;
	vv_digest_stream_init(&w->check);
	if (rc == 0)
		rc = copy_end(w, 0, VV_LAYER_HEADER);
	if (rc == 0)
		rc = copy_range(w, VV_LAYER_HEADER, trailer);
	if (rc == 0 && w->part < n_parts(w->from))
		rc = differs(w);
	if (rc == 0)
		rc = copy_end(w, trailer, VV_LAYER_TRAILER);
	if (rc == 0) {
		rc = vv_store_put_commit(w->put);
		w->put = NULL;
	}
	vv_store_put_abort(w->put);
	vv_mem_free(w->piece);
	return rc;
}

/* A gc of the source may have removed positions that a dropped epoch needs. */
static int check_source(struct layer_copier *w)
{
	if (w->c->head) {
		int rc = vv_layer_file_check_head(w->from, w->c->head);

		if (rc)
			return rc;
	}
	if (vv_copy_layer_covers(w->from, &w->c->layer->need))
		return 0;
	vv_err_set(VV_EDAMAGED, "section BLOCKS: positions are referred to but not all there");
	return vv_layer_file_name_in_error(w->from, VV_EDAMAGED);
}

static int attempt(const struct vv_layer_copy *c, uint64_t *copied)
{
	struct layer_copier w = {.c = c};
	int rc = vv_layer_file_open(c->from, c->layer->layer, VV_LAYER_FILE_BLOCKS, &w.from);

	if (rc == 0)
		rc = check_source(&w);
	if (rc == 0)
		rc = look(&w);
	*copied = rc == 0 ? w.from->get->size : 0;
	if (rc == 0 && !c->dry_run)
		rc = copy_all(&w);
	vv_layer_file_close(w.from);
	return rc < 0 ? rc : 0;
}

/* A gc may replace the source's object between two reads of it: the second attempt reads the new
 * object. */
int vv_copy_layer_run(const struct vv_layer_copy *c, uint64_t *copied)
{
	int rc = attempt(c, copied);

	return rc == VV_EDAMAGED || rc == VV_EIO ? attempt(c, copied) : rc;
}
