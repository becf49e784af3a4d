/* What the memory of a frozen process is, by /proc: the image that says so (mm-PID.img) comes behind the pages. The names are those that reader/criu_images.c finds in
 * images. A hint, and no more: a process that is gone, or cannot be looked at, has nothing but memory of no name. */
#ifndef VV_IMAGE_SAVE_PROCESS_AREAS_H
#define VV_IMAGE_SAVE_PROCESS_AREAS_H

#include "reader/memory_areas.h"
#include <sys/types.h>

struct vv_process_areas {
	struct vv_memory_areas memory;
	struct vv_outline outline; /* of a file of pages: what each stretch of it is */
	char *text;                /* of the map: areas have names in it */
};

/* VV_ENOMEM is the only error. */
int vv_process_areas_open(struct vv_process_areas *a, pid_t pid);
void vv_process_areas_close(struct vv_process_areas *a);
/* Where pages lie in their file, by their pagemap as far as it has come; the first `len` bytes of them. */
int vv_process_areas_place(struct vv_process_areas *a, const uint8_t *pagemap, size_t n, uint64_t len);
/* What is at this offset of the file, and for how many bytes, *len at most. */
void vv_process_areas_find(const struct vv_process_areas *a, uint64_t at, size_t *len, const char **variable, uint8_t *segment);

/* Process numbers inside and outside of a space of numbers: images have those inside. */
struct vv_process_areas_pid {
	pid_t inside, outside;
};

/* Of a process and all below it: new memory. */
int vv_process_areas_pids(pid_t root, struct vv_process_areas_pid **out, size_t *n);

#endif
