// The plan of parity: each data block is in one stripe, the blocks of a stripe lie in different domains, and parity costs what it should.
#include "core/ranks/parity_plan.h"
#include "vv_test.h"
#include "support/status.h"
#include "base/err.h"

enum { MOST = 64 };

static struct vv_parity_layer layer[MOST];

static struct vv_parity_head head(unsigned k, unsigned m, size_t n)
{
	for (size_t i = 0; i < n; i++)
		layer[i].rank = (uint32_t)i;
	return (struct vv_parity_head){ .k = (uint8_t)k, .m = (uint8_t)m, .n_ranks = (uint32_t)n, .n_layers = n, .layer = layer };
}

static void check_stripe(const struct vv_parity_plan *p, const struct vv_parity_block *s, uint64_t *taken, uint64_t *parity)
{
	unsigned width = p->code.k + p->code.m, n = vv_parity_plan_data(p, s);
	uint32_t longest = 0;

	CHECK(n >= 1);
	for (unsigned i = 0; i < width; i++) {
		const struct vv_parity_block *b = &s[i];

		if (i >= n && i < p->code.k) {
			CHECK_EQ(b->len, 0);
			continue;
		}
		CHECK(b->member < p->n_members && b->len >= 1);
		for (unsigned j = 0; j < i; j++)
			CHECK((j >= n && j < p->code.k) || layer[s[j].member].domain != layer[b->member].domain);
		if (i < n) {
			CHECK_EQ(b->number, taken[b->member]);
			CHECK_EQ(b->at, taken[b->member] * p->block_len);
			taken[b->member]++;
			CHECK(b->at + b->len == layer[b->member].len || b->len == p->block_len);
			longest = b->len > longest ? b->len : longest;
		} else {
			CHECK_EQ(b->len, longest);
			CHECK_EQ(b->at, parity[b->member]);
			parity[b->member] += b->len;
		}
	}
}

static uint64_t check_plan(const struct vv_parity_head *h)
{
	struct vv_parity_plan p;
	uint64_t taken[MOST] = { 0 }, parity[MOST] = { 0 }, sum = 0;

	CHECK_EQ(vv_parity_plan_make(&p, h), 0);
	for (size_t s = 0; s < p.n_stripes; s++)
		check_stripe(&p, vv_parity_plan_stripe(&p, s), taken, parity);
	for (size_t i = 0; i < h->n_layers; i++) {
		CHECK_EQ(taken[i], vv_parity_plan_blocks(layer[i].len, p.block_len));
		CHECK_EQ(p.parity_len[i], parity[i]);
		sum += parity[i];
	}
	vv_parity_plan_fini(&p);
	return sum;
}

/* Domains of several ranks, lengths of all sizes. */
static void check_random(void)
{
	for (int trial = 0; trial < 400; trial++) {
		unsigned m = 1 + (unsigned)rand() % 3, k = 1 + (unsigned)rand() % 6, domains = k + m + (unsigned)rand() % 5;
		size_t n = domains + (size_t)rand() % 20;
		struct vv_parity_head h = head(k, m, n);

		for (size_t i = 0; i < n; i++) {
			layer[i].domain = (uint32_t)(i < domains ? i : (size_t)rand() % domains); /* all domains begin in the first layers */
			layer[i].len = 1 + (uint64_t)rand() % (rand() % 4 ? 3000000 : 9000);
		}
		check_plan(&h);
	}
}

/* Layers of about the same length: M/K of them, and one hundredth. */
static void check_cost(void)
{
	static const unsigned code[][2] = { { 1, 1 }, { 7, 1 }, { 6, 2 }, { 3, 1 }, { 4, 4 } };

	for (size_t c = 0; c < sizeof(code) / sizeof(code[0]); c++)
		for (unsigned domains = code[c][0] + code[c][1]; domains <= 2 * (code[c][0] + code[c][1]); domains++)
			for (uint64_t base = 400000; base < 400000000; base *= 10) {
				struct vv_parity_head h = head(code[c][0], code[c][1], domains);
				uint64_t sum = 0;

				for (size_t i = 0; i < domains; i++) {
					layer[i].domain = (uint32_t)i;
					layer[i].len = base + (uint64_t)rand() % (base / 200);
					sum += layer[i].len;
				}
				CHECK((double)check_plan(&h) <= (double)sum * code[c][1] / code[c][0] * 1.015);
			}
}

static void check_refused(void)
{
	struct vv_parity_head h = head(3, 1, 4);
	struct vv_parity_plan p;

	for (size_t i = 0; i < 4; i++)
		layer[i] = (struct vv_parity_layer){ .len = 5000, .domain = (uint32_t)(i % 3) };
	CHECK_EQ(vv_parity_plan_make(&p, &h), VV_EINVAL);
	for (size_t i = 0; i < 4; i++)
		layer[i] = (struct vv_parity_layer){ .len = 1ull << 41, .domain = (uint32_t)i };
	CHECK_EQ(vv_parity_plan_make(&p, &h), VV_EINVAL);
}

/* One layer of 4 TiB beside 63 of a byte, as a hostile object may say: the plan takes no more memory than its limit. For one object it has
 * the stripes with that one's parity, and no more of them than fit into the object. */
static void check_long_layer(void)
{
	struct vv_parity_head h = head(48, 16, MOST);
	struct vv_parity_plan p;
	long base = status_kib("VmHWM");

	must_begin("a long layer");
	for (size_t i = 0; i < MOST; i++)
		layer[i] = (struct vv_parity_layer){ .len = i ? 1 : (1ull << 42) - (1ull << 30), .domain = (uint32_t)i };
	CHECK_EQ(vv_parity_plan_make(&p, &h), VV_EINVAL);
	h.own = 5;
	CHECK_EQ(vv_parity_plan_make_own(&p, &h, 5000), VV_EINVAL);
	CHECK(status_kib("VmHWM") - base < 600 << 10);
	for (size_t i = 0; i < MOST; i++)
		layer[i].len = 100000 + 5000 * i;
	for (h.own = 0; h.own < MOST; h.own++) {
		size_t n = 0;

		CHECK_EQ(vv_parity_plan_make(&p, &h), 0);
		n = (size_t)p.n_parity[h.own];
		vv_parity_plan_fini(&p);
		CHECK_EQ(vv_parity_plan_make_own(&p, &h, 1 << 30), 0);
		CHECK_EQ(p.n_stripes, n);
		CHECK_EQ(p.n_parity[h.own], n);
		vv_parity_plan_fini(&p);
	}
}

int main(void)
{
	CHECK_EQ(vv_parity_plan_sets(8, 8), 1);
	CHECK_EQ(vv_parity_plan_sets(15, 8), 1);
	CHECK_EQ(vv_parity_plan_sets(17, 8), 2);
	check_random();
	check_cost();
	check_refused();
	check_long_layer();
	return 0;
}
