#include "support/owner_trial.h"
#include "support/gen.h"
#include "vv_test.h"

struct session { /* before one home rank */
	struct vv_owner_batch c;
	uint8_t *claims;
	uint64_t *len; /* per rank */
	struct owner_trial_claim **claim; /* of each claim before this home rank */
	uint32_t *decision;
};

struct vv_digest owner_trial_digest(uint32_t content)
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

void owner_trial_open(struct owner_trial *t, uint32_t ranks, size_t cap, size_t memory)
{
	*t = (struct owner_trial){ .ranks = ranks, .copies = 1 };
	t->judge = room(ranks, sizeof(*t->judge));
	t->rank = room(ranks, sizeof(*t->rank));
	for (uint32_t r = 0; r < ranks; r++) {
		vv_owner_index_init(&t->judge[r], memory);
		t->rank[r].claim = room(cap, sizeof(*t->rank[r].claim));
	}
}

void owner_trial_close(struct owner_trial *t)
{
	for (uint32_t r = 0; r < t->ranks; r++) {
		vv_owner_index_fini(&t->judge[r]);
		free(t->rank[r].claim);
	}
	free(t->judge);
	free(t->rank);
}

static void open_session(struct owner_trial *t, uint32_t judge, struct session *s)
{
	size_t sum = 0, n = 0;
	uint8_t *p;

	for (uint32_t r = 0; r < t->ranks; r++)
		sum += t->rank[r].n;
	s->claims = p = room(sum, VV_OWNER_INDEX_CLAIM);
	s->claim = room(sum, sizeof(*s->claim));
	s->len = room(t->ranks, sizeof(*s->len));
	for (uint32_t r = 0; r < t->ranks; r++) {
		size_t first = n;
		uint32_t tag;

		for (size_t i = 0; i < t->rank[r].n; i++) {
			struct vv_digest d = owner_trial_digest(t->rank[r].claim[i].content);

			if (vv_owner_index_home(&d, t->ranks) == judge) {
				s->claim[n++] = &t->rank[r].claim[i];
				memcpy(p, &d, sizeof(d));
				p += sizeof(d);
			}
		}
		for (size_t k = first; k < n; k++, p += sizeof(tag)) {
			tag = vv_owner_index_tag(s->claim[k]->len, (uint64_t)(s->claim[k] - t->rank[r].claim));
			memcpy(p, &tag, sizeof(tag));
		}
		s->len[r] = (n - first) * VV_OWNER_INDEX_CLAIM;
	}
	s->decision = room(n, sizeof(*s->decision));
	CHECK_EQ(vv_owner_batch_open(&s->c, &t->judge[judge], t->ranks, s->claims, s->len), 0);
	CHECK_EQ(s->c.n, n);
}

static void ask(struct owner_trial *t, struct session *s)
{
	uint64_t *n_to = room(t->ranks, sizeof(*n_to));
	struct vv_owner_index_answer *answer;
	size_t k = 0;

	CHECK_EQ(vv_owner_batch_queries(&s->c, n_to), 0);
	answer = room(s->c.n_queries, sizeof(*answer));
	for (uint32_t r = 0; r < t->ranks; r++)
		for (uint64_t i = 0; i < n_to[r]; i++, k++)
			answer[k] = t->place(t->arg, r, (uint32_t)s->c.query[k].w[1]);
	CHECK_EQ(k, s->c.n_queries);
	t->queries += k;
	CHECK_EQ(vv_owner_batch_answer(&s->c, answer, k * sizeof(*answer)), 0);
	free(answer);
	free(n_to);
}

static void decide(struct owner_trial *t, struct session *s)
{
	CHECK_EQ(vv_owner_batch_decide(&s->c, t->host, t->copies, s->decision), 0);
	for (uint32_t r = 0; r < t->ranks; r++) {
		uint64_t load = 0;

		CHECK_EQ(vv_owner_index_check(&s->decision[s->c.first[r]], s->c.first[r + 1] - s->c.first[r], r, t->ranks), 0);
		for (size_t k = s->c.first[r]; k < s->c.first[r + 1]; k++) {
			enum vv_owner_index_kind kind = vv_owner_index_kind(s->decision[k]);

			s->claim[k]->decision = s->decision[k];
			if (kind == VV_OWNER_INDEX_STORE || kind == VV_OWNER_INDEX_STORE_SHARED) {
				s->claim[k]->pos = t->rank[r].stored + 1; /* odd places, to be told from others */
				t->rank[r].stored += s->claim[k]->len;
				load += s->claim[k]->len;
			}
		}
		CHECK(s->c.load[r] <= load); /* less if a rank claims something twice */
	}
}

static void lend(struct owner_trial *t, struct session *s)
{
	uint64_t *lent = room(s->c.n, sizeof(*lent)), *len = room(t->ranks, sizeof(*len));
	size_t n = 0;

	for (uint32_t r = 0; r < t->ranks; r++) {
		size_t first = n;

		for (size_t k = s->c.first[r]; k < s->c.first[r + 1]; k++)
			if (vv_owner_index_kind(s->decision[k]) == VV_OWNER_INDEX_STORE_SHARED)
				lent[n++] = s->claim[k]->pos;
		len[r] = (n - first) * sizeof(*lent);
		CHECK_EQ(n - first, vv_owner_index_count_shared(&s->decision[s->c.first[r]], s->c.first[r + 1] - s->c.first[r]));
	}
	CHECK_EQ(vv_owner_batch_set_positions(&s->c, lent, len), 0);
	free(lent);
	free(len);
}

static void tell(struct owner_trial *t, struct session *s)
{
	size_t n = vv_owner_index_count_words(s->decision, s->c.n, t->copies), at = 0;
	uint64_t *word = room(n, sizeof(*word));

	word[n] = 0x600d;
	vv_owner_batch_get_locations(&s->c, word);
	CHECK_EQ(word[n], 0x600d);
	for (size_t k = 0; k < s->c.n; k++) {
		struct owner_trial_claim *claim = s->claim[k];

		CHECK_EQ(vv_owner_index_next_location(word, &at, s->decision[k], t->ranks, t->copies, &claim->where), 0);
		if (claim->where.copy)
			memcpy(claim->copy, claim->where.copy, (t->copies - 1) * sizeof(*word));
		claim->where.copy = claim->copy;
	}
	CHECK_EQ(at, n);
	free(word);
}

void owner_trial_epoch(struct owner_trial *t, bool learn)
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
			vv_owner_batch_commit(&s.c);
		vv_owner_batch_close(&s.c);
		free(s.claims);
		free(s.claim);
		free(s.len);
		free(s.decision);
	}
}

double owner_trial_imbalance(const struct owner_trial *t)
{
	double sum = 0, most = 0;

	for (uint32_t r = 0; r < t->ranks; r++) {
		sum += (double)t->rank[r].stored;
		most = (double)t->rank[r].stored > most ? (double)t->rank[r].stored : most;
	}
	return sum > 0 ? most / (sum / t->ranks) : 1;
}
