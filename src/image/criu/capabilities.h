/* The capabilities that criu needs and this process lacks. A container may remove some of root's
 * capabilities. */
#ifndef VV_IMAGE_CRIU_CAPABILITIES_H
#define VV_IMAGE_CRIU_CAPABILITIES_H

#include <stdbool.h>

enum { VV_CAPABILITIES_WORDS = 160 };

/* Lists the missing ones; false: none is missing. restore: those for a restore only, otherwise
 * those for both dump and restore. */
bool vv_capabilities_lack(bool restore, char names[VV_CAPABILITIES_WORDS]);
/* Returns whether CAP_SYS_RESOURCE is missing: then criu cannot read the limits of other users'
 * processes. */
bool vv_capabilities_stay_home(void);
/* Advice for a criu that was not permitted an operation. */
void vv_capabilities_advice(char words[VV_CAPABILITIES_WORDS]);

#endif
