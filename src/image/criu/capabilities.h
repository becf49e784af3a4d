/* Which of root's rights criu needs and this process has not. A container may take some away, and then root is not all that the word says. */
#ifndef VV_IMAGE_CRIU_CAPABILITIES_H
#define VV_IMAGE_CRIU_CAPABILITIES_H

#include <stdbool.h>

enum { VV_CAPABILITIES_WORDS = 160 };

/* Their names; false: none is lacking. restore: those that only a restore takes, else those that a dump takes as well. */
bool vv_capabilities_lack(bool restore, char names[VV_CAPABILITIES_WORDS]);
/* Of other users' processes criu cannot ask what their limits are. */
bool vv_capabilities_stay_home(void);
/* What to do if criu was not permitted something. */
void vv_capabilities_advice(char words[VV_CAPABILITIES_WORDS]);

#endif
