/* Epochs before all home ranks against a brute-force model: random ranks, hosts, holders, sizes, memories and losses. Then messages
 * that cannot be, and want of memory. */
#include "base/err.h"
#include "base/mem.h"
#include "core/ranks/owner_batch.h"
#include "support/owner_trial.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MAX_RANKS = 12, CONTENTS = 300, CAP = 400 };

struct model {
	struct owner_trial owner_trial;
	uint32_t host[MAX_RANKS];
	uint64_t layer;                                       /* of this epoch */
	struct vv_owner_index_answer have[MAX_RANKS][CONTENTS];      /* stored and not lost */
	uint32_t remembered[CONTENTS];                        /* by its home rank */
};

static struct vv_owner_index_answer place(void *arg, uint32_t rank, uint32_t content)
{
	return ((struct model *)arg)->have[rank][content];
}

static uint32_t len_of(uint32_t content)
{
	return content % 7 == 0 ? VV_OWNER_INDEX_LEN_MAX : content % 5 == 0 ? 1 : 4096;
}

/* Random content that the rank has not, some of it twice. */
static void claim(struct model *m, uint64_t *state, uint32_t rank, uint32_t contents)
{
	struct owner_trial_rank *r = &m->owner_trial.rank[rank];
	size_t tries = gen_below(state, CAP);
	bool seen[CONTENTS] = { false };

	r->n = 0;
	for (size_t i = 0; i < tries; i++) {
		uint32_t content = (uint32_t)gen_below(state, contents);

		if (m->have[rank][content].layer || (seen[content] && gen_below(state, 8)))
			continue;
		seen[content] = true;
		r->claim[r->n++] = (struct owner_trial_claim){ .content = content, .len = len_of(content) };
	}
}

static struct owner_trial_claim *find(struct model *m, uint32_t rank, uint32_t content)
{
	struct owner_trial_rank *r = &m->owner_trial.rank[rank];

	for (size_t i = 0; i < r->n; i++)
		if (r->claim[i].content == content)
			return &r->claim[i];
	return NULL;
}

struct view { /* of one content */
	uint32_t claimers, hosts, lenders;
	uint32_t lender_host[MAX_RANKS];
};

static void look(struct model *m, uint32_t content, struct view *v)
{
	uint32_t hosts[MAX_RANKS];

	*v = (struct view){ 0 };
	for (uint32_t r = 0; r < m->owner_trial.ranks; r++) {
		struct owner_trial_claim *c = find(m, r, content);
		uint32_t host = m->owner_trial.host ? m->owner_trial.host[r] : r, i = 0;

		if (!c)
			continue;
		v->claimers++;
		while (i < v->hosts && hosts[i] != host)
			i++;
		hosts[i] = host;
		v->hosts += i == v->hosts;
		if (vv_owner_index_kind(c->decision) == VV_OWNER_INDEX_STORE_SHARED)
			v->lender_host[v->lenders++] = host;
	}
	for (uint32_t i = 0; i < v->lenders; i++)
		for (uint32_t j = 0; j < i; j++)
			CHECK(v->lender_host[i] != v->lender_host[j]);
}

static uint64_t position(struct model *m, uint32_t rank, uint32_t content)
{
	struct owner_trial_rank *r = &m->owner_trial.rank[rank];
	uint64_t pos = 0;

	for (size_t i = 0; i < r->n; i++) /* of a double claim the last place counts */
		if (r->claim[i].content == content)
			pos = r->claim[i].pos;
	return pos;
}

/* The copies named are the lenders but for `but`, each with its place. */
static void check_copies(struct model *m, const struct owner_trial_claim *c, uint32_t but, uint32_t lenders)
{
	uint32_t named = 0;
	uint64_t seen = 0;

	for (uint32_t i = 0; i + 1 < m->owner_trial.copies; i++) {
		uint32_t rank = (uint32_t)(c->copy[i] >> 40);
		struct owner_trial_claim *other;

		if (c->copy[i] == VV_OWNER_INDEX_NO_COPY)
			continue;
		CHECK(rank != but && !(seen >> rank & 1));
		seen |= 1ull << rank;
		other = find(m, rank, c->content);
		CHECK(other && vv_owner_index_kind(other->decision) == VV_OWNER_INDEX_STORE_SHARED);
		CHECK_EQ(c->copy[i] & (VV_OWNER_INDEX_POS_MAX - 1), position(m, rank, c->content));
		named++;
	}
	CHECK_EQ(named, lenders - 1);
}

static void check_refer(struct model *m, const struct owner_trial_claim *c, uint32_t rank, const struct view *v)
{
	uint32_t owner = vv_owner_index_rank(c->decision);
	struct owner_trial_claim *theirs = find(m, owner, c->content);
	const uint32_t *host = m->owner_trial.host;

	CHECK(theirs && vv_owner_index_kind(theirs->decision) == VV_OWNER_INDEX_STORE_SHARED);
	CHECK_EQ(c->where.pos, position(m, owner, c->content));
	for (uint32_t i = 0; host && i < v->lenders; i++)
		if (v->lender_host[i] == host[rank])
			CHECK_EQ(host[owner], host[rank]);
	if (m->owner_trial.copies > 1)
		check_copies(m, c, owner, v->lenders);
}

static void check_claim(struct model *m, const struct owner_trial_claim *c, uint32_t rank, const struct view *v, uint32_t old)
{
	enum vv_owner_index_kind kind = vv_owner_index_kind(c->decision);

	if (old != VV_OWNER_INDEX_NOBODY) {
		CHECK_EQ(c->decision, vv_owner_index_decision(VV_OWNER_INDEX_REMOTE_OLD, old));
		CHECK_EQ(c->where.layer, m->have[old][c->content].layer);
		CHECK_EQ(c->where.pos, m->have[old][c->content].pos);
		return;
	}
	CHECK(kind != VV_OWNER_INDEX_REMOTE_OLD);
	CHECK_EQ(kind == VV_OWNER_INDEX_STORE, v->claimers == 1);
	if (kind == VV_OWNER_INDEX_REMOTE)
		check_refer(m, c, rank, v);
	if (kind == VV_OWNER_INDEX_STORE_SHARED && m->owner_trial.copies > 1)
		check_copies(m, c, rank, v->lenders);
}

/* What the home rank's memory should give, and what is left of it when the owner says no. */
static uint32_t old_owner(struct model *m, uint32_t content, bool *asked)
{
	uint32_t owner = m->remembered[content];

	*asked = owner != VV_OWNER_INDEX_NOBODY && !find(m, owner, content);
	return *asked && m->have[owner][content].layer ? owner : VV_OWNER_INDEX_NOBODY;
}

static void check_epoch(struct model *m, bool learn)
{
	size_t queries = 0;

	for (uint32_t content = 0; content < CONTENTS; content++) {
		struct vv_digest d = owner_trial_digest(content);
		struct vv_owner_index *judge = &m->owner_trial.judge[vv_owner_index_home(&d, m->owner_trial.ranks)];
		uint32_t copies = m->owner_trial.copies, old;
		struct view v;
		bool asked;

		look(m, content, &v);
		if (!v.claimers)
			continue;
		old = old_owner(m, content, &asked);
		queries += asked;
		if (old == VV_OWNER_INDEX_NOBODY && v.claimers > 1)
			CHECK_EQ(v.lenders, copies < v.hosts ? copies : v.hosts);
		for (uint32_t r = 0; r < m->owner_trial.ranks; r++)
			for (size_t i = 0; i < m->owner_trial.rank[r].n; i++)
				if (m->owner_trial.rank[r].claim[i].content == content)
					check_claim(m, &m->owner_trial.rank[r].claim[i], r, &v, old);
		if (asked && old == VV_OWNER_INDEX_NOBODY)
			m->remembered[content] = VV_OWNER_INDEX_NOBODY;
		if (learn && old == VV_OWNER_INDEX_NOBODY) {
			struct owner_trial_claim *c = find(m, vv_owner_index_find(judge, &d), content);

			CHECK(c && vv_owner_index_kind(c->decision) <= VV_OWNER_INDEX_STORE_SHARED);
			m->remembered[content] = vv_owner_index_find(judge, &d);
		}
		CHECK_EQ(vv_owner_index_find(judge, &d), m->remembered[content]);
	}
	CHECK_EQ(m->owner_trial.queries, queries);
}

/* What was stored is there from now on; and some of everything is lost. */
static void move_on(struct model *m, uint64_t *state, bool learn)
{
	for (uint32_t r = 0; r < m->owner_trial.ranks; r++) {
		for (size_t i = 0; learn && i < m->owner_trial.rank[r].n; i++) {
			const struct owner_trial_claim *c = &m->owner_trial.rank[r].claim[i];

			if (vv_owner_index_kind(c->decision) <= VV_OWNER_INDEX_STORE_SHARED)
				m->have[r][c->content] = (struct vv_owner_index_answer){ m->layer, c->pos };
		}
		for (uint32_t content = 0; content < CONTENTS; content++)
			if (gen_below(state, 4) == 0)
				m->have[r][content] = (struct vv_owner_index_answer){ 0 };
	}
	m->layer++;
}

static void test_model(void)
{
	static struct model m;
	uint64_t state = 5;

	for (int round = 0; round < 60; round++) {
		uint32_t ranks = 1 + (uint32_t)gen_below(&state, MAX_RANKS), hosts = 1 + (uint32_t)gen_below(&state, ranks);
		uint32_t contents = 1 + (uint32_t)gen_below(&state, CONTENTS);

		m = (struct model){ .layer = 1 };
		memset(m.remembered, 0xff, sizeof(m.remembered));
		owner_trial_open(&m.owner_trial, ranks, CAP, SIZE_MAX);
		m.owner_trial.place = place;
		m.owner_trial.arg = &m;
		m.owner_trial.copies = 1 + (uint32_t)gen_below(&state, 4);
		for (uint32_t r = 0; r < ranks; r++)
			m.host[r] = 1000 + (uint32_t)gen_below(&state, hosts);
		m.owner_trial.host = round % 3 ? m.host : NULL;
		for (int epoch = 0; epoch < 5; epoch++) {
			bool learn = gen_below(&state, 4) > 0;

			for (uint32_t r = 0; r < ranks; r++)
				claim(&m, &state, r, contents);
			owner_trial_epoch(&m.owner_trial, learn);
			check_epoch(&m, learn);
			move_on(&m, &state, learn);
		}
		owner_trial_close(&m.owner_trial);
	}
}

/* ---- messages that cannot be: two ranks, two claims each, one of them shared */

struct small {
	struct vv_owner_index judge;
	struct vv_owner_batch c;
	uint8_t claims[4 * VV_OWNER_INDEX_CLAIM];
	uint64_t len[2];
	uint32_t decision[4];
};

static void fill(struct small *s)
{
	const uint32_t content[4] = { 1, 2, 2, 3 };
	uint8_t *p = s->claims;

	for (int r = 0; r < 2; r++) {
		uint32_t tag = vv_owner_index_tag(4096, 0);

		for (int i = 0; i < 2; i++, p += sizeof(struct vv_digest)) {
			struct vv_digest d = owner_trial_digest(content[2 * r + i]);

			memcpy(p, &d, sizeof(d));
		}
		for (int i = 0; i < 2; i++, p += sizeof(tag))
			memcpy(p, &tag, sizeof(tag));
		s->len[r] = 2 * VV_OWNER_INDEX_CLAIM;
	}
}

static void put_tag(struct small *s, size_t at, uint32_t tag)
{
	memcpy(s->claims + at, &tag, sizeof(tag));
}

static int open_small(struct small *s)
{
	return vv_owner_batch_open(&s->c, &s->judge, 2, s->claims, s->len);
}

static void test_bad_claims(void)
{
	struct small s = { 0 };

	vv_owner_index_init(&s.judge, 100);
	for (int kind = 0; kind < 7; kind++) {
		fill(&s);
		if (kind < 2)
			s.len[kind] -= 1;
		else if (kind == 2)
			s.len[0] = (UINT64_MAX / VV_OWNER_INDEX_CLAIM) * VV_OWNER_INDEX_CLAIM;
		else if (kind == 3) /* each could be, but not both */
			s.len[0] = s.len[1] = (uint64_t)VV_OWNER_INDEX_CLAIM << 31;
		else if (kind == 4)
			put_tag(&s, 32, vv_owner_index_tag(0, 0));
		else if (kind == 5)
			put_tag(&s, 36, vv_owner_index_tag(VV_OWNER_INDEX_LEN_MAX + 1, 0));
		else /* the same digest, another length */
			put_tag(&s, 40 + 32, vv_owner_index_tag(512, 0));
		CHECK_EQ(open_small(&s), VV_EPEER);
		CHECK(!s.c.group && !s.c.first);
		vv_owner_batch_close(&s.c);
	}
	fill(&s);
	CHECK_EQ(vv_owner_batch_open(&s.c, &s.judge, VV_OWNER_INDEX_RANKS_MAX + 1, s.claims, s.len), VV_EINVAL);
	CHECK_EQ(vv_owner_batch_open(&s.c, &s.judge, 0, s.claims, s.len), VV_EINVAL);
	CHECK_EQ(open_small(&s), 0);
	CHECK_EQ(s.c.n_groups, 3);
	CHECK_EQ(vv_owner_batch_decide(&s.c, NULL, 0, s.decision), VV_EINVAL);
	CHECK_EQ(vv_owner_batch_decide(&s.c, NULL, VV_OWNER_INDEX_COPIES_MAX + 1, s.decision), VV_EINVAL);
	vv_owner_batch_close(&s.c);
	vv_owner_index_fini(&s.judge);
}

static void test_bad_answers(void)
{
	struct vv_owner_index_answer answer[2] = { { 1, 0 }, { 1, VV_OWNER_INDEX_POS_MAX } };
	struct vv_digest d = owner_trial_digest(1), gone = owner_trial_digest(3);
	struct small s = { 0 };
	uint64_t n_to[2];

	vv_owner_index_init(&s.judge, 100);
	fill(&s);
	vv_owner_index_add(&s.judge, 1, &d, 1);
	vv_owner_index_add(&s.judge, 7, &gone, 1); /* a rank that there is not is not asked */
	CHECK_EQ(open_small(&s), 0);
	CHECK_EQ(vv_owner_batch_queries(&s.c, n_to), 0);
	CHECK_EQ(s.c.n_queries, 1);
	CHECK_EQ(n_to[1], 1);
	CHECK(vv_digest_equal(&s.c.query[0], &d));
	CHECK_EQ(vv_owner_batch_answer(&s.c, answer, 0), VV_EPEER);
	CHECK_EQ(vv_owner_batch_answer(&s.c, answer, 2 * sizeof(answer[0])), VV_EPEER);
	CHECK_EQ(vv_owner_batch_answer(&s.c, answer, sizeof(answer[0]) - 1), VV_EPEER);
	CHECK_EQ(vv_owner_batch_answer(&s.c, &answer[1], sizeof(answer[0])), VV_EPEER);
	vv_owner_batch_close(&s.c);
	vv_owner_index_fini(&s.judge);
}

static void test_bad_lent(void)
{
	uint64_t lent[4] = { 8, 8, 8, 8 }, good[2], bad[2];
	struct small s = { 0 };

	vv_owner_index_init(&s.judge, 100);
	fill(&s);
	CHECK_EQ(open_small(&s), 0);
	CHECK_EQ(vv_owner_batch_decide(&s.c, NULL, 1, s.decision), 0);
	for (int r = 0; r < 2; r++)
		good[r] = vv_owner_index_count_shared(&s.decision[2 * r], 2) * sizeof(lent[0]);
	CHECK_EQ(good[0] + good[1], 8);
	for (int kind = 0; kind < 5; kind++) {
		memcpy(bad, good, sizeof(bad));
		if (kind < 2)
			bad[kind] += 8;
		else if (kind < 4)
			bad[kind - 2] ^= 1;
		else
			lent[0] = VV_OWNER_INDEX_POS_MAX;
		CHECK_EQ(vv_owner_batch_set_positions(&s.c, lent, bad), VV_EPEER);
	}
	lent[0] = VV_OWNER_INDEX_POS_MAX - 1;
	CHECK_EQ(vv_owner_batch_set_positions(&s.c, lent, good), 0);
	vv_owner_batch_close(&s.c);
	vv_owner_index_fini(&s.judge);
}

static int whole_epoch(struct small *s)
{
	struct vv_owner_index_answer answer = { 3, 4 };
	uint64_t n_to[2], lent[4] = { 0 }, len[2], word[16];
	int rc = open_small(s);

	if (rc == 0)
		rc = vv_owner_batch_queries(&s->c, n_to);
	if (rc == 0)
		rc = vv_owner_batch_answer(&s->c, &answer, s->c.n_queries * sizeof(answer));
	if (rc == 0)
		rc = vv_owner_batch_decide(&s->c, NULL, 2, s->decision);
	if (rc == 0) {
		for (int r = 0; r < 2; r++)
			len[r] = vv_owner_index_count_shared(&s->decision[2 * r], 2) * sizeof(lent[0]);
		rc = vv_owner_batch_set_positions(&s->c, lent, len);
	}
	if (rc == 0) {
		vv_owner_batch_get_locations(&s->c, word);
		vv_owner_batch_commit(&s->c);
	}
	vv_owner_batch_close(&s->c);
	return rc;
}

static void test_no_memory(void)
{
	struct vv_digest d = owner_trial_digest(1);
	struct small s = { 0 };
	long asked, failed = 0;

	fill(&s);
	vv_mem_fail_at(0);
	vv_owner_index_init(&s.judge, 100);
	vv_owner_index_add(&s.judge, 1, &d, 1);
	vv_mem_fail_at(0);
	CHECK_EQ(whole_epoch(&s), 0);
	asked = vv_mem_asked();
	for (long at = 1; at <= asked; at++) {
		vv_owner_index_fini(&s.judge);
		vv_owner_index_add(&s.judge, 1, &d, 1);
		vv_mem_fail_at(at);
		failed += whole_epoch(&s) == VV_ENOMEM;
	}
	vv_mem_fail_at(0);
	CHECK_EQ(failed, asked);
	vv_owner_index_fini(&s.judge);
}

int main(void)
{
	test_model();
	test_bad_claims();
	test_bad_answers();
	test_bad_lent();
	test_no_memory();
	return 0;
}
