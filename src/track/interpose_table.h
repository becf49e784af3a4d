/* The calls of the interposed C library functions (src/preload/wrap) into libvarve. The functions
 * lie in a library of their own, libvarve_interpose.so. It needs libvarve.so, asks for this table
 * when it is loaded, and calls nothing else there. Both libraries may be of different releases: a
 * changed table gets a new version, and libvarve.so keeps the old one. */
#ifndef VV_TRACK_INTERPOSE_TABLE_H
#define VV_TRACK_INTERPOSE_TABLE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum { VV_INTERPOSE_TABLE_VERSION = 2 };

/* The functions of write_protect.h, kernel_writes.h, registered_memory.h and chain.h with these
 * names. */
struct vv_interpose_table {
	void (*begin_call)(const void *p, size_t n, const void *frame, bool drop_left);
	void (*end_syscall)(void);
	void (*keep_left)(void);
	void (*note_mprotect)(const void *p, size_t n);
	const long *n_pages; /* protected pages: while there are none, before_free need not be called */
	void (*before_free)(const void *p, size_t n);
	void (*release_registered)(const void *p, size_t n);
	int (*sigaction)(int sig, const struct sigaction *act, struct sigaction *old, bool *handled);
	void (*masked)(int how, const sigset_t *set, sigset_t *before);
};

typedef int vv_interpose_sigaction(int sig, const struct sigaction *act, struct sigaction *old);

/* Returns NULL if this version is unknown. real_sigaction: the function behind the interposed one.
 * before_libc: the program's calls reach the interposed functions. libvarve.so exports this
 * function, and no public header declares it. */
__attribute__((visibility("default"))) const struct vv_interpose_table *varve_interpose_table(unsigned version, vv_interpose_sigaction *real_sigaction,
											      bool before_libc);

/* Returns whether the program's calls reach the interposed functions. */
bool vv_interpose_table_is_used(void);

#endif
