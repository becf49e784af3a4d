/* Ctrl-C and its kin: what is half done goes away, the terminal's line is ended, and the process dies of the signal as
 * its parent expects. The store needs no care: whatever moment it is, every epoch in it is whole. */
#ifndef VV_CLI_BASE_INTERRUPT_H
#define VV_CLI_BASE_INTERRUPT_H

#include <stdatomic.h>
#include <stdbool.h>

void vv_interrupt_arm(void);
/* The file to remove; NULL: none. */
void vv_interrupt_file(const char *path);
/* The next signal does not kill: it sets *stop, and who looks there cleans up and calls vv_interrupt_die. A second one kills. NULL: as before. */
void vv_interrupt_set_stop(atomic_bool *stop);
/* Of the signal that came, if one did. */
void vv_interrupt_die(void);
/* Is there an unfinished line on the terminal? */
void vv_interrupt_line(bool open);

#endif
