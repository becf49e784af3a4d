/* varve: checkpoint-restart that stores only new data.
 *
 *	varve *v;
 *	if (varve_open("/scratch/ckpt", "heat", NULL, &v) < 0) store, lineage, options ("codec=zstd keep=3")
 *		exit(1);                                       varve_last_error() has the reason
 *	varve_protect(v, "step", &step, sizeof(step));         a region to save
 *	varve_protect_array(v, "T", T, VARVE_F64, 3, shape);   the same, with a type
 *	if (varve_restart(v, VARVE_LATEST) < 0)                fills the regions: 1 = restarted, 0 = no epoch yet
 *		exit(1);                                       their content is now undefined: do not continue
 *	for (; step < n; step++) {
 *		if (varve_due(v))
 *			varve_checkpoint(v);                   before the step: `step` is the next one to do
 *		...
 *	}
 *	varve_close(v);
 *
 * varve_checkpoint returns as soon as the regions may be changed again. The epoch is stored in the background. varve_wait waits
 * until it is durable, and varve_close waits for the last epoch.
 *
 * On failure a function returns a negative code. varve_last_error() then returns a sentence with the failed operation, the
 * place, and the remedy. One thread at a time uses a session. Concurrent calls wait for each other.
 */
#ifndef VARVE_VARVE_H
#define VARVE_VARVE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VARVE_API __attribute__((visibility("default")))

/* ---- errors ---------------------------------------------------------------------------------------------------- */

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

/* ---- a session --------------------------------------------------------------------------------------------------- */

typedef struct varve varve;

/* Attaches this process to a lineage as its only writer. The store is a path, dir:PATH, mem:NAME or s3://BUCKET/PREFIX. The
 * store and the lineage are created if they do not exist. options: "name=value" pairs separated by blanks, or NULL.
 * `varve config` lists them. Later sources win: built-in, varve.conf, VARVE_* in the environment, this string. On failure
 * *out is NULL. */
VARVE_API int varve_open(const char *store, const char *lineage, const char *options, varve **out);
/* Waits until the last epoch is durable, and closes the session. NULL is allowed. Afterwards the regions and the memory of
 * varve_alloc are no longer valid. Returns the error of the last checkpoint if no call has reported it yet. The session is
 * closed in any case. */
VARVE_API int varve_close(varve *v);

/* ---- regions ------------------------------------------------------------------------------------------------------- */

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
	VARVE_C128  /* two doubles */
};

enum { VARVE_MAX_DIMS = 16, VARVE_MAX_NAME = 255 };

/* Declares len bytes at p as the region `name`, for all checkpoints from now on. If the name is already declared, p and len
 * replace the previous values. len may be 0. */
VARVE_API int varve_protect(varve *v, const char *name, void *p, size_t len);
/* The same for an array in C order (slowest dimension first), so that tools can read and compare it. */
VARVE_API int varve_protect_array(varve *v, const char *name, void *p, enum varve_type type, int ndim,
				  const size_t *shape);
/* Removes the region from later checkpoints, and waits for the epoch in progress. The program may free, move or unmap the memory
 * before or after this call, but the call must come before the next checkpoint: free, realloc, munmap, mremap and madvise wait
 * until the bytes are stored or copied. Before memory disappears in other ways (a raw system call, the end of a thread's stack),
 * this call or varve_wait is required. */
VARVE_API int varve_unprotect(varve *v, const char *name);
/* Marks a region with writers outside of this process: a device with DMA, or another process. The library can neither detect nor
 * delay their writes. Therefore every checkpoint compares all of the region, and returns when it is copied or stored. */
VARVE_API int varve_untrack(varve *v, const char *name);
/* Deduplicates the region in grains of 32 to 4096 bytes (a power of two). 0 restores chunks of the size of the option `chunk`.
 * It is for tables and graphs with scattered changes of single words. The method is full, basic, list, tree or run (NULL: run).
 * The options `grain` and `method` do the same for all regions. varve_protect also accepts a pointer into a GPU's memory. This
 * memory is deduplicated on the device, always in grains. */
VARVE_API int varve_refine(varve *v, const char *name, const char *method, size_t grain);
/* Zeroed, page-aligned memory that is a region from the start; NULL on failure. */
VARVE_API void *varve_alloc(varve *v, const char *name, size_t len);
/* Removes such a region and frees its memory; NULL is allowed. */
VARVE_API int varve_free(varve *v, void *p);

/* ---- checkpoint ----------------------------------------------------------------------------------------------------- */

/* Takes the present content of all regions as a new epoch. When it returns 0, any thread may change the regions. The epoch is
 * stored in the background (with the option mode=sync, before the call returns). The call first waits for an epoch in progress.
 * If that epoch failed, the call returns its error and takes no epoch. Older epochs are unchanged, and the next call tries
 * again. */
VARVE_API int varve_checkpoint(varve *v);
/* The same for a program with regions in a GPU's memory. Waits for the work already submitted to the stream (a cudaStream_t), and
 * takes the content of the regions then. It waits for other streams only if the tables of digests grow. varve_checkpoint waits for
 * all work of the process on the device. When either call returns 0, that memory may be changed. */
VARVE_API int varve_checkpoint_on_stream(varve *v, void *stream);
/* The number of the newest epoch of this session: the last one taken, or the one restarted from; 0 if there is none. */
VARVE_API uint64_t varve_epoch(const varve *v);
/* Returns 1 if the epoch is durable, 0 if it is not yet, and < 0 if it failed (with its error) or never existed. VARVE_LATEST is the
 * epoch of varve_epoch; 1 if there is none. */
VARVE_API int varve_test(varve *v, uint64_t epoch);
/* Waits until the epoch is durable; 0 or an error. With VARVE_LATEST also 0 if there is none. */
VARVE_API int varve_wait(varve *v, uint64_t epoch);
/* A thread of the library calls fn once for every epoch, when it is durable (rc 0) or has failed (rc < 0, and varve_last_error
 * returns the reason). fn may not call into the session. NULL ends the calls. */
typedef void (*varve_done_fn)(void *arg, uint64_t epoch, int rc);
VARVE_API int varve_on_done(varve *v, varve_done_fn fn, void *arg);
/* Returns 1 if a checkpoint is due: by the options `interval`, `overhead` and `mtbf`, at every call if none of them is set, and
 * after a request from outside. A request is the signal of the option `signal` (SIGUSR1) or the command `varve request PID`. Of
 * `interval` and the interval derived from `mtbf` the shorter one applies, but never more often than `overhead` allows. */
VARVE_API int varve_due(varve *v);

/* ---- restart -------------------------------------------------------------------------------------------------------- */

#define VARVE_LATEST UINT64_MAX

/* Fills all declared regions with their content in the epoch. Their sizes and types must be those of the epoch. VARVE_LATEST selects
 * the newest intact epoch. Each damaged epoch is skipped, with a warning that names it. If the store cannot be reached, the call
 * returns VARVE_EIO and tries no older epoch.
 * Returns 1; 0 if the lineage has no epoch yet (VARVE_LATEST only); < 0 on failure, and then the content of the regions is
 * undefined. Private memory that mprotect has made read-only or unreadable is writable during the call; then its protection is
 * restored. The next checkpoint continues from this epoch. */
VARVE_API int varve_restart(varve *v, uint64_t epoch);
/* Reads one region of an epoch into len bytes at p. This memory need not be declared. */
VARVE_API int varve_restart_region(varve *v, uint64_t epoch, const char *name, void *p, size_t len);

struct varve_region_info {
	uint64_t bytes;
	enum varve_type type;
	int ndim;
	uint64_t shape[VARVE_MAX_DIMS];
};

/* Size, type and shape of a region in an epoch, for programs that allocate before they restart. */
VARVE_API int varve_region(varve *v, uint64_t epoch, const char *name, struct varve_region_info *out);

/* ---- statistics ----------------------------------------------------------------------------------------------------- */

/* Pages that first writes have unprotected. One write may unprotect several pages at once (option `granule`). */
struct varve_access {
	uint64_t pages;
	uint64_t bytes;
};

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

/* Figures of the newest checkpoint of this session; waits until it is stored. VARVE_ENOENT if there was none. */
VARVE_API int varve_stats(varve *v, struct varve_stats *out);

#ifdef __cplusplus
}
#endif

#endif
