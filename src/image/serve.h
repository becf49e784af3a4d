/* The images of an epoch, given back to criu as it asks for them. They are read and checked on all cores before it starts: nothing is rebuilt from
 * an epoch that is not whole. */
#ifndef VV_IMAGE_SERVE_H
#define VV_IMAGE_SERVE_H

#include "engine/unpack.h"
#include "image/criu.h"

struct vv_serve_image { /* bytes from..from+len of it are in memory */
	uint8_t *bytes;
	size_t cap;
	uint64_t from;
	size_t len;
};

struct vv_serve_pipe;

struct vv_serve {
	struct vv_unpack files;
	struct vv_pool *pool;
	struct vv_serve_image *image; /* one for each file */
	struct vv_serve_pipe *pipe;   /* that criu reads from */
	size_t n_pipes, pipes_cap;
	int listening, connection;
};

/* memory: what may be held; 0: half of what is free. If the images are larger, they are verified first and read again as they are asked for. */
int vv_serve_open(struct vv_serve *s, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, uint64_t memory);
/* Gives processes that have ended, and bore the numbers of these, a little time to be gone. */
int vv_serve_await_numbers(struct vv_serve *s);
int vv_serve_listen(struct vv_serve *s, const char *folder);
/* Until criu, which was started, ends. */
int vv_serve_run(struct vv_serve *s, const struct vv_criu *criu);
void vv_serve_close(struct vv_serve *s);

#endif
