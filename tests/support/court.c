#include "support/court.h"
#include "support/gen.h"
#include "vv_test.h"

struct session { /* before one judge */
	struct vv_judge_round c;
	uint8_t *claims;
	uint64_t *len; /* per rank */
	struct court_claim **claim; /* of each claim before this judge */
	uint32_t *verdict;
};

struct vv_digest court_digest(uint32_t content)
{
	uint64_t state = content;

	return (struct vv_digest){ { gen_next(&state), gen_next(&state) << 32 | content } };
}

static void *room(size_t n, size_t size)
{
	void *p = calloc(n + 1, size);

	CHECK(p != NULL);
	return p;
}

void court_open(struct court *t, uint32_t ranks, size_t cap, size_t memory)
{
	*t = (struct court){ .ranks = ranks, .copies = 1 };
	t->judge = room(ranks, sizeof(*t->judge));
	t->rank = room(ranks, sizeof(*t->rank));
	for (uint32_t r = 0; r < ranks; r++) {
		vv_dedup_judge_init(&t->judge[r], memory);
		t->rank[r].claim = room(cap, sizeof(*t->rank[r].claim));
	}
}

void court_close(struct court *t)
{
	for (uint32_t r = 0; r < t->ranks; r++) {
		vv_dedup_judge_fini(&t->judge[r]);
		free(t->rank[r].claim);
	}
	free(t->judge);
	free(t->rank);
}

static void open_session(struct court *t, uint32_t judge, struct session *s)
{
	size_t sum = 0, n = 0;
	uint8_t *p;

	for (uint32_t r = 0; r < t->ranks; r++)
		sum += t->rank[r].n;
	s->claims = p = room(sum, VV_DEDUP_JUDGE_CLAIM);
	s->claim = room(sum, sizeof(*s->claim));
	s->len = room(t->ranks, sizeof(*s->len));
	for (uint32_t r = 0; r < t->ranks; r++) {
		size_t first = n;
		uint32_t tag;

		for (size_t i = 0; i < t->rank[r].n; i++) {
			struct vv_digest d = court_digest(t->rank[r].claim[i].content);

			if (vv_dedup_judge_of(&d, t->ranks) == judge) {
				s->claim[n++] = &t->rank[r].claim[i];
				memcpy(p, &d, sizeof(d));
				p += sizeof(d);
			}
		}
		for (size_t k = first; k < n; k++, p += sizeof(tag)) {
			tag = vv_dedup_judge_tag(s->claim[k]->len, (uint64_t)(s->claim[k] - t->rank[r].claim));
			memcpy(p, &tag, sizeof(tag));
		}
		s->len[r] = (n - first) * VV_DEDUP_JUDGE_CLAIM;
	}
	s->verdict = room(n, sizeof(*s->verdict));
	CHECK_EQ(vv_judge_round_open(&s->c, &t->judge[judge], t->ranks, s->claims, s->len), 0);
	CHECK_EQ(s->c.n, n);
}

static void ask(struct court *t, struct session *s)
{
	uint64_t *n_to = room(t->ranks, sizeof(*n_to));
	struct vv_dedup_judge_place *answer;
	size_t k = 0;

	CHECK_EQ(vv_judge_round_queries(&s->c, n_to), 0);
	answer = room(s->c.n_queries, sizeof(*answer));
	for (uint32_t r = 0; r < t->ranks; r++)
		for (uint64_t i = 0; i < n_to[r]; i++, k++)
			answer[k] = t->place(t->arg, r, (uint32_t)s->c.query[k].w[1]);
	CHECK_EQ(k, s->c.n_queries);
	t->queries += k;
	CHECK_EQ(vv_judge_round_answer(&s->c, answer, k * sizeof(*answer)), 0);
	free(answer);
	free(n_to);
}

static void decide(struct court *t, struct session *s)
{
	CHECK_EQ(vv_judge_round_decide(&s->c, t->host, t->copies, s->verdict), 0);
	for (uint32_t r = 0; r < t->ranks; r++) {
		uint64_t load = 0;

		CHECK_EQ(vv_dedup_judge_check(&s->verdict[s->c.first[r]], s->c.first[r + 1] - s->c.first[r], r, t->ranks), 0);
		for (size_t k = s->c.first[r]; k < s->c.first[r + 1]; k++) {
			enum vv_dedup_judge_kind kind = vv_dedup_judge_kind(s->verdict[k]);

			s->claim[k]->verdict = s->verdict[k];
			if (kind == VV_DEDUP_JUDGE_ALONE || kind == VV_DEDUP_JUDGE_LEND) {
				s->claim[k]->pos = t->rank[r].stored + 1; /* odd places, to be told from others */
				t->rank[r].stored += s->claim[k]->len;
				load += s->claim[k]->len;
			}
		}
		CHECK(s->c.load[r] <= load); /* less if a rank claims something twice */
	}
}

static void lend(struct court *t, struct session *s)
{
	uint64_t *lent = room(s->c.n, sizeof(*lent)), *len = room(t->ranks, sizeof(*len));
	size_t n = 0;

	for (uint32_t r = 0; r < t->ranks; r++) {
		size_t first = n;

		for (size_t k = s->c.first[r]; k < s->c.first[r + 1]; k++)
			if (vv_dedup_judge_kind(s->verdict[k]) == VV_DEDUP_JUDGE_LEND)
				lent[n++] = s->claim[k]->pos;
		len[r] = (n - first) * sizeof(*lent);
		CHECK_EQ(n - first, vv_dedup_judge_lends(&s->verdict[s->c.first[r]], s->c.first[r + 1] - s->c.first[r]));
	}
	CHECK_EQ(vv_judge_round_lent(&s->c, lent, len), 0);
	free(lent);
	free(len);
}

static void tell(struct court *t, struct session *s)
{
	size_t n = vv_dedup_judge_words(s->verdict, s->c.n, t->copies), at = 0;
	uint64_t *word = room(n, sizeof(*word));

	word[n] = 0x600d;
	vv_judge_round_where(&s->c, word);
	CHECK_EQ(word[n], 0x600d);
	for (size_t k = 0; k < s->c.n; k++) {
		struct court_claim *claim = s->claim[k];

		CHECK_EQ(vv_dedup_judge_where_next(word, &at, s->verdict[k], t->ranks, t->copies, &claim->where), 0);
		if (claim->where.copy)
			memcpy(claim->copy, claim->where.copy, (t->copies - 1) * sizeof(*word));
		claim->where.copy = claim->copy;
	}
	CHECK_EQ(at, n);
	free(word);
}

void court_epoch(struct court *t, bool learn)
{
	t->queries = 0;
	for (uint32_t r = 0; r < t->ranks; r++)
		t->rank[r].stored = 0;
	for (uint32_t j = 0; j < t->ranks; j++) {
		struct session s;

		open_session(t, j, &s);
		if (t->place)
			ask(t, &s);
		decide(t, &s);
		lend(t, &s);
		tell(t, &s);
		if (learn)
			vv_judge_round_learn(&s.c);
		vv_judge_round_close(&s.c);
		free(s.claims);
		free(s.claim);
		free(s.len);
		free(s.verdict);
	}
}

double court_imbalance(const struct court *t)
{
	double sum = 0, most = 0;

	for (uint32_t r = 0; r < t->ranks; r++) {
		sum += (double)t->rank[r].stored;
		most = (double)t->rank[r].stored > most ? (double)t->rank[r].stored : most;
	}
	return sum > 0 ? most / (sum / t->ranks) : 1;
}
