/* Readers parse a file and report its typed variables and the positions of their bytes. Their
 * results are hints: they decide how well a file is compressed, never whether it is restored
 * intact. A wrong reader, or one misled by an attacker, costs space. */
#ifndef VV_READER_READER_H
#define VV_READER_READER_H

#include "core/format/head.h"
#include "core/format/recipe.h"
#include "core/format/segment.h"

struct vv_reader_file { /* a file in any storage */
	const char *name; /* for messages, and for readers that use it */
	uint64_t len;
	/* reads all n bytes, which lie inside the file, or fails */
	int (*read)(void *arg, uint64_t at, void *to, size_t n);
	void *arg;
	/* Reads the first bytes, at most `most`, of another file in the same folder; the caller
	 * frees *out, NULL if there is no such file. May be NULL. */
	int (*sibling)(void *arg, const char *name, size_t most, uint8_t **out, size_t *n);
};

enum { VV_READER_FILTERS = 8, VV_READER_FILTER_VALUES = 12 };

enum vv_reader_filter_id { /* filters that can be undone; numbers as in HDF5 */
	VV_FILTER_DEFLATE = 1,
	VV_FILTER_SHUFFLE = 2,
	VV_FILTER_FLETCHER32 = 3,
	VV_FILTER_SZIP = 4,
	VV_FILTER_NBIT = 5,
	VV_FILTER_SCALEOFFSET = 6,
	VV_FILTER_LZF = 32000,
};

struct vv_reader_filter { /* in the order of application */
	uint16_t id;
	uint8_t n_values;
	uint32_t value[VV_READER_FILTER_VALUES];
};

struct vv_odd { /* an integer in some bits of an element */
	uint8_t type;     /* enum vv_type of the output; VV_TYPE_BYTES: none */
	uint8_t at, bits; /* first bit, and number of bits */
	bool swapped;
};

struct vv_variable {
	char *name;     /* its path in the file, "/Grid00000001/Density" */
	uint8_t type;   /* enum vv_type; VV_TYPE_BYTES: no number */
	uint32_t width; /* bytes of an element (number, record or string); at least 1 */
	bool swapped;   /* high byte first */
	struct vv_odd odd; /* of VV_TYPE_BYTES */
	bool variable_length; /* its pieces hold references to the elements */
	/* bytes in no piece are unknown: in another file, or not found. The reason, may be NULL: */
	bool partial;
	const char *lack;
	bool made;      /* made of other variables, by the outline's maps */
	bool columns;   /* the file stores its dimensions in reverse: the first varies fastest */
	uint8_t ndim;   /* 0: one element */
	uint64_t dim[VV_MAX_DIMS];
	uint8_t segment; /* enum vv_segment of a process's memory */
	uint64_t row;   /* elements in a guessed row, if the shape has none; 0: none */
	bool chunked;   /* its pieces are chunks of this shape, full ones even at the edges */
	uint64_t chunk[VV_MAX_DIMS];
	uint8_t n_filters;
	struct vv_reader_filter filter[VV_READER_FILTERS];
	uint8_t fill[16];  /* value of elements in no piece, if `filled`; else zeros */
	uint8_t n_fill;
};

struct vv_outline_piece { /* bytes of a variable in the file */
	uint64_t at, len;
	uint32_t variable;
	uint64_t ordinal; /* of a chunk, in grid order; of a record, in file order; else 0 */
	bool coded;       /* by filters: the bytes are not plain numbers */
	uint32_t mask;    /* filters left out for this chunk, a bit each */
};

struct vv_reader_link { /* another name of a variable or group */
	char *name, *target; /* paths from the root */
	bool outside; /* it leads into another file */
};

struct vv_hyperslab { /* `count` blocks in each dimension, in steps of `stride` */
	uint64_t start[VV_MAX_DIMS], stride[VV_MAX_DIMS], count[VV_MAX_DIMS], block[VV_MAX_DIMS];
};

struct vv_selection { /* elements of an array, in the order of the array */
	bool all;
	uint8_t ndim;
	struct vv_hyperslab *slab; /* without overlap */
	size_t n;
};

struct vv_reader_map { /* elements of a variable that are those of another one */
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
	bool full; /* limits were reached; the rest is left out */
};

/* Parses the file. Fails only on read errors or lack of memory. An unknown file has an empty
 * outline; a file that is understood in part has the pieces found. */
int vv_reader_outline(const struct vv_reader_file *f, struct vv_outline *out);
void vv_reader_outline_fini(struct vv_outline *o);

/* For readers. Adds a variable with a copy of its name, valid until the next one is added; NULL: no
 * memory. Pieces may come in any order, overlap, or lie outside: vv_reader_outline drops invalid
 * ones. A full outline takes no more, as if there were no memory; vv_reader_outline does not fail
 * then. */
struct vv_variable *vv_reader_add_variable(struct vv_outline *o, const char *name, size_t len);
int vv_reader_add_piece(struct vv_outline *o, const struct vv_outline_piece *p);
/* Links beyond the limit are left out. */
int vv_reader_add_link(struct vv_outline *o, const char *name, size_t name_len, const char *target, size_t target_len, bool outside);
/* The outline takes ownership of the slabs, or they are freed. */
int vv_reader_add_map(struct vv_outline *o, uint32_t variable, const char *source, size_t len, struct vv_selection *from, struct vv_selection *to);

struct vv_reader {
	const char *name;
	/* Decides by the first VV_READER_HEAD bytes of the file, or all of a shorter one; HDF5 may
	 * begin later. */
	bool (*is)(const struct vv_reader_file *f, const uint8_t *head, size_t n);
	/* 0, or an error of reading or memory. Invalid data ends the walk, and variables found
	 * before are kept. */
	int (*outline)(const struct vv_reader_file *f, struct vv_outline *out);
};

enum { VV_READER_HEAD = 4096 };

/* All readers in the order of trial, NULL at the end. */
const struct vv_reader *const *vv_reader_all(void);

/* The form of a piece's bytes, for compression. */
struct vv_form vv_reader_form(const struct vv_variable *v, const struct vv_outline_piece *p);

#endif
