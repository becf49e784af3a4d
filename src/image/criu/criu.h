/* Runs CRIU as a program: finds it, starts it in its own folder, waits for it, and turns its errors
 * into one sentence. */
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
	char folder[VV_WORKDIR_PATH]; /* for its sockets, hook and log */
	int lock;                    /* of the folder */
	const char *arg[VV_CRIU_WORDS + 1];
	size_t n_args;
	pid_t inside; /* started in the mount namespace of this process; 0: in ours */
	pid_t pid; /* 0: it does not run */
	int pidfd; /* readable once it has ended; -1: it was not started */
	int status;
	bool unexplained; /* it has failed, and its log gives no known reason */
};

struct vv_criu_version {
	unsigned major, minor;
};

/* Finds criu: $VARVE_CRIU, or on the PATH, or in the folders for administrators' programs. The
 * message of VV_ENOTSUP explains how to install it. */
int vv_criu_find(char path[PATH_MAX]);
/* Finds a program on the PATH or in the folders for administrators' programs. */
bool vv_criu_look_for(const char *name, char path[PATH_MAX]);
/* Runs criu with these arguments and stores its output, up to cap - 1 bytes. Only for commands that
 * do not touch processes: criu is killed after the time limit. */
enum { VV_CRIU_LIMIT_S = 60 };
int vv_criu_ask(const char *const *word, double limit_s, char *out, size_t cap, int *status);
int vv_criu_version(struct vv_criu_version *out);

/* Finds criu and creates its folder. */
int vv_criu_open(struct vv_criu *c);
/* Waits for the end of a running criu (its pipes must be closed by then) and removes the folder.
 * Accepts an empty struct. */
void vv_criu_close(struct vv_criu *c);
/* Appends an argument; the caller keeps the ownership. vv_criu_start reports too many. */
void vv_criu_add_arg(struct vv_criu *c, const char *word);
/* Starts `criu VERB --stream ...` with the arguments so far. terminal: it keeps our standard
 * streams. */
int vv_criu_start(struct vv_criu *c, const char *verb, bool terminal);
/* Waits for its end. On failure the second argument begins the error message ("cannot save process
 * 12"), and the reason comes from the log. */
int vv_criu_wait(struct vv_criu *c, const char *what);

#endif
