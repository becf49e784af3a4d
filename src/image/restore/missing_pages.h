/* The pages that a process does not have yet, and the userfaultfd that they are brought by. */
#ifndef VV_IMAGE_RESTORE_MISSING_PAGES_H
#define VV_IMAGE_RESTORE_MISSING_PAGES_H

#include "engine/read/block_cache.h"
#include "image/restore/remote_buffer.h"
#include "image/restore/page_spans.h"
#include <sys/types.h>

struct vv_missing_pages {
	struct vv_block_cache *cache; /* where they come from; or NULL, and: */
	struct vv_remote_buffer *remote_buffer;
	size_t file;   /* its region there */
	pid_t pid;     /* as in the images; that of its parent, if it was made since */
	pid_t here;    /* its number in our pid namespace; 0: not yet, or made since */
	int uffd;      /* -1: not yet, or not any more */
	int uffd_socket;    /* by which it is held in the process itself (image/process/uffd_keeper.h); -1: it is not */
	int pidfd;     /* -1: made since */
	bool runs;     /* so it may let go of memory, or end */
	struct vv_page_spans left;
	uint64_t decoded_to; /* how far its image is being decoded */
};

/* It has all, or is gone: from here on its memory is like any other. */
void vv_missing_pages_forget(struct vv_missing_pages *m);

/* Each of these does as much as goes at once. *done: so many bytes are there, or not needed any more; 0: it is changing its memory, and says so
 * first; or they are not in the remote buffer yet; or it is gone (*gone, or forgotten). */

/* Of what is at `at` of its pages, to an address; what is left stays as it is. Several threads may do that. */
int vv_missing_pages_deliver(const struct vv_missing_pages *m, uint64_t to, uint64_t at, uint64_t len, uint64_t *done, bool *gone);
/* What belongs to an address, which `left` has, and at most so much with it. */
int vv_missing_pages_bring(struct vv_missing_pages *m, uint64_t addr, uint64_t most, uint64_t *done);
/* The first address of `left` whose page can be brought; false: none can, just now. */
bool vv_missing_pages_find(const struct vv_missing_pages *m, uint64_t *addr);
/* A page that is in no image: it was given back, and is zeros. */
int vv_missing_pages_zero(struct vv_missing_pages *m, uint64_t addr, uint64_t *done);

#endif
