/* A few lines of sh that criu runs at one of its stages: they say that it is there, and wait for a word. Without one, or if this process is gone, they
 * fail, and so does what criu was about to do. Several hooks may wait for one word: then all of them hear it or none does, whenever we are killed. */
#ifndef VV_IMAGE_CRIU_ACTION_SCRIPT_H
#define VV_IMAGE_CRIU_ACTION_SCRIPT_H

#include "image/criu/criu.h"

struct vv_action_script {
	char path[VV_WORKDIR_PATH + 16];
	int ready[2], go[2]; /* pipes; -1: none. ready[0] is readable once it waits: the number of the first process, if criu tells */
	int word;            /* a file in memory, empty until the word is given */
};

#define VV_ACTION_SCRIPT_NONE { .ready = { -1, -1 }, .go = { -1, -1 }, .word = -1 }

/* May programs be run in a folder? Else VV_ENOTSUP. */
int vv_action_script_may_run(const char *folder);

/* criu's command line is added to; the hook must stay where it is until criu has ended. with: another one, whose word is for this one, too; or NULL. */
int vv_action_script_open(struct vv_action_script *h, struct vv_criu *c, const char *action, const struct vv_action_script *with);
/* The word, for all that wait for it. Those that were opened with this one hear it when they are closed. */
int vv_action_script_go(struct vv_action_script *h);
/* If it waits, it goes on if the word was given, and else fails. What is empty is fine. */
void vv_action_script_close(struct vv_action_script *h);

#endif
