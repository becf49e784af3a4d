/* The statistics of every epoch for scripts: a file of JSON, one line each (the option `stats`). Any number of processes may
 * append to the same file: a line is one write to the end of it. */
#ifndef VV_ENGINE_SESSION_STATS_FILE_H
#define VV_ENGINE_SESSION_STATS_FILE_H

#include <stdint.h>
#include <varve/varve.h>

/* Appends the line of one epoch, with the names of struct varve_stats. error: why the epoch failed, if rc < 0. Where only a
 * part of the line could be written (a full disk) this is an error, and the next line starts on a line of its own. */
int vv_stats_file_add(const char *path, const char *lineage, uint32_t rank, uint64_t time_ns, int rc, const char *error,
		   const struct varve_stats *st);

#endif
