#include "engine/read/device_batch.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/lineage/plain_extent.h"
#include <stdlib.h>
#include <string.h>

enum {
	EXTENTS = 2,
	LEAST_CHUNK = 1024, /* a room has no more chunks than would fit with this length, */
	LEAST_MOVE = 128,   /* and no more moves */
	HELD = 128,         /* decoded blocks of one stretch */
	APART = 64,         /* chunks that are not adjacent begin at multiples of this */
	PAYLOAD_BITS = 40,
};

_Static_assert(VV_MAX_PAYLOAD == 1ull << PAYLOAD_BITS && VV_OPEN_LAYERS_LAYERS < 1 << (64 - PAYLOAD_BITS), "a layer and a position fit a key");
_Static_assert(APART % VV_DEVICE_INLET_ALIGN == 0, "checks find them");

#define NONE UINT32_MAX

struct chunk {
	uint64_t key; /* layer and position */
	const uint8_t *decoded; /* of a compressed block; NULL: it is plain, and */
	uint64_t off;           /* begins there in the file */
	const struct vv_digest *digest;
	uint32_t len;
	uint32_t at;  /* in the room's bytes */
};

struct device_batch_place { /* of a chunk in the order of the files */
	uint64_t key;
	uint32_t chunk;
};

struct device_batch_extent {
	struct vv_plain_extent is;
	const uint8_t *decoded; /* the bytes at is.lo of a compressed block */
	uint64_t last; /* position of the last needed chunk */
	uint32_t chunk; /* its number, or NONE */
};

struct vv_device_batch {
	struct chunk *chunk;
	struct device_batch_place *order, *as_needed;
	size_t count[VV_OPEN_LAYERS_LAYERS]; /* needed chunks of each layer */
	size_t n, max;
	uint32_t *slot; /* an open hash by key: 1 + number, or 0 */
	size_t mask;
	uint32_t *begins; /* per move: the chunk that its `from` is relative to */
	size_t max_moves;
	const struct vv_open_layers *warm;
	struct vv_decoded_blocks *decoded;
	struct vv_decoded_block *held[HELD]; /* until the bytes are in the room */
	size_t n_held;
	struct vv_device_inlet_buffer *room;
	uint64_t at;
	struct device_batch_extent lane[VV_OPEN_LAYERS_LAYERS][EXTENTS];
};

/* One allocation: many threads allocate at once, and the kernel lets only one at a time change the
 * address space. */
int vv_device_batch_new(size_t room, struct vv_device_batch **out)
{
	size_t max = room / LEAST_CHUNK, moves = room / LEAST_MOVE, slots = 1;
	struct vv_device_batch *c;

	if (room > VV_DEVICE_BATCH_MAX)
		return vv_err_set(VV_EINVAL, "a room of %zu bytes is too large", room);
	while (slots < 2 * max)
		slots *= 2;
	c = vv_mem_new(1, sizeof(*c) + max * (sizeof(*c->chunk) + sizeof(*c->order) + sizeof(*c->as_needed)) + slots * sizeof(*c->slot) +
				  moves * sizeof(*c->begins));
	if (!c)
		return VV_ENOMEM;
	c->max = max;
	c->max_moves = moves;
	c->mask = slots - 1;
	c->chunk = (struct chunk *)(c + 1);
	c->order = (struct device_batch_place *)(c->chunk + max);
	c->as_needed = c->order + max;
	c->slot = (uint32_t *)(c->as_needed + max);
	c->begins = c->slot + slots;
	*out = c;
	return 0;
}

void vv_device_batch_free(struct vv_device_batch *c)
{
	vv_mem_free(c);
}

/* ---- needed chunks --------------------------------------------------------------------------- */

static uint64_t key_of(size_t layer, uint64_t pos)
{
	return (uint64_t)layer << PAYLOAD_BITS | pos;
}

/* Adds the chunk at pos to the needed ones and returns its number; NONE: there are too many. */
static uint32_t need(struct vv_device_batch *c, const struct device_batch_extent *x, size_t layer, uint64_t pos)
{
	const struct vv_plain_extent *l = &x->is;
	uint64_t key = key_of(layer, pos);
	size_t s = (size_t)((key * 0x9e3779b97f4a7c15u) >> 32) & c->mask;

	for (; c->slot[s]; s = (s + 1) & c->mask)
		if (c->chunk[c->slot[s] - 1].key == key)
			return c->slot[s] - 1;
	if (c->n == c->max)
		return NONE;
	c->chunk[c->n] = (struct chunk){ key, x->decoded ? x->decoded + (pos - l->lo) : NULL, l->off + (pos - l->lo), l->digest + (pos - l->first) / l->chunk, l->chunk, 0 };
	c->as_needed[c->n] = (struct device_batch_place){ key, (uint32_t)c->n };
	c->count[layer]++;
	c->slot[s] = (uint32_t)++c->n;
	return (uint32_t)(c->n - 1);
}

/* Adds moves for the bytes at..at+len of the region: from `skip` bytes into a chunk and on through
 * the following ones; NONE: zeros. */
static bool add_moves(struct vv_device_batch *c, uint32_t chunk, uint64_t skip, uint64_t at, uint64_t len)
{
	struct vv_device_inlet_move *move = vv_device_inlet_moves(c->room);

	for (uint64_t done = 0, some; done < len; done += some) {
		size_t i = c->room->n_moves;

		some = len - done < VV_DEVICE_INLET_MOVE ? len - done : VV_DEVICE_INLET_MOVE;
		if (i == c->max_moves)
			return false;
		c->begins[i] = chunk;
		move[i] = (struct vv_device_inlet_move){ chunk == NONE ? VV_DEVICE_INLET_ZERO : (uint32_t)(skip + done), (uint32_t)(at - c->at + done), (uint32_t)some };
		c->room->n_moves++;
	}
	return true;
}

/* The bytes at the beginning of a block; NULL: they are not at hand. */
static const uint8_t *decode(struct vv_device_batch *c, size_t layer, const struct vv_block *block)
{
	struct vv_decoded_block *x;

	if (c->n_held == HELD)
		return NULL;
	x = vv_decoded_blocks_get(c->decoded, layer, (size_t)(block - c->warm->file[layer]->blocks.v));
	if (!x)
		return NULL;
	c->held[c->n_held++] = x;
	return vv_decoded_blocks_bytes(x);
}

static void release(struct vv_device_batch *c)
{
	while (c->n_held)
		vv_decoded_blocks_release(c->decoded, c->held[--c->n_held]);
}

static struct device_batch_extent *find_extent(struct vv_device_batch *c, size_t layer, uint64_t pos)
{
	struct device_batch_extent *l = c->lane[layer];
	const uint8_t *decoded = NULL;
	struct vv_plain_extent is;

	for (int i = 0; i < EXTENTS; i++)
		if (pos >= l[i].is.lo && pos < l[i].is.hi)
			return &l[i];
	if (!vv_plain_extent_find(c->warm->file[layer], pos, &is))
		return NULL;
	if (is.block->codec)
		decoded = decode(c, layer, is.block);
	if (is.block->codec && !decoded)
		return NULL;
	memmove(l + 1, l, (EXTENTS - 1) * sizeof(*l));
	l[0] = (struct device_batch_extent){ is, decoded ? decoded + (is.off - is.block->off) : NULL, 0, NONE };
	return &l[0];
}

/* Adds a stretch of one extent. A part of a chunk that continues elsewhere could not be checked. */
static bool add_stretch(struct vv_device_batch *c, struct device_batch_extent *l, size_t layer, uint64_t pos, uint64_t len, uint64_t at)
{
	const struct vv_plain_extent *is = &l->is;
	uint64_t first;
	uint32_t begins = NONE;

	if (!is->digest)
		return false;
	first = pos - (pos - is->first) % is->chunk;
	if (first < is->lo)
		return false;
	for (uint64_t next = first; next < pos + len; next += is->chunk) {
		if (is->hi - next < is->chunk)
			return false;
		if (l->chunk == NONE || l->last != next)
			l->chunk = need(c, l, layer, next);
		if (l->chunk == NONE)
			return false;
		l->last = next;
		begins = next == first ? l->chunk : begins;
	}
	return add_moves(c, begins, pos - first, at, len);
}

static bool add_run(struct vv_device_batch *c, const struct vv_run *r, uint64_t at, uint64_t end)
{
	size_t layer = vv_open_layers_find(c->warm, r->layer);
	bool ok = layer < c->warm->n;

	for (uint64_t len; ok && at < end; at += len) {
		uint64_t pos = r->pos + (at - r->at);
		struct device_batch_extent *l = find_extent(c, layer, pos);

		if (!l)
			return false;
		len = l->is.hi - pos < end - at ? l->is.hi - pos : end - at;
		ok = add_stretch(c, l, layer, pos, len, at);
	}
	return ok;
}

static bool add_all(struct vv_device_batch *c, const struct vv_runs *runs, uint64_t at, uint64_t end)
{
	for (size_t i = vv_run_find(runs, at); at < end && i < runs->n; i++) {
		const struct vv_run *r = &runs->v[i];
		uint64_t to = r->at + r->len < end ? r->at + r->len : end;

		if (r->at > at || !(r->layer ? add_run(c, r, at, to) : add_moves(c, NONE, 0, at, to - at)))
			return false;
		at = to;
	}
	return at == end;
}

/* ---- layout ---------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
	const struct device_batch_place *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static void sort_layer(struct device_batch_place *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (p[i - 1].key > p[i].key) {
			qsort(p, n, sizeof(*p), by_key);
			return;
		}
}

/* Layer by layer; each is often needed from front to back, and then all is in order already. */
static void sort(struct vv_device_batch *c)
{
	size_t at[VV_OPEN_LAYERS_LAYERS], end = 0;

	for (size_t i = 0; i < c->warm->n; i++) {
		at[i] = end;
		end += c->count[i];
	}
	for (size_t i = 0; i < c->n; i++)
		c->order[at[c->as_needed[i].key >> PAYLOAD_BITS]++] = c->as_needed[i];
	for (size_t i = 0; i < c->warm->n; i++)
		sort_layer(c->order + at[i] - c->count[i], c->count[i]);
}

static struct chunk *in_order(const struct vv_device_batch *c, size_t i)
{
	return &c->chunk[c->order[i].chunk];
}

/* Adjacent chunks are adjacent in the room, too: a move may span several. */
static uint64_t arrange(struct vv_device_batch *c)
{
	uint64_t at = 0, end = UINT64_MAX;

	for (size_t i = 0; i < c->n && at <= c->room->size; i++) {
		struct chunk *x = in_order(c, i);

		at = x->key == end ? at : (at + APART - 1) / APART * APART;
		x->at = (uint32_t)at;
		at += x->len;
		end = x->key + x->len;
	}
	return at;
}

/* Can the space check it? */
static bool is_even(const struct chunk *x)
{
	return x->at % VV_DEVICE_INLET_ALIGN == 0 && x->len % VV_DEVICE_INLET_UNIT == 0;
}

static uint32_t count_even(const struct vv_device_batch *c)
{
	uint32_t n = 0;

	for (size_t i = 0; i < c->n; i++)
		n += is_even(&c->chunk[i]);
	return n;
}

/* Completes the moves and checks, now that the positions of the bytes are known. */
static bool finish_layout(struct vv_device_batch *c)
{
	enum { ALIGN = 256 };
	struct vv_device_inlet_buffer *r = c->room;
	struct vv_device_inlet_move *move = vv_device_inlet_moves(r);
	uint64_t len = arrange(c), head;
	struct vv_device_inlet_check *check;

	if (len > r->size)
		return false;
	r->n_checks = count_even(c);
	check = vv_device_inlet_checks(r);
	head = ((uint64_t)((uint8_t *)(check + r->n_checks) - r->p) + ALIGN - 1) / ALIGN * ALIGN;
	if (head + len > r->size)
		return false;
	for (size_t i = 0; i < c->n; i++)
		if (is_even(in_order(c, i)))
			*check++ = (struct vv_device_inlet_check){ *in_order(c, i)->digest, in_order(c, i)->at, in_order(c, i)->len };
	for (size_t i = 0; i < r->n_moves; i++)
		move[i].from += c->begins[i] == NONE ? 0 : c->chunk[c->begins[i]].at;
	r->bytes = (uint32_t)head;
	r->end = (uint32_t)(head + len);
	return true;
}

/* ---- the bytes ------------------------------------------------------------------------------- */

/* Does y come `len` bytes after x, in the source and in the room? */
static bool follows(const struct chunk *x, const struct chunk *y, size_t len)
{
	bool next = x->decoded ? y->decoded == x->decoded + len : !y->decoded && y->off == x->off + len;

	return next && y->at == x->at + len;
}

static bool read_chunks(const struct vv_device_batch *c)
{
	uint8_t *bytes = c->room->p + c->room->bytes;

	for (size_t i = 0, k; i < c->n; i = k) {
		const struct chunk *x = in_order(c, i);
		size_t layer = (size_t)(x->key >> PAYLOAD_BITS);
		size_t len = x->len;

		for (k = i + 1; k < c->n; k++) {
			const struct chunk *y = in_order(c, k);

			if (y->key >> PAYLOAD_BITS != layer || !follows(x, y, len))
				break;
			len += y->len;
		}
		if (x->decoded)
			memcpy(bytes + x->at, x->decoded, len);
		else if (vv_store_get_read(c->warm->file[layer]->get, x->off, bytes + x->at, len) < 0)
			return false;
	}
	return true;
}

static bool check_odd(const struct vv_device_batch *c)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct chunk *x = &c->chunk[i];
		struct vv_digest got;

		if (is_even(x))
			continue;
		vv_digest_xxh3(c->room->p + c->room->bytes + x->at, x->len, &got);
		if (!vv_digest_equal(&got, x->digest))
			return false;
	}
	return true;
}

bool vv_device_batch_pack(struct vv_device_batch *c, const struct vv_open_layers *w, struct vv_decoded_blocks *decoded, const struct vv_want *want, uint64_t at, uint64_t end, struct vv_device_inlet_buffer *r)
{
	bool ok;

	memset(c->slot, 0, (c->mask + 1) * sizeof(*c->slot));
	memset(c->lane, 0, w->n * sizeof(*c->lane));
	memset(c->count, 0, sizeof(c->count));
	c->n = 0;
	c->warm = w;
	c->decoded = decoded;
	c->room = r;
	c->at = at;
	r->to = want->to + (at - want->at);
	r->n_moves = r->n_checks = r->bytes = r->end = 0;
	ok = add_all(c, want->runs, at, end);
	if (ok) {
		sort(c);
		ok = finish_layout(c) && read_chunks(c) && check_odd(c);
	}
	release(c);
	if (!ok) {
		vv_err_clear();
		r->end = 0;
	}
	return ok;
}
