/* A checkpoint set as applications write it: files of several ranks, in several formats, with smooth fields that move a little from step to step.
 * Everything follows from rank and step. */
#ifndef VV_TEST_FILESET_H
#define VV_TEST_FILESET_H

#include <stdbool.h>
#include <stddef.h>

enum { FILESET_NAME = 64 };

/* What a rank writes: FIELD is .npy, f64, 3-D; STATE is netCDF classic, CDF-1, 2 or 5 by rank, with records; RESTART is Fortran records, f32; LOG is
 * opaque: text, which grows with the step. Of rank 0 besides: EMPTY, no byte; SPARSE, a hole of MiBs with a little at its end; NOISE, which
 * nothing makes smaller. */
enum fileset_kind { FILESET_FIELD, FILESET_STATE, FILESET_RESTART, FILESET_LOG, FILESET_EMPTY, FILESET_SPARSE, FILESET_NOISE, FILESET_KINDS };

/* The name of a file below the set's folder; false: this rank has none of this kind. It is the same in every step. */
bool fileset_name(enum fileset_kind kind, unsigned rank, char out[FILESET_NAME]);
/* Writes all files of the ranks into the folder, in place of those of the step before. */
void fileset_write(const char *folder, unsigned ranks, unsigned step);
/* Their names, sorted by rank and kind; how many. At most `max` are written. */
size_t fileset_list(unsigned ranks, char (*out)[FILESET_NAME], size_t max);

#endif
