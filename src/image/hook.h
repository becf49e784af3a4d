/* A few lines of sh that criu runs at one of its stages: they say that it is there, and wait for a word. Without one, or if this process is gone, they
 * fail, and so does what criu was about to do. */
#ifndef VV_IMAGE_HOOK_H
#define VV_IMAGE_HOOK_H

#include "image/criu.h"

struct vv_hook {
	char path[VV_CRIU_FOLDER + 16];
	int ready[2], go[2]; /* pipes; -1: none. ready[0] is readable once it waits */
};

#define VV_HOOK_NONE { .ready = { -1, -1 }, .go = { -1, -1 } }

/* criu's command line is added to; the hook must stay where it is until criu has ended. */
int vv_hook_open(struct vv_hook *h, struct vv_criu *c, const char *action);
int vv_hook_go(struct vv_hook *h);
/* If it waits, it fails. What is empty is fine. */
void vv_hook_close(struct vv_hook *h);

#endif
