// ctest: TIMEOUT 120 PROCESSORS 2 COST 3
/* Images that some ranks have saved, brought back by one, by as many, by fewer or by more: each rank finds those of every M-th, and all of them together
 * find every byte once, in a store for all or in one of each rank; and none does where one rank cannot. */
#include "base/err.h"
#include "base/mem.h"
#include "engine/files/pack.h"
#include "engine/files/stream_input.h"
#include "engine/session/session.h"
#include "image/restore/find_images.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/threadcomm.h"

enum { MOST = 4, PAGE = 4096, PAGES = 40, NAME = 32 };

static struct job {
	uint32_t saved_by;
	bool split; /* each rank has a store of its own */
	bool alike; /* the memory of all is the same */
	uint64_t epoch, memory;
	unsigned found[MOST]; /* how often the images of a rank were */
} job;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *store_of(uint32_t rank, char out[PLACE_MAX])
{
	char name[NAME];

	snprintf(name, sizeof(name), job.split ? "store-%u" : "store", job.split ? rank : 0);
	return place_path(out, name);
}

static void fill(uint32_t rank, uint8_t *p)
{
	uint64_t state = job.alike ? 7 : 7 + rank;

	gen_bytes(&state, p, PAGES * PAGE);
}

/* ---- saving ---------------------------------------------------------------------------------------------------------------------- */

struct flow {
	uint32_t rank;
	int part;
	char name[2][NAME];
	uint8_t pages[PAGES * PAGE];
};

static int next(void *arg, struct vv_stream_input_part *out)
{
	struct flow *f = arg;

	if (f->part == 2)
		return VV_STREAM_INPUT_END;
	*out = (struct vv_stream_input_part){.name = f->name[f->part],
					     .bytes = f->part ? (const uint8_t *)f->name[0] : f->pages};
	out->n = f->part ? NAME : sizeof(f->pages);
	out->variable = f->part ? NULL : "heap";
	out->segment = VV_SEGMENT_HEAP;
	f->part++;
	return VV_STREAM_INPUT_PART;
}

static void save(const struct varve_comm *comm, void *arg)
{
	struct flow *f = calloc(1, sizeof(*f));
	struct vv_stream_input in = {.arg = f, .format = "criu", .expected = PAGES * PAGE, .next = next};
	struct vv_pack_options how = {.scheme = VV_PACK_AUTO, .effort = VV_PACK_FAST, .stream_input = &in};
	struct vv_pack_report report = {0};
	char store[PLACE_MAX];
	varve *v = NULL;

	(void)arg;
	MUST(f);
	f->rank = comm->rank;
	snprintf(f->name[0], NAME, "%u/pages-1.img", comm->rank);
	snprintf(f->name[1], NAME, "%u/core.img", comm->rank);
	fill(comm->rank, f->pages);
	MUST(vv_session_open(comm->size > 1 ? comm : NULL, store_of(comm->rank, store), "set", "mode=sync threads=1",
			     &v) == 0);
	MUST(vv_pack_run(v, NULL, 0, &how, &report) == 0);
	if (comm->rank == 0)
		job.epoch = report.epoch;
	vv_pack_report_fini(&report);
	MUST(varve_close(v) == 0);
	free(f);
}

/* ---- finding --------------------------------------------------------------------------------------------------------------------- */

static bool read_file(struct vv_serve_images *s, uint32_t rank, const char *file, uint8_t *want, size_t len)
{
	char name[NAME];
	uint8_t *bytes = NULL;
	size_t n = 0, i;

	snprintf(name, sizeof(name), "%u/%s", rank, file);
	i = vv_serve_images_find(s, name);
	if (i == s->files.n_files)
		return false;
	MUST(vv_serve_images_read(s, i, &bytes, &n) == 0);
	MUST(n == len && memcmp(bytes, want, len) == 0);
	vv_mem_free(bytes);
	return true;
}

/* Each of M readers has what every M-th rank saved, and nothing else. */
static void look(struct vv_serve_images *s, size_t n, uint32_t reader, uint32_t readers)
{
	uint8_t *want = malloc(PAGES * PAGE);

	MUST(want);
	for (uint32_t rank = 0; rank < job.saved_by; rank++) {
		unsigned times = 0;

		fill(rank, want);
		for (size_t i = 0; i < n; i++) {
			char core[NAME] = {0};
			bool has = read_file(&s[i], rank, "pages-1.img", want, PAGES * PAGE);

			snprintf(core, sizeof(core), "%u/pages-1.img", rank);
			MUST(read_file(&s[i], rank, "core.img", (uint8_t *)core, NAME) == has);
			MUST(!has || vv_serve_images_check(&s[i], true, NULL) == 0);
			times += has;
		}
		MUST(times == (rank % readers == reader));
		pthread_mutex_lock(&lock);
		job.found[rank] += times;
		pthread_mutex_unlock(&lock);
	}
	free(want);
}

static void close_all(struct vv_serve_images *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vv_serve_images_close(&s[i]);
	vv_mem_free(s);
}

static void find(const struct varve_comm *comm, void *arg)
{
	struct vv_serve_images *s = NULL;
	struct vv_find_images m = {.epoch = job.epoch, .saved_by = job.saved_by, .memory = job.memory};
	char store[PLACE_MAX];
	varve *v = NULL;
	size_t n = 0;
	int rc;

	(void)arg;
	MUST(vv_session_open(comm->size > 1 ? comm : NULL, store_of(comm->rank, store), "set", "mode=sync threads=1",
			     &v) == 0);
	MUST(vv_pool_new(1, &m.pool) == 0);
	m.v = comm->size > 1 ? v : NULL;
	m.lin = &v->ctx.lineage;
	rc = vv_find_images_open(&m, &s, &n);
	if (job.epoch == 1) {
		MUST(rc == 0);
		look(s, n, comm->rank, comm->size);
	} else {
		MUST(rc < 0); /* there is no such epoch, for any rank that should have some */
	}
	close_all(s, n);
	vv_pool_free(m.pool);
	MUST(varve_close(v) == 0);
}

static void try(uint32_t saved_by, uint32_t readers, bool split, bool alike, uint64_t memory)
{
	char store[PLACE_MAX];

	must_begin("saved by %u, found by %u, split %d, alike %d, memory %llu", saved_by, readers, split, alike,
		   (unsigned long long)memory);
	job = (struct job){.saved_by = saved_by, .split = split, .alike = alike, .memory = memory};
	for (uint32_t r = 0; r < MOST; r++)
		place_remove(store_of(r, store));
	threadcomm_run(saved_by, save, NULL);
	MUST(job.epoch == 1);
	threadcomm_run(readers, find, NULL);
	for (uint32_t r = 0; r < saved_by; r++)
		CHECK_EQ(job.found[r], 1);
	job.epoch = 2;
	if (saved_by >= readers)
		threadcomm_run(readers, find, NULL);
}

int main(void)
{
	for (uint32_t saved_by = 1; saved_by <= 3; saved_by++)
		for (uint32_t readers = 1; readers <= 4; readers++)
			try(saved_by, readers, false, readers % 2, readers == 2 ? 1 : 0);
	try(3, 3, true, false, 0);
	try(3, 3, true, true, 0);
	return 0;
}
