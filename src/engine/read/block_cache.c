#include "engine/read/block_cache.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/held.h"
#include "base/mem.h"
#include "core/format/digest.h"
#include "engine/read/block_map.h"
#include "track/write_protect.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	ZEROS = 1 << 20,      /* bytes that are handed out at a time */
	AHEAD = 48 << 20,     /* bytes of a region */
	GRAIN = 64 << 10,
};

enum state { ABSENT, QUEUED, IN_PROGRESS, THERE };

struct room {
	struct room *next;
	uint8_t *bytes;
	size_t size;
};

struct vv_block_cache_entry {
	struct vv_task task; /* decodes it, ahead of the reader */
	struct vv_block_cache *cache;
	uint32_t layer;
	enum state state;
	bool wanted;      /* to be checked */
	bool checked;     /* the stored bytes, where they are mapped */
	bool borrowed;    /* the room must not be reused */
	bool submitted;   /* the pool has the task, and no thread has waited for it */
	size_t pins;
	uint64_t left;    /* bytes of the regions that were not read yet */
	uint64_t stamp;   /* time of the last get */
	const uint8_t *bytes;
	struct room *room; /* NULL: the bytes are in the mapped file */
};

struct vv_block_cache {
	const struct vv_lineage *lin;
	struct vv_pool *pool;
	struct vv_block_map cuts;
	struct vv_block_cache_entry *book; /* one entry for each block */
	uint8_t *zeros;
	uint64_t memory;
	pthread_mutex_t lock; /* of all members below, and of the entries' state */
	pthread_cond_t changed;
	uint64_t held, clock;
	struct room *idle;
	bool closing;
	size_t bad; /* the first entry, in order of the layers, that is damaged */
	struct vv_err_state error;
	const struct vv_progress *progress; /* of the check */
	uint64_t done, total;
};

/* ---- rooms ----------------------------------------------------------------------------------- */

/* Under the lock. */
static void free_room(struct vv_block_cache *s, struct room *r)
{
	VV_HELD(&s->lock);
	s->held -= r->size;
	vv_mem_unmap(r->bytes, r->size);
	vv_mem_free(r);
}

/* Under the lock. */
static void drop_idle(struct vv_block_cache *s)
{
	struct room *r = s->idle;

	VV_HELD(&s->lock);
	s->idle = r->next;
	free_room(s, r);
}

/* Under the lock. */
static void leave_room(struct vv_block_cache *s, struct room *r)
{
	VV_HELD(&s->lock);
	r->next = s->idle;
	s->idle = r;
}

/* Under the lock. */
static void clear(struct vv_block_cache *s, struct vv_block_cache_entry *b)
{
	VV_HELD(&s->lock);
	if (b->room && b->borrowed)
		free_room(s, b->room); /* readers of its pages keep them */
	else if (b->room)
		leave_room(s, b->room);
	b->room = NULL;
	b->bytes = NULL;
	b->borrowed = false;
	b->state = ABSENT;
}

/* Under the lock. The least recently read of the entries without a reader. */
static struct vv_block_cache_entry *find_oldest(struct vv_block_cache *s)
{
	struct vv_block_cache_entry *oldest = NULL;

	VV_HELD(&s->lock);
	for (struct vv_block_cache_entry *b = s->book; b < s->book + s->cuts.n_blocks; b++)
		if (b->state == THERE && b->room && !b->pins && (!oldest || b->stamp < oldest->stamp))
			oldest = b;
	return oldest;
}

/* Under the lock. */
static void make_space(struct vv_block_cache *s, size_t n)
{
	struct vv_block_cache_entry *b;

	VV_HELD(&s->lock);
	while (s->held + n > s->memory && s->idle)
		drop_idle(s);
	while (s->held + n > s->memory && (b = find_oldest(s))) {
		clear(s, b);
		while (s->idle)
			drop_idle(s);
	}
}

/* Under the lock. */
static struct room *find_idle(struct vv_block_cache *s, size_t n)
{
	VV_HELD(&s->lock);
	for (struct room **at = &s->idle; *at; at = &(*at)->next)
		if ((*at)->size >= n && (*at)->size / 2 <= n) {
			struct room *r = *at;

			*at = r->next;
			return r;
		}
	return NULL;
}

static struct room *take_room(struct vv_block_cache *s, size_t n)
{
	struct room *r;

	n = (n + GRAIN) / GRAIN * GRAIN;
	pthread_mutex_lock(&s->lock);
	r = find_idle(s, n);
	if (!r) {
		make_space(s, n);
		r = vv_mem_new(1, sizeof(*r));
		if (r)
			*r = (struct room){ .bytes = vv_mem_map_wide(n), .size = n };
		if (r && !r->bytes) {
			vv_mem_free(r);
			r = NULL;
		}
		s->held += r ? n : 0;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

static void give_room(struct vv_block_cache *s, struct room *r)
{
	pthread_mutex_lock(&s->lock);
	leave_room(s, r);
	pthread_mutex_unlock(&s->lock);
}

/* ---- one block ------------------------------------------------------------------------------- */

static const struct vv_block *block_of(const struct vv_block_cache *s, const struct vv_block_cache_entry *b)
{
	const struct vv_block_map_layer *l = &s->cuts.layer[b->layer];

	return &l->file->blocks.v[(size_t)(b - s->book) - l->first];
}

struct block_cache_look {
	const uint8_t *p;
	size_t n;
	uint64_t check;
};

static void look(void *arg)
{
	struct block_cache_look *k = arg;

	k->check = vv_digest_check(k->p, k->n);
}

/* The bytes of a plain block in the mapped file, if they are in memory and match the block's check,
 * now or earlier. Otherwise the block is read normally, which reports the error. A compressed block
 * is always read: a mapped one may change between its check and its decoding. */
static const uint8_t *map_block(const struct vv_block_map_layer *l, const struct vv_block *b, bool checked)
{
	struct block_cache_look k = { l->file->get && l->file->get->map ? l->file->get->map + b->off : NULL, b->stored_len, 0 };

	if (b->codec || !k.p || !vv_fs_resident(k.p, k.n))
		return NULL;
	if (checked)
		return k.p;
	if (vv_write_protect_try_read(look, &k) < 0) {
		vv_err_clear();
		return NULL;
	}
	return k.check == b->check ? k.p : NULL;
}

/* A closed file is opened again. Since it was closed, gc may have replaced it. */
static int with_file(const struct vv_block_cache *s, const struct vv_block_map_layer *l, struct vv_layer_file **out)
{
	int rc;

	*out = l->file;
	if (l->file->get)
		return 0;
	rc = vv_layer_file_open(s->lin, l->layer, VV_LAYER_FILE_BLOCKS, out);
	return rc ? rc : vv_layer_file_check_same_blocks(*out, l->file);
}

static int read_block(struct vv_block_cache *s, const struct vv_block_cache_entry *b, struct room *raw, struct room *stored)
{
	const struct vv_block_map_layer *l = &s->cuts.layer[b->layer];
	struct vv_layer_file *f = NULL;
	int rc = with_file(s, l, &f);

	if (rc == 0)
		rc = vv_layer_file_read_block(f, (size_t)(b - s->book) - l->first, raw->bytes, stored ? stored->bytes : NULL);
	if (f != l->file)
		vv_layer_file_close(f);
	return rc;
}

static int decode_into(struct vv_block_cache *s, const struct vv_block_cache_entry *b, struct room *raw)
{
	const struct vv_block *block = block_of(s, b);
	struct room *stored = block->codec ? take_room(s, block->stored_len) : NULL;
	int rc = stored || !block->codec ? read_block(s, b, raw, stored) : VV_ENOMEM;

	if (stored)
		give_room(s, stored);
	return rc;
}

/* The entry is this thread's: it is IN_PROGRESS. */
static int decode(struct vv_block_cache *s, struct vv_block_cache_entry *b)
{
	const struct vv_block *block = block_of(s, b);
	const uint8_t *mapped = map_block(&s->cuts.layer[b->layer], block, b->checked);
	struct room *raw = NULL;
	int rc = 0;

	if (!mapped) {
		raw = take_room(s, block->raw_len);
		rc = raw ? decode_into(s, b, raw) : VV_ENOMEM;
	}
	pthread_mutex_lock(&s->lock);
	if (raw && rc)
		leave_room(s, raw);
	b->room = rc ? NULL : raw;
	b->bytes = rc ? NULL : raw ? raw->bytes : mapped;
	b->state = rc ? ABSENT : THERE;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

/* A thread that gets the entry later reports the error, if there is one. */
static void decode_ahead(struct vv_task *t)
{
	struct vv_block_cache_entry *b = (struct vv_block_cache_entry *)t;
	struct vv_block_cache *s = b->cache;
	bool mine;

	pthread_mutex_lock(&s->lock);
	mine = b->state == QUEUED && !s->closing;
	if (mine)
		b->state = IN_PROGRESS;
	else if (b->state == QUEUED)
		b->state = ABSENT;
	pthread_mutex_unlock(&s->lock);
	if (mine && decode(s, b) < 0)
		vv_err_clear();
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Called under the lock; afterwards the entry is THERE, and pinned. */
static int load_entry(struct vv_block_cache *s, struct vv_block_cache_entry *b, bool help)
{
	int rc = 0;

	VV_HELD(&s->lock);
	b->pins++;
	while (rc == 0 && b->state != THERE) {
		bool mine = b->state != IN_PROGRESS;

		if (!mine && !help) {
			pthread_cond_wait(&s->changed, &s->lock);
			continue;
		}
		if (mine)
			b->state = IN_PROGRESS;
		pthread_mutex_unlock(&s->lock);
		if (mine)
			rc = decode(s, b);
		else
			help = vv_pool_help(s->pool);
		pthread_mutex_lock(&s->lock);
	}
	b->pins -= rc ? 1 : 0;
	return rc;
}

int vv_block_cache_get(struct vv_block_cache *s, size_t region, uint64_t at, bool help, struct vv_block_cache_piece *out)
{
	const struct vv_block_map_part *c = vv_block_map_find(&s->cuts.region[region], at);
	struct vv_block_cache_entry *b;
	uint64_t skip;
	int rc;

	if (!c || at < c->at || at - c->at >= c->len)
		return vv_err_set(VV_EDAMAGED, "nothing is said of what is at %" PRIu64, at);
	skip = at - c->at;
	b = c->block == VV_BLOCK_MAP_ZEROS ? NULL : &s->book[c->block];
	*out = (struct vv_block_cache_piece){ s->zeros, (size_t)(c->len - skip), b };
	if (!b) {
		out->len = out->len < ZEROS ? out->len : ZEROS;
		return 0;
	}
	pthread_mutex_lock(&s->lock);
	rc = load_entry(s, b, help);
	b->stamp = ++s->clock;
	out->bytes = rc ? NULL : b->bytes + c->from + skip;
	pthread_mutex_unlock(&s->lock);
	return rc;
}

void vv_block_cache_release(struct vv_block_cache *s, const struct vv_block_cache_piece *piece, size_t read, bool borrowed)
{
	struct vv_block_cache_entry *b = piece->entry;

	if (!b)
		return;
	pthread_mutex_lock(&s->lock);
	b->pins--;
	b->borrowed |= borrowed;
	b->left -= b->left < read ? b->left : read;
	if (!b->pins && !b->left && b->state == THERE)
		clear(s, b);
	pthread_mutex_unlock(&s->lock);
}

struct block_cache_copy {
	uint8_t *to;
	const uint8_t *from;
	size_t n;
};

static void copy_bytes(void *arg)
{
	struct block_cache_copy *k = arg;

	memcpy(k->to, k->from, k->n);
}

/* Bytes of a mapped file are those that were checked only if no process has written to the file. */
static int copy_piece(struct vv_block_cache *s, const struct vv_block_cache_piece *p, struct block_cache_copy *k)
{
	const struct vv_layer_file *f = p->entry && !p->entry->room ? s->cuts.layer[p->entry->layer].file : NULL;

	if (!f) {
		copy_bytes(k);
		return 0;
	}
	if (vv_write_protect_try_read(copy_bytes, k) < 0) {
		vv_err_set(VV_EDAMAGED, "the file became shorter while it was read");
		return vv_layer_file_name_in_error(f, VV_EDAMAGED);
	}
	return vv_store_get_check(f->get);
}

int vv_block_cache_copy(struct vv_block_cache *s, size_t region, uint64_t at, uint8_t *to, size_t n)
{
	int rc = 0;

	for (size_t done = 0; rc == 0 && done < n;) {
		struct vv_block_cache_piece p;
		struct block_cache_copy k;

		rc = vv_block_cache_get(s, region, at + done, true, &p);
		if (rc)
			break;
		k = (struct block_cache_copy){ to + done, p.bytes, p.len < n - done ? p.len : n - done };
		rc = copy_piece(s, &p, &k);
		vv_block_cache_release(s, &p, k.n, false);
		done += k.n;
	}
	return rc;
}

void vv_block_cache_expect_again(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t len)
{
	const struct vv_block_map_region *r = &s->cuts.region[region];

	pthread_mutex_lock(&s->lock);
	for (const struct vv_block_map_part *c = vv_block_map_find(r, at); c && c < r->v + r->n && c->at < at + len; c++) {
		uint64_t lo = c->at > at ? c->at : at, hi = c->at + c->len < at + len ? c->at + c->len : at + len;

		if (c->block != VV_BLOCK_MAP_ZEROS && lo < hi)
			s->book[c->block].left += hi - lo;
	}
	pthread_mutex_unlock(&s->lock);
}

/* Under the lock. Is there memory to decode it ahead? Idle rooms are reused. */
static bool has_space(struct vv_block_cache *s, const struct vv_block_cache_entry *e)
{
	const struct vv_block_map_layer *l = &s->cuts.layer[e->layer];
	const struct vv_block *b = block_of(s, e);
	uint64_t idle = 0;

	VV_HELD(&s->lock);
	for (const struct room *r = s->idle; r; r = r->next)
		idle += r->size;
	return s->held - idle + b->raw_len + b->stored_len + vv_layer_file_decode_takes(l->file, (size_t)(e - s->book) - l->first) <= s->memory;
}

/* Under the lock. */
static bool queue(struct vv_block_cache *s, struct vv_block_cache_entry *b)
{
	VV_HELD(&s->lock);
	if (b->state != ABSENT || !b->left)
		return true;
	if (!has_space(s, b))
		return false;
	if (b->submitted) { /* it has run, and its block has been dropped since */
		pthread_mutex_unlock(&s->lock);
		vv_pool_wait(s->pool, &b->task);
		pthread_mutex_lock(&s->lock);
	}
	if (b->state != ABSENT)
		return true;
	b->task = (struct vv_task){ .run = decode_ahead };
	b->state = QUEUED;
	b->submitted = true;
	vv_pool_submit(s->pool, &b->task);
	return true;
}

void vv_block_cache_read_ahead(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t *submitted_end)
{
	const struct vv_block_map_region *r = &s->cuts.region[region];
	uint64_t from = *submitted_end > at ? *submitted_end : at;
	const struct vv_block_map_part *c = vv_block_map_find(r, from), *end = r->v + r->n;

	if (from >= at + AHEAD)
		return;
	pthread_mutex_lock(&s->lock);
	for (; c && c < end && c->at < at + AHEAD; c++) {
		if (c->block != VV_BLOCK_MAP_ZEROS && !queue(s, &s->book[c->block]))
			break;
		*submitted_end = c->at + c->len;
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- checking -------------------------------------------------------------------------------- */

static int check_stored(struct vv_block_cache *s, struct vv_block_cache_entry *book)
{
	const struct vv_block_map_layer *l = &s->cuts.layer[book->layer];
	const struct vv_block *b = block_of(s, book);
	struct vv_layer_file *f = NULL;
	struct room *room;
	int rc;

	book->checked = map_block(l, b, false) != NULL;
	if (book->checked)
		return 0;
	room = take_room(s, b->stored_len);
	rc = room ? with_file(s, l, &f) : VV_ENOMEM;
	if (rc == 0)
		rc = vv_store_get_read(f->get, b->off, room->bytes, b->stored_len);
	if (rc == 0 && vv_digest_check(room->bytes, b->stored_len) != b->check) {
		rc = vv_err_set(VV_EDAMAGED, "block %zu at offset %" PRIu64 ": checksum mismatch", (size_t)(b - l->file->blocks.v), b->off);
		vv_layer_file_name_in_error(f, rc);
	}
	if (f != l->file)
		vv_layer_file_close(f);
	if (room)
		give_room(s, room);
	return rc;
}

void vv_block_cache_want(struct vv_block_cache *s, size_t region, uint64_t at, uint64_t len)
{
	const struct vv_block_map_region *r = &s->cuts.region[region];

	for (const struct vv_block_map_part *c = vv_block_map_find(r, at); c && c < r->v + r->n && c->at < at + len; c++)
		if (c->block != VV_BLOCK_MAP_ZEROS)
			s->book[c->block].wanted = true;
}

static void check_one(void *arg, size_t i)
{
	struct vv_block_cache *s = arg;
	int rc;

	if (!s->book[i].wanted)
		return;
	rc = check_stored(s, &s->book[i]);
	pthread_mutex_lock(&s->lock);
	s->done += block_of(s, &s->book[i])->stored_len;
	vv_progress_report(s->progress, s->done, s->total);
	if (rc && i < s->bad) {
		s->bad = i;
		vv_err_save(rc, &s->error);
	}
	pthread_mutex_unlock(&s->lock);
}

int vv_block_cache_check(struct vv_block_cache *s, const struct vv_progress *progress, size_t *region, uint64_t *at)
{
	s->bad = s->cuts.n_blocks;
	s->progress = progress;
	s->done = s->total = 0;
	for (size_t i = 0; i < s->cuts.n_blocks; i++)
		s->total += s->book[i].wanted ? block_of(s, &s->book[i])->stored_len : 0;
	vv_pool_each(s->pool, s->cuts.n_blocks, check_one, s);
	if (s->bad == s->cuts.n_blocks)
		return 0;
	for (size_t i = s->cuts.n_regions; i-- > 0;)
		for (size_t k = s->cuts.region[i].n; k-- > 0;)
			if (s->cuts.region[i].v[k].block == s->bad) {
				*region = i;
				*at = s->cuts.region[i].v[k].at;
			}
	return vv_err_restore(&s->error);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int make_books(struct vv_block_cache *s)
{
	s->book = vv_mem_new(s->cuts.n_blocks, sizeof(*s->book));
	if (!s->book)
		return VV_ENOMEM;
	for (size_t i = 0; i < s->cuts.n_layers; i++)
		for (size_t k = 0; k < s->cuts.layer[i].file->blocks.n; k++) {
			size_t n = s->cuts.layer[i].first + k;

			s->book[n] = (struct vv_block_cache_entry){ .cache = s, .layer = (uint32_t)i, .left = s->cuts.used[n] };
		}
	return 0;
}

int vv_block_cache_open(const struct vv_lineage *lin, struct vv_pool *pool, const struct vv_runs *const *runs, size_t n, uint64_t memory,
		 struct vv_block_cache **out)
{
	struct vv_block_cache *s = vv_mem_new(1, sizeof(*s));
	int rc;

	if (!s)
		return VV_ENOMEM;
	*s = (struct vv_block_cache){ .lin = lin, .pool = pool, .memory = memory, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };
	s->zeros = vv_mem_map(ZEROS);
	rc = s->zeros ? vv_block_map_open(lin, runs, n, &s->cuts) : VV_ENOMEM;
	if (rc == 0)
		rc = make_books(s);
	if (rc)
		vv_block_cache_close(s);
	else
		*out = s;
	return rc;
}

void vv_block_cache_close(struct vv_block_cache *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->closing = true;
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; s->book && i < s->cuts.n_blocks; i++)
		if (s->book[i].submitted)
			vv_pool_wait(s->pool, &s->book[i].task);
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; s->book && i < s->cuts.n_blocks; i++)
		clear(s, &s->book[i]);
	while (s->idle)
		drop_idle(s);
	pthread_mutex_unlock(&s->lock);
	vv_block_map_close(&s->cuts);
	vv_mem_unmap(s->zeros, ZEROS);
	vv_mem_free(s->book);
	vv_mem_free(s);
}
