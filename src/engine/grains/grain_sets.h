/* Regions with fine-grained dedup: device memory, and host memory if the program or an option asks
 * for it. Regions with equal space, device, method and grain form a set. A set has a sieve
 * (space/space.h), which finds new data at a checkpoint before the call returns. New data go to
 * engine/grains/new_data.h, and their pages into layers. From these locations, pieces of this epoch
 * and of later ones that copy from it become runs. */
#ifndef VV_ENGINE_GRAINS_GRAIN_SETS_H
#define VV_ENGINE_GRAINS_GRAIN_SETS_H

#include "engine/lineage/shared_runs.h"
#include "engine/grains/new_data.h"
#include "track/calls.h"

struct vv_fine_key { /* the common properties of a set's regions */
	const struct vv_space *space;
	int device;
	enum vv_method method;
	uint32_t grain; /* 0: not fine-grained */
};

/* State of a region in a set. */
struct vv_fine {
	struct vv_fine_key key;
	/* The set in which it has number k since the last gathering; NULL: none. */
	struct vv_set *set;
	size_t k;
	uint64_t id;           /* constant while the region stays in the same set */
	struct vv_shared_runs *table; /* of the parent epoch; NULL: none */
	uint64_t len;          /* its length in the parent epoch */
	/* Of its tail in the parent epoch: the bytes at its end that are less than a grain. */
	struct vv_digest tail;
	bool tail_known;       /* tail is valid */
	/* Finds the written pages of lo..hi, see engine/grains/written_pages.h; NULL: not
	 * watched. */
	struct vv_scan *scan;
	uintptr_t lo, hi;
	struct vv_calls calls; /* in progress at the last search for written pages */
	uint64_t watched;      /* its length at that time, in bytes */
	uint64_t *maybe;
	unsigned retry_in;     /* epochs left before watching is tried again */
	unsigned backoff;
	/* Its grains that are hashed in the background after a restart: engine/grains/rehash.c. */
	uint32_t unhashed, unhashed_end;
	/* A copy in host memory, for a device region whose sieve runs on the host. */
	uint8_t *host_copy;
	size_t host_copy_len;

	/* Of the epoch in progress: */
	enum { VV_TAIL_SAME, VV_TAIL_ZERO, VV_TAIL_NEW } tail_is;
	uint64_t tail_at; /* position in the new data */
	struct vv_shared_runs *next; /* its future table */
};

/* The location of the bytes at..end of an epoch's data. Offset 0 of the runs is `at`. */
struct vv_set_location {
	uint32_t ordinal;
	uint64_t at, end;
	struct vv_shared_runs *shared_runs;
};

/* Pages of the new data that a piece repeats: engine/grains/repeats.h. */
struct vv_repeat {
	size_t piece;
	uint64_t at, len;
};

/* The findings of a set in the epoch in progress. */
struct vv_set_epoch {
	struct vv_piece *piece;
	size_t n_pieces, pieces_cap;
	struct vv_repeat *repeat; /* ascending */
	size_t n_repeats, repeats_cap;
	uint64_t data, data_end; /* positions in the new data */
	/* Of the elements, if all regions have the same type; else bytes. */
	uint8_t type;
	bool passed;
	bool placed;          /* `found` is complete */
	/* The pieces as runs, with offsets by the grains' numbers. */
	struct vv_runs found;
};

struct vv_set {
	struct vv_fine_key key;
	const struct vv_space *space; /* of the sieve: that of the key, or the host */
	struct vv_sieve *sieve;
	uint64_t budget;              /* memory limit of the sieve */
	struct vv_region **region; /* NULL: removed since */
	struct vv_span *span; /* of its regions, as of the last pass */
	size_t n, cap;
	uint32_t end;     /* of the grains' numbers */
	uint32_t ordinal; /* the last one used */
	struct vv_set_location *location; /* ascending by ordinal, then by bytes */
	size_t n_locations, locations_cap;
	/* Content of its regions from a restart is still being hashed. */
	bool is_rehashing;

	struct vv_set_epoch now;
};

struct vv_grain_sets {
	struct vv_set **set;
	size_t n, cap;
	struct vv_new_data new_data;
	uint64_t device_bytes; /* of the regions in device memory */
	uint64_t last_id;
	atomic_bool given_up; /* the background hashing after a restart was cancelled */
	/* The number of queries for written pages in the background hashing. */
	atomic_uint asked;
	/* The device's stream whose work a checkpoint waits for; NULL: all work. */
	void *cuda_stream;
};

/* ---- engine/grains/grain_sets.c: the choice of regions and methods --------------------------- */

/* Chooses the dedup of a region in this memory, by the program's request, the options, or the needs
 * of device memory. */
int vv_grain_sets_choose(struct varve *v, const struct vv_region *r, const char *name, const void *p, size_t len,
		     struct vv_fine_key *key);
/* Moves the region to the set of that key, or to none. */
int vv_grain_sets_assign(struct varve *v, struct vv_region *r, const struct vv_fine_key *key);
void vv_grain_sets_leave(struct vv_region *r);
/* Checks the size of a grain. The first argument prefixes the message. */
int vv_grain_sets_check(const char *what, uint64_t grain);
/* Returns an enum vv_method, or -1. */
int vv_grain_sets_method(const char *name);
/* Updates the regions of every set, and numbers their grains. */
int vv_grain_sets_gather(struct varve *v);
/* reopen: the knowledge of the existing sieve is not needed, and a device that lacked memory is
 * tried again. */
int vv_grain_sets_open_sieve(struct varve *v, struct vv_set *s, bool reopen);
/* Closes the sieve and forgets all locations. */
void vv_grain_sets_close_sieve(struct vv_set *s);
/* Replaces the device's sieve by one on the host, with a warning. The device lacked memory or the
 * digest. */
int vv_grain_sets_fall_back(struct varve *v, struct vv_set *s);
/* If a sieve on the host serves a device, copies the regions to host memory and points the spans
 * there. */
int vv_grain_sets_copy_to_host(struct vv_set *s);
/* Reads the bytes at a region's end that are less than a grain. */
int vv_grain_sets_read_tail(const struct vv_region *r, uint8_t bytes[VV_GRAIN_MAX], size_t *n);
/* Stops all watching, since all memory will be written. */
void vv_grain_sets_stop_watching(struct varve *v);
void vv_grain_sets_free(struct varve *v);
/* In the call of a checkpoint: appends the new data of all sets and adds their pages to p->chunks.
 * After a failure, call vv_grain_runs_abandon. */
int vv_grain_sets_take(struct vv_layer_writer *p);
/* Forgets all known content. */
void vv_grain_sets_forget(struct varve *v);

#endif
