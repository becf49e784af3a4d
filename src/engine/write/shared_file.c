#include "engine/write/shared_file.h"
#include "base/err.h"
#include "base/mem.h"
#include "engine/write/rank_dedup.h"
#include "engine/ranks/group.h"
#include <string.h>

/* Limit of a layer's bytes beside its blocks; the unused part is a hole. */
enum { LEAST = 1 << 20, PER_REGION = 2048, PER_CHUNK = 160 };

static bool together(const struct vv_group *g, uint32_t a, uint32_t b)
{
	if (g->storage_node[a] != g->storage_node[b])
		return false;
	return g->aggregate ? a / g->aggregate == b / g->aggregate : g->host[a] == g->host[b];
}

int vv_shared_file_plan(struct vv_group *g, struct vv_store *store)
{
	if (g->aggregate == 1)
		return 0;
	if (!store->ops->bundle.make)
		return vv_err_set(VV_ENOTSUP, "aggregate: store '%s' has no files that several ranks can write; leave the option out",
				  store->url);
	g->bundle.first = g->bundle.last = g->rank;
	while (g->bundle.first && together(g, g->bundle.first - 1, g->rank))
		g->bundle.first--;
	while (g->bundle.last + 1 < g->size && together(g, g->bundle.last + 1, g->rank))
		g->bundle.last++;
	g->bundle.room = vv_mem_new(g->size, sizeof(*g->bundle.room));
	g->bundle.len = vv_mem_new(g->size, sizeof(*g->bundle.len));
	return g->bundle.room && g->bundle.len ? 0 : VV_ENOMEM;
}

static uint64_t room_for(const struct vv_layer_writer *p)
{
	uint64_t chunks = 0, bytes = 0;

	for (size_t i = 0; i < p->n_regions; i++)
		chunks += p->region[i]->shape.len / p->region[i]->shape.chunk + 1;
	if (p->claims)
		for (size_t k = 0; k < p->claims->n; k++)
			bytes += p->claims->state[k] == VV_CLAIM_REMOTE ? 0 : vv_owner_index_tag_len(p->claims->tag[k]);
	else
		bytes = p->st.bytes_dirty;
	bytes += LEAST + (uint64_t)p->n_regions * PER_REGION + chunks * PER_CHUNK;
	return (bytes + VV_BUNDLE_PAGE - 1) / VV_BUNDLE_PAGE * VV_BUNDLE_PAGE;
}

static bool leads(const struct vv_group *g)
{
	return g->bundle.first == g->rank;
}

static void name(char out[VV_NAME_MAX], const struct vv_context *ctx, uint64_t epoch)
{
	const struct vv_group *g = ctx->group;

	vv_name_bundle(out, ctx->lineage.name, epoch, g->bundle.first, g->bundle.last);
}

/* Sends the leader's token to the ranks that write with it. */
static int send_token(struct vv_group *g, struct vv_comm *comm)
{
	size_t n = g->bundle.last - g->bundle.first + 1;
	uint64_t *to = vv_mem_new(g->size, sizeof(*to)), *from = vv_mem_new(g->size, sizeof(*from));
	char *out = vv_mem_new(n, VV_STORE_TOKEN), *in = vv_mem_new(1, VV_STORE_TOKEN);
	int rc = vv_group_agree(g, comm, to && from && out && in ? 0 : VV_ENOMEM);

	if (rc == 0) {
		for (size_t i = 0; leads(g) && i < n; i++) {
			memcpy(out + i * VV_STORE_TOKEN, g->bundle.token, VV_STORE_TOKEN);
			to[g->rank + i] = VV_STORE_TOKEN;
		}
		from[g->bundle.first] = VV_STORE_TOKEN;
		rc = vv_comm_alltoallv(comm, out, to, in, from);
		if (rc == 0)
			memcpy(g->bundle.token, in, VV_STORE_TOKEN);
		g->bundle.token[VV_STORE_TOKEN - 1] = '\0';
	}
	vv_comm_free(comm, to);
	vv_comm_free(comm, from);
	vv_comm_free(comm, out);
	vv_comm_free(comm, in);
	return rc;
}

static uint64_t offset(const struct vv_group *g, uint32_t rank)
{
	uint64_t off = 0;

	for (uint32_t r = g->bundle.first; r < rank; r++)
		off += g->bundle.room[r];
	return off;
}

static int check_rooms(const struct vv_group *g)
{
	for (uint32_t r = g->bundle.first; r <= g->bundle.last; r++)
		if (g->bundle.room[r] % VV_BUNDLE_PAGE || g->bundle.room[r] > 2 * VV_MAX_PAYLOAD)
			return vv_err_set(VV_EPEER, "rank %u wants %llu bytes of a file, which cannot be", r,
					  (unsigned long long)g->bundle.room[r]);
	return 0;
}

/* A leader that learned first of a rank that gave up has removed its file: then that is the error
 * to report. */
static int join(struct vv_layer_writer *p, struct vv_comm *comm, const char *object)
{
	struct vv_group *g = p->v->ctx.group;
	int rc = check_rooms(g);

	if (rc == 0)
		rc = vv_store_bundle_join(p->v->ctx.store, object, g->bundle.token, offset(g, g->rank), g->bundle.room[g->rank], &p->put);
	rc = vv_group_agree(g, comm, rc);
	return rc == VV_ENOENT && comm->broken ? vv_group_agree(g, comm, 0) : rc;
}

int vv_shared_file_begin(struct vv_layer_writer *p, struct vv_comm *comm)
{
	struct varve *v = p->v;
	struct vv_group *g = v->ctx.group;
	uint64_t room = room_for(p);
	char object[VV_NAME_MAX];
	int rc = 0;

	name(object, &v->ctx, p->epoch);
	if (leads(g))
		rc = vv_store_bundle_make(v->ctx.store, object, g->bundle.token);
	g->bundle.open = leads(g) && rc == 0;
	g->bundle.epoch = p->epoch;
	rc = vv_group_agree(g, comm, rc);
	if (rc == 0)
		rc = vv_comm_allgather(comm, &room, g->bundle.room, sizeof(room));
	if (rc == 0)
		rc = send_token(g, comm);
	return rc ? rc : join(p, comm, object);
}

int vv_shared_file_seal(struct vv_context *ctx)
{
	struct vv_group *g = ctx->group;
	size_t n = g->bundle.last - g->bundle.first + 1;
	char (*names)[VV_NAME_MAX] = NULL, object[VV_NAME_MAX];
	struct vv_member *m;
	int rc;

	if (!g->bundle.open)
		return 0;
	m = vv_mem_new(n, sizeof(*m));
	names = vv_mem_new(n, sizeof(*names));
	rc = m && names ? 0 : VV_ENOMEM;
	for (size_t i = 0; rc == 0 && i < n; i++) {
		uint32_t rank = g->bundle.first + (uint32_t)i;

		vv_name_layer(names[i], ctx->lineage.name, g->bundle.epoch, rank);
		m[i].name = strrchr(names[i], '/') + 1;
		m[i].off = offset(g, rank);
		m[i].len = g->bundle.len[rank];
	}
	name(object, ctx, g->bundle.epoch);
	if (rc == 0)
		rc = vv_store_bundle_seal(ctx->store, object, g->bundle.token, m, n);
	else
		vv_store_bundle_drop(ctx->store, object, g->bundle.token);
	g->bundle.open = false;
	vv_mem_free(m);
	vv_mem_free(names);
	return rc;
}

void vv_shared_file_drop(struct vv_context *ctx)
{
	struct vv_group *g = ctx->group;
	char object[VV_NAME_MAX];

	if (!g || !g->bundle.open)
		return;
	name(object, ctx, g->bundle.epoch);
	vv_store_bundle_drop(ctx->store, object, g->bundle.token);
	g->bundle.open = false;
}
