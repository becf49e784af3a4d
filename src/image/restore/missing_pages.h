/* The missing pages of a process, and the userfaultfd by which they are loaded. */
#ifndef VV_IMAGE_RESTORE_MISSING_PAGES_H
#define VV_IMAGE_RESTORE_MISSING_PAGES_H

#include "engine/read/block_cache.h"
#include "image/restore/remote_buffer.h"
#include "image/restore/page_spans.h"
#include <sys/types.h>

struct vv_missing_pages {
	struct vv_block_cache *cache; /* source of the pages; NULL: the remote buffer */
	struct vv_remote_buffer *remote_buffer;
	size_t file;   /* number of the image of pages */
	pid_t pid;     /* as in the images; for a later child, that of its parent */
	pid_t here;    /* number in our pid namespace; 0: not created yet, or a later child */
	int uffd;      /* -1: not received yet, or closed */
	/* By which the process itself holds it (image/process/uffd_keeper.h); -1: it does not. */
	int uffd_socket;
	int pidfd;     /* -1: a later child */
	bool runs;     /* so it may unmap memory, or end */
	struct vv_page_spans left;
	uint64_t decoded_to; /* end of the read-ahead in its image */
};

/* The process has all pages, or has ended: frees the list and closes the userfaultfd. */
void vv_missing_pages_forget(struct vv_missing_pages *m);

/* Each of these functions does as much as possible at once. *done: the number of bytes that are
 * loaded or not needed any more. It is 0 while the process changes its memory map (an event comes
 * first), and for pages that are not in the remote buffer yet. It is also 0 if the process has
 * ended (*gone is set, or `m` is forgotten). */

/* Copies bytes at offset `at` of its image to an address; does not change `left`. Several threads
 * may call it. */
int vv_missing_pages_deliver(const struct vv_missing_pages *m, uint64_t to, uint64_t at, uint64_t len, uint64_t *done, bool *gone);
/* Loads the page at an address of `left`, and following pages up to `most` bytes. */
int vv_missing_pages_bring(struct vv_missing_pages *m, uint64_t addr, uint64_t most, uint64_t *done);
/* Finds the first address of `left` whose page is available; false: there is none yet. */
bool vv_missing_pages_find(const struct vv_missing_pages *m, uint64_t *addr);
/* Fills a page that is in no image with zeros: the program had released it. */
int vv_missing_pages_zero(struct vv_missing_pages *m, uint64_t addr, uint64_t *done);

#endif
