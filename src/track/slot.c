/* A list of records, one per thread that ever entered, which only grows; a record is taken over after its thread has ended.
 * A slot is (lo, hi); hi = 0 is an empty one, and hi is written last and cleared first. A reader who meets the same hi
 * before and after lo may still have mixed two successive calls, but then the second one was published after the reader
 * began to look, and he who shuts a fence has told of it before he looks: that call sees it (vv_fence_enter). */
#include "track/slot.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

struct record {
	struct record *next; /* fixed once it is in the list */
	atomic_bool taken;
	struct {
		_Atomic uintptr_t lo, hi;
	} slot[VV_SLOT_DEPTH];
} __attribute__((aligned(64)));

enum { RECORDS_AT_A_TIME = 64 };

static _Atomic(struct record *) records;
static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool have_key;

/* initial-exec: the first access in a thread must not allocate, it may be in a signal handler. */
static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
	struct record *mine;
	unsigned depth;
} self;

static void give_back(void *arg)
{
	struct record *r = arg;

	self.mine = NULL;
	for (int i = 0; i < VV_SLOT_DEPTH; i++)
		atomic_store(&r->slot[i].hi, 0); /* a call that was cancelled never left */
	self.depth = 0;
	atomic_store(&r->taken, false);
}

static void make_key(void)
{
	atomic_store(&have_key, pthread_key_create(&ended, give_back) == 0);
}

static struct record *take_free(void)
{
	for (struct record *r = atomic_load(&records); r; r = r->next) {
		bool no = false;

		if (!atomic_load_explicit(&r->taken, memory_order_relaxed) && atomic_compare_exchange_strong(&r->taken, &no, true))
			return r;
	}
	return NULL;
}

/* More records, the first of them taken. mmap, as malloc may be what is being interrupted. */
static struct record *take_new(void)
{
	struct record *r = mmap(NULL, RECORDS_AT_A_TIME * sizeof(*r), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
				0);
	struct record *head = atomic_load(&records);

	if (r == MAP_FAILED)
		return NULL;
	atomic_store(&r[0].taken, true);
	for (int i = 0; i + 1 < RECORDS_AT_A_TIME; i++)
		r[i].next = &r[i + 1];
	do
		r[RECORDS_AT_A_TIME - 1].next = head;
	while (!atomic_compare_exchange_weak(&records, &head, r));
	return r;
}

static struct record *my_record(void)
{
	if (!self.mine) {
		pthread_once(&once, make_key);
		self.mine = take_free();
		if (!self.mine)
			self.mine = take_new();
		if (self.mine && atomic_load(&have_key))
			pthread_setspecific(ended, self.mine);
	}
	return self.mine;
}

void vv_slot_enter(uintptr_t lo, uintptr_t hi)
{
	struct record *r = my_record();
	unsigned i = self.depth++;

	if (!r || i >= VV_SLOT_DEPTH)
		return;
	atomic_store(&r->slot[i].lo, lo);
	atomic_store(&r->slot[i].hi, hi);
}

void vv_slot_leave(void)
{
	unsigned i = self.depth - 1;

	if (self.depth == 0) /* the thread's record was given back in between */
		return;
	if (self.mine && i < VV_SLOT_DEPTH)
		atomic_store(&self.mine->slot[i].hi, 0);
	self.depth = i;
}

void vv_slot_each(void (*fn)(void *arg, uintptr_t lo, uintptr_t hi), void *arg)
{
	for (struct record *r = atomic_load(&records); r; r = r->next)
		for (int i = 0; i < VV_SLOT_DEPTH && atomic_load(&r->taken); i++) {
			uintptr_t lo, hi = atomic_load(&r->slot[i].hi), again = hi;

			do {
				hi = again;
				lo = atomic_load(&r->slot[i].lo);
				again = atomic_load(&r->slot[i].hi);
			} while (again != hi);
			if (lo < hi)
				fn(arg, lo, hi);
		}
}

void vv_slot_forked(void)
{
	for (struct record *r = atomic_load(&records); r; r = r->next) {
		if (r == self.mine || !atomic_load(&r->taken))
			continue;
		for (int i = 0; i < VV_SLOT_DEPTH; i++)
			atomic_store(&r->slot[i].hi, 0);
		atomic_store(&r->taken, false);
	}
}
