#include "record.h"
#include "base/mem.h"
#include "base/wire.h"
#include "space/space.h"
#include <stdlib.h>
#include <string.h>

enum { HEADER = 32, PER_NUMBER = 4, PER_EPOCH = 8 };

_Static_assert(BENCH_STATES <= 64, "sources are bits of a word");

struct recording {
	enum vv_method method;
	uint32_t chunk, grains;
	uint32_t ordinal;
	uint8_t *data[BENCH_STATES]; /* each with room for a whole state */
	size_t asked, told;          /* of this epoch's */
	struct vv_piece *piece;
	size_t n, cap;
	uint8_t *now; /* as rebuilt */
};

/* ---- the sink ------------------------------------------------------------------------------------------------------------ */

static uint8_t *sink_room(void *arg, size_t want, size_t *got)
{
	struct recording *r = arg;

	*got = want;
	r->asked += want;
	return r->data[r->ordinal] + r->asked - want;
}

static int sink_data(void *arg, const uint8_t *p, size_t len)
{
	struct recording *r = arg;

	if (p != r->data[r->ordinal] + r->told)
		bench_die("data of a pass do not follow each other");
	r->told += len;
	return 0;
}

static int sink_pieces(void *arg, const struct vv_piece *piece, size_t n)
{
	struct recording *r = arg;

	while (r->cap < r->n + n) {
		r->cap = r->cap ? 2 * r->cap : 1024;
		r->piece = vv_mem_grow(r->piece, r->cap, sizeof(*piece));
		if (!r->piece)
			bench_die("no memory for %zu pieces", r->cap);
	}
	memcpy(r->piece + r->n, piece, n * sizeof(*piece));
	r->n += n;
	return 0;
}

/* ---- run, encoded -------------------------------------------------------------------------------------------------------- */

static void encode(const struct recording *r, struct vv_buf *out)
{
	uint64_t end = 0, source_end = 0;

	for (const struct vv_piece *p = r->piece; p < r->piece + r->n; p++) {
		enum vv_piece_kind kind = vv_grain_kind(p->from);
		uint64_t number = vv_grain_number(p->from);

		vv_wire_put_var(out, p->at - end);
		vv_wire_put_var(out, (uint64_t)p->len << 2 | kind);
		if (kind == VV_PIECE_COPY) {
			vv_wire_put_var(out, r->ordinal - vv_grain_ordinal(p->from));
			vv_wire_put_signed(out, (int64_t)(number - source_end));
			source_end = number + p->len;
		}
		if (kind == VV_PIECE_REPEAT)
			vv_wire_put_var(out, number);
		end = (uint64_t)p->at + p->len;
	}
	if (vv_buf_check(out))
		bench_die("no memory for %zu pieces", r->n);
}

/* Where a piece comes from; the new data are in order. */
static uint64_t decode_from(struct vv_wire *w, const struct recording *r, enum vv_piece_kind kind, uint64_t fresh, uint64_t source_end)
{
	if (kind == VV_PIECE_COPY) {
		uint32_t ordinal = r->ordinal - (uint32_t)vv_wire_var_max(w, r->ordinal);

		return vv_grain_from(kind, ordinal, source_end + (uint64_t)vv_wire_signed(w));
	}
	return vv_grain_from(kind, 0, kind == VV_PIECE_REPEAT ? vv_wire_var(w) : kind == VV_PIECE_NEW ? fresh : 0);
}

static void decode(struct recording *r, const struct vv_buf *in)
{
	struct vv_wire w = vv_wire_over(in->p, in->n);
	uint64_t end = 0, source_end = 0, fresh = 0;

	r->n = 0;
	while (vv_wire_left(&w) && !w.bad) {
		uint64_t at = end + vv_wire_var(&w), word = vv_wire_var(&w), len = word >> 2;
		enum vv_piece_kind kind = (enum vv_piece_kind)(word & 3);
		struct vv_piece p = { (uint32_t)at, (uint32_t)len, decode_from(&w, r, kind, fresh, source_end) };

		sink_pieces(r, &p, 1);
		end = at + len;
		fresh += kind == VV_PIECE_NEW ? len : 0;
		source_end = kind == VV_PIECE_COPY ? vv_grain_number(p.from) + len : source_end;
	}
	if (w.bad)
		bench_die("the record of a pass cannot be read");
}

/* ---- sizes ---------------------------------------------------------------------------------------------------------------- */

static uint64_t size_full(struct recording *r)
{
	(void)r;
	return 0;
}

static uint64_t size_basic(struct recording *r)
{
	return (r->grains + 7) / 8;
}

static uint64_t size_entries(const struct recording *r, bool each_grain)
{
	uint64_t entries = 0, copies = 0, sources = 0;

	for (const struct vv_piece *p = r->piece; p < r->piece + r->n; p++) {
		uint64_t n = each_grain ? p->len : 1;

		entries += n;
		if (vv_grain_kind(p->from) == VV_PIECE_COPY) {
			copies += n;
			sources |= 1ull << vv_grain_ordinal(p->from);
		}
	}
	return (entries + copies) * PER_NUMBER + (uint64_t)__builtin_popcountll(sources) * PER_EPOCH;
}

static uint64_t size_list(struct recording *r)
{
	return size_entries(r, true);
}

static uint64_t size_tree(struct recording *r)
{
	return size_entries(r, false);
}

/* The pieces become what the encoded bytes say. */
static uint64_t size_run(struct recording *r)
{
	struct vv_buf out = { 0 };
	uint64_t bytes;

	encode(r, &out);
	decode(r, &out);
	bytes = out.n;
	vv_buf_fini(&out);
	return bytes;
}

static uint64_t (*const size_of[])(struct recording *) = { size_full, size_basic, size_list, size_tree, size_run };

/* ---- a series ------------------------------------------------------------------------------------------------------------- */

static void rebuild_piece(struct recording *r, const struct vv_piece *p)
{
	enum vv_piece_kind kind = vv_grain_kind(p->from);
	uint64_t number = vv_grain_number(p->from);
	uint8_t *to = r->now + (size_t)p->at * r->chunk;

	if (kind == VV_PIECE_ZERO)
		memset(to, 0, (size_t)p->len * r->chunk);
	else if (kind == VV_PIECE_REPEAT)
		for (size_t i = 0; i < p->len; i++)
			memcpy(to + i * r->chunk, to + i * r->chunk - number * r->chunk, r->chunk);
	else
		memcpy(to, r->data[kind == VV_PIECE_NEW ? r->ordinal : vv_grain_ordinal(p->from)] + number * r->chunk,
		       (size_t)p->len * r->chunk);
}

static void rebuild(struct recording *r, const uint8_t *state, size_t bytes, const char *name)
{
	size_t whole = (size_t)r->grains * r->chunk;

	for (size_t i = 0; i < r->n; i++)
		rebuild_piece(r, &r->piece[i]);
	memcpy(r->now + whole, state + whole, bytes - whole);
	if (memcmp(r->now, state, bytes) != 0)
		bench_die("%s, %s in grains of %u: state %u is not what was kept of it", name, vv_grain_method_name(r->method), r->chunk,
			  r->ordinal + 1);
}

static void checkpoint(struct recording *r, struct vv_sieve *sieve, const struct bench_series *s, uint8_t *state,
		       struct bench_record *out)
{
	struct vv_sink sink = { r, sink_room, sink_data, sink_pieces };
	struct vv_span span = { .id = 1, .p = state, .len = s->bytes };
	size_t tail = s->bytes % r->chunk;
	uint64_t metadata;

	r->asked = r->told = r->n = 0;
	bench_check(sieve->space->pass(sieve, &span, 1, r->ordinal, &sink), "a pass");
	metadata = HEADER + size_of[r->method](r);
	if (r->ordinal) {
		bool same = r->method != VV_METHOD_FULL && memcmp(r->now + s->bytes - tail, state + s->bytes - tail, tail) == 0;

		out->original += s->bytes;
		out->metadata += metadata;
		out->data += r->told + (same ? 0 : tail);
		out->pieces += r->n;
		out->forgotten += sieve->counts.forgotten;
	}
	rebuild(r, state, s->bytes, s->name);
}

void bench_record(struct bench *b, const struct bench_series *s, int n, enum vv_method method, uint32_t chunk,
		  struct bench_record *out)
{
	struct vv_sieve_options opt = { .method = method, .chunk = chunk, .digest_kind = VV_DIGEST_XXH3, .memory = UINT64_MAX / 2, .states = 4 };
	struct recording r = { .method = method, .chunk = chunk, .grains = (uint32_t)(s->bytes / chunk) };
	struct vv_sieve *sieve = NULL;

	*out = (struct bench_record){ 0 };
	bench_check(vv_space_host()->open(&opt, b->pool, &sieve), "a sieve");
	r.now = vv_mem_map(s->bytes);
	for (int i = 0; i < n; i++) {
		r.ordinal = (uint32_t)i;
		r.data[i] = vv_mem_map(s->bytes);
		if (!r.now || !r.data[i])
			bench_die("no memory for %d states of %zu bytes", n, s->bytes);
		checkpoint(&r, sieve, s, bench_series_state(s, n, i), out);
	}
	for (int i = 0; i < n; i++)
		vv_mem_unmap(r.data[i], s->bytes);
	vv_mem_unmap(r.now, s->bytes);
	vv_mem_free(r.piece);
	vv_space_host()->close(sieve);
}

double bench_record_ratio(const struct bench_record *r)
{
	return (double)r->original / (double)(r->data + r->metadata);
}
