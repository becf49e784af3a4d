/* What the benchmarks share: arguments, clocks, medians, result lines, content, files, and the plain I/O that we are
 * measured against. A benchmark that cannot do its work ends the program with status 2. */
#ifndef VV_BENCH_SUPPORT_H
#define VV_BENCH_SUPPORT_H

#include "base/pool.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <varve/varve.h>

enum { BENCH_PAGE = 4096, BENCH_STEP = 1 << 20, BENCH_ROUNDS_MAX = 101 };

struct bench {
	size_t size;       /* bytes of memory to checkpoint */
	size_t asked;      /* the same if --size was given, or 0 */
	int rounds;
	bool full;
	char dir[3072];    /* an empty directory of ours, on the disk to be measured */
	const char *field; /* a file with a real field, or NULL */
	const char *varve; /* the command */
	const char *graphlets; /* the example, or NULL */
	const char *data;  /* a folder with recorded series, or NULL */
	const char *only;  /* the series whose names begin so, or NULL: all */
	struct vv_pool *pool; /* as many threads as the library uses by default */
	int argc;
	char **argv;       /* the names that were asked for; none = all */
};

/* [--size N[K|M|G]] [--rounds N] [--dir DIR] [--field FILE] [--varve PATH] [--graphlets PATH] [--data DIR] [--only TEXT]
 * [--full] NAME... */
void bench_open(struct bench *b, int argc, char **argv);
/* Removes the directory and everything in it; the program's exit status. */
int bench_close(struct bench *b);
/* For a benchmark with a size of its own: what --size asked for, or one of these. */
size_t bench_size(const struct bench *b, size_t usual, size_t full);
bool bench_wants(const struct bench *b, const char *name);
_Noreturn void bench_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* What it needs is not there: bench/run goes on with the others. */
_Noreturn void bench_skip(const char *why);
/* A negative code of the library is the end. */
int bench_check(int rc, const char *what);

/* ---- results */

double bench_median(double *v, int n); /* sorts v */
void bench_line(const char *bench, const char *kase, const char *metric, double value, const char *unit);
/* A figure of what we are compared with: if it changes, we have not become better or worse. */
void bench_baseline(const char *bench, const char *kase, const char *metric, double value, const char *unit);
/* A line with a target: the value must be at most (or at least) the limit. */
void bench_at_most(const char *bench, const char *kase, const char *metric, double value, const char *unit, double limit);
void bench_at_least(const char *bench, const char *kase, const char *metric, double value, const char *unit, double limit);

/* ---- content */

uint64_t bench_random(uint64_t *state);                       /* splitmix64 */
void bench_fill(struct bench *b, void *p, size_t n, uint64_t seed); /* random bytes, on all cores */
/* Some of the pages 0..total-1, at random, ascending. */
void bench_pick(uint32_t *list, size_t total, size_t pages, uint64_t seed);
void bench_shuffle(uint32_t *list, size_t n, uint64_t seed);
/* New random content in `pages` different pages of p (n bytes): those that bench_pick gives for the same seed. */
void bench_change(void *p, size_t n, size_t pages, uint64_t seed);
/* The same, in so many pages at a time that lie side by side. */
void bench_change_stretches(void *p, size_t n, size_t pages, size_t stretch, uint64_t seed);
void *bench_memory(size_t n); /* touched */
/* Regions of n bytes that take turns at getting their pages from the kernel. What hashing, fencing and copying cost depends on where pages lie: of regions touched one after the
 * other, the first was seen to take 1.15 times, in one mprotect 1.5 times as long as the last. */
void bench_memory_alike(uint8_t **p, size_t regions, size_t n);

/* ---- a session with one region, the memory p, in a store of its own */

struct bench_session {
	varve *v;
	uint8_t *p;
	size_t n;
	char store[3200];
};

/* 0, or VARVE_ENOTSUP if the options ask for what the system does not have; then there is nothing to close. */
int bench_session_open(struct bench *b, const char *lineage, const char *options, uint8_t *p, size_t n,
		       struct bench_session *s);
void bench_session_close(struct bench_session *s); /* the store is removed; p stays */
/* Takes a checkpoint and waits until it is durable; seconds inside varve_checkpoint. */
double bench_session_checkpoint(struct bench_session *s);
/* Ends the program unless the newest epoch holds what is in memory: a fast wrong checkpoint is worth nothing. `to` is
 * for n bytes. */
void bench_session_verify(struct bench_session *s, uint8_t *to);

/* ---- files; each returns seconds */

/* Written in 1 MiB pieces into allocated space, fsynced, renamed, the directory fsynced: the least a durable write is. */
double bench_write(struct bench *b, const void *p, size_t n);
/* The same bytes past the page cache (O_DIRECT), by the number of writers that was fastest in a trial, over a file that is there already, fsynced: the disk's own rate.
 * Ends the program where the file system has no direct I/O. n is a multiple of BENCH_PAGE. */
double bench_direct_write(struct bench *b, const void *p, size_t n);
/* What bench_direct_write wrote last, n bytes of it, read past the page cache by as many readers. */
double bench_direct_read(struct bench *b, void *to, size_t n);
/* Parallel pread of the whole file in 1 MiB pieces. */
double bench_read(struct bench *b, const char *path, void *to, size_t n);
/* Parallel memcpy from a new mapping of the file: mapping, page faults and unmapping included, or with populate none. */
double bench_copy_mapped(struct bench *b, const char *path, void *to, size_t n, bool populate);
/* XXH3-128 of every page, on all cores. */
double bench_hash(struct bench *b, const void *p, size_t n);
/* The file, or all files of a tree, are in the page cache afterwards: a restart reads what is not there past it. */
void bench_load(const char *path);
/* The file's pages leave the page cache; ends the program if they do not. */
void bench_drop(const char *path);
/* Before a measurement: everything that was written or removed reaches the disk, and `bytes` of free memory are touched by way of the page cache, on each of two
 * cores (as much in all where there are more): the kernel keeps what a core has freed for that core. A hypervisor that takes free memory back makes its next first use
 * several times slower than writing to it, and that would hit one side or the other at random. */
void bench_settle(struct bench *b, size_t bytes);
void bench_remove(const char *path); /* a file or a tree; absent is fine */

#endif
