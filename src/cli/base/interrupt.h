/* Ctrl-C and similar signals: unfinished output is removed, the terminal's line is ended, and the
 * process dies of the signal as its parent expects. The store needs no care: at any moment every
 * epoch in it is intact. */
#ifndef VV_CLI_BASE_INTERRUPT_H
#define VV_CLI_BASE_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

void vv_interrupt_arm(void);
/* The file to remove; NULL: none. */
void vv_interrupt_file(const char *path);
/* The next signal does not kill: it sets *stop, and the code that polls *stop cleans up and calls
 * vv_interrupt_die. A second signal kills. NULL: restores the default. */
void vv_interrupt_set_stop(atomic_bool *stop);
/* Dies of the received signal, if there was one. */
void vv_interrupt_die(void);
/* Is there an unfinished line on the terminal? */
void vv_interrupt_line(bool open);

#endif
