/* Copies a public struct to a caller that was compiled against another release. Such structs grow
 * at the end only. */
#ifndef VV_BASE_COPY_SIZED_H
#define VV_BASE_COPY_SIZED_H

#include <stddef.h>
#include <string.h>

/* The size of a struct whose last member was `member`. */
#define VV_SIZE_UP_TO(type, member) (offsetof(type, member) + sizeof(((type *)NULL)->member))

/* `size` is the caller's, `known` is ours. A longer struct of the caller ends in zeros. */
static inline void vv_copy_sized(void *to, size_t size, const void *from, size_t known)
{
	size_t n = size < known ? size : known;

	memcpy(to, from, n);
	memset((char *)to + n, 0, size - n);
}

#endif
