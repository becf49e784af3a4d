/* Reads objects of a directory, by pread or from a mapping. */
#ifndef VV_STORE_DIR_DIR_GET_H
#define VV_STORE_DIR_DIR_GET_H

#include "store/dir/dir_priv.h"

int vv_dir_get_open(struct vv_store *s, const char *name, struct vv_get **out);
int vv_dir_get_read(struct vv_get *base, uint64_t off, void *to, size_t n);
void vv_dir_get_map(struct vv_get *base);
void vv_dir_get_direct(struct vv_get *base);
int vv_dir_get_check(struct vv_get *base);
void vv_dir_get_advise(struct vv_get *base, enum vv_store_advice how, uint64_t off, uint64_t n);
void vv_dir_get_close(struct vv_get *base);

#endif
