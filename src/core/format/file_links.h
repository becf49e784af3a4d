/* Hard links: names of one file, as its device and inode tell. */
#ifndef VV_CORE_FORMAT_FILE_LINKS_H
#define VV_CORE_FORMAT_FILE_LINKS_H

#include <stddef.h>
#include <stdint.h>

struct vv_link {
	uint64_t dev, ino;
	size_t file;  /* the caller's number */
	size_t first; /* the lowest of those that are the same file */
};

/* Sets `first` of each, in another order. */
void vv_file_links_group(struct vv_link *v, size_t n);

#endif
