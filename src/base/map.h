/* A hash table from strings to numbers, with open addressing. The keys are borrowed: the caller
 * keeps them in place while the map holds them. */
#ifndef VV_BASE_MAP_H
#define VV_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

#define VV_MAP_NONE SIZE_MAX

struct vv_map { /* all zero is the empty map */
	struct vv_map_slot *slot;
	size_t n, cap; /* cap is 0 or a power of two, at least twice n */
};

void vv_map_init(struct vv_map *m);
void vv_map_fini(struct vv_map *m);
/* Up to n keys can be held from now on without more memory. */
int vv_map_reserve(struct vv_map *m, size_t n);
/* An existing key gets the new number. */
int vv_map_put(struct vv_map *m, const char *key, size_t value);
/* The key's number, or VV_MAP_NONE. */
size_t vv_map_get(const struct vv_map *m, const char *key);
/* A missing key is allowed. */
void vv_map_remove(struct vv_map *m, const char *key);
/* Removes all keys and keeps the memory. */
void vv_map_clear(struct vv_map *m);

#endif
