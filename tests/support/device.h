/* Device memory for tests. */
#ifndef VV_TEST_DEVICE_H
#define VV_TEST_DEVICE_H

#include "space/space.h"
#include <stdatomic.h>
#include <stdbool.h>

/* The space of devices; where there is none the test is skipped, with a word why. */
const struct vv_space *device_space(void);
void *device_get(size_t len);
void device_put(void *p);
/* The same at addresses that are odd, multiples of 4 or multiples of 8, in turn. */
void *device_get_odd(size_t len);
void device_put_odd(void *p);
/* Takes all memory of the device but about so much, until it is given back. */
void *device_hoard(size_t leave);

/* Memory that both sides may use; gone with device_put. */
void *device_get_managed(size_t len);
/* How many there are, and the one that memory comes from, as the program sees it. */
int device_count(void);
int device_current(void);
void device_choose(int device);

/* A stream that waits for no other, and work on it. */
void *device_stream(void);
void device_stream_end(void *stream);
void device_set_on(void *stream, void *p, int value, size_t len);
void device_copy_on(void *stream, void *to, const void *from, size_t len);
/* From begin to end, work on the stream becomes a graph, as torch.cuda.graph captures it. false: the capture was broken off by a call of some thread. */
void device_capture_begin(void *stream);
bool device_capture_end(void *stream);
/* What comes after it waits until *go is true, but no longer than so many seconds. */
struct device_gate {
	atomic_bool go, passed;
	double seconds;
};
void device_gate_on(void *stream, struct device_gate *gate);

#endif
