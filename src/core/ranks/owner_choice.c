/* Nicolae 2013's rule: content with one holder is counted first, then the least loaded holder gets
 * shared content. There are two additions: loads are counted in bytes, and neighbouring chunks stay
 * together, so that references stay long runs. */
#include "core/ranks/owner_choice.h"
#include "core/ranks/owner_batch_priv.h"

struct owner_choice {
	struct vv_owner_batch *c;
	const uint32_t *host;
	uint32_t segments; /* different segments in a rank's memory */
	uint64_t slack;
};

static uint32_t host_of(const struct owner_choice *d, uint32_t rank)
{
	return d->host ? d->host[rank] : rank;
}

/* The holder for the place of a chunk: segments are dealt to the holders in turn. Some segments
 * remain if their number is no multiple of the number of holders. For these the digest chooses a
 * part of the segment, so that all holders get the same on average. The more ranks there are, the
 * less a single home rank can correct. */
static uint32_t by_place(const struct owner_choice *d, const struct vv_owner_batch_group *g)
{
	uint64_t cycle = g->n > d->segments ? d->segments : VV_OWNER_INDEX_SEGMENTS, whole = cycle - cycle % g->n;
	uint64_t at = vv_owner_index_tag_segment(g->tag) % cycle;

	if (at < whole)
		return (uint32_t)(at % g->n);
	at = (at - whole) << 16 | (g->digest.w[0] & 0xffff);
	return (uint32_t)(at * g->n / (cycle - whole) >> 16);
}

/* Each home rank gets its share of all content, so it can estimate the number of segments. The
 * estimate is rounded to a power of two, on which most home ranks agree. */
static uint32_t guess_segments(const struct vv_owner_batch *c, size_t shared)
{
	size_t about = shared * c->ranks / VV_OWNER_INDEX_SEGMENT_CHUNKS;
	uint32_t n = 1;

	while (n < VV_OWNER_INDEX_SEGMENTS && n * 10ull < about * 7)
		n *= 2;
	return n;
}

static bool host_taken(const struct owner_choice *d, const uint64_t *copy, size_t n, size_t but, uint32_t rank)
{
	for (size_t i = 0; i < n; i++)
		if (i != but && host_of(d, vv_owner_batch_rank_of(copy[i])) == host_of(d, rank))
			return true;
	return false;
}

/* Chooses one holder by place, and others as far from it as possible, each on a host of its own.
 * Returns their number. */
static uint32_t choose(const struct owner_choice *d, const struct vv_owner_batch_group *g, uint64_t *copy)
{
	uint32_t at = by_place(d, g), want = d->c->copies < g->n ? d->c->copies : g->n, n = 0;
	const uint32_t *h = vv_owner_batch_holders(d->c, g);

	for (uint32_t j = 0; j < want; j++) {
		uint32_t i = (uint32_t)((at + (uint64_t)g->n * j / want) % g->n), n_taken = 0;

		while (n_taken < g->n && host_taken(d, copy, n, n, h[i])) {
			i = i + 1 < g->n ? i + 1 : 0;
			n_taken++;
		}
		if (n_taken == g->n)
			break;
		copy[n++] = h[i] * VV_OWNER_INDEX_POS_MAX;
		d->c->load[h[i]] += vv_owner_index_tag_len(g->tag);
	}
	return n;
}

/* If the chosen holder has clearly more than another could have, the least loaded holder replaces
 * it. */
static bool relieve(const struct owner_choice *d, const struct vv_owner_batch_group *g, uint64_t *copy, uint32_t n, uint32_t which)
{
	uint64_t *load = d->c->load, len = vv_owner_index_tag_len(g->tag);
	uint32_t from = vv_owner_batch_rank_of(copy[which]), to = from;
	const uint32_t *h = vv_owner_batch_holders(d->c, g);

	for (uint32_t i = 0; i < g->n; i++)
		if (load[h[i]] < load[to] && (n == 1 || !host_taken(d, copy, n, which, h[i])))
			to = h[i];
	if (load[from] <= load[to] + d->slack + 2 * len)
		return false;
	load[from] -= len;
	load[to] += len;
	copy[which] = to * VV_OWNER_INDEX_POS_MAX;
	return true;
}

static uint64_t least_load(const struct vv_owner_batch *c)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t r = 0; r < c->ranks; r++)
		least = c->load[r] < least ? c->load[r] : least;
	return least;
}

/* Visits all groups once; returns the number of copies moved. A group whose holder has little load
 * is skipped: no rank has less than the least, also later. */
static size_t relieve_all(const struct owner_choice *d)
{
	struct vv_owner_batch *c = d->c;
	uint64_t least = least_load(c), *copy = c->copy;
	size_t moved = 0;

	for (size_t i = 0; i < c->n_groups; i++) {
		const struct vv_owner_batch_group *g = &c->group[i];

		if (g->n < 2)
			continue;
		for (uint32_t j = 0; j < g->rank; j++)
			if (c->load[vv_owner_batch_rank_of(copy[j])] > least + d->slack + 2 * vv_owner_index_tag_len(g->tag))
				moved += relieve(d, g, copy, g->rank, j);
		copy += c->copies;
	}
	return moved;
}

static uint64_t average_load(const struct vv_owner_batch *c)
{
	uint64_t sum = 0;

	for (uint32_t r = 0; r < c->ranks; r++)
		sum += c->load[r];
	return sum / c->ranks;
}

/* A home rank sees a sample. If the sample is small, loads differ by chance, and the differences
 * cancel over all home ranks. Correcting them would split runs for nothing. Loads must therefore
 * differ by more than a sample of equal loads would. */
static bool uneven(const struct vv_owner_batch *c, uint64_t average)
{
	/* chunks per rank: their number differs by an eighth, and correcting that costs a few
	 * percent of the runs */
	enum { SMALL = 64 };
	double squares = 0, spread = 0;
	size_t chunks = 0;

	for (size_t i = 0; i < c->n_groups; i++) {
		double len = vv_owner_index_tag_len(c->group[i].tag), n = c->group[i].n > 1 ? c->group[i].rank : c->group[i].n;

		chunks += (size_t)n;
		squares += n * len * len;
	}
	for (uint32_t r = 0; r < c->ranks; r++) {
		double off = (double)c->load[r] - (double)average;

		spread += off * off;
	}
	return chunks / c->ranks >= SMALL || spread > 1.5 * squares;
}

/* All holders are chosen by place before any is corrected, so that only the final excess moves.
 * Temporary differences of loads would split runs for nothing. */
void vv_owner_choice_choose(struct vv_owner_batch *c, const uint32_t *host, size_t shared)
{
	enum { PASSES = 4 };
	struct owner_choice d = { .c = c, .host = host, .segments = guess_segments(c, shared) };
	uint64_t *copy = c->copy, average;

	for (size_t i = 0; i < c->n_groups; i++)
		if (c->group[i].n > 1) {
			c->group[i].rank = choose(&d, &c->group[i], copy);
			copy += c->copies;
		}
	average = average_load(c);
	d.slack = average / 128;
	if (!uneven(c, average))
		return;
	for (int pass = 0; pass < PASSES && relieve_all(&d); pass++)
		;
}
