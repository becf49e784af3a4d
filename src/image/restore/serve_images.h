/* Serves the images of an epoch to criu. Before the first image is served, the blocks that criu
 * needs are checked on all cores: nothing is rebuilt from a damaged epoch. Then blocks are
 * decompressed ahead of criu, which gets their pages by reference. */
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
	struct vv_block_cache *cache; /* of all files; NULL: remote_images is used */
	struct vv_remote_images remote_images;
	/* The parts of each file for criu; at first all of it. */
	struct vv_serve_images_parts *parts;
	struct vv_serve_images_pipe *pipe;   /* pipes from which criu reads */
	size_t n_pipes, pipes_cap;
	int listening, connection;
	const char *folder; /* folder of the served tree, with the slash; "": there is only one */
};

/* Half of the free memory, in bytes. */
uint64_t vv_serve_images_memory(void);

/* memory: limit for decompressed blocks in bytes; 0: half of the free memory. */
int vv_serve_images_open(struct vv_serve_images *s, const struct vv_lineage *lin, uint64_t epoch, struct vv_pool *pool, uint64_t memory);
/* The same for files of possibly several trees; takes the ownership of *files, also after a
 * failure. If `from` is not NULL, it is called once in any case and reads and checks everything.
 * With `late` it leaves out the images of pages. */
int vv_serve_images_open_files(struct vv_serve_images *s, int rc, struct vv_unpack *files, struct vv_pool *pool, uint64_t memory, const struct vv_unpack_reader *from,
			bool late);
/* For images that were opened late: reads criu's parts of the pages in one round. */
int vv_serve_images_read_parts(struct vv_serve_images *s, int rc);
/* Checks that all stored blocks of criu's parts, or of all images, are present and intact. */
int vv_serve_images_check(struct vv_serve_images *s, bool all, const struct vv_progress *progress);
/* For VV_EDAMAGED, adds to the message that nothing was restored; returns rc. */
int vv_serve_images_refuse(const struct vv_serve_images *s, int rc);
/* Returns the number of an image; files.n_files: there is none of that name. */
size_t vv_serve_images_find(const struct vv_serve_images *s, const char *name);
/* Reads a small image completely; the caller frees it by vv_mem_free. */
int vv_serve_images_read(struct vv_serve_images *s, size_t file, uint8_t **out, size_t *n);
/* Waits a short time for ended processes that still occupy the numbers of this tree. */
int vv_serve_images_await_numbers(struct vv_serve_images *s);
int vv_serve_images_listen(struct vv_serve_images *s, const char *folder);
/* Serves images until criu ends or waits at the hook; the hook may be NULL. */
int vv_serve_images_run(struct vv_serve_images *s, const struct vv_criu *criu, const struct vv_action_script *hook);
/* Closes the pipes and sockets: a running criu gets no more data. The store can still be read. */
void vv_serve_images_disconnect(struct vv_serve_images *s);
void vv_serve_images_close(struct vv_serve_images *s);

#endif
