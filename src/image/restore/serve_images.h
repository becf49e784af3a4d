/* The images of an epoch, given back to criu as it asks for them. What it needs of the store is checked, on all cores, before the first is handed over:
 * nothing is rebuilt from an epoch that is not whole. Then blocks are decoded ahead of criu, and it gets their pages by reference. */
#ifndef VV_IMAGE_RESTORE_SERVE_IMAGES_H
#define VV_IMAGE_RESTORE_SERVE_IMAGES_H

#include "engine/read/block_cache.h"
#include "engine/files/unpack.h"
#include "image/restore/remote_images.h"
#include "image/criu/action_script.h"

struct vv_serve_images_part { /* of an image */
	uint64_t at, len;
};

struct vv_serve_images_parts {
	struct vv_serve_images_part *v;
	size_t n, cap;
};

struct vv_serve_images_pipe;

struct vv_serve_images {
	struct vv_unpack files;
	struct vv_block_cache *cache; /* of all files; NULL: they come from afar */
	struct vv_remote_images remote_images;
	struct vv_serve_images_parts *parts; /* of each file, that criu gets; at first all of it */
	struct vv_serve_images_pipe *pipe;   /* that criu reads from */
	size_t n_pipes, pipes_cap;
	int listening, connection;
	const char *folder; /* of the tree that is served, with its slash; "": there is only one */
};

/* Half of the memory that is free. */
uint64_t vv_serve_images_memory(void);

/* memory: of decoded blocks; 0: half of what is free. */
int vv_serve_images_open(struct vv_serve_images *s, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, uint64_t memory);
/* The same for files that may be of several trees, and are the server's then, unless rc says otherwise. from: NULL; or it is called once in any case, and
 * everything is read and checked by it; late: all but images of pages. */
int vv_serve_images_open_files(struct vv_serve_images *s, int rc, struct vv_unpack *files, struct vv_pool *pool, uint64_t memory, const struct vv_unpack_reader *from,
			bool late);
/* Of those that were opened late: reads once, what criu gets of the pages. */
int vv_serve_images_read_parts(struct vv_serve_images *s, int rc);
/* All that is stored of what criu gets, or of all images, is there, and whole. */
int vv_serve_images_check(struct vv_serve_images *s, bool all);
/* Says of damage that nothing was made of the epoch; any other code is returned as it is. */
int vv_serve_images_refuse(const struct vv_serve_images *s, int rc);
/* The number of an image; files.n_files: there is none of that name. */
size_t vv_serve_images_find(const struct vv_serve_images *s, const char *name);
/* A small image as a whole: new memory, to be freed by vv_mem_free. */
int vv_serve_images_read(struct vv_serve_images *s, size_t file, uint8_t **out, size_t *n);
/* Gives processes that have ended, and bore the numbers of these, a little time to be gone. */
int vv_serve_images_await_numbers(struct vv_serve_images *s);
int vv_serve_images_listen(struct vv_serve_images *s, const char *folder);
/* Until criu, which was started, ends, or stands at the hook; NULL: there is none. */
int vv_serve_images_run(struct vv_serve_images *s, const struct vv_criu *criu, const struct vv_action_script *hook);
/* The pipes and sockets are closed: criu, if it still runs, gets nothing more. What is stored can still be read. */
void vv_serve_images_disconnect(struct vv_serve_images *s);
void vv_serve_images_close(struct vv_serve_images *s);

#endif
