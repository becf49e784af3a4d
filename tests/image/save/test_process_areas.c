/* The memory of this very process: what lies at addresses that we know is called by its name, at every offset of a file of pages, as far as the map of them
 * goes. A process that cannot be looked at has memory of no name. */
#include "base/err.h"
#include "base/mem.h"
#include "image/process/process_tree.h"
#include "image/save/process_areas.h"
#include "support/dice.h"
#include "support/proto.h"
#include "vv_test.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAGIC = 0x56084025, PRESENT = 4, KNOWN = 10, ABSENT = 0x1000 };

static struct known {
	uint64_t addr;
	uint8_t segment;
	const char *name; /* NULL: any */
	unsigned pages;
	uint64_t at; /* in the file */
} known[KNOWN];
static size_t n_known;

static size_t page;
static int gate[2];
static char *volatile thread_stack;
static atomic_int thread_number;
static char data = 1;

static void *stand_still(void *arg)
{
	char on_stack = 0;

	(void)arg;
	thread_stack = &on_stack;
	atomic_store(&thread_number, (int)syscall(SYS_gettid));
	(void)!read(gate[0], &on_stack, 1);
	return NULL;
}

/* False: nobody can say where a thread stands. */
static bool wait_until_still(void)
{
	char name[64], text[256] = "running";

	while (!atomic_load(&thread_number))
		sched_yield();
	snprintf(name, sizeof(name), "task/%d/syscall", atomic_load(&thread_number));
	while (strncmp(text, "running", 7) == 0)
		if (vv_process_tree_read(getpid(), name, text, sizeof(text)) <= 0)
			return false;
	return true;
}

static void know(const volatile void *addr, uint8_t segment, const char *name)
{
	CHECK(n_known < KNOWN);
	known[n_known++] = (struct known){(uintptr_t)addr / page * page, segment, name, 1, 0};
}

static int by_address(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static void find_out(void)
{
	uint8_t *anon = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *shared = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char on_stack;

	CHECK(anon != MAP_FAILED && shared != MAP_FAILED);
	CHECK(mprotect(anon, page, PROT_NONE) == 0 &&
	      mprotect(anon + 7 * page, page, PROT_NONE) == 0); /* nobody is beside it */
	know(sbrk((intptr_t)page), VV_SEGMENT_HEAP, "heap");
	know(&on_stack, VV_SEGMENT_STACK, "stack");
	if (wait_until_still())
		know(thread_stack, VV_SEGMENT_STACK, "stack");
	know((void *)(uintptr_t)find_out, VV_SEGMENT_CODE, "test_image_process_areas/text");
	know(&data, VV_SEGMENT_CODE, "test_image_process_areas/data");
	know(shared, VV_SEGMENT_SHARED, NULL);
	know(anon + page, VV_SEGMENT_ANON, "anon");
	if (getauxval(AT_SYSINFO_EHDR))
		know((void *)getauxval(AT_SYSINFO_EHDR), VV_SEGMENT_VDSO, "vdso");
	qsort(known, n_known, sizeof(*known), by_address);
}

static void add(struct vv_buf *b, uint64_t addr, uint64_t count, uint64_t flags)
{
	struct vv_buf e = {0};

	proto_number(&e, 1, addr);
	proto_number(&e, 2, count);
	proto_number(&e, 4, flags);
	proto_entry(b, &e);
}

/* One page of each, of which some are in the parent, and so not in the file; end[i]: of the bytes that tell of i of them. */
static uint64_t make_map(struct vv_buf *b, size_t end[KNOWN + 1])
{
	struct vv_buf head = {0};
	uint64_t at = 0;

	proto_magic(b, MAGIC);
	proto_number(&head, 1, 1);
	proto_entry(b, &head);
	end[0] = b->n;
	for (size_t i = 0; i < n_known; i++) {
		if (upto(3) == 0)
			add(b, ABSENT, 3, 1);
		add(b, known[i].addr, 1, PRESENT);
		known[i].at = at;
		at += page;
		end[i + 1] = b->n;
	}
	return at;
}

static void check_found(const struct vv_process_areas *a, size_t told, uint64_t len)
{
	for (size_t i = 0; i < n_known; i++) {
		uint64_t at = known[i].at + upto(page - 1);
		size_t some = 1 + upto(3 * page), asked = some;
		const char *name = NULL;
		uint8_t segment = 99;

		vv_process_areas_find(a, at, &some, &name, &segment);
		CHECK(some > 0 && some <= asked && name);
		if (i < told && at < len) {
			CHECK_EQ(segment, known[i].segment);
			CHECK(at + some <= known[i].at + page || segment == known[i + 1].segment);
			if (known[i].name)
				CHECK_STR(name, known[i].name);
		} else {
			CHECK_EQ(segment, VV_SEGMENT_ANON);
			CHECK_STR(name, "anon");
		}
	}
}

static void test_own_memory(void)
{
	struct vv_process_areas a;

	CHECK_EQ(vv_process_areas_open(&a, getpid()), 0);
	for (int round = 0; round < 50; round++) {
		size_t end[KNOWN + 1];
		struct vv_buf b = {0};
		uint64_t len = make_map(&b, end);

		for (size_t n = 0; n <= b.n; n++) { /* the map comes bit by bit */
			uint8_t *exact = malloc(n ? n : 1);
			size_t told = 0;

			CHECK(exact);
			memcpy(exact, b.p, n);
			while (told < n_known && end[told + 1] <= n)
				told++;
			CHECK_EQ(vv_process_areas_place(&a, exact, n, len), 0);
			free(exact);
			check_found(&a, told, len);
		}
		CHECK_EQ(vv_process_areas_place(&a, b.p, b.n, len / 2), 0);
		check_found(&a, n_known, len / 2);
		vv_buf_fini(&b);
	}
	vv_process_areas_close(&a);
}

/* Whatever a map of pages says, somebody is told of every byte. */
static void test_damaged(void)
{
	struct vv_process_areas a;
	size_t end[KNOWN + 1];
	struct vv_buf b = {0};
	uint64_t len = make_map(&b, end);

	CHECK_EQ(vv_process_areas_open(&a, getpid()), 0);
	for (size_t i = 0; i < b.n; i++)
		for (int flip = 1; flip < 256; flip += 1 + (int)upto(3)) {
			b.p[i] ^= (uint8_t)flip;
			CHECK_EQ(vv_process_areas_place(&a, b.p, b.n, len), 0);
			for (uint64_t at = 0; at < len;) {
				size_t some = (size_t)(len - at);
				const char *name = NULL;
				uint8_t segment;

				vv_process_areas_find(&a, at, &some, &name, &segment);
				CHECK(some > 0 && some <= len - at && name && name[0]);
				at += some;
			}
			b.p[i] ^= (uint8_t)flip;
		}
	vv_process_areas_close(&a);
	vv_buf_fini(&b);
}

static void test_nobody(void)
{
	size_t end[KNOWN + 1];
	struct vv_buf b = {0};
	struct vv_process_areas a;
	uint64_t len = make_map(&b, end);
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK_EQ(vv_process_areas_open(&a, pid), 0);
	CHECK_EQ(vv_process_areas_place(&a, b.p, b.n, len), 0);
	check_found(&a, 0, len);
	vv_process_areas_close(&a);
	vv_buf_fini(&b);
}

static void test_no_memory(void)
{
	int rc = VV_ENOMEM;

	for (long at = 1; rc; at++) {
		struct vv_process_areas a;

		vv_mem_fail_at(at);
		rc = vv_process_areas_open(&a, getpid());
		vv_mem_fail_at(0);
		CHECK(rc == 0 || rc == VV_ENOMEM);
		vv_process_areas_close(&a);
	}
}

static void test_pids(void)
{
	struct vv_process_areas_pid *p;
	pid_t child = fork();
	size_t n;

	if (child == 0)
		for (;;)
			pause();
	CHECK(child > 0);
	CHECK_EQ(vv_process_areas_pids(getpid(), &p, &n), 0);
	CHECK_EQ(n, 2);
	CHECK(p[0].outside == getpid() && p[1].outside == child && p[0].inside > 0 && p[1].inside > 0);
	vv_mem_free(p);
	kill(child, SIGKILL);
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK_EQ(vv_process_areas_pids(child, &p, &n), 0); /* that is no more */
	CHECK_EQ(n, 0);
	vv_mem_free(p);
}

int main(void)
{
	pthread_t thread;

	page = (size_t)sysconf(_SC_PAGESIZE);
	CHECK(pipe(gate) == 0 && pthread_create(&thread, NULL, stand_still, NULL) == 0);
	find_out();
	test_own_memory();
	test_damaged();
	test_nobody();
	test_no_memory();
	test_pids();
	CHECK(write(gate[1], "", 1) == 1 && pthread_join(thread, NULL) == 0);
	return 0;
}
