/* What the parts of the S3 store share. */
#ifndef VV_STORE_S3_PRIV_H
#define VV_STORE_S3_PRIV_H

#include "store/s3_conf.h"
#include "store/s3_http.h"
#include "store/store.h"
#include <stdatomic.h>

struct vv_s3 {
	struct vv_store base;
	struct vv_s3_conf conf;
	struct vv_s3_http http;
	atomic_int compares; /* does the server honour If-None-Match on PUT? 1 yes, -1 no, 0 not known yet */
};

/* The key of an object: new memory, or NULL. */
char *vv_s3_key(const struct vv_s3 *s, const char *name);
/* Sixteen random bytes in hex. */
#define VV_S3_NONCE 33
int vv_s3_nonce(char out[VV_S3_NONCE]);

int vv_s3_put_open(struct vv_store *s, const char *name, uint64_t size_hint, struct vv_put **out);
int vv_s3_put_write(struct vv_put *p, const struct iovec *iov, int n);
int vv_s3_put_commit(struct vv_put *p);
void vv_s3_put_abort(struct vv_put *p);

int vv_s3_get_open(struct vv_store *s, const char *name, struct vv_get **out);
int vv_s3_get_read(struct vv_get *g, uint64_t off, void *to, size_t n);
void vv_s3_get_close(struct vv_get *g);

int vv_s3_list(struct vv_store *s, const char *dir, struct vv_names *out);
/* 1: there is an object under the prefix, 0: there is none. */
int vv_s3_list_any(struct vv_s3 *s);

int vv_s3_sweep(struct vv_store *s, const char *dir);
int vv_s3_sweep_look(struct vv_store *s, const char *dir, struct vv_names *out);

int vv_s3_lock(struct vv_store *s, const char *name, struct vv_lock **out);
void vv_s3_lock_release(struct vv_lock *l);
int vv_s3_lock_look(struct vv_store *s, const char *name, struct vv_lock_holder *out);

#endif
