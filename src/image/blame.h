/* What part of a process's memory lies at a place of an image of pages: for who tells of damage there. */
#ifndef VV_IMAGE_BLAME_H
#define VV_IMAGE_BLAME_H

#include "image/restore/serve_images.h"

enum { VV_BLAME_WORDS = 160 };

/* " (heap)", " (library, libc.so.6/data)", or "" where the other images do not say so; the error of the caller, of damage, stays. */
void vv_blame_tell(struct vv_serve_images *s, size_t file, uint64_t at, char words[VV_BLAME_WORDS]);

#endif
