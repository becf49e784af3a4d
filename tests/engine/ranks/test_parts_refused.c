// ctest: TIMEOUT 120 COST 3
/* Restarts on another number of ranks that cannot be: plain regions, parts that overlap or leave a gap, other lengths, types and lists. Each error
 * names the array, the rank and the place, and the session goes on. Also damage, and one process that opens without a communicator. */
#include "support/damage.h"
#include "support/parts.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LEN = 100 };

static char store[PLACE_MAX];

struct step {
	double T[LEN + 8];
	int list[LEN];
	uint64_t step;
};

typedef void declare_fn(varve *v, uint32_t rank, uint32_t ranks, struct step *s);

struct work {
	declare_fn *declare;
	bool write;
	const char *words[3]; /* of the error; NULL: none is expected */
	int code;
	uint64_t epoch;
};

static void block(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	size_t global = LEN, start = LEN * rank / ranks, count = LEN * (rank + 1) / ranks - start;

	for (size_t i = 0; i < count; i++)
		s->T[i] = (double)(start + i);
	OK(varve_protect_slab(v, "T", s->T, VARVE_F64, 1, &global, &start, &count, NULL));
}

static void block_of(varve *v, struct step *s, size_t global, size_t start, size_t count)
{
	OK(varve_protect_slab(v, "T", s->T, VARVE_F64, 1, &global, &start, &count, NULL));
}

static void overlap(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	block_of(v, s, LEN, rank ? 40 : 0, rank ? 60 : 50);
	(void)ranks;
}

static void gap(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	block_of(v, s, LEN, rank ? 60 : 0, rank ? 40 : 50);
	(void)ranks;
}

static void longer(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	block_of(v, s, LEN + 1, LEN * rank / ranks, LEN * (rank + 1) / ranks - LEN * rank / ranks);
}

static void plain(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	(void)rank, (void)ranks;
	OK(varve_protect(v, "T", s->T, 80));
}

static void plain_of_first(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	(void)ranks;
	OK(varve_protect(v, rank == 0 ? "x" : "y", s->T, 80));
}

static void plain_of_second(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	(void)ranks;
	OK(varve_protect(v, rank == 0 ? "y" : "x", s->T, 80));
}

static void shared(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	(void)rank, (void)ranks;
	OK(varve_protect_shared(v, "step", &s->step, sizeof(s->step)));
}

static void shared_longer(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	(void)rank, (void)ranks;
	OK(varve_protect_shared(v, "step", s->T, 16));
}

static void of_floats(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	size_t global = LEN, start = LEN * rank / ranks, count = LEN * (rank + 1) / ranks - start;

	OK(varve_protect_slab(v, "T", s->T, VARVE_I64, 1, &global, &start, &count, NULL));
}

static void list(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	(void)ranks;
	OK(varve_protect_list(v, "list", s->list, VARVE_I32, 1, 10 + rank));
}

static void list_of_pairs(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	OK(varve_protect_list(v, "list", s->list, VARVE_I32, 2, rank + 1 == ranks ? 21 - 7 * rank : 7));
}

static void other_name(varve *v, uint32_t rank, uint32_t ranks, struct step *s)
{
	size_t global = LEN, start = rank, count = rank == 0;

	(void)ranks;
	OK(varve_protect_slab(v, "U", s->T, VARVE_F64, 1, &global, &start, &count, NULL));
}

static void run(const struct varve_comm *comm, void *arg)
{
	const struct work *w = arg;
	struct step *s = calloc(1, sizeof(*s));
	varve *v = NULL;
	int rc;

	OK(varve_open_comm(comm, store, "job", "mode=sync", &v));
	w->declare(v, comm->rank, comm->size, s);
	rc = w->write ? varve_checkpoint(v) : varve_restart(v, w->epoch ? w->epoch : VARVE_LATEST);
	if (!w->code) {
		MUST(rc >= 0);
	} else {
		MUST(rc == w->code);
		for (int i = 0; i < 3 && w->words[i]; i++)
			if (!strstr(varve_last_error(), w->words[i]))
				MUST(!w->words[i]);
	}
	OK(varve_close(v));
	free(s);
}

static void write_by(uint32_t ranks, declare_fn *declare)
{
	place_remove(store);
	threadcomm_run(ranks, run, &(struct work){ .declare = declare, .write = true });
}

static void refuse(uint32_t ranks, declare_fn *declare, int code, const char *a, const char *b, const char *c)
{
	must_begin("%u ranks: %s, %s", ranks, a, b);
	threadcomm_run(ranks, run, &(struct work){ .declare = declare, .words = { a, b, c }, .code = code });
}

static void accept(uint32_t ranks, declare_fn *declare)
{
	threadcomm_run(ranks, run, &(struct work){ .declare = declare });
}

static void declarations(void)
{
	size_t global[2] = { 10, 10 }, start[2] = { 2, 0 }, count[2] = { 9, 10 }, ghost[2] = { SIZE_MAX / 2, 0 }, huge[2] = { SIZE_MAX / 2, SIZE_MAX / 2 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), *at_end;
	uint8_t *pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double T[100];
	varve *v = NULL;

	MUST(pages != MAP_FAILED && mprotect(pages + page, page, PROT_NONE) == 0);
	at_end = (size_t *)(void *)(pages + page) - 2;
	OK(varve_open(store, "declared", "mode=sync", &v));
	MUST(varve_protect_slab(v, "T", T, VARVE_F64, 2, global, start, count, NULL) == VARVE_EINVAL);
	MUST(strstr(varve_last_error(), "dimension 0"));
	count[0] = 1;
	MUST(varve_protect_slab(v, "T", T, VARVE_F64, 2, global, start, count, ghost) == VARVE_EINVAL);
	MUST(varve_protect_slab(v, "T", T, VARVE_F64, 2, huge, start, count, NULL) == VARVE_EINVAL);
	MUST(varve_protect_slab(v, "T", T, VARVE_BYTES, 2, global, start, count, NULL) == VARVE_EINVAL);
	/* Nothing is read behind the two lengths. */
	MUST(varve_protect_slab(v, "T", T, VARVE_F64, 17, at_end, at_end, at_end, NULL) == VARVE_EINVAL);
	MUST(varve_protect_slab(v, "T", T, VARVE_F64, 2, NULL, start, count, NULL) == VARVE_EINVAL);
	MUST(varve_protect_slab(v, "T", NULL, VARVE_F64, 2, global, start, count, NULL) == VARVE_EINVAL);
	MUST(varve_protect_list(v, "L", T, VARVE_F64, 0, 3) == VARVE_EINVAL);
	MUST(varve_protect_list(v, "L", T, VARVE_F64, SIZE_MAX / 4, 8) == VARVE_EINVAL);
	MUST(varve_protect_list(v, "L", T, VARVE_BYTES, SIZE_MAX / 4, 8) == VARVE_EINVAL);
	MUST(varve_protect_list(v, "", T, VARVE_F64, 1, 3) == VARVE_EINVAL);
	MUST(varve_list_share(v, VARVE_LATEST, "L", NULL, NULL) == 0);
	MUST(varve_list_share(v, VARVE_LATEST, NULL, NULL, NULL) == VARVE_EINVAL);
	/* A declaration replaces another one of any kind; varve_refine keeps it. */
	OK(varve_protect_slab(v, "T", T, VARVE_F64, 2, global, start, count, NULL));
	OK(varve_refine(v, "T", NULL, 64));
	OK(varve_protect(v, "T", T, 64));
	OK(varve_protect_shared(v, "T", T, 64));
	OK(varve_checkpoint(v));
	MUST(varve_list_share(v, VARVE_LATEST, "L", NULL, NULL) == VARVE_ENOENT);
	OK(varve_close(v));
	munmap(pages, 2 * page);
	place_remove(store);
}

/* One process without a communicator, before and after many ranks. */
static void alone(bool write)
{
	struct step s = { { 0 }, { 0 }, 0 };
	varve *v = NULL;

	OK(varve_open(store, "job", "mode=sync", &v));
	block(v, 0, 1, &s);
	for (int i = 0; i < LEN; i++)
		s.T[i] = write ? i : -1;
	if (!write) {
		MUST(varve_restart(v, VARVE_LATEST) == 1);
		for (int i = 0; i < LEN; i++)
			MUST(s.T[i] == i);
	}
	OK(varve_checkpoint(v));
	OK(varve_close(v));
}

static void check_block(const struct varve_comm *comm, void *arg)
{
	struct step s = { { 0 }, { 0 }, 0 }, want = { { 0 }, { 0 }, 0 };
	varve *v = NULL;

	(void)arg;
	OK(varve_open_comm(comm, store, "job", "mode=sync", &v));
	block(v, comm->rank, comm->size, &s);
	want = s;
	memset(&s, 0xee, sizeof(s));
	MUST(varve_restart(v, VARVE_LATEST) == 1);
	MUST(memcmp(s.T, want.T, sizeof(double) * (LEN * (comm->rank + 1) / comm->size - LEN * comm->rank / comm->size)) == 0);
	OK(varve_close(v));
}

/* Every byte of a layer, changed: the restart reads the older epoch, which is whole, or nothing wrong. */
static void damage(void)
{
	char path[PLACE_MAX + 64];
	uint8_t *p;
	size_t n;

	write_by(4, block);
	threadcomm_run(4, run, &(struct work){ .declare = block, .write = true });
	snprintf(path, sizeof(path), "%s/job/00000000/0000000002.r1.layer", store);
	p = place_read(path, &n);
	for (size_t i = 0; i < n; i += 3) {
		must_begin("byte %zu of %zu", i, n);
		p[i] ^= 0x10;
		place_write(path, p, n);
		threadcomm_run(3, check_block, NULL);
		p[i] ^= 0x10;
	}
	free(p);
}

int main(void)
{
	place_path(store, "refused");
	declarations();
	write_by(2, block);
	accept(3, block);
	refuse(3, plain, VARVE_EMISMATCH, "written by 2 rank(s), this job has 3", "'T'", "varve_protect_slab");
	refuse(3, longer, VARVE_EMISMATCH, "'T'", "(101)", "(100)");
	refuse(3, of_floats, VARVE_EMISMATCH, "'T'", "i64", "f64");
	refuse(3, other_name, VARVE_ENOENT, "'U'", "epoch 1", NULL);
	refuse(3, shared, VARVE_ENOENT, "'step'", "epoch 1", NULL);
	refuse(2, plain, VARVE_EMISMATCH, "'T'", "80 bytes", NULL);
	write_by(2, plain);
	refuse(3, block, VARVE_EMISMATCH, "'T'", "a region of one rank", "run it with 2 ranks");
	write_by(2, plain_of_first);
	refuse(2, plain_of_second, VARVE_ENOENT, "region '", "' of rank ", "each rank has its own regions");
	write_by(2, overlap);
	refuse(3, block, VARVE_EMISMATCH, "'T'", "rank 0 ('T') and rank 1 ('T')", "(40)");
	accept(2, overlap); /* the same parts: as plain regions */
	write_by(2, gap);
	refuse(3, block, VARVE_EMISMATCH, "'T'", "(50)", "rank 1 needs");
	write_by(2, list);
	refuse(3, list, VARVE_EMISMATCH, "21 items", "declare 33", "varve_list_share");
	refuse(3, list_of_pairs, VARVE_EMISMATCH, "'list'", "8 bytes", "4 bytes");
	write_by(2, shared);
	accept(5, shared);
	refuse(3, shared_longer, VARVE_EMISMATCH, "'step'", "16 bytes", "8 bytes");
	place_remove(store);
	alone(true);
	threadcomm_run(3, check_block, NULL);
	write_by(3, block);
	alone(false);
	alone(false);
	threadcomm_run(1, check_block, NULL);
	threadcomm_run(5, check_block, NULL);
	damage();
	place_remove(store);
	return 0;
}
