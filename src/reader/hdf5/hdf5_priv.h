/* Types that the parts of the HDF5 reader share. After the HDF5 File Format Specification, version
 * 3.0. The file is untrusted: every access is checked against its end, every block is visited once,
 * and the bytes read in all have a limit. */
#ifndef VV_READER_HDF5_HDF5_PRIV_H
#define VV_READER_HDF5_HDF5_PRIV_H

#include "base/wire.h"
#include "reader/reader.h"

/* Functions return 0, an error of reading or memory, which ends the walk, or one of these, which
 * end only the present step. */
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

struct vv_hdf5_link { /* a further name of an object, or a name of a path */
	uint32_t parent;
	uint8_t kind;
	uint64_t at; /* of a hard one */
	size_t name, len, target, target_len; /* in `names` */
};

struct vv_hdf5 {
	const struct vv_reader_file *f;
	struct vv_outline *out;
	uint64_t base; /* address 0: behind the user block */
	uint8_t address_size, length_size;
	uint64_t root, extension, shared; /* object headers, and the table of shared messages */
	uint64_t budget; /* bytes that may still be read */
	bool following;  /* a shared message is being followed to its storage */
	struct vv_hdf5_cache *cache;
	struct { /* visited blocks: an open hash of addresses + 1 */
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

enum vv_hdf5_index { /* as in layout messages of version 4; earlier ones had trees of version 1 */
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
	/* of the data; of the index of chunks; of maps: their collection, and their number there */
	uint64_t at, len;
	unsigned rank;
	uint64_t chunk[VV_HDF5_RANK];
	uint8_t index;
	bool edges_plain;  /* chunks that extend over an edge are not filtered */
	bool single_coded;
	uint32_t mask;     /* of a single chunk */
};

struct vv_hdf5_pipeline {
	unsigned n;
	struct vv_reader_filter filter[VV_READER_FILTERS];
};

enum { /* the messages that were present */
	VV_HDF5_HAS_SPACE = 1,
	VV_HDF5_HAS_TYPE = 2,
	VV_HDF5_HAS_LAYOUT = 4,
	VV_HDF5_HAS_PARTS = 7,
	VV_HDF5_HAS_EXTERNAL = 8, /* its data lie in other files */
	VV_HDF5_IS_BROKEN = 16,
};

struct vv_hdf5_object { /* the messages of an object header */
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

/* hdf5_object.c: called for the messages of an object header, until `each` returns nonzero */
typedef int vv_hdf5_each_message(struct vv_hdf5 *h, void *arg, const struct vv_hdf5_message *m);

/* hdf5_btree.c: called for the leaves of trees of version 1 (kind 0: groups, 1: chunks), and for
 * the records of trees of version 2 */
typedef int vv_hdf5_each_child(struct vv_hdf5 *h, void *arg, const uint8_t *key, uint64_t child);
typedef int vv_hdf5_each_record(struct vv_hdf5 *h, void *arg, unsigned kind, const uint8_t *p, size_t n);

typedef int vv_hdf5_each_element(struct vv_hdf5 *h, void *arg, uint64_t index, bool coded, struct vv_wire *w, size_t size);

extern const struct vv_reader vv_reader_hdf5;

#endif
