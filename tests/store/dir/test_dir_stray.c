/* A program that puts a file of its own in the place of a descriptor of the store's, after each of the calls that are made with it: nothing is written to the program's
 * file, it is not cut, lengthened or closed, and the error says what has happened. */
#include "base/err.h"
#include "base/fs.h"
#include "core/format/name.h"
#include "store/dir/dir.h"
#include "store/store.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { MIB = 1 << 20, LEN = 5 * MIB + 12345, MINE = 1000 };

static struct vv_fs thief;
static int mine, stolen = -1;   /* the program's file, and the number that it has, too */
static long calls, steal_after; /* 0: never */
static bool grudging;           /* little is allocated, and written, at a time */
static uint8_t bytes[LEN], own[MINE];

static int done(int fd, int rc)
{
	int saved = errno;

	if (++calls == steal_after && fd >= 0) {
		CHECK_EQ(dup2(mine, fd), fd);
		stolen = fd;
	}
	errno = saved;
	return rc;
}

static int steal_open(const struct vv_fs *fs, const char *path, int flags, mode_t mode)
{
	int fd = vv_fs_real()->open(fs, path, flags, mode);

	return flags & O_NONBLOCK ? fd : done(fd, fd); /* those are only read until it is known what they hold */
}

static int steal_close(const struct vv_fs *fs, int fd)
{
	CHECK(fd != stolen);
	return vv_fs_real()->close(fs, fd);
}

static ssize_t steal_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	struct iovec some = { iov->iov_base, iov->iov_len < MIB / 4 ? iov->iov_len : MIB / 4 };

	CHECK(fd != stolen);
	return done(fd, (int)vv_fs_real()->pwritev(fs, fd, grudging ? &some : iov, grudging ? 1 : n, off));
}

static ssize_t steal_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	CHECK(fd != stolen);
	return done(fd, (int)vv_fs_real()->pread(fs, fd, p, grudging && n > MIB ? MIB : n, off));
}

static int steal_allocate(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	CHECK(fd != stolen);
	errno = ENOSPC;
	return done(fd, grudging && len > 2 * MIB ? -1 : vv_fs_real()->allocate(fs, fd, off, len));
}

static int steal_start_writeback(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	CHECK(fd != stolen);
	return done(fd, vv_fs_real()->start_writeback(fs, fd, off, len));
}

static int steal_punch(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	CHECK(fd != stolen);
	return done(fd, vv_fs_real()->punch(fs, fd, off, len));
}

static int steal_truncate(const struct vv_fs *fs, int fd, off_t len)
{
	CHECK(fd != stolen);
	return done(fd, vv_fs_real()->truncate(fs, fd, len));
}

static int steal_fsync(const struct vv_fs *fs, int fd)
{
	CHECK(fd != stolen);
	return done(fd, vv_fs_real()->fsync(fs, fd));
}

/* The program's file is as it was, by both of its numbers. */
static void check_mine(void)
{
	uint8_t got[MINE + 1];

	CHECK_EQ(pread(mine, got, sizeof(got), 0), MINE);
	CHECK(memcmp(got, own, MINE) == 0);
	CHECK(stolen < 0 || pread(stolen, got, sizeof(got), 0) == MINE);
	if (stolen >= 0)
		close(stolen);
	stolen = -1;
}

static int put_object(struct vv_store *s)
{
	struct vv_put *p = NULL;
	int rc = vv_store_put_open(s, "object", 3 * LEN, &p);

	for (size_t at = 0; rc == 0 && at < LEN; at += MIB)
		rc = vv_store_put_write(p, &(struct iovec){ bytes + at, LEN - at < MIB ? LEN - at : MIB }, 1);
	if (rc == 0)
		return vv_store_put_commit(p);
	vv_store_put_abort(p);
	return rc;
}

static int put_bundle(struct vv_store *s)
{
	struct vv_member m[] = { { "0000000001.r0.layer", 0, LEN }, { "0000000001.r1.layer", 8 * MIB, LEN } };
	char token[VV_STORE_TOKEN], bundle[VV_NAME_MAX];
	int rc;

	vv_name_bundle(bundle, "l", 1, 0, 1);
	rc = vv_store_bundle_make(s, bundle, token);
	for (int i = 0; rc == 0 && i < 2; i++) {
		struct vv_put *p = NULL;

		rc = vv_store_bundle_join(s, bundle, token, m[i].off, 8 * MIB, &p);
		if (rc == 0)
			rc = vv_store_put_write(p, &(struct iovec){ bytes, LEN }, 1);
		if (rc == 0)
			rc = vv_store_put_commit(p);
		else if (p)
			vv_store_put_abort(p);
	}
	if (rc == 0)
		rc = vv_store_bundle_seal(s, bundle, token, m, 2);
	if (rc == 0)
		rc = vv_store_remove(s, "l/00000000/0000000001.r0.layer");
	return rc;
}

static int get_object(struct vv_store *s)
{
	static uint8_t got[LEN];
	struct vv_get *g = NULL;
	int rc = vv_store_get_open(s, "object", &g);

	for (size_t at = 0; rc == 0 && at < LEN; at += 2 * MIB)
		rc = vv_store_get_read(g, at, got + at, LEN - at < 2 * MIB ? LEN - at : 2 * MIB);
	CHECK(rc || memcmp(got, bytes, LEN) == 0);
	vv_store_get_close(g);
	return rc;
}

/* After every call in turn, until there are no more. */
static void each(const char *url, int (*work)(struct vv_store *s))
{
	struct vv_store_options opt = { .create = true };
	struct vv_store *s = NULL;

	for (long at = 1, more = 1; more; at++) {
		int rc;

		CHECK_EQ(vv_store_open(url, &opt, &s), 0);
		if (work == get_object)
			CHECK_EQ(put_object(s), 0);
		calls = 0;
		steal_after = at;
		rc = work(s);
		more = calls >= at;
		steal_after = 0;
		if (rc && !strstr(vv_err_last(), "varve's"))
			fprintf(stderr, "after call %ld: %s\n", at, vv_err_last());
		CHECK(rc == 0 || strstr(vv_err_last(), "varve's"));
		CHECK(more || rc == 0);
		check_mine();
		vv_store_close(s);
		place_remove(url);
	}
}

int main(void)
{
	char path[PLACE_MAX], url[PLACE_MAX];

	place_path(path, "mine");
	place_path(url, "store");
	mine = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	memset(own, 7, MINE);
	for (size_t i = 0; i < LEN; i++)
		bytes[i] = (uint8_t)(i * 31 + 1);
	CHECK_EQ(pwrite(mine, own, MINE, 0), MINE);
	thief = *vv_fs_real();
	thief.open = steal_open;
	thief.close = steal_close;
	thief.pwritev = steal_pwritev;
	thief.pread = steal_pread;
	thief.allocate = steal_allocate;
	thief.start_writeback = steal_start_writeback;
	thief.punch = steal_punch;
	thief.truncate = steal_truncate;
	thief.fsync = steal_fsync;
	vv_dir_set_fs(&thief);
	for (int i = 0; i < 2; i++) {
		grudging = i;
		each(url, put_object);
		each(url, put_bundle);
		each(url, get_object);
	}
	return 0;
}
