/* What the parts of the HDF5 reader share. After the HDF5 File Format Specification, version 3.0. Nothing in a file is believed: every access
 * is checked against its end, every block is looked at once, and what is read in all has a limit. */
#ifndef VV_READER_HDF5_PRIV_H
#define VV_READER_HDF5_PRIV_H

#include "base/wire.h"
#include "reader/reader.h"

/* Functions return 0, an error (of reading or memory), which ends the walk, or one of these, which end what they were about. */
enum { VV_HDF5_BROKEN = 1, VV_HDF5_FOUND = 2 };

enum {
	VV_HDF5_RANK = 32,
	VV_HDF5_PATH = 4096,
	VV_HDF5_LEVELS = 32, /* of trees */
	VV_HDF5_OBJECTS = 1 << 20,
	VV_HDF5_NAMES = 64 << 20, /* bytes, of all objects together */
	VV_HDF5_BLOCKS = 1 << 21,
	VV_HDF5_RECORD = 512, /* of a tree: more than a chunk of 32 dimensions needs */
};

#define VV_HDF5_NOWHERE UINT64_MAX /* the undefined address */

struct vv_hdf5_node { /* an object that was found: a step of its path */
	uint64_t at;
	uint32_t parent, depth;
	size_t name, len; /* in `names` */
};

enum { VV_HDF5_HARD = 0, VV_HDF5_SOFT = 1, VV_HDF5_OUTSIDE = 64 }; /* links */

struct vv_hdf5_link { /* a name that leads to what has one already, or to a path */
	uint32_t parent;
	uint8_t kind;
	uint64_t at; /* of a hard one */
	size_t name, len, target, target_len; /* in `names` */
};

struct vv_hdf5 {
	const struct vv_reader_file *f;
	struct vv_outline *out;
	uint64_t base; /* where addresses are counted from: after the user block */
	uint8_t address_size, length_size;
	uint64_t root, extension, shared; /* object headers, and the table of shared messages */
	uint64_t budget; /* bytes that may still be looked at */
	bool following;  /* a message to where it is stored */
	struct vv_hdf5_cache *cache;
	struct { /* blocks that were looked at: an open hash of addresses + 1 */
		uint64_t *slot;
		size_t n, cap;
	} seen;
	struct vv_hdf5_node *node; /* node 0 is the root */
	size_t n_nodes, nodes_cap;
	struct vv_hdf5_link *link;
	size_t n_links, links_cap;
	struct vv_buf names;
};

struct vv_hdf5_message {
	unsigned type;
	uint64_t at; /* of its body */
	const uint8_t *p;
	size_t n;
};

struct vv_hdf5_space {
	bool null;
	unsigned rank;
	uint64_t dim[VV_HDF5_RANK], max[VV_HDF5_RANK];
};

struct vv_hdf5_type {
	uint8_t type;   /* enum vv_type */
	uint32_t size;  /* of an element */
	uint32_t width; /* of a number, or of an element that is not one */
	bool swapped, variable_length;
	struct vv_odd odd;
	unsigned rank;  /* of an array in each element */
	uint64_t dim[VV_HDF5_RANK];
};

enum vv_hdf5_class { VV_HDF5_COMPACT, VV_HDF5_CONTIGUOUS, VV_HDF5_CHUNKED, VV_HDF5_VIRTUAL };

enum vv_hdf5_index { /* as in layout messages of version 4; those before had trees of version 1 */
	VV_HDF5_TREE1,
	VV_HDF5_SINGLE,
	VV_HDF5_IMPLICIT,
	VV_HDF5_FIXED,
	VV_HDF5_EXTENSIBLE,
	VV_HDF5_TREE2,
	VV_HDF5_INDEXES
};

struct vv_hdf5_layout {
	uint8_t class;
	uint64_t at, len; /* of the data; of chunks: of their index; of maps: the collection that holds them, and their number there */
	unsigned rank;
	uint64_t chunk[VV_HDF5_RANK];
	uint8_t index;
	bool edges_plain;  /* chunks that reach over an edge are not filtered */
	bool single_coded;
	uint32_t mask;     /* of a single chunk */
};

struct vv_hdf5_pipeline {
	unsigned n;
	struct vv_reader_filter filter[VV_READER_FILTERS];
};

enum { /* which messages there were */
	VV_HDF5_HAS_SPACE = 1,
	VV_HDF5_HAS_TYPE = 2,
	VV_HDF5_HAS_LAYOUT = 4,
	VV_HDF5_HAS_PARTS = 7,
	VV_HDF5_HAS_EXTERNAL = 8, /* its data lie in other files */
	VV_HDF5_IS_BROKEN = 16,
};

struct vv_hdf5_object { /* what the messages of an object header say */
	uint32_t node;
	unsigned has;
	struct vv_hdf5_space space;
	struct vv_hdf5_type type;
	struct vv_hdf5_layout layout;
	struct vv_hdf5_pipeline pipeline;
	uint8_t fill[16];
	uint8_t n_fill;
	uint64_t tree, names; /* of a group of the old kind */
	uint64_t heap, index; /* of links outside of the header */
};

/* hdf5_file.c: bytes at addresses */
int vv_hdf5_file_open(struct vv_hdf5 *h);
void vv_hdf5_file_close(struct vv_hdf5 *h);
int vv_hdf5_file_get(struct vv_hdf5 *h, uint64_t at, void *to, size_t n);
/* A block of n bytes that begins with these four, from behind them on; `to` has n bytes. */
int vv_hdf5_file_block(struct vv_hdf5 *h, uint64_t at, const char *magic, void *to, size_t n, struct vv_wire *w);
/* Is [at, at + n) in the file? */
bool vv_hdf5_file_has(const struct vv_hdf5 *h, uint64_t at, uint64_t n);
/* VV_HDF5_BROKEN where this block was looked at before. */
int vv_hdf5_file_first(struct vv_hdf5 *h, uint64_t at);
/* Less may be looked at from now on. */
int vv_hdf5_file_spend(struct vv_hdf5 *h, uint64_t n);
uint64_t vv_hdf5_file_uint(struct vv_wire *w, unsigned size); /* of up to 8 bytes */
uint64_t vv_hdf5_file_address(const struct vv_hdf5 *h, struct vv_wire *w);
uint64_t vv_hdf5_file_length(const struct vv_hdf5 *h, struct vv_wire *w);

/* hdf5_object.c: the messages of an object header, until `each` says otherwise */
typedef int vv_hdf5_each_message(struct vv_hdf5 *h, void *arg, const struct vv_hdf5_message *m);
int vv_hdf5_object_each(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_message *each, void *arg);

/* hdf5_shared.c: what a message that is stored elsewhere holds, into `to` */
int vv_hdf5_shared_open(struct vv_hdf5 *h);
int vv_hdf5_shared_get(struct vv_hdf5 *h, const struct vv_hdf5_message *m, struct vv_buf *to);

/* hdf5_btree.c: the leaves of trees of version 1 (kind 0: groups, 1: chunks), the records of those of version 2 */
typedef int vv_hdf5_each_child(struct vv_hdf5 *h, void *arg, const uint8_t *key, uint64_t child);
int vv_hdf5_btree_each_child(struct vv_hdf5 *h, uint64_t at, unsigned kind, size_t key, vv_hdf5_each_child *each, void *arg);
typedef int vv_hdf5_each_record(struct vv_hdf5 *h, void *arg, unsigned kind, const uint8_t *p, size_t n);
/* Trees that are looked at more than once are not `once`. */
int vv_hdf5_btree_each_record(struct vv_hdf5 *h, uint64_t at, bool once, vv_hdf5_each_record *each, void *arg);

/* hdf5_heap.c: fractal heaps */
struct vv_hdf5_heap {
	uint16_t id_size, width, max_bits, rows;
	uint32_t max_managed;
	uint64_t first, max_direct; /* sizes of blocks */
	uint64_t root, huge;
	uint8_t offset_size, len_size;
};
int vv_hdf5_heap_open(struct vv_hdf5 *h, uint64_t at, struct vv_hdf5_heap *heap);
int vv_hdf5_heap_get(struct vv_hdf5 *h, const struct vv_hdf5_heap *heap, const uint8_t *id, size_t n, struct vv_buf *to);

/* hdf5_type.c */
int vv_hdf5_type_parse(const uint8_t *p, size_t n, struct vv_hdf5_type *t);

/* hdf5_group.c */
int vv_hdf5_group_link(struct vv_hdf5 *h, uint32_t parent, const uint8_t *p, size_t n);
int vv_hdf5_group_members(struct vv_hdf5 *h, const struct vv_hdf5_object *o);

/* hdf5_dataset.c */
int vv_hdf5_dataset_message(struct vv_hdf5 *h, struct vv_hdf5_object *o, const struct vv_hdf5_message *m);
int vv_hdf5_dataset_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, const char *path, size_t len);

/* hdf5_chunks.c, hdf5_arrays.c: VV_HDF5_BROKEN: not all of them */
int vv_hdf5_chunks_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable);
typedef int vv_hdf5_each_element(struct vv_hdf5 *h, void *arg, uint64_t index, bool coded, struct vv_wire *w, size_t size);
int vv_hdf5_arrays_fixed(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg);
int vv_hdf5_arrays_extensible(struct vv_hdf5 *h, uint64_t at, vv_hdf5_each_element *each, void *arg);

/* hdf5_virtual.c: the maps of a virtual dataset; VV_HDF5_BROKEN: not all of them, and the variable says why */
int vv_hdf5_virtual_add(struct vv_hdf5 *h, const struct vv_hdf5_object *o, uint32_t variable);

/* hdf5_link.c: links that lead to no object of their own; at the end they become the outline's */
int vv_hdf5_link_note(struct vv_hdf5 *h, const struct vv_hdf5_link *k, const char *name, const char *target);
int vv_hdf5_link_add_all(struct vv_hdf5 *h);

extern const struct vv_reader vv_reader_hdf5;

/* hdf5.c: an object that was found; if it was before, this is another name of it */
int vv_hdf5_found(struct vv_hdf5 *h, uint32_t parent, uint64_t at, const char *name, size_t len);
/* The last *len bytes of `to` are the path of an object. */
int vv_hdf5_path(struct vv_hdf5 *h, uint32_t node, char to[VV_HDF5_PATH], size_t *len);

#endif
