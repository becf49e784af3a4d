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
#ifndef VV_STORE_BACKEND_H
#define VV_STORE_BACKEND_H

#include "base/pool.h"
#include "core/format/bundle.h"
#include "store/put.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { VV_STORE_TOKEN = 32 };

struct vv_store;

/* How a range will be read: in small pieces all over; soon; most of its mapping, in large pieces. */
enum vv_store_advice { VV_STORE_SCATTERED, VV_STORE_SOON, VV_STORE_MAPPED };

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

struct vv_name {
	char *name;    /* one component, without a trailing slash */
	uint64_t size; /* 0 for a directory */
	bool is_dir;
};

struct vv_names {
	struct vv_name *v;
	size_t n;
	size_t cap;
};

/* Several objects in one file: see vv_store_bundle_make. */
struct vv_bundle_ops {
	int (*make)(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN]);
	int (*join)(struct vv_store *s, const char *bundle, const char *token, uint64_t off, uint64_t room, struct vv_put **out);
	int (*seal)(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n);
	void (*drop)(struct vv_store *s, const char *bundle, const char *token);
};

struct vv_store_ops {
	int (*put_open)(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
	int (*put_write)(struct vv_put *p, const struct iovec *iov, int n);
	/* The same without waiting; vv_store_write_ended reports the end. An error after the return
	 * is one of the next call for the object. May be NULL. */
	int (*put_submit)(struct vv_put *p, const struct iovec *iov, int n, struct vv_pending_write *w);
	/* Both end the put and free it, even on error. */
	int (*put_commit)(struct vv_put *p);
	void (*put_abort)(struct vv_put *p);

	/* VV_ENOENT if absent */
	int (*get_open)(struct vv_store *s, const char *name, struct vv_get **out);
	/* all n bytes or an error */
	int (*get_read)(struct vv_get *g, uint64_t off, void *to, size_t n);
	void (*get_map)(struct vv_get *g); /* maps if possible. May be NULL */
	/* Sets the unit if reads can go past the page cache and that pays. May be NULL. */
	void (*get_direct)(struct vv_get *g);
	/* Is the object unchanged since it was opened? The error describes the change. May be
	 * NULL. */
	int (*get_check)(struct vv_get *g);
	/* Tells how a range will be read. May be NULL. */
	void (*get_advise)(struct vv_get *g, enum vv_store_advice how, uint64_t off, uint64_t n);
	void (*get_close)(struct vv_get *g);

	/* Objects and folders directly under dir ("" = the top), in any order; an absent dir is
	 * empty. */
	int (*list)(struct vv_store *s, const char *dir, struct vv_names *out);
	/* The present size of the object, without reading it; VV_ENOENT if absent. NULL if that
	 * takes a network round trip. */
	int (*size)(struct vv_store *s, const char *name, uint64_t *size);
	/* The space that dir and everything below it take. NULL: the sum of the listed sizes. */
	int (*usage)(struct vv_store *s, const char *dir, uint64_t *bytes);
	int (*remove)(struct vv_store *s, const char *name); /* absent: 0 */
	/* Frees a part of the space of removed objects. False: nothing is left. Closing the store
	 * frees all of it. May be NULL. */
	bool (*free_step)(struct vv_store *s);
	/* Removes a folder if it is empty; a folder that is not empty is no error. May be NULL. */
	int (*remove_dir)(struct vv_store *s, const char *dir);
	/* Removes unfinished objects of dead processes under dir, and makes their publications and
	 * removals there durable. May be NULL. */
	int (*sweep)(struct vv_store *s, const char *dir);

	/* At most one holder at a time; the message of VV_EBUSY names the holder. A dead holder's
	 * lock is taken over. */
	int (*lock)(struct vv_store *s, const char *name, struct vv_lock **out);
	void (*unlock)(struct vv_lock *l);
	/* Is the lock held, and does its name still lead to it? Else VV_ENOENT or VV_EBUSY with a
	 * message. May be NULL. */
	int (*held)(struct vv_lock *l);

	/* For observers; neither call changes anything, and either may be NULL. Unfinished objects
	 * under dir, of living or dead writers, with the bytes written so far. */
	int (*unfinished)(struct vv_store *s, const char *dir, struct vv_names *out);
	/* The holder of the lock: 1, or 0 if there is none, as far as can be seen. */
	int (*holder)(struct vv_store *s, const char *name, struct vv_lock_holder *out);

	struct vv_bundle_ops bundle; /* all NULL if a store has no bundles */

	void (*close)(struct vv_store *s);
};

struct vv_store_attachment { /* data that lives as long as a store: vv_store_attach */
	void (*end)(struct vv_store_attachment *attachment);
	struct vv_store_attachment *next;
};

struct vv_store {
	const struct vv_store_ops *ops;
	char *url; /* for messages */
	size_t read_step; /* reads in steps of this size cost nothing extra; 0 = read all at once */
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

#endif
