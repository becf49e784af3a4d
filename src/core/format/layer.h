/* The frame of a layer file: header, blocks, sections, directory, trailer. docs/format.md, section
 * 3. */
#ifndef VV_CORE_FORMAT_LAYER_H
#define VV_CORE_FORMAT_LAYER_H

#include "base/wire.h"
#include "core/format/copies_section.h"
#include "core/format/digest.h"
#include "core/format/era_table.h"
#include "core/format/head.h"
#include "core/format/payload.h"

enum {
	VV_LAYER_HEADER = 16,
	VV_LAYER_TRAILER = 48,
	VV_LAYER_ENTRY = 32,
	VV_LAYER_SECTIONS = 64, /* at most */
};

enum vv_section_kind {
	VV_SECTION_IDENT = 1,
	VV_SECTION_REGIONS,
	VV_SECTION_SOURCES,
	VV_SECTION_RUNS,
	VV_SECTION_STATS,
	VV_SECTION_BLOCKS,
	VV_SECTION_DIGESTS,
	VV_SECTION_COPIES, /* only if there are some */
	VV_SECTION_ERAS,   /* not in layers of older versions */
	VV_SECTION_PARTS,  /* only if a region has a distribution */
	VV_SECTION_BASES, /* only if there are some; a reader must know it */
};

enum { VV_SECTION_HEAD = 1, VV_SECTION_SKIPPABLE = 2, VV_SECTION_CODED = 4 };

struct vv_section {
	uint32_t kind;
	uint32_t flags;
	uint64_t off;
	uint64_t len;
	uint64_t check;
};

struct vv_frame {
	uint64_t dir_off;
	uint64_t file_len;
	uint64_t dir_check;
	uint32_t n;
	struct vv_section section[VV_LAYER_SECTIONS];
};

const char *vv_layer_section_name(uint32_t kind);

void vv_layer_put_header(struct vv_buf *b);
int vv_layer_check_header(const uint8_t header[VV_LAYER_HEADER]);

/* Appends the compressed form of a section to `out`, or nothing if the section is to be stored
 * uncompressed. Fails only for lack of memory. */
typedef int (*vv_layer_coder)(const void *p, size_t n, struct vv_buf *out);

/* the position of the digests that are not in `out`: they are many, and memory already has their
 * stored form */
struct vv_layer_gap {
	size_t at;
	size_t n; /* bytes */
};

/* Appends everything after the blocks, which end at file offset `off`: sections, directory,
 * trailer. The caller gets in head_digest the digest for the commit record. Some arguments may be
 * NULL: copies and eras; code, if no section is to be compressed; gap, if all is to be in `out`. */
int vv_layer_put_tail(const struct vv_head *h, const struct vv_blocks *blocks, const struct vv_digests *digests,
		      const struct vv_copies_section *copies, const struct vv_era_table *eras, vv_layer_coder code, uint64_t off, struct vv_buf *out,
		      struct vv_digest *head_digest, struct vv_layer_gap *gap);
/* The same around an unchanged head: head_bytes holds its sections, one after another, as listed in
 * `was`. h (may be NULL): the same head, for its distributions. */
int vv_layer_put_tail_kept(const struct vv_frame *was, const uint8_t *head_bytes, const struct vv_head *h, const struct vv_blocks *blocks,
			   const struct vv_digests *digests, const struct vv_copies_section *copies, const struct vv_era_table *eras, vv_layer_coder code, uint64_t off,
			   struct vv_buf *out);

/* The check of the DIGESTS section in the tail that one of the two functions has appended to
 * `out`. */
uint64_t vv_layer_digests_check(const struct vv_buf *out);

/* The trailer comes first, then the directory that it names. */
int vv_layer_get_trailer(struct vv_frame *f, const uint8_t trailer[VV_LAYER_TRAILER], uint64_t file_len);
int vv_layer_get_directory(struct vv_frame *f, const uint8_t *dir);
/* for the kinds that are always present */
const struct vv_section *vv_layer_section(const struct vv_frame *f, uint32_t kind);
const struct vv_section *vv_layer_find(const struct vv_frame *f, uint32_t kind);    /* or NULL */
int vv_layer_check_section(const struct vv_section *s, const void *p);

#endif
