/* The libraries that are loaded, and which of them are the program's: those that compute for it, whose memory is part of its state. The others
 * stand for something outside of it (MPI, files, devices, the C library itself): they are known by name, and so is what only they have loaded. */
#ifndef VV_PRELOAD_LIBRARY_H
#define VV_PRELOAD_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As it is stored with a state. */
struct vv_library {
	uint64_t at, size;
	char name[112]; /* of its file, without folders; cut where it is longer; "": the executable */
};

/* To be called before all others. */
void vv_library_begin(void);
/* Whose code is this? What is no library's was made by the program at run time. Asks for no memory, and for no lock but that of dl_iterate_phdr; in a
 * child of fork not even for that, but for what the child has loaded itself. */
bool vv_library_is_program(uintptr_t at);
/* Of a library that makes the program's workers (OpenMP, TBB). */
bool vv_library_makes_workers(uintptr_t at);
/* Where the executable lies. */
uintptr_t vv_library_executable(void);
/* Those of the program, the executable first. *out belongs to the caller. */
int vv_library_list(struct vv_library **out, size_t *n);
/* 0 if all that lay somewhere `then` lie there now. */
int vv_library_compare(const struct vv_library *now, size_t n_now, const struct vv_library *then, size_t n_then);

#endif
