/* Hard links: names of one file, identified by its device and inode. */
#ifndef VV_CORE_FORMAT_FILE_LINKS_H
#define VV_CORE_FORMAT_FILE_LINKS_H

#include <stddef.h>
#include <stdint.h>

struct vv_link {
	uint64_t dev, ino;
	size_t file;  /* the caller's number */
	size_t first; /* the lowest of the numbers of the same file */
};

/* Sets `first` of each link; changes their order. */
void vv_file_links_group(struct vv_link *v, size_t n);

#endif
