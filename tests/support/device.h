/* Device memory for tests. */
#ifndef VV_TEST_DEVICE_H
#define VV_TEST_DEVICE_H

#include "space/space.h"

/* The space of devices; where there is none the test is skipped, with a word why. */
const struct vv_space *device_space(void);
void *device_get(size_t len);
void device_put(void *p);
/* The same at addresses that are odd, multiples of 4 or multiples of 8, in turn. */
void *device_get_odd(size_t len);
void device_put_odd(void *p);
/* Takes all memory of the device but about so much, until it is given back. */
void *device_hoard(size_t leave);

#endif
