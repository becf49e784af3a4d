/* The index of known digests: what is kept between batches, against a plain list of all digests and their places. Its counts are those of its tables, it
 * keeps within its limit and within the memory of two generations, it forgets nothing but what it counts, and it never finds what is dead. Whichever call of
 * the runtime fails, what is found is true. Without a device. */
#include "base/err.h"
#include "gpu/known_map.h"
#include "host_runtime.h"
#include <stdlib.h>

enum { DIGESTS = 400, ROUNDS = 40, STEPS = 40, ENTRY = sizeof(struct vv_digest) + sizeof(uint64_t) };

/* ---- tables, as the kernels have them -------------------------------------------------------------------------------------------- */

static uint32_t home_of(const struct vv_gpu_table *t, const struct vv_digest *d)
{
	return (uint32_t)(((unsigned __int128)d->w[0] * t->slots) >> 64);
}

static bool equal(const struct vv_digest *a, const struct vv_digest *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* The slot of a digest, or the free one where it would be. */
static uint32_t slot_of(const struct vv_gpu_table *t, const struct vv_digest *d)
{
	uint32_t at = home_of(t, d), tried = 0;

	while (t->place[at] != VV_GPU_FREE && !(!(t->place[at] & VV_GPU_CLAIM) && equal(&t->key[at], d))) {
		CHECK(tried++ < t->slots); /* it is never full */
		at = at + 1 < t->slots ? at + 1 : 0;
	}
	return at;
}

static uint64_t find(const struct vv_gpu_table *t, const struct vv_digest *d)
{
	return t->slots ? t->place[slot_of(t, d)] : VV_GPU_FREE;
}

static void enter(const struct vv_gpu_table *t, const struct vv_digest *d, uint64_t place)
{
	uint32_t at = slot_of(t, d);

	t->key[at] = *d;
	t->place[at] = place;
}

struct moving {
	struct vv_gpu_table from, to, also;
	const uint32_t *dead;
	uint32_t n_dead;
	struct vv_gpu_moved *moved;
};

static void move(void *arg)
{
	const struct moving *m = arg;

	for (uint32_t i = 0; i < m->from.slots; i++) {
		uint64_t place = m->from.place[i];
		bool dead = place & VV_GPU_CLAIM;

		for (uint32_t k = 0; k < m->n_dead; k++)
			dead |= m->dead[k] == (uint32_t)(place >> 40);
		if (dead)
			continue;
		enter(&m->to, &m->from.key[i], place);
		m->moved->n++;
		m->moved->both += find(&m->also, &m->from.key[i]) != VV_GPU_FREE;
	}
}

int vv_digest_table_move(const struct vv_gpu_table *from, const struct vv_gpu_table *to,
			 const struct vv_gpu_table *also, const uint32_t *dead, uint32_t n_dead,
			 struct vv_gpu_moved *moved, cudaStream_t stream)
{
	struct moving m = {*from, *to, *also, dead, n_dead, moved};

	return host_launch(stream, move, &m, sizeof(m));
}

/* ---- the list --------------------------------------------------------------------------------------------------------------------- */

static struct {
	struct vv_digest digest;
	uint64_t place; /* of its content, if there is some; it may be known */
	bool there;
} list[DIGESTS];

/* Their homes are crowded. */
static void make_list(void)
{
	for (uint64_t i = 0; i < DIGESTS; i++) {
		list[i].digest = (struct vv_digest){.w = {upto(1) ? rng() : i << 40, i}};
		list[i].there = false;
	}
}

static size_t count_known(const struct vv_known_map *m, bool known[DIGESTS])
{
	size_t n = 0;

	for (size_t i = 0; i < DIGESTS; i++) {
		known[i] = find(&m->young, &list[i].digest) != VV_GPU_FREE ||
			   find(&m->aged, &list[i].digest) != VV_GPU_FREE;
		n += known[i];
	}
	return n;
}

static size_t count(const struct vv_gpu_table *t)
{
	size_t n = 0;

	for (uint32_t i = 0; i < t->slots; i++)
		n += t->place[i] != VV_GPU_FREE;
	return n;
}

/* What is found is true; and with counts, they are those of the tables. */
static void check(const struct vv_known_map *m, bool counts)
{
	size_t both = 0;

	for (size_t i = 0; i < DIGESTS; i++) {
		uint64_t young = find(&m->young, &list[i].digest), aged = find(&m->aged, &list[i].digest);

		CHECK(young == VV_GPU_FREE || (list[i].there && young == list[i].place));
		CHECK(aged == VV_GPU_FREE || (list[i].there && aged == list[i].place));
		both += young != VV_GPU_FREE && aged != VV_GPU_FREE;
	}
	if (!counts)
		return;
	CHECK_EQ(m->n_young, count(&m->young));
	CHECK_EQ(m->n_aged, count(&m->aged));
	CHECK_EQ(m->both, both);
	CHECK(m->n_young <= m->limit && m->n_aged <= m->limit);
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------------ */

static bool grown; /* the limit has: then young may grow beside aged, and there are three tables for a moment */

static uint64_t two_generations(size_t limit)
{
	return 2 * (limit + limit / 3 + 64) * (uint64_t)ENTRY;
}

/* A batch, as the kernels do it: some digests are looked up, and the first `take` of them enter. */
static void look_up(struct vv_known_map *m, const size_t *which, size_t take, uint32_t ordinal, size_t *entered,
		    size_t *promoted)
{
	for (size_t i = 0; i < take; i++) {
		const struct vv_digest *d = &list[which[i]].digest;
		uint64_t aged = find(&m->aged, d);

		if (find(&m->young, d) != VV_GPU_FREE)
			continue;
		if (aged == VV_GPU_FREE) {
			list[which[i]].there = true;
			list[which[i]].place = (uint64_t)ordinal << 40 | i;
		}
		enter(&m->young, d, list[which[i]].place);
		++*entered;
		*promoted += aged != VV_GPU_FREE;
	}
}

/* Often as many as there is room for, or one more. */
static size_t choose(size_t which[DIGESTS], const struct vv_known_map *m)
{
	size_t fits = m->limit - m->n_young + upto(1), n = upto(2) && fits <= DIGESTS ? fits : upto(DIGESTS),
	       at = upto(DIGESTS - 1), stride = 7; /* each of them once: 7 does not divide their number */

	for (size_t i = 0; i < n; i++)
		which[i] = (at + i * stride) % DIGESTS;
	return n;
}

/* It counts all that it forgets. */
static void do_batch(struct vv_known_map *m, uint32_t ordinal)
{
	static bool before[DIGESTS], after[DIGESTS];
	size_t which[DIGESTS], n = choose(which, m), take = 0, entered = 0, promoted = 0, lost = 0;
	uint64_t forgotten = m->forgotten;
	int rc;

	count_known(m, before);
	host_peak = host_bytes;
	rc = vv_known_map_begin(m, n, &take, NULL);
	host_run_all();
	if (!grown)
		CHECK(host_peak <= two_generations(m->limit) + sizeof(struct vv_gpu_moved));
	check(m, true);
	if (rc)
		return;
	CHECK(take <= n && (take == n || take == m->limit));
	CHECK(m->young.slots > m->n_young + take);
	count_known(m, after);
	for (size_t i = 0; i < DIGESTS; i++)
		lost += before[i] && !after[i];
	CHECK_EQ(m->forgotten - forgotten, lost + n - take);
	look_up(m, which, take, ordinal, &entered, &promoted);
	vv_known_map_end(m, entered, promoted);
	check(m, true);
}

/* A pass that comes to no end leaves entries that were not counted, and claims. */
static void break_off(struct vv_known_map *m, uint32_t ordinal)
{
	size_t which[DIGESTS], n = choose(which, m), take = 0, entered = 0, promoted = 0;

	if (vv_known_map_begin(m, n, &take, NULL))
		return;
	host_run_all();
	look_up(m, which, take / 2, ordinal, &entered, &promoted);
	for (size_t i = take / 2; i < take; i++)
		if (find(&m->young, &list[which[i]].digest) == VV_GPU_FREE)
			m->young.place[slot_of(&m->young, &list[which[i]].digest)] = VV_GPU_CLAIM | i;
}

/* Those are not known any more; all others are, unless there was no memory to keep them. */
static void kill_some(struct vv_known_map *m, uint32_t last)
{
	static bool before[DIGESTS], after[DIGESTS];
	uint32_t dead[STEPS + 1];
	size_t n = 0, calls;
	int rc;

	for (uint32_t i = 1; i <= last; i++)
		if (i == last || upto(4) == 0)
			dead[n++] = i;
	count_known(m, before);
	host_calls = 0;
	rc = vv_known_map_kill(m, dead, n, NULL);
	calls = (size_t)host_calls;
	host_run_all();
	check(m, rc == 0);
	if (rc) {
		host_fail(0);
		CHECK_EQ(vv_known_map_kill(m, dead, n, NULL), 0); /* as at the next pass */
	}
	count_known(m, after);
	for (size_t i = 0; i < DIGESTS; i++) {
		bool dies = false;

		for (size_t k = 0; k < n; k++)
			dies |= list[i].there && list[i].place >> 40 == dead[k];
		CHECK(!after[i] || (before[i] && !dies));
		CHECK(after[i] || dies || !before[i] || (host_fail_at && calls >= (size_t)host_fail_at));
		list[i].there &= !dies;
	}
	host_fail(0);
	check(m, true);
}

static void limit(struct vv_known_map *m)
{
	size_t most = upto(1) ? upto(DIGESTS) : upto(100), n_young = m->n_young, n_aged = m->n_aged;
	int rc;

	grown |= most > m->limit;
	rc = vv_known_map_limit(m, most, upto(DIGESTS), NULL);
	host_run_all();
	check(m, true);
	CHECK(m->limit == most && m->usual <= most);
	CHECK_EQ(m->n_young, n_young <= most ? n_young : 0);
	CHECK_EQ(m->n_aged, n_aged <= most ? n_aged : 0);
	host_fail(0);
	if (rc) /* as at the next pass */
		CHECK_EQ(vv_known_map_limit(m, most, m->usual, NULL), 0);
	CHECK(((uint64_t)m->young.slots + m->aged.slots) * ENTRY <= two_generations(most));
}

static void test_random(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct vv_known_map m = {0};
		bool failing = round % 2;

		make_list();
		grown = false;
		CHECK_EQ(vv_known_map_limit(&m, upto(DIGESTS), upto(DIGESTS), NULL), 0);
		for (uint32_t step = 1; step <= STEPS; step++) {
			unsigned what = (unsigned)upto(9);

			host_fail(failing && upto(2) == 0 ? 1 + (long)upto(12) : 0);
			if (what == 0)
				limit(&m);
			else if (what == 1)
				kill_some(&m, step);
			else if (what > 2)
				do_batch(&m, step);
			host_fail(0);
			if (what == 2) {
				break_off(&m, step);
				kill_some(&m, step);
			}
			host_run_all();
			host_ops = 0;
		}
		vv_known_map_clear(&m);
		CHECK(!m.n_young && !m.n_aged && !m.both && host_blocks == 0);
		vv_known_map_fini(&m);
		host_end();
	}
}

int main(void)
{
	test_random();
	return 0;
}
