/* A large removed file is freed in steps: no call frees more than a step, a reader keeps its bytes, and neither a full disk
 * nor a failed removal loses anything. In a session the steps give way to a checkpoint. */
#include "base/err.h"
#include "engine/context.h"
#include "engine/epoch/background.h"
#include "store/dir/dir.h"
#include "store/dir/dir_cut.h"
#include "store/dir/dir_spare.h"
#include "store/store.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <varve/varve.h>

enum { MIB = 1 << 20, STEP = 2 * MIB, LARGE = 9 * MIB, STEPS = 5 };

static uint8_t content[LARGE], back[LARGE];
static struct vv_fs fs;
static atomic_int n_cuts;      /* truncations of removed files */
static atomic_int n_much;      /* calls that freed more than a step */
static bool full, fails_sync;
static atomic_bool holds;      /* a cut waits until this is false */
static bool replaces;          /* another process replaces the spare file that is being taken */
static varve *session;         /* whose first cut waits for a checkpoint that waits */
static atomic_int n_after;     /* cuts between that one and the checkpoint's first file */
static atomic_int stage;       /* 1: it waits; 2: it has ended; 3: the file is made */

static void await_checkpoint(void)
{
	int expected = 0;

	if (!session || !atomic_compare_exchange_strong(&stage, &expected, 1))
		return;
	while (!vv_background_is_awaited(session))
		usleep(100);
	atomic_store(&stage, 2);
}

static int truncate_counting(const struct vv_fs *f, int fd, off_t len)
{
	struct stat st;

	CHECK_EQ(fstat(fd, &st), 0);
	if (st.st_nlink)
		return vv_fs_real()->truncate(f, fd, len);
	n_much += st.st_size - len > STEP;
	n_cuts++;
	n_after += stage == 2;
	await_checkpoint();
	while (atomic_load(&holds))
		usleep(100);
	return vv_fs_real()->truncate(f, fd, len);
}

static int unlink_counting(const struct vv_fs *f, const char *path)
{
	int fd = open(path, O_RDONLY), rc = vv_fs_real()->unlink(f, path);

	/* the file is freed by this call, unless the store has it open */
	if (fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
		struct stat st;

		CHECK_EQ(fstat(fd, &st), 0);
		n_much += st.st_size > STEP;
	}
	close(fd);
	return rc;
}

static int open_on_full(const struct vv_fs *f, const char *path, int flags, mode_t mode)
{
	if (flags & O_CREAT && stage == 2)
		atomic_store(&stage, 3);
	if (flags & O_CREAT && full) {
		full = false;
		errno = ENOSPC;
		return -1;
	}
	return vv_fs_real()->open(f, path, flags, mode);
}

static int sync_failing(const struct vv_fs *f, const char *dir)
{
	errno = EIO;
	return fails_sync ? -1 : vv_fs_real()->fsync_dir(f, dir);
}

static int rename_replacing(const struct vv_fs *f, const char *from, const char *to)
{
	const char *base = strrchr(from, '/') + 1;

	if (replaces && strcmp(base, ".tmp-spare.r0.layer") == 0) {
		char other[PLACE_MAX];
		int fd;

		replaces = false;
		snprintf(other, sizeof(other), "%s-other", from);
		fd = open(other, O_WRONLY | O_CREAT | O_EXCL, 0666);
		CHECK(fd >= 0 && ftruncate(fd, LARGE) == 0 && close(fd) == 0);
		CHECK_EQ(rename(other, from), 0);
	}
	return vv_fs_real()->rename(f, from, to);
}

static void put(struct vv_store *s, const char *name, size_t len)
{
	struct vv_put *p = NULL;

	CHECK_EQ(vv_store_put_open(s, name, len, &p), 0);
	CHECK_EQ(vv_store_put_write(p, &(struct iovec){ content, len }, 1), 0);
	CHECK_EQ(vv_store_put_commit(p), 0);
}

static struct vv_store *open_store(const char *path, enum vv_store_io io)
{
	struct vv_store_options opt = { .create = true, .io = io, .recycle = true };
	struct vv_store *s = NULL;

	CHECK_EQ(vv_store_open(path, &opt, &s), 0);
	n_cuts = n_much = 0;
	return s;
}

static int all_steps(struct vv_store *s)
{
	int n = 0;

	while (vv_store_free_step(s))
		n++;
	return n;
}

static void removes(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_BUFFERED);

	put(s, "d/1.object", LARGE);
	put(s, "d/2.object", LARGE);
	put(s, "d/3.object", STEP);
	CHECK_EQ(vv_store_remove(s, "d/3.object"), 0);
	CHECK(!vv_store_free_step(s));
	CHECK_EQ(vv_store_remove(s, "d/1.object"), 0);
	CHECK_EQ(n_cuts, 0);
	CHECK(vv_store_free_step(s));
	CHECK_EQ(n_cuts, 1);
	CHECK_EQ(vv_store_remove(s, "d/2.object"), 0); /* the earlier one is freed first */
	CHECK_EQ(n_cuts, STEPS);
	CHECK_EQ(all_steps(s), STEPS);
	put(s, "d/4.object", LARGE);
	put(s, "d/4.object", MIB); /* replaces the other */
	CHECK_EQ(all_steps(s), STEPS);
	put(s, "d/4.object", LARGE);
	CHECK_EQ(vv_store_remove(s, "d/4.object"), 0);
	vv_store_close(s);
	CHECK_EQ(n_cuts, 4 * STEPS);
	CHECK_EQ(n_much, 0);
}

static void spares(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_DIRECT);

	put(s, "d/1.r0.layer", LARGE);
	put(s, "d/2.r0.layer", LARGE);
	CHECK_EQ(vv_store_remove(s, "d/1.r0.layer"), 0);
	CHECK_EQ(all_steps(s), 0); /* it is a spare file, */
	CHECK_EQ(vv_store_remove(s, "d/2.r0.layer"), 0);
	CHECK_EQ(all_steps(s), STEPS); /* until another one is */
	CHECK_EQ(vv_store_sweep(s, "d"), 0);
	CHECK_EQ(all_steps(s), STEPS);
	put(s, "d/3.r0.layer", LARGE);
	CHECK_EQ(vv_store_remove(s, "d/3.r0.layer"), 0);
	vv_store_close(s);
	CHECK_EQ(n_cuts, 3 * STEPS);
	CHECK_EQ(n_much, 0);
}

/* Between the opening of a spare file and its renaming it becomes another one. */
static void spare_replaced(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_DIRECT);
	struct vv_get *g = NULL;

	put(s, "d/1.r0.layer", LARGE);
	CHECK_EQ(vv_store_remove(s, "d/1.r0.layer"), 0);
	replaces = true;
	put(s, "d/2.r0.layer", LARGE);
	CHECK(!replaces);
	CHECK_EQ(vv_store_get_open(s, "d/2.r0.layer", &g), 0);
	CHECK_EQ(vv_store_get_read(g, 0, back, LARGE), 0);
	CHECK(memcmp(back, content, LARGE) == 0);
	vv_store_get_close(g);
	CHECK_EQ(vv_store_remove(s, "d/2.r0.layer"), 0);
	vv_store_close(s);
}

static void *step_once(void *arg)
{
	CHECK(vv_store_free_step(arg));
	return NULL;
}

/* A child of fork closes the store while a thread of the parent frees a file. The parent keeps its spare files. */
static void forks(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_DIRECT);
	char spare[PLACE_MAX];
	pthread_t thread;
	pid_t child;
	int status;

	put(s, "d/1.r0.layer", LARGE);
	put(s, "d/2.r0.layer", LARGE);
	CHECK_EQ(vv_store_remove(s, "d/1.r0.layer"), 0);
	CHECK_EQ(vv_store_remove(s, "d/2.r0.layer"), 0);
	atomic_store(&holds, true);
	CHECK_EQ(pthread_create(&thread, NULL, step_once, s), 0);
	while (n_cuts == 0)
		usleep(100);
	child = fork();
	if (child == 0) {
		alarm(60);
		vv_store_close(s);
		_exit(n_cuts == 1 ? 0 : 1);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	atomic_store(&holds, false);
	pthread_join(thread, NULL);
	snprintf(spare, sizeof(spare), "%s/d/.tmp-spare.r0.layer", path);
	CHECK_EQ(access(spare, F_OK), 0);
	vv_store_close(s);
	CHECK_EQ(access(spare, F_OK), -1);
}

static void keeps(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_BUFFERED);
	struct vv_get *g = NULL;

	put(s, "d/1.object", LARGE);
	CHECK_EQ(vv_store_get_open(s, "d/1.object", &g), 0);
	CHECK_EQ(vv_store_remove(s, "d/1.object"), 0);
	CHECK_EQ(all_steps(s), 0);
	CHECK_EQ(vv_store_get_read(g, 0, back, LARGE), 0);
	CHECK(memcmp(back, content, LARGE) == 0);
	vv_store_get_close(g);

	put(s, "d/2.object", LARGE);
	fails_sync = true; /* then the object may come back */
	CHECK_EQ(vv_store_remove(s, "d/2.object"), VV_EIO);
	fails_sync = false;
	CHECK_EQ(all_steps(s), 0);

	put(s, "d/3.object", LARGE);
	CHECK_EQ(vv_store_remove(s, "d/3.object"), 0);
	full = true;
	n_cuts = 0;
	put(s, "d/4.object", 10);
	CHECK_EQ(n_cuts, STEPS);
	vv_store_close(s);
}

static void *call_checkpoint(void *arg)
{
	varve *v = arg;

	while (stage == 0)
		usleep(100);
	CHECK_EQ(varve_checkpoint(v), 0);
	return NULL;
}

static void next_epoch(varve *v, uint64_t *g)
{
	gen_bytes(g, content, LARGE);
	CHECK_EQ(varve_checkpoint(v), 0);
	CHECK_EQ(varve_wait(v, VARVE_LATEST), 0);
}

static void gives_way(const char *path)
{
	pthread_t thread;
	uint64_t g = 5;
	varve *v = NULL;

	CHECK_EQ(varve_open(path, "cut", "keep=1 io=buffered codec=none", &v), 0);
	CHECK_EQ(varve_protect(v, "content", content, LARGE), 0);
	n_cuts = n_much = 0;
	next_epoch(v, &g);
	session = v;
	CHECK_EQ(pthread_create(&thread, NULL, call_checkpoint, v), 0);
	gen_bytes(&g, content, LARGE);
	CHECK_EQ(varve_checkpoint(v), 0); /* drops the first epoch */
	pthread_join(thread, NULL);
	CHECK_EQ(varve_wait(v, VARVE_LATEST), 0);
	session = NULL;
	CHECK_EQ(n_after, 0);
	CHECK(stage == 3);
	next_epoch(v, &g);
	CHECK_EQ(varve_close(v), 0);
	CHECK(n_cuts >= STEPS);
	CHECK_EQ(n_much, 0);
}

int main(void)
{
	char path[] = "cut-XXXXXX";

	CHECK(mkdtemp(path) != NULL);
	fs = *vv_fs_real();
	fs.truncate = truncate_counting;
	fs.unlink = unlink_counting;
	fs.open = open_on_full;
	fs.fsync_dir = sync_failing;
	fs.rename = rename_replacing;
	vv_dir_set_fs(&fs);
	vv_dir_cut_set_step(STEP);
	vv_dir_spare_set_least(MIB);
	removes(path);
	spares(path);
	spare_replaced(path);
	forks(path);
	keeps(path);
	gives_way(path);
	place_remove(path);
	return 0;
}
