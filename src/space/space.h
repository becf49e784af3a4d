/* Where the bytes of regions are: in the host's memory, or in a device's. A space knows its own memory, copies in and out of it, and dedups
 * grains there, so that only what is new has to leave it. */
#ifndef VV_SPACE_SPACE_H
#define VV_SPACE_SPACE_H

#include "base/pool.h"
#include "core/dedup/grain.h"
#include "space/device_inlet.h"

struct vv_sieve_options {
	enum vv_method method;
	uint32_t chunk;
	uint8_t digest_kind;
	uint64_t memory; /* that may be used beside the regions */
	uint32_t states; /* of the set that are remembered at most: vv_grain_limit; 0: as many as there is memory for */
	bool compare;    /* bytes too, where equal digests are both at hand */
	int device;      /* of the space, where it has several */
	/* Calls fn(arg), which reads regions in the host's memory: an error if some of it is not there. NULL: all of it is. */
	int (*guard)(void (*fn)(void *arg), void *arg);
};

enum { VV_SINK_ROOMS = 8 };

/* Takes what a pass finds. The three are called by the thread that called the pass. */
struct vv_sink {
	void *arg;
	/* Room for the next data: *got bytes, at least a grain and at most `want`. Several may be asked for before the first is told of, but not more
	 * than VV_SINK_ROOMS; after a failure some are never told of. NULL: give up, and an error is set. The room was
	 * got from the space's `rent`, or is any memory. */
	uint8_t *(*room)(void *arg, size_t want, size_t *got);
	/* The data in the room that was asked for first and is not told of yet are there. */
	int (*data)(void *arg, const uint8_t *p, size_t len);
	/* Ascending over all calls of a pass; of a slice, or of several, all at once. */
	int (*pieces)(void *arg, const struct vv_piece *piece, size_t n);
};

struct vv_sieve_counts { /* grains, of a pass */
	uint64_t changed, zero, fresh, known; /* changed = zero + fresh + known; known: in older data, or in this epoch's */
	uint64_t known_here;                  /* of them, in this epoch's */
	uint64_t forgotten;                   /* digests that had to be dropped for want of memory */
};

struct vv_number_range { /* of numbers */
	uint32_t at, len;
};

struct vv_grain_bytes { /* so many grains hold these bytes; NULL: nobody knows what they hold */
	uint32_t at, len; /* numbers */
	const uint8_t *bytes;
};

/* What is remembered of a set of regions from epoch to epoch: each grain's digest, and which contents are in which data. */
struct vv_sieve {
	const struct vv_space *space;
	struct vv_sieve_options opt;
	struct vv_sieve_counts counts; /* of the last pass */
};

struct vv_space {
	const char *name;
	/* Is it there: a device, its driver? An error that says why not. */
	int (*present)(void);
	/* Is all of p..p+len memory of this space? Then *device, too. */
	bool (*owns)(const void *p, size_t len, int *device);
	/* Host memory that it copies to and from at full speed. */
	void *(*rent)(size_t len);
	void (*give_back)(void *p, size_t len);
	/* Between its memory and the host's; complete when they return. */
	int (*copy_out)(void *host, const void *p, size_t len);
	int (*copy_in)(void *p, const void *host, size_t len);
	const struct vv_device_inlet_ops *inlet; /* NULL: the host checks all bytes and puts them in their places */
	/* All work that was begun on `stream` is done, or with NULL all work of the program on the device. */
	int (*sync)(int device, void *stream);

	int (*open)(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_sieve **out);
	void (*close)(struct vv_sieve *s);
	/* Looks at the regions: what has changed since the last pass or adopt goes to the sink. Ordinals grow from pass to pass. If it fails, so
	 * does the epoch: forget. */
	int (*pass)(struct vv_sieve *s, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_sink *sink);
	/* Are these bytes what the last pass found in so many grains from that number on? NULL: nobody writes there while it is looked at. */
	bool (*holds)(const struct vv_sieve *s, uint32_t number, uint32_t n, const uint8_t *bytes);
	/* These are the regions, and nothing is remembered. Then, of all or some of their grains, what they held at some time: a device looks for itself,
	 * at all of its memory. */
	int (*begin)(struct vv_sieve *s, struct vv_span *span, size_t n);
	int (*learn)(struct vv_sieve *s, const struct vv_grain_bytes *lesson, size_t n);
	/* The session continues from what the regions were learned to hold, or found to by the last pass, whatever they hold now. All data that were known
	 * are dropped; the grains in `usable`, ascending, become known as grain `their number` of the data of `ordinal`. */
	int (*adopt)(struct vv_sieve *s, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable);
	/* The epoch does not count: its data are not to be used, and what the grains held is not known any more. */
	void (*forget)(struct vv_sieve *s, uint32_t ordinal);
};

const struct vv_space *vv_space_host(void);
const struct vv_space *vv_space_cuda(void); /* NULL: not built in */

#endif
