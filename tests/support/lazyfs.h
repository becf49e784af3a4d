/* The real file system without the waiting: nothing is made durable. For tests that look at a store while the machine
 * stays up. */
#ifndef VV_TEST_LAZYFS_H
#define VV_TEST_LAZYFS_H

#include "base/fs.h"

const struct vv_fs *lazyfs(void);

#endif
