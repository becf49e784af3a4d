/* A checkpoint asked for from outside, by a signal. The handler counts; varve_due compares the count with the one that its
 * session has served.
 *
 * The signal stays the program's: a handler that it had before is called after ours, with the flags and the mask that it was
 * installed with. One that it installs later takes the signal over, and passes it on to us or not, as it likes; ours is never
 * put on top of such a one, for if that calls ours, each would call the other for ever. */
#ifndef VV_ENGINE_SESSION_SIGNAL_REQUEST_H
#define VV_ENGINE_SESSION_SIGNAL_REQUEST_H

#include <stdint.h>

/* "USR1", "USR2", or "none", which is 0. */
int vv_signal_request_signal(const char *word);
/* Each listen has its unlisten; the last one puts back what was there, unless the program has meanwhile changed it.
 * Signal 0 is none. */
int vv_signal_request_listen(int sig);
void vv_signal_request_unlisten(int sig);
/* Requests so far in this process. */
uint64_t vv_signal_request_count(void);

#endif
