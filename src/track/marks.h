/* What the kernel's page tables say of the pages of a process, this one or another (PAGEMAP_SCAN), and the marks that a userfaultfd with WP_ASYNC leaves on
 * those that nobody has written since: both Linux >= 6.7. */
#ifndef VV_TRACK_MARKS_H
#define VV_TRACK_MARKS_H

#include <stddef.h>
#include <stdint.h>

enum { /* what pages are */
	VV_MARKS_WATCHED = 1 << 0, /* by a userfaultfd, whosever it is */
	VV_MARKS_WRITTEN = 1 << 1, /* they bear no mark */
	VV_MARKS_FILE = 1 << 2,    /* a file's, or shared */
	VV_MARKS_PRESENT = 1 << 3,
	VV_MARKS_SWAPPED = 1 << 4,
	VV_MARKS_ZERO = 1 << 5, /* the kernel's page of zeros */
};

enum { /* how they are looked for */
	VV_MARKS_SET = 1 << 0,   /* those that are found are marked in the same step */
	VV_MARKS_CHECK = 1 << 1, /* EPERM where there are pages that are not watched */
};

struct vv_marks_query {
	uint64_t flags;
	uint64_t all, none, any; /* of these; any = 0: it does not matter */
	uint64_t max_pages;      /* 0: all */
};

struct vv_marks_found {
	uint64_t lo, hi, what;
};

enum { VV_MARKS_AT_ONCE = 4096 };

/* Stretches of such pages in [*lo, hi), ascending, at most VV_MARKS_AT_ONCE; *lo becomes where to go on, hi if all was seen. 0, or what errno was. */
int vv_marks_find(int pagemap, const struct vv_marks_query *q, uint64_t *lo, uint64_t hi, struct vv_marks_found *found, size_t *n);

/* A new userfaultfd is to leave marks; 0, or what errno was. */
int vv_marks_begin(int uffd);
/* Pages [lo, hi) are watched by it from now on; some may bear marks of old. */
int vv_marks_watch(int uffd, uint64_t lo, uint64_t hi);
/* All of them bear marks, whether there is anything in them or not; EPERM if some are not watched. What is not mapped is passed over. Linux 6.18, Neoverse N1, 256 MiB of small
 * pages, 1 thread and 2: where none bore a mark 2.2 to 2.5 ms and 1.3, by UFFDIO_WRITEPROTECT 3.7 to 6.4 and 2.0 to 3.4; where nine of ten did 6.6 and 6.1, and 7.4 and 4.0. */
int vv_marks_set(int pagemap, uint64_t lo, uint64_t hi);
/* None of them bears a mark. */
int vv_marks_clear(int uffd, uint64_t lo, uint64_t hi);

#endif
