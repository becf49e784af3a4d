/* What a backend of a store is: named objects that appear whole or not at all.
 *
 * A backend is a struct whose first member is struct vv_store (the model is libgit2's odb backend). Names are relative
 * paths of the characters [A-Za-z0-9._-] and '/', made by the engine; a backend may trust them. An object is written
 * once, from front to back, and becomes visible under its name, durably, in put_commit; an older object of that name is
 * replaced in one step, and whoever has it open goes on reading the old one or gets an error, never a mixture (but what is
 * mapped of a bundle's member reads as zeros then).
 *
 * Threads: every operation may be called from any thread; one vv_put belongs to one thread at a time; one vv_get may be
 * read by many at once. */
#ifndef VV_STORE_BACKEND_H
#define VV_STORE_BACKEND_H

#include "base/pool.h"
#include "core/format/bundle.h"
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { VV_STORE_TOKEN = 32 };

struct vv_store;

struct vv_put { /* an object being written; a backend embeds it first */
	struct vv_store *store;
	char *name;
	uint64_t written;
};

struct vv_get { /* an object open for reading */
	struct vv_store *store;
	char *name;
	uint64_t size;
	bool maps;          /* it can be mapped, which may be faster than reading it */
	const uint8_t *map; /* the whole object, once it is; else NULL */
	void *mapped;       /* the pages around it, which closing takes down; whoever puts NULL here has taken that over */
	size_t mapped_len;
};

struct vv_lock {
	struct vv_store *store;
	char *name;
};

struct vv_lock_holder { /* of a lock */
	long pid;        /* of a process of this host; 0: of another, or not known */
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
	/* Both end the put and free it, whatever happens. */
	int (*put_commit)(struct vv_put *p);
	void (*put_abort)(struct vv_put *p);

	int (*get_open)(struct vv_store *s, const char *name, struct vv_get **out); /* VV_ENOENT if absent */
	int (*get_read)(struct vv_get *g, uint64_t off, void *to, size_t n);        /* all n bytes or an error */
	void (*get_map)(struct vv_get *g); /* if it can. May be NULL */
	/* Is it what it was when it was opened? An error says what happened to it. May be NULL. */
	int (*get_check)(struct vv_get *g);
	/* What will be read lies here and there: reading ahead would be in vain. May be NULL. */
	void (*get_scattered)(struct vv_get *g);
	/* Most of it will be touched where it is mapped: what is not in memory should come in large pieces. May be NULL. */
	void (*get_touched)(struct vv_get *g);
	void (*get_close)(struct vv_get *g);

	/* Objects and folders directly under dir ("" = the top); an absent dir is an empty one. Any order. */
	int (*list)(struct vv_store *s, const char *dir, struct vv_names *out);
	/* How long the object is now, without reading it; VV_ENOENT if absent. NULL where that is a journey. */
	int (*size)(struct vv_store *s, const char *name, uint64_t *size);
	int (*remove)(struct vv_store *s, const char *name); /* absent: 0 */
	/* Removes a folder if it is empty; never an error that it is not. May be NULL. */
	int (*remove_dir)(struct vv_store *s, const char *dir);
	/* Objects being written by processes that died: remove what is left of them under dir, and make durable what they
	 * published or removed there. May be NULL. */
	int (*sweep)(struct vv_store *s, const char *dir);

	/* At most one holder at a time; VV_EBUSY with a message naming the holder. A dead holder's lock is taken over. */
	int (*lock)(struct vv_store *s, const char *name, struct vv_lock **out);
	void (*unlock)(struct vv_lock *l);
	/* Is it held, and does its name still lead to it? VV_ENOENT or VV_EBUSY with a message if not. May be NULL. */
	int (*held)(struct vv_lock *l);

	/* For who looks on; neither takes or changes anything, and either may be NULL. Objects under dir that somebody is writing, or died
	 * writing, with the bytes that are there so far. */
	int (*unfinished)(struct vv_store *s, const char *dir, struct vv_names *out);
	/* Who holds the lock: 1, or 0 if nobody does, as far as can be told. */
	int (*holder)(struct vv_store *s, const char *name, struct vv_lock_holder *out);

	struct vv_bundle_ops bundle; /* all NULL where a store has no files of several objects */

	void (*close)(struct vv_store *s);
};

struct vv_store_attachment { /* what lives as long as a store, for who has no end of its own: vv_store_attach */
	void (*end)(struct vv_store_attachment *attachment);
	struct vv_store_attachment *next;
};

struct vv_store {
	const struct vv_store_ops *ops;
	char *url; /* for messages */
	size_t read_step; /* reading in steps of this size costs nothing extra; 0 = ask for all at once */
	bool is_remote;         /* each read is a journey, so many should be under way */
	/* A limit on what put_write may push, kept by store.c; 0 = none. */
	uint64_t bandwidth;
	pthread_mutex_t pace_lock;
	double pace_free_at; /* seconds on the monotonic clock */
	/* What the sink was seen to take, for the choice of a codec. */
	uint64_t written_bytes;
	double written_seconds;
	struct vv_store_attachment *attachments;
};

#endif
