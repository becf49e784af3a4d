/* Requests for a checkpoint by a signal. The handler counts requests. varve_due compares the count
 * with the count that its session has served.
 *
 * The program keeps the signal. A handler that it installed before is called after ours, with its
 * own flags and mask. A handler that it installs later replaces ours, and may or may not call ours.
 * Ours is never installed over such a handler, since the two might then call each other for
 * ever. */
#ifndef VV_ENGINE_SESSION_SIGNAL_REQUEST_H
#define VV_ENGINE_SESSION_SIGNAL_REQUEST_H

#include <stdint.h>

/* word: "USR1", "USR2", or "none". Returns the signal; 0 for "none". */
int vv_signal_request_signal(const char *word);
/* Each listen needs an unlisten. The last one restores the previous handler, unless the program has
 * changed it meanwhile. Signal 0 is none. */
int vv_signal_request_listen(int sig);
void vv_signal_request_unlisten(int sig);
/* Requests so far in this process. */
uint64_t vv_signal_request_count(void);

#endif
