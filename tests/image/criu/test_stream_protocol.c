/* Requests of criu, cut short at every byte, with every byte changed, and in pieces of one byte, against a reader of messages written down here once more;
 * and the descriptors that come with them, none of which may be left open. */
#include "base/err.h"
#include "image/criu/stream_protocol.h"
#include "support/place.h"
#include "vv_test.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MESSAGE = 300, HEAD = 4 };

static int here, there; /* the two ends of a connection: ours, criu's */

static void connect_both(void)
{
	int pair[2];

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	here = pair[0];
	there = pair[1];
}

static void hang_up(void)
{
	close(there);
	close(here);
}

/* ---- requests ---------------------------------------------------------------------------------------------------------------------- */

static size_t make(uint8_t m[MESSAGE], const char *name, size_t len)
{
	size_t tag = HEAD, at = tag + 1;

	m[tag] = 0x0a;
	m[at++] = (uint8_t)(len < 0x80 ? len : (len & 0x7f) | 0x80);
	if (len >= 0x80)
		m[at++] = (uint8_t)(len >> 7);
	memcpy(m + at, name, len);
	at += len;
	memcpy(m, (uint8_t[]){(uint8_t)(at - HEAD), (uint8_t)((at - HEAD) >> 8), 0, 0}, HEAD);
	return at;
}

/* What the only message of a connection is worth. */
static int judge(const uint8_t *m, size_t n, char *name)
{
	size_t body = n >= HEAD ? (size_t)m[0] | (size_t)m[1] << 8 | (size_t)m[2] << 16 | (size_t)m[3] << 24 : 0, len,
	       at = HEAD + 1;

	if (n == 0)
		return 0;
	if (n < HEAD || body < 3 || body > n - HEAD || m[HEAD] != 0x0a)
		return VV_EIO;
	len = m[at++];
	if (len >= 0x80)
		len = (len & 0x7f) | (size_t)m[at++] << 7;
	if (len == 0 || len >= VV_STREAM_PROTOCOL_NAME || at + len != HEAD + body || m[at] == '.' ||
	    memchr(m + at, '/', len) || memchr(m + at, 0, len))
		return VV_EIO;
	memcpy(name, m + at, len);
	name[len] = '\0';
	return 1;
}

static void try(const uint8_t *m, size_t n)
{
	char name[VV_STREAM_PROTOCOL_NAME], want[MESSAGE];
	int rc = judge(m, n, want);

	connect_both();
	CHECK_EQ(send(there, m, n, 0), (ssize_t)n);
	CHECK(shutdown(there, SHUT_WR) == 0);
	CHECK_EQ(vv_stream_protocol_request(here, name), rc);
	if (rc == 1)
		CHECK_STR(name, want);
	hang_up();
}

static void test_damaged_requests(void)
{
	static const char *const names[] = {"pages-1.img", "x", "inventory.img"};

	for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++) {
		uint8_t m[MESSAGE];
		size_t n = make(m, names[k], strlen(names[k]));

		for (size_t i = 0; i <= n; i++)
			try(m, i);
		for (size_t i = 0; i < n; i++)
			for (int flip = 1; flip < 256; flip++) {
				m[i] ^= (uint8_t)flip;
				try(m, n);
				m[i] ^= (uint8_t)flip;
			}
	}
}

static void test_lengths(void)
{
	char name[MESSAGE];
	uint8_t m[MESSAGE];

	memset(name, 'n', sizeof(name));
	for (size_t len = 0; len < VV_STREAM_PROTOCOL_NAME + 20; len++)
		try(m, make(m, name, len));
	for (uint32_t len = 200; len; len = len < UINT32_MAX ? (len << 1 | 1) : 0) { /* that nobody has memory for */
		memcpy(m, &len, sizeof(len));
		try(m, make(m, name, 20) - 1);
		make(m, name, 20);
		memcpy(m, &len, sizeof(len));
		try(m, 60);
	}
}

static void *send_slowly(void *arg)
{
	const uint8_t *m = arg;
	size_t n = HEAD + m[0];

	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(send(there, m + i, 1, 0), 1);
		sched_yield();
	}
	return NULL;
}

static void test_in_pieces(void)
{
	uint8_t m[MESSAGE];
	char name[VV_STREAM_PROTOCOL_NAME];

	connect_both();
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		make(m, "pages-12345.img", 15);
		CHECK(pthread_create(&thread, NULL, send_slowly, m) == 0);
		CHECK_EQ(vv_stream_protocol_request(here, name), 1);
		CHECK_STR(name, "pages-12345.img");
		CHECK(pthread_join(thread, NULL) == 0);
	}
	hang_up();
}

static void test_one_after_another(void)
{
	uint8_t m[2 * MESSAGE];
	char name[VV_STREAM_PROTOCOL_NAME];
	size_t n = make(m, "a.img", 5);

	n += make(m + n, "bb.img", 6);
	connect_both();
	CHECK_EQ(send(there, m, n, 0), (ssize_t)n);
	close(there);
	CHECK_EQ(vv_stream_protocol_request(here, name), 1);
	CHECK_STR(name, "a.img");
	CHECK_EQ(vv_stream_protocol_request(here, name), 1);
	CHECK_STR(name, "bb.img");
	CHECK_EQ(vv_stream_protocol_request(here, name), 0);
	close(here);
}

/* ---- replies ----------------------------------------------------------------------------------------------------------------------- */

static void test_replies(void)
{
	uint8_t m[16];

	connect_both();
	for (int exists = 0; exists < 2; exists++) {
		CHECK_EQ(vv_stream_protocol_reply(here, exists), 0);
		CHECK_EQ(recv(there, m, sizeof(m), 0), 6);
		CHECK(memcmp(m, (uint8_t[]){2, 0, 0, 0, 0x08, (uint8_t)exists}, 6) == 0);
	}
	close(there);
	CHECK(vv_stream_protocol_reply(here, true) < 0); /* and no signal ends us */
	close(here);
}

/* ---- pipes ------------------------------------------------------------------------------------------------------------------------- */

static size_t count_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	CHECK(d != NULL);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* A byte, and so many descriptors with it. */
static void hand_over(const int *fd, size_t n)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(8 * sizeof(int))];
	} control = {
		.head = {.cmsg_len = CMSG_LEN(n * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS}};
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n) {
		memcpy(CMSG_DATA(&control.head), fd, n * sizeof(int));
		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n * sizeof(int));
	}
	CHECK_EQ(sendmsg(there, &m, 0), 1);
}

static void test_pipe(void)
{
	int end[2], got = -1;
	char byte;

	connect_both();
	CHECK(pipe2(end, O_CLOEXEC) == 0);
	hand_over(&end[0], 1);
	CHECK_EQ(vv_stream_protocol_pipe(here, &got), 0);
	CHECK(fcntl(got, F_GETFD) & FD_CLOEXEC);
	CHECK(read(got, &byte, 1) < 0 && errno == EAGAIN); /* it never waits */
	CHECK_EQ(write(end[1], "y", 1), 1);
	CHECK_EQ(read(got, &byte, 1), 1);
	CHECK_EQ(byte, 'y');
	close(got);
	close(end[0]);
	close(end[1]);
	hang_up();
}

/* None, too many, or nobody who hands one over. */
static void test_no_pipe(void)
{
	int end[2];

	CHECK(pipe2(end, O_CLOEXEC) == 0);
	for (size_t n = 0; n <= 9; n++) {
		int some[8] = {end[0], end[1], end[0], end[1], end[0], end[1], end[0], end[1]}, got = -1;
		size_t before;

		connect_both();
		before = count_open();
		if (n < 9)
			hand_over(some, n);
		else
			CHECK(shutdown(there, SHUT_WR) == 0);
		if (vv_stream_protocol_pipe(here, &got) == 0) {
			CHECK(n > 0);
			close(got);
		} else {
			CHECK(n != 1 && got == -1);
		}
		CHECK_EQ(count_open(), before);
		hang_up();
	}
	close(end[0]);
	close(end[1]);
}

/* ---- the socket -------------------------------------------------------------------------------------------------------------------- */

static void test_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char name[VV_STREAM_PROTOCOL_NAME];
	uint8_t m[MESSAGE];
	int listening, again;

	if (strlen(place_root()) + sizeof("/streamer-capture.sock") > sizeof(a.sun_path))
		return; /* criu's folder is never that deep: image/criu/workdir.h */
	for (int serve = 0; serve < 2; serve++) {
		CHECK_EQ(vv_stream_protocol_listen(place_root(), serve, &listening), 0);
		CHECK(vv_stream_protocol_listen(place_root(), serve, &again) < 0); /* there is one */
		snprintf(a.sun_path, sizeof(a.sun_path), "%s/streamer-%s.sock", place_root(), serve ? "serve" : "capture");
		there = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		CHECK(connect(there, (const struct sockaddr *)&a, sizeof(a)) == 0);
		CHECK_EQ(vv_stream_protocol_accept(listening, &here), 0);
		CHECK_EQ(send(there, m, make(m, "core-1.img", 10), 0), HEAD + 12);
		CHECK_EQ(vv_stream_protocol_request(here, name), 1);
		CHECK_STR(name, "core-1.img");
		hang_up();
		close(listening);
	}
	CHECK(vv_stream_protocol_listen("/nowhere", true, &listening) < 0);
}

int main(void)
{
	test_damaged_requests();
	test_lengths();
	test_in_pieces();
	test_one_after_another();
	test_replies();
	test_pipe();
	test_no_pipe();
	test_socket();
	return 0;
}
