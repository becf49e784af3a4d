/* The order of storing with all that goes beyond the paper (marks, eager copies, releases, failures, several waiting threads,
 * address order), beside a model that keeps plain facts and searches linearly. */
#include "core/plan/write_order.h"
#include "support/gen.h"
#include "vv_test.h"

enum { MAX = 24 };

struct model {
	size_t n;
	bool by_address, busy;
	uint32_t clock, counter;
	struct page {
		bool dirty, set, pending, copied, storing, given;
		uint32_t waited, copy; /* when; 0 = not */
		enum vv_access at, past;
		uint32_t index, past_index;
		int taken; /* times taken or released since begin */
	} page[MAX];
};

static enum vv_write_order_state model_state(const struct page *p)
{
	if (p->pending || (p->storing && p->copied))
		return VV_WRITE_ORDER_SCHEDULED;
	return p->storing ? VV_WRITE_ORDER_INPROGRESS : VV_WRITE_ORDER_PROCESSED;
}

/* Where a page stands in the order, in one number. predicted: as if nothing had happened since begin. */
static uint64_t model_rank(const struct model *m, uint32_t i, bool predicted)
{
	const struct page *p = &m->page[i];

	if (!predicted && p->waited && !p->copied)
		return p->waited;
	if (m->by_address)
		return (uint64_t)1 << 40 | i;
	if (!predicted && p->copied)
		return (uint64_t)1 << 40 | p->copy;
	if (p->past == VV_ACCESS_NONE)
		return (uint64_t)9 << 40 | i;
	return (uint64_t)(1 + p->past) << 40 | (uint64_t)p->past_index << 8 | i;
}

static uint32_t model_first(const struct model *m, bool eager)
{
	uint32_t best = VV_WRITE_ORDER_NONE;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct page *p = &m->page[i];

		if (!p->pending || (eager && (p->copied || p->given)))
			continue;
		if (best == VV_WRITE_ORDER_NONE || model_rank(m, i, eager) < model_rank(m, best, eager))
			best = i;
	}
	return best;
}

static void model_record(struct model *m, struct page *p, enum vv_access at)
{
	p->at = p->waited ? VV_ACCESS_WAIT : at;
	p->index = ++m->counter;
	p->dirty = true;
}

static void model_copy(struct model *m, struct page *p)
{
	p->copied = true;
	p->copy = ++m->clock;
}

static enum vv_write_order_do model_write(struct model *m, struct page *p, bool room)
{
	if (p->at != VV_ACCESS_NONE)
		return VV_WRITE_ORDER_GO;
	if (model_state(p) == VV_WRITE_ORDER_PROCESSED) {
		model_record(m, p, m->busy ? VV_ACCESS_AVOIDED : VV_ACCESS_AFTER);
		return VV_WRITE_ORDER_GO;
	}
	if (p->copied) {
		model_record(m, p, VV_ACCESS_COW);
		return VV_WRITE_ORDER_GO;
	}
	if (p->pending && room) {
		model_copy(m, p);
		model_record(m, p, VV_ACCESS_COW);
		return VV_WRITE_ORDER_COPY;
	}
	if (!p->waited)
		p->waited = ++m->clock;
	return VV_WRITE_ORDER_WAIT;
}

static void model_fail(struct model *m)
{
	for (size_t i = 0; i < m->n; i++) {
		struct page *p = &m->page[i];

		p->dirty |= p->set;
		p->pending = p->copied = p->storing = false;
		p->waited = 0;
	}
	m->busy = false;
}

static size_t model_begin(struct model *m)
{
	size_t n = 0;

	if (m->busy)
		model_fail(m);
	for (size_t i = 0; i < m->n; i++) {
		struct page *p = &m->page[i], old = *p;
		bool seen = old.at != VV_ACCESS_NONE;

		CHECK(old.taken <= old.set); /* at most once, and only what was scheduled */
		*p = (struct page){ .set = old.dirty, .pending = old.dirty, .past = seen ? old.at : old.past,
				    .past_index = seen ? old.index : old.past_index };
		n += old.dirty;
	}
	m->counter = 0;
	m->busy = true;
	return n;
}

static bool model_copies_first(const struct model *m)
{
	for (uint32_t i = 0; i < m->n; i++)
		if (m->page[i].pending && m->page[i].copied)
			return !m->by_address;
	return false;
}

static void agree(const struct model *m, struct vv_write_order *o)
{
	uint64_t count[VV_ACCESS_KINDS] = { 0 };
	size_t left = 0;

	for (size_t i = 0; i < m->n; i++) {
		CHECK_EQ(o->state[i], model_state(&m->page[i]));
		CHECK_EQ(o->access[i], m->page[i].at);
		CHECK_EQ(vv_write_order_index(o, (uint32_t)i), m->page[i].index);
		left += m->page[i].pending;
		count[m->page[i].at]++;
	}
	for (int k = VV_ACCESS_WAIT; k < VV_ACCESS_KINDS; k++)
		CHECK_EQ(o->count[k], count[k]);
	CHECK_EQ(o->left, left);
	CHECK_EQ(o->busy, m->busy);
	CHECK_EQ(o->counter, m->counter);
	CHECK_EQ(vv_write_order_copies_first(o), model_copies_first(m));
}

static void take_next(struct model *m, struct vv_write_order *o)
{
	uint32_t want = model_first(m, false);

	CHECK_EQ(vv_write_order_next(o), want);
	if (want == VV_WRITE_ORDER_NONE)
		return;
	m->page[want].pending = false;
	m->page[want].storing = true;
	m->page[want].taken++;
}

static void take_eager(struct model *m, struct vv_write_order *o, bool copy)
{
	uint32_t want = model_first(m, true);

	CHECK_EQ(vv_write_order_eager(o), want);
	if (want == VV_WRITE_ORDER_NONE)
		return;
	m->page[want].given = true;
	if (copy) {
		vv_write_order_copied(o, want);
		model_copy(m, &m->page[want]);
	}
}

/* Stores what is left and ends; some of it is stored by several threads at once, so `done` comes in any order. */
static void drain(struct model *m, struct vv_write_order *o)
{
	while (o->left)
		take_next(m, o);
	take_next(m, o); /* none */
	for (uint32_t i = 0; i < m->n; i++) {
		if (m->page[i].storing)
			vv_write_order_done(o, i);
		m->page[i].storing = false;
		CHECK_EQ(m->page[i].taken, m->page[i].set);
	}
	vv_write_order_end(o);
	m->busy = false;
}

static void end_somehow(struct model *m, struct vv_write_order *o, uint64_t how)
{
	if (how < 4 && m->busy)
		drain(m, o);
	if (how == 4 || how == 5) { /* also after all was stored: the commit may fail, too */
		model_fail(m);
		vv_write_order_fail(o);
		agree(m, o);
		CHECK_EQ(vv_write_order_next(o), VV_WRITE_ORDER_NONE);
		CHECK_EQ(vv_write_order_eager(o), VV_WRITE_ORDER_NONE);
	}
	if (how != 5 && how != 6) /* 7: while it is busy */
		CHECK_EQ(vv_write_order_begin(o), model_begin(m));
}

static void random_step(struct model *m, struct vv_write_order *o, uint64_t *g)
{
	uint32_t i = (uint32_t)gen_below(g, m->n);
	struct page *p = &m->page[i];
	bool coin = gen_below(g, 2);

	switch (gen_below(g, 12)) {
	case 0:
		vv_write_order_mark(o, i);
		p->dirty = true;
		break;
	case 1:
	case 2:
	case 3:
	case 4:
		CHECK_EQ(vv_write_order_write(o, i, coin), model_write(m, p, coin));
		break;
	case 5:
		if (p->waited && (p->copied || model_state(p) == VV_WRITE_ORDER_PROCESSED)) {
			vv_write_order_waited(o, i);
			if (p->at == VV_ACCESS_NONE)
				model_record(m, p, VV_ACCESS_WAIT);
		}
		break;
	case 6:
		take_eager(m, o, coin);
		break;
	case 7: /* any page, also one that has a copy or is stored */
		vv_write_order_copied(o, i);
		if (p->pending && !p->copied)
			model_copy(m, p);
		break;
	case 8:
		if (p->pending && coin) {
			vv_write_order_release(o, i);
			p->pending = false;
			p->taken++;
		}
		break;
	case 9:
		if (p->storing) {
			vv_write_order_done(o, i);
			p->storing = false;
		}
		break;
	default:
		take_next(m, o);
	}
}

static void test_model(void)
{
	for (uint64_t seed = 1; seed <= 4000; seed++) {
		uint64_t g = seed;
		struct model m = { .n = 1 + gen_below(&g, MAX), .by_address = seed % 4 == 0 };
		struct vv_write_order o;
		uint64_t length = 5 + gen_below(&g, 100);

		CHECK_EQ(vv_write_order_init(&o, m.n, m.by_address), 0);
		for (int step = 0; step < 400; step++) {
			if (gen_below(&g, length) == 0)
				end_somehow(&m, &o, gen_below(&g, 8));
			else
				random_step(&m, &o, &g);
			agree(&m, &o);
		}
		vv_write_order_fini(&o);
	}
}

int main(void)
{
	test_model();
	return 0;
}
