// ctest: TIMEOUT 120 COST 4
/* Memory of every kind as a region, and what a program does to it between and during checkpoints: moved, dropped, unmapped
 * without a word, shared with another process, on the stack, overlapping; its own handlers of faults; system calls. */
#include "store/dir/dir.h"
#include "support/gatefs.h"
#include "support/gen.h"
#include "support/must.h"
#include "support/place.h"
#include "support/writers.h"
#include "track/write_protect.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

enum { PAGE = 4096, PAGES = 48, LEN = PAGES * PAGE, MANY = 6 };

static const char *const trackers[] = { "auto", "wpasync", "sigbus", "mprotect", "digest", NULL };
static const char *const buffers[] = { "buffer=0 granule=4096 block=4096", "buffer=100%", "buffer=64KiB eager=no", NULL };

struct part { /* a region, and what it held at each checkpoint */
	char name[8];
	uint8_t *p, *copy, *read;
	size_t len;
};

struct run {
	varve *v;
	char store[PLACE_MAX];
	struct part part[MANY];
	size_t n;
	uint64_t seed, epoch;
};

static bool begin(struct run *u, const char *tracker, const char *more)
{
	char options[300];
	int rc;

	*u = (struct run){ .seed = 7 };
	snprintf(options, sizeof(options), "tracker=%s log=error %s %s", tracker, more, strstr(more, "codec") ? "" : "codec=none");
	place_path(u->store, "store");
	gatefs_pass();
	rc = varve_open(u->store, "run", options, &u->v);
	MUST(rc == 0 || rc == VARVE_ENOTSUP);
	return rc == 0;
}

static void add(struct run *u, void *p, size_t len)
{
	struct part *x = &u->part[u->n];

	snprintf(x->name, sizeof(x->name), "r%zu", u->n++);
	x->p = p;
	x->len = len;
	MUST((x->copy = malloc(len + 1)) && (x->read = malloc(len + 1)));
	MUST(varve_protect(u->v, x->name, p, len) == 0);
}

static void take(struct run *u)
{
	for (size_t i = 0; i < u->n; i++)
		memcpy(u->part[i].copy, u->part[i].p, u->part[i].len);
	MUST(varve_checkpoint(u->v) == 0);
	u->epoch++;
}

static void check(struct run *u)
{
	MUST(varve_wait(u->v, u->epoch) == 0);
	for (size_t i = 0; i < u->n; i++) {
		struct part *x = &u->part[i];

		memset(x->read, 0xee, x->len);
		MUST(varve_restart_region(u->v, u->epoch, x->name, x->read, x->len) == 0);
		if (memcmp(x->read, x->copy, x->len) != 0)
			fprintf(stderr, "region %s of epoch %" PRIu64 " differs\n", x->name, u->epoch);
		MUST(memcmp(x->read, x->copy, x->len) == 0);
	}
}

static void end(struct run *u)
{
	gatefs_pass();
	MUST(varve_close(u->v) == 0);
	for (size_t i = 0; i < u->n; i++) {
		free(u->part[i].copy);
		free(u->part[i].read);
	}
	place_remove(u->store);
}

static uint8_t *map(size_t len, int flags)
{
	uint8_t *p = mmap(NULL, len, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	return p;
}

/* A few epochs: written at random, checkpointed, written all over while it is being stored. */
static void exercise(struct run *u, bool (*writable)(const struct part *x))
{
	struct area area[MANY];
	size_t n = 0;

	for (size_t i = 0; i < u->n; i++)
		if (!writable || writable(&u->part[i]))
			area[n++] = (struct area){ u->part[i].p, u->part[i].len };
	for (unsigned e = 0; e < 5; e++) {
		for (unsigned k = 0; k < (e % 2 ? 3 : 40); k++)
			writers_write(&u->seed, area, n);
		take(u);
		for (unsigned k = 0; k < 200; k++)
			writers_write(&u->seed, area, n);
		check(u);
	}
}

/* ---- kinds of memory ------------------------------------------------------------------------------------------------------ */

static uint8_t in_bss[LEN + 100];

static bool not_constant(const struct part *x)
{
	return x->name[1] != '3';
}

static void kinds(const char *tracker, const char *more)
{
	uint8_t on_stack[20 * PAGE], *readonly = map(LEN, MAP_PRIVATE), *shared = map(LEN, MAP_SHARED);
	int fd = memfd_create("varve-test", MFD_CLOEXEC);
	uint8_t *of_file;
	struct run u;

	must_begin("kinds of memory, %s, %s", tracker, more);
	MUST(fd >= 0 && ftruncate(fd, LEN) == 0);
	of_file = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	MUST(of_file != MAP_FAILED);
	if (!begin(&u, tracker, more))
		return;
	memset(on_stack, 1, sizeof(on_stack));
	memset(readonly, 3, LEN);
	MUST(mprotect(readonly, LEN, PROT_READ) == 0);
	add(&u, on_stack, sizeof(on_stack));
	add(&u, in_bss + 17, LEN);
	add(&u, shared, LEN);
	add(&u, readonly, LEN);
	add(&u, of_file, LEN);
	exercise(&u, not_constant);
	end(&u);
	MUST(mprotect(readonly, LEN, PROT_READ | PROT_WRITE) == 0);
	munmap(readonly, LEN);
	munmap(shared, LEN);
	munmap(of_file, LEN);
	close(fd);
}

/* Regions that overlap, touch, share a page, lie one in another. */
static void overlaps(const char *tracker, const char *more)
{
	uint8_t *p = map(2 * LEN, MAP_PRIVATE);
	struct run u;

	must_begin("overlapping regions, %s, %s", tracker, more);
	if (!begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	add(&u, p + LEN, 100);                        /* touches */
	add(&u, p + LEN + 100, LEN / 2);              /* shares a page */
	add(&u, p + 10 * PAGE + 7, 9 * PAGE);         /* inside */
	add(&u, p + LEN - 5 * PAGE, 10 * PAGE);       /* overlaps two */
	add(&u, p + LEN + 20 * PAGE + 100, LEN / 4);  /* inside another, to its end and further */
	exercise(&u, NULL);
	end(&u);
	munmap(p, 2 * LEN);
}

static void huge(const char *tracker, const char *more)
{
	enum { HUGE = 2 << 20 };
	uint8_t *base = map(4 * HUGE, MAP_PRIVATE), *p = base + HUGE - (uintptr_t)base % HUGE;
	struct run u;

	must_begin("huge pages, %s, %s", tracker, more);
	if (!begin(&u, tracker, more))
		return;
	madvise(p, 2 * HUGE, MADV_HUGEPAGE);
	writers_fill(p, 5, 2 * HUGE);
	add(&u, p, 2 * HUGE);
	exercise(&u, NULL);
	end(&u);
	munmap(base, 4 * HUGE);
}

/* Another process writes; told of by varve_untrack. It must see it, and may write again as soon as the call has returned. */
static void other_process(const char *tracker, const char *more)
{
	uint8_t *p = map(LEN, MAP_SHARED);
	struct run u;

	must_begin("another process writes, %s, %s", tracker, more);
	if (!begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	MUST(varve_untrack(u.v, "r0") == 0);
	for (int e = 0; e < 4; e++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			for (int k = 0; k < 10; k++)
				p[(e * 11 + k * 3) % PAGES * PAGE + k] = (uint8_t)(e + k + 1);
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0) == pid && status == 0);
		take(&u);
		pid = fork();
		if (pid == 0) {
			for (size_t k = 0; k < LEN; k += 100)
				p[k]++;
			_exit(0);
		}
		MUST(waitpid(pid, &status, 0) == pid && status == 0);
		check(&u);
	}
	end(&u);
	munmap(p, LEN);
}

/* ---- between checkpoints --------------------------------------------------------------------------------------------------- */

static void moved(const char *tracker, const char *more)
{
	uint8_t *p = map(LEN, MAP_PRIVATE), *q;
	struct run u;

	must_begin("mremap, %s, %s", tracker, more);
	if (!begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	exercise(&u, NULL);
	q = map(LEN, MAP_PRIVATE);
	MUST(varve_wait(u.v, u.epoch) == 0);
	MUST(mremap(p, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	MUST(mmap(p, LEN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == p); /* so that nobody takes it */
	MUST(varve_protect(u.v, "r0", q, LEN) == 0);
	u.part[0].p = q;
	exercise(&u, NULL);
	MUST(mremap(q, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p); /* and back, where fences once stood */
	MUST(varve_protect(u.v, "r0", p, LEN) == 0);
	u.part[0].p = p;
	exercise(&u, NULL);
	end(&u);
	munmap(p, LEN);
}

/* The sanitizers take the place of the wrappers, without which a fence does not see memory go. */
static bool sees_madvise(const char *tracker)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return strcmp(tracker, "sigbus") != 0 && strcmp(tracker, "mprotect") != 0;
#else
	(void)tracker;
	return true;
#endif
}

/* A part of a region is mapped anew, and is watched like the rest. */
static void mapped_anew(const char *tracker, const char *more)
{
	uint8_t *p = map(LEN, MAP_PRIVATE);
	struct run u;

	must_begin("mapped anew between checkpoints, %s, %s", tracker, more);
	if (!sees_madvise(tracker) || !begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	exercise(&u, NULL);
	MUST(varve_wait(u.v, u.epoch) == 0);
	MUST(mmap(p + 23 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	take(&u);
	check(&u);
	p[24 * PAGE] = 9;
	take(&u);
	check(&u);
	exercise(&u, NULL);
	end(&u);
	munmap(p, LEN);
}

/* Pages that become zero without a write. */
static void dropped(const char *tracker, const char *more)
{
	uint8_t *p = map(LEN, MAP_PRIVATE);
	struct run u;

	must_begin("madvise between checkpoints, %s, %s", tracker, more);
	if (!sees_madvise(tracker) || !begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	exercise(&u, NULL);
	for (int e = 0; e < 3; e++) {
		MUST(varve_wait(u.v, u.epoch) == 0);
		memset(p + 20 * PAGE, 7, 5 * PAGE);
		take(&u);
		check(&u);
		take(&u); /* nothing new: everything is watched by now */
		MUST(varve_wait(u.v, u.epoch) == 0);
		MUST(madvise(p + 20 * PAGE, 3 * PAGE, MADV_DONTNEED) == 0);
		take(&u);
		check(&u);
	}
	exercise(&u, NULL);
	end(&u);
	munmap(p, LEN);
}

/* ---- during a checkpoint, against the rules ---------------------------------------------------------------------------------- */

/* Unmapped without a word: the epoch fails, or it is exact. */
static void vanished(const char *tracker, const char *more, bool anew)
{
	uint8_t *p = map(LEN, MAP_PRIVATE);
	struct run u;
	int rc;

	must_begin("unmapped while flushing%s, %s, %s", anew ? " and mapped anew" : "", tracker, more);
	if (!begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	gen_text(&u.seed, p, LEN);
	take(&u);
	check(&u);
	gen_text(&u.seed, p, LEN);
	gatefs_hold(GATE_WRITE);
	take(&u);
	gatefs_await();
	MUST(syscall(SYS_munmap, p, (size_t)LEN) == 0); /* past the wrappers, which would wait */
	if (anew) {
		MUST(syscall(SYS_mmap, p, (size_t)LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
		     (long)p);
		writers_fill(p, 1, LEN);
	}
	gatefs_pass();
	rc = varve_wait(u.v, u.epoch);
	if (rc == 0)
		check(&u);
	else
		MUST(varve_last_error()[0] && varve_restart_region(u.v, u.epoch, "r0", u.part[0].read, LEN) == VARVE_ENOENT);
	MUST(rc < 0 || strstr(more, "100%"));
	MUST(varve_unprotect(u.v, "r0") == 0);
	munmap(p, LEN);
	u.part[0].p = map(LEN, MAP_PRIVATE);
	MUST(varve_protect(u.v, "r0", u.part[0].p, LEN) == 0);
	exercise(&u, NULL);
	end(&u);
	munmap(u.part[0].p, LEN);
}

/* ---- signals and system calls --------------------------------------------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t caught;
static void *volatile caught_at;

static void catch(int sig, siginfo_t *info, void *context)
{
	(void)context;
	caught = sig;
	caught_at = info->si_addr;
	siglongjmp(back, 1);
}

static void install(void)
{
	struct sigaction act = { .sa_sigaction = catch, .sa_flags = SA_SIGINFO };

	MUST(sigaction(SIGSEGV, &act, NULL) == 0 && sigaction(SIGBUS, &act, NULL) == 0);
}

static void touch(uint8_t *p, int sig)
{
	caught = 0;
	if (sigsetjmp(back, 1) == 0)
		writers_fill(p, 1, 1);
	MUST(caught == sig && caught_at == p);
}

static void handlers(const char *tracker, bool before)
{
	uint8_t *p = map(LEN, MAP_PRIVATE), *none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *beyond;
	int fd = memfd_create("varve-test", MFD_CLOEXEC);
	struct run u;

	must_begin("handlers %s varve_open, %s", before ? "before" : "after", tracker);
	beyond = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); /* of an empty file: SIGBUS */
	MUST(none != MAP_FAILED && beyond != MAP_FAILED);
	if (before)
		install();
	if (!begin(&u, tracker, buffers[0]))
		return;
	if (!before)
		install();
	add(&u, p, LEN);
	for (int e = 0; e < 3; e++) {
		gen_bytes(&u.seed, p, LEN);
		take(&u);
		touch(none, SIGSEGV);
		touch(beyond, SIGBUS);
		caught = 0;
		writers_fill(p, (uint8_t)e, LEN);
		MUST(caught == 0);
		touch(beyond + 5, SIGBUS);
		touch(none + 5, SIGSEGV);
		check(&u);
	}
	end(&u);
	touch(none, SIGSEGV);
	signal(SIGSEGV, SIG_DFL);
	signal(SIGBUS, SIG_DFL);
	munmap(p, LEN);
	munmap(none, PAGE);
	munmap(beyond, PAGE);
	close(fd);
}

static void *feed(void *arg)
{
	uint8_t bytes[3 * PAGE];

	memset(bytes, 0x5c, sizeof(bytes));
	must_nap(5);
	MUST(send(*(int *)arg, bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes));
	return NULL;
}

/* As the wrappers of libvarve.so do it: a call under way when the checkpoint comes, and one that comes after it. */
static void system_calls(const char *tracker, const char *more)
{
	uint8_t *p = map(LEN, MAP_PRIVATE), other[2 * PAGE];
	int pair[2], fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	struct run u;

	must_begin("system calls, %s, %s", tracker, more);
	MUST(fd >= 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	if (!begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	memset(other, 0x33, sizeof(other));
	for (int e = 0; e < 4; e++) {
		struct iovec here = { p + 9 * PAGE + 5, sizeof(other) }, there = { other, sizeof(other) };
		pthread_t thread;

		gen_bytes(&u.seed, p, LEN);
		take(&u);
		vv_write_protect_begin_syscall(p + PAGE + 100, 5 * PAGE);
		MUST(read(fd, p + PAGE + 100, 5 * PAGE) == 5 * PAGE);
		vv_write_protect_end_syscall();
		vv_write_protect_begin_syscall(here.iov_base, here.iov_len);
		MUST(process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof(other));
		vv_write_protect_end_syscall();
		check(&u);
		MUST(pthread_create(&thread, NULL, feed, &pair[1]) == 0);
		vv_write_protect_begin_syscall(p + 20 * PAGE, 3 * PAGE); /* begins before the checkpoint, writes after it */
		take(&u);
		MUST(recv(pair[0], p + 20 * PAGE, 3 * PAGE, MSG_WAITALL) == 3 * PAGE);
		vv_write_protect_end_syscall();
		pthread_join(thread, NULL);
		check(&u);
		take(&u); /* and that write is in the next */
		check(&u);
	}
	end(&u);
	munmap(p, LEN);
	close(fd);
	close(pair[0]);
	close(pair[1]);
}

/* A thread that receives all the time, checkpoints too: what its buffer holds in them nobody can say, but they are whole, and
 * all else in them is exact. */
static struct {
	int fd;
	uint8_t *p;
	atomic_bool stop;
} stream;

static void *receive(void *arg)
{
	(void)arg;
	while (!atomic_load(&stream.stop)) {
		vv_write_protect_begin_syscall(stream.p, 3 * PAGE);
		if (syscall(SYS_read, stream.fd, stream.p, 3 * PAGE) < 0) /* by that name ThreadSanitizer does not take it for a mistake */
			abort();
		vv_write_protect_end_syscall();
	}
	return NULL;
}

static void receiving(const char *tracker, const char *more)
{
	uint8_t *p = map(LEN, MAP_PRIVATE);
	struct part *x;
	pthread_t thread;
	struct run u;

	must_begin("receiving, %s, %s", tracker, more);
	if (!begin(&u, tracker, more))
		return;
	add(&u, p, LEN);
	x = &u.part[0];
	stream.fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
	stream.p = p + 20 * PAGE;
	atomic_store(&stream.stop, false);
	MUST(pthread_create(&thread, NULL, receive, NULL) == 0);
	for (int e = 0; e < 12; e++) {
		gen_bytes(&u.seed, p, 20 * PAGE);
		memcpy(x->copy, p, 20 * PAGE);
		memcpy(x->copy + 23 * PAGE, p + 23 * PAGE, LEN - 23 * PAGE);
		MUST(varve_checkpoint(u.v) == 0);
		u.epoch++;
		MUST(varve_wait(u.v, u.epoch) == 0);
		MUST(varve_restart_region(u.v, u.epoch, "r0", x->read, LEN) == 0);
		MUST(memcmp(x->read, x->copy, 20 * PAGE) == 0);
		MUST(memcmp(x->read + 23 * PAGE, x->copy + 23 * PAGE, LEN - 23 * PAGE) == 0);
	}
	atomic_store(&stream.stop, true);
	pthread_join(thread, NULL);
	close(stream.fd);
	end(&u);
	munmap(p, LEN);
}

int main(void)
{
	vv_dir_set_fs(gatefs());
	for (const char *const *t = trackers; *t; t++) {
		for (const char *const *b = buffers; *b; b++) {
			kinds(*t, *b);
			overlaps(*t, *b);
			other_process(*t, *b);
			moved(*t, *b);
			dropped(*t, *b);
		}
		huge(*t, buffers[0]);
		huge(*t, buffers[2]);
		handlers(*t, true);
		handlers(*t, false);
	}
	for (const char *const *t = trackers; *t; t++)
		for (int anew = 0; anew < 2; anew++) {
			vanished(*t, buffers[0], anew);
			vanished(*t, buffers[1], anew);
			vanished(*t, "buffer=16KiB codec=auto bandwidth=50MiB", anew);
			vanished(*t, "buffer=0 codec=zstd", anew);
		}
	for (const char *const *t = trackers; *t; t++)
		for (const char *const *b = buffers; *b; b++) {
			receiving(*t, *b);
			system_calls(*t, *b);
			mapped_anew(*t, *b);
		}
	return 0;
}
