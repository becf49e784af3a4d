// ctest: TIMEOUT 60
// Every function that libvarve stands in front of, with its output in shut pages: at a page's start, inside, across a border,
// and at the end. It must give the right result, and must have asked for every page of the output. A name in wrap_names.h
// without a case here does not compile.
#include "preload/wrap/wrap.h" // first: it keeps the headers from renaming pread to pread64
#include "support/place.h"
#include "write_protect_kinds.h"
#include "vv_test.h"

#include "base/err.h"
#include <dlfcn.h>
#include <net/if.h>
#include <stddef.h>
#include <sys/un.h>
#include <termios.h>

enum { PAGES = 8 };

static size_t page;
static char *region;
static struct vv_write_protect *write_protect;
static bool asked[PAGES];
static bool unavailable; // this system does not have what the case needs

// ---- what the cases use ----

static char folder[PLACE_MAX];
static char data_path[PLACE_MAX + 8], link_path[PLACE_MAX + 8];
static int data_fd, ends[2], other;
static FILE *stream;
static timer_t timer;
static struct sockaddr_un peer = { .sun_family = AF_UNIX };
static socklen_t peer_len;

static unsigned char data_at(size_t i)
{
	return (unsigned char)(i * 7 + (i >> 8) + 1);
}

static bool is_data(const void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (((const unsigned char *)p)[i] != data_at(i))
			return false;
	return true;
}

static char data_copy[300];

static bool any_set(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return true;
	return false;
}

static void make_files(void)
{
	place_make_dir(place_path(folder, "wrap"));
	CHECK(chdir(folder) == 0);
	snprintf(data_path, sizeof(data_path), "%s/data", folder);
	snprintf(link_path, sizeof(link_path), "%s/link", folder);
	data_fd = open(data_path, O_RDWR | O_CREAT, 0600);
	CHECK(data_fd >= 0 && symlink("data", link_path) == 0);
	for (size_t i = 0; i < sizeof(data_copy); i++)
		data_copy[i] = (char)data_at(i);
	for (size_t i = 0; i < 4 * page; i++)
		CHECK(pwrite(data_fd, &(unsigned char){ data_at(i) }, 1, (off_t)i) == 1);
}

static void drop_files(void)
{
	unlink(data_path);
	unlink(link_path);
	rmdir(folder);
}

static void rewind_data(void)
{
	CHECK(lseek(data_fd, 0, SEEK_SET) == 0);
}

static void open_stream(void)
{
	CHECK((stream = fopen(data_path, "r")) != NULL);
}

static bool close_stream(bool ok)
{
	return fclose(stream) == 0 && ok;
}

static void open_pair(int type)
{
	CHECK(socketpair(AF_UNIX, type, 0, ends) == 0);
}

static bool close_ends(bool ok)
{
	return close(ends[0]) == 0 && close(ends[1]) == 0 && ok;
}

static void send_data(int fd, size_t n)
{
	unsigned char bytes[256];
	for (size_t i = 0; i < n; i++)
		bytes[i] = data_at(i);
	CHECK(write(fd, bytes, n) == (ssize_t)n);
}

static void open_full_pipe(void)
{
	CHECK(pipe(ends) == 0);
	send_data(ends[1], 5);
}

// ends[0] has a name of its own (peer), ends[1] is unnamed; a datagram of 100 bytes lies between them or a connection does
static void bind_peer(int type)
{
	ends[0] = socket(AF_UNIX, type, 0);
	ends[1] = socket(AF_UNIX, type, 0);
	int n = snprintf(peer.sun_path + 1, sizeof(peer.sun_path) - 1, "varve-wrap-%d", (int)getpid());
	peer_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	CHECK(bind(ends[0], (struct sockaddr *)&peer, peer_len) == 0);
}

static void send_datagram(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(to);
	bind_peer(SOCK_DGRAM);
	CHECK(bind(ends[1], (struct sockaddr *)&to, sizeof(sa_family_t)) == 0); // the kernel picks a name
	CHECK(getsockname(ends[1], (struct sockaddr *)&to, &len) == 0);
	CHECK(connect(ends[0], (struct sockaddr *)&to, len) == 0);
	send_data(ends[0], 100);
}

static void connect_peer(void)
{
	bind_peer(SOCK_STREAM);
	CHECK(listen(ends[0], 4) == 0 && connect(ends[1], (struct sockaddr *)&peer, peer_len) == 0);
}

static bool is_peer(const void *addr, socklen_t len)
{
	return len == peer_len && memcmp(addr, &peer, len) == 0;
}

struct named {
	struct sockaddr_un addr;
	socklen_t len;
	char data[100];
};

static void offer_name(char *out)
{
	((struct named *)out)->len = sizeof(struct sockaddr_un);
}

static bool accepted(int fd, const char *out)
{
	const struct named *n = (const void *)out;
	bool ok = fd >= 0 && n->len == sizeof(sa_family_t) && n->addr.sun_family == AF_UNIX; // who connected has no name
	return close(fd) == 0 && close_ends(ok);
}

struct message {
	struct mmsghdr msg;
	struct iovec iov[2];
	struct sockaddr_un addr;
	char control[64], data[100];
};

static void offer_message(struct message *m)
{
	*m = (struct message){ .iov = { { m->data, 40 }, { m->data + 40, 60 } } };
	m->msg.msg_hdr = (struct msghdr){ .msg_iov = m->iov, .msg_iovlen = 2, .msg_name = &m->addr,
					  .msg_namelen = sizeof(m->addr), .msg_control = m->control,
					  .msg_controllen = sizeof(m->control) };
}

static bool is_message(const struct message *m)
{
	return is_data(m->data, 100) && is_peer(&m->addr, m->msg.msg_hdr.msg_namelen) && m->msg.msg_hdr.msg_controllen == 0;
}

// two messages, and behind them their heads side by side, as recvmmsg takes them
static void offer_messages(char *out)
{
	struct message *m = (void *)out;
	struct mmsghdr *heads = (void *)(m + 2);
	for (int i = 0; i < 2; i++) {
		offer_message(&m[i]);
		heads[i] = m[i].msg;
	}
}

static bool are_messages(char *out)
{
	struct message *m = (void *)out;
	struct mmsghdr *heads = (void *)(m + 2);
	for (int i = 0; i < 2; i++) {
		m[i].msg = heads[i];
		if (heads[i].msg_len != 100 || !is_message(&m[i]))
			return false;
	}
	return true;
}

// two messages of the same bytes, to be sent
static void offer_parcels(char *out)
{
	static struct iovec bytes;
	struct mmsghdr *heads = (void *)out;

	bytes = (struct iovec){ data_copy, 100 };
	for (int i = 0; i < 2; i++)
		heads[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &bytes, .msg_iovlen = 1 } };
}

struct selected {
	fd_set in, out, except;
	struct timeval timeout;
};

static void offer_sets(char *out)
{
	struct selected *s = (void *)out;
	open_full_pipe();
	memset(s, 0, sizeof(*s));
	FD_SET(ends[0], &s->in);
	FD_SET(ends[1], &s->out);
	FD_SET(ends[0], &s->except);
	s->timeout.tv_sec = 1;
}

static bool are_selected(int rc, char *out)
{
	struct selected *s = (void *)out;
	return close_ends(rc == 2 && FD_ISSET(ends[0], &s->in) && FD_ISSET(ends[1], &s->out) &&
			  !FD_ISSET(ends[0], &s->except));
}

static void offer_pollfd(char *out)
{
	open_full_pipe();
	*(struct pollfd *)out = (struct pollfd){ .fd = ends[0], .events = POLLIN };
}

static bool is_polled(int rc, char *out)
{
	return close_ends(rc == 1 && ((struct pollfd *)out)->revents == POLLIN);
}

static void open_epoll(void)
{
	open_full_pipe();
	other = epoll_create1(0);
	CHECK(epoll_ctl(other, EPOLL_CTL_ADD, ends[0], &(struct epoll_event){ .events = EPOLLIN, .data.u64 = 4711 }) == 0);
}

static bool is_event(int rc, char *out)
{
	struct epoll_event *e = (void *)out;
	return close(other) == 0 && close_ends(rc == 1 && e->events == EPOLLIN && e->data.u64 == 4711);
}

static bool is_data_stat(int rc, mode_t mode, off_t size)
{
	return rc == 0 && S_ISREG(mode) && size == (off_t)(4 * page);
}

#define IS_STAT(rc, type) ((rc) == 0 && is_data_stat(0, ((type *)out)->st_mode, ((type *)out)->st_size)) // in this order
#define IS_LINK(rc, type) ((rc) == 0 && S_ISLNK(((type *)out)->st_mode))
#define IS_FS(rc, type) ((rc) == 0 && ((type *)out)->f_bsize > 0)

static void have_child(void)
{
	other = fork();
	if (other == 0)
		_exit(3);
	CHECK(other > 0);
}

static bool is_child(int rc, const char *out)
{
	int status = *(const int *)out;
	return rc == other && WIFEXITED(status) && WEXITSTATUS(status) == 3;
}

struct child {
	int status;
	struct rusage usage;
};

static bool is_child_usage(int rc, const char *out)
{
	return is_child(rc, out) && ((const struct child *)out)->usage.ru_maxrss > 0;
}

static void wake(int sig)
{
	(void)sig;
}

// And again: the first may come before it sleeps.
static void wake_soon(void)
{
	CHECK(sigaction(SIGALRM, &(struct sigaction){ .sa_handler = wake }, NULL) == 0);
	CHECK(setitimer(ITIMER_REAL, &(struct itimerval){ .it_value.tv_usec = 3000, .it_interval.tv_usec = 50000 }, NULL) == 0);
}

static bool woke_early(const char *out)
{
	const struct timespec *left = (const void *)out;
	return setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL) == 0 && left->tv_sec <= 9 && left->tv_sec + left->tv_nsec > 0;
}

static const struct timespec ten_seconds = { .tv_sec = 10 };
static const struct itimerspec an_hour = { .it_value.tv_sec = 3600 };

static bool is_hour(int rc, const char *out)
{
	const struct itimerspec *left = (const void *)out;
	return rc == 0 && left->it_value.tv_sec >= 3590 && left->it_value.tv_sec <= 3600;
}

static void have_timer(void)
{
	CHECK(timer_create(CLOCK_MONOTONIC, &(struct sigevent){ .sigev_notify = SIGEV_NONE }, &timer) == 0);
	CHECK(timer_settime(timer, 0, &an_hour, NULL) == 0);
}

static void have_timerfd(void)
{
	other = timerfd_create(CLOCK_MONOTONIC, 0);
	CHECK(other >= 0 && timerfd_settime(other, 0, &an_hour, NULL) == 0);
}

static const sigset_t *usr1(void)
{
	static sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return &set;
}

static void have_pending(void)
{
	CHECK(pthread_sigmask(SIG_BLOCK, usr1(), NULL) == 0 && pthread_kill(pthread_self(), SIGUSR1) == 0);
}

static bool unblock(void)
{
	return sigprocmask(SIG_UNBLOCK, usr1(), NULL) == 0;
}

static bool take_usr1(void)
{
	siginfo_t info;
	return sigtimedwait(usr1(), &info, &ten_seconds) == SIGUSR1 && unblock();
}

static bool old_mask_was(int rc, const char *out)
{
	sigset_t now;
	bool ok = rc == 0 && sigismember((const sigset_t *)out, SIGUSR1) == 0;
	return sigprocmask(SIG_UNBLOCK, usr1(), &now) == 0 && ok && sigismember(&now, SIGUSR1) == 1;
}

static void have_message(void)
{
	struct {
		long type;
		char text[20];
	} m = { .type = 5, .text = "hello" };
	other = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
	unavailable = other < 0;
	CHECK(unavailable || msgsnd(other, &m, sizeof(m.text), 0) == 0);
}

static bool is_msg(ssize_t n, const char *out)
{
	return msgctl(other, IPC_RMID, NULL) == 0 && n == 20 && *(const long *)out == 5 &&
	       strcmp(out + sizeof(long), "hello") == 0;
}

static void have_queue(void)
{
	struct mq_attr attr = { .mq_maxmsg = 2, .mq_msgsize = 100 };
	char name[32];
	snprintf(name, sizeof(name), "/varve-wrap-%d", (int)getpid());
	other = mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	unavailable = other < 0;
	CHECK(unavailable || (mq_unlink(name) == 0 && mq_send(other, "hello", 6, 7) == 0));
}

static bool is_queued(ssize_t n, const char *out)
{
	return mq_close(other) == 0 && n == 6 && strcmp(out, "hello") == 0 && *(const unsigned *)(out + 100) == 7;
}

static struct iovec *iov(char *out)
{
	static struct iovec v[3];
	v[0] = (struct iovec){ out, 50 };
	v[1] = (struct iovec){ NULL, 0 };
	v[2] = (struct iovec){ out + 50, 250 };
	return v;
}

static bool is_moved(char *moved)
{
	bool ok = moved != MAP_FAILED && is_data(moved, 2 * page);
	return munmap(moved, 2 * page) == 0 && ok;
}

static char *elsewhere(void)
{
	return mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static bool is_elsewhere(char *p)
{
	return p != MAP_FAILED && p != region && munmap(p, page) == 0;
}

static void fill(char *out)
{
	for (size_t i = 0; i < 2 * page; i++)
		out[i] = (char)data_at(i);
}

static void open_terminal(void)
{
	other = posix_openpt(O_RDWR | O_NOCTTY);
	unavailable = other < 0 || ioctl(other, TIOCSWINSZ, &(struct winsize){ .ws_col = 99 }) != 0;
}

static void open_lines(void)
{
	static char lines[] = "12\n34\n";
	CHECK((stream = fmemopen(lines, sizeof(lines) - 1, "r")) != NULL);
}

enum { FIXED = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED };
#ifdef __aarch64__
enum { XSTAT = 0 };
#else
enum { XSTAT = 1 };
#endif
#define NAMED ((struct named *)out)
#define MESSAGE ((struct message *)out)
#define PARCELS ((struct mmsghdr *)out)
#define SELECTED ((struct selected *)out)
#define EVENTS ((struct epoll_event *)out)
#define CHILD ((struct child *)out)

#include "cases.h"

// ---- the run ----

static void ask(void *arg, uintptr_t at)
{
	(void)arg;
	size_t i = (at - (uintptr_t)region) / page;
	CHECK(at % page == 0 && i < PAGES);
	asked[i] = true;
	errno = ENOTTY; // nothing of this may show
	CHECK_EQ(vv_write_protect_disable(write_protect, at, at + page), 0);
}

static void count(void *arg, uintptr_t lo, uintptr_t hi)
{
	(void)lo, (void)hi;
	++*(int *)arg;
}

static void run(const struct test_case *c, enum vv_write_protect_kind kind, size_t offset)
{
	uintptr_t lo = (uintptr_t)region, hi = lo + PAGES * page;
	char *out = region + offset;
	size_t size = c->size();
	unavailable = false;
	memset(asked, 0, sizeof(asked));
	CHECK_EQ(vv_write_protect_new(kind, ask, NULL, &write_protect), 0);
	CHECK_EQ(vv_write_protect_add(write_protect, lo, hi), 0);
	c->before(out);
	CHECK_EQ(vv_write_protect_enable(write_protect, lo, hi), 0);
	errno = EXDEV;
	bool ok = unavailable || c->call(out);
	if (errno != EXDEV && errno != EINTR)
		fprintf(stderr, "%s leaves errno %d\n", c->name, errno);
	ok = ok && (unavailable || errno == EXDEV || errno == EINTR);
	if (!ok)
		fprintf(stderr, "%s, output at page %zu + %zu: %s\n", c->name, offset / page, offset % page, strerror(errno));
	CHECK(ok);
	for (size_t i = 0; i < PAGES && !unavailable; i++) {
		bool wanted = size > 0 && i >= offset / page && i <= (offset + size - 1) / page;
		if (asked[i] != wanted)
			fprintf(stderr, "%s, output at page %zu + %zu, %zu bytes: page %zu was%s asked for\n", c->name,
				offset / page, offset % page, size, i, wanted ? " not" : "");
		CHECK_EQ(asked[i], wanted);
	}
	int entered = 0;
	vv_write_protect_each_syscall(count, &entered);
	CHECK_EQ(entered, 0);
	vv_write_protect_free(write_protect);
}

static void run_all_places(const struct test_case *c, enum vv_write_protect_kind kind)
{
	size_t size = c->size(), align = 16;
	size_t places[] = { page, page + 256, 3 * page - (size / 2 + align - 1) / align * align,
			    PAGES * page - (size + align - 1) / align * align };
	bool whole = size == 0 || size % page == 0; // nothing, or pages
	for (size_t i = 0; i < (whole ? 1 : sizeof(places) / sizeof(*places)); i++) {
		region = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(region != MAP_FAILED);
		memset(region, 0, PAGES * page);
		run(c, kind, places[i]);
		CHECK_EQ(munmap(region, PAGES * page), 0);
	}
	if (unavailable)
		printf("not to be had here: %s\n", c->name);
}

int main(void)
{
	if (dlsym(RTLD_DEFAULT, "read") == dlsym(RTLD_NEXT, "read"))
		SKIP("this build does not stand in front of the C library");
	page = (size_t)sysconf(_SC_PAGESIZE);
	make_files();
	atexit(drop_files);
	for (enum vv_write_protect_kind kind = VV_WRITE_PROTECT_MPROTECT; kind <= VV_WRITE_PROTECT_SIGBUS; kind++)
		for (const struct test_case *c = cases; have_fences(kind, ask) && c->name; c++)
			run_all_places(c, kind);
	return 0;
}
