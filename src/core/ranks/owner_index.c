/* The memory of home ranks is an open hash of 24 bytes per slot, at most 7/10 full; a removed entry
 * leaves no trace in it. There are two generations of half the allowance each. When the young one
 * is full, it becomes the old one, and the old one is forgotten. */
#include "core/ranks/owner_index.h"
#include "base/err.h"
#include "base/mem.h"
#include <string.h>

_Static_assert(sizeof(struct vv_owner_index_answer) == 16 && sizeof(struct vv_digest) == 16, "messages have no padding");

/* ---- messages */

int vv_owner_index_check(const uint32_t *decision, size_t n, uint32_t self, uint32_t ranks)
{
	for (size_t i = 0; i < n; i++) {
		enum vv_owner_index_kind kind = vv_owner_index_kind(decision[i]);
		uint32_t rank = vv_owner_index_rank(decision[i]);
		bool own = kind == VV_OWNER_INDEX_STORE || kind == VV_OWNER_INDEX_STORE_SHARED;

		if (rank >= ranks || own != (rank == self))
			return vv_err_set(VV_EPEER, "a judge sent a verdict that cannot be (kind %u, rank %u of %u)",
					  (unsigned)kind, rank, ranks);
	}
	return 0;
}

size_t vv_owner_index_count_shared(const uint32_t *decision, size_t n)
{
	size_t n_shared = 0;

	for (size_t i = 0; i < n; i++)
		n_shared += vv_owner_index_kind(decision[i]) == VV_OWNER_INDEX_STORE_SHARED;
	return n_shared;
}

size_t vv_owner_index_count_words(const uint32_t *decision, size_t n, uint32_t copies)
{
	const size_t words[] = { [VV_OWNER_INDEX_STORE] = 0, [VV_OWNER_INDEX_STORE_SHARED] = copies - 1, [VV_OWNER_INDEX_REMOTE] = copies, [VV_OWNER_INDEX_REMOTE_OLD] = 2 };
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += words[vv_owner_index_kind(decision[i])];
	return sum;
}

static int check_location(const struct vv_owner_index_location *w, bool old, uint32_t ranks, uint32_t copies)
{
	bool bad = w->pos >= VV_OWNER_INDEX_POS_MAX || (old && !w->layer);

	for (uint32_t i = 0; w->copy && i + 1 < copies; i++)
		bad |= w->copy[i] != VV_OWNER_INDEX_NO_COPY && w->copy[i] / VV_OWNER_INDEX_POS_MAX >= ranks;
	if (bad)
		return vv_err_set(VV_EPEER, "a judge sent a place that cannot be (layer %llu, position %llu)",
				  (unsigned long long)w->layer, (unsigned long long)w->pos);
	return 0;
}

int vv_owner_index_next_location(const uint64_t *word, size_t *at, uint32_t decision, uint32_t ranks, uint32_t copies,
			struct vv_owner_index_location *out)
{
	enum vv_owner_index_kind kind = vv_owner_index_kind(decision);
	bool shared = kind == VV_OWNER_INDEX_STORE_SHARED || kind == VV_OWNER_INDEX_REMOTE;
	struct vv_owner_index_location w = { 0 };
	size_t i = *at;
	int rc;

	if (kind == VV_OWNER_INDEX_REMOTE_OLD)
		w.layer = word[i++];
	if (kind == VV_OWNER_INDEX_REMOTE_OLD || kind == VV_OWNER_INDEX_REMOTE)
		w.pos = word[i++];
	if (shared && copies > 1) {
		w.copy = &word[i];
		i += copies - 1;
	}
	rc = check_location(&w, kind == VV_OWNER_INDEX_REMOTE_OLD, ranks, copies);
	if (rc)
		return rc;
	*at = i;
	*out = w;
	return 0;
}

/* ---- memory */

void vv_owner_index_init(struct vv_owner_index *j, size_t cap)
{
	*j = (struct vv_owner_index){ .cap = cap };
}

static void forget_all(struct vv_owner_index *j)
{
	vv_mem_free(j->slot);
	vv_owner_index_init(j, j->cap);
}

void vv_owner_index_set_cap(struct vv_owner_index *j, size_t cap)
{
	j->cap = cap;
	if (!cap)
		forget_all(j);
}

void vv_owner_index_fini(struct vv_owner_index *j)
{
	forget_all(j);
}

/* The other word chose the home rank: here it would put all entries into one part of the table. */
static size_t home(const struct vv_owner_index *j, const struct vv_digest *d)
{
	return (size_t)d->w[1] & j->mask;
}

void vv_owner_index_prefetch(const struct vv_owner_index *j, const struct vv_digest *d)
{
	if (j->slot)
		vv_owner_index_load(&j->slot[home(j, d)]);
}

/* The slot that holds d, or the empty slot for it. */
static struct vv_owner_index_entry *probe(const struct vv_owner_index *j, const struct vv_digest *d)
{
	size_t i = home(j, d);

	while (j->slot[i].owner && !vv_digest_equal(&j->slot[i].digest, d))
		i = (i + 1) & j->mask;
	return &j->slot[i];
}

uint32_t vv_owner_index_find(const struct vv_owner_index *j, const struct vv_digest *d)
{
	return j->slot ? probe(j, d)->owner - 1 : VV_OWNER_INDEX_NOBODY;
}

/* Keeps the entries of the last two generations. */
static int resize(struct vv_owner_index *j, size_t size)
{
	struct vv_owner_index old = *j;

	j->slot = vv_mem_grow(NULL, size, sizeof(*j->slot));
	if (!j->slot) {
		*j = old;
		return VV_ENOMEM;
	}
	/* now, because new memory that is read before it is written costs two page faults */
	memset(j->slot, 0, size * sizeof(*j->slot));
	j->mask = size - 1;
	j->n = 0;
	for (size_t i = 0; old.slot && i <= old.mask; i++)
		if (old.slot[i].owner && j->generation - old.slot[i].generation < 2) {
			*probe(j, &old.slot[i].digest) = old.slot[i];
			j->n++;
		}
	vv_mem_free(old.slot);
	return 0;
}

static size_t size_for(size_t n)
{
	size_t size = 1024;

	while (size / 10 * 7 <= n)
		size *= 2;
	return size;
}

void vv_owner_index_reserve(struct vv_owner_index *j, size_t n)
{
	size_t room = j->cap > j->n ? j->cap - j->n : 0, size = size_for(j->n + (n < room ? n : room));

	if (j->cap && (!j->slot || size > j->mask + 1))
		resize(j, size); /* if it fails, it fails again when there is no alternative */
}

/* The young generation becomes the old one, and the old one is forgotten. */
static int age(struct vv_owner_index *j)
{
	size_t n = j->young;

	j->generation++;
	j->young = 0;
	return resize(j, size_for(n < j->cap - n ? 2 * n : j->cap));
}

static void add_one(struct vv_owner_index *j, uint32_t rank, const struct vv_digest *d)
{
	struct vv_owner_index_entry *e;
	int rc = 0;

	if (j->cap == 0)
		return;
	if (j->young && j->young >= j->cap / 2)
		rc = age(j);
	if (rc == 0 && (!j->slot || j->n * 10 >= (j->mask + 1) * 7))
		rc = resize(j, j->slot ? (j->mask + 1) * 2 : 1024);
	if (rc) {
		forget_all(j);
		return;
	}
	e = probe(j, d);
	j->n += !e->owner;
	j->young += !e->owner || e->generation != j->generation;
	*e = (struct vv_owner_index_entry){ *d, rank + 1, j->generation };
}

void vv_owner_index_add(struct vv_owner_index *j, uint32_t rank, const struct vv_digest *d, size_t n)
{
	enum { BATCH = 64 };

	if (n > 1)
		vv_owner_index_reserve(j, n);
	for (size_t i = 0; i < n; i++) {
		for (size_t k = i; i % BATCH == 0 && k < n && k < i + BATCH; k++)
			vv_owner_index_prefetch(j, &d[k]);
		add_one(j, rank, &d[i]);
	}
}

/* Entries behind the gap that a probe would no longer reach move into it. */
void vv_owner_index_forget(struct vv_owner_index *j, const struct vv_digest *d)
{
	struct vv_owner_index_entry *gap;
	size_t at, i;

	if (!j->slot)
		return;
	gap = probe(j, d);
	if (!gap->owner)
		return;
	at = (size_t)(gap - j->slot);
	j->young -= gap->generation == j->generation;
	for (i = (at + 1) & j->mask; j->slot[i].owner; i = (i + 1) & j->mask) {
		if (((i - home(j, &j->slot[i].digest)) & j->mask) < ((i - at) & j->mask))
			continue;
		j->slot[at] = j->slot[i];
		at = i;
	}
	j->slot[at].owner = 0;
	j->n--;
}
