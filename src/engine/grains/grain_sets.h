/* Regions whose dedup is fine-grained: device memory, and host memory where the program or an option asks for it.
 *
 * They are in sets, by where they are, method and grain. A set has a sieve (space/space.h), which tells at a checkpoint what is new,
 * before the call returns. That goes into the stream (engine/grains/new_data.h); where its pages come to lie in layers is where a set's data lie, and
 * so the pieces of this epoch, and of later ones that copy from it, become runs. */
#ifndef VV_ENGINE_GRAINS_GRAIN_SETS_H
#define VV_ENGINE_GRAINS_GRAIN_SETS_H

#include "engine/lineage/shared_runs.h"
#include "engine/grains/new_data.h"
#include "track/calls.h"

struct vv_fine_key { /* what regions of a set have in common */
	const struct vv_space *space;
	int device;
	enum vv_method method;
	uint32_t grain; /* 0: not fine at all */
};

/* What a region has that is in a set. */
struct vv_fine {
	struct vv_fine_key key;
	struct vv_set *set;    /* in which it is number k, since the sets were last gathered; NULL: in none */
	size_t k;
	uint64_t id;           /* the same as long as it is the same region in the same set */
	struct vv_shared_runs *table; /* of the parent epoch; NULL: none */
	uint64_t len;          /* that it had there */
	struct vv_digest tail; /* of what is less than a grain at its end, there, */
	bool tail_known;       /* if that is known */
	struct vv_scan *scan;  /* that tells which of its pages lo..hi are written, engine/grains/written_pages.h; NULL: none does */
	uintptr_t lo, hi;
	struct vv_calls calls; /* when it last told */
	uint64_t watched;      /* bytes that it had then */
	uint64_t *maybe;
	unsigned retry_in;     /* epochs to go before watching is tried again */
	unsigned backoff;
	uint32_t unhashed, unhashed_end; /* grains of its own that are learned behind the return of a restart: engine/grains/rehash.c */
	uint8_t *host_copy;       /* its bytes in the host's memory, where it is a device's and a sieve of the host looks at it */
	size_t host_copy_len;

	/* Of the epoch under way: */
	enum { VV_TAIL_SAME, VV_TAIL_ZERO, VV_TAIL_NEW } tail_is;
	uint64_t tail_at; /* in the stream */
	struct vv_shared_runs *next; /* what its table will be */
};

struct vv_set_location { /* where the bytes at..end of the data of an epoch lie: runs, from `at` on */
	uint32_t ordinal;
	uint64_t at, end;
	struct vv_shared_runs *shared_runs;
};

struct vv_repeat { /* engine/grains/repeats.h: pages of the stream that a piece repeats */
	size_t piece;
	uint64_t at, len;
};

/* What a set has found in the epoch in progress. */
struct vv_set_epoch {
	struct vv_piece *piece;
	size_t n_pieces, pieces_cap;
	struct vv_repeat *repeat; /* ascending */
	size_t n_repeats, repeats_cap;
	uint64_t data, data_end; /* in the stream */
	uint8_t type;            /* of their elements, if all regions have the same; else bytes */
	bool passed;
	bool placed;          /* the next two are there */
	struct vv_runs found; /* the pieces as runs, over the bytes of the grains' numbers */
};

struct vv_set {
	struct vv_fine_key key;
	const struct vv_space *space; /* of the sieve: that of the key, or the host's */
	struct vv_sieve *sieve;
	uint64_t budget;              /* that the sieve was opened with */
	struct vv_region **region; /* NULL: that is gone since */
	struct vv_span *span; /* of its regions, as of the last pass */
	size_t n, cap;
	uint32_t end;     /* of the numbers */
	uint32_t ordinal; /* the last one used */
	struct vv_set_location *location; /* ascending, and those of one ordinal by their bytes */
	size_t n_locations, locations_cap;
	bool is_rehashing; /* what its regions held at a restart is still being learned */

	struct vv_set_epoch now;
};

struct vv_grain_sets {
	struct vv_set **set;
	size_t n, cap;
	struct vv_new_data new_data;
	uint64_t last_id;
	atomic_bool given_up; /* by who would wait for what is learned behind a restart */
	atomic_uint asked;    /* how often the kernel was asked there what was written */
	void *cuda_stream; /* the device's stream after whose work a checkpoint is to be taken; NULL: after all work */
};

/* ---- engine/grains/grain_sets.c: which regions, and how ---- */

/* How a region of this memory is to be deduped: as the program asked, as the options say, or as a device's memory must be. */
int vv_grain_sets_choose(struct varve *v, const struct vv_region *r, const char *name, const void *p, size_t len,
		     struct vv_fine_key *key);
/* The region is in the set of that key from now on, or in none. */
int vv_grain_sets_assign(struct varve *v, struct vv_region *r, const struct vv_fine_key *key);
void vv_grain_sets_leave(struct vv_region *r);
/* Is it a size that grains may have? `what`: for the message. */
int vv_grain_sets_check(const char *what, uint64_t grain);
/* enum vv_method, or -1. */
int vv_grain_sets_method(const char *name);
/* Every set has the regions that are its now, numbered. */
int vv_grain_sets_gather(struct varve *v);
/* anew: nothing that the one which is there knows will be needed; a device that had no memory is tried again. */
int vv_grain_sets_open_sieve(struct varve *v, struct vv_set *s, bool anew);
/* It knows nothing any more. */
void vv_grain_sets_close_sieve(struct vv_set *s);
/* The host's instead of the device's, which had no memory; with a warning. */
int vv_grain_sets_fall_back(struct varve *v, struct vv_set *s);
/* The spans of a set that the host looks at although it is a device's are copies in the host's memory. */
int vv_grain_sets_copy_to_host(struct vv_set *s);
/* What is less than a grain at a region's end. */
int vv_grain_sets_read_tail(const struct vv_region *r, uint8_t bytes[VV_GRAIN_MAX], size_t *n);
/* All will be written: nobody watches any more. */
void vv_grain_sets_stop_watching(struct varve *v);
void vv_grain_sets_free(struct varve *v);
/* In the call of a checkpoint: what all sets have that is new, into the stream; its pages are added to p->chunks. If it fails,
 * vv_grain_runs_abandon. */
int vv_grain_sets_take(struct vv_layer_writer *p);
/* Nothing is known any more. */
void vv_grain_sets_forget(struct varve *v);

#endif
