// ctest: TIMEOUT 240 COST 3
/* Packing when the store fails: every call that changes it, and every one that reads it, fails once, in every way there is, or the process is killed
 * before it. An epoch counts or it does not; what counted before gives back its files; the next try succeeds. */
#include "base/err.h"
#include "engine/files/pack.h"
#include "engine/lineage/run_table.h"
#include "engine/read/restore.h"
#include "engine/context.h"
#include "engine/session/session.h"
#include "store/dir/dir.h"
#include "support/faultfs.h"
#include "support/gen.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "vv_test.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 3, LEN = 60000, EPOCHS = 3 };

static uint8_t content[EPOCHS + 1][FILES][LEN]; /* by epoch, from 1 */
static char path[EPOCHS + 1][FILES][PLACE_MAX], store[PLACE_MAX];
static const char *options; /* of the session */
static const char *const name[FILES] = { "a.dat", "b.dat", "sub/c.dat" };

/* Half of each file stays from epoch to epoch. */
static void make_content(void)
{
	uint64_t state = 5;

	for (size_t e = 1; e <= EPOCHS; e++)
		for (size_t i = 0; i < FILES; i++) {
			memcpy(content[e][i], content[e - 1][i], LEN);
			gen_text(&state, content[e][i] + (e % 2) * LEN / 2, e > 1 ? LEN / 2 : LEN / (1 + e % 2));
		}
}

/* Written once: a file that was written just now is waited for. */
static void lay_out(void)
{
	for (size_t e = 1; e <= EPOCHS; e++)
		for (size_t i = 0; i < FILES; i++) {
			char file[64];

			snprintf(file, sizeof(file), "%zu-%zu", e, i);
			place_write(place_path(path[e][i], file), content[e][i], LEN);
		}
}

static int pack(size_t epoch)
{
	struct vv_pack_file file[FILES];
	struct vv_pack_options how = { .effort = VV_PACK_DEFAULT };
	struct vv_pack_report r = { 0 };
	struct vv_err_state error;
	varve *v = NULL;
	int rc = vv_session_open(NULL, store, "set", options, &v);

	if (rc)
		return rc;
	for (size_t i = 0; i < FILES; i++)
		file[i] = (struct vv_pack_file){ path[epoch][i], name[i], false };
	rc = vv_pack_run(v, file, FILES, &how, &r);
	vv_pack_report_fini(&r);
	vv_err_save(rc, &error);
	varve_close(v);
	return vv_err_restore(&error);
}

/* Which of the contents is it? Every file of it. */
static size_t identify(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t epoch)
{
	static uint8_t bytes[LEN];
	struct vv_run_table t = { 0 };
	bool fits[EPOCHS + 1] = { false, true, true, true };

	CHECK_EQ(vv_run_table_load(lin, epoch, 0, NULL, &t), 0);
	CHECK_EQ(t.n, FILES + 1);
	for (size_t i = 0; i < FILES; i++) {
		CHECK_EQ(t.region[i].shape.len, LEN);
		CHECK_EQ(vv_restore_read(lin, pool, &(struct vv_want){ &t.region[i].runs, 0, LEN, bytes, NULL }, 1), 0);
		for (size_t e = 1; e <= EPOCHS; e++)
			fits[e] = fits[e] && memcmp(bytes, content[e][i], LEN) == 0;
	}
	vv_run_table_fini(&t);
	for (size_t e = 1; e <= EPOCHS; e++)
		if (fits[e])
			return e;
	return 0;
}

/* All epochs that are there, in the order of their contents; `least` of them at least. */
static size_t look(size_t least)
{
	struct vv_store *s = NULL;
	struct vv_lineage lin;
	struct vv_listing l = { 0 };
	struct vv_pool *pool = NULL;
	size_t last = 0, n;

	vv_dir_set_fs(lazyfs());
	CHECK_EQ(vv_store_open(store, &(struct vv_store_options){ 0 }, &s), 0);
	if (vv_catalog_open(s, "set", false, &lin) < 0) {
		CHECK_EQ(least, 0);
		vv_store_close(s);
		return 0;
	}
	CHECK_EQ(vv_catalog_list(&lin, 0, &l), 0);
	CHECK_EQ(vv_pool_new(0, &pool), 0);
	for (size_t i = 0; i < l.n_epochs; i++) {
		size_t e = identify(&lin, pool, l.epoch[i]);

		CHECK(e && e >= last);
		last = e;
	}
	n = l.n_epochs;
	CHECK(n >= least);
	vv_pool_free(pool);
	vv_catalog_listing_fini(&l);
	vv_store_close(s);
	return n;
}

static void begin(void)
{
	place_remove(store);
	place_make_dir(store);
	vv_dir_set_fs(lazyfs());
	CHECK_EQ(pack(1), 0);
}

static bool fail_at(enum fault kind, long n)
{
	bool fired;
	int rc;

	begin();
	vv_dir_set_fs(faultfs());
	faultfs_arm(kind, n);
	rc = pack(2);
	fired = faultfs_fired();
	faultfs_arm(FAULT_NONE, 0);
	if (rc && kind != FAULT_READ) /* a damaged cache, say, is read around */
		CHECK(strstr(vv_err_last(), store));
	CHECK(rc == 0 || fired);
	look(rc == 0 ? 2 : 1);
	vv_dir_set_fs(faultfs());
	CHECK_EQ(pack(3), 0);
	look(rc == 0 ? 3 : 2);
	return fired;
}

static bool kill_at(long n)
{
	int status = 0;
	pid_t pid;

	begin();
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		vv_dir_set_fs(faultfs());
		faultfs_arm(FAULT_KILL, n);
		_exit(pack(2) ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
	look(WIFEXITED(status) ? 2 : 1);
	CHECK_EQ(pack(3), 0);
	look(2);
	return WIFSIGNALED(status);
}

static void test_all(const char *how)
{
	static const enum fault kinds[] = { FAULT_EIO, FAULT_ENOSPC, FAULT_SHORT, FAULT_TEAR, FAULT_DEAD, FAULT_READ };

	options = how;
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		long n = 1;

		while (fail_at(kinds[k], n))
			n++;
		CHECK(n > 5);
	}
	for (long n = 1; kill_at(n); n++)
		;
}

/* On one core so little is written by the caller, on two by a thread. */
int main(void)
{
	place_path(store, "store");
	make_content();
	lay_out();
	test_all("mode=sync threads=1");
	test_all("mode=sync threads=2");
	return 0;
}
