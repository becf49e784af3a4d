/* Which files are of one set: one checkpoint of a program, as its files are called. */
#ifndef VV_CLI_SETRULE_H
#define VV_CLI_SETRULE_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

struct vv_setrule {
	regex_t regex;
	bool given;
};

/* Files in which the groups of an extended regular expression match the same; NULL: whose names differ in the last number only, which is the rank's.
 * verb: for the message. */
int vv_setrule_init(struct vv_setrule *r, const char *verb, const char *regex);
void vv_setrule_fini(struct vv_setrule *r);
/* What names of one set have in common. false: the file is of none. */
bool vv_setrule_key(const struct vv_setrule *r, const char *name, char *key, size_t cap);

#endif
