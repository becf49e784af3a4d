/* Long runs of zeros become holes of a file: they are neither read nor written. */
#ifndef VV_ENGINE_READ_HOLES_H
#define VV_ENGINE_READ_HOLES_H

#include "core/format/run.h"

enum { VV_HOLES_HOLE = 64 << 10 }; /* shorter runs are written */

/* The end of the long run of zeros around `at`; `at` itself if there is none. */
uint64_t vv_holes_zeros_end(const struct vv_runs *runs, uint64_t at);
/* Writes the region's bytes at..at+n, from p, to the file, where the region begins at `base`.
 * Skipped bytes read as zeros already. Returns 0, or -1 with errno. */
int vv_holes_write(int fd, uint64_t base, const struct vv_runs *runs, uint64_t at, const uint8_t *p, uint64_t n);

#endif
