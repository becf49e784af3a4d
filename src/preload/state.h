/* The state of a program that declares nothing, as regions of a session: its heap, what is known of it, variables, and what the program
 * names. */
#ifndef VV_PRELOAD_STATE_H
#define VV_PRELOAD_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct varve;

/* Before the first checkpoint: what belongs to the state beside the heap, and what in it does not. */
int vv_state_protect(const char *name, void *p, size_t len);
int vv_state_except(void *p, size_t len);

/* The program is at its first checkpoint, in a new session, and has the variables of the executable in its state or not. */
int vv_state_begin(struct varve *v, bool globals);
/* Makes the state that of an epoch: 1; 0 if there is none yet (VARVE_LATEST). Until *touched is set, everything is as it was; if it fails
 * after that, the program cannot go on. */
int vv_state_restore(struct varve *v, uint64_t epoch, bool *touched);
/* Start-up is over; the state is a new one. */
int vv_state_start(struct varve *v);
/* What the heap has come to be is declared to the session. */
int vv_state_declare(struct varve *v);
/* After a checkpoint: warns of pointers from the state to memory that is not in it. */
void vv_state_look(void);

#endif
