/* Whole transfers over a file system that writes short, reads short, is interrupted and fails; and the real one. */
#include "base/fs.h"
#include "support/gen.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

enum { DISK = 1 << 16, MAX_IOV = 3000 };

/* A disk in memory behind a bad wire. */
struct bad_fs {
	struct vv_fs fs;
	uint8_t disk[DISK];
	size_t len;
	uint64_t state;
	size_t most;     /* bytes moved by one call, at most */
	int interrupts;  /* in 8 calls */
	long calls_left; /* then fail_with; < 0: never */
	int fail_with;   /* 0: move nothing */
};

static struct bad_fs disk;

static int refuse(struct bad_fs *f, ssize_t *rc)
{
	if (f->calls_left == 0) {
		errno = f->fail_with;
		*rc = f->fail_with ? -1 : 0;
		return 1;
	}
	f->calls_left--;
	if (gen_below(&f->state, 8) >= (uint64_t)f->interrupts)
		return 0;
	errno = EINTR;
	*rc = -1;
	return 1;
}

static ssize_t bad_pwritev(const struct vv_fs *fs, int fd, const struct iovec *iov, int n, off_t off)
{
	size_t left = 1 + (size_t)gen_below(&disk.state, disk.most), done = 0;
	ssize_t rc;

	CHECK(fs == &disk.fs && fd == 7);
	CHECK(n > 0 && n <= IOV_MAX);
	if (refuse(&disk, &rc))
		return rc;
	for (int i = 0; i < n && left; i++) {
		size_t k = iov[i].iov_len < left ? iov[i].iov_len : left;

		CHECK((size_t)off + done + k <= DISK);
		if (k)
			memcpy(disk.disk + off + done, iov[i].iov_base, k);
		done += k;
		left -= k;
	}
	disk.len = (size_t)off + done > disk.len ? (size_t)off + done : disk.len;
	return (ssize_t)done;
}

static ssize_t bad_pread(const struct vv_fs *fs, int fd, void *p, size_t n, off_t off)
{
	size_t most = 1 + (size_t)gen_below(&disk.state, disk.most);
	size_t there = (size_t)off < disk.len ? disk.len - (size_t)off : 0;
	ssize_t rc;

	CHECK(fs == &disk.fs && fd == 7);
	if (refuse(&disk, &rc))
		return rc;
	n = n < most ? n : most;
	n = n < there ? n : there;
	memcpy(p, disk.disk + off, n);
	return (ssize_t)n;
}

static void reset(uint64_t seed, size_t most, int interrupts)
{
	memset(&disk, 0, sizeof(disk));
	disk.fs = (struct vv_fs){ .pwritev = bad_pwritev, .pread = bad_pread };
	disk.state = seed;
	disk.most = most;
	disk.interrupts = interrupts;
	disk.calls_left = -1;
}

/* Cuts n bytes into iovecs, empty ones among them; their number. */
static int cut(uint64_t *state, uint8_t *p, size_t n, struct iovec *iov, size_t piece)
{
	int k = 0;

	for (size_t at = 0; at < n && k < MAX_IOV - 2; k++) {
		size_t len = (size_t)gen_below(state, piece + 1);

		len = len < n - at ? len : n - at;
		len = k == MAX_IOV - 3 ? n - at : len;
		iov[k] = (struct iovec){ len ? p + at : NULL, len };
		at += len;
	}
	iov[k++] = (struct iovec){ NULL, 0 };
	return k;
}

static void check_transfer(uint64_t seed, size_t most, size_t piece)
{
	static uint8_t from[20000], to[20000];
	static struct iovec iov[MAX_IOV];
	uint64_t state = seed;
	size_t n = (size_t)gen_below(&state, sizeof(from)), off = (size_t)gen_below(&state, 1000);

	reset(seed, most, (int)gen_below(&state, 7));
	gen_bytes(&state, from, n);
	memset(disk.disk, 0xee, DISK);
	CHECK_EQ(vv_fs_write_all(&disk.fs, 7, iov, cut(&state, from, n, iov, piece), (off_t)off), 0);
	CHECK(memcmp(disk.disk + off, from, n) == 0);
	CHECK(off == 0 || disk.disk[off - 1] == 0xee);
	CHECK_EQ(disk.disk[off + n], 0xee);
	memset(to, 0xdd, sizeof(to));
	CHECK_EQ(vv_fs_read_all(&disk.fs, 7, to, n, (off_t)off), 0);
	CHECK(memcmp(to, from, n) == 0);
	CHECK(n == sizeof(to) || to[n] == 0xdd);
}

static void test_transfers(void)
{
	for (uint64_t seed = 1; seed <= 60; seed++) {
		check_transfer(seed, 17, 40);
		check_transfer(seed, 5000, 10);
		check_transfer(seed, 100000, 3);
	}
}

static void test_nothing(void)
{
	struct iovec empty[3] = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };

	reset(1, 10, 0);
	disk.calls_left = 0;
	disk.fail_with = EIO;
	CHECK_EQ(vv_fs_write_all(&disk.fs, 7, empty, 3, 0), 0);
	CHECK_EQ(vv_fs_write_all(&disk.fs, 7, NULL, 0, 0), 0);
	CHECK_EQ(vv_fs_read_all(&disk.fs, 7, NULL, 0, 0), 0);
}

/* The error of the k-th call comes out as it is; a call that moves nothing is an error too, not a loop. */
static void test_failures(void)
{
	static const int errors[] = { ENOSPC, EIO, EDQUOT, 0 };
	uint8_t bytes[100] = { 0 };

	for (size_t e = 0; e < 4; e++)
		for (long k = 0; k < 10; k++) {
			struct iovec iov = { bytes, sizeof(bytes) };

			reset(3, 1, 0);
			disk.len = DISK;
			disk.calls_left = k;
			disk.fail_with = errors[e];
			CHECK_EQ(vv_fs_write_all(&disk.fs, 7, &iov, 1, 0), -1);
			CHECK_EQ(errno, errors[e] ? errors[e] : EIO);
			disk.calls_left = k;
			CHECK_EQ(vv_fs_read_all(&disk.fs, 7, bytes, sizeof(bytes), 0), -1);
			CHECK_EQ(errno, errors[e] ? errors[e] : EIO);
		}
}

static void test_short_file(void)
{
	uint8_t bytes[100];

	for (size_t len = 0; len <= 101; len++) {
		reset(4, 30, 2);
		disk.len = len;
		errno = 0;
		CHECK_EQ(vv_fs_read_all(&disk.fs, 7, bytes, sizeof(bytes), 0), len < 100 ? -1 : 0);
		CHECK_EQ(len < 100 ? errno : EIO, EIO);
	}
}

/* A folder of its own under $TMPDIR; the caller removes it. */
static void make_folder(char *out, size_t cap)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(out, cap, "%s/vv-test-fs-XXXXXX", tmp && *tmp ? tmp : ".");
	CHECK(mkdtemp(out));
}

/* A hole reads as zeros, the rest and the length stay; or nothing at all has happened. */
static void check_punch(const struct vv_fs *fs, int fd)
{
	enum { PAGE = 4096 };
	uint8_t bytes[3 * PAGE], got[3 * PAGE];
	struct iovec iov = { bytes, sizeof(bytes) };

	memset(bytes, 7, sizeof(bytes));
	CHECK_EQ(fs->truncate(fs, fd, 0), 0);
	CHECK_EQ(vv_fs_write_all(fs, fd, &iov, 1, 0), 0);
	if (fs->punch(fs, fd, PAGE, 2 * PAGE) == 0)
		memset(bytes + PAGE, 0, 2 * PAGE);
	CHECK_EQ(vv_fs_read_all(fs, fd, got, sizeof(got), 0), 0);
	CHECK(memcmp(bytes, got, sizeof(got)) == 0);
	CHECK_EQ(lseek(fd, 0, SEEK_END), sizeof(got));
}

static void check_real_file(const struct vv_fs *fs, const char *file, const char *renamed)
{
	enum { PIECES = IOV_MAX + 500 };
	static uint8_t from[PIECES * 3], to[PIECES * 3];
	static struct iovec iov[PIECES];
	int fd = fs->open(fs, file, O_RDWR | O_CREAT | O_EXCL, 0600);
	uint64_t state = 9;

	CHECK(fd >= 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	gen_bytes(&state, from, sizeof(from));
	for (int i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ from + i * 3, 3 };
	CHECK_EQ(vv_fs_write_all(fs, fd, iov, PIECES, 11), 0);
	CHECK_EQ(vv_fs_read_all(fs, fd, to, sizeof(to), 11), 0);
	CHECK(memcmp(from, to, sizeof(to)) == 0);
	CHECK_EQ(vv_fs_read_all(fs, fd, to, sizeof(to), 12), -1);
	CHECK_EQ(errno, EIO);
	check_punch(fs, fd);
	CHECK_EQ(fs->truncate(fs, fd, 5), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 5);
	CHECK_EQ(fs->fsync(fs, fd), 0);
	CHECK_EQ(fs->close(fs, fd), 0);
	CHECK_EQ(fs->rename(fs, file, renamed), 0);
	CHECK_EQ(fs->open(fs, file, O_RDONLY, 0), -1);
	CHECK_EQ(errno, ENOENT);
}

static void test_real(void)
{
	const struct vv_fs *fs = vv_fs_real();
	char folder[3000], sub[3100], file[3200], renamed[3200];

	make_folder(folder, sizeof(folder));
	snprintf(sub, sizeof(sub), "%s/sub", folder);
	snprintf(file, sizeof(file), "%s/a", sub);
	snprintf(renamed, sizeof(renamed), "%s/b", sub);
	CHECK_EQ(fs->mkdir(fs, sub, 0700), 0);
	check_real_file(fs, file, renamed);
	CHECK_EQ(fs->fsync_dir(fs, sub), 0);
	CHECK_EQ(fs->fsync_dir(fs, file), -1);
	CHECK_EQ(fs->rmdir(fs, sub), -1);
	CHECK_EQ(fs->unlink(fs, renamed), 0);
	CHECK_EQ(fs->rmdir(fs, sub), 0);
	CHECK_EQ(rmdir(folder), 0);
}

/* Who would write waits while it is shut; who has it open for writing already keeps it from being shut. */
static void test_shut(void)
{
	char folder[3000], file[3100];
	int fd, writer;

	make_folder(folder, sizeof(folder));
	snprintf(file, sizeof(file), "%s/a", folder);
	writer = open(file, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	fd = open(file, O_RDONLY | O_CLOEXEC);
	CHECK(writer >= 0 && fd >= 0);
	if (vv_fs_lease(fd)) {
		printf("no leases here\n");
	} else {
		CHECK(vv_fs_is_written(fd));
		close(writer);
		CHECK(!vv_fs_is_written(fd));
		CHECK(vv_fs_lease(fd));
		writer = open(file, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		CHECK(writer < 0 && errno == EWOULDBLOCK);
		CHECK_EQ(unlink(file), 0); /* as little as a reader does that break it */
		close(fd);
		fd = open(file, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
		CHECK(vv_fs_lease(fd));
		close(fd);
		fd = open(file, O_RDONLY | O_CLOEXEC);
		writer = open(file, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
		CHECK(fd >= 0 && writer >= 0);
	}
	close(writer);
	close(fd);
	CHECK_EQ(unlink(file), 0);
	CHECK_EQ(rmdir(folder), 0);
}

int main(void)
{
	test_shut();
	test_transfers();
	test_nothing();
	test_failures();
	test_short_file();
	test_real();
	return 0;
}
