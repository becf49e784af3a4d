/* The storage of layers: named objects that appear complete or not at all. store/backend/backend.h
 * specifies the backends. */
#ifndef VV_STORE_STORE_H
#define VV_STORE_STORE_H

#include "store/backend/backend.h"
#include "store/backend/names.h"
#include "store/backend/store_options.h"

/* By URL: a path or dir:PATH, ram:NAME (/dev/shm), mem:NAME (shared within the
 * process), s3://BUCKET/PREFIX. */
int vv_store_open(const char *url, const struct vv_store_options *opt, struct vv_store **out);
void vv_store_close(struct vv_store *s);
/* Are both one folder, even if by different paths, or one place of S3? NULL is no store. */
bool vv_store_is_same(const struct vv_store *a, const struct vv_store *b);
/* Ends the attachment with the store. */
void vv_store_attach(struct vv_store *s, struct vv_store_attachment *attachment);

int vv_store_put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
int vv_store_put_write(struct vv_put *p, const struct iovec *iov, int n);
/* The same, but list and bytes must stay until w->done is called. It is called once, on any thread,
 * perhaps before this returns; after an error here it is not called. If the write fails later, a
 * later call for the object reports that. */
int vv_store_put_submit(struct vv_put *p, const struct iovec *iov, int n, struct vv_pending_write *w);
int vv_store_put_commit(struct vv_put *p);
void vv_store_put_abort(struct vv_put *p); /* NULL is allowed */
/* Writes a small object in one call. */
int vv_store_put(struct vv_store *s, const char *name, const void *p, size_t n);

int vv_store_get_open(struct vv_store *s, const char *name, struct vv_get **out);
int vv_store_get_read(struct vv_get *g, uint64_t off, void *to, size_t n);
/* Not while other threads use g. All threads share the address space, so a caller that reads a few
 * bytes should not map. */
void vv_store_get_map(struct vv_get *g);
/* Makes later reads go past the page cache, for large parts of an object that is not in the cache.
 * True if they do. Not while other threads use g. */
bool vv_store_get_direct(struct vv_get *g);
enum { VV_STORE_AROUND = 3 * 4096 };
/* The same as vv_store_get_read, to *out in a room of n + VV_STORE_AROUND bytes. The bytes around
 * them may be read as well, so that direct reads are aligned. */
int vv_store_get_around(struct vv_get *g, uint64_t off, size_t n, uint8_t *room, uint8_t **out);
/* After reading from the mapping: checks that the bytes were the object's, and that no process has
 * written to it meanwhile. */
int vv_store_get_check(struct vv_get *g);
void vv_store_get_advise(struct vv_get *g, enum vv_store_advice how, uint64_t off, uint64_t n);
void vv_store_get_close(struct vv_get *g); /* NULL is allowed */
/* Reads a small object of at most max bytes in one call; the caller frees *out. */
int vv_store_get(struct vv_store *s, const char *name, size_t max, uint8_t **out, size_t *n);

/* Calls fn(arg, i) for i in 0..n-1, which read from the store, on the threads of the pool. Uses
 * several times as many threads for a remote store, or if the calls wait for small disk reads
 * (`scattered`). */
void vv_store_each(const struct vv_store *s, struct vv_pool *pool, bool scattered, size_t n, void (*fn)(void *arg, size_t i), void *arg);

int vv_store_list(struct vv_store *s, const char *dir, struct vv_names *out); /* sorted by name */
/* The space that a folder and everything below it take: on a disk the blocks of its files. */
int vv_store_usage(struct vv_store *s, const char *dir, uint64_t *bytes);
int vv_store_remove(struct vv_store *s, const char *name);
/* Frees a part of the space of removed objects. False: nothing is left. */
bool vv_store_free_step(struct vv_store *s);
void vv_store_remove_dir(struct vv_store *s, const char *dir);
int vv_store_sweep(struct vv_store *s, const char *dir);
int vv_store_lock(struct vv_store *s, const char *name, struct vv_lock **out);
void vv_store_unlock(struct vv_lock *l); /* NULL is allowed */
int vv_store_held(struct vv_lock *l);    /* NULL is allowed */
/* none if they cannot be seen */
int vv_store_unfinished(struct vv_store *s, const char *dir, struct vv_names *out);
int vv_store_holder(struct vv_store *s, const char *name, struct vv_lock_holder *out);

/* A bundle: several layers of an epoch in one file, written by several processes at the same time.
 * The names are those of vv_name_bundle and vv_name_layer, in one folder.
 *
 * One process makes it and sends the token to the others. Each joins with its own offset and room,
 * writes, and commits its put, which makes the bytes durable but not visible. When all have
 * reported to the maker, it seals the bundle. Then all members become ordinary objects; before that
 * none is visible. VV_ENOTSUP if a store has no bundles.
 *
 * off is a multiple of VV_BUNDLE_PAGE; rooms do not overlap; unused room costs nothing. Members are
 * passed to seal in the order of their ranks, which is that of their offsets. The first byte of a
 * member is not zero. An existing object with a member's name is VV_EINVAL. A failed seal has
 * dropped the bundle, unless the very last step failed; then the members must be removed as
 * objects. The name of a bundle whose members were removed is not used again. */
int vv_store_bundle_make(struct vv_store *s, const char *bundle, char token[VV_STORE_TOKEN]);
int vv_store_bundle_join(struct vv_store *s, const char *bundle, const char *token, uint64_t off, uint64_t room,
			 struct vv_put **out);
int vv_store_bundle_seal(struct vv_store *s, const char *bundle, const char *token, const struct vv_member *m, size_t n);
/* Removes an unsealed bundle completely. */
void vv_store_bundle_drop(struct vv_store *s, const char *bundle, const char *token);

#endif
