/* Writes past the page cache, and files that are written again: the bytes are exact for every size and cut, a refusal by the
 * file system is no failure, an error of a thread is one of the object, and a spare file never costs a full disk. */
#include "base/err.h"
#include "store/dir/dir.h"
#include "store/dir/dir_direct.h"
#include "store/dir/dir_spare.h"
#include "store/store.h"
#include "support/gen.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, MOST = 9 * MIB };

static _Alignas(4096) uint8_t content[MOST];
static uint8_t back[MOST];
static struct vv_fs fs;
static uint64_t free_bytes; /* that may still be allocated */
static int n_allocated;
static int refuse;          /* errno of a direct write; 0: none */
static bool is_direct;
static int n_refused;

static int direct(const struct vv_fs *f, int fd, bool on)
{
	(void)f;
	(void)fd;
	is_direct = on;
	return 0;
}

static ssize_t pwritev_refusing(const struct vv_fs *f, int fd, const struct iovec *iov, int n, off_t off)
{
	if (!refuse || !is_direct)
		return vv_fs_real()->pwritev(f, fd, iov, n, off);
	__atomic_fetch_add(&n_refused, 1, __ATOMIC_RELAXED);
	errno = refuse;
	return -1;
}

static int allocate(const struct vv_fs *f, int fd, off_t off, off_t len)
{
	n_allocated++;
	if ((uint64_t)len > free_bytes) {
		errno = ENOSPC;
		return -1;
	}
	return vv_fs_real()->allocate(f, fd, off, len);
}

static const char *spare;    /* a spare file that fills the disk */
static int n_full, n_synced;

static bool is_disk_full(void)
{
	struct stat st;
	bool full = spare && stat(spare, &st) == 0;

	n_full += full;
	errno = ENOSPC;
	return full;
}

static int open_on_full(const struct vv_fs *f, const char *path, int flags, mode_t mode)
{
	return flags & O_CREAT && is_disk_full() ? -1 : vv_fs_real()->open(f, path, flags, mode);
}

static ssize_t pwritev_on_full(const struct vv_fs *f, int fd, const struct iovec *iov, int n, off_t off)
{
	return is_disk_full() ? -1 : vv_fs_real()->pwritev(f, fd, iov, n, off);
}

/* Until the removal is durable, no writer may find the file. */
static int sync_and_look(const struct vv_fs *f, const char *dir)
{
	struct stat st;

	CHECK(stat(spare, &st) < 0);
	n_synced++;
	if (!refuse)
		return vv_fs_real()->fsync_dir(f, dir);
	errno = refuse;
	return -1;
}

/* The object in pieces of random length. */
static int put(struct vv_store *s, const char *name, uint64_t hint, size_t len, uint64_t *g)
{
	struct vv_put *p = NULL;
	int rc = vv_store_put_open(s, name, hint, &p);

	for (size_t at = 0; rc == 0 && at < len;) {
		size_t a = 1 + gen_below(g, 3 * MIB), b = gen_below(g, 9000);

		a = a < len - at ? a : len - at;
		b = b < len - at - a ? b : len - at - a;
		rc = vv_store_put_write(p, (struct iovec[]){ { content + at, a }, { content + at + a, b } }, 2);
		at += a + b;
	}
	if (rc == 0)
		return vv_store_put_commit(p);
	vv_store_put_abort(p);
	return rc;
}

static int n_done;

static void done(struct vv_pending_write *w)
{
	(void)w;
	__atomic_fetch_add(&n_done, 1, __ATOMIC_RELAXED);
}

/* The object in pieces of whole pages, of which several are in progress; some cannot be written from where they lie, since
 * they or the position are not aligned. */
static int submit(struct vv_store *s, const char *name, size_t len, bool odd, uint64_t *g)
{
	enum { PIECES = 64, PARTS = 3 };
	static struct vv_pending_write w[PIECES];
	static struct iovec iov[PIECES][PARTS];
	struct vv_put *p = NULL;
	int rc = vv_store_put_open(s, name, len, &p), n = 0;

	n_done = 0;
	for (size_t at = 0; rc == 0 && at < len; n++) {
		size_t end = at;

		CHECK(n < PIECES);
		for (int i = 0; i < PARTS; i++) {
			size_t most = (len - end) / 4096, k = gen_below(g, 100) + (i == 0), b = (k < most ? k : most) * 4096;

			b += odd && gen_below(g, 4) == 0 && b ? (size_t)-1 : 0;
			b = i == 0 && (b == 0 || n == PIECES - 1) ? len - end : b;
			iov[n][i] = (struct iovec){ content + end, b };
			end += b;
		}
		w[n] = (struct vv_pending_write){ .done = done };
		rc = vv_store_put_submit(p, iov[n], PARTS, &w[n]);
		n -= rc != 0;
		at = end;
	}
	if (rc == 0)
		rc = vv_store_put_commit(p);
	else
		vv_store_put_abort(p);
	CHECK_EQ(n_done, n); /* each has ended, well or not */
	return rc;
}

static void is_exact(struct vv_store *s, const char *name, size_t len)
{
	struct vv_get *g = NULL;

	CHECK_EQ(vv_store_get_open(s, name, &g), 0);
	CHECK_EQ(g->size, len);
	CHECK_EQ(vv_store_get_read(g, 0, back, len), 0);
	CHECK(memcmp(back, content, len) == 0);
	vv_store_get_close(g);
}

static struct vv_store *open_store(const char *path, enum vv_store_io io, bool recycle)
{
	struct vv_store_options opt = { .create = true, .io = io, .recycle = recycle };
	struct vv_store *s = NULL;

	CHECK_EQ(vv_store_open(path, &opt, &s), 0);
	return s;
}

static void submits(const char *path, enum vv_store_io io)
{
	struct vv_store *s = open_store(path, io, true);
	uint64_t g = 17;

	for (size_t i = 0; i < 12; i++) {
		size_t len = i % 3 ? gen_below(&g, MOST) : MOST;

		CHECK_EQ(submit(s, "d/7.r0.layer", len, i % 2, &g), 0);
		is_exact(s, "d/7.r0.layer", len);
		if (i % 4 == 3)
			CHECK_EQ(vv_store_remove(s, "d/7.r0.layer"), 0);
	}
	vv_store_close(s);
}

static void exact(const char *path, enum vv_store_io io, bool recycle)
{
	static const size_t edges[] = { 0, 1, 4095, 4096, 4097, MIB - 1, MIB, MIB + 1, 4 * MIB, 4 * MIB + 5, 8 * MIB, MOST };
	struct vv_store *s = open_store(path, io, recycle);
	uint64_t g = io + 10;

	for (size_t i = 0; i < 20; i++) {
		size_t len = i < 12 ? edges[i] : gen_below(&g, MOST);

		CHECK_EQ(put(s, "d/1.object", i % 3 ? len : 8 * MIB, len, &g), 0);
		is_exact(s, "d/1.object", len);
		if (i % 2)
			CHECK_EQ(vv_store_remove(s, "d/1.object"), 0);
	}
	vv_store_close(s);
}

static ino_t inode(const char *path, const char *name)
{
	char file[PLACE_MAX + 50];
	struct stat st;

	snprintf(file, sizeof(file), "%s/%s", path, name);
	return stat(file, &st) == 0 ? st.st_ino : 0;
}

/* The file of a removed object becomes that of the next one of its rank, if it is not much too large. */
static void recycles(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_DIRECT, true);
	uint64_t g = 3;
	ino_t first;

	vv_dir_spare_set_least(MIB);
	CHECK_EQ(put(s, "d/1.r0.layer", MOST, MOST, &g), 0);
	first = inode(path, "d/1.r0.layer");
	CHECK_EQ(vv_store_remove(s, "d/1.r0.layer"), 0);
	CHECK_EQ(inode(path, "d/1.r0.layer"), 0);
	CHECK_EQ(inode(path, "d/.tmp-spare.r0.layer"), first);
	CHECK_EQ(put(s, "d/2.r1.layer", MOST, MIB, &g), 0); /* another rank's */
	CHECK_EQ(inode(path, "d/.tmp-spare.r0.layer"), first);
	CHECK_EQ(put(s, "d/2.r0.layer", MIB, MIB, &g), 0); /* much smaller */
	CHECK_EQ(inode(path, "d/.tmp-spare.r0.layer"), first);
	CHECK_EQ(put(s, "d/3.r0.layer", 6 * MIB, 6 * MIB + 17, &g), 0);
	CHECK_EQ(inode(path, "d/3.r0.layer"), first);
	is_exact(s, "d/3.r0.layer", 6 * MIB + 17);
	CHECK_EQ(vv_store_remove(s, "d/3.r0.layer"), 0);
	CHECK_EQ(put(s, "d/4.r0.layer", MOST, MOST, &g), 0); /* larger than the file */
	is_exact(s, "d/4.r0.layer", MOST);
	CHECK_EQ(vv_store_remove(s, "d/4.r0.layer"), 0);
	vv_store_close(s);
	CHECK_EQ(inode(path, "d/.tmp-spare.r0.layer"), 0);
}

/* A removed object stays as it was while it is open or mapped. */
static void spares_readers(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_DIRECT, true);
	struct vv_get *get = NULL;
	uint64_t g = 6;

	CHECK_EQ(put(s, "d/5.r0.layer", MOST, MOST, &g), 0);
	CHECK_EQ(vv_store_get_open(s, "d/5.r0.layer", &get), 0);
	vv_store_get_map(get);
	CHECK_EQ(vv_store_remove(s, "d/5.r0.layer"), 0);
	CHECK_EQ(inode(path, "d/.tmp-spare.r0.layer"), 0); /* it would only take space */
	content[5] ^= 1;
	CHECK_EQ(put(s, "d/6.r0.layer", MOST, MOST, &g), 0);
	is_exact(s, "d/6.r0.layer", MOST);
	content[5] ^= 1;
	CHECK_EQ(vv_store_get_read(get, 0, back, MOST), 0);
	CHECK(memcmp(back, content, MOST) == 0);
	CHECK(!get->map || memcmp(get->map, content, MOST) == 0);
	CHECK_EQ(vv_store_get_check(get), 0);
	vv_store_get_close(get);
	vv_store_close(s);
}

/* After a power failure a removed object may come back, unless its folder was made durable. */
static void keeps_durably(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_DIRECT, true);
	char name[PLACE_MAX + 50];
	uint64_t g = 8;

	snprintf(name, sizeof(name), "%s/d/.tmp-spare.r0.layer", path);
	CHECK_EQ(put(s, "d/7.r0.layer", MOST, MOST, &g), 0);
	CHECK_EQ(put(s, "d/8.r0.layer", MOST, MOST, &g), 0);
	spare = name;
	fs.fsync_dir = sync_and_look;
	CHECK_EQ(vv_store_remove(s, "d/7.r0.layer"), 0);
	CHECK_EQ(n_synced, 1);
	CHECK(inode(path, "d/.tmp-spare.r0.layer") != 0);
	CHECK(unlink(name) == 0);
	refuse = EIO;
	CHECK_EQ(vv_store_remove(s, "d/8.r0.layer"), VV_EIO);
	CHECK_EQ(inode(path, "d/.tmp-spare.r0.layer"), 0);
	refuse = 0;
	fs.fsync_dir = vv_fs_real()->fsync_dir;
	spare = NULL;
	CHECK_EQ(vv_store_remove(s, "d/8.r0.layer"), 0);
	vv_store_close(s);
}

/* Neither is it one for a small object, such as a commit record: its creation, and its bytes. */
static void makes_room_for_small(const char *path, bool create)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_AUTO, true);
	char name[PLACE_MAX + 50];
	uint64_t g = 7;

	snprintf(name, sizeof(name), "%s/d/.tmp-spare.r0.layer", path);
	CHECK_EQ(put(s, "d/1.r0.layer", MOST, MOST, &g), 0);
	CHECK_EQ(vv_store_remove(s, "d/1.r0.layer"), 0);
	spare = name;
	n_full = 0;
	fs.open = create ? open_on_full : vv_fs_real()->open;
	fs.pwritev = create ? vv_fs_real()->pwritev : pwritev_on_full;
	CHECK_EQ(put(s, "d/1.commit", 10000, 10000, &g), 0);
	CHECK_EQ(n_full, 1);
	is_exact(s, "d/1.commit", 10000);
	fs.open = vv_fs_real()->open;
	fs.pwritev = vv_fs_real()->pwritev;
	spare = NULL;
	vv_store_close(s);
}

/* A file system ends all direct writes in progress before it allocates. */
static void allocates_once(const char *path)
{
	struct vv_store *s;
	uint64_t g = 8;

	fs.allocate = allocate;
	free_bytes = UINT64_MAX;
	s = open_store(path, VV_STORE_IO_DIRECT, true);
	n_allocated = 0;
	CHECK_EQ(put(s, "d/1.r0.layer", MOST, MOST, &g), 0);
	CHECK_EQ(n_allocated, 1);
	is_exact(s, "d/1.r0.layer", MOST);
	vv_store_close(s);
}

/* A spare file is no reason for a full disk. */
static void makes_room(const char *path)
{
	struct vv_store *s;
	uint64_t g = 4;

	fs.allocate = allocate;
	s = open_store(path, VV_STORE_IO_DIRECT, true);
	free_bytes = UINT64_MAX;
	CHECK_EQ(put(s, "d/1.r0.layer", MOST, MOST, &g), 0);
	CHECK_EQ(vv_store_remove(s, "d/1.r0.layer"), 0);
	CHECK(inode(path, "d/.tmp-spare.r0.layer") != 0);
	free_bytes = 0;
	CHECK_EQ(put(s, "d/1.r1.layer", MOST, MOST, &g), VV_ENOSPC);
	CHECK_EQ(inode(path, "d/.tmp-spare.r0.layer"), 0);
	vv_store_close(s);
}

/* The flag is accepted and the write is not: EINVAL takes the page cache, another error is reported. */
static void refuses(const char *path)
{
	struct vv_store *s;
	uint64_t g = 5;

	fs.allocate = vv_fs_real()->allocate;
	fs.pwritev = pwritev_refusing;
	s = open_store(path, VV_STORE_IO_AUTO, false);
	refuse = EINVAL;
	CHECK_EQ(put(s, "object", MOST, MOST, &g), 0);
	CHECK(n_refused > 0);
	is_exact(s, "object", MOST);
	refuse = EIO;
	CHECK_EQ(put(s, "object", MOST, MOST, &g), VV_EIO);
	CHECK(strstr(vv_err_last(), "object") != NULL);
	is_exact(s, "object", MOST);
	CHECK_EQ(submit(s, "object", MOST, false, &g), VV_EIO);
	is_exact(s, "object", MOST);
	refuse = EFAULT;
	n_refused = 0;
	CHECK_EQ(submit(s, "object", MOST, false, &g), 0);
	CHECK(n_refused > 0);
	is_exact(s, "object", MOST);
	vv_store_close(s);
}

/* On a real disk, where the program was built: tests usually have their folders in memory. */
static void on_disk(void)
{
	char path[] = "direct-XXXXXX";

	CHECK(mkdtemp(path) != NULL);
	vv_dir_set_fs(NULL);
	exact(path, VV_STORE_IO_AUTO, false);
	exact(path, VV_STORE_IO_DIRECT, true);
	exact(path, VV_STORE_IO_BUFFERED, true);
	submits(path, VV_STORE_IO_DIRECT);
	submits(path, VV_STORE_IO_BUFFERED);
	vv_dir_direct_set_room(4096);
	exact(path, VV_STORE_IO_DIRECT, true);
	place_remove(path);
}

int main(void)
{
	uint64_t g = 1;
	char path[PLACE_MAX];

	gen_bytes(&g, content, sizeof(content));
	place_path(path, "store");
	fs = *vv_fs_real();
	fs.direct = direct;
	vv_dir_set_fs(&fs);
	exact(path, VV_STORE_IO_DIRECT, true);
	submits(path, VV_STORE_IO_DIRECT);
	recycles(path);
	spares_readers(path);
	keeps_durably(path);
	makes_room_for_small(path, true);
	makes_room_for_small(path, false);
	allocates_once(path);
	makes_room(path);
	refuses(path);
	on_disk();
	return 0;
}
