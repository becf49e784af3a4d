/* A file system with a gate before the calls that change something: they pass, wait, or fail, as the test says while they
 * come. Below it nothing is made durable (see lazyfs.h). There is one per process. */
#ifndef VV_TEST_GATEFS_H
#define VV_TEST_GATEFS_H

#include "base/fs.h"

enum gate { GATE_WRITE, GATE_SYNC, GATE_RENAME, GATE_OPEN, GATE_SYNC_DIR, GATE_KINDS };

const struct vv_fs *gatefs(void);
/* Everything passes, what was held too. */
void gatefs_pass(void);
/* Calls of the kind wait from now on. */
void gatefs_hold(enum gate kind);
/* Calls of the kind fail from now on, those that wait too. */
void gatefs_fail(enum gate kind, int error);
/* As gatefs_fail, from the n-th call on, n >= 1. */
void gatefs_fail_at(enum gate kind, int error, long n);
/* Returns when a call waits. */
void gatefs_await(void);

#endif
