/* The kernel's view of this process's memory: pages, mappings, limits. */
#ifndef VV_TRACK_MEMORY_H
#define VV_TRACK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

size_t vv_memory_page(void);
/* The complete pages inside [p, p+len). Returns false if there are none. */
bool vv_memory_pages(const void *p, size_t len, uintptr_t *lo, uintptr_t *hi);
/* Is every page of [p, p+len) mapped? Takes one system call for any number of pages. */
bool vv_memory_mapped(const void *p, size_t len);
/* The first page of [p, p+len) that is not mapped, or NULL. The kernel looks at mappings, not at
 * pages. Inaccessible pages (PROT_NONE) are mapped. */
const void *vv_memory_first_unmapped(const void *p, size_t len);
/* Can all changes of [lo, hi) be detected? Every page must be mapped, private, readable, writable,
 * and of no file. An unwritten page of a file shows the writes of other processes to the file.
 * Large pages of hugetlbfs always belong to a file. The data of programs and libraries are assumed
 * to be constant in their files. The calling thread's stack is refused, since a write-protected
 * stack cannot take the signal. Reads /proc/thread-self/maps. */
bool vv_memory_watchable(uintptr_t lo, uintptr_t hi);
/* The same for many ascending ranges in one pass. `ok` is the result. */
struct vv_memory_range {
	uintptr_t lo, hi;
	bool ok;
};
struct vv_memory_map {
	uintptr_t lo, hi;
	const char *mode; /* "rw-p" */
	const char *path; /* "" if there is none */
	bool of_file;     /* other than the image of a program or library */
};
void vv_memory_look(struct vv_memory_range *r, size_t n, bool (*fits)(const struct vv_memory_map *m));
bool vv_memory_is_watchable(const struct vv_memory_map *m);
bool vv_memory_is_writable(const struct vv_memory_map *m);
/* Calls fn for each part of the ranges that lies in one mapping, or in none (m is NULL), until fn
 * returns false. The ranges must be ascending and disjoint. If /proc is missing or belongs to
 * another process, fn is not called. */
typedef bool vv_memory_stretch(void *arg, uintptr_t lo, uintptr_t hi, const struct vv_memory_map *m);
void vv_memory_walk(const struct vv_memory_range *r, size_t n, vv_memory_stretch *fn, void *arg);
/* Sorts the ranges, extends them to complete pages, and joins them. Returns their number. */
size_t vv_memory_tidy(struct vv_memory_range *r, size_t n);
/* Is every page of these ascending ranges mapped, private, readable and not writable? */
bool vv_memory_are_readonly(struct vv_memory_range *r, size_t n);
/* mprotect that bypasses the program's wrapper. Returns 0 or -1. */
int vv_memory_set_rights(uintptr_t lo, uintptr_t hi, int rights);
/* Call it before the mapping at this page is split, so that its parts can merge again. In a mapping
 * that was never written, each part would get its own anon_vma at its first write. Such parts never
 * merge. Linux >= 5.14. */
void vv_memory_keep_mergeable(uintptr_t page);
/* The number of further mappings that this process may have by vm.max_map_count, minus a reserve
 * for the program. */
size_t vv_memory_map_room(void);

#endif
