/* The input as a layer file three times: as it is; with its checks made right, so that the rules behind them are reached;
 * and as bare sections (seven u16 lengths, then the bytes), which the decoders get without any check before them.
 * What is decoded must encode to bytes that decode to the same. */
#include "base/mem.h"
#include "codec/section.h"
#include "core/dedup/index.h"
#include "core/format/layer.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SECTIONS = 7 };

struct bytes {
	const uint8_t *p;
	size_t n;
};

static void insist(int true_thing)
{
	if (!true_thing)
		abort();
}

static void same(const struct vv_buf *a, const void *p, size_t n)
{
	insist(!a->failed && a->n == n && (n == 0 || memcmp(a->p, p, n) == 0));
}

static int get_head(struct vv_head *h, const struct bytes s[SECTIONS])
{
	return vv_head_get_regions(h, s[1].p, s[1].n) || vv_head_get_runs(h, s[2].p, s[2].n, s[3].p, s[3].n) ||
	       vv_head_get_stats(h, s[4].p, s[4].n);
}

/* Sources may be listed in an order that no encoder chooses, so the runs are compared after one more round. */
static void recode_runs(const struct vv_head *h, const struct bytes s[SECTIONS])
{
	struct vv_buf sources[2] = { 0 }, runs[2] = { 0 };
	struct vv_head again = *h;

	again.region = NULL;
	again.n_regions = 0;
	insist(vv_head_put_sources_and_runs(h, &sources[0], &runs[0]) == 0);
	insist(vv_head_get_regions(&again, s[1].p, s[1].n) == 0);
	insist(vv_head_get_runs(&again, sources[0].p, sources[0].n, runs[0].p, runs[0].n) == 0);
	insist(vv_head_put_sources_and_runs(&again, &sources[1], &runs[1]) == 0);
	same(&sources[0], sources[1].p, sources[1].n);
	same(&runs[0], runs[1].p, runs[1].n);
	again.stat = NULL; /* h's */
	vv_head_fini(&again);
	for (int i = 0; i < 2; i++) {
		vv_buf_fini(&sources[i]);
		vv_buf_fini(&runs[i]);
	}
}

static void recode_head(const struct vv_head *h, const struct bytes s[SECTIONS])
{
	struct vv_buf b = { 0 };

	vv_head_put_regions(h, &b);
	same(&b, s[1].p, s[1].n);
	b.n = 0;
	vv_head_put_stats(h, &b);
	same(&b, s[4].p, s[4].n);
	vv_buf_fini(&b);
	recode_runs(h, s);
}

/* Questions that a reader asks about each run. */
static void use_runs(const struct vv_head *h)
{
	for (size_t i = 0; i < h->n_regions; i++) {
		const struct vv_head_region *r = &h->region[i];
		struct vv_runs half = { 0 }, all = { 0 };

		insist(r->parent || vv_run_covers(&r->runs, r->shape.len));
		insist(vv_run_slice(&r->runs, r->shape.len / 2, r->shape.len, &half) == 0);
		insist(vv_run_overlay(&half, &r->runs, &all) == 0);
		insist(all.n == r->runs.n);
		insist(all.n == 0 || memcmp(all.v, r->runs.v, all.n * sizeof(*all.v)) == 0);
		vv_run_fini(&half);
		vv_run_fini(&all);
	}
}

static void use_blocks(const struct vv_blocks *b, struct bytes s)
{
	struct vv_buf again = { 0 };

	vv_payload_put_blocks(b, &again);
	same(&again, s.p, s.n);
	vv_buf_fini(&again);
	for (size_t i = 0; i < b->n; i++)
		for (size_t k = b->v[i].extent; k < b->v[i].extent + b->v[i].n_extents; k++) {
			insist(vv_payload_block_find(b, b->extent.v[k].pos) == i);
			insist(vv_payload_extent_has(&b->extent, b->extent.v[k].pos, b->extent.v[k].len));
		}
}

static void use_digests(const struct vv_digests *d, struct bytes s)
{
	struct vv_index x = { 0 };
	struct vv_buf again = { 0 };

	vv_payload_put_digests(d, &again);
	same(&again, s.p, s.n);
	vv_buf_fini(&again);
	if (vv_index_add_layer(&x, vv_run_layer(1, 0), d) == 0)
		for (size_t i = 0; i < d->n; i++)
			insist(vv_index_find(&x, &d->v[i]) <= i);
	vv_index_fini(&x);
}

/* blocks_end 0: wherever the blocks end. */
static void use_payload(const struct bytes s[SECTIONS], uint64_t payload, uint64_t blocks_end)
{
	struct vv_blocks b = { 0 };
	struct vv_digests d = { 0 };
	int rc = vv_payload_get_blocks(&b, s[5].p, s[5].n, payload, VV_LAYER_HEADER, blocks_end);

	if (rc && blocks_end == 0 && b.n) {
		blocks_end = b.v[b.n - 1].off + b.v[b.n - 1].stored_len;
		vv_payload_blocks_fini(&b);
		rc = vv_payload_get_blocks(&b, s[5].p, s[5].n, payload, VV_LAYER_HEADER, blocks_end);
	}
	if (rc == 0)
		use_blocks(&b, s[5]);
	if (vv_payload_get_digests(&d, s[6].p, s[6].n, payload) == 0)
		use_digests(&d, s[6]);
	vv_payload_blocks_fini(&b);
	vv_payload_digests_fini(&d);
}

static void use_sections(const struct bytes s[SECTIONS], uint64_t blocks_end)
{
	struct vv_head h = { 0 };
	struct vv_buf b = { 0 };

	if (vv_head_get_ident(&h, s[0].p, s[0].n) == 0) {
		vv_head_put_ident(&h, &b);
		same(&b, s[0].p, s[0].n);
	} else {
		h = (struct vv_head){ .epoch = 1000, .parent = s[0].n % 2, .rank = 1, .ranks = 4, .payload = 100000 };
	}
	vv_buf_fini(&b);
	if (get_head(&h, s) == 0) {
		recode_head(&h, s);
		use_runs(&h);
	}
	use_payload(s, h.payload, blocks_end);
	vv_head_fini(&h);
}

/* Decodes what is coded: own[i] is its memory. */
static int get_sections(const struct vv_frame *f, const uint8_t *p, size_t n, struct bytes s[SECTIONS], uint8_t *own[SECTIONS])
{
	for (uint32_t i = 0; i < SECTIONS; i++) {
		const struct vv_section *k = vv_layer_section(f, i + 1);

		insist(k->off <= n && k->len <= n - k->off);
		s[i] = (struct bytes){ p + k->off, k->len };
		if (!(k->flags & VV_SECTION_CODED))
			continue;
		if (vv_section_decode(s[i].p, s[i].n, &own[i], &s[i].n))
			return -1;
		s[i].p = own[i];
	}
	return 0;
}

/* A complete file; 0 if frame and checks are right. */
static int use_file(const uint8_t *p, size_t n)
{
	struct bytes s[SECTIONS];
	uint8_t *own[SECTIONS] = { 0 };
	struct vv_frame f = { 0 };

	if (n < VV_LAYER_HEADER + VV_LAYER_TRAILER || vv_layer_check_header(p) ||
	    vv_layer_get_trailer(&f, p + n - VV_LAYER_TRAILER, n) || vv_layer_get_directory(&f, p + f.dir_off))
		return -1;
	for (uint32_t i = 0; i < f.n; i++)
		if (vv_layer_check_section(&f.section[i], p + f.section[i].off))
			return -1;
	if (get_sections(&f, p, n, s, own) == 0)
		use_sections(s, f.section[0].off);
	for (uint32_t i = 0; i < SECTIONS; i++)
		vv_mem_free(own[i]);
	return 0;
}

static uint64_t get_u64(const uint8_t *p)
{
	struct vv_wire w = vv_wire_over(p, 8);

	return vv_wire_u64(&w);
}

static void put_u64(uint8_t *p, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* Magic words, lengths and checks as they would have to be; what the file says otherwise stays as it is. */
static void make_right(uint8_t *p, size_t n)
{
	uint8_t *t = p + n - VV_LAYER_TRAILER, *dir;
	size_t count = t[8] % (VV_LAYER_SECTIONS + 1);

	memcpy(p, "VARVELYR\1\0\0\0", 12);
	put_u64(p + 12, vv_digest_check(p, 12), 4);
	while (count * VV_LAYER_ENTRY + VV_LAYER_HEADER + VV_LAYER_TRAILER > n)
		count--;
	dir = t - count * VV_LAYER_ENTRY;
	for (uint8_t *e = dir; e < t; e += VV_LAYER_ENTRY) {
		uint64_t off = get_u64(e + 8), len = get_u64(e + 16);

		if (off <= n && len <= n - off)
			put_u64(e + 24, vv_digest_check(p + off, len), 8);
	}
	put_u64(t, (uint64_t)(dir - p), 8);
	put_u64(t + 8, count, 8);
	put_u64(t + 16, n, 8);
	put_u64(t + 24, vv_digest_check(dir, (size_t)(t - dir)), 8);
	memcpy(t + 32, "VARVEEND", 8);
	put_u64(t + 40, vv_digest_check(t, 40), 8);
}

static void use_bare(const uint8_t *p, size_t n)
{
	struct vv_wire w = vv_wire_over(p, n);
	size_t want[SECTIONS];
	struct bytes s[SECTIONS];

	for (int i = 0; i < SECTIONS; i++)
		want[i] = vv_wire_u16(&w);
	if (w.bad)
		return;
	for (int i = 0; i < SECTIONS; i++) {
		s[i].n = want[i] < vv_wire_left(&w) ? want[i] : vv_wire_left(&w);
		s[i].p = vv_wire_bytes(&w, s[i].n);
	}
	use_sections(s, 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy;

	use_file(data, size);
	use_bare(data, size);
	if (size < VV_LAYER_HEADER + VV_LAYER_TRAILER)
		return 0;
	copy = malloc(size);
	insist(copy != NULL);
	memcpy(copy, data, size);
	make_right(copy, size);
	use_file(copy, size);
	free(copy);
	return 0;
}
