/* CRIU as a program that is run: found, started in a folder of its own, waited for, and its reasons put into one sentence. */
#ifndef VV_IMAGE_CRIU_CRIU_H
#define VV_IMAGE_CRIU_CRIU_H

#include "image/criu/workdir.h"
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { VV_CRIU_WORDS = 128 };

struct vv_criu {
	char path[PATH_MAX];
	char folder[VV_WORKDIR_PATH]; /* its sockets, hook and log */
	int lock;                    /* of the folder */
	const char *arg[VV_CRIU_WORDS + 1];
	size_t n_args;
	pid_t inside; /* it is started in the mount namespace of this process; 0: in ours */
	pid_t pid; /* 0: it does not run */
	int pidfd; /* readable once it has ended; -1: it was not started */
	int status;
	bool unexplained; /* it has failed, and its log does not tell what to do */
};

struct vv_criu_version {
	unsigned major, minor;
};

/* Where it is: $VARVE_CRIU, or on the PATH, or where administrators' programs are. VV_ENOTSUP says how to get it. */
int vv_criu_find(char path[PATH_MAX]);
/* A program on the PATH, or where administrators' programs are. */
bool vv_criu_look_for(const char *name, char path[PATH_MAX]);
/* Runs it with some words and takes what it prints, up to cap - 1 bytes. Only for what lets processes alone: it is killed if it has not ended in time. */
enum { VV_CRIU_LIMIT_S = 60 };
int vv_criu_ask(const char *const *word, double limit_s, char *out, size_t cap, int *status);
int vv_criu_version(struct vv_criu_version *out);

/* Finds it, and makes its folder. */
int vv_criu_open(struct vv_criu *c);
/* Waits for its end if it still runs (its pipes must be closed by then), and removes the folder. What is empty is fine. */
void vv_criu_close(struct vv_criu *c);
/* The next word of its command line; it is the caller's. Too many are told by vv_criu_start. */
void vv_criu_add_arg(struct vv_criu *c, const char *word);
/* Starts `criu VERB --stream ...` with the words so far. terminal: it keeps our standard streams. */
int vv_criu_start(struct vv_criu *c, const char *verb, bool terminal);
/* Waits for its end. What went wrong is in the log: `what` begins the sentence ("cannot save process 12"). */
int vv_criu_wait(struct vv_criu *c, const char *what);

#endif
