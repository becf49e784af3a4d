/* The head of a layer: its identity, its regions, and the place of every byte. It is written once
 * and never changed; the commit record holds its digest. docs/format.md, section 4, kinds 1 to
 * 5. */
#ifndef VV_CORE_FORMAT_HEAD_H
#define VV_CORE_FORMAT_HEAD_H

#include "base/wire.h"
#include "core/format/record.h"
#include "core/format/run.h"

enum {
	VV_MAX_REGIONS = 1 << 20,
	VV_MAX_NAME = 1023,
	VV_MAX_DIMS = 16,
	VV_MIN_CHUNK = 32,
	VV_MAX_CHUNK = 1 << 20,
	VV_MAX_DEPTH = 255,
};

enum vv_type {
	VV_TYPE_BYTES,
	VV_TYPE_I8,
	VV_TYPE_U8,
	VV_TYPE_I16,
	VV_TYPE_U16,
	VV_TYPE_I32,
	VV_TYPE_U32,
	VV_TYPE_I64,
	VV_TYPE_U64,
	VV_TYPE_F32,
	VV_TYPE_F64,
	VV_TYPE_C64,
	VV_TYPE_C128,
	VV_TYPE_BF16,
	VV_TYPE_F16,
	VV_TYPE_F8_E4M3,
	VV_TYPE_F8_E5M2,
	VV_TYPES, /* of one number each */
	VV_TYPE_RECORD = VV_TYPES, /* of named fields of these types: only regions have it */
};

struct vv_shape { /* the type and dimensions of a region */
	uint64_t len;
	uint32_t chunk;
	uint8_t type;
	uint8_t ndim;
	uint64_t dim[VV_MAX_DIMS];
	const struct vv_record *record; /* of VV_TYPE_RECORD, else NULL */
};

struct vv_distribution;

struct vv_head_region {
	char *name;
	uint32_t parent; /* 0, or 1 + index in the parent layer */
	struct vv_shape shape;
	struct vv_runs runs;
	struct vv_distribution *part; /* core/format/distribution.h; NULL: a plain region */
};

struct vv_stat {
	char name[64];
	uint64_t value;
};

struct vv_head {
	uint8_t lineage[16];
	uint64_t epoch;
	uint64_t parent;
	uint32_t rank;
	uint32_t ranks;
	uint64_t time_ns;
	uint64_t payload;
	uint8_t digest_kind;
	uint8_t depth;
	struct vv_head_region *region;
	size_t n_regions;
	struct vv_stat *stat;
	size_t n_stats;
};

void vv_head_fini(struct vv_head *h);

/* One function per section, in file order. The encoders fail only if the buffer has no memory. */
void vv_head_put_ident(const struct vv_head *h, struct vv_buf *b);
void vv_head_put_regions(const struct vv_head *h, struct vv_buf *b);
int vv_head_put_sources_and_runs(const struct vv_head *h, struct vv_buf *sources, struct vv_buf *runs);
void vv_head_put_stats(const struct vv_head *h, struct vv_buf *b);

/* The decoders take bytes whose check has been verified, and trust none of them. The head must
 * start empty. Ident and regions come first, because the runs are checked against them. */
int vv_head_get_ident(struct vv_head *h, const void *p, size_t n);
int vv_head_get_regions(struct vv_head *h, const void *p, size_t n);
int vv_head_get_runs(struct vv_head *h, const void *sources, size_t n_sources, const void *runs, size_t n_runs);
int vv_head_get_stats(struct vv_head *h, const void *p, size_t n);

uint64_t vv_head_stat(const struct vv_head *h, const char *name); /* 0 if it is absent */
/* Nothing is added for a value of 0, because an absent value reads as 0. */
int vv_head_add_stat(struct vv_head *h, const char *name, uint64_t value);

const char *vv_head_type_name(unsigned type);
size_t vv_head_type_size(unsigned type); /* 0 for a record */
size_t vv_head_element_size(const struct vv_shape *s); /* bytes of an element; without a type 1 */
/* May a region of one type be filled with bytes of the other? */
bool vv_head_types_agree(unsigned declared, unsigned stored);
/* Does the format allow the shape? Returns an error with the reason if not. */
int vv_head_check_shape(const char *name, const struct vv_shape *s);
/* The same number of elements of the same type in the same dimensions; the chunks may differ. */
bool vv_head_same_shape(const struct vv_shape *a, const struct vv_shape *b);

#endif
