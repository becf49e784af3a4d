/* Reads past the page cache: the bytes are exact for every offset, length and place in memory, in plain objects and in
 * members of a bundle. A refusal by the file system is no failure; an error, and a file that was cut short, is one. */
#include "base/err.h"
#include "store/dir/dir.h"
#include "store/store.h"
#include "support/gen.h"
#include "support/members.h"
#include "support/place.h"
#include "vv_test.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 5 << 20, UNIT = 4096, READS = 60 };

static uint8_t content[MOST], room[MOST + VV_STORE_AROUND + UNIT];
static struct vv_fs fs;
static bool is_direct;
static int refuse; /* errno of a direct read; 0: none */
static int n_direct, n_buffered;

static int direct(const struct vv_fs *f, int fd, bool on)
{
	(void)f;
	(void)fd;
	is_direct = on;
	return 0;
}

/* The strictest disk that varve knows. */
static ssize_t pread_strict(const struct vv_fs *f, int fd, void *p, size_t n, off_t off)
{
	if (!is_direct) {
		n_buffered++;
		return vv_fs_real()->pread(f, fd, p, n, off);
	}
	errno = refuse ? refuse : EINVAL;
	if (refuse || ((uintptr_t)p | n | (size_t)off) % UNIT)
		return -1;
	n_direct++;
	return vv_fs_real()->pread(f, fd, p, n, off);
}

static void read_some(struct vv_get *g, const uint8_t *want, uint64_t *state)
{
	size_t off = gen_below(state, g->size), n = gen_below(state, g->size - off + 1), odd = gen_below(state, UNIT);
	uint8_t *to = room + odd;

	if (gen_below(state, 2)) { /* aligned, as most reads are */
		off -= off % UNIT;
		n -= n % UNIT;
		to = room + (-(uintptr_t)room) % UNIT;
	}
	memset(room, 0, sizeof(room));
	if (gen_below(state, 2))
		CHECK_EQ(vv_store_get_read(g, off, to, n), 0);
	else
		CHECK_EQ(vv_store_get_around(g, off, n, room + odd, &to), 0);
	CHECK(to + n <= room + sizeof(room) && memcmp(to, want + off, n) == 0);
}

static void read_all(struct vv_store *s, const char *name, const uint8_t *want, size_t len, bool goes_direct)
{
	struct vv_get *g = NULL;
	uint64_t state = len;

	CHECK_EQ(vv_store_get_open(s, name, &g), 0);
	CHECK_EQ(g->size, len);
	CHECK_EQ(vv_store_get_direct(g), goes_direct);
	CHECK_EQ(g->unit, goes_direct ? UNIT : 0);
	for (int i = 0; i < READS; i++)
		read_some(g, want, &state);
	CHECK_EQ(vv_store_get_read(g, 0, room, len), 0);
	CHECK(memcmp(room, want, len) == 0);
	vv_store_get_close(g);
	is_direct = false;
}

static struct vv_store *open_store(const char *path, enum vv_store_io io)
{
	struct vv_store_options opt = { .create = true, .io = io };
	struct vv_store *s = NULL;

	CHECK_EQ(vv_store_open(path, &opt, &s), 0);
	return s;
}

static void put_all(struct vv_store *s)
{
	CHECK_EQ(vv_store_put(s, "d/small", content, 9000), 0);
	CHECK_EQ(vv_store_put(s, "d/odd", content, MOST - 77), 0);
	CHECK_EQ(vv_store_put(s, "d/even", content, MOST), 0);
}

static void exact(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_AUTO);

	put_all(s);
	n_direct = 0;
	read_all(s, "d/small", content, 9000, false);
	CHECK_EQ(n_direct, 0);
	read_all(s, "d/odd", content, MOST - 77, true);
	read_all(s, "d/even", content, MOST, true);
	CHECK(n_direct > READS);
	vv_store_close(s);
	s = open_store(path, VV_STORE_IO_DIRECT);
	read_all(s, "d/small", content, 9000, true);
	vv_store_close(s);
	s = open_store(path, VV_STORE_IO_BUFFERED);
	n_direct = 0;
	read_all(s, "d/even", content, MOST, false);
	CHECK_EQ(n_direct, 0);
	vv_store_close(s);
}

static void members(const char *path)
{
	struct members_object o[2] = { { 3, 5000 }, { 4, MOST - 777 } };
	struct vv_store *s = open_store(path, VV_STORE_IO_AUTO);
	uint8_t *bytes = members_bytes(o[1]);
	char name[VV_NAME_MAX];

	CHECK_EQ(members_bundle(s, 1, 0, 2, o, MOST), 0);
	vv_name_layer(name, MEMBERS_LINEAGE, 1, 1);
	n_direct = 0;
	read_all(s, name, bytes, o[1].len, true);
	CHECK(n_direct > READS / 2);
	free(bytes);
	vv_store_close(s);
}

/* Of an object that is open for direct reads. */
static int read_refused(struct vv_store *s, int errnum, size_t odd)
{
	struct vv_get *g = NULL;
	int rc;

	CHECK_EQ(vv_store_get_open(s, "d/even", &g), 0);
	CHECK(vv_store_get_direct(g));
	refuse = errnum;
	memset(room, 0, sizeof(room));
	rc = vv_store_get_read(g, odd, room, MOST - odd);
	CHECK(rc || memcmp(room, content + odd, MOST - odd) == 0);
	refuse = 0;
	is_direct = false;
	vv_store_get_close(g);
	return rc;
}

static void refuses(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_AUTO);

	n_buffered = 0;
	for (size_t odd = 0; odd < 2; odd++) {
		CHECK_EQ(read_refused(s, EINVAL, odd), 0);
		CHECK_EQ(read_refused(s, EFAULT, odd), 0);
		CHECK_EQ(read_refused(s, ENOMEM, odd), 0);
	}
	CHECK_EQ(n_buffered, 6);
	CHECK_EQ(read_refused(s, ETIMEDOUT, 0), VV_EIO);
	CHECK(strstr(vv_err_last(), "even") != NULL);
	CHECK(read_refused(s, EIO, 0) < 0);
	CHECK(strstr(vv_err_last(), "even") != NULL);
	vv_store_close(s);
}

static void cut_short(const char *path)
{
	struct vv_store *s = open_store(path, VV_STORE_IO_AUTO);
	char file[PLACE_MAX + 10];
	uint8_t *to = room + (-(uintptr_t)room) % UNIT, *around = NULL;
	struct vv_get *g = NULL;

	CHECK_EQ(vv_store_get_open(s, "d/even", &g), 0);
	CHECK(vv_store_get_direct(g) || !is_direct);
	snprintf(file, sizeof(file), "%s/d/even", path);
	CHECK(truncate(file, MOST / 2 + 100) == 0);
	CHECK(vv_store_get_read(g, 0, to, MOST) < 0);
	CHECK(vv_store_get_around(g, MOST / 2, 5000, room, &around) < 0);
	CHECK_EQ(vv_store_get_around(g, MOST / 4 + 10, 100, room, &around), 0);
	CHECK(memcmp(around, content + MOST / 4 + 10, 100) == 0);
	CHECK(vv_store_get_check(g) < 0);
	vv_store_get_close(g);
	vv_store_close(s);
	is_direct = false;
}

/* On a real disk, where the program was built: tests usually have their folders in memory. */
static void on_disk(void)
{
	char path[] = "direct-read-XXXXXX";
	struct vv_store *s;
	struct vv_get *g = NULL;
	bool able;

	CHECK(mkdtemp(path) != NULL);
	vv_dir_set_fs(NULL);
	s = open_store(path, VV_STORE_IO_AUTO);
	put_all(s);
	CHECK_EQ(vv_store_get_open(s, "d/even", &g), 0);
	able = vv_store_get_direct(g);
	vv_store_get_close(g);
	read_all(s, "d/odd", content, MOST - 77, able);
	read_all(s, "d/even", content, MOST, able);
	vv_store_close(s);
	cut_short(path);
	place_remove(path);
}

int main(void)
{
	uint64_t state = 1;
	char path[PLACE_MAX];

	gen_bytes(&state, content, sizeof(content));
	place_path(path, "store");
	fs = *vv_fs_real();
	fs.direct = direct;
	fs.pread = pread_strict;
	vv_dir_set_fs(&fs);
	exact(path);
	members(path);
	refuses(path);
	cut_short(path);
	on_disk();
	return 0;
}
