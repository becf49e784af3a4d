// ctest: COST 3
/* Layers of which parts are wanted that lie apart, and are not known to be in memory: many reads are under way at a time, however few threads there are; one that
 * fails is told, damage is found, and where no thread is to be had those that there are do it. What is wanted in one piece is read by those alone. */
#include "base/err.h"
#include "base/pool.h"
#include "engine/read/restore.h"
#include "engine/lineage/run_table.h"
#include "store/dir/dir.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "support/refuse.h"
#include "vv_test.h"
#include <errno.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve.h>

enum { BLOCK = 8 << 10, BLOCKS = 100, SIZE = BLOCKS * BLOCK, KEPT = 6 /* one block in so many stays as it was */, WIDTH = 2 };

#define OPTIONS "chunk=4096 block=8KiB codec=none order=address tracker=digest threads=2 log=error"

/* ---- a disk that takes its time --------------------------------------------------------------------------------------------- */

static struct vv_fs slow;
static atomic_int under_way, most, reads, fails_at;

static ssize_t slow_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	int now = atomic_fetch_add(&under_way, 1) + 1, was = atomic_load(&most);
	ssize_t got;

	(void)fs;
	while (now > was && !atomic_compare_exchange_weak(&most, &was, now))
		;
	usleep(3000);
	if (atomic_fetch_add(&reads, 1) + 1 == atomic_load(&fails_at)) {
		errno = ETIMEDOUT; /* which is not tried again */
		got = -1;
	} else {
		got = lazyfs()->pread(lazyfs(), fd, p, n, off);
	}
	atomic_fetch_sub(&under_way, 1);
	return got;
}

/* ---- the lineage -------------------------------------------------------------------------------------------------------------- */

static uint8_t first[SIZE], second[SIZE], got[SIZE];

static void ok(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s: %s\n", varve_strerror(rc), varve_last_error());
		exit(1);
	}
}

static void lay_down(const char *url)
{
	uint64_t state = 7;
	varve *v = NULL;

	gen_bytes(&state, first, SIZE);
	memcpy(second, first, SIZE);
	for (size_t i = 0; i < BLOCKS; i++)
		if (i % KEPT)
			gen_bytes(&state, second + i * BLOCK, BLOCK);
	ok(varve_open(url, "L", OPTIONS, &v));
	memcpy(got, first, SIZE);
	ok(varve_protect(v, "p", got, SIZE));
	ok(varve_checkpoint(v));
	memcpy(got, second, SIZE);
	ok(varve_checkpoint(v));
	ok(varve_close(v));
}

/* fails: which of the reads of the contents fails, from 1; 0: none. Those of the table, before, are not among them. */
static int restore_failing(const struct vv_lineage *l, struct vv_pool *pool, uint64_t epoch, int fails)
{
	struct vv_run_table t = { 0 };
	int rc;

	ok(vv_run_table_load(l, epoch, 0, NULL, &t));
	memset(got, 0xa5, SIZE);
	atomic_store(&most, 0);
	atomic_store(&reads, 0);
	atomic_store(&fails_at, fails);
	rc = vv_restore_read(l, pool, &(struct vv_want){ &t.region[0].runs, 0, SIZE, got, NULL }, 1);
	atomic_store(&fails_at, 0);
	vv_run_table_fini(&t);
	return rc;
}

static int restore(const struct vv_lineage *l, struct vv_pool *pool, uint64_t epoch)
{
	return restore_failing(l, pool, epoch, 0);
}

/* ---- cases -------------------------------------------------------------------------------------------------------------------- */

static void check_depth(const struct vv_lineage *l, struct vv_pool *pool)
{
	ok(restore(l, pool, 1));
	CHECK(memcmp(got, first, SIZE) == 0);
	CHECK(atomic_load(&most) <= WIDTH);
	ok(restore(l, pool, 2));
	CHECK(memcmp(got, second, SIZE) == 0);
	CHECK(atomic_load(&most) > WIDTH);
	CHECK(atomic_load(&most) <= 8 * WIDTH);
}

static void check_failures(const struct vv_lineage *l, struct vv_pool *pool)
{
	int all;

	ok(restore(l, pool, 2));
	all = atomic_load(&reads);
	for (int i = 1; i <= all; i += 1 + all / 12) {
		CHECK_EQ(restore_failing(l, pool, 2, i), VARVE_EIO);
		CHECK(strstr(varve_last_error(), "cannot read"));
		CHECK_EQ(atomic_load(&under_way), 0);
	}
	ok(restore(l, pool, 2));
	CHECK(memcmp(got, second, SIZE) == 0);
}

static void check_damage(const struct vv_lineage *l, struct vv_pool *pool, const char *url)
{
	char path[PLACE_MAX + 64];
	uint8_t *bytes;
	size_t n;

	snprintf(path, sizeof(path), "%s/L/00000000/0000000001.r0.layer", url);
	bytes = place_read(path, &n);
	for (size_t i = 0; i < BLOCKS; i += KEPT - 1) {
		bytes[16 + i * BLOCK + 77] ^= 4; /* behind the header: the blocks, in the order of the addresses */
		place_write(path, bytes, n);
		if (i % KEPT == 0) {
			CHECK_EQ(restore(l, pool, 2), VARVE_EDAMAGED);
			CHECK(strstr(varve_last_error(), "0000000001.r0.layer"));
		} else {
			ok(restore(l, pool, 2));
			CHECK(memcmp(got, second, SIZE) == 0);
		}
		bytes[16 + i * BLOCK + 77] ^= 4;
	}
	place_write(path, bytes, n);
	free(bytes);
}

static void check_no_threads(const struct vv_lineage *l)
{
	pid_t child = fork();
	int status;

	CHECK(child >= 0);
	if (child == 0) {
		struct vv_pool *pool = NULL;

		if (!refuse_threads())
			_exit(0);
		CHECK_EQ(vv_pool_new(1, &pool), 0);
		ok(restore(l, pool, 2));
		CHECK(memcmp(got, second, SIZE) == 0);
		CHECK_EQ(atomic_load(&most), 1);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
	struct vv_lineage lineage = { 0 };
	struct vv_store *store = NULL;
	struct vv_pool *pool = NULL;
	char dir[PLACE_MAX];

	slow = *lazyfs();
	place_path(dir, "store");
	lay_down(dir);
	slow.pread = slow_pread;
	vv_dir_set_fs(&slow);
	ok(vv_store_open(dir, &(struct vv_store_options){ 0 }, &store));
	ok(vv_catalog_open(store, "L", false, &lineage));
	check_no_threads(&lineage);
	ok(vv_pool_new(WIDTH - 1, &pool));
	check_depth(&lineage, pool);
	check_failures(&lineage, pool);
	check_damage(&lineage, pool, dir);
	vv_pool_free(pool);
	vv_store_close(store);
	return 0;
}
