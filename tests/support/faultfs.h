/* A file system that goes wrong at the n-th call. Calls that change something are counted, and for FAULT_READ those that
 * read; below it nothing is made durable (see lazyfs.h). There is one per process, for any number of threads. */
#ifndef VV_TEST_FAULTFS_H
#define VV_TEST_FAULTFS_H

#include "base/fs.h"
#include <stdbool.h>

enum fault {
	FAULT_NONE,
	FAULT_EIO,    /* the call fails */
	FAULT_ENOSPC, /* the same, for want of space */
	FAULT_SHORT,  /* a write does half of its work, and there is no space for the rest */
	FAULT_TEAR,   /* a write leaves rubbish in its second half and fails */
	FAULT_DEAD,   /* from this call on everything fails, until the next faultfs_arm */
	FAULT_READ,   /* the n-th read fails */
	FAULT_KILL,   /* the process is killed before the call */
	FAULT_KINDS
};

const struct vv_fs *faultfs(void);
/* Starts counting anew; n from 1 on. */
void faultfs_arm(enum fault kind, long n);
/* Did it happen? */
bool faultfs_fired(void);
/* Objects that were replaced by another of the same name since the last arming. */
long faultfs_replaced(void);
/* What the failing call says: an errno. */
int faultfs_errno(enum fault kind);
const char *faultfs_name(enum fault kind);

#endif
