/* A short sh script (a hook) that criu runs at one of its stages: it reports that stage and waits
 * for permission. Without permission, or after the end of this process, the script fails, and so
 * does criu's stage. Several hooks may share one permission: all of them get it or none does,
 * whenever we are killed. */
#ifndef VV_IMAGE_CRIU_ACTION_SCRIPT_H
#define VV_IMAGE_CRIU_ACTION_SCRIPT_H

#include "image/criu/criu.h"

struct vv_action_script {
	char path[VV_WORKDIR_PATH + 16];
	/* Pipes; -1: none. ready[0] is readable once the hook waits. It gives the number of the
	 * first process, if criu reports it. */
	int ready[2], go[2];
	int word;            /* a file in memory, empty until the permission is given */
};

#define VV_ACTION_SCRIPT_NONE { .ready = { -1, -1 }, .go = { -1, -1 }, .word = -1 }

/* VV_ENOTSUP: programs cannot be run in this folder. */
int vv_action_script_may_run(const char *folder);

/* Extends criu's command line; *h must not move until criu has ended. The hook shares the
 * permission of the hook `with`, if that is not NULL. */
int vv_action_script_open(struct vv_action_script *h, struct vv_criu *c, const char *action, const struct vv_action_script *with);
/* Gives the permission to all hooks that share it. Those that were opened with this one continue
 * when they are closed. */
int vv_action_script_go(struct vv_action_script *h);
/* A waiting hook continues if the permission was given, and fails otherwise. An empty hook is
 * accepted. */
void vv_action_script_close(struct vv_action_script *h);

#endif
