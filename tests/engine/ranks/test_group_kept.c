/* The other ranks may still write into memory of an operation that timed out: a group that closes then keeps it. */
#include "base/mem.h"
#include "engine/ranks/group.h"
#include "engine/ranks/parity_ranks.h"
#include "vv_test.h"

enum { RANKS = 1024 };

static int never_gather(void *ctx, const void *mine, void *all, size_t len, void **op)
{
	(void)ctx;
	(void)mine;
	(void)all;
	(void)len;
	*op = NULL;
	return 0;
}

static int not_called(void)
{
	abort();
}

static int bcast(void *ctx, void *p, size_t len, uint32_t root, void **op)
{
	(void)ctx, (void)p, (void)len, (void)root, (void)op;
	return not_called();
}

static int reduce(void *ctx, uint64_t *v, size_t n, enum varve_reduce how, void **op)
{
	(void)ctx, (void)v, (void)n, (void)how, (void)op;
	return not_called();
}

static int alltoallv(void *ctx, const void *to, const uint64_t *to_len, void *from, const uint64_t *from_len, void **op)
{
	(void)ctx, (void)to, (void)to_len, (void)from, (void)from_len, (void)op;
	return not_called();
}

static int sendrecv(void *ctx, const void *out, size_t out_len, uint32_t to, void *in, size_t in_len, uint32_t from, void **op)
{
	(void)ctx, (void)out, (void)out_len, (void)to, (void)in, (void)in_len, (void)from, (void)op;
	return not_called();
}

static int not_yet(void *ctx, void *op)
{
	(void)ctx, (void)op;
	return 0;
}

static struct vv_group *open_group(void)
{
	struct varve_comm plug = { .size = RANKS, .bcast = bcast, .allreduce = reduce, .allgather = never_gather, .alltoall = never_gather,
				   .alltoallv = alltoallv, .sendrecv = sendrecv, .test = not_yet };
	struct vv_group *g = NULL;

	CHECK_EQ(vv_group_open(&plug, 0.01, &g), 0);
	return g;
}

static bool is_kept(const struct vv_comm *c, const void *p)
{
	size_t i = 0;

	while (i < c->n_kept && c->kept[i] != p)
		i++;
	return i < c->n_kept;
}

/* The places of all ranks */
static void test_places(void)
{
	struct vv_group *g = open_group();
	struct vv_comm *c = g->comm; /* broken ones are never freed */
	uint32_t *mine = vv_mem_new(1, sizeof(*mine)), *all = g->storage_node;

	CHECK_EQ(vv_comm_allgather(c, mine, all, sizeof(*mine)), VV_EPEER);
	vv_comm_free(c, mine);
	vv_group_close(g);
	CHECK(is_kept(c, all));
}

/* The sizes of all ranks in a shared file, which the background may learn */
static void test_rooms(bool side)
{
	struct vv_group *g = open_group();
	struct vv_comm *c = side ? g->side : g->comm;
	uint64_t *mine = vv_mem_new(1, sizeof(*mine)), *all = vv_mem_new(RANKS, sizeof(*all));

	g->bundle.room = all;
	CHECK_EQ(vv_comm_allgather(c, mine, all, sizeof(*mine)), VV_EPEER);
	vv_comm_free(c, mine);
	vv_group_close(g);
	CHECK(is_kept(c, all));
}

static void test_domains(void)
{
	struct vv_group *g = open_group();
	struct vv_comm *c = g->comm;
	struct vv_parity_domains d = { .name = vv_mem_new(RANKS, VV_PARITY_DOMAIN) };
	char *mine = vv_mem_new(1, VV_PARITY_DOMAIN);
	const void *all = d.name;

	CHECK_EQ(vv_comm_allgather(c, mine, d.name, VV_PARITY_DOMAIN), VV_EPEER);
	vv_comm_free(c, mine);
	vv_parity_ranks_fini(&d, g);
	vv_group_close(g);
	CHECK(is_kept(c, all));
}

int main(void)
{
	test_places();
	test_rooms(false);
	test_rooms(true);
	test_domains();
	return 0;
}
