/* Readers look inside a file and name what they find: typed variables, and where in the file their bytes are. What they say is a hint that
 * decides how well a file is coded, never whether it comes back whole: a reader that is wrong, or that an attacker led astray, costs space. */
#ifndef VV_READER_READER_H
#define VV_READER_READER_H

#include "core/format/head.h"
#include "core/format/recipe.h"
#include "core/format/segment.h"

struct vv_reader_file { /* a file, wherever its bytes are */
	const char *name; /* for messages, and for readers that go by it */
	uint64_t len;
	int (*read)(void *arg, uint64_t at, void *to, size_t n); /* all n bytes, which lie inside the file, or an error */
	void *arg;
	/* The first bytes, `most` at most, of another file in the same folder: new memory, NULL where there is no such file. May be NULL. */
	int (*sibling)(void *arg, const char *name, size_t most, uint8_t **out, size_t *n);
};

enum { VV_READER_FILTERS = 8, VV_READER_FILTER_VALUES = 12 };

enum vv_reader_filter_id { /* those that we can undo; numbers as in HDF5 */
	VV_FILTER_DEFLATE = 1,
	VV_FILTER_SHUFFLE = 2,
	VV_FILTER_FLETCHER32 = 3,
	VV_FILTER_SZIP = 4,
	VV_FILTER_NBIT = 5,
	VV_FILTER_SCALEOFFSET = 6,
	VV_FILTER_LZF = 32000,
};

struct vv_reader_filter { /* in the order they were applied */
	uint16_t id;
	uint8_t n_values;
	uint32_t value[VV_READER_FILTER_VALUES];
};

struct vv_odd { /* a whole number in some bits of an element; its type says as what it is given out */
	uint8_t type;     /* enum vv_type; VV_TYPE_BYTES: it is none */
	uint8_t at, bits; /* from this one on, so many */
	bool swapped;
};

struct vv_variable {
	char *name;     /* its path in the file, "/Grid00000001/Density" */
	uint8_t type;   /* enum vv_type; VV_TYPE_BYTES: none of these */
	uint32_t width; /* bytes of an element: of the type, of a record, of a string; at least 1 */
	bool swapped;   /* the high byte comes first */
	struct vv_odd odd; /* of VV_TYPE_BYTES */
	bool variable_length; /* its elements lie elsewhere; what its pieces hold are references */
	bool partial;   /* what is in no piece is not known: it lies in another file, or was not found; why, in words, may be NULL: */
	const char *lack;
	bool made;      /* of other variables, by the outline's maps */
	bool columns;   /* the file has its dimensions the other way round: the first is the fastest there */
	uint8_t ndim;   /* 0: one element */
	uint64_t dim[VV_MAX_DIMS];
	uint8_t segment; /* enum vv_segment: memory of a process, and what part of it */
	uint64_t row;   /* elements that seem to make a row, where the shape does not say so; 0: none */
	bool chunked;   /* its pieces are chunks of this shape, whole ones even at the edges */
	uint64_t chunk[VV_MAX_DIMS];
	uint8_t n_filters;
	struct vv_reader_filter filter[VV_READER_FILTERS];
	uint8_t fill[16];  /* what an element holds that is in no piece, if `filled`; else zeros */
	uint8_t n_fill;
};

struct vv_outline_piece { /* of the file: bytes of a variable */
	uint64_t at, len;
	uint32_t variable;
	uint64_t ordinal; /* of a chunk, in the order of their grid; of a record, in that of the file; else 0 */
	bool coded;       /* by filters: not numbers as they stand */
	uint32_t mask;    /* of filters that were left out for this chunk, a bit each */
};

struct vv_reader_link { /* another name of a variable, or of a group of them */
	char *name, *target; /* paths from the root */
	bool outside; /* it leads into another file */
};

struct vv_hyperslab { /* so many blocks in each dimension, in steps of `stride` */
	uint64_t start[VV_MAX_DIMS], stride[VV_MAX_DIMS], count[VV_MAX_DIMS], block[VV_MAX_DIMS];
};

struct vv_selection { /* elements of an array, in the order of the array */
	bool all;
	uint8_t ndim;
	struct vv_hyperslab *slab; /* without overlap */
	size_t n;
};

struct vv_reader_map { /* elements of a variable are those of another one */
	uint32_t variable;
	char *source; /* its path */
	struct vv_selection from, to;
};

struct vv_outline {
	const char *format; /* the reader's name; "opaque" */
	struct vv_variable *variable;
	size_t n_variables, variables_cap;
	struct vv_outline_piece *piece; /* ascending, without overlap, inside the file */
	size_t n_pieces, pieces_cap;
	struct vv_reader_link *link;
	size_t n_links, links_cap;
	struct vv_reader_map *map;
	size_t n_maps, maps_cap;
	bool full; /* there is more in the file than we keep */
};

/* Looks inside. Fails only when the file cannot be read, or for want of memory: a file that nobody understands has an empty outline,
 * and one that is understood in part has the pieces that were found. */
int vv_reader_outline(const struct vv_reader_file *f, struct vv_outline *out);
void vv_reader_outline_fini(struct vv_outline *o);

/* For readers. A new variable, empty but for its name, which is copied; good until the next one is added; NULL: no memory. Pieces may come
 * in any order, overlap, or lie outside: vv_reader_outline drops what is not sound. An outline that is full takes no more, as if there were
 * no memory; for vv_reader_outline that is no failure. */
struct vv_variable *vv_reader_add_variable(struct vv_outline *o, const char *name, size_t len);
int vv_reader_add_piece(struct vv_outline *o, const struct vv_outline_piece *p);
/* What is more than is kept is left out. */
int vv_reader_add_link(struct vv_outline *o, const char *name, size_t name_len, const char *target, size_t target_len, bool outside);
/* The slabs become the outline's, or are freed. */
int vv_reader_add_map(struct vv_outline *o, uint32_t variable, const char *source, size_t len, struct vv_selection *from, struct vv_selection *to);

struct vv_reader {
	const char *name;
	/* By the first bytes of the file (all of it, if it is shorter than VV_READER_HEAD); HDF5 may begin further on. */
	bool (*is)(const struct vv_reader_file *f, const uint8_t *head, size_t n);
	/* 0, or an error of reading or memory; a file that is not sound ends the walk, and what was found stays. */
	int (*outline)(const struct vv_reader_file *f, struct vv_outline *out);
};

enum { VV_READER_HEAD = 4096 };

/* All of them, NULL at the end, in the order in which they are asked. */
const struct vv_reader *const *vv_reader_all(void);

/* What the bytes of a piece are, for who codes them. */
struct vv_form vv_reader_form(const struct vv_variable *v, const struct vv_outline_piece *p);

#endif
