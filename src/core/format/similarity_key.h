/* Islam 2012's similarity key: variables of several files that hold the same thing. "group/name_type_class": ToyGrp/Temperature_F32LE_Array1D. Runs of
 * two or more digits in group and name are folded into '#' unless told otherwise, so that Grid00000042/Density is kin to
 * Grid00000007/Density; or a regular expression (POSIX, extended) is replaced by a text in which \1..\9 stand for its groups. */
#ifndef VV_CORE_FORMAT_SIMILARITY_KEY_H
#define VV_CORE_FORMAT_SIMILARITY_KEY_H

#include <stdbool.h>
#include <stddef.h>

enum { VV_SIMILARITY_KEY_MAX = 512 }; /* bytes of a key with its end; longer ones are cut and made unique by a digest */

struct vv_similarity_key; /* how keys are made */

/* rule: NULL folds digits; "none" folds nothing; "REGEX=TEXT" (the last '=' not behind a backslash divides them). VV_EINVAL says what is wrong. */
int vv_similarity_key_new(const char *rule, struct vv_similarity_key **out);
void vv_similarity_key_free(struct vv_similarity_key *k); /* NULL is fine */

/* name: of the variable; type: of core/format/head.h, width: bytes of an element that has none of these types. */
void vv_similarity_key_key(const struct vv_similarity_key *k, const char *name, unsigned type, unsigned width, bool swapped, unsigned ndim, char key[VV_SIMILARITY_KEY_MAX]);

#endif
