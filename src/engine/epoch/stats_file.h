/* The statistics of every epoch for scripts: a file of JSON lines (the option `stats`). Any number
 * of processes may append to the same file, since a line is one write to its end. */
#ifndef VV_ENGINE_EPOCH_STATS_FILE_H
#define VV_ENGINE_EPOCH_STATS_FILE_H

#include <stdint.h>
#include <varve/varve.h>

/* Appends the line of one epoch, with the names of struct varve_stats. error: the reason of the
 * failure, if rc < 0. A partial write (a full disk) is an error. The next line then still starts on
 * its own line. */
int vv_stats_file_add(const char *path, const char *lineage, uint32_t rank, uint64_t time_ns, int rc, const char *error,
		   const struct varve_stats *st);

#endif
