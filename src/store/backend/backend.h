/* The interface of a store's backend: named objects that appear complete or not at all.
 *
 * A backend is a struct whose first member is struct vv_store (the model is libgit2's odb backend).
 * Names are relative paths of the characters [A-Za-z0-9._-] and '/', made by the engine; a backend
 * may trust them. An object is written once, from front to back, and put_commit makes it durable
 * and visible under its name. An older object of that name is replaced in one step. A reader that
 * has it open reads the old one or gets an error, never a mixture. Exception: a mapped member of a
 * bundle then reads as zeros.
 *
 * Threads: every operation may be called from any thread. A vv_put belongs to one thread at a time.
 * Many threads may read one vv_get at once. */
#ifndef VV_STORE_BACKEND_BACKEND_H
#define VV_STORE_BACKEND_BACKEND_H

#include "base/pool.h"
#include "store/backend/operations.h"
#include "store/backend/put.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_store_options;

struct vv_get { /* an object open for reading */
	struct vv_store *store;
	char *name;
	uint64_t size;
	bool maps;          /* it can be mapped, which may be faster than reading */
	const uint8_t *map; /* the whole object, once mapped; else NULL */
	/* Reads of multiples of it, at and to multiples, go past the page cache; 0: none do. */
	size_t unit;
	/* its pages, unmapped at close; a caller that sets NULL here takes ownership */
	void *mapped;
	size_t mapped_len;
};

struct vv_lock {
	struct vv_store *store;
	char *name;
};

struct vv_lock_holder { /* of a lock */
	long pid;        /* of a process of this host; 0: other host, or unknown */
	char words[200]; /* "pid 123 on host" */
};

struct vv_store_attachment { /* data that lives as long as a store: vv_store_attach */
	void (*end)(struct vv_store_attachment *attachment);
	struct vv_store_attachment *next;
};

struct vv_store {
	const struct vv_store_ops *ops;
	char *url; /* for messages */
	size_t read_step; /* reads in steps of this size cost nothing extra; 0 = read all at once */
	uint64_t device, inode; /* of a directory; 0: none */
	bool is_remote; /* each read is a network round trip: many should be in progress */
	/* A limit of put_write, enforced by store.c; 0 = none. */
	uint64_t bandwidth;
	pthread_mutex_t pace_lock;
	double pace_free_at; /* seconds on the monotonic clock */
	/* The measured throughput of the sink, for the choice of a codec. */
	uint64_t written_bytes;
	double written_seconds;
	size_t n_pending; /* writes in progress, */
	double pending_since;
	struct vv_store_attachment *attachments;
};

/* The part that all backends share. Init copies the url and takes the limit; fini ends the
 * attachments. */
int vv_backend_init(struct vv_store *s, const struct vv_store_ops *ops, const char *url,
		    const struct vv_store_options *opt);
void vv_backend_fini(struct vv_store *s);
/* A submitted write has ended, well or not. */
void vv_backend_write_ended(struct vv_pending_write *w);

#endif
