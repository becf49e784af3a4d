/* Eras: what is told of epochs, one by one, is what is found again, and what cannot all be true is refused, as a table of single epochs says; the ERAS section comes back as it was put,
 * and what is none is refused. */
#include "base/err.h"
#include "core/format/era_table.h"
#include "support/gen.h"
#include "vv_test.h"
#include <stdlib.h>
#include <string.h>

enum { EPOCHS = 60, TELLINGS = 40, ROUNDS = 2000 };

/* Of each epoch: the token of who laid it down, and where that era began. */
struct model {
	uint64_t token[EPOCHS + 1], first[EPOCHS + 1];
};

static bool fits(const struct model *m, const struct vv_era *e)
{
	for (uint64_t i = e->first; i <= e->last; i++)
		if (m->token[i] && (m->token[i] != e->token || m->first[i] != e->first))
			return false;
	return true;
}

static void told_one_by_one(uint64_t *state)
{
	struct model m = { 0 };
	struct vv_era_table e = { 0 };

	for (int i = 0; i < TELLINGS; i++) {
		struct vv_era era = { .first = 1 + gen_below(state, EPOCHS), .token = 1 + gen_below(state, 3) };
		uint64_t other = 0;
		bool right;

		era.last = era.first + gen_below(state, 1 + gen_below(state, EPOCHS + 1 - era.first));
		right = fits(&m, &era);
		CHECK_EQ(vv_era_table_add(&e, &era, &other), right ? 0 : VV_EMISMATCH);
		if (!right) {
			CHECK(other >= era.first && other <= era.last && m.token[other]);
			continue;
		}
		for (uint64_t k = era.first; k <= era.last; k++) {
			m.token[k] = era.token;
			m.first[k] = era.first;
		}
	}
	for (uint64_t k = 1; k <= EPOCHS; k++) {
		const struct vv_era *found = vv_era_table_find(&e, k);

		CHECK_EQ(found ? found->token : 0, m.token[k]);
		CHECK(!found || (found->first <= k && k <= found->last));
	}
	CHECK(!vv_era_table_find(&e, 0) && !vv_era_table_find(&e, EPOCHS + 1));
	for (size_t i = 1; i < e.n; i++)
		CHECK(e.v[i - 1].last < e.v[i].first);
	vv_era_table_fini(&e);
}

static void there_and_back(uint64_t *state)
{
	struct vv_era_table e = { 0 }, got = { 0 };
	struct vv_buf b = { 0 };
	uint64_t at = 1, other;

	for (uint64_t n = 1 + gen_below(state, 20); n > 0; n--) {
		struct vv_era era = { at + gen_below(state, 3), 0, gen_next(state) };

		era.last = era.first + gen_below(state, 200);
		at = era.last + 1;
		CHECK_EQ(vv_era_table_add(&e, &era, &other), 0);
	}
	vv_era_table_put(&e, &b);
	CHECK_EQ(vv_era_table_get(&got, b.p, b.n, at - 1), 0);
	CHECK(got.n == e.n && memcmp(got.v, e.v, e.n * sizeof(*e.v)) == 0);
	vv_era_table_fini(&got);
	for (size_t n = 0; n < b.n; n++) { /* cut short */
		CHECK_EQ(vv_era_table_get(&got, b.p, n, at - 1), VV_EDAMAGED);
		vv_era_table_fini(&got);
	}
	vv_buf_add(&b, "", 1);
	CHECK_EQ(vv_era_table_get(&got, b.p, b.n, at - 1), VV_EDAMAGED);
	CHECK(strstr(vv_err_last(), "left over"));
	vv_era_table_fini(&got);
	for (uint64_t epoch = at - 2; epoch <= at; epoch += 2) { /* another layer's */
		CHECK_EQ(vv_era_table_get(&got, b.p, b.n - 1, epoch), VV_EDAMAGED);
		vv_era_table_fini(&got);
	}
	vv_era_table_fini(&e);
	vv_buf_fini(&b);
}

/* Whatever is taken is in order and ends with the layer's epoch. */
static void rubbish(uint64_t *state)
{
	uint8_t p[64];
	size_t n = gen_below(state, sizeof(p));
	uint64_t epoch = 1 + gen_below(state, 300);
	struct vv_era_table e = { 0 };

	gen_bytes(state, p, n);
	for (size_t i = 0; i < n; i++)
		if (gen_below(state, 3))
			p[i] &= 7;
	if (vv_era_table_get(&e, p, n, epoch) == 0) {
		CHECK(e.n && e.v[0].first >= 1 && e.v[e.n - 1].last == epoch);
		for (size_t i = 0; i < e.n; i++)
			CHECK(e.v[i].first <= e.v[i].last && (i == 0 || e.v[i - 1].last < e.v[i].first));
	}
	vv_era_table_fini(&e);
}

int main(void)
{
	static const uint8_t huge[] = { 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct vv_era_table e = { 0 };
	uint64_t state = 5;

	for (int i = 0; i < ROUNDS; i++) {
		told_one_by_one(&state);
		there_and_back(&state);
		rubbish(&state);
	}
	CHECK_EQ(vv_era_table_get(&e, huge, sizeof(huge), 9), VV_EDAMAGED);
	vv_era_table_fini(&e);
	return 0;
}
