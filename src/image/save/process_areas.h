/* Describes the memory areas of a frozen process, by /proc: the image with that information
 * (mm-PID.img) comes after the pages. The names are the same as in reader/criu_images.c. The result
 * is only a hint: for a process that has ended or cannot be inspected, all memory is unnamed. */
#ifndef VV_IMAGE_SAVE_PROCESS_AREAS_H
#define VV_IMAGE_SAVE_PROCESS_AREAS_H

#include "reader/memory_areas.h"
#include <sys/types.h>

struct vv_process_areas {
	struct vv_memory_areas memory;
	struct vv_outline outline; /* of a file of pages: the area of each range */
	char *text;                /* the text of the map, which contains the names */
};

/* VV_ENOMEM is the only error. The text and the areas are freed by vv_process_areas_close. */
int vv_process_areas_open(struct vv_process_areas *a, pid_t pid);
void vv_process_areas_close(struct vv_process_areas *a);
/* Computes the areas for the first `len` bytes of a file of pages, by its pagemap as far as it has
 * come. */
int vv_process_areas_place(struct vv_process_areas *a, const uint8_t *pagemap, size_t n, uint64_t len);
/* Returns the area at this offset of the file; *len is reduced to its remaining bytes. */
void vv_process_areas_find(const struct vv_process_areas *a, uint64_t at, size_t *len, const char **variable, uint8_t *segment);

/* Process numbers inside and outside of a pid namespace: images contain the inner ones. */
struct vv_process_areas_pid {
	pid_t inside, outside;
};

/* Lists the numbers of a process and its descendants; *out is new memory. */
int vv_process_areas_pids(pid_t root, struct vv_process_areas_pid **out, size_t *n);

#endif
