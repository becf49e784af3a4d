/* Islam 2012's similarity key, which is equal for variables of several files that hold the same
 * quantity. Its form is "group/name_type_class": ToyGrp/Temperature_F32LE_Array1D. By default, runs
 * of two or more digits in group and name are folded into '#'. Grid00000042/Density then has the
 * key of Grid00000007/Density. Alternatively, a regular expression (POSIX, extended) is replaced by
 * a text in which \1..\9 stand for its groups. */
#ifndef VV_CORE_FORMAT_SIMILARITY_KEY_H
#define VV_CORE_FORMAT_SIMILARITY_KEY_H

#include <stdbool.h>
#include <stddef.h>

/* bytes of a key with its end; longer ones are cut and made unique by a digest */
enum { VV_SIMILARITY_KEY_MAX = 512 };

struct vv_similarity_key; /* the rules for making keys */

/* rule: NULL folds digits; "none" folds nothing; "REGEX=TEXT" (divided at the last '=' that has no
 * backslash before it). VV_EINVAL has a message with the fault. */
int vv_similarity_key_new(const char *rule, struct vv_similarity_key **out);
void vv_similarity_key_free(struct vv_similarity_key *k); /* NULL is fine */

/* name: of the variable. type: of core/format/head.h. width: bytes of an element that has none of
 * these types. */
void vv_similarity_key_key(const struct vv_similarity_key *k, const char *name, unsigned type, unsigned width, bool swapped, unsigned ndim, char key[VV_SIMILARITY_KEY_MAX]);
/* The bytes of `_type_class` at the end of a key; 0: the key was made for another type. */
size_t vv_similarity_key_suffix(const char *key, unsigned type, unsigned width, bool swapped, unsigned ndim);

#endif
