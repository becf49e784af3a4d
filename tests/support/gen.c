#include "support/gen.h"
#include "base/mem.h"
#include "core/format/layer.h"
#include "vv_test.h"

uint64_t gen_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

uint64_t gen_below(uint64_t *state, uint64_t n)
{
	return gen_next(state) % n;
}

void gen_bytes(uint64_t *state, void *p, size_t n)
{
	uint8_t *to = p;

	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(gen_next(state) >> 17);
}

void gen_text(uint64_t *state, void *p, size_t n)
{
	static const char *const words[] = { "step ", "energy=", "0.0013 ", "particle ", "42\n", "temperature ", "1e-6 " };
	uint8_t *to = p;

	for (size_t i = 0; i < n;) {
		const char *w = words[gen_below(state, 7)];

		for (; *w && i < n; w++)
			to[i++] = (uint8_t)*w;
	}
}

void gen_runs(uint64_t *state, struct vv_runs *out, uint64_t len, int with_gaps, uint64_t own, uint64_t payload)
{
	uint64_t at = 0, epoch = vv_run_epoch(own);

	while (at < len) {
		struct vv_run r = { .at = at, .len = 1 + gen_below(state, len - at < 9 ? len - at : 9) };

		at += r.len;
		if (with_gaps && gen_below(state, 3) == 0)
			continue;
		if (gen_below(state, 5) != 0) {
			r.layer = vv_run_layer(1 + gen_below(state, epoch < 4 ? epoch : 4), (uint32_t)gen_below(state, 3));
			r.pos = gen_below(state, 40);
		}
		if (r.layer == own && r.pos + r.len > payload)
			r = (struct vv_run){ .at = r.at, .len = r.len };
		CHECK(vv_run_add(out, r) == 0);
	}
}

/* One of a few kinds of records. */
static const struct vv_record *gen_record(uint64_t *state)
{
	struct vv_record_field field[3] = { { .name = "x", .type = VV_TYPE_F64, .offset = 0, .bytes = 8 },
					    { .name = "_id7", .type = VV_TYPE_I16, .offset = 10, .bytes = 2 },
					    { .name = "tag", .type = VV_TYPE_U8, .offset = 12, .bytes = 5 } };
	const struct vv_record *r = NULL;

	CHECK_EQ(vv_record_find("r", 17 + gen_below(state, 2) * 7, field, 1 + (size_t)gen_below(state, 3), &r), 0);
	return r;
}

/* Type, dimensions and a length that fits them. */
static struct vv_shape gen_shape(uint64_t *state)
{
	struct vv_shape s = { .chunk = 32u << gen_below(state, 4), .type = (uint8_t)gen_below(state, VV_TYPES + 1) };

	s.len = gen_below(state, 60);
	if (s.type == VV_TYPE_BYTES)
		return s;
	s.ndim = (uint8_t)(1 + gen_below(state, 3));
	if (s.type == VV_TYPE_RECORD)
		s.record = gen_record(state);
	s.len = vv_head_element_size(&s);
	for (unsigned d = 0; d < s.ndim; d++) {
		s.dim[d] = gen_below(state, 4);
		s.len *= s.dim[d];
	}
	return s;
}

static void gen_region(uint64_t *state, const struct vv_head *h, size_t i, struct vv_head_region *r)
{
	char name[32];

	snprintf(name, sizeof(name), "r%zu.%llx", i, (unsigned long long)gen_below(state, 1u << 20));
	r->name = vv_mem_strdup(name);
	CHECK(r->name);
	r->shape = gen_shape(state);
	r->parent = h->parent ? (uint32_t)gen_below(state, 4) : 0;
	gen_runs(state, &r->runs, r->shape.len, r->parent != 0, vv_run_layer(h->epoch, h->rank), h->payload);
}

void gen_head(uint64_t *state, struct vv_head *h, size_t max_regions)
{
	static const char *const stats[] = { "bytes.memory", "bytes.new", "ns.blocked" };

	*h = (struct vv_head){ .epoch = 1 + gen_below(state, 6), .ranks = 1 + (uint32_t)gen_below(state, 4) };
	gen_bytes(state, h->lineage, sizeof(h->lineage));
	h->parent = gen_below(state, h->epoch);
	h->depth = h->parent ? (uint8_t)(1 + gen_below(state, 255)) : 0;
	h->rank = (uint32_t)gen_below(state, h->ranks);
	h->time_ns = gen_next(state);
	h->payload = gen_below(state, 200);
	h->digest_kind = (uint8_t)(1 + gen_below(state, 2));
	h->n_regions = (size_t)gen_below(state, max_regions + 1);
	h->region = vv_mem_new(h->n_regions + 1, sizeof(*h->region));
	CHECK(h->region);
	for (size_t i = 0; i < h->n_regions; i++)
		gen_region(state, h, i, &h->region[i]);
	for (size_t i = 0, n = (size_t)gen_below(state, 4); i < n; i++)
		CHECK(vv_head_add_stat(h, stats[i], gen_next(state)) == 0);
}

/* The extents of one block; the sum of their lengths. */
static uint32_t gen_extents(uint64_t *state, uint64_t payload, int whole, struct vv_extents *e)
{
	uint64_t at = e->n ? e->v[e->n - 1].pos + e->v[e->n - 1].len : 0, sum = 0;
	size_t want = whole ? 1 : 1 + (size_t)gen_below(state, 3);

	for (size_t i = 0; i < want; i++) {
		uint64_t gap = whole ? 0 : gen_below(state, 8), len = 1 + gen_below(state, 30);

		if (at + gap >= payload)
			break;
		at += gap;
		len = len < payload - at ? len : payload - at;
		CHECK(vv_payload_extent_add(e, at, len, 0) == 0);
		at += len;
		sum += len;
	}
	return (uint32_t)sum;
}

void gen_blocks(uint64_t *state, uint64_t payload, int whole, struct vv_blocks *b, struct vv_buf *bytes)
{
	uint32_t n;

	while ((n = gen_extents(state, payload, whole, &b->extent)) > 0) {
		uint8_t *p = vv_buf_room(bytes, n);

		CHECK(p);
		gen_bytes(state, p, n);
		bytes->n += n;
		CHECK(vv_payload_block_add(b, 0, n, n, vv_digest_check(p, n)) == 0);
	}
}

void gen_digests(uint64_t *state, uint64_t payload, struct vv_digests *d)
{
	uint64_t at = gen_below(state, 8);
	uint32_t chunk = 4;

	for (; at + 32 <= payload; at += chunk) {
		struct vv_digest digest;

		if (gen_below(state, 3) == 0)
			chunk = 4u << gen_below(state, 4);
		gen_bytes(state, &digest, sizeof(digest));
		CHECK(vv_payload_digest_add(d, at, chunk, &digest) == 0);
		at += gen_below(state, 4) == 0 ? 3 : 0;
	}
}

void gen_image(uint64_t *state, size_t max_regions, struct vv_buf *out, struct vv_digest *head_digest)
{
	struct vv_digests digests = { 0 };
	struct vv_blocks blocks = { 0 };
	struct vv_digest unwanted;
	struct vv_head head;
	struct vv_era era;

	gen_head(state, &head, max_regions);
	vv_layer_put_header(out);
	gen_blocks(state, head.payload, gen_below(state, 2) == 0, &blocks, out);
	gen_digests(state, head.payload, &digests);
	era = (struct vv_era){ 1 + gen_below(state, head.epoch), head.epoch, gen_next(state) };
	CHECK(vv_layer_put_tail(&head, &blocks, &digests, NULL, &(struct vv_era_table){ &era, 1, 1 }, NULL, out->n, out, head_digest ? head_digest : &unwanted, NULL) == 0);
	vv_payload_blocks_fini(&blocks);
	vv_payload_digests_fini(&digests);
	vv_head_fini(&head);
}
