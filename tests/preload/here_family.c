/* Every way to allocate gives memory of the heap to the program. What the C library allocates for it: here_gifts.c. */
#include "expect.h"
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_sizes(void)
{
	for (size_t n = 0; n < 200000; n = n < 300 ? n + 1 : n * 9 / 8) {
		char *p = malloc(n), *q;

		memset(p, 1, n);
		expect("malloc: room", malloc_usable_size(p) >= n);
		expect("malloc: alignment", (uintptr_t)p % 16 == 0);
		q = realloc(p, n * 2 + 1);
		for (size_t i = 0; i < n; i++)
			if (q[i] != 1) {
				expect("realloc: content", 0);
				break;
			}
		free(q);
	}
}

/* To the last byte of its room, which the compiler does not know of: it would see a write beyond what was asked for. */
static __attribute__((noinline)) void soil(void *p)
{
	memset(p, 255, malloc_usable_size(p));
}

/* What calloc gives is clear to the last byte of its room, though the object before it was not. */
static void check_cleared(void)
{
	for (size_t n = 0; n < 3000; n = n < 300 ? n + 1 : n * 9 / 8) {
		unsigned char *p[20], any = 0;

		for (int i = 0; i < 20; i++) {
			p[i] = malloc(n);
			soil(p[i]);
		}
		for (int i = 0; i < 20; i++)
			free(p[i]);
		for (int i = 0; i < 20; i++) {
			p[i] = calloc(n % 3 ? 1 : 3, n % 3 ? n : n / 3);
			for (size_t k = 0; k < malloc_usable_size(p[i]); k++)
				any |= p[i][k];
		}
		for (int i = 0; i < 20; i++)
			free(p[i]);
		expect("calloc: cleared", !any);
	}
}

/* From each size to each other, up and down, beside others that must not be touched. */
static void check_resized(void)
{
	for (size_t from = 1; from < 2600; from += from / 8 + 1)
		for (size_t to = 1; to < 2600; to += to / 8 + 1) {
			size_t kept = from < to ? from : to;
			char *p = memset(malloc(from), 1, from), *other = memset(malloc(to), 2, to), *q = realloc(p, to);
			int wrong = malloc_usable_size(q) < to || q == other;

			for (size_t i = 0; i < kept; i++)
				wrong |= q[i] != 1;
			memset(q, 3, to);
			for (size_t i = 0; i < to; i++)
				wrong |= other[i] != 2;
			expect("realloc: small ones", !wrong);
			free(other);
			free(q);
		}
}

static long resident_mib(void)
{
	long pages = 0, all;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%ld %ld", &all, &pages) != 2)
		pages = 0;
	if (f)
		fclose(f);
	return pages * sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* An array of which little is written takes little; unless the kernel has large pages for all. */
static void check_sparse(void)
{
	static const size_t n = (size_t)512 << 20;
	char line[100] = "", *p;
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
	long before;

	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	if (strstr(line, "[always]"))
		return;
	before = resident_mib();
	p = calloc(1, n);
	for (size_t i = 0; i < n; i += 1 << 21)
		p[i] = 1;
	expect("an array of which little is written", resident_mib() - before < 100);
	free(p);
}

static void check_errors(void)
{
	volatile size_t much = SIZE_MAX - 100, half = SIZE_MAX / 2;
	void *p = &bad;

	errno = 0;
	expect("malloc: too much", !malloc(much) && errno == ENOMEM);
	errno = 0;
	expect("calloc: overflow", !calloc(half, 3) && errno == ENOMEM);
	errno = 0;
	expect("reallocarray: overflow", !reallocarray(NULL, half, 3) && errno == ENOMEM);
	errno = 0;
	expect("posix_memalign: no power of two", posix_memalign(&p, 24, 100) == EINVAL && p == &bad && errno == 0);
	expect("posix_memalign: too much", posix_memalign(&p, 64, much) == ENOMEM && p == &bad);
	expect("memalign: too much", !memalign(64, much) && errno == ENOMEM);
	errno = 0;
	expect("aligned_alloc: too much", !aligned_alloc(4096, much & ~(size_t)4095) && errno == ENOMEM);
	errno = 0;
	expect("pvalloc: no whole pages", !pvalloc(much) && errno == ENOMEM);
	errno = 0;
	expect("valloc: too much", !valloc(much) && errno == ENOMEM);
	p = malloc(100);
	expect("realloc: too much", !realloc(p, much) && malloc_usable_size(p) >= 100);
	free(p);
	for (size_t n = 16; n < 200000; n += n / 9 + 1) { /* no size is taken for another */
		p = malloc(n);
		for (much = SIZE_MAX / 2; much > (size_t)1 << 44; much -= much / 8)
			expect("realloc: far too much", !realloc(p, much));
		free(p);
	}
	p = memalign(64, 16);
	expect("realloc: of what is aligned", malloc_usable_size(p) >= 64 && realloc(p, 64) == p);
	free(p);
	free(NULL);
	expect("malloc_usable_size of nothing", malloc_usable_size(NULL) == 0);
}

int main(void)
{
	void *p = NULL;

	expect("malloc", is_heap(malloc(10)));
	expect("calloc", is_heap(calloc(3, 10)));
	expect("realloc", is_heap(realloc(malloc(3), 100000)) && is_heap(realloc(NULL, 5)));
	expect("reallocarray", is_heap(reallocarray(NULL, 5, 7)));
	expect("memalign", is_heap(p = memalign(4096, 100)) && (uintptr_t)p % 4096 == 0);
	expect("aligned_alloc", is_heap(p = aligned_alloc(256, 512)) && (uintptr_t)p % 256 == 0);
	expect("posix_memalign", posix_memalign(&p, 1 << 21, 100) == 0 && is_heap(p) && (uintptr_t)p % (1 << 21) == 0);
	expect("valloc", is_heap(valloc(10)));
	expect("pvalloc", is_heap(pvalloc(10)));
	errno = 0;
	expect("realloc that fails", !realloc(malloc(3), SIZE_MAX / 4) && errno == ENOMEM);
	check_sizes();
	check_cleared();
	check_resized();
	check_sparse();
	check_errors();
	puts(bad ? "bad" : "good");
	return bad != 0;
}
