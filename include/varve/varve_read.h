/* Reads the epochs of a store without being a writer: no lock is taken, and nothing is created or
 * changed. Readers may run beside the writer of the lineage, in the same process, another process
 * or on another host.
 *
 *	varve_reader *r;
 *	const struct varve_stored_region *const *region;
 *	uint64_t epoch;
 *	size_t n;
 *	if (varve_reader_open("/scratch/ckpt", "heat", NULL, &r) < 0)
 *		exit(1);                                       varve_last_error() has the reason
 *	varve_reader_latest(r, &epoch);
 *	varve_reader_regions(r, epoch, 0, &region, &n);        of rank 0
 *	varve_reader_read(r, epoch, 0, "T", 0, 4096, buffer);  the first 4096 bytes
 *	varve_reader_close(r);
 *
 * Each function returns 0, or a negative code with a sentence in varve_last_error().
 * VARVE_EDAMAGED: the stored bytes differ from the bytes written. VARVE_EIO: the store cannot be
 * reached. VARVE_ENOENT: the epoch does not exist, or its writer has dropped it in the meantime.
 * Concurrent calls with one reader wait for each other.
 *
 * Lists belong to the reader. A list is valid until the next call of the same function with this
 * reader, or varve_reader_close. Later versions may add members at the end of the structures. */
#ifndef VARVE_VARVE_READ_H
#define VARVE_VARVE_READ_H

#include <varve/varve.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct varve_reader varve_reader;

/* Opens a lineage of a store; both must exist. lineage may be NULL for a reader that lists the
 * lineages only. options: as for varve_open; `threads`, `log` and those of s3 have an effect. On
 * failure *out is NULL. */
VARVE_API int varve_reader_open(const char *store, const char *lineage, const char *options, varve_reader **out);
/* NULL is allowed. */
VARVE_API int varve_reader_close(varve_reader *r);

/* The names of all lineages of the store, sorted. */
VARVE_API int varve_reader_lineages(varve_reader *r, const char *const **out, size_t *n);

struct varve_stored_epoch {
	uint64_t epoch;
	uint64_t parent;       /* the epoch before it in its history; 0: none */
	uint64_t time_ns;      /* when it was committed, in nanoseconds since 1970 */
	uint64_t bytes_memory; /* in the regions of all ranks */
	uint64_t bytes_stored; /* its new data after compression */
	uint64_t bytes_layer;  /* its layer files: blocks and metadata */
	uint32_t ranks;
	int complete;          /* 1: its record is intact, and the layers of all ranks are in this store */
	const char *problem;   /* a sentence if it is not complete, else NULL */
	const char *const *label; /* its labels, sorted */
	size_t n_labels;
};

/* All epochs, oldest first. Only their records are read: `varve verify` checks the data. An epoch
 * with a damaged record has a number and a problem. */
VARVE_API int varve_reader_epochs(varve_reader *r, const struct varve_stored_epoch *const **out, size_t *n);
/* The newest epoch; VARVE_ENOENT if there is none. Its cost does not depend on the number of
 * epochs. */
VARVE_API int varve_reader_latest(varve_reader *r, uint64_t *epoch);
/* The epoch with a label, or the newest epoch for "latest". If several epochs have the label, it
 * means the newest of them. VARVE_ENOENT if there is none. */
VARVE_API int varve_reader_find(varve_reader *r, const char *label, uint64_t *epoch);

struct varve_stored_region {
	const char *name;
	uint64_t bytes;
	enum varve_type type;
	uint32_t element;      /* bytes of one element; 1 for VARVE_BYTES */
	int ndim;              /* 0 for VARVE_BYTES */
	uint64_t shape[VARVE_MAX_DIMS];
	const struct varve_field *field; /* of VARVE_RECORD, by offset; else NULL */
	size_t n_fields;
};

/* In place of a rank: the state of all ranks together. Global arrays, lists and shared regions are
 * then regions, each as a whole, and regions of single ranks are not there (varve_protect_slab,
 * varve_protect_list, varve_protect_shared). */
#define VARVE_GLOBAL UINT32_MAX

/* The regions of a rank in an epoch, in the order of their declaration. VARVE_LATEST: of the newest
 * epoch. */
VARVE_API int varve_reader_regions(varve_reader *r, uint64_t epoch, uint32_t rank,
				   const struct varve_stored_region *const **out, size_t *n);

/* Reads `bytes` bytes of a region, from byte `start` on, into the memory at p. Only the blocks with
 * these bytes are read, decoded and checked. After a failure the content of the memory is
 * undefined. p may point into a GPU's memory. */
VARVE_API int varve_reader_read(varve_reader *r, uint64_t epoch, uint32_t rank, const char *name, uint64_t start,
				uint64_t bytes, void *p);
/* Reads a part of an array in elements: in each dimension i, count[i] elements from start[i] on.
 * They are stored at p without gaps, in C order. A region of type VARVE_BYTES has one dimension.
 * start NULL: from the beginning; count NULL: to the end. */
VARVE_API int varve_reader_read_part(varve_reader *r, uint64_t epoch, uint32_t rank, const char *name,
				     const uint64_t *start, const uint64_t *count, void *p);

#ifdef __cplusplus
}
#endif

#endif
