/* Objects whose content follows from a seed, alone or side by side in a bundle. */
#ifndef VV_TEST_MEMBERS_H
#define VV_TEST_MEMBERS_H

#include "core/format/name.h"
#include "store/store.h"
#include <stdbool.h>

#define MEMBERS_LINEAGE "a"
#define MEMBERS_FOLDER "a/00000000"

struct members_object {
	uint64_t seed;
	uint64_t len; /* at least 1 */
};

struct vv_store *members_open(const char *url);
/* An empty store in a folder of that name, which the next three are about from then on. */
struct vv_store *members_fresh(const char *name);
const char *members_root(void);
const char *members_path(const char *below); /* until the next call */
uint64_t members_blocks(const char *below);  /* bytes that a file takes */
/* Objects of 1 to `most` bytes. */
void members_fill(struct members_object *o, uint32_t n, uint64_t seed, uint64_t most);
/* New memory. */
uint8_t *members_bytes(struct members_object o);
/* Writes it in pieces of any size; ends neither put nor program when that fails. */
int members_write(struct vv_put *p, struct members_object o);
int members_put(struct vv_store *s, uint64_t epoch, uint32_t rank, struct members_object o);
/* Ranks first .. first + n - 1, in rooms of `room` bytes each (at least the longest; rounded up to pages). After a failure
 * the bundle is dropped. */
int members_bundle(struct vv_store *s, uint64_t epoch, uint32_t first, uint32_t n, const struct members_object *o,
		   uint64_t room);
/* 1: it is there and whole; 0: it is not there; else the error. Anything else than o ends the program. */
int members_is(struct vv_store *s, uint64_t epoch, uint32_t rank, struct members_object o);
/* The same for one of two; 2 is the second. */
int members_is_either(struct vv_store *s, uint64_t epoch, uint32_t rank, struct members_object a, struct members_object b);
int members_remove(struct vv_store *s, uint64_t epoch, uint32_t rank);
/* Everything that is listed in the folder can be opened and is as long as listed; how much there is. */
size_t members_listed(struct vv_store *s);
/* Every layer of the lineage that is a file of its own becomes the one member of a bundle; how many there were. */
size_t members_move(const char *url, const char *lineage);
/* How many files a folder has whose names begin with so. */
size_t members_files(const char *folder, const char *begin);

#endif
