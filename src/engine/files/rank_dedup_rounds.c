#include "engine/files/rank_dedup_rounds.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/search.h"
#include "engine/ranks/exchange.h"
#include <inttypes.h>
#include <string.h>

enum {
	/* digests of an epoch at each home rank; half of that is a full share of files
	 * (engine/files/pack.c), or 4 GiB of pages */
	REMEMBERED = 2 << 20,
	PLACE = sizeof(struct vv_digest) + sizeof(uint64_t), /* in a message */
};

struct rank_dedup_rounds_claim {
	struct vv_digest digest;
	uint32_t segment;
	uint64_t decision; /* PENDING: the position is its index in `soon` */
	uint64_t pos;     /* STORE: its position */
};

struct soon { /* content that another rank is storing */
	struct vv_digest digest;
	uint32_t home, rank;
	uint64_t pos; /* once it is known */
};

struct rank_dedup_rounds_place { /* a position of content that this rank received */
	struct vv_digest digest;
	uint32_t rank;
	uint64_t pos;
};

struct wait {
	uint64_t soon;
	uint32_t file;
	struct vv_run run;
};

struct rank_dedup_rounds_list {
	void *v;
	size_t n, cap;
};

struct vv_rank_dedup_rounds {
	struct vv_layer_writer *p;
	struct vv_group *g;
	struct vv_owner_stream stream;
	/* struct rank_dedup_rounds_claim: of the next round, of the last round */
	struct rank_dedup_rounds_list claims, judged;
	struct rank_dedup_rounds_list soon;           /* struct soon: of the last round */
	struct rank_dedup_rounds_list waits, ready; /* struct wait: for entries of soon; resolved */
	struct rank_dedup_rounds_list places; /* struct rank_dedup_rounds_place: of this round */
	size_t next;                /* index in ready */
	size_t *at;                 /* per rank, offset in a message */
	bool over;                  /* no rank claims any more, or all ranks know of a failure */
};

static void *add(struct rank_dedup_rounds_list *l, size_t size)
{
	return vv_mem_room(&l->v, l->n, &l->cap, size) < 0 ? NULL : (uint8_t *)l->v + l->n++ * size;
}

int vv_rank_dedup_rounds_open(struct vv_layer_writer *p, bool apart, struct vv_rank_dedup_rounds **out)
{
	struct vv_group *g = p->v->ctx.group;
	struct vv_rank_dedup_rounds *s;
	int rc;

	*out = NULL;
	if (!g || g->size == 1 || !p->v->ctx.dedup || g->dedup == VV_GROUP_NONE || g->copies > 1 || (g->has_local_stores && !apart))
		return 0;
	s = vv_mem_new(1, sizeof(*s));
	rc = s ? vv_owner_stream_init(&s->stream, g->size, REMEMBERED) : VV_ENOMEM;
	if (s) {
		s->p = p;
		s->g = g;
		s->at = vv_mem_new(g->size, sizeof(*s->at));
		rc = s->at ? rc : VV_ENOMEM;
	}
	rc = vv_group_agree(g, g->comm, rc);
	if (rc)
		vv_rank_dedup_rounds_close(s);
	else
		*out = s;
	return rc;
}

void vv_rank_dedup_rounds_close(struct vv_rank_dedup_rounds *s)
{
	if (!s)
		return;
	vv_owner_stream_fini(&s->stream);
	vv_mem_free(s->claims.v);
	vv_mem_free(s->judged.v);
	vv_mem_free(s->soon.v);
	vv_mem_free(s->waits.v);
	vv_mem_free(s->ready.v);
	vv_mem_free(s->places.v);
	vv_mem_free(s->at);
	vv_mem_free(s);
}

/* ---- between rounds -------------------------------------------------------------------------- */

int vv_rank_dedup_rounds_claim(struct vv_rank_dedup_rounds *s, const struct vv_digest *d, uint32_t segment, uint32_t *claim)
{
	struct rank_dedup_rounds_claim *c = add(&s->claims, sizeof(*c));

	if (!c)
		return VV_ENOMEM;
	*c = (struct rank_dedup_rounds_claim){ .digest = *d, .segment = segment, .pos = UINT64_MAX };
	*claim = (uint32_t)(s->claims.n - 1);
	return 0;
}

enum vv_owner_stream_kind vv_rank_dedup_rounds_decision(const struct vv_rank_dedup_rounds *s, uint32_t claim, uint64_t *layer, uint64_t *pos)
{
	uint64_t v = ((const struct rank_dedup_rounds_claim *)s->judged.v)[claim].decision;

	*layer = vv_run_layer(s->p->epoch, vv_owner_stream_rank(v));
	*pos = vv_owner_stream_pos(v);
	return vv_owner_stream_kind(v);
}

/* If the content was placed twice, to keep a slab in one piece, its digest belongs to the first
 * position. */
void vv_rank_dedup_rounds_placed(struct vv_rank_dedup_rounds *s, uint32_t claim, uint64_t pos)
{
	struct rank_dedup_rounds_claim *c = (struct rank_dedup_rounds_claim *)s->judged.v + claim;
	const struct vv_index *x = &s->p->v->index_cache->index;
	uint32_t e = vv_index_find(x, &c->digest);

	c->pos = e != VV_INDEX_NONE && e >= s->p->old_entries ? vv_index_pos(x, e) : pos;
}

int vv_rank_dedup_rounds_await(struct vv_rank_dedup_rounds *s, uint64_t soon, uint32_t file, struct vv_run run)
{
	struct wait *w = add(&s->waits, sizeof(*w));

	if (!w)
		return VV_ENOMEM;
	*w = (struct wait){ soon, file, run };
	return 0;
}

bool vv_rank_dedup_rounds_next_resolved(struct vv_rank_dedup_rounds *s, uint32_t *file, struct vv_run *run)
{
	const struct wait *w = s->ready.v;

	if (s->next == s->ready.n) {
		s->next = s->ready.n = 0;
		return false;
	}
	*file = w[s->next].file;
	*run = w[s->next++].run;
	return true;
}

/* ---- a round --------------------------------------------------------------------------------- */

/* Finds where the part of each rank begins; len: bytes for each rank. */
static void find_parts(struct vv_rank_dedup_rounds *s, const uint64_t *len)
{
	for (uint32_t r = 0; r < s->g->size; r++)
		s->at[r] = r ? s->at[r - 1] + (size_t)len[r - 1] : 0;
}

static void put(struct vv_rank_dedup_rounds *s, struct vv_exchange *m, uint32_t rank, const void *p, size_t n)
{
	memcpy(m->out + s->at[rank], p, n);
	s->at[rank] += n;
}

static uint32_t home_of(const struct vv_rank_dedup_rounds *s, const struct rank_dedup_rounds_claim *c)
{
	return vv_owner_index_home(&c->digest, s->g->size);
}

static bool is_stored(const struct rank_dedup_rounds_claim *c)
{
	return vv_owner_stream_kind(c->decision) == VV_OWNER_STREAM_STORE;
}

static int write_ask(struct vv_rank_dedup_rounds *s, uint64_t more, struct vv_exchange *m)
{
	const struct rank_dedup_rounds_claim *claim = s->claims.v, *judged = s->judged.v;
	uint32_t size = s->g->size;
	int rc = vv_exchange_new(m, size, size * sizeof(more) + s->judged.n * sizeof(uint64_t) + s->claims.n * VV_OWNER_STREAM_CLAIM);

	if (rc)
		return rc;
	for (uint32_t r = 0; r < size; r++)
		m->out_len[r] = sizeof(more);
	for (size_t i = 0; i < s->judged.n; i++)
		m->out_len[home_of(s, &judged[i])] += is_stored(&judged[i]) ? sizeof(uint64_t) : 0;
	for (size_t i = 0; i < s->claims.n; i++)
		m->out_len[home_of(s, &claim[i])] += VV_OWNER_STREAM_CLAIM;
	find_parts(s, m->out_len);
	for (uint32_t r = 0; r < size; r++)
		put(s, m, r, &more, sizeof(more));
	for (size_t i = 0; i < s->judged.n; i++)
		if (is_stored(&judged[i]))
			put(s, m, home_of(s, &judged[i]), &judged[i].pos, sizeof(uint64_t));
	for (size_t i = 0; i < s->claims.n; i++) {
		put(s, m, home_of(s, &claim[i]), &claim[i].digest, sizeof(struct vv_digest));
		put(s, m, home_of(s, &claim[i]), &claim[i].segment, sizeof(uint32_t));
	}
	return 0;
}

/* Answers the claims that this rank received as a home rank. The lengths of the other home ranks'
 * answers follow from the claims sent to them. */
static int write_answer(struct vv_rank_dedup_rounds *s, const struct vv_exchange *ask, struct vv_exchange *m)
{
	const struct rank_dedup_rounds_claim *claim = s->claims.v;
	const struct soon *soon = s->soon.v;
	uint64_t sum = 0;
	int rc = vv_owner_stream_run(&s->stream, ask->in, ask->in_len);

	for (uint32_t r = 0; rc == 0 && r < s->g->size; r++)
		sum += s->stream.reply_len[r];
	if (rc == 0)
		rc = vv_exchange_new(m, s->g->size, (size_t)sum);
	if (rc)
		return rc;
	if (sum)
		memcpy(m->out, s->stream.reply, (size_t)sum);
	memcpy(m->out_len, s->stream.reply_len, s->g->size * sizeof(*m->out_len));
	for (size_t i = 0; i < s->soon.n; i++)
		m->in_len[soon[i].home] += sizeof(uint64_t);
	for (size_t i = 0; i < s->claims.n; i++)
		m->in_len[home_of(s, &claim[i])] += sizeof(uint64_t);
	return 0;
}

/* The next word of a home rank's answer. */
static uint64_t get(struct vv_rank_dedup_rounds *s, const struct vv_exchange *m, uint32_t home)
{
	uint64_t word;

	memcpy(&word, m->in + s->at[home], sizeof(word));
	s->at[home] += sizeof(word);
	return word;
}

static int cannot_be(uint32_t home)
{
	return vv_err_set(VV_EPEER, "rank %u says of content where it lies, which cannot be", home);
}

static int add_place(struct vv_rank_dedup_rounds *s, const struct vv_digest *d, uint32_t rank, uint64_t pos)
{
	struct rank_dedup_rounds_place *p = add(&s->places, sizeof(*p));

	if (!p)
		return VV_ENOMEM;
	*p = (struct rank_dedup_rounds_place){ *d, rank, pos };
	return 0;
}

static int read_decision(struct vv_rank_dedup_rounds *s, const struct vv_exchange *m, struct rank_dedup_rounds_claim *c)
{
	uint32_t home = home_of(s, c);
	struct soon *soon;

	c->decision = get(s, m, home);
	if (!vv_owner_stream_is_valid(c->decision, s->g->rank, s->g->size))
		return cannot_be(home);
	if (vv_owner_stream_kind(c->decision) == VV_OWNER_STREAM_STORED)
		return add_place(s, &c->digest, vv_owner_stream_rank(c->decision), vv_owner_stream_pos(c->decision));
	if (vv_owner_stream_kind(c->decision) == VV_OWNER_STREAM_STORE)
		return 0;
	soon = add(&s->soon, sizeof(*soon));
	if (!soon)
		return VV_ENOMEM;
	*soon = (struct soon){ .digest = c->digest, .home = home, .rank = vv_owner_stream_rank(c->decision) };
	c->decision = vv_owner_stream_decision(VV_OWNER_STREAM_PENDING, soon->rank, s->soon.n - 1);
	return 0;
}

/* Reads the positions of the last round's PENDING content, and resolves the runs that wait for
 * them. */
static int read_places(struct vv_rank_dedup_rounds *s, const struct vv_exchange *m)
{
	struct soon *soon = s->soon.v;
	const struct wait *wait = s->waits.v;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < s->soon.n; i++) {
		uint64_t place = get(s, m, soon[i].home);

		if (vv_owner_stream_kind(place) != VV_OWNER_STREAM_STORED || vv_owner_stream_rank(place) != soon[i].rank)
			return cannot_be(soon[i].home);
		soon[i].pos = vv_owner_stream_pos(place);
		rc = add_place(s, &soon[i].digest, soon[i].rank, soon[i].pos);
	}
	for (size_t i = 0; rc == 0 && i < s->waits.n; i++) {
		struct wait *w = add(&s->ready, sizeof(*w));

		if (!w)
			return VV_ENOMEM;
		*w = wait[i];
		w->run.pos += soon[w->soon].pos;
	}
	s->soon.n = s->waits.n = 0;
	return rc;
}

static int read_answer(struct vv_rank_dedup_rounds *s, const struct vv_exchange *m)
{
	struct rank_dedup_rounds_list judged = s->claims;
	int rc;

	find_parts(s, m->in_len);
	rc = read_places(s, m);
	for (size_t i = 0; rc == 0 && i < judged.n; i++)
		rc = read_decision(s, m, (struct rank_dedup_rounds_claim *)judged.v + i);
	s->claims = s->judged;
	s->claims.n = 0;
	s->judged = judged;
	return rc;
}

/* ---- confirmation of positions --------------------------------------------------------------- */

static int write_places(struct vv_rank_dedup_rounds *s, struct vv_exchange *m)
{
	const struct rank_dedup_rounds_place *p = s->places.v;
	int rc = vv_exchange_new(m, s->g->size, s->places.n * PLACE);

	if (rc)
		return rc;
	for (size_t i = 0; i < s->places.n; i++)
		m->out_len[p[i].rank] += PLACE;
	find_parts(s, m->out_len);
	for (size_t i = 0; i < s->places.n; i++) {
		put(s, m, p[i].rank, &p[i].digest, sizeof(p[i].digest));
		put(s, m, p[i].rank, &p[i].pos, sizeof(p[i].pos));
	}
	s->places.n = 0;
	return 0;
}

/* Looks in the digests that this layer will write to its DIGESTS. */
static bool is_at(const struct vv_digests *d, uint64_t pos, const struct vv_digest *digest)
{
	const struct vv_digest_group *g = d->group;
	size_t i;

	VV_SEARCH(i, 0, d->n_groups, g[i].pos <= pos); /* the first group behind pos */
	if (i == 0)
		return false;
	g += i - 1;
	return (pos - g->pos) % g->chunk == 0 && (pos - g->pos) / g->chunk < g->count &&
	       vv_digest_equal(&d->v[g->digest + (pos - g->pos) / g->chunk], digest);
}

static int check_places(const struct vv_rank_dedup_rounds *s, const struct vv_exchange *m)
{
	const uint8_t *p = m->in;

	for (uint32_t r = 0; r < s->g->size; r++)
		for (const uint8_t *end = p + m->in_len[r]; p < end; p += PLACE) {
			struct vv_digest digest;
			uint64_t pos;

			memcpy(&digest, p, sizeof(digest));
			memcpy(&pos, p + sizeof(digest), sizeof(pos));
			if (!is_at(&s->p->digests, pos, &digest))
				return vv_err_set(VV_EPEER,
						  "rank %u was told that bytes of its files are at position %" PRIu64
						  " of the layer of rank %u, which has others there; nothing was stored, try again",
						  r, pos, s->g->rank);
		}
	return 0;
}

/* A run holds the position of bytes, not their digest, so a reader would not notice wrong bytes. So
 * the rank that holds the bytes checks every reported position before anything is committed. */
static int confirm(struct vv_rank_dedup_rounds *s, int rc)
{
	struct vv_exchange m = { 0 };

	if (rc == 0)
		rc = write_places(s, &m);
	rc = vv_exchange_send(&m, s->g, rc, PLACE);
	if (rc == 0)
		rc = vv_group_agree(s->g, s->g->comm, check_places(s, &m));
	vv_exchange_free(&m, s->g);
	return rc;
}

static int talk(struct vv_rank_dedup_rounds *s, int rc, uint64_t more)
{
	struct vv_exchange ask = { 0 }, answer = { 0 };
	uint64_t start = vv_clock_ns();

	if (rc == 0)
		rc = write_ask(s, more, &ask);
	rc = vv_exchange_send(&ask, s->g, rc, sizeof(uint32_t));
	s->over = rc != 0;
	if (rc == 0) {
		rc = write_answer(s, &ask, &answer);
		rc = vv_exchange_reply(&answer, s->g, rc, sizeof(uint64_t));
		s->over = rc != 0 || s->stream.more == 0;
	}
	if (rc == 0) {
		rc = confirm(s, read_answer(s, &answer));
		s->over = s->over || rc != 0;
	}
	vv_exchange_free(&ask, s->g);
	vv_exchange_free(&answer, s->g);
	s->p->st.seconds_ranks += (double)(vv_clock_ns() - start) / 1e9;
	return rc;
}

int vv_rank_dedup_rounds_run(struct vv_rank_dedup_rounds *s)
{
	return talk(s, 0, 1);
}

int vv_rank_dedup_rounds_finish(struct vv_rank_dedup_rounds *s, int rc)
{
	while (s && !s->over)
		rc = talk(s, rc, 0);
	return rc;
}
