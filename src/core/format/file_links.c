#include "core/format/file_links.h"
#include <stdlib.h>

static int by_inode(const void *a, const void *b)
{
	const struct vv_link *x = a, *y = b;

	if (x->dev != y->dev)
		return x->dev < y->dev ? -1 : 1;
	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return (x->file > y->file) - (x->file < y->file);
}

void vv_file_links_group(struct vv_link *v, size_t n)
{
	if (n)
		qsort(v, n, sizeof(*v), by_inode);
	for (size_t i = 0; i < n; i++)
		v[i].first = i && v[i].dev == v[i - 1].dev && v[i].ino == v[i - 1].ino ? v[i - 1].first : v[i].file;
}
