// ctest: TIMEOUT 120 MODES
/* A store that cannot be read at a restart. What is damaged is passed over, and kept; what cannot be reached is an error, and costs no
 * epoch. One rank, ranks that share a store, ranks with stores of their own. */
#include "base/mem.h"
#include "engine/context.h"
#include "engine/ranks/copies_lookup.h"
#include "engine/read/salvage.h"
#include "store/dir/dir.h"
#include "support/hosts.h"
#include "support/lazyfs.h"
#include <errno.h>
#include <stdatomic.h>

enum { FDS = 4096, TABLES = 48 << 10 /* of a layer's file, what lies below is payload */ };

/* ---- a file system whose reads fail ------------------------------------------------------------------------------------------- */

enum place { AT_OPEN, AT_TABLES, AT_PAYLOAD };

static struct vv_fs bad;
static struct {
	const char *of; /* a part of the file's path; NULL: all is well */
	enum place at;
	int errnum;
	atomic_int left; /* times; below 0: always */
	atomic_int hits;
} fault;
static atomic_bool watched[FDS];

static bool fails(enum place at)
{
	if (at != fault.at || (atomic_load(&fault.left) >= 0 && atomic_fetch_sub(&fault.left, 1) <= 0)) {
		if (at == fault.at)
			atomic_store(&fault.left, 0);
		return false;
	}
	atomic_fetch_add(&fault.hits, 1);
	errno = fault.errnum;
	return true;
}

static int bad_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	bool is = fault.of && strstr(path, fault.of);
	int fd;

	(void)fs;
	if (is && fails(AT_OPEN))
		return -1;
	fd = lazyfs()->open(lazyfs(), path, flags, mode);
	CHECK(fd < FDS);
	if (fd >= 0)
		atomic_store(&watched[fd], is);
	return fd;
}

static ssize_t bad_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	(void)fs;
	if (fault.of && atomic_load(&watched[fd]) && fails(off < TABLES ? AT_PAYLOAD : AT_TABLES))
		return -1;
	return lazyfs()->pread(lazyfs(), fd, p, n, off);
}

static void set_fault(const char *of, enum place at, int errnum, int times)
{
	fault.of = of;
	fault.at = at;
	fault.errnum = errnum;
	atomic_store(&fault.left, times);
	atomic_store(&fault.hits, 0);
}

/* ---- one rank, and many ---------------------------------------------------------------------------------------------------------- */

struct trial {
	struct hosts *r;
	int rc, epoch; /* of the restart */
	int write;     /* so many epochs after it */
	int next;      /* the number of the first of them */
	uint64_t kept; /* by bit */
};

static varve *enter(const struct trial *t, const struct varve_comm *comm)
{
	char store[PLACE_MAX + 16];
	varve *v = NULL;

	if (comm->size > 1)
		return hosts_open(t->r, comm);
	hosts_place(t->r, 0, store);
	place_make_dir(t->r->store);
	OK(varve_open(store, "job", t->r->options, &v));
	return v;
}

static uint64_t list(const struct hosts *r)
{
	uint64_t kept = 0;

	for (int e = 1; e <= EPOCHS_MAX; e++) {
		char path[PLACE_MAX + 64];

		hosts_object(r, 0, e, -1, path);
		kept |= (uint64_t)(access(path, F_OK) == 0) << e;
	}
	return kept;
}

static void live(const struct varve_comm *comm, void *arg)
{
	struct trial *t = arg;
	varve *v = enter(t, comm);
	uint8_t *p = varve_alloc(v, "p", (size_t)PAGES * PAGE);
	int rc = varve_restart(v, VARVE_LATEST), e = (int)varve_epoch(v);

	MUST(rc == t->rc);
	if (rc < 0)
		MUST(strstr(varve_last_error(), "cannot be reached") && strstr(varve_last_error(), strerror(fault.errnum)));
	if (rc == 1) {
		MUST(e == t->epoch);
		hosts_check(t->r, e, comm->rank, p);
	}
	for (int i = 0; i < t->write; i++) {
		hosts_set(t->r, t->next + i, comm->rank, p);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
	}
	OK(varve_close(v));
}

static void go(struct trial *t, int rc, int epoch, int write)
{
	t->rc = rc;
	t->epoch = epoch;
	t->write = write;
	threadcomm_run(t->r->ranks, live, t);
	t->next += write;
	t->kept = list(t->r);
}

/* Epochs 1 and 2. */
static void begin(struct trial *t, uint32_t ranks, uint32_t per_place, uint64_t seed)
{
	t->r = hosts_new(ranks, seed, "codec=none dedup=no keep=2 gc=auto log=error");
	t->r->per_place = per_place;
	t->next = 1;
	set_fault(NULL, AT_OPEN, 0, 0);
	go(t, 0, 0, 2);
	t->r->options = "codec=none dedup=no keep=1 gc=auto log=error";
}

/* turn: ranks run where others did, so that bytes come by messages. */
static void test_errors(uint32_t ranks, uint32_t per_place, uint32_t turn)
{
	static const int outage[] = { ESTALE, ETIMEDOUT, EHOSTDOWN, ENOTCONN };
	struct trial t = { 0 };
	char of[40];

	snprintf(of, sizeof(of), "%010d.r%u.layer", 2, ranks - 1);
	for (enum place at = AT_OPEN; at <= AT_PAYLOAD; at++) {
		begin(&t, ranks, per_place, 100 + at);
		t.r->turn = turn;
		for (size_t i = 0; i < sizeof(outage) / sizeof(outage[0]); i++) {
			must_begin("%u ranks, %u in a place, %d: %s", ranks, per_place, (int)at, strerror(outage[i]));
			set_fault(of, at, outage[i], -1);
			go(&t, VARVE_EIO, 2, 0);
			MUST(fault.hits && t.kept == (1 << 1 | 1 << 2));
		}
		must_begin("%u ranks, %u in a place, %d: once", ranks, per_place, (int)at);
		set_fault(of, at, EIO, 1);
		go(&t, 1, 2, 0);
		MUST(fault.hits == 1);
		must_begin("%u ranks, %u in a place, %d: a bad disk", ranks, per_place, (int)at);
		set_fault(of, at, EIO, -1);
		go(&t, 1, 1, 1); /* the session writes epoch 3 */
		MUST(fault.hits && t.kept == (1 << 2 | 1 << 3));
		set_fault(NULL, AT_OPEN, 0, 0);
		go(&t, 1, 3, 0);
		hosts_end(t.r);
	}
}

/* ---- on another number of ranks ------------------------------------------------------------------------------------------------- */

static void take_list(const struct varve_comm *comm, void *arg)
{
	enum { ITEMS = 12, LARGE = 1 << 20, STEP = 2 * PAGE };
	struct trial *t = arg;
	varve *v = enter(t, comm);
	size_t n = ITEMS / t->r->ranks;
	uint8_t *p = calloc(n, LARGE);

	OK(varve_protect_list(v, "list", p, VARVE_BYTES, LARGE, n));
	if (t->epoch) {
		MUST(varve_restart(v, (uint64_t)t->epoch) == t->rc);
		MUST(strstr(varve_last_error(), strerror(fault.errnum)));
	}
	for (int i = 0; i < t->write; i++) {
		/* many runs, and then one that changes: the second layer continues the first */
		for (size_t at = 0; at < (i ? PAGE : n * LARGE); at += STEP)
			pages_fill((uint32_t)((size_t)i + 1 + at / PAGE), p + at, PAGE);
		OK(varve_checkpoint(v));
		OK(varve_wait(v, varve_epoch(v)));
	}
	OK(varve_close(v));
	free(p);
}

/* Rank 0 cannot reach what the layer of epoch 2 continues, and has no layer of rank 1 in its store. The first is the reason. */
static void test_fewer_ranks(void)
{
	struct trial t = { .r = hosts_new(3, 300, "codec=none log=error"), .write = 2 };

	set_fault(NULL, AT_OPEN, 0, 0);
	t.r->per_place = 2;
	t.r->turn = 1; /* ranks 0 and 2 in the first place, rank 1 in the second one */
	threadcomm_run(3, take_list, &t);
	t.r->ranks = 2;
	t.r->per_place = 1;
	t.r->turn = 0;
	t.write = 0;
	t.epoch = 2;
	t.rc = VARVE_EIO;
	set_fault("0000000001.r0.layer", AT_OPEN, ESTALE, -1);
	threadcomm_run(2, take_list, &t);
	MUST(fault.hits);
	hosts_end(t.r);
}

/* ---- other copies --------------------------------------------------------------------------------------------------------------- */

/* Rank 2 cannot open its layer, which may hold copies of what rank 1 has lost. */
static void seek_copies(const struct varve_comm *comm, void *arg)
{
	const struct trial *t = arg;
	varve *v = enter(t, comm);
	struct vv_warned searched = { 0 }, read = { 0 };
	struct vv_copies_lookup found = { 0 };
	struct vv_salvage_needs need = { 0 }, left = { 0 };
	uint64_t lost = vv_run_layer(2, 1);
	uint8_t byte;

	OK(vv_copies_lookup_exchange(v->ctx.group, 0, &v->ctx.lineage, &lost, 1, &found, &searched));
	MUST(searched.outage.code == (comm->rank == 2 ? t->rc : 0));
	OK(vv_salvage_add(&need, &(struct vv_salvage_need){ .layer = vv_run_layer(2, comm->rank), .len = 1, .to = &byte }));
	OK(vv_salvage_read(&v->ctx.lineage, &need, &left, &read));
	MUST(read.outage.code == (comm->rank == 2 ? t->rc : 0));
	vv_copies_lookup_fini(&found);
	vv_salvage_fini(&need);
	vv_salvage_fini(&left);
	vv_mem_free(read.layer);
	OK(varve_close(v));
}

static void test_copies(int errnum, int code)
{
	struct trial t = { 0 };

	begin(&t, 3, 1, 400);
	t.rc = code;
	set_fault("0000000002.r2.layer", AT_OPEN, errnum, -1);
	threadcomm_run(3, seek_copies, &t);
	MUST(fault.hits);
	hosts_end(t.r);
}

/* ---- what becomes of an epoch that was passed over ------------------------------------------------------------------------------- */

/* It stays for the session, and gc does its work beside it; the next session, which passes nothing over, takes it for an old one. */
static void test_kept(bool tables)
{
	struct trial t = { 0 };
	char path[PLACE_MAX + 64];
	uint8_t *p;
	size_t n;

	begin(&t, 1, 1, 200 + tables);
	hosts_object(t.r, 0, 2, 0, path);
	p = place_read(path, &n);
	p[tables ? n - 1 : 5000] ^= 1;
	place_write(path, p, n);
	free(p);
	go(&t, 1, 1, 6);
	MUST(t.kept == (1 << 2 | 1 << 8));
	hosts_object(t.r, 0, 4, 0, path);
	MUST(access(path, F_OK) < 0);
	go(&t, 1, 8, 1);
	MUST(t.kept == 1 << 9);
	hosts_end(t.r);
}

int main(void)
{
	bad = *lazyfs();
	bad.open = bad_open;
	bad.pread = bad_pread;
	vv_dir_set_fs(&bad);
	test_errors(1, 1, 0);
	test_errors(3, 3, 0);
	test_errors(3, 1, 0);
	test_errors(3, 1, 1);
	test_fewer_ranks();
	test_copies(ESTALE, VARVE_EIO);
	test_copies(EACCES, VARVE_EDENIED);
	test_kept(true);
	test_kept(false);
	return 0;
}
