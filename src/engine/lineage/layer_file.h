/* Layer files open for reading: the parts that were asked for, verified. */
#ifndef VV_ENGINE_LINEAGE_LAYER_FILE_H
#define VV_ENGINE_LINEAGE_LAYER_FILE_H

#include "base/pool.h"
#include "core/format/layer.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/lazy_runs.h"

enum { /* what of a layer is opened */
	VV_LAYER_FILE_HEAD = 1,
	VV_LAYER_FILE_BLOCKS = 2, /* for their bytes, too: the file is mapped if it can be */
	VV_LAYER_FILE_DIGESTS = 4,
	VV_LAYER_FILE_LAZY = 8, /* of the head, tables are only begun */
};

struct vv_section_bytes { /* a section that was read */
	const uint8_t *p;
	size_t n;
	uint8_t *own; /* memory to be freed, or NULL */
};

struct vv_layer_file {
	struct vv_get *get;
	char object[VV_NAME_MAX];
	const char *url; /* the store's, for messages */
	uint64_t layer;
	struct vv_frame frame;
	struct vv_head head; /* the ident is always there, the rest with HEAD */
	struct vv_blocks blocks;
	struct vv_digests digests;
	struct vv_era_table eras; /* none in layers of older versions */
	uint8_t *tail; /* the end of the file, read ahead in one piece */
	uint64_t tail_off;
	uint8_t *body; /* memory of the head's sections, if they are not in the tail and have been read */
	const uint8_t *head_at; /* they begin there */
	struct vv_lazy_runs *lazy_runs; /* that the runs of the head come from; NULL: they are there */
	struct vv_section_bytes sources, runs; /* what it reads */
	uint64_t *source; /* layers that the head's runs name */
	size_t n_sources;
	struct vv_pool *pool; /* that reads what is long; NULL: one thread does */
};

int vv_layer_file_open(const struct vv_lineage *lin, uint64_t layer, unsigned parts, struct vv_layer_file **out);
/* The same on all threads of a pool; NULL is fine. */
int vv_layer_file_open_on(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, unsigned parts, struct vv_layer_file **out);
void vv_layer_file_close(struct vv_layer_file *f); /* NULL is fine */
/* Only hears what the layer says of the eras of epochs (engine/lineage/provenance.h). */
int vv_layer_file_read_eras(const struct vv_lineage *lin, uint64_t layer);
/* Gives the file back; what was read of it stays, until it is closed. */
void vv_layer_file_release(struct vv_layer_file *f);

/* The runs that are not there yet. */
int vv_layer_file_finish(struct vv_layer_file *f, struct vv_pool *pool);

/* A section, checked, and decoded where it is coded. */
int vv_layer_file_section(struct vv_layer_file *f, const struct vv_section *s, struct vv_section_bytes *out);

/* DIGESTS after all, where opening left them out. */
int vv_layer_file_load_digests(struct vv_layer_file *f);

/* The bytes of the head's sections, one after another: new memory. */
int vv_layer_file_head_bytes(struct vv_layer_file *f, uint8_t **out, size_t *n);
/* Does the head have the digest that a commit record gives it? */
int vv_layer_file_check_head(struct vv_layer_file *f, const struct vv_digest *want);

/* Block i, checked and decoded, into raw (raw_len bytes); scratch (stored_len bytes) is used for coded blocks. */
int vv_layer_file_read_block(struct vv_layer_file *f, size_t i, void *raw, void *scratch);

#define VV_PART_MEMORY SIZE_MAX

struct vv_part { /* a stretch of one decoded block, and where it goes */
	uint64_t pos; /* of its first byte in the payload */
	union {
		uint8_t *to;
		uint64_t at; /* in a region, if there is one */
	};
	uint32_t from, len;
	size_t region; /* VV_PART_MEMORY: none, it goes to memory */
};

/* Parts of block i, ascending, to their places, checked. With DIGESTS loaded only what is used need be read and checked:
 * then damage in the rest of the block is not seen. scratch: raw_len bytes, and stored_len more for coded blocks. */
int vv_layer_file_read_parts(struct vv_layer_file *f, size_t i, const struct vv_part *part, size_t n, uint8_t *scratch);

/* The first group of digests that ends after pos: it may begin after it; digests.n_groups if there is none. */
size_t vv_layer_file_group(const struct vv_layer_file *f, uint64_t pos);

/* The header, every block's check, every section, known or not: all bytes of the file. */
int vv_layer_file_check_header(struct vv_layer_file *f);
int vv_layer_file_check_sections(struct vv_layer_file *f);

/* Puts "'STORE/OBJECT'" before the thread's message. */
int vv_layer_file_name_in_error(const struct vv_layer_file *f, int rc);

#endif
