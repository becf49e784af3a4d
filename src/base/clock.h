/* Time: monotonic for durations, wall clock for records. */
#ifndef VV_BASE_CLOCK_H
#define VV_BASE_CLOCK_H

#include <stdint.h>

uint64_t vv_clock_ns(void);
double vv_clock_s(void);
double vv_clock_own_s(void); /* processor time of the calling thread, without other programs */
uint64_t vv_clock_wall_ns(void);
void vv_clock_sleep(double seconds);

#endif
