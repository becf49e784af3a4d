/* The names of the objects and folders in a folder of a store. */
#ifndef VV_STORE_BACKEND_NAMES_H
#define VV_STORE_BACKEND_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

int vv_names_add(struct vv_names *v, const char *name, size_t len, uint64_t size, bool is_dir);
void vv_names_fini(struct vv_names *v);

#endif
