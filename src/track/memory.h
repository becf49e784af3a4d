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
/* Can all changes of [lo, hi) be caught? Yes if every page is mapped, private, readable and writable, and of no file: one that was not written yet shows what
 * anybody writes to the file (and large pages of hugetlbfs are of one, whatever it is called). The data of programs and libraries are taken for constant in their
 * files. And the caller must not stand on it: a stack with a fence on it cannot take the signal. Reads /proc/self/maps. */
bool vv_memory_watchable(uintptr_t lo, uintptr_t hi);
/* Many ranges, ascending, at one reading: which of them are so? */
struct vv_memory_range {
	uintptr_t lo, hi;
	bool ok;
};
struct vv_memory_map {
	uintptr_t lo, hi;
	const char *mode; /* "rw-p" */
	const char *path; /* "" if it has none */
	bool of_file;     /* other than the image of a program or library */
};
void vv_memory_look(struct vv_memory_range *r, size_t n, bool (*fits)(const struct vv_memory_map *m));
bool vv_memory_is_watchable(const struct vv_memory_map *m);
bool vv_memory_is_writable(const struct vv_memory_map *m);
/* Goes over ranges that are ascending and apart, in stretches of one mapping, or of none (m is NULL), until it is told false. Where there is no /proc, or another
 * process's, there is no telling, and nothing is told. */
typedef bool vv_memory_stretch(void *arg, uintptr_t lo, uintptr_t hi, const struct vv_memory_map *m);
void vv_memory_walk(const struct vv_memory_range *r, size_t n, vv_memory_stretch *fn, void *arg);
/* Makes them so, in whole pages: how many they are then. */
size_t vv_memory_tidy(struct vv_memory_range *r, size_t n);
/* Is every page of all of them, ascending, mapped, private, readable and not writable? */
bool vv_memory_are_readonly(struct vv_memory_range *r, size_t n);
/* mprotect, past the program's own: 0 or -1. */
int vv_memory_set_rights(uintptr_t lo, uintptr_t hi, int rights);
/* Before the mapping at this page is split: its parts can merge again. In a mapping that was never written each part would get an anon_vma of its own at its first write,
 * and such parts never merge. Linux >= 5.14. */
void vv_memory_keep_mergeable(uintptr_t page);
/* How many more mappings this process may have, by vm.max_map_count and what it has now, less a reserve for the program. */
size_t vv_memory_map_room(void);

#endif
