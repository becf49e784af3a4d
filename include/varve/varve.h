/* varve: checkpoint-restart that stores only what is new.
 *
 *	varve *v;
 *	varve_open("/scratch/ckpt", "heat", NULL, &v);         a store, a lineage, options ("codec=zstd keep=3")
 *	varve_protect(v, "step", &step, sizeof(step));         what to save
 *	varve_protect_array(v, "T", T, VARVE_F64, 3, shape);   the same, with a type
 *	if (varve_restart(v, VARVE_LATEST) < 0)                fills the regions: 1 = restarted, 0 = nothing there yet
 *		exit(1);                                       what they hold now is not defined: do not go on
 *	for (; step < n; step++) {
 *		if (varve_due(v))
 *			varve_checkpoint(v);                   before the step: `step` says what is still to be done
 *		...
 *	}
 *	varve_close(v);
 *
 * varve_checkpoint returns as soon as the regions may be changed again; the epoch is stored behind it. varve_wait waits until
 * it is durable, varve_close waits for the last one.
 *
 * Every function that can fail returns a negative code and leaves a sentence in varve_last_error() that says what failed,
 * where, and what to do. A session may be used by one thread at a time; calls from several threads wait for each other.
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
	VARVE_EDAMAGED = -5,  /* stored bytes are not what was written */
	VARVE_EBUSY = -6,     /* another writer has the lineage */
	VARVE_EMISMATCH = -7, /* a region's size or type differs from what is stored */
	VARVE_ENOSPC = -8,    /* the store is full */
	VARVE_ENOTSUP = -9,   /* not built in */
	VARVE_EDENIED = -10,  /* permission or credentials */
	VARVE_EPEER = -11     /* another rank failed, or did not come in time */
};

/* The calling thread's last failure, in words; "" if there was none. */
VARVE_API const char *varve_last_error(void);
/* A code in a word or two. */
VARVE_API const char *varve_strerror(int code);
VARVE_API const char *varve_version(void);

/* ---- a session --------------------------------------------------------------------------------------------------- */

typedef struct varve varve;

/* Attaches this process to a lineage, as its only writer. The store is a path, dir:PATH, mem:NAME or s3://BUCKET/PREFIX;
 * it and the lineage are made if they are not there. options: "name=value" pairs between blanks, or NULL; `varve config`
 * lists them. Later sources win: built-in, varve.conf, VARVE_* in the environment, this string. */
VARVE_API int varve_open(const char *store, const char *lineage, const char *options, varve **out);
/* Waits until what was checkpointed is durable, and lets go; NULL is fine. Regions and memory of varve_alloc are no longer
 * valid after it. Returns the error of the last checkpoint if it failed and nobody has been told yet; the session is gone
 * all the same. */
VARVE_API int varve_close(varve *v);

/* ---- what to save -------------------------------------------------------------------------------------------------- */

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

/* Declares len bytes at p as the region `name`, for the checkpoints from now on. A name that is there already is moved or
 * resized: p and len replace what was declared. len may be 0. */
VARVE_API int varve_protect(varve *v, const char *name, void *p, size_t len);
/* The same for an array in C order (slowest dimension first), so that tools can read and compare it. */
VARVE_API int varve_protect_array(varve *v, const char *name, void *p, enum varve_type type, int ndim,
				  const size_t *shape);
/* Takes the region out of later checkpoints; waits for the epoch that is being stored. Before the region's memory is freed, moved or
 * unmapped, or after it, but before the next checkpoint: free, realloc, munmap, mremap and madvise wait until the bytes are stored or
 * copied. Memory that goes in other ways (a raw system call, a thread's stack) needs this call, or varve_wait, before. */
VARVE_API int varve_unprotect(varve *v, const char *name);
/* The region's memory is written by others than this process's threads: a device that does DMA into it, another process. Its
 * writes cannot be seen or held up, so every checkpoint compares all of it and returns only when it is copied or stored. */
VARVE_API int varve_untrack(varve *v, const char *name);
/* Looks at the region in grains of 32 to 4096 bytes (a power of two; 0: in chunks again, as the option `chunk` says), by one of the methods full,
 * basic, list, tree and run (NULL: run): for tables and graphs of which a word changes here and there. The options `grain` and
 * `method` do so for all regions. varve_protect takes a pointer into a GPU's memory as well, and dedups it there, always in grains. */
VARVE_API int varve_refine(varve *v, const char *name, const char *method, size_t grain);
/* Zeroed, page-aligned memory that is a region from the start; NULL on failure. */
VARVE_API void *varve_alloc(varve *v, const char *name, size_t len);
/* Takes such a region out and gives its memory back; NULL is fine. */
VARVE_API int varve_free(varve *v, void *p);

/* ---- checkpoint ----------------------------------------------------------------------------------------------------- */

/* Takes the present content of all regions as a new epoch. When it returns 0, any thread may change the regions; the epoch is
 * stored in the background (with the option mode=sync before the call returns). A checkpoint that is still being stored is
 * waited for first; if that one failed, this call says so and takes none: everything older is as it was, and the next call
 * tries again. */
VARVE_API int varve_checkpoint(varve *v);
/* The same for a program with regions in a GPU's memory: takes what they hold when the work is done that was given to the stream (a
 * cudaStream_t) until now, without waiting for other streams (but for calls in which the tables of digests grow). varve_checkpoint waits for all work of the process on the device. When either
 * returns 0, that memory may be changed. */
VARVE_API int varve_checkpoint_on_stream(varve *v, void *stream);
/* The number of the newest epoch of this session: the one just taken, or restarted from; 0 if there is none. */
VARVE_API uint64_t varve_epoch(const varve *v);
/* Has the epoch become durable? 1 yes, 0 not yet, < 0 it failed (with the error that it failed with) or never was. VARVE_LATEST is that of
 * varve_epoch; 1 if there is none. */
VARVE_API int varve_test(varve *v, uint64_t epoch);
/* Waits until it has; 0 or an error. With VARVE_LATEST also 0 if there is none. */
VARVE_API int varve_wait(varve *v, uint64_t epoch);
/* Called once for every epoch, on a thread of the library, when it has become durable (rc 0) or has failed (rc < 0, and
 * varve_last_error says why). It may not call into the session. NULL = no more. */
typedef void (*varve_done_fn)(void *arg, uint64_t epoch, int rc);
VARVE_API int varve_on_done(varve *v, varve_done_fn fn, void *arg);
/* Is it time? 1 when the option `interval` (or `overhead`, or `mtbf`) says so, always when none of them is set, and after a
 * request from outside: the signal of the option `signal` (SIGUSR1), or the command `varve request PID`. With several of them the
 * shorter of `interval` and what follows from `mtbf` counts, but it is never more often than `overhead` allows. */
VARVE_API int varve_due(varve *v);

/* ---- restart -------------------------------------------------------------------------------------------------------- */

#define VARVE_LATEST UINT64_MAX

/* Fills all regions declared so far with what they held in the epoch; they must have the sizes and types they had. VARVE_LATEST
 * takes the newest epoch that is whole: one that turns out to be damaged is named in a warning and passed over. A store that
 * cannot be reached is VARVE_EIO: nothing older is taken for it.
 * Returns 1; 0 if the lineage has no epoch yet (VARVE_LATEST only); < 0 on failure, and then what the regions hold is
 * not defined. Private memory that mprotect has shut is opened meanwhile, and shut again as it was. The next checkpoint
 * continues from this epoch. */
VARVE_API int varve_restart(varve *v, uint64_t epoch);
/* Reads one region of an epoch into len bytes at p, which need not be declared. */
VARVE_API int varve_restart_region(varve *v, uint64_t epoch, const char *name, void *p, size_t len);

struct varve_region_info {
	uint64_t bytes;
	enum varve_type type;
	int ndim;
	uint64_t shape[VARVE_MAX_DIMS];
};

/* What an epoch knows of a region: for programs that allocate by what was saved. */
VARVE_API int varve_region(varve *v, uint64_t epoch, const char *name, struct varve_region_info *out);

/* ---- how it went ---------------------------------------------------------------------------------------------------- */

/* First writes, by what they met: the pages that they opened, which is more than was written where a fence opens several pages at once (option `granule`). */
struct varve_access {
	uint64_t pages;
	uint64_t bytes;
};

struct varve_stats {
	uint64_t epoch;
	uint64_t bytes_memory;    /* in all regions; the next six add up to it */
	uint64_t bytes_unchanged; /* as in the epoch before */
	uint64_t bytes_zero;
	uint64_t bytes_dup_time;  /* changed, but in the lineage already */
	uint64_t bytes_dup_space; /* twice in this epoch */
	uint64_t bytes_dup_ranks; /* new to this rank, but another one stores it or has */
	uint64_t bytes_new;
	uint64_t bytes_stored;    /* the new bytes as coded */
	uint64_t bytes_layer;     /* the whole layer file: blocks and metadata */
	double seconds_blocked;   /* in varve_checkpoint */

	uint64_t bytes_dirty;     /* written since the epoch before, as far as could be told: what was looked at */
	uint64_t bytes_copied;    /* before varve_checkpoint returned */
	struct varve_access wait;    /* first writes while this epoch was being stored that had to wait for it */
	struct varve_access cow;     /* that found the old content copied, or copied it */
	struct varve_access avoided; /* that found it stored already */
	struct varve_access after;   /* first writes since the epoch before had been stored */
	double seconds_faults;    /* of the program's threads in page faults of ours, waits included; those of `after`, too */
	double seconds_waits;     /* of it, waiting */
	double seconds_flush;     /* from the call to durable */
	double bandwidth;         /* bytes_stored per second of it */

	uint64_t bytes_lent;      /* in this rank's layer, and other ranks refer to it */
	double seconds_ranks;     /* in which the ranks told each other what they hold */
};

/* Of the newest checkpoint of this session; waits until it is stored. VARVE_ENOENT if there was none. */
VARVE_API int varve_stats(varve *v, struct varve_stats *out);

#ifdef __cplusplus
}
#endif

#endif
