/* The grouping of files into sets by their names: a set is one checkpoint of a program. */
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

/* Prepares the rule. With `regex`, an extended regular expression, files belong to a set if its
 * groups match the same text. With NULL, the names differ only in the last number, which is the
 * rank's, or have the word "base" in its place (LAMMPS). The argument `verb` is for the message. */
int vv_file_sets_init(struct vv_file_sets *r, const char *verb, const char *regex);
void vv_file_sets_fini(struct vv_file_sets *r);
/* The common part of the names of a set. false: the file is in no set. */
bool vv_file_sets_key(const struct vv_file_sets *r, const char *name, char *key, size_t cap);
/* The number in a name that distinguishes it within its set, if no expression is given; false: it
 * has none. */
bool vv_file_sets_number(const char *name, uint64_t *out);

#endif
