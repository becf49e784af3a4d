#include "engine/ranks/hosts.h"
#include "base/err.h"
#include "base/mem.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

/* Two ranks share a storage node if one sees the files of the other. Most often all see those of
 * rank 0. */
enum { MARK = 16 };

static void mark_name(char out[VV_NAME_MAX], const char *lineage, uint32_t rank)
{
	snprintf(out, VV_NAME_MAX, "%s/meet.r%" PRIu32, lineage, rank);
}

static int put_mark(struct vv_store *store, const char *lineage, uint32_t rank, const uint8_t mark[MARK])
{
	char object[VV_NAME_MAX];

	mark_name(object, lineage, rank);
	return vv_store_put(store, object, mark, MARK);
}

/* Returns 1: the rank's mark is visible here; 0: it is not. */
static int see_mark(struct vv_store *store, const char *lineage, uint32_t rank, const uint8_t mark[MARK])
{
	char object[VV_NAME_MAX];
	uint8_t *p = NULL;
	size_t n = 0;
	int rc;

	mark_name(object, lineage, rank);
	rc = vv_store_get(store, object, MARK, &p, &n);
	if (rc == 0)
		rc = n == MARK && memcmp(p, mark, MARK) == 0;
	else if (rc == VV_ENOENT)
		rc = 0;
	vv_mem_free(p);
	return rc;
}

static void remove_mark(struct vv_store *store, const char *lineage, uint32_t rank)
{
	char object[VV_NAME_MAX];

	mark_name(object, lineage, rank);
	vv_store_remove(store, object);
}

/* Finds the lowest rank whose mark is visible here. It identifies this storage node. */
static int lowest_here(struct vv_group *g, struct vv_store *store, const char *lineage, const uint8_t mark[MARK],
		       uint32_t *lowest)
{
	struct vv_names names = { 0 };
	int rc = vv_store_list(store, lineage, &names);

	*lowest = g->rank;
	for (size_t i = 0; rc == 0 && i < names.n; i++) {
		unsigned rank;
		char end;
		int seen;

		if (sscanf(names.v[i].name, "meet.r%7u%c", &rank, &end) != 1 || rank >= *lowest)
			continue;
		seen = see_mark(store, lineage, rank, mark);
		if (seen == 1)
			*lowest = rank;
		rc = seen < 0 ? seen : 0;
	}
	vv_names_fini(&names);
	return rc;
}

static int find_place(struct vv_group *g, struct vv_store *store, const char *lineage, const uint8_t mark[MARK],
		      uint32_t *mine)
{
	uint64_t seen = 0;
	int rc = g->rank == 0 ? put_mark(store, lineage, 0, mark) : 0;

	rc = vv_group_agree(g, g->comm, rc);
	if (rc)
		return rc;
	rc = see_mark(store, lineage, 0, mark);
	seen = rc == 1;
	rc = vv_group_sum(g, g->comm, rc < 0 ? rc : 0, &seen, 1);
	*mine = 0;
	if (rc || seen == g->size)
		return rc;
	rc = vv_group_agree(g, g->comm, g->rank ? put_mark(store, lineage, g->rank, mark) : 0);
	if (rc == 0)
		rc = vv_group_agree(g, g->comm, lowest_here(g, store, lineage, mark, mine));
	return rc;
}

/* A machine is identified by its boot: host names are not always different. */
void vv_hosts_machine(char out[64])
{
	FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	memset(out, 0, 64);
	if (f && fgets(out, 37, f)) {
		fclose(f);
		return;
	}
	if (f)
		fclose(f);
	gethostname(out, 63);
}

static int find_hosts(struct vv_group *g)
{
	char mine[64], *all = vv_mem_new(g->size, sizeof(mine));
	int rc = vv_group_agree(g, g->comm, all ? 0 : VV_ENOMEM);

	vv_hosts_machine(mine);
	if (rc == 0)
		rc = vv_comm_allgather(g->comm, mine, all, sizeof(mine));
	for (uint32_t r = 0; rc == 0 && r < g->size; r++) {
		uint32_t k = r; /* neighbours mostly share a machine */

		if (r && memcmp(all + (size_t)64 * r, all + (size_t)64 * (r - 1), 64) == 0)
			k = g->host[r - 1];
		else
			for (k = 0; k < r && memcmp(all + (size_t)64 * r, all + (size_t)64 * k, 64) != 0; k = k + 1)
				;
		g->host[r] = k;
	}
	vv_comm_free(g->comm, all);
	return rc;
}

/* Ranks with stores of their own count as hosts of their own. */
static void hosts_by_place(struct vv_group *g)
{
	for (uint32_t r = 0; g->has_local_stores && r < g->size; r++)
		g->host[r] = g->storage_node[r];
}

/* The same on all ranks. */
static int make_mark(struct vv_group *g, uint8_t mark[MARK])
{
	int rc = 0;

	memset(mark, 0, MARK);
	if (g->rank == 0 && getrandom(mark, MARK, 0) != MARK)
		rc = vv_err_sys(errno, "no random numbers");
	rc = vv_group_agree(g, g->comm, rc);
	return rc ? rc : vv_comm_bcast(g->comm, mark, MARK, 0);
}

int vv_hosts_share(struct vv_group *g, struct vv_store *store, const char *lineage, bool *shared)
{
	struct vv_err_state error;
	uint8_t mark[MARK];
	uint64_t seen = 0;
	int rc = make_mark(g, mark);

	if (rc == 0)
		rc = vv_group_agree(g, g->comm, g->rank == 0 ? put_mark(store, lineage, 0, mark) : 0);
	if (rc)
		return rc;
	rc = store ? see_mark(store, lineage, 0, mark) : 0;
	seen = rc == 1;
	rc = vv_group_sum(g, g->comm, rc < 0 ? rc : 0, &seen, 1);
	vv_err_save(rc, &error);
	if (g->rank == 0) {
		remove_mark(store, lineage, 0);
		vv_store_remove_dir(store, lineage); /* which is empty before the first copy */
	}
	vv_err_restore(&error);
	*shared = seen == g->size;
	return rc;
}

int vv_hosts_find(struct vv_group *g, struct vv_store *store, const char *lineage)
{
	uint8_t mark[MARK];
	struct vv_err_state error;
	uint32_t mine = 0;
	int rc;

	if (g->size == 1)
		return 0;
	rc = make_mark(g, mark);
	if (rc == 0)
		rc = find_place(g, store, lineage, mark, &mine);
	if (rc == 0)
		rc = vv_comm_allgather(g->comm, &mine, g->storage_node, sizeof(mine));
	if (rc == 0)
		rc = find_hosts(g);
	if (g->comm->broken)
		return rc;
	vv_err_save(rc, &error);
	remove_mark(store, lineage, g->rank);
	vv_err_restore(&error);
	for (uint32_t r = 0; rc == 0 && r < g->size; r++) {
		if (g->storage_node[r] > r || g->storage_node[g->storage_node[r]] != g->storage_node[r])
			return vv_err_set(VV_EIO, "the ranks cannot tell whose store is whose: rank %u sees the files of rank %u, but "
					  "not the other way round", r, g->storage_node[r]);
		g->has_local_stores |= g->storage_node[r] != 0;
	}
	hosts_by_place(g);
	return rc;
}
