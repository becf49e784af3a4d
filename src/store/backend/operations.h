/* The operations of a store's backend (store/backend/backend.h). */
#ifndef VV_STORE_BACKEND_OPERATIONS_H
#define VV_STORE_BACKEND_OPERATIONS_H

#include "core/format/bundle.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum { VV_STORE_TOKEN = 32 };

struct vv_store;
struct vv_put;
struct vv_get;
struct vv_lock;
struct vv_lock_holder;
struct vv_names;
struct vv_pending_write;

/* How a range will be read: in small pieces all over; soon; most of its mapping, in large
 * pieces. */
enum vv_store_advice { VV_STORE_SCATTERED, VV_STORE_SOON, VV_STORE_MAPPED };

/* Several objects in one file: see vv_store_bundle_make. */
struct vv_bundle_ops {
	int (*make)(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN]);
	int (*join)(struct vv_store *s, const char *bundle, const char *token, uint64_t off, uint64_t room, struct vv_put **out);
	int (*seal)(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n);
	void (*drop)(struct vv_store *s, const char *bundle, const char *token);
};

struct vv_lock_ops {
	/* At most one holder at a time; the message of VV_EBUSY names the holder. A dead holder's
	 * lock is taken over. */
	int (*take)(struct vv_store *s, const char *name, struct vv_lock **out);
	void (*release)(struct vv_lock *l);
	/* Is the lock held, and does its name still lead to it? Else VV_ENOENT or VV_EBUSY with a
	 * message. May be NULL. */
	int (*held)(struct vv_lock *l);
	/* For observers. The holder of the lock: 1, or 0 if there is none, as far as can be seen.
	 * Changes nothing. May be NULL. */
	int (*holder)(struct vv_store *s, const char *name, struct vv_lock_holder *out);
};

struct vv_store_ops {
	int (*put_open)(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
	int (*put_write)(struct vv_put *p, const struct iovec *iov, int n);
	/* The same without waiting; vv_backend_write_ended reports the end. An error after the
	 * return is one of the next call for the object. May be NULL. */
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

	/* For observers: unfinished objects under dir, of living or dead writers, with the bytes
	 * written so far. Changes nothing. May be NULL. */
	int (*unfinished)(struct vv_store *s, const char *dir, struct vv_names *out);
	struct vv_lock_ops locks;
	struct vv_bundle_ops bundle; /* all NULL if a store has no bundles */

	void (*close)(struct vv_store *s);
};

#endif
