/* Missing pages of this very process, brought by a userfaultfd from a canned image: every page ends up as the image has it, whatever was brought
 * before, let go of, or is in another area; and a process that has ended is forgotten. */
#include "base/err.h"
#include "image/process/fd_passing.h"
#include "image/restore/missing_pages.h"
#include "support/dice.h"
#include "vv_test.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { PAGES = 48, ROUNDS = 60 };

static size_t page;

static int open_uffd(void)
{
	struct uffdio_api api = {.api = UFFD_API};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

	if (fd < 0)
		SKIP("no userfaultfd here");
	CHECK(ioctl(fd, UFFDIO_API, &api) == 0);
	return fd;
}

static uint8_t *map_watched(int fd)
{
	uint8_t *p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register r = {.range = {(uintptr_t)p, PAGES * page}, .mode = UFFDIO_REGISTER_MODE_MISSING};

	CHECK(p != MAP_FAILED && ioctl(fd, UFFDIO_REGISTER, &r) == 0);
	return p;
}

/* From now on pages that are missing are zeros. */
static void unwatch(int fd, uint8_t *p)
{
	struct uffdio_range r = {(uintptr_t)p, PAGES * page};

	CHECK(ioctl(fd, UFFDIO_UNREGISTER, &r) == 0);
}

static void make_image(struct vv_remote_buffer *h)
{
	CHECK_EQ(vv_remote_buffer_init(h, PAGES * page), 0);
	noise(h->bytes, PAGES * page);
}

/* Of each page its place in the image, in pages; none: it is not missing. */
static void plan(struct vv_missing_pages *m, const uint8_t *p, int place[PAGES])
{
	size_t image = 0, len;

	for (size_t at = 0; at < PAGES; at += len) {
		len = 1 + upto(9);
		len = len < PAGES - at ? len : PAGES - at;
		for (size_t i = 0; i < len; i++)
			place[at + i] = -1;
		if (upto(3) == 0)
			continue;
		CHECK_EQ(vv_page_spans_add(&m->left,
					   (struct vv_page_span){(uintptr_t)p + at * page,
								 (uintptr_t)p + (at + len) * page, image * page}),
			 0);
		for (size_t i = 0; i < len; i++)
			place[at + i] = (int)(image + i);
		image += len;
	}
}

/* All of it, in the order in which its bytes come. */
static void bring_all(struct vv_missing_pages *m)
{
	while (m->left.n) {
		uint64_t addr, done, from = upto(PAGES - 1) * page, asked;

		if (!vv_missing_pages_find(m, &addr)) {
			const struct vv_page_span x = m->left.v[upto(m->left.n - 1)];

			CHECK_EQ(vv_missing_pages_bring(m, x.lo, page, &done), 0);
			CHECK(done == 0 && vv_remote_buffer_next(m->remote_buffer, x.at, page, true, &asked) && asked == x.at);
			vv_remote_buffer_put(m->remote_buffer, from, page * (1 + upto((PAGES * page - from) / page - 1)));
			vv_remote_buffer_put(m->remote_buffer, m->left.v[upto(m->left.n - 1)].at, page);
			continue;
		}
		CHECK(vv_page_spans_find(&m->left, addr));
		CHECK_EQ(vv_missing_pages_bring(m, addr, (1 + upto(9)) * page, &done), 0);
		CHECK(done > 0 && done % page == 0 && !vv_page_spans_find(&m->left, addr));
	}
}

static void test_all_come(void)
{
	for (int round = 0; round < ROUNDS; round++) {
		int fd = open_uffd(), place[PAGES];
		uint8_t *p = map_watched(fd);
		struct vv_remote_buffer h;
		struct vv_missing_pages m = {.remote_buffer = &h, .pid = getpid(), .uffd = fd, .uffd_socket = -1, .pidfd = -1};

		make_image(&h);
		plan(&m, p, place);
		if (upto(1)) /* two areas, or three */
			CHECK(madvise(p + upto(PAGES / 2) * page, (1 + upto(PAGES / 2 - 1)) * page, MADV_DONTFORK) ==
			      0);
		bring_all(&m);
		unwatch(fd, p);
		for (size_t i = 0; i < PAGES; i++)
			for (size_t k = 0; k < page; k++)
				CHECK_EQ(p[i * page + k], place[i] < 0 ? 0 : h.bytes[(size_t)place[i] * page + k]);
		vv_missing_pages_forget(&m);
		CHECK(m.uffd == -1 && !m.left.n && fcntl(fd, F_GETFD) < 0);
		munmap(p, PAGES * page);
		vv_remote_buffer_fini(&h);
	}
}

/* Pages that are there already are left alone. */
static void test_there(void)
{
	int fd = open_uffd();
	uint8_t *p = map_watched(fd);
	struct vv_remote_buffer h;
	struct vv_missing_pages m = {.remote_buffer = &h, .pid = getpid(), .uffd = fd, .uffd_socket = -1, .pidfd = -1};
	bool gone = true;
	uint64_t done;

	make_image(&h);
	vv_remote_buffer_put(&h, 0, PAGES * page);
	CHECK_EQ(vv_missing_pages_zero(&m, (uintptr_t)p + page, &done), 0);
	CHECK_EQ(done, page);
	p[page] = 77;
	CHECK_EQ(vv_missing_pages_deliver(&m, (uintptr_t)p, 0, 3 * page, &done, &gone), 0);
	CHECK(done == page && !gone); /* up to there */
	CHECK_EQ(vv_missing_pages_deliver(&m, (uintptr_t)p + page, page, 2 * page, &done, &gone), 0);
	CHECK(done == page && !gone && p[page] == 77);
	CHECK_EQ(vv_missing_pages_deliver(&m, (uintptr_t)p + 2 * page, 2 * page, page, &done, &gone), 0);
	CHECK(done == page && memcmp(p + 2 * page, h.bytes + 2 * page, page) == 0);
	CHECK_EQ(vv_missing_pages_zero(&m, (uintptr_t)p + 2 * page, &done), 0); /* it is there, and stays */
	CHECK(done == page && memcmp(p + 2 * page, h.bytes + 2 * page, page) == 0);
	vv_missing_pages_forget(&m);
	munmap(p, PAGES * page);
	vv_remote_buffer_fini(&h);
}

/* Memory that is not there any more: while the process stands still that is an error, while it runs nobody needs it. */
static void test_let_go(void)
{
	int fd = open_uffd();
	uint8_t *p = map_watched(fd);
	struct vv_remote_buffer h;
	struct vv_missing_pages m = {.remote_buffer = &h, .pid = getpid(), .uffd = fd, .uffd_socket = -1, .pidfd = -1};
	bool gone = true;
	uint64_t done;

	make_image(&h);
	vv_remote_buffer_put(&h, 0, PAGES * page);
	munmap(p + 4 * page, 4 * page);
	CHECK_EQ(vv_missing_pages_deliver(&m, (uintptr_t)p, 0, 8 * page, &done, &gone), 0);
	CHECK(done == 4 * page && !gone && memcmp(p, h.bytes, 4 * page) == 0);
	CHECK(vv_missing_pages_deliver(&m, (uintptr_t)p + 4 * page, 4 * page, 4 * page, &done, &gone) < 0);
	m.runs = true;
	CHECK_EQ(vv_missing_pages_deliver(&m, (uintptr_t)p + 4 * page, 4 * page, 4 * page, &done, &gone), 0);
	CHECK(done == page && !gone);
	CHECK_EQ(vv_missing_pages_zero(&m, (uintptr_t)p + 4 * page, &done), 0);
	CHECK_EQ(done, page);
	vv_missing_pages_forget(&m);
	munmap(p, PAGES * page);
	vv_remote_buffer_fini(&h);
}

/* A userfaultfd of a process that is no more; *p: memory of it that was watched. */
static int open_dead(uint8_t **p)
{
	int pair[2], fd = -1;
	pid_t pid;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int mine = open_uffd();
		uint8_t *there = map_watched(mine);

		_exit(vv_fd_passing_send(pair[1], (void *)&there, sizeof(there), mine) != sizeof(there));
	}
	CHECK_EQ(vv_fd_passing_receive(pair[0], (void *)p, sizeof(*p), &fd), (ssize_t)sizeof(*p));
	CHECK(waitpid(pid, NULL, 0) == pid && fd >= 0);
	close(pair[0]);
	close(pair[1]);
	return fd;
}

static void test_gone(void)
{
	for (int zero = 0; zero < 2; zero++) {
		uint8_t *p = NULL;
		int fd = open_dead(&p);
		struct vv_remote_buffer h;
		struct vv_missing_pages m = {
			.remote_buffer = &h, .pid = 1, .uffd = fd, .uffd_socket = -1, .pidfd = -1, .runs = true};
		uint64_t done;

		make_image(&h);
		vv_remote_buffer_put(&h, 0, PAGES * page);
		CHECK_EQ(vv_page_spans_add(&m.left, (struct vv_page_span){(uintptr_t)p, (uintptr_t)p + 8 * page, 0}),
			 0);
		CHECK_EQ(zero ? vv_missing_pages_zero(&m, (uintptr_t)p, &done)
			      : vv_missing_pages_bring(&m, (uintptr_t)p, 8 * page, &done),
			 0);
		CHECK(m.uffd == -1 && !m.left.n && fcntl(fd, F_GETFD) < 0);
		vv_remote_buffer_fini(&h);
	}
}

int main(void)
{
	page = (size_t)sysconf(_SC_PAGESIZE);
	test_all_come();
	test_there();
	test_let_go();
	test_gone();
	return 0;
}
