/* Folders of a test's own: under $TMPDIR, else in memory, else in the build folder; gone when the test ends. */
#ifndef VV_TEST_PLACE_H
#define VV_TEST_PLACE_H

#include <stddef.h>
#include <stdint.h>

enum { PLACE_MAX = 512 };

/* The test's folder, made with the first call. */
const char *place_root(void);
/* ROOT/name; with an own buffer. */
const char *place_path(char out[PLACE_MAX], const char *name);
/* Removes a folder or a file with all that is in it; absent is fine. */
void place_remove(const char *path);
void place_make_dir(const char *path);

/* Whole files. A read allocates; ends the program where it cannot. */
uint8_t *place_read(const char *path, size_t *n);
void place_write(const char *path, const void *p, size_t n);

#endif
