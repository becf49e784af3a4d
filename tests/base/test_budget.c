/* Rooms of many threads: together they are never more than was agreed, but one is always to be had. */
#include "base/pool.h"
#include "base/budget.h"
#include "support/gen.h"
#include "vv_test.h"
#include <stdatomic.h>

enum { MOST = 8 << 20, TURNS = 4000 };

static struct vv_budget rooms;
static atomic_size_t held, out, highest;

static void turn(void *arg, size_t i)
{
	uint64_t state = i + 1;
	size_t size = gen_below(&state, i % 50 ? 2 << 20 : MOST), beside = gen_below(&state, i % 3 ? 1 : 1 << 20), sum;
	struct vv_budget_buffer *r = vv_budget_take(&rooms, size, beside);

	(void)arg;
	CHECK(r && r->size >= size && r->counted == beside);
	sum = atomic_fetch_add(&held, size + beside) + size + beside;
	if (atomic_fetch_add(&out, 1) > 0)
		CHECK(sum <= MOST);
	if (sum > atomic_load(&highest))
		atomic_store(&highest, sum);
	if (size)
		r->bytes[0] = r->bytes[size - 1] = (uint8_t)i;
	for (int k = 0; k < 100 && size; k++)
		CHECK(*(volatile uint8_t *)&r->bytes[size - 1] == (uint8_t)i);
	atomic_fetch_sub(&out, 1);
	atomic_fetch_sub(&held, size + beside);
	vv_budget_give(&rooms, r);
}

static void test_many(void)
{
	struct vv_pool *pool = NULL;

	CHECK_EQ(vv_pool_new(7, &pool), 0);
	vv_budget_init(&rooms, MOST);
	vv_pool_each(pool, TURNS, turn, NULL);
	CHECK(rooms.held <= MOST && rooms.out == 0);
	CHECK(atomic_load(&highest) > MOST / 4);
	vv_budget_fini(&rooms);
	vv_pool_free(pool);
}

/* What was given back is used again; what is kept makes way for what is needed; more than there is goes to who is alone. */
static void test_kept(void)
{
	struct vv_budget_buffer *r;
	uint8_t *p;

	vv_budget_init(&rooms, MOST);
	r = vv_budget_take(&rooms, 1 << 20, 0);
	CHECK(r);
	p = r->bytes;
	vv_budget_give(&rooms, r);
	r = vv_budget_take(&rooms, (1 << 20) - 100, 0);
	CHECK(r && r->bytes == p);
	vv_budget_give(&rooms, r);
	r = vv_budget_take(&rooms, 2 * (size_t)MOST, MOST);
	CHECK(r && r->size >= 2 * (size_t)MOST && !rooms.idle);
	vv_budget_give(&rooms, r);
	r = vv_budget_take(&rooms, 10, 0);
	CHECK(r && rooms.held <= MOST);
	vv_budget_give(&rooms, r);
	vv_budget_fini(&rooms);
}

int main(void)
{
	test_kept();
	test_many();
	return 0;
}
