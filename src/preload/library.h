/* The loaded libraries, divided into two kinds. The program's libraries compute for it, and
 * their memory is part of its state. The others represent outside resources (MPI, files,
 * devices, the C library itself). They are known by name; the libraries that only they have
 * loaded belong to them. */
#ifndef VV_PRELOAD_LIBRARY_H
#define VV_PRELOAD_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The format in a stored state. */
struct vv_library {
	uint64_t at, size;
	char name[92]; /* file name without folders, truncated; "": the executable */
	/* from the note of the linker, truncated. Zeros: it has none, or it was stored before this
	 * was a part of the name */
	uint8_t build_id[20];
};

/* To be called before all other functions. */
void vv_library_begin(void);
/* Returns whether this code belongs to the program. Code outside of all libraries was created by
 * the program at run time. Allocates no memory, and takes only the lock of dl_iterate_phdr. In a
 * child of fork it takes that lock only for libraries that the child has loaded itself. */
bool vv_library_is_program(uintptr_t at);
/* Returns whether this code is in a library that creates the program's workers (OpenMP, TBB). */
bool vv_library_makes_workers(uintptr_t at);
/* Address of the executable. */
uintptr_t vv_library_executable(void);
/* Lists the program's libraries, the executable first. *out belongs to the caller. */
int vv_library_list(struct vv_library **out, size_t *n);
/* Returns 0 if all libraries of `then` have the same address now. */
int vv_library_compare(const struct vv_library *now, size_t n_now, const struct vv_library *then, size_t n_then);

#endif
