/* What the kernel says of this process's memory: pages, mappings, limits. */
#ifndef VV_TRACK_MEMORY_H
#define VV_TRACK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t vv_memory_page(void);
/* The whole pages inside [p, p+len): false if there are none. */
bool vv_memory_pages(const void *p, size_t len, uintptr_t *lo, uintptr_t *hi);
/* Is every page of [p, p+len) mapped at all? One system call, however many pages. */
bool vv_memory_mapped(const void *p, size_t len);
/* Can first writes to all of [lo, hi) be caught? Yes if every page is mapped, private, readable and writable, and of the
 * ordinary size (a mapping that others share, or of hugetlbfs, cannot), and the caller does not stand on it: a stack with a
 * fence on it cannot take the signal. Reads /proc/self/maps. */
bool vv_memory_watchable(uintptr_t lo, uintptr_t hi);
/* Many ranges, ascending, at one reading: which of them are so? */
struct vv_memory_range {
	uintptr_t lo, hi;
	bool ok;
};
void vv_memory_look(struct vv_memory_range *r, size_t n, bool (*fits)(uintptr_t lo, uintptr_t hi, const char *mode,
								     const char *path));
bool vv_memory_is_watchable(uintptr_t lo, uintptr_t hi, const char *mode, const char *path);
/* Sorts the ranges; the first that is not mapped writable all over, or n. Where there is no /proc there is no telling, and they
 * count as writable. */
size_t vv_memory_find_unwritable(struct vv_memory_range *r, size_t n);
/* Is every page of all of them, ascending, mapped, private, readable and not writable? */
bool vv_memory_are_readonly(struct vv_memory_range *r, size_t n);
/* How many more mappings this process may have, by vm.max_map_count and what it has now, less a reserve for the program. */
size_t vv_memory_map_room(void);

#endif
