/* Which files are of one set: one checkpoint of a program, as its files are called. */
#ifndef VV_CLI_PACK_FILE_SETS_H
#define VV_CLI_PACK_FILE_SETS_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vv_file_sets {
	regex_t regex;
	bool given;
};

/* Files in which the groups of an extended regular expression match the same; NULL: whose names differ in the last number only, which is the rank's, or
 * the word "base" in its place (LAMMPS).
 * verb: for the message. */
int vv_file_sets_init(struct vv_file_sets *r, const char *verb, const char *regex);
void vv_file_sets_fini(struct vv_file_sets *r);
/* What names of one set have in common. false: the file is of none. */
bool vv_file_sets_key(const struct vv_file_sets *r, const char *name, char *key, size_t cap);
/* The number of a name that others of its set do not share, where no expression is given; false: it has none. */
bool vv_file_sets_number(const char *name, uint64_t *out);

#endif
