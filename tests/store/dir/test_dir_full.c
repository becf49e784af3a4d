/* A disk with little room: what fits is stored, however much was announced, and whatever is allocated ahead; what does not fit
 * leaves nothing behind. */
#include "base/err.h"
#include "store/dir/dir.h"
#include "store/store.h"
#include "support/lazyfs.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIB = 1 << 20, TAIL = 30000 };

static struct vv_fs disk;
static uint64_t room, asked; /* of one file: what there is, and the most that was asked for at once */

/* As ext4 does it: what does not fit fails, and the file has grown by what fits. */
static int allocate(const struct vv_fs *fs, int fd, off_t off, off_t len)
{
	uint64_t end = (uint64_t)(off + len), fits = end < room ? end : room;
	struct stat st;

	asked = (uint64_t)len > asked ? (uint64_t)len : asked;
	CHECK_EQ(fstat(fd, &st), 0);
	if (fits > (uint64_t)st.st_size)
		CHECK_EQ(fs->truncate(fs, fd, (off_t)fits), 0);
	errno = ENOSPC;
	return end > room ? -1 : 0;
}

static int direct(const struct vv_fs *fs, int fd, bool on)
{
	(void)fs, (void)fd, (void)on;
	return 0;
}

static ssize_t pwritev_within(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	uint64_t end = (uint64_t)off;

	for (int i = 0; i < n; i++)
		end += iov[i].iov_len;
	errno = ENOSPC;
	return end > room ? -1 : vv_fs_real()->pwritev(fs, fd, iov, n, off);
}

/* An object of `len` bytes and a little more, where `hint` were announced. */
static int put(struct vv_store *s, uint64_t hint, uint64_t len)
{
	static uint8_t block[MIB];
	struct vv_put *p = NULL;
	int rc = vv_store_put_open(s, "object", hint, &p);

	asked = 0;
	for (uint64_t done = 0; rc == 0 && done < len; done += MIB)
		rc = vv_store_put_write(p, &(struct iovec){ block, len - done < MIB ? len - done : MIB }, 1);
	if (rc == 0)
		rc = vv_store_put_write(p, &(struct iovec){ block, TAIL }, 1);
	if (rc == 0)
		return vv_store_put_commit(p);
	vv_store_put_abort(p);
	return rc;
}

static void fits_in(struct vv_store *s, uint64_t disk_room, uint64_t hint, uint64_t len)
{
	struct vv_get *g = NULL;

	room = disk_room;
	CHECK_EQ(put(s, hint, len), 0);
	CHECK_EQ(vv_store_get_open(s, "object", &g), 0);
	CHECK_EQ(g->size, len + TAIL);
	vv_store_get_close(g);
	CHECK_EQ(vv_store_remove(s, "object"), 0);
}

static void fits(struct vv_store *s, uint64_t hint, uint64_t len)
{
	fits_in(s, len + 2 * TAIL, hint, len);
}

/* With all the room there is, what is beyond the announced size is allocated as it comes, and a small part of a long object at first. */
static void takes_no_more(struct vv_store *s, uint64_t first)
{
	room = UINT64_MAX;
	CHECK_EQ(put(s, 8 * MIB, 8 * MIB), 0);
	CHECK(asked <= (first < 8 * MIB ? first : 8 * MIB));
	CHECK_EQ(put(s, 1024ull * MIB, 3 * MIB), 0);
	CHECK_EQ(asked, first);
	CHECK_EQ(vv_store_remove(s, "object"), 0);
}

static void too_much(struct vv_store *s)
{
	struct vv_get *g = NULL;
	struct vv_names left = { 0 };

	room = 9 * MIB;
	CHECK_EQ(put(s, 32 * MIB, 9 * MIB), VV_ENOSPC);
	CHECK(strstr(vv_err_last(), "object"));
	CHECK_EQ(vv_store_get_open(s, "object", &g), VV_ENOENT);
	CHECK_EQ(vv_store_list(s, "", &left), 0);
	CHECK_EQ(left.n, 0);
	vv_names_fini(&left);
}

static void fill(enum vv_store_io io)
{
	struct vv_store_options opt = { .create = true, .io = io };
	struct vv_store *s = NULL;
	char path[PLACE_MAX];

	CHECK_EQ(vv_store_open(place_path(path, "store"), &opt, &s), 0);
	fits(s, 8 * MIB, 8 * MIB);   /* the tables of a layer come beside what was announced */
	fits(s, 100 * MIB, 9 * MIB); /* most of it was found elsewhere, or coded */
	fits(s, 5 * MIB, 20 * MIB);
	fits(s, 0, 5 * MIB);
	fits_in(s, 20 * MIB, 100 * MIB, 9 * MIB); /* what is allocated ahead fills the disk */
	fits_in(s, 20 * MIB, 100 * MIB, 19 * MIB);
	takes_no_more(s, io == VV_STORE_IO_DIRECT ? 64 * MIB : 4 * MIB);
	too_much(s);
	vv_store_close(s);
}

int main(void)
{
	disk = *lazyfs();
	disk.allocate = allocate;
	disk.direct = direct; /* so that it is tried on every file system */
	disk.pwritev = pwritev_within;
	vv_dir_set_fs(&disk);
	fill(VV_STORE_IO_BUFFERED);
	fill(VV_STORE_IO_DIRECT);
	return 0;
}
