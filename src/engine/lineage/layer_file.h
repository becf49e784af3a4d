/* Layer files, open for reading. The requested parts are verified. */
#ifndef VV_ENGINE_LINEAGE_LAYER_FILE_H
#define VV_ENGINE_LINEAGE_LAYER_FILE_H

#include "base/pool.h"
#include "core/format/layer.h"
#include "engine/lineage/catalog.h"
#include "engine/lineage/lazy_runs.h"

enum { /* the parts of a layer to open */
	VV_LAYER_FILE_HEAD = 1,
	/* Also for reading their bytes: the file is mapped if possible. */
	VV_LAYER_FILE_BLOCKS = 2,
	VV_LAYER_FILE_DIGESTS = 4,
	VV_LAYER_FILE_LAZY = 8, /* with HEAD: runs are read when needed */
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
	struct vv_head head; /* the ident is always present, the rest with HEAD */
	struct vv_blocks blocks;
	struct vv_digests digests;
	struct vv_era_table eras; /* empty in layers of older versions */
	uint8_t *tail; /* the end of the file, read at once */
	uint64_t tail_off;
	/* Memory of the head's sections, if they were read and are not in the tail. */
	uint8_t *body;
	const uint8_t *head_at; /* the start of the head's sections */
	struct vv_lazy_runs *lazy_runs; /* reads the runs of the head; NULL: all are read */
	struct vv_section_bytes sources, runs; /* the input of lazy_runs */
	uint64_t *source; /* layers that the head's runs refer to */
	size_t n_sources;
	struct vv_pool *pool; /* for long reads; NULL: one thread */
	struct vv_base_layers *bases; /* of its delta blocks; NULL: there are none */
};

int vv_layer_file_open(const struct vv_lineage *lin, uint64_t layer, unsigned parts, struct vv_layer_file **out);
/* The same on all threads of a pool. pool may be NULL. */
int vv_layer_file_open_on(const struct vv_lineage *lin, struct vv_pool *pool, uint64_t layer, unsigned parts, struct vv_layer_file **out);
void vv_layer_file_close(struct vv_layer_file *f); /* accepts NULL */
/* Only reads the eras of epochs from the layer (engine/lineage/provenance.h). */
int vv_layer_file_read_eras(const struct vv_lineage *lin, uint64_t layer);
/* Closes the underlying file. The parts that were read stay until vv_layer_file_close. */
void vv_layer_file_release(struct vv_layer_file *f);

/* Is f, opened again, the same file as `was`, whose block table is known? A compact layer has the
 * same positions, but perhaps other blocks. VV_EIO: it is not. */
int vv_layer_file_check_same_blocks(const struct vv_layer_file *f, const struct vv_layer_file *was);

/* Reads the remaining runs. */
int vv_layer_file_finish(struct vv_layer_file *f, struct vv_pool *pool);

/* Reads a section, checked and decompressed. */
int vv_layer_file_section(struct vv_layer_file *f, const struct vv_section *s, struct vv_section_bytes *out);

/* Reads DIGESTS later, if opening left them out. */
int vv_layer_file_load_digests(struct vv_layer_file *f);

/* The bytes of the head's sections, concatenated. The caller frees *out. */
int vv_layer_file_head_bytes(struct vv_layer_file *f, uint8_t **out, size_t *n);
/* Does the head have the digest of the commit record? */
int vv_layer_file_check_head(struct vv_layer_file *f, const struct vv_digest *want);

/* Locates the first of the positions pos..pos+len: the cursor gets the block, *from the offset in
 * it. Returns how many bytes are contiguous there, or VV_EDAMAGED: no block holds pos. */
int64_t vv_layer_file_locate(const struct vv_layer_file *f, uint64_t pos, uint64_t len, struct vv_payload_cursor *c, uint32_t *from);

/* Reads the stored bytes of block i, checked. */
int vv_layer_file_read_stored(struct vv_layer_file *f, size_t i, void *stored);
/* Reads block i, checked and decompressed, into raw (raw_len bytes). scratch: stored_len bytes,
 * used for compressed blocks. */
int vv_layer_file_read_block(struct vv_layer_file *f, size_t i, void *raw, void *scratch);
/* The approximate memory that decoding block i takes beside raw and scratch. */
size_t vv_layer_file_decode_takes(const struct vv_layer_file *f, size_t i);

#define VV_PART_MEMORY SIZE_MAX

struct vv_part { /* a range of one decompressed block, and its destination */
	uint64_t pos; /* of its first byte in the payload */
	union {
		uint8_t *to;
		uint64_t at; /* offset in a region, if there is one */
	};
	uint32_t from, len;
	size_t region; /* VV_PART_MEMORY: no region, it goes to memory */
};

/* Reads ascending parts of block i to their destinations, checked. With DIGESTS loaded, only the
 * parts need be read and checked. Then damage in the rest of the block is not detected. scratch:
 * raw_len bytes, plus stored_len bytes for compressed blocks, plus VV_STORE_AROUND for a file that
 * is read directly. */
int vv_layer_file_read_parts(struct vv_layer_file *f, size_t i, const struct vv_part *part, size_t n, uint8_t *scratch);

/* The first group of digests that ends after pos; it may also begin after pos. digests.n_groups if
 * there is none. */
size_t vv_layer_file_group(const struct vv_layer_file *f, uint64_t pos);

/* Check the header, or every section, known or not. Together with the checks of all blocks, they
 * cover all bytes of the file. */
int vv_layer_file_check_header(struct vv_layer_file *f);
int vv_layer_file_check_sections(struct vv_layer_file *f);

/* Adds "layer 'STORE/OBJECT'" to the thread's error message. */
int vv_layer_file_name_in_error(const struct vv_layer_file *f, int rc);

#endif
