/* The memory of regions: the host's, or a device's. A space knows its own memory, copies in and out
 * of it, and dedups grains there. So only new data has to leave it. */
#ifndef VV_SPACE_SPACE_H
#define VV_SPACE_SPACE_H

#include "base/pool.h"
#include "core/dedup/grain.h"
#include "space/device_inlet.h"

struct vv_sieve_options {
	enum vv_method method;
	uint32_t chunk;
	uint8_t digest_kind;
	uint64_t memory; /* limit of memory beside the regions */
	/* limit of remembered states of the set: vv_grain_limit; 0: limited by memory only */
	uint32_t states;
	/* compare bytes too, where two grains with equal digests are both in memory */
	bool compare;
	int device;      /* number of the device, if the space has several */
	/* Calls fn(arg), which reads regions in host memory; returns an error if some of it is not
	 * there. NULL: all of it is. */
	int (*guard)(void (*fn)(void *arg), void *arg);
};

enum { VV_SINK_ROOMS = 8 };

/* Takes the findings of a pass. The thread that called the pass calls all three functions. */
struct vv_sink {
	void *arg;
	/* Room for the next data: *got bytes, at least a grain and at most `want`. Up to
	 * VV_SINK_ROOMS rooms may be requested before `data` reports the first. After a failure,
	 * some are never reported. NULL: give up, an error is set. The room is from the space's
	 * `rent`, or any memory. */
	uint8_t *(*room)(void *arg, size_t want, size_t *got);
	/* Reports that the data is in the room that was requested first of the unreported ones. */
	int (*data)(void *arg, const uint8_t *p, size_t len);
	/* Ascending over all calls of a pass. A call has all pieces of one slice, or of several. */
	int (*pieces)(void *arg, const struct vv_piece *piece, size_t n);
};

struct vv_sieve_counts { /* grains, of a pass */
	/* changed = zero + fresh + known; known: in older data, or in this epoch's */
	uint64_t changed, zero, fresh, known;
	uint64_t known_here;                  /* of the known ones, those in this epoch's */
	uint64_t forgotten;                   /* digests dropped for lack of memory */
};

struct vv_number_range {
	uint32_t at, len;
};

struct vv_grain_bytes { /* the bytes of a range of grains; NULL: their content is unknown */
	uint32_t at, len; /* numbers */
	const uint8_t *bytes;
};

/* The memory of a set of regions across epochs: the digest of each grain, and the contents of the
 * data. */
struct vv_sieve {
	const struct vv_space *space;
	struct vv_sieve_options opt;
	struct vv_sieve_counts counts; /* of the last pass */
};

struct vv_space {
	const char *name;
	/* Is the device there, with its driver? If not, the error gives the reason. */
	int (*present)(void);
	/* Is all of p..p+len memory of this space? Then *device is set, too. */
	bool (*owns)(const void *p, size_t len, int *device);
	/* Host memory that the device copies to and from at full speed. Any thread may call
	 * both. */
	void *(*rent)(int device, size_t len);
	void (*give_back)(int device, void *p, size_t len);
	/* Copies between the space's memory and the host's, complete on return. */
	int (*copy_out)(void *host, const void *p, size_t len);
	int (*copy_in)(void *p, const void *host, size_t len);
	const struct vv_device_inlet_ops *inlet; /* NULL: the host checks and places all bytes */
	/* Waits for all work on `stream`, or with NULL for all work of the program on the
	 * device. */
	int (*sync)(int device, void *stream);

	int (*open)(const struct vv_sieve_options *opt, struct vv_pool *pool, struct vv_sieve **out);
	void (*close)(struct vv_sieve *s);
	/* Finds the changes of the regions since the last pass or adopt, and passes them to the
	 * sink. Ordinals grow from pass to pass. If it fails, the epoch is discarded: call
	 * forget. */
	int (*pass)(struct vv_sieve *s, struct vv_span *span, size_t n, uint32_t ordinal, const struct vv_sink *sink);
	/* Did the last pass find these bytes in the n grains from `number` on? NULL: no thread
	 * writes there during a pass. */
	bool (*holds)(const struct vv_sieve *s, uint32_t number, uint32_t n, const uint8_t *bytes);
	/* `begin` sets the regions and drops all memory of earlier ones. `learn` then gives the
	 * content of some or all grains at some time. A device looks at all of its memory
	 * itself. */
	int (*begin)(struct vv_sieve *s, struct vv_span *span, size_t n);
	int (*learn)(struct vv_sieve *s, const struct vv_grain_bytes *lesson, size_t n);
	/* The session continues from the content that was learned, or found by the last pass,
	 * whatever the regions hold now. All known data are dropped. The grains in `usable`,
	 * ascending, become known as grain `their number` of the data of `ordinal`. */
	int (*adopt)(struct vv_sieve *s, uint32_t ordinal, const struct vv_number_range *usable, size_t n_usable);
	/* Discards an epoch: its data are not used, and the content of the grains becomes
	 * unknown. */
	void (*forget)(struct vv_sieve *s, uint32_t ordinal);
};

const struct vv_space *vv_space_host(void);
const struct vv_space *vv_space_cuda(void); /* NULL: not built in */

#endif
