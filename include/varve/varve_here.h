/* Checkpoints of programs that declare nothing.
 *
 *	for (; step < n; step++) {                  step: static, or on the heap; not on the stack
 *		...
 *		varve_checkpoint_here();
 *	}
 *
 * Run by `varve run -- ./program`, the call saves all that the program has allocated, when it is time for a checkpoint. When the program
 * is started again, it does what it does until it comes to the first such call; there it finds its heap as it was. Run without varve, the
 * same program has calls that do nothing: these names are weak, and need no library to be linked. */
#ifndef VARVE_HERE_H
#define VARVE_HERE_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VARVE_HERE __attribute__((weak, visibility("default")))

/* 1: the heap has just become that of the epoch that the program goes on from. 0: it goes on as it was; a checkpoint was taken, or it was not
 * time for one. < 0: none could be taken; varve_last_error() says why, as does a warning.
 * One thread calls it, of MPI programs one of each rank, and the others do not allocate or change the heap during the first call. */
VARVE_HERE int varve_checkpoint_here(void);
/* Something outside of the heap that belongs to the state: a static or global variable. To be said before the first
 * varve_checkpoint_here, under the same name each time. `varve run --globals` says so of all of them. */
VARVE_HERE int varve_protect_here(const char *name, void *p, size_t len);
/* Something in the heap, or in a variable that is protected, that must stay as this run has made it: a communicator, a file, a stream.
 * To be said before the first varve_checkpoint_here. */
VARVE_HERE int varve_except_here(void *p, size_t len);

#define varve_checkpoint_here() (varve_checkpoint_here ? varve_checkpoint_here() : 0)
#define varve_protect_here(name, p, len) (varve_protect_here ? varve_protect_here(name, p, len) : 0)
#define varve_except_here(p, len) (varve_except_here ? varve_except_here(p, len) : 0)

#ifdef __cplusplus
}
#endif

#endif
