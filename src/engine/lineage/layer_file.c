#include "engine/lineage/layer_file.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "codec/codec.h"
#include "codec/context_pool.h"
#include "codec/delta.h"
#include "codec/section.h"
#include "core/format/distribution.h"
#include "engine/lineage/base_layers.h"
#include "engine/lineage/provenance.h"
#include "engine/lineage/mapped_block.h"
#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

enum {
	/* Bytes read from the end of the file if a second request is slow. */
	TAIL = 64 << 10,
	/* The same if it is fast: most layers have less than this after their payload. */
	TAIL_NEAR = 16 << 10,
	/* The maximum gap between two parts that are read together. */
	GAP = 64 << 10,
	STEP = 512 << 10, /* of a parallel read */
};

int vv_layer_file_name_in_error(const struct vv_layer_file *f, int rc)
{
	return vv_err_context(rc, "layer '%s/%s'", f->url, f->object);
}

static void drop_reading(struct vv_layer_file *f)
{
	vv_lazy_runs_free(f->lazy_runs);
	vv_mem_free(f->sources.own);
	vv_mem_free(f->runs.own);
	f->lazy_runs = NULL;
	f->sources = f->runs = (struct vv_section_bytes){ 0 };
}

void vv_layer_file_close(struct vv_layer_file *f)
{
	if (!f)
		return;
	vv_store_get_close(f->get);
	vv_base_layers_free(f->bases);
	drop_reading(f);
	vv_head_fini(&f->head);
	vv_payload_blocks_fini(&f->blocks);
	vv_payload_digests_fini(&f->digests);
	vv_era_table_fini(&f->eras);
	vv_mem_free(f->source);
	vv_mem_free(f->tail);
	vv_mem_free(f->body);
	vv_mem_free(f);
}

static void drop_bytes(struct vv_layer_file *f)
{
	vv_mem_free(f->tail);
	vv_mem_free(f->body);
	f->tail = f->body = NULL;
}

void vv_layer_file_release(struct vv_layer_file *f)
{
	vv_store_get_close(f->get);
	f->get = NULL;
	if (!f->lazy_runs)
		drop_bytes(f);
}

/* If the section has the same place and checksum in both files, its bytes are the same. */
int vv_layer_file_check_same_blocks(const struct vv_layer_file *f, const struct vv_layer_file *was)
{
	const struct vv_section *x = vv_layer_section(&f->frame, VV_SECTION_BLOCKS), *y = vv_layer_section(&was->frame, VV_SECTION_BLOCKS);

	if (x->off == y->off && x->len == y->len && x->check == y->check)
		return 0;
	vv_err_set(VV_EIO, "the layer was rewritten while it was read; open the epoch again");
	return vv_layer_file_name_in_error(f, VV_EIO);
}

int vv_layer_file_finish(struct vv_layer_file *f, struct vv_pool *pool)
{
	int rc = f->lazy_runs ? vv_lazy_runs_finish(f->lazy_runs, pool) : 0;

	if (rc)
		return vv_layer_file_name_in_error(f, rc);
	drop_reading(f);
	if (!f->get)
		drop_bytes(f);
	return 0;
}

static uint64_t head_off(const struct vv_layer_file *f)
{
	return f->frame.section[0].off;
}

static uint64_t head_end(const struct vv_layer_file *f)
{
	const struct vv_section *last = vv_layer_section(&f->frame, VV_SECTION_STATS);

	return last->off + last->len;
}

struct layer_file_reading {
	const struct vv_layer_file *f;
	uint64_t off, len;
	uint8_t *to;
	atomic_bool failed;
};

static void read_step(void *arg, size_t i)
{
	struct layer_file_reading *r = arg;
	uint64_t at = (uint64_t)i * STEP, n = r->len - at < STEP ? r->len - at : STEP;

	if (vv_store_get_read(r->f->get, r->off + at, r->to + at, (size_t)n) == 0)
		return;
	vv_err_clear();
	atomic_store(&r->failed, true);
}

/* Reads on several threads, since new memory takes longer to provide than the bytes to copy. The
 * last attempt reports an error. */
static int read_long(const struct vv_layer_file *f, uint64_t off, uint64_t len, uint8_t *to)
{
	struct vv_parallel_for loop = vv_pool_loop(f->pool);
	struct layer_file_reading r = { .f = f, .off = off, .len = len, .to = to, .failed = true };

	if (f->pool && f->get->store->read_step && len >= 2 * STEP) {
		atomic_store(&r.failed, false);
		vv_parallel_for_each(&loop, (size_t)((len + STEP - 1) / STEP), read_step, &r);
	}
	return atomic_load(&r.failed) ? vv_store_get_read(f->get, off, to, (size_t)len) : 0;
}

/* The bytes off..off+len. If they are not in memory, reads them into new memory at *own, so that
 * they end at a multiple of ALIGN. Then the digests in DIGESTS are aligned. */
static int fetch(struct vv_layer_file *f, uint64_t off, uint64_t len, const uint8_t **out, uint8_t **own)
{
	enum { ALIGN = 8 };
	size_t before = (size_t)(-len % ALIGN);
	uint8_t *p;
	int rc;

	if (off >= f->tail_off) {
		*out = f->tail + (off - f->tail_off);
		return 0;
	}
	if (f->body && off >= head_off(f) && off + len <= head_end(f)) {
		*out = f->head_at + (off - head_off(f));
		return 0;
	}
	p = vv_mem_grow(NULL, before + (size_t)len, 1);
	if (!p)
		return VV_ENOMEM;
	vv_mem_widen(p, before + (size_t)len);
	rc = read_long(f, off, len, p + before);
	if (rc) {
		vv_mem_free(p);
		return rc;
	}
	*own = p;
	*out = p + before;
	return 0;
}

static int read_frame(struct vv_layer_file *f)
{
	uint64_t size = f->get->size, most = f->get->store->read_step ? TAIL_NEAR : TAIL, n = size < most ? size : most;
	const uint8_t *dir = NULL;
	uint8_t *own = NULL;
	int rc;

	if (size < VV_LAYER_HEADER + VV_LAYER_TRAILER)
		return vv_err_set(VV_EDAMAGED, "trailer: %" PRIu64 " bytes are too few for a layer", size);
	f->tail = vv_mem_grow(NULL, (size_t)n, 1);
	if (!f->tail)
		return VV_ENOMEM;
	f->tail_off = size - n;
	rc = vv_store_get_read(f->get, f->tail_off, f->tail, (size_t)n);
	if (rc == 0)
		rc = vv_layer_get_trailer(&f->frame, f->tail + n - VV_LAYER_TRAILER, size);
	if (rc == 0)
		rc = fetch(f, f->frame.dir_off, size - f->frame.dir_off, &dir, &own);
	if (rc == 0)
		rc = vv_layer_get_directory(&f->frame, dir);
	vv_mem_free(own);
	return rc;
}

int vv_layer_file_section(struct vv_layer_file *f, const struct vv_section *s, struct vv_section_bytes *out)
{
	struct vv_section_bytes b = { .n = (size_t)s->len };
	uint8_t *raw = NULL;
	int rc = fetch(f, s->off, s->len, &b.p, &b.own);

	if (rc == 0)
		rc = vv_layer_check_section(s, b.p);
	if (rc == 0 && s->flags & VV_SECTION_CODED) {
		rc = vv_section_decode(b.p, b.n, &raw, &b.n);
		if (rc)
			vv_err_context(rc, "section %s", vv_layer_section_name(s->kind));
		vv_mem_free(b.own);
		b.p = b.own = raw;
	}
	if (rc) {
		vv_mem_free(b.own);
		return rc;
	}
	*out = b;
	return 0;
}

static int section(struct vv_layer_file *f, uint32_t kind, struct vv_section_bytes *out)
{
	return vv_layer_file_section(f, vv_layer_section(&f->frame, kind), out);
}

static int read_ident(struct vv_layer_file *f, const struct vv_lineage *lin)
{
	struct vv_section_bytes b = { 0 };
	int rc = section(f, VV_SECTION_IDENT, &b);

	if (rc == 0)
		rc = vv_head_get_ident(&f->head, b.p, b.n);
	if (rc == 0 && (vv_run_layer(f->head.epoch, f->head.rank) != f->layer ||
			memcmp(f->head.lineage, lin->id, sizeof(lin->id)) != 0))
		rc = vv_err_set(VV_EDAMAGED, "section IDENT: this is a layer of another epoch, rank or lineage");
	vv_mem_free(b.own);
	return rc;
}

/* Reads the eras, and checks that they match those of the layers read before. */
static int read_eras(struct vv_layer_file *f, const struct vv_lineage *lin)
{
	const struct vv_section *s = vv_layer_find(&f->frame, VV_SECTION_ERAS);
	struct vv_section_bytes b = { 0 };
	int rc = s ? vv_layer_file_section(f, s, &b) : 0;

	if (rc || !s)
		return rc;
	rc = vv_era_table_get(&f->eras, b.p, b.n, f->head.epoch);
	vv_mem_free(b.own);
	return rc ? rc : vv_provenance_add(lin, &f->eras);
}

static int read_parts(struct vv_layer_file *f)
{
	const struct vv_section *s = vv_layer_find(&f->frame, VV_SECTION_PARTS);
	struct vv_section_bytes b = { 0 };
	int rc = s && f->head.n_regions ? vv_layer_file_section(f, s, &b) : 0;

	if (rc == 0 && b.p)
		rc = vv_distribution_get(&f->head, b.p, b.n);
	vv_mem_free(b.own);
	return rc;
}

/* Loads all sections of the head. */
static int read_body(struct vv_layer_file *f)
{
	int rc = 0;

	if (head_off(f) < f->tail_off && !f->body)
		rc = fetch(f, head_off(f), head_end(f) - head_off(f), &f->head_at, &f->body);
	return rc;
}

static int list_sources(struct vv_layer_file *f)
{
	const uint64_t *layer;

	f->n_sources = vv_lazy_runs_sources(f->lazy_runs, &layer);
	f->source = vv_mem_new(f->n_sources, sizeof(*f->source));
	for (size_t i = 0; f->source && i < f->n_sources; i++)
		f->source[i] = layer[i];
	return f->source ? 0 : VV_ENOMEM;
}

static int read_head(struct vv_layer_file *f, struct vv_pool *pool, bool begun)
{
	struct vv_section_bytes regions = { 0 }, stats = { 0 };
	int rc = read_body(f);

	if (rc == 0)
		rc = section(f, VV_SECTION_REGIONS, &regions);
	if (rc == 0)
		rc = vv_head_get_regions(&f->head, regions.p, regions.n);
	if (rc == 0)
		rc = read_parts(f);
	if (rc == 0)
		rc = section(f, VV_SECTION_SOURCES, &f->sources);
	if (rc == 0)
		rc = section(f, VV_SECTION_RUNS, &f->runs);
	if (rc == 0)
		rc = vv_lazy_runs_new(&f->head, f->sources.p, f->sources.n, f->runs.p, f->runs.n, pool, &f->lazy_runs);
	rc = rc ? rc : list_sources(f);
	if (rc == 0 && !begun) {
		rc = vv_lazy_runs_finish(f->lazy_runs, pool);
		drop_reading(f);
	}
	if (rc == 0)
		rc = section(f, VV_SECTION_STATS, &stats);
	if (rc == 0)
		rc = vv_head_get_stats(&f->head, stats.p, stats.n);
	vv_mem_free(regions.own);
	vv_mem_free(stats.own);
	return rc;
}

static int read_bases(struct vv_layer_file *f, const struct vv_lineage *lin)
{
	const struct vv_section *s = vv_layer_find(&f->frame, VV_SECTION_BASES);
	struct vv_section_bytes b = { 0 };
	int rc = s ? vv_layer_file_section(f, s, &b) : 0;

	if (rc == 0)
		rc = vv_delta_bases_get(&f->blocks.bases, b.p, b.n, &f->blocks, VV_CODEC_DELTA, f->head.epoch);
	if (rc == 0 && s)
		rc = vv_base_layers_new(lin, f->head.rank, &f->bases);
	vv_mem_free(b.own);
	return rc;
}

static int read_blocks(struct vv_layer_file *f, const struct vv_lineage *lin)
{
	struct vv_section_bytes b = { 0 };
	int rc = section(f, VV_SECTION_BLOCKS, &b);

	if (rc == 0)
		rc = vv_payload_get_blocks(&f->blocks, b.p, b.n, f->head.payload, VV_LAYER_HEADER, f->frame.section[0].off);
	vv_mem_free(b.own);
	if (rc == 0)
		rc = read_bases(f, lin);
	if (rc == 0)
		vv_store_get_map(f->get);
	return rc;
}

static int read_digests(struct vv_layer_file *f)
{
	struct vv_section_bytes b = { 0 };
	int rc = section(f, VV_SECTION_DIGESTS, &b);

	if (rc == 0)
		rc = vv_payload_take_digests(&f->digests, b.p, b.n, f->head.payload, &b.own);
	vv_mem_free(b.own);
	return rc;
}

int vv_layer_file_open(const struct vv_lineage *lin, uint64_t layer, unsigned parts, struct vv_layer_file **out)
{
	return vv_layer_file_open_on(lin, NULL, layer, parts, out);
}

int vv_layer_file_open_on(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, unsigned parts, struct vv_layer_file **out)
{
	struct vv_layer_file *f = vv_mem_new(1, sizeof(*f));
	int rc;

	if (!f)
		return VV_ENOMEM;
	f->layer = layer;
	f->pool = pool;
	f->url = lin->store->url;
	vv_name_layer(f->object, lin->name, vv_run_epoch(layer), vv_run_rank(layer));
	rc = vv_store_get_open(lin->store, f->object, &f->get);
	if (rc == VV_ENOENT)
		rc = vv_err_set(VV_EDAMAGED, "the file is missing");
	if (rc == 0)
		rc = read_frame(f);
	if (rc == 0)
		rc = read_ident(f, lin);
	if (rc == 0)
		rc = read_eras(f, lin);
	if (rc == 0 && parts & VV_LAYER_FILE_HEAD)
		rc = read_head(f, pool, parts & VV_LAYER_FILE_LAZY);
	if (rc == 0 && parts & VV_LAYER_FILE_BLOCKS)
		rc = read_blocks(f, lin);
	if (rc == 0 && parts & VV_LAYER_FILE_DIGESTS)
		rc = read_digests(f);
	if (rc) {
		vv_layer_file_name_in_error(f, rc);
		vv_layer_file_close(f);
		return rc;
	}
	*out = f;
	return 0;
}

int vv_layer_file_read_eras(const struct vv_lineage *lin, uint64_t layer)
{
	struct vv_layer_file *f = NULL;
	int rc = vv_layer_file_open(lin, layer, 0, &f);

	vv_layer_file_close(f);
	return rc;
}

/* The checks of the sections are left to the caller. */
static int head_bytes(struct vv_layer_file *f, const uint8_t **out)
{
	uint8_t *own = NULL;
	int rc = read_body(f);

	return rc ? rc : fetch(f, head_off(f), head_end(f) - head_off(f), out, &own);
}

int vv_layer_file_head_bytes(struct vv_layer_file *f, uint8_t **out, size_t *n)
{
	const uint8_t *from = NULL;
	size_t len = (size_t)(head_end(f) - head_off(f));
	uint8_t *p = vv_mem_new(len, 1);
	int rc = p ? head_bytes(f, &from) : VV_ENOMEM;

	if (rc == 0)
		memcpy(p, from, len);
	for (uint32_t k = VV_SECTION_IDENT; rc == 0 && k <= VV_SECTION_STATS; k++) {
		const struct vv_section *s = vv_layer_section(&f->frame, k);

		rc = vv_layer_check_section(s, p + (s->off - head_off(f)));
	}
	if (rc) {
		vv_mem_free(p);
		return vv_layer_file_name_in_error(f, rc);
	}
	*out = p;
	*n = len;
	return 0;
}

int vv_layer_file_check_head(struct vv_layer_file *f, const struct vv_digest *want)
{
	const uint8_t *p = NULL;
	struct vv_digest got;
	int rc = head_bytes(f, &p);

	if (rc)
		return vv_layer_file_name_in_error(f, rc);
	vv_digest_xxh3(p, (size_t)(head_end(f) - head_off(f)), &got);
	if (vv_digest_equal(&got, want))
		return 0;
	vv_err_set(VV_EDAMAGED, "head: not the one that epoch %" PRIu64 " was committed with", f->head.epoch);
	return vv_layer_file_name_in_error(f, VV_EDAMAGED);
}

int vv_layer_file_load_digests(struct vv_layer_file *f)
{
	int rc;

	if (f->digests.lent)
		vv_payload_digests_fini(&f->digests);
	rc = f->digests.n_groups ? 0 : read_digests(f);
	if (rc == 0)
		return 0;
	vv_payload_digests_fini(&f->digests);
	return vv_layer_file_name_in_error(f, rc);
}

int64_t vv_layer_file_locate(const struct vv_layer_file *f, uint64_t pos, uint64_t len, struct vv_payload_cursor *c, uint32_t *from)
{
	const struct vv_extent *x;
	uint64_t left;

	if (!vv_payload_locate(&f->blocks, pos, c)) {
		vv_err_set(VV_EDAMAGED, "position %" PRIu64 " is referred to, but is in no block", pos);
		return vv_layer_file_name_in_error(f, VV_EDAMAGED);
	}
	x = &f->blocks.extent.v[c->extent];
	left = x->pos + x->len - pos;
	*from = (uint32_t)(c->before + (pos - x->pos));
	return (int64_t)(len < left ? len : left);
}

static int differs(const struct vv_layer_file *f, size_t i)
{
	vv_err_set(VV_EDAMAGED, "block %zu at offset %" PRIu64 ": checksum mismatch", i, f->blocks.v[i].off);
	return vv_layer_file_name_in_error(f, VV_EDAMAGED);
}

int vv_layer_file_read_stored(struct vv_layer_file *f, size_t i, void *stored)
{
	const struct vv_block *b = &f->blocks.v[i];
	int rc = vv_store_get_read(f->get, b->off, stored, b->stored_len);

	if (rc)
		return rc;
	return vv_digest_check(stored, b->stored_len) == b->check ? 0 : differs(f, i);
}

static int decode_delta(struct vv_layer_file *f, size_t i, const void *stored, void *raw)
{
	const struct vv_block *b = &f->blocks.v[i];
	size_t n = 0, sum;
	const struct vv_delta_base *v = vv_delta_bases_of(&f->blocks.bases, i, &n);
	uint8_t *base;
	int rc;

	sum = (size_t)vv_delta_bases_sum(v, n);
	base = vv_context_pool_room(sum);
	rc = base ? vv_base_layers_read(f->bases, v, n, base) : VV_ENOMEM;

	if (rc)
		vv_err_context(rc, "the base of block %zu at offset %" PRIu64, i, b->off);
	else
		rc = vv_delta_decode(stored, b->stored_len, base, sum, raw, b->raw_len);
	vv_context_pool_room_back(base);
	return rc;
}

/* Decodes a compressed block. */
static int decode(struct vv_layer_file *f, size_t i, const void *stored, void *raw)
{
	const struct vv_block *b = &f->blocks.v[i];
	int rc;

	if (b->codec == VV_CODEC_DELTA)
		rc = decode_delta(f, i, stored, raw);
	else
		rc = vv_codec_decode(b->codec, stored, b->stored_len, raw, b->raw_len);
	return rc ? vv_layer_file_name_in_error(f, rc) : 0;
}

/* At most: the base, with one of its blocks, the stored bytes of that block and the memory of its
 * codec. Later: the base and the memory of the difference. Blocks of bases are taken to be as long
 * as this one. */
size_t vv_layer_file_decode_takes(const struct vv_layer_file *f, size_t i)
{
	const struct vv_block *b = &f->blocks.v[i];
	const struct vv_delta_base *v;
	size_t n = 0;

	if (b->codec != VV_CODEC_DELTA)
		return vv_codec_decode_takes(b->codec, b->stored_len, b->raw_len);
	v = vv_delta_bases_of(&f->blocks.bases, i, &n);
	return (size_t)vv_delta_bases_sum(v, n) + b->stored_len + (size_t)4 * b->raw_len;
}

int vv_layer_file_read_block(struct vv_layer_file *f, size_t i, void *raw, void *scratch)
{
	const struct vv_block *b = &f->blocks.v[i];
	void *stored = b->codec ? scratch : raw;
	int rc = vv_layer_file_read_stored(f, i, stored);

	return rc || !b->codec ? rc : decode(f, i, stored, raw);
}

/* Reads a plain block in steps, and checks each while it is in the cache. */
static int read_steps(struct vv_layer_file *f, const struct vv_block *b, uint8_t *to, uint64_t *got)
{
	size_t step = f->get->store->read_step && !f->get->unit ? f->get->store->read_step : b->raw_len;
	struct vv_digest_stream check;
	int rc = 0;

	vv_digest_stream_init(&check);
	for (size_t at = 0; rc == 0 && at < b->raw_len; at += step) {
		size_t n = b->raw_len - at < step ? b->raw_len - at : step;

		rc = vv_store_get_read(f->get, b->off + at, to + at, n);
		if (rc == 0)
			vv_digest_stream_add(&check, to + at, n);
	}
	*got = vv_digest_stream_check(&check);
	return rc;
}

/* Can the block be read without a copy of our own? */
static bool is_aligned(const struct vv_layer_file *f, const struct vv_block *b, const uint8_t *to)
{
	return !f->get->unit || ((uintptr_t)to | b->off | b->raw_len) % f->get->unit == 0;
}

static int read_around(struct vv_layer_file *f, const struct vv_block *b, uint8_t *to, uint8_t *scratch, uint64_t *got)
{
	uint8_t *raw = NULL;
	int rc = vv_store_get_around(f->get, b->off, b->raw_len, scratch, &raw);

	if (rc == 0)
		*got = vv_digest_check_copy(to, raw, b->raw_len);
	return rc;
}

/* Reads a complete plain block to one destination. */
static int read_straight(struct vv_layer_file *f, size_t i, const struct vv_part *part, uint8_t *scratch)
{
	const struct vv_block *b = &f->blocks.v[i];
	uint64_t got = 0;
	int rc = 0;

	if (vv_mapped_block_copy(f, b, part, 1))
		return 0;
	rc = is_aligned(f, b, part->to) ? read_steps(f, b, part->to, &got) : read_around(f, b, part->to, scratch, &got);
	return rc ? rc : got == b->check ? 0 : differs(f, i);
}

size_t vv_layer_file_group(const struct vv_layer_file *f, uint64_t pos)
{
	return vv_payload_digest_group(&f->digests, pos);
}

/* Copies a part if it consists of complete chunks from group g on, with matching digests. next: the
 * bytes to be read after it. */
static bool copy_chunks(const struct vv_digests *d, size_t g, const struct vv_part *part, const uint8_t *from,
			const uint8_t *next)
{
	uint32_t done = 0;

	for (; done < part->len && g < d->n_groups; g++) {
		const struct vv_digest_group *x = &d->group[g];
		uint64_t off = part->pos + done - x->pos, k = off / x->chunk;

		if (part->pos + done < x->pos || off % x->chunk)
			return false;
		for (; k < x->count && done < part->len; k++, done += x->chunk) {
			uint32_t left = part->len - done;

			if (left < x->chunk || !vv_digest_fits_copy(part->to + done, from + done, x->chunk,
								    left > x->chunk ? from + done + x->chunk : next, &d->v[x->digest + k]))
				return false;
		}
	}
	return done == part->len;
}

/* Copies parts of a block. raw: the block's bytes from `first` on. */
static bool copy_checked(const struct vv_digests *d, const struct vv_part *part, size_t n, const uint8_t *raw,
			 uint32_t first)
{
	size_t g = vv_payload_digest_group(d, part[0].pos);
	bool ok = true;

	for (size_t i = 0; ok && i < n; i++) {
		while (g < d->n_groups && d->group[g].pos + d->group[g].count * d->group[g].chunk <= part[i].pos)
			g++;
		ok = copy_chunks(d, g, &part[i], raw + (part[i].from - first),
				 raw + (i + 1 < n ? part[i + 1].from - first : 0));
	}
	return ok;
}

/* The number of parts to read together. *end: their end. Steps are small, so that the bytes are
 * still in the cache when they are copied. */
static size_t next_step(const struct vv_layer_file *f, const struct vv_part *part, size_t n, uint32_t *end)
{
	uint64_t step = f->get->store->read_step, gap = step ? GAP : VV_MAX_BLOCK;
	size_t i = 1;

	step = step && !f->get->unit ? step : VV_MAX_BLOCK;
	for (*end = part->from + part->len; i < n && part[i].from <= *end + gap; i++) {
		uint32_t to = part[i].from + part[i].len;

		if (to - part->from > step)
			break;
		*end = to > *end ? to : *end;
	}
	return i;
}

/* Reads only the needed parts of a plain block. *ok: they match their digests. */
static int read_chunks(struct vv_layer_file *f, const struct vv_block *b, const struct vv_part *part, size_t n,
		       uint8_t *scratch, bool *ok)
{
	int rc = 0;

	*ok = true;
	for (size_t i = 0, k; rc == 0 && *ok && i < n; i += k) {
		uint32_t from = part[i].from, end;
		uint8_t *raw = NULL;

		k = next_step(f, part + i, n - i, &end);
		rc = vv_store_get_around(f->get, b->off + from, end - from, scratch, &raw);
		if (rc == 0)
			*ok = copy_checked(&f->digests, part + i, k, raw, from);
	}
	return rc;
}

/* Verifies by the check of the complete block. */
static int read_whole(struct vv_layer_file *f, size_t i, const struct vv_part *part, size_t n, uint8_t *scratch)
{
	const struct vv_block *b = &f->blocks.v[i];
	uint8_t *raw = scratch, *stored = NULL;
	int rc;

	if (vv_mapped_block_copy(f, b, part, n))
		return 0;
	rc = vv_store_get_around(f->get, b->off, b->stored_len, b->codec ? scratch + b->raw_len : scratch, &stored);
	if (rc == 0 && vv_digest_check(stored, b->stored_len) != b->check)
		rc = differs(f, i);
	if (rc == 0 && b->codec)
		rc = decode(f, i, stored, raw);
	else
		raw = stored;
	for (size_t k = 0; rc == 0 && k < n; k++)
		memcpy(part[k].to, raw + part[k].from, part[k].len);
	return rc;
}

/* If parts do not match their digests, the block's own check decides. */
int vv_layer_file_read_parts(struct vv_layer_file *f, size_t i, const struct vv_part *part, size_t n, uint8_t *scratch)
{
	const struct vv_block *b = &f->blocks.v[i];
	uint64_t used = 0;
	bool ok = false;
	int rc;

	if (b->codec == 0 && n == 1 && part->len == b->raw_len)
		return read_straight(f, i, part, scratch);
	for (size_t k = 0; k < n; k++)
		used += part[k].len;
	if (b->codec || f->head.digest_kind != VV_DIGEST_XXH3 || !f->digests.n || used > b->raw_len)
		return read_whole(f, i, part, n, scratch);
	rc = read_chunks(f, b, part, n, scratch, &ok);
	return rc || ok ? rc : read_whole(f, i, part, n, scratch);
}

int vv_layer_file_check_header(struct vv_layer_file *f)
{
	uint8_t header[VV_LAYER_HEADER];
	int rc = vv_store_get_read(f->get, 0, header, sizeof(header));

	if (rc == 0)
		rc = vv_layer_check_header(header);
	return rc ? vv_layer_file_name_in_error(f, rc) : 0;
}

int vv_layer_file_check_sections(struct vv_layer_file *f)
{
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < f->frame.n; i++) {
		const uint8_t *p = NULL;
		uint8_t *own = NULL;

		rc = fetch(f, f->frame.section[i].off, f->frame.section[i].len, &p, &own);
		if (rc == 0)
			rc = vv_layer_check_section(&f->frame.section[i], p);
		vv_mem_free(own);
	}
	return rc ? vv_layer_file_name_in_error(f, rc) : 0;
}
