/* Page table information of a process, this one or another (PAGEMAP_SCAN), and the marks of a
 * userfaultfd with WP_ASYNC. A page keeps its mark until it is written. Both need Linux >= 6.7. */
#ifndef VV_TRACK_MARKS_H
#define VV_TRACK_MARKS_H

#include <stddef.h>
#include <stdint.h>

enum { /* categories of pages */
	VV_MARKS_WATCHED = 1 << 0, /* by any userfaultfd */
	VV_MARKS_WRITTEN = 1 << 1, /* without a mark */
	VV_MARKS_FILE = 1 << 2,    /* of a file, or shared */
	VV_MARKS_PRESENT = 1 << 3,
	VV_MARKS_SWAPPED = 1 << 4,
	VV_MARKS_ZERO = 1 << 5, /* the kernel's page of zeros */
};

enum { /* flags of a search */
	VV_MARKS_SET = 1 << 0,   /* marks the found pages in the same step */
	VV_MARKS_CHECK = 1 << 1, /* EPERM if pages are not watched */
};

struct vv_marks_query {
	uint64_t flags;
	uint64_t all, none, any; /* categories; any = 0: ignored */
	uint64_t max_pages;      /* 0: all */
};

struct vv_marks_found {
	uint64_t lo, hi, what;
};

enum { VV_MARKS_AT_ONCE = 4096 };

/* Finds ranges of such pages in [*lo, hi), ascending, at most VV_MARKS_AT_ONCE. Sets *lo to the
 * address to continue at, or to hi at the end. Returns 0 or an errno. */
int vv_marks_find(int pagemap, const struct vv_marks_query *q, uint64_t *lo, uint64_t hi, struct vv_marks_found *found, size_t *n);

/* Prepares a new userfaultfd for marks. Returns 0 or an errno. */
int vv_marks_begin(int uffd);
/* From now on the userfaultfd watches the pages [lo, hi). Some pages may have old marks. */
int vv_marks_watch(int uffd, uint64_t lo, uint64_t hi);
/* Marks all pages, whether present or not. Returns EPERM if some are not watched. Unmapped memory
 * is skipped. Measured on Linux 6.18, Neoverse N1, 256 MiB of small pages, with 1 and 2 threads.
 * With no page marked: 2.2 to 2.5 ms and 1.3 ms. UFFDIO_WRITEPROTECT took 3.7 to 6.4 ms and 2.0 to
 * 3.4 ms. With nine of ten pages marked: 6.6 ms and 6.1 ms. UFFDIO_WRITEPROTECT took 7.4 ms and 4.0
 * ms. */
int vv_marks_set(int pagemap, uint64_t lo, uint64_t hi);
/* Removes the marks of all pages. */
int vv_marks_clear(int uffd, uint64_t lo, uint64_t hi);

#endif
