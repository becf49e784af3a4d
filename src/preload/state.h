/* The state of a program that declares nothing, as regions of a session. It consists of the heap,
 * its description, variables, and the regions that the program names. */
#ifndef VV_PRELOAD_STATE_H
#define VV_PRELOAD_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct varve;

/* Before the first checkpoint: adds a region to the state beside the heap, or excludes a range from
 * it. */
int vv_state_protect(const char *name, void *p, size_t len);
int vv_state_except(void *p, size_t len);

/* To be called at the first checkpoint, in a new session. globals: the state includes the variables
 * of the executable. */
int vv_state_begin(struct varve *v, bool globals);
struct vv_unreachable;
/* Restores the state of an epoch and returns 1; 0: there is none yet (VARVE_LATEST). *unreachable
 * becomes the sum of the unreachable objects, which are freed if free_them is set. */
int vv_state_restore(struct varve *v, uint64_t epoch, bool free_them, struct vv_unreachable *unreachable);
/* Ends the start-up; the state is a new one. */
int vv_state_start(struct varve *v);
/* Declares the current size of the heap to the session. */
int vv_state_declare(struct varve *v);
/* After a checkpoint: warns of pointers from the state to memory outside of it. */
void vv_state_look(void);

#endif
