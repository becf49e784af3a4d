// ctest: COST 2
/* The owners of shared content: bytes balanced over the ranks, neighbours with the same owner, whatever the number of ranks. */
#include "core/ranks/owner_choice.h"
#include "support/owner_trial.h"
#include "support/gen.h"
#include "vv_test.h"

static void put(struct owner_trial_rank *r, uint32_t content, uint32_t len)
{
	r->claim[r->n++] = (struct owner_trial_claim){ .content = content, .len = len };
}

static uint32_t owner_of(const struct owner_trial_claim *c)
{
	CHECK(vv_owner_index_kind(c->decision) == VV_OWNER_INDEX_STORE_SHARED || vv_owner_index_kind(c->decision) == VV_OWNER_INDEX_REMOTE);
	return vv_owner_index_rank(c->decision);
}

/* Consecutive chunks of rank 0 with the same owner. */
static double mean_run(const struct owner_trial *t)
{
	const struct owner_trial_rank *r = &t->rank[0];
	size_t runs = 1;

	for (size_t i = 1; i < r->n; i++)
		runs += owner_of(&r->claim[i]) != owner_of(&r->claim[i - 1]);
	return (double)r->n / (double)runs;
}

/* Rank 0 names the owner of everything; every rank holds everything. */
static void same_everywhere(uint32_t ranks, size_t pages, uint32_t copies, const uint32_t *host, double imbalance, double run)
{
	struct owner_trial t;
	uint64_t sum = 0;

	owner_trial_open(&t, ranks, pages, 0);
	t.copies = copies;
	t.host = host;
	for (uint32_t r = 0; r < ranks; r++)
		for (size_t i = 0; i < pages; i++)
			put(&t.rank[r], (uint32_t)i, 4096);
	owner_trial_epoch(&t, false);
	for (uint32_t r = 0; r < ranks; r++)
		sum += t.rank[r].stored;
	CHECK_EQ(sum, (copies < ranks ? copies : ranks) * pages * 4096);
	printf("%u ranks, %zu pages each, the same, %u copies: max/avg %.3f, mean run %.1f\n", ranks, pages, copies, owner_trial_imbalance(&t),
	       copies == 1 ? mean_run(&t) : 0);
	CHECK(owner_trial_imbalance(&t) <= imbalance);
	if (copies == 1)
		CHECK(mean_run(&t) >= run);
	owner_trial_close(&t);
}

/* The best that can be with parts of their own of these sizes: the busiest rank if what all hold is poured in like water. */
static double water_level(const double *own, uint32_t ranks, double shared)
{
	double lo = 0, hi = shared;

	for (uint32_t r = 0; r < ranks; r++)
		hi = own[r] + shared > hi ? own[r] + shared : hi;
	for (int i = 0; i < 60; i++) {
		double level = (lo + hi) / 2, room = 0;

		for (uint32_t r = 0; r < ranks; r++)
			room += level > own[r] ? level - own[r] : 0;
		*(room < shared ? &lo : &hi) = level;
	}
	for (uint32_t r = 0; r < ranks; r++)
		hi = own[r] > hi ? own[r] : hi;
	return hi;
}

/* Half is shared by all, the other half by nobody: rank r has `own[r]` pages of it. */
static void unequal(uint32_t ranks, size_t shared, const size_t *own)
{
	double bytes[64], best, most = 0;
	uint32_t content = 0;
	struct owner_trial t;

	owner_trial_open(&t, ranks, shared + 65536, 0);
	for (uint32_t r = 0; r < ranks; r++)
		for (content = 0; content < shared; content++)
			put(&t.rank[r], content, 4096);
	for (uint32_t r = 0; r < ranks; r++) {
		for (size_t i = 0; i < own[r]; i++)
			put(&t.rank[r], content++, 4096);
		bytes[r] = (double)own[r] * 4096;
	}
	owner_trial_epoch(&t, false);
	best = water_level(bytes, ranks, (double)shared * 4096);
	for (uint32_t r = 0; r < ranks; r++)
		most = (double)t.rank[r].stored > most ? (double)t.rank[r].stored : most;
	printf("%u ranks, %zu pages shared, own parts unequal: busiest %.3f of the best possible\n", ranks, shared, most / best);
	CHECK(most <= 1.03 * best);
	owner_trial_close(&t);
}

/* Two copies on two hosts: each can move within its host only, away from the rank that has much of its own. */
static void copies_on_hosts(void)
{
	enum { SHARED = 1 << 13, OWN = 8000 };
	const uint32_t host[4] = { 9, 9, 5, 5 };
	struct owner_trial t;

	owner_trial_open(&t, 4, SHARED + OWN, 0);
	t.copies = 2;
	t.host = host;
	for (uint32_t r = 0; r < 4; r++) {
		for (uint32_t i = 0; i < SHARED; i++)
			put(&t.rank[r], i, 4096);
		for (uint32_t i = 0; i < OWN && (r == 0 || r == 3); i++)
			put(&t.rank[r], SHARED + r * OWN + i, 4096);
	}
	owner_trial_epoch(&t, false);
	printf("two copies on two hosts, own parts unequal: max/avg %.3f\n", owner_trial_imbalance(&t));
	CHECK(owner_trial_imbalance(&t) <= 1.02);
	owner_trial_close(&t);
}

/* Random holder sets and sizes: against the greedy choice of one home rank that sees everything, largest first. */
static void random_sets(uint64_t seed)
{
	enum { RANKS = 9, PAGES = 20000 };
	static uint32_t holders[PAGES], len[PAGES];
	uint64_t greedy[RANKS] = { 0 }, most = 0, ours = 0;
	uint32_t size[] = { 1 << 20, 65536, 4096, 512 };
	uint64_t state = seed;
	struct owner_trial t;

	owner_trial_open(&t, RANKS, PAGES, 0);
	for (uint32_t i = 0; i < PAGES; i++) {
		holders[i] = 0;
		len[i] = gen_below(&state, 100) == 0 ? size[0] : size[1 + gen_below(&state, 3)];
		for (uint32_t r = 0; r < RANKS; r++)
			if (gen_below(&state, 1 + r)) /* the higher ranks hold more */
				holders[i] |= 1u << r;
		for (uint32_t r = 0; r < RANKS; r++)
			if (holders[i] >> r & 1)
				put(&t.rank[r], i, len[i]);
	}
	owner_trial_epoch(&t, false);
	for (size_t s = 0; s < 5; s++) /* what has one holder, then by size */
		for (uint32_t i = 0; i < PAGES; i++) {
			bool alone = !(holders[i] & (holders[i] - 1));
			uint32_t least = RANKS;

			if (!holders[i] || alone != (s == 0) || (s && len[i] != size[s - 1]))
				continue;
			for (uint32_t r = 0; r < RANKS; r++)
				if (holders[i] >> r & 1 && (least == RANKS || greedy[r] < greedy[least]))
					least = r;
			greedy[least] += len[i];
		}
	for (uint32_t r = 0; r < RANKS; r++) {
		most = greedy[r] > most ? greedy[r] : most;
		ours = t.rank[r].stored > ours ? t.rank[r].stored : ours;
	}
	printf("random holders and sizes: busiest %.3f of a greedy choice\n", (double)ours / (double)most);
	CHECK((double)ours <= 1.03 * (double)most);
	owner_trial_close(&t);
}

/* Pairs of neighbours share their borders: each border has two holders. */
static void borders(void)
{
	enum { RANKS = 16, BORDER = 2048 };
	struct owner_trial t;

	owner_trial_open(&t, RANKS, 2 * BORDER, 0);
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint32_t i = 0; i < 2 * BORDER; i++)
			put(&t.rank[r], (r * BORDER + i) % (RANKS * BORDER), 4096);
	owner_trial_epoch(&t, false);
	printf("borders shared by two: max/avg %.3f\n", owner_trial_imbalance(&t));
	CHECK(owner_trial_imbalance(&t) <= 1.05);
	owner_trial_close(&t);
}

int main(void)
{
	const uint32_t hosts[8] = { 4, 4, 5, 6, 6, 6, 7, 7 };
	const size_t ramp[8] = { 0, 2000, 4000, 6000, 8000, 10000, 12000, 14000 };
	const size_t one[4] = { 20000, 100, 100, 100 }, few[8] = { 500, 8000, 8100, 8200, 8192, 8300, 8000, 7900 };

	same_everywhere(2, 1 << 14, 1, NULL, 1.02, 8);
	same_everywhere(4, 1 << 14, 1, NULL, 1.02, 8);
	same_everywhere(7, 1 << 14, 1, NULL, 1.02, 8);
	same_everywhere(8, 1 << 15, 1, NULL, 1.02, 8);
	same_everywhere(24, 1 << 14, 1, NULL, 1.02, 8);
	same_everywhere(8, 1 << 14, 2, NULL, 1.02, 0);
	same_everywhere(3, 1 << 14, 5, NULL, 1, 0);
	same_everywhere(8, 1 << 14, 2, hosts, 1.02, 0);
	/* more ranks than a home rank has pages for: only the hints of place balance them */
	same_everywhere(128, 1 << 11, 1, NULL, 1.5, 4);
	same_everywhere(300, 1 << 9, 1, NULL, 6, 1);
	unequal(8, 1 << 13, ramp);
	unequal(4, 1 << 14, one);
	unequal(8, 1 << 13, few);
	copies_on_hosts();
	random_sets(1);
	random_sets(2);
	borders();
	return 0;
}
