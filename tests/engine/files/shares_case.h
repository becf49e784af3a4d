/* What the tests of ranks that pack the same files share: sets of files, packed by ranks that are threads, and a look at what came of it. */
#ifndef VV_TEST_SHARES_CASE_H
#define VV_TEST_SHARES_CASE_H

#include "base/err.h"
#include "core/format/manifest.h"
#include "engine/files/pack.h"
#include "engine/lineage/run_table.h"
#include "engine/read/restore.h"
#include "engine/context.h"
#include "engine/session/session.h"
#include "engine/upkeep/verify.h"
#include "support/damage.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"

enum { FILES = 14, RANKS = 6, OPAQUE = 4, LONGEST = 9 << 20 };

struct content {
	uint8_t *p;
	size_t n;
};

struct set {
	char path[FILES][PLACE_MAX], name[FILES][24];
	struct content file[FILES];
	size_t n;
};

struct job { /* what the ranks do */
	const char *store, *options;
	const struct set *set;
	int code[RANKS];
	char why[RANKS][200];
	struct vv_pack_report report; /* of rank 0 */
	uint64_t dup_ranks[RANKS];
	void (*spoil)(struct varve_comm *comm); /* of rank 0; may be NULL */
	void (*step)(void *arg, uint64_t done, uint64_t total); /* of the last rank; may be NULL */
	struct damage *damage; /* of one message; may be NULL */
};

/* ---- sets ------------------------------------------------------------------------------------------------------------------------ */

/* Contents of many MiB that nobody knows. */
static inline void fill_opaque(struct content pool[OPAQUE], uint64_t *state)
{
	for (size_t i = 0; i < OPAQUE; i++) {
		pool[i].n = LONGEST / (i + 1);
		pool[i].p = malloc(pool[i].n);
		CHECK(pool[i].p);
		if (i % 2)
			gen_text(state, pool[i].p, pool[i].n);
		else
			gen_bytes(state, pool[i].p, pool[i].n);
	}
}

static inline void free_contents(struct content *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(c[i].p);
}

/* The i-th file is what is in memory of it. */
static inline void write_file(struct set *s, size_t i)
{
	snprintf(s->name[i], sizeof(s->name[i]), "f%zu", i);
	place_write(place_path(s->path[i], s->name[i]), s->file[i].p, s->file[i].n);
}

/* n files of the same content. */
static inline void make_twins(struct set *s, const struct content *c, size_t n)
{
	memset(s, 0, sizeof(*s));
	s->n = n;
	for (size_t i = 0; i < n; i++) {
		s->file[i] = (struct content){ malloc(c->n), c->n };
		CHECK(s->file[i].p);
		memcpy(s->file[i].p, c->p, c->n);
		write_file(s, i);
	}
}

static inline void free_set(struct set *s)
{
	free_contents(s->file, s->n);
}

/* ---- packing ------------------------------------------------------------------------------------------------------------------------ */

static inline const char *fresh_store(char out[PLACE_MAX], const char *name)
{
	place_remove(place_path(out, name));
	return out;
}

static inline void name_files(const struct set *s, struct vv_pack_file file[FILES])
{
	for (size_t i = 0; i < s->n; i++)
		file[i] = (struct vv_pack_file){ s->path[i], s->name[i], false };
}

/* What became of a rank. */
static inline void note(struct job *j, uint32_t rank, int code)
{
	j->code[rank] = code;
	if (code)
		snprintf(j->why[rank], sizeof(j->why[0]), "%s", vv_err_last());
}

static inline void pack_rank(const struct varve_comm *comm, void *arg)
{
	struct job *j = arg;
	struct vv_pack_file file[FILES];
	struct vv_pack_options how = { .effort = VV_PACK_FAST };
	struct vv_pack_report report = { 0 };
	struct varve_comm mine = *comm;
	varve *v = NULL;
	int rc;

	name_files(j->set, file);
	if (j->spoil && comm->rank == 0)
		j->spoil(&mine);
	if (j->damage)
		mine = damage_plug(j->damage, comm);
	if (comm->rank == comm->size - 1)
		how.progress.step = j->step;
	rc = vv_session_open(comm->size > 1 ? &mine : NULL, j->store, "set", j->options, &v);
	if (rc == 0)
		rc = vv_pack_run(v, file, j->set->n, &how, &report);
	note(j, comm->rank, rc);
	if (!v)
		return;
	j->dup_ranks[comm->rank] = v->stats.bytes_dup_ranks;
	if (comm->rank == 0)
		j->report = report;
	vv_pack_report_fini(&report);
	varve_close(v);
}

static inline void pack(struct job *j, uint32_t ranks)
{
	threadcomm_run(ranks, pack_rank, j);
}

static inline void check_codes(const struct job *j, uint32_t ranks)
{
	for (uint32_t r = 0; r < ranks; r++)
		if (j->code[r])
			must_fail(__FILE__, __LINE__, j->why[r]);
}

static inline void pack_well(struct job *j, uint32_t ranks)
{
	pack(j, ranks);
	check_codes(j, ranks);
}

/* ---- looking ------------------------------------------------------------------------------------------------------------------------ */

struct look {
	struct vv_store *store;
	struct vv_lineage lin;
	struct vv_pool *pool;
	struct vv_commit commit;
};

static inline void look_at(struct look *k, const char *store, uint64_t epoch)
{
	*k = (struct look){ 0 };
	MUST(vv_pool_new(1, &k->pool) == 0);
	MUST(vv_store_open(store, &(struct vv_store_options){ 0 }, &k->store) == 0);
	MUST(vv_catalog_open(k->store, "set", false, &k->lin) == 0);
	MUST(vv_catalog_commit(&k->lin, epoch, &k->commit) == 0);
}

static inline void look_end(struct look *k)
{
	vv_commit_fini(&k->commit);
	vv_store_close(k->store);
	vv_pool_free(k->pool);
}

static inline void tell(void *arg, const char *problem)
{
	(void)arg;
	fprintf(stderr, "%s\n", problem);
}

static inline uint64_t problems(struct look *k)
{
	struct vv_verify_report report = { 0 };

	MUST(vv_verify_run(&k->lin, k->pool, 0, false, tell, NULL, NULL, &report) == 0);
	return report.problems;
}

/* Files that come back as they were; the regions are called like them. */
static inline size_t count_back(struct look *k, const struct set *s)
{
	uint8_t *bytes = malloc(LONGEST + 5000);
	size_t back = 0;

	CHECK(bytes);
	for (uint32_t rank = 0; rank < k->commit.n_ranks; rank++) {
		struct vv_run_table t = { 0 };

		MUST(vv_run_table_load(&k->lin, k->commit.epoch, rank, NULL, &t) == 0);
		for (size_t i = 0; i < t.n; i++) {
			const struct vv_run_table_region *r = &t.region[i];
			size_t f = (size_t)atoi(r->name + 1);

			if (r->name[0] != 'f')
				continue;
			MUST(f < s->n && r->shape.len == s->file[f].n && vv_run_covers(&r->runs, r->shape.len));
			if (vv_restore_read(&k->lin, k->pool, &(struct vv_want){ &r->runs, 0, r->shape.len, bytes, NULL }, 1) == 0)
				back += memcmp(bytes, s->file[f].p, s->file[f].n) == 0;
		}
		vv_run_table_fini(&t);
	}
	free(bytes);
	return back;
}

static inline void check_look(struct look *k, const struct set *s)
{
	MUST(problems(k) == 0);
	MUST(count_back(k, s) == s->n);
}

/* The epoch is whole, and has all files. */
static inline void check_epoch(const char *store, uint64_t epoch, const struct set *s)
{
	struct look k;

	look_at(&k, store, epoch);
	check_look(&k, s);
	look_end(&k);
}

#endif
