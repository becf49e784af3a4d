/* varve: checkpoint-restart that stores only new data.
 *
 *	varve *v;
 *	if (varve_open("/scratch/ckpt", "heat", NULL, &v) < 0) store, lineage, options
 *		exit(1);                                       varve_last_error() has the reason
 *	varve_protect(v, "step", &step, sizeof(step));         a region to save
 *	varve_protect_array(v, "T", T, VARVE_F64, 3, shape);   the same, with a type
 *	if (varve_restart(v, VARVE_LATEST) < 0)                1 = restarted, 0 = no epoch yet
 *		exit(1);                                       the regions are undefined: stop
 *	for (; step < n; step++) {
 *		if (varve_due(v) && varve_checkpoint(v) < 0)   `step` is the next one to do
 *			fprintf(stderr, "%s\n", varve_last_error()); older epochs are intact
 *		...
 *	}
 *	varve_close(v);
 *
 * varve_checkpoint returns as soon as the regions may be changed again. The epoch is stored in the
 * background. varve_wait waits until it is durable, and varve_close waits for the last epoch.
 *
 * On failure a function returns a negative code. varve_last_error() then returns a sentence with
 * the failed operation, the place, and the remedy. One thread at a time uses a session. Concurrent
 * calls wait for each other.
 */
#ifndef VARVE_VARVE_H
#define VARVE_VARVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VARVE_API __attribute__((visibility("default")))

/* The version of this header. varve_version() returns the version of the library. */
#define VARVE_VERSION_MAJOR 0
#define VARVE_VERSION_MINOR 1
#define VARVE_VERSION_PATCH 0
#define VARVE_VERSION (VARVE_VERSION_MAJOR * 10000 + VARVE_VERSION_MINOR * 100 + VARVE_VERSION_PATCH)

/* ---- errors ---------------------------------------------------------------------------------- */

enum varve_error {
	VARVE_OK = 0,
	VARVE_EINVAL = -1,    /* a bad argument, a bad option, a wrong order of calls */
	VARVE_ENOMEM = -2,    /* out of memory, or of file descriptors */
	VARVE_EIO = -3,       /* a disk, a network or a system call failed */
	VARVE_ENOENT = -4,    /* no such store, lineage, epoch or region */
	VARVE_EDAMAGED = -5,  /* stored bytes differ from the bytes written */
	VARVE_EBUSY = -6,     /* another writer has the lineage */
	VARVE_EMISMATCH = -7, /* a region's size or type differs from the stored one */
	VARVE_ENOSPC = -8,    /* the store is full */
	VARVE_ENOTSUP = -9,   /* not built in */
	VARVE_EDENIED = -10,  /* permission or credentials */
	VARVE_EPEER = -11     /* another rank failed, or did not answer in time */
};

/* The message of the calling thread's last failure; "" if there was none. */
VARVE_API const char *varve_last_error(void);
/* A code in a word or two. */
VARVE_API const char *varve_strerror(int code);
VARVE_API const char *varve_version(void);

enum varve_log_level { VARVE_LOG_ERROR, VARVE_LOG_WARN, VARVE_LOG_INFO };

/* From now on fn receives the messages of the library in this process, one sentence each, without a
 * line end. The option `log` still selects the levels. NULL: stderr receives them, as at first. Any
 * thread may call fn, also one of the library, but only one at a time. fn may neither call into a
 * session or a reader nor write into a region. When varve_set_log returns, no thread is in the
 * previous function any more. */
typedef void (*varve_log_fn)(void *arg, int level, const char *sentence);
VARVE_API int varve_set_log(varve_log_fn fn, void *arg);

/* ---- a session ------------------------------------------------------------------------------- */

/* A session. `varve` is its name from before 1.0. In C++ that name excludes a namespace `varve`. A
 * program may define VARVE_NO_OLD_NAMES for all its files. Then the name is not declared, and
 * varve.hpp is such a namespace. */
#ifndef VARVE_NO_OLD_NAMES
typedef struct varve varve;
typedef struct varve varve_session;
#elif defined(__cplusplus)
typedef struct varve_session varve_session;
#else
typedef struct varve varve_session;
#endif

/* Attaches this process to a lineage as its only writer. The store is a path, dir:PATH, ram:NAME
 * (in /dev/shm), mem:NAME (in this process, for tests) or s3://BUCKET/PREFIX. The store and the
 * lineage are created if they do not exist. options: "name=value" pairs separated by blanks, or
 * NULL. `varve config` lists them. Later sources win: built-in, varve.conf (of the machine, of the
 * user, here), VARVE_* in the environment, this string. On failure *out is NULL. */
VARVE_API int varve_open(const char *store, const char *lineage, const char *options, varve_session **out);
/* Waits until the last epoch is durable or has failed, and closes the session. NULL is allowed.
 * Afterwards the regions and the memory of varve_alloc are no longer valid. Returns the error of
 * the last checkpoint if no call has reported it yet. If a call has, it returns 0: only varve_wait
 * confirms that an epoch is durable. The session is closed in any case. */
VARVE_API int varve_close(varve_session *v);

/* ---- regions --------------------------------------------------------------------------------- */

enum varve_type {
	VARVE_BYTES,
	VARVE_I8,
	VARVE_U8,
	VARVE_I16,
	VARVE_U16,
	VARVE_I32,
	VARVE_U32,
	VARVE_I64,
	VARVE_U64,
	VARVE_F32,
	VARVE_F64,
	VARVE_C64,  /* two floats */
	VARVE_C128, /* two doubles */
	VARVE_BF16, /* the upper half of a float */
	VARVE_F16,  /* IEEE 754 binary16 */
	VARVE_F8_E4M3, /* OCP 8-bit: no infinities */
	VARVE_F8_E5M2,
	VARVE_RECORD /* a struct with named fields */
};

enum { VARVE_MAX_DIMS = 16, VARVE_MAX_NAME = 1023 };

/* Declares len bytes at p as the region `name`, for all checkpoints from now on. If the name is
 * already declared, p and len replace the previous values. len may be 0. Memory that is not mapped
 * is refused. */
VARVE_API int varve_protect(varve_session *v, const char *name, void *p, size_t len);
/* The same for an array in C order (slowest dimension first), so that tools can read and compare
 * it. */
VARVE_API int varve_protect_array(varve_session *v, const char *name, void *p, enum varve_type type, int ndim,
				  const size_t *shape);

struct varve_array {
	const char *name;
	void *p;
	enum varve_type type; /* also VARVE_BYTES, with one dimension */
	int ndim;
	const size_t *shape;
};

/* The same for n arrays: all of them, or none if the call fails. */
VARVE_API int varve_protect_arrays(varve_session *v, const struct varve_array *array, size_t n);

struct varve_field {
	const char *name;     /* 1 to 63 letters, digits and '_' */
	enum varve_type type; /* not VARVE_RECORD */
	size_t offset;
	size_t bytes;         /* of all elements if the member is an array */
};

/* A member of a struct: VARVE_FIELD(struct particle, mass, VARVE_F64). */
#define VARVE_FIELD(record, member, type) { #member, type, offsetof(record, member), sizeof(((record *)0)->member) }

/* Declares n structs of `bytes` bytes each, so that tools can read and compare their fields. Up to
 * 128 fields, in any order, which do not overlap. Bytes outside of all fields are saved as well. */
VARVE_API int varve_protect_records(varve_session *v, const char *name, void *p, size_t n, size_t bytes,
				    const struct varve_field *field, size_t n_fields);

/* Declares a region of a program with several ranks, so that a restart on another number of ranks
 * can fill it. If all ranks have the same parts as in the epoch, a restart reads them as plain
 * regions.
 *
 * varve_protect_slab: this rank's part of a global array. In each dimension i, the global array has
 * global[i] elements, and this rank owns count[i] of them, from start[i] on. The memory at p also
 * has ghost[i] cells before and after them, so its shape is count[i] + 2 * ghost[i]. ghost NULL:
 * none. A count may be 0. Each element of the global array has exactly one owner. A rank with
 * several parts of an array declares each under the array's name, '#' and a text of its own: "T#0",
 * "T#1".
 * After a restart on another number of ranks, a ghost cell inside the global array has the value of
 * its owner. A ghost cell outside of it has the value that the rank at that border had there.
 * Without such a rank it is left as it was. */
VARVE_API int varve_protect_slab(varve_session *v, const char *name, void *p, enum varve_type type, int ndim, const size_t *global,
				 const size_t *start, const size_t *count, const size_t *ghost);
/* A region that is equal on all ranks. On another number of ranks, each rank gets the bytes of one
 * of them. */
VARVE_API int varve_protect_shared(varve_session *v, const char *name, void *p, size_t len);
/* This rank's part of a list: `items` items, each of `width` elements of the type (VARVE_BYTES: of
 * `width` bytes). The list is the concatenation of all ranks' parts. A restart on another number of
 * ranks divides it again: each rank gets as many items as it has declared. Together the ranks
 * declare as many as the list has. */
VARVE_API int varve_protect_list(varve_session *v, const char *name, void *p, enum varve_type type, size_t width, size_t items);

/* Removes the region from later checkpoints, and waits for the epoch in progress. The program may
 * free, move or unmap the memory before or after this call, but the call must come before the next
 * checkpoint. The functions free, realloc, munmap, mremap and madvise wait until the bytes are
 * stored or copied. Before memory disappears in other ways (a raw system call, the end of a
 * thread's stack), this call or varve_wait is required. */
VARVE_API int varve_unprotect(varve_session *v, const char *name);
/* Marks a region with writers outside of this process: a device with DMA, or another process. The
 * library can neither detect nor delay their writes. Therefore every checkpoint compares all of the
 * region, and returns when it is copied or stored. */
VARVE_API int varve_untrack(varve_session *v, const char *name);
/* Deduplicates the region in grains of 32 to 4096 bytes (a power of two). 0 restores chunks of the
 * size of the option `chunk`. It is for tables and graphs with scattered changes of single words.
 * The method is full, basic, list, tree or run (NULL: run). The options `grain` and `method` do the
 * same for all regions. varve_protect also accepts a pointer into a GPU's memory. This memory is
 * deduplicated on the device, always in grains. */
VARVE_API int varve_refine(varve_session *v, const char *name, const char *method, size_t grain);
/* Zeroed, page-aligned memory that is a region from the start; NULL on failure. */
VARVE_API void *varve_alloc(varve_session *v, const char *name, size_t len);
/* Removes such a region and frees its memory; NULL is allowed. */
VARVE_API int varve_free(varve_session *v, void *p);

/* ---- checkpoint ------------------------------------------------------------------------------ */

/* Takes the present content of all regions as a new epoch. When it returns 0, any thread may change
 * the regions. The epoch is stored in the background (with the option mode=sync, before the call
 * returns). The call first waits for an epoch in progress. If that epoch failed and no call has
 * reported it, this call returns its error and takes no epoch. Older epochs are unchanged, and the
 * next call tries again. */
VARVE_API int varve_checkpoint(varve_session *v);
/* The same for a program with regions in a GPU's memory. Waits for the work already submitted to
 * the stream (a cudaStream_t), and takes the content of the regions then. It waits for other
 * streams only if the tables of digests grow. varve_checkpoint waits for all work of the process on
 * the device. When either call returns 0, that memory may be changed. */
VARVE_API int varve_checkpoint_on_stream(varve_session *v, void *stream);
/* Gives the epoch of the next varve_checkpoint a label, such as "step-400", so that commands find
 * it as LINEAGE@step-400. The next checkpoint that begins an epoch uses the label up, even if this
 * epoch fails. NULL or "" removes a label that is not used yet. 1 to 64 letters, digits, '.', '_'
 * and '-'; no '.' or '-' in front, no ".."; neither a number nor "latest". If several epochs of a
 * lineage have the same label, it means the newest of them. Every rank gives the same label. */
VARVE_API int varve_label(varve_session *v, const char *label);
/* The number of the newest epoch of this session: the last one taken, or the one restarted from; 0
 * if there is none. */
VARVE_API uint64_t varve_epoch(const varve_session *v);
/* With the option `redundancy`: the newest epoch of this session that survives the loss of nodes,
 * because its parity is complete; 0 if there is none. It never waits. varve_wait makes the parity
 * of its epoch complete, or logs why it cannot. */
VARVE_API uint64_t varve_protected_epoch(const varve_session *v);
/* Returns 1 if the epoch is durable, 0 if it is not yet, and < 0 if it failed (with its error) or
 * never existed. VARVE_LATEST is the epoch of varve_epoch; 1 if there is none. */
VARVE_API int varve_test(varve_session *v, uint64_t epoch);
/* Waits until the epoch is durable; 0 or an error. With VARVE_LATEST also 0 if there is none. */
VARVE_API int varve_wait(varve_session *v, uint64_t epoch);
/* The same for at most so many seconds. Returns 1 if the epoch is durable, and 0 if it is not yet,
 * which is no error; < 0 as varve_test. It is not collective. */
VARVE_API int varve_wait_for(varve_session *v, uint64_t epoch, double seconds);
/* A thread of the library calls fn once for every epoch, when it is durable (rc 0) or has failed
 * (rc < 0, and varve_last_error returns the reason). fn may not call into the session. NULL ends
 * the calls. */
typedef void (*varve_done_fn)(void *arg, uint64_t epoch, int rc);
VARVE_API int varve_on_done(varve_session *v, varve_done_fn fn, void *arg);
/* Returns 1 if a checkpoint is due: by the options `interval`, `overhead` and `mtbf`, and after a
 * request from outside. If none of these options is set, a checkpoint is due at every call. A
 * request is the signal of the option `signal` (SIGUSR1) or the command `varve request PID`. Of
 * `interval` and the interval derived from `mtbf` the shorter one applies, but never more often
 * than `overhead` allows. */
VARVE_API int varve_due(varve_session *v);

/* ---- restart --------------------------------------------------------------------------------- */

#define VARVE_LATEST UINT64_MAX

/* Fills all declared regions with their content in the epoch. Their sizes and types must be those
 * of the epoch. VARVE_LATEST selects the newest intact epoch. Each damaged epoch is skipped, with a
 * warning that names it. If the store cannot be reached, the call returns VARVE_EIO and tries no
 * older epoch.
 * Returns 1; 0 if the lineage has no epoch yet (VARVE_LATEST only); < 0 on failure, and then the
 * content of the regions is undefined. Private memory that mprotect has made read-only or
 * unreadable is writable during the call; then its protection is restored. The next checkpoint
 * continues from this epoch. */
VARVE_API int varve_restart(varve_session *v, uint64_t epoch);
/* The length of a list in the epoch that varve_restart would read, for programs that allocate
 * before they restart. *total (may be NULL): the items of all ranks. *share (may be NULL): of this
 * rank, if it is the same number of ranks as in the epoch; otherwise an even share. All ranks make
 * this call together. Returns 1; 0 if the lineage has no epoch yet; < 0 on failure. */
VARVE_API int varve_list_share(varve_session *v, uint64_t epoch, const char *name, uint64_t *share, uint64_t *total);
/* Reads one region of an epoch into len bytes at p. This memory need not be declared. */
VARVE_API int varve_restart_region(varve_session *v, uint64_t epoch, const char *name, void *p, size_t len);

/* New members come at the end. */
struct varve_region_info {
	uint64_t bytes;
	enum varve_type type;
	int ndim;
	uint64_t shape[VARVE_MAX_DIMS];
};

/* For programs and libraries of different releases. `size` is the size of *out in the program.
 * Members that the program does not know are left out. Members that the library does not know are
 * 0. */
VARVE_API int varve_region_sized(varve_session *v, uint64_t epoch, const char *name, struct varve_region_info *out, size_t size);
/* Size, type and shape of a region in an epoch, for programs that allocate before they restart. */
static inline int varve_region(varve_session *v, uint64_t epoch, const char *name, struct varve_region_info *out)
{
	return varve_region_sized(v, epoch, name, out, sizeof(*out));
}

/* ---- statistics ------------------------------------------------------------------------------ */

/* Pages that first writes have unprotected. One write may unprotect several pages at once (option
 * `granule`). */
struct varve_access {
	uint64_t pages;
	uint64_t bytes;
};

/* New members come at the end. */
struct varve_stats {
	uint64_t epoch;
	uint64_t bytes_memory;    /* in all regions; the next six add up to it */
	uint64_t bytes_unchanged; /* as in the previous epoch */
	uint64_t bytes_zero;
	uint64_t bytes_dup_time;  /* changed, but in the lineage already */
	uint64_t bytes_dup_space; /* twice in this epoch */
	uint64_t bytes_dup_ranks; /* new to this rank, but stored by another one, now or before */
	uint64_t bytes_new;
	uint64_t bytes_stored;    /* the new bytes after compression */
	uint64_t bytes_layer;     /* the whole layer file: blocks and metadata */
	double seconds_blocked;   /* in varve_checkpoint */

	uint64_t bytes_dirty;     /* written since the previous epoch, as far as the tracker knows: the bytes examined */
	uint64_t bytes_copied;    /* before varve_checkpoint returned */
	struct varve_access wait;    /* first writes, while this epoch was being stored, that had to wait for it */
	struct varve_access cow;     /* that found the old content copied, or copied it */
	struct varve_access avoided; /* that found it stored already */
	struct varve_access after;   /* first writes after the previous epoch had been stored */
	double seconds_faults;    /* of the program's threads in page faults of the library, including waits and those of `after` */
	double seconds_waits;     /* of it, waiting */
	double seconds_flush;     /* from the call to durable */
	double bandwidth;         /* bytes_stored per second of it */

	uint64_t bytes_lent;      /* in this rank's layer, and other ranks refer to it */
	double seconds_ranks;     /* in which the ranks exchanged their digests */
};

/* For programs and libraries of different releases: see varve_region_sized. */
VARVE_API int varve_stats_sized(varve_session *v, struct varve_stats *out, size_t size);
/* Figures of the newest checkpoint of this session; waits until it is stored. VARVE_ENOENT if there
 * was none. */
static inline int varve_stats(varve_session *v, struct varve_stats *out)
{
	return varve_stats_sized(v, out, sizeof(*out));
}

#ifdef __cplusplus
}
#endif

#endif
